/* --mode=perf: how long each kernel takes on a case of medium size. Figures to compare with one another, on this
 * machine and in this minute.
 */
#include "checkops/checkops.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_ELEMENTS = 1 << 20, LEAST_RUNS = 3, MOST_RUNS = 1000 };
static const double most_flops = 3e8, least_seconds = 0.02;

/* The fastest of several runs: what disturbs a run only makes it slower. */
static void time_kernel(check_run *run, const an_kernel *kernel, an_context *ctx) {
    char shapes[512];
    double best = 0, spent = 0;
    for (int i = 0; i < MOST_RUNS && (i < LEAST_RUNS || spent < least_seconds); i++) {
        const char *wrong = check_run_call(run, kernel, ctx, -1, 0);
        if (wrong) {
            check_fail(run, kernel->name, "%s", wrong);
            return;
        }
        spent += run->seconds;
        if (i == 0 || run->seconds < best) best = run->seconds;
    }
    an_cost cost = check_run_cost(run);
    check_run_describe(run, shapes, sizeof shapes);
    printf("%-26s %-12s %-5s %10.1f us %8.2f GF/s %8.2f GB/s  %s\n", run->op->name, kernel->name,
           an_dtype_name(run->dtype), best * 1e6, cost.flops / best * 1e-9, cost.bytes / best * 1e-9, shapes);
}

/* Dense; where a kernel is for other layouts, permuted too, all kernels beside each other. */
static void time_kernels(check_run *run, an_context *ctx) {
    static const check_layout layouts[] = {CHECK_DENSE, CHECK_PERMUTED};
    bool left = true;
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0] && left; l++) {
        left = false;
        check_run_place(run, layouts[l], false);
        for (const an_kernel *kernel = check_kernels(run->options, run->op); kernel->name; kernel++) {
            if (!check_wants_kernel(run->options, kernel)) continue;
            if (check_applies(run, kernel))
                time_kernel(run, kernel, ctx);
            else
                left = true;
        }
    }
}

static void time_op(const check_options *options, const check_family *family, an_context *ctx) {
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16};
    int64_t number = 0; /* a small case, if no large one can be had */
    check_run *run = check_allocate(1, sizeof *run);
    check_find_large(options, family, INT64_MAX, MOST_ELEMENTS, most_flops, 1, &number);
    if (options->only >= 0) number = options->only;
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        const char *why;
        if (!check_wants_dtype(options, family, dtypes[d])) continue;
        if (check_run_create(run, options, family, dtypes[d], number, 0, &why)) {
            time_kernels(run, ctx);
        } else {
            check_fail(run, NULL, "the op refuses the case: %s", why);
        }
        check_run_destroy(run);
    }
    free(run);
}

void check_perf(const check_options *options, const check_family *family, const an_op *op) {
    an_context *ctx; /* with the threads that a program would have */
    an_context_options context;
    an_context_options_init(&context, sizeof context);
    (void)op;
    context.isa = options->isa;
    if (an_context_create(&ctx, &context) == AN_OK)
        time_op(options, family, ctx);
    else
        check_fail_plain("no context: %s", an_last_error(NULL));
    an_context_destroy(&ctx);
}
