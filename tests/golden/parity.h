/* Parity with PyTorch: what test_golden and test_golden_leaves share. A case of data/ (golden.h) becomes a program, and
 * its losses, gradients and outputs are held to PyTorch's. */
#ifndef GOLDEN_PARITY_H
#define GOLDEN_PARITY_H

#include <stdbool.h>

#include "anneal/plan.h"
#include "golden/golden.h"

typedef enum kind { LOSS, GRADIENT, OUTPUT, KINDS } kind;
typedef enum precision { IN_F32, IN_F64, IN_BF16, PRECISIONS } precision;

/* The largest error of a kind, in one dtype, and where it was. */
typedef struct worst {
    double error;
    char where[2 * GOLDEN_NAME_BYTES + 2];
} worst;

typedef struct session {
    const char *program;
    bool refuse;
    int runs, comparisons, failures;
    worst worst[PRECISIONS][KINDS];
} session;

typedef struct test {
    session *s;
    const golden_case *gold;
    precision precision;
    char way[128];  /* how it runs, for messages: "" or ", …" */
    an_dtype dtype; /* of parameters, inputs and outputs */
    an_context *ctx;
    an_graph *graph;
    an_params *params;
    an_plan *plan;
    an_program *program;
    int64_t targets; /* the loss is a sum; this divides it */
    double all_gradients;
} test;

/* Runs a program over all cases whose names begin with one of its arguments, or all if it has none: `run` in each
 * precision, and then `end`, with `all` if these were all cases. With --refuse in front, every expected number is
 * changed a little, and everything must fail. Returns what main does. */
int parity_main(int count, char **arguments, void (*run)(test *t), void (*end)(session *s, bool all));

void parity_fail(const test *t, const char *format, ...) AN_PRINTF(2, 3);
/* Returns false after a failed call of the library. */
bool parity_succeeds(const test *t, an_status status, const char *call);
#define TRY(t, call)                                            \
    do {                                                        \
        if (!parity_succeeds((t), (call), #call)) return false; \
    } while (0)

/* ---- a program ---- In this order, after the test has a context. */

bool parity_make_graph(test *t);
/* Parameters, plan and program; symbols have the sizes of the case. Maxima are added to the options. */
bool parity_make_program(test *t, const an_plan_options *options);
/* Gives the program every array of the case; without `inputs`, every one but those, which are counted only. */
bool parity_give_arrays(test *t, bool inputs);
void parity_destroy(test *t);

/* The gradients, at the places of their arrays in the case; the other places stay as they are. Free their data. */
bool parity_get_gradients(const test *t, an_array *gradients);

/* ---- comparing ---- */

/* Compares with `times` the expected array, relative to its norm, which counts as `least` if it is less. */
void parity_compare(test *t, kind k, const golden_array *expected, double times, const an_array *got, double minimum);
/* … a number, relative to itself. */
void parity_compare_number(test *t, kind k, const char *name, double expected, double got);
/* What the norm of a gradient counts as, if it is less. */
double parity_least_norm(const test *t, const golden_array *expected);

#endif
