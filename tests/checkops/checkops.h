/* What the files of checkops share: options, failures, and a run, which is one random case of one op in one dtype. */
#ifndef CHECKOPS_H
#define CHECKOPS_H

#include "checkops/cases.h"

typedef struct check_options {
    const char *mode, *op, *kernel; /* op, kernel: NULL is all */
    unsigned dtypes;                /* a mask of 1 << dtype; 0: all that the mode wants */
    int64_t only;                   /* the one case to run; -1: all */
    int64_t shapes;                 /* 0: the mode's own number */
    int most_threads;               /* of mode threads; 0: all its numbers */
    uint64_t seed;
    an_isa isa;        /* the level of instructions of all contexts */
    const char *model; /* only nodes of this real model; NULL: random cases and all models */
    double work;       /* of the largest nodes of real models, in GFLOP */
    bool bits;         /* mode test prints a hash of what each kernel gave */
} check_options;

/* The kernels of an op at the level of the options. */
const an_kernel *check_kernels(const check_options *options, const an_op *op);

/* ---- random numbers (check_random.c) ---- */

/* Streams of random numbers of one case. */
enum {
    CHECK_STREAM_SHAPES,
    CHECK_STREAM_VALUES,
    CHECK_STREAM_LAYOUTS,
    CHECK_STREAM_INITIAL, /* what accumulated outputs hold before */
    CHECK_STREAM_WEIGHTS, /* of outputs in the loss of a gradient's check, */
    CHECK_STREAM_MOVES,   /* and how its inputs are moved */
    CHECK_STREAM_OTHERS   /* and after it: other values */
};
check_random check_random_of(uint64_t seed, const char *op, int64_t number, int stream);
double check_uniform(check_random *r); /* in [0, 1) */
double check_normal(check_random *r);

/* ---- operands (check_operand.c) ---- */

typedef enum check_layout {
    CHECK_DENSE,
    CHECK_PERMUTED,  /* dense, in another physical order */
    CHECK_GAPS,      /* with room between rows and elements */
    CHECK_BROADCAST, /* one stride is 0; inputs only */
    CHECK_LAYOUTS
} check_layout;

/* A tensor between guard zones, and its values as the oracle sees them. */
typedef struct check_operand {
    an_tensor tensor;
    check_layout layout;
    int64_t dense[AN_MAX_DIMS]; /* strides: row-major, or the physical order that infer gave an output */
    check_array array;
    long double *initial; /* what an output that is accumulated holds before; NULL: nothing */
    long double usual;    /* root mean square of an output of few elements over other inputs; 0: not asked for */
    unsigned char *memory, *before; /* guard, elements and gaps, guard; and a copy from before the call */
    size_t bytes;
    size_t span; /* elements from the first to the last, gaps included */
} check_operand;

void *check_allocate(size_t count, size_t size); /* zeroed; exits if there is no memory */

long double check_load(an_dtype dtype, const void *element);
void check_store(an_dtype dtype, void *element, long double value);
long double check_rounded(an_dtype dtype, long double value);
void *check_element(const an_tensor *tensor, int64_t index); /* counted in C order */

/* Chooses strides and takes memory, all of it filled with NaN patterns, then writes the array into it if `write`. */
void check_place(check_operand *operand, check_layout layout, check_random *r, bool write);
void check_release(check_operand *operand);

/* Whether guards and gaps (and the elements too, if `elements`) are as they were at check_remember. */
void check_remember(check_operand *operand);
bool check_untouched(const check_operand *operand, bool elements);

/* ---- a run (check_run.c) ---- */

typedef struct check_run {
    const check_options *options;
    const check_family *family;
    const an_op *op;
    an_dtype dtype;
    int64_t number;
    check_case c;
    an_context *ctx;
    an_graph *graph;
    const an_node *node;
    int src_count, dst_count;
    check_operand src[AN_MAX_INPUTS], dst[AN_MAX_OUTPUTS];
    const an_kernel *kernel; /* of the last call, */
    double seconds;          /* and the time that it took */
} check_run;

