/* Random cases for every op: what checkops runs, in all its modes.
 *
 * A family is one op: a function that makes a random case (shapes, attributes, how inputs are filled) and an oracle
 * that computes the outputs in the plainest way, in long double, from dense inputs. Output shapes come from the op's
 * own infer hook. checkops makes the tensors (dense, transposed, with gaps, broadcast), runs every kernel and compares.
 */
#ifndef CHECKOPS_CASES_H
#define CHECKOPS_CASES_H

#include "ir/graph.h"

typedef enum check_fill {
    CHECK_ABSENT,   /* an optional input that is not there */
    CHECK_NORMAL,   /* standard normal */
    CHECK_APART,    /* normal, but at least 0.05 away from 0 and from each other's ties (kinks of relu, abs, max) */
    CHECK_POSITIVE, /* in [0.5, 2) */
    CHECK_UNIT,     /* in (0.05, 0.95): probabilities, soft targets */
    CHECK_INDEX,    /* integers in [low, high) */
    CHECK_NUMBER,   /* every element is `low` (or low, rounded to the dtype) */
    CHECK_ORDER     /* low, low + 1, … */
} check_fill;

typedef struct check_input {
    check_fill fill;
    an_dtype dtype; /* AN_DTYPE_NONE: the dtype under test */
    int ndims;
    int64_t dims[AN_MAX_DIMS];
    int64_t low, high;  /* INDEX, NUMBER, ORDER */
    bool compute_dtype; /* true: f64 if the dtype under test is f64, else f32 (statistics, norm weights, …) */
    bool only_dense;    /* must be given dense (rare) */
    bool is_state;      /* a program state, which kernels may write */
    bool no_gradient;   /* not differentiated (floating inputs only; integers never are) */
} check_input;

enum { CHECK_ATTRIBUTE_BYTES = 512, CHECK_MAX_ELEMENTS = 1 << 16 };

typedef struct check_case {
    int input_count;
    check_input inputs[AN_MAX_INPUTS];
    int output_count;                                    /* 0: the record's number */
    _Alignas(16) char attributes[CHECK_ATTRIBUTE_BYTES]; /* of the op's own struct; zeroed before make */
    uint32_t no_gradient_outputs;                        /* outputs that take no gradient (statistics, workspaces) */
    double tolerance_factor;                             /* 0: 1; more only with a reason beside it (long sums) */
    /* Set when the case must be checked relative to the size of its terms rather than of its result (sums that cancel):
     * the comparison is |got - want| <= tolerance · max(|want|, scale of the output, its root mean square). It is the
     * default for outputs of reductions and products. */
} check_case;

/* Deterministic random numbers of a case. `enlarge` is 1, or more where threads and perf want tensors that are large
 * enough to be cut into many tasks. */
typedef struct check_random {
    uint64_t state;
    int64_t enlarge;
} check_random;
int64_t check_between(check_random *r, int64_t low, int64_t high); /* both included */
/* The size of a dimension: 1, primes, odd tails, powers of two; up to most × enlarge, so `most` may bound the time that
 * a case takes, but never what is right: for that use check_between. A `most` below 1 counts as 1. */
int64_t check_size(check_random *r, int64_t maximum);
bool check_chance(check_random *r, int percent);

/* Dense operands for oracles, row-major, in long double; NULL data for absent ones. */
typedef struct check_array {
    long double *data;
    int ndims;
    int64_t dims[AN_MAX_DIMS], count;
} check_array;

typedef struct check_family {
    const char *op;
    void (*make)(check_random *r, check_case *c);
    /* dst[i].data is of the inferred shape and zeroed; for an op that accumulates, it holds what the output held. */
    void (*oracle)(const check_case *c, const check_array *src, check_array *dst);
    /* Dtypes that it is tested in, besides f32 and f64: a mask of 1 << AN_DTYPE_BF16, 1 << AN_DTYPE_F16. */
    unsigned low_dtypes;
    /* Inputs whose dimension 0 counts samples, a mask. 0: the op's results are not one for each sample. */
    uint32_t rows;
    /* How far off an output of kernel "amx" may be in bf16, as a part of its size, because it rounds to bf16 what lies
     * between its products. */
    double amx_error;
    bool no_grad_mode; /* the op has no gradient (gradient ops themselves, sinks) */
    bool exact;        /* outputs must be equal (copies, gathers) */
} check_family;

/* Each file of families ends its table with op NULL; checkops.c lists the tables. */
extern const check_family check_unary[], check_binary[], check_reduce[], check_softmax[], check_loss[], check_copy[],
    check_product[], check_convolution[], check_pool[], check_norm[], check_batch_norm[], check_embedding[],
    check_rotary[], check_attention[], check_dropout[], check_sink[], check_fused[];

#endif
