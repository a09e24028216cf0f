/* --mode=test: every kernel against the oracle. */
#include "checkops/checkops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    SHAPES = 24,       /* of each dtype, for each kernel that has it */
    ENOUGH = 20,       /* shapes of a kernel that rarely applies */
    DRAWS = 40,        /* as many times the shapes are drawn before such a kernel is given up, */
    NEVER = 10,        /* and before one that did not apply at all is taken not to be for this dtype */
    MOST_KERNELS = 16, /* of one op */
    MOST_FAILURES = 3  /* of one kernel in one dtype; then enough is known */
};

typedef struct {
    int64_t checked;
    int failures;
    bool waits; /* it is to be checked, with this case or with one that follows */
} tally;

/* The record says that output 0 may take the place of an input: then it must have the same bits there. */
static const char *test_in_place(check_run *run, const an_kernel *kernel) {
    check_operand *dst = &run->dst[0];
    const char *wrong = NULL;
    unsigned char *bits = check_allocate(dst->bytes, 1);
    memcpy(bits, dst->memory, dst->bytes);
    for (int i = 0; i < run->src_count && !wrong; i++) {
        const an_tensor *s = &run->src[i].tensor, *d = &dst->tensor;
        if (!(run->op->in_place >> i & 1) || s->dtype != d->dtype || s->ndims != d->ndims) continue;
        if (memcmp(s->dims, d->dims, (size_t)d->ndims * sizeof *d->dims) != 0) continue;
        if (memcmp(s->strides, d->strides, (size_t)d->ndims * sizeof *d->strides) != 0) continue;
        wrong = check_run_call(run, kernel, run->ctx, i, 0);
        if (!wrong && memcmp(bits, dst->memory, dst->bytes) != 0) wrong = "has other bits in place of an input";
    }
    free(bits);
    return wrong;
}

static void print_bits(const check_run *run, const an_kernel *kernel) {
    for (int i = 0; i < run->dst_count; i++)
        printf("bits %s %s %s case %" PRId64 " output %d: %016" PRIx64 "\n", run->op->name, kernel->name,
               an_dtype_name(run->dtype), run->number, i, (uint64_t)XXH3_64bits(run->dst[i].memory, run->dst[i].bytes));
}

static void test_kernel(check_run *run, const an_kernel *kernel, tally *t) {
    const char *wrong = check_run_call(run, kernel, run->ctx, -1, 0);
    if (run->options->bits) print_bits(run, kernel);
    for (int i = 0; i < run->dst_count && !wrong; i++) wrong = check_compare(run, i);
    if (!wrong && run->dst_count) wrong = test_in_place(run, kernel);
    check_count();
    t->waits = false;
    t->checked++;
    if (!wrong) return;
    t->failures++;
    check_fail(run, kernel->name, "%s", wrong);
}

/* Runs the kernels that wait and take the layouts that the operands have. False: none waits any more. */
static bool test_applicable(check_run *run, tally *tallies, bool *has_oracle) {
    bool is_left = false;
    const an_kernel *kernels = check_kernels(run->options, run->op);
    for (int i = 0; kernels[i].name; i++) {
        const an_kernel *kernel = &kernels[i];
        if (!tallies[i].waits) continue;
        if (!check_applies(run, kernel)) {
            is_left = true;
            continue;
        }
        if (!*has_oracle) check_run_oracle(run); /* often the dearest part, and rarely needed for a rare kernel */
        *has_oracle = true;
        test_kernel(run, kernel, &tallies[i]);
    }
    return is_left;
}

/* A kernel that does not take the layout that was drawn is given dense tensors. */
static void test_case(check_run *run, tally *tallies) {
    static const check_layout layouts[] = {CHECK_DENSE, CHECK_PERMUTED, CHECK_GAPS};
    int64_t kind = run->number % 4; /* the fourth: a layout for each operand */
    bool mixed = kind == 3, has_oracle = false;
    check_run_place(run, mixed ? CHECK_DENSE : layouts[kind], mixed);
    if (!test_applicable(run, tallies, &has_oracle)) return;
    check_run_place(run, CHECK_DENSE, false);
    test_applicable(run, tallies, &has_oracle);
}

/* Which kernels the next case, the n-th, is for. False: for none. */
static bool set_waiting(const check_options *options, const an_op *op, tally *tallies, int64_t shapes, int64_t n) {
    const an_kernel *kernels = check_kernels(options, op);
    bool any = false;
    for (int i = 0; kernels[i].name; i++) {
        tally *t = &tallies[i];
        bool is_enough = t->checked >= shapes || t->failures >= MOST_FAILURES;
        bool is_never = t->checked == 0 && n >= shapes * NEVER;
        t->waits = check_wants_kernel(options, &kernels[i]) && !is_enough && !is_never;
        any = any || t->waits;
    }
    return any;
}

static void test_dtype(const check_options *options, const check_family *family, const an_op *op, an_dtype dtype,
                       bool *applied) {
    const an_kernel *kernels = check_kernels(options, op);
    tally tallies[MOST_KERNELS] = {0};
    int64_t shapes = options->only >= 0 ? 1 : options->shapes ? options->shapes : SHAPES;
    check_run *run = check_allocate(1, sizeof *run);
    for (int64_t n = 0; n < shapes * DRAWS && set_waiting(options, op, tallies, shapes, n); n++) {
        const char *why;
        int64_t number = options->only >= 0 ? options->only : n;
        bool good = check_run_create(run, options, family, dtype, number, 0, &why);
        if (!good)
            check_fail(run, NULL, "the op refuses the case: %s", why);
        else if (check_run_elements(run) > CHECK_MAX_ELEMENTS)
            check_fail(run, NULL, "the case has %lld elements, more than a test needs",
                       (long long)check_run_elements(run));
        else
            test_case(run, tallies);
        check_run_destroy(run);
        if (!good || options->only >= 0) break;
    }
    for (int i = 0; kernels[i].name; i++) {
        if (tallies[i].checked) applied[i] = true;
        int64_t minimum = shapes < ENOUGH ? shapes : ENOUGH;
        if (tallies[i].checked && tallies[i].checked < minimum && !tallies[i].failures)
            check_fail_plain("%s %s %s: applies to only %lld of %lld random cases", op->name, kernels[i].name,
                             an_dtype_name(dtype), (long long)tallies[i].checked, (long long)shapes * DRAWS);
    }
    free(run);
}

void check_test(const check_options *options, const check_family *family, const an_op *op) {
    const an_kernel *kernels = check_kernels(options, op);
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16, AN_DTYPE_F16};
    bool applied[MOST_KERNELS] = {0};
    int count = 0;
    while (kernels[count].name) count++;
    if (count > MOST_KERNELS) {
        check_fail_plain("%s has %d kernels, checkops has room for %d", op->name, count, MOST_KERNELS);
        return;
    }
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (check_wants_dtype(options, family, dtypes[i])) test_dtype(options, family, op, dtypes[i], applied);
    for (int i = 0; i < count; i++) /* asked of a whole test only: one case or dtype may be none of its own */
        if (!applied[i] && options->only < 0 && !options->dtypes && check_wants_kernel(options, &kernels[i]))
            check_fail_plain("%s %s: applies to no random case of any dtype", op->name, kernels[i].name);
}