/* Cases from this number on are enlarged: large enough to be cut into many tasks. */
enum { CHECK_FIRST_LARGE = 1000000 };

/* Flags. */
enum {
    CHECK_DENORMALS = 1,   /* of check_run_create: some of the numbers are */
    CHECK_SHAPES_ONLY = 2, /* of check_run_create: no arrays, to look for a case of some size */
    CHECK_FLUSHED = 4      /* of check_run_call: the caller has set flush-to-zero */
};

/* Makes the case, infers the outputs and fills the inputs' arrays. False if the op refuses the case: *why is its
 * message, valid until the next call. */
bool check_run_create(check_run *run, const check_options *options, const check_family *family, an_dtype dtype,
                      int64_t number, unsigned flags, const char **why);
/* The same case with this many samples instead of its own, shapes only. False also if it has no samples to change. */
bool check_run_create_rows(check_run *run, const check_options *options, const check_family *family, an_dtype dtype,
                           int64_t number, int64_t rows);
void check_run_destroy(check_run *run);

/* Gives every operand memory; `mixed` draws a layout for each, else all have `layout`. */
void check_run_place(check_run *run, check_layout layout, bool mixed);

/* The case's oracle, into the arrays of dst. (check_values.c) */
void check_run_oracle(check_run *run);
void check_run_fill(check_run *run, unsigned flags);          /* random inputs */
long double check_root_mean_square(const check_array *array); /* of its finite elements */

bool check_applies(const check_run *run, const an_kernel *kernel);
size_t check_run_scratch(const check_run *run, const an_kernel *kernel, an_context *ctx); /* that it asks for */

/* Calls a kernel on fresh outputs, with exactly the scratch that it asked for. Returns NULL, or what it did wrong: an
 * error, a write where it must not, a floating-point environment that is not the caller's any more; valid until the
 * next call. in_place ≥ 0: dst 0 is that input's memory. flags: CHECK_FLUSHED. */
const char *check_run_call(check_run *run, const an_kernel *kernel, an_context *ctx, int in_place, unsigned flags);

/* The work of a call by the op's record. */
an_cost check_run_cost(const check_run *run);

/* Puts the numbers of up to `wanted` enlarged cases into `numbers`: the first whose largest tensor has `least` elements
 * (or that have as much work), else those that come nearest; none with more than `most` elements or more than `flops`
 * of work. Returns how many there are. */
int check_find_large(const check_options *options, const check_family *family, int64_t minimum, int64_t maximum,
                     double flops, int wanted, int64_t *numbers);
int64_t check_run_elements(const check_run *run); /* of the largest operand */

/* "f32[2,3] f32[3] -> f32[2,3]" into `text`. */
void check_run_describe(const check_run *run, char *text, size_t capacity);

/* ---- comparing (check_compare.c) ---- */

/* NULL if output i agrees with the oracle; else how it does not, valid until the next call. */
const char *check_compare(const check_run *run, int output);

/* ---- the modes ---- */

/* Prints a failure with the line that reproduces it. kernel may be NULL. */
void check_fail(const check_run *run, const char *kernel, const char *format, ...) AN_PRINTF(3, 4);
void check_count(void);                                         /* counts a check, for the last line */
void check_fail_plain(const char *format, ...) AN_PRINTF(1, 2); /* not of a case */

bool check_wants_kernel(const check_options *options, const an_kernel *kernel);
/* Whether this family is tested in this dtype, and the options ask for it. */
bool check_wants_dtype(const check_options *options, const check_family *family, an_dtype dtype);

void check_test(const check_options *options, const check_family *family, const an_op *op);
void check_grad(const check_options *options, const check_family *family, const an_op *op);
void check_threads(const check_options *options, const check_family *family, const an_op *op);
void check_rows(const check_options *options, const check_family *family, const an_op *op);
void check_perf(const check_options *options, const check_family *family, const an_op *op);

#endif
