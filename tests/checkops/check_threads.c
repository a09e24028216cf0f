/* --mode=threads: the same bits on any number of threads, also when the caller has set flush-to-zero, and the caller's
 * floating-point environment as it was.
 *
 * Small cases run in one task, so most random cases here are enlarged until they are cut into many. Nodes of real
 * models come after them: a library may cut work of one size by threads and that of another size not.
 */
#include "checkops/nodes.h"

#include <stdlib.h>
#include <string.h>

enum {
    SMALL = 2, /* ordinary cases of a dtype */
    LARGE = 3, /* enlarged ones; --shapes changes it */
    MOST_LARGE = 64,
    MOST_CHOSEN = 16,         /* cases that were looked for because a kernel takes none of the others */
    DRAWS = 400,              /* ordinary cases that are looked at for that */
    LEAST_ELEMENTS = 5 << 14, /* of a large case: several tasks, also where a task is coarse */
    MOST_ELEMENTS = 1 << 17
};
static const double most_flops = 1e7; /* of a large case, so that it runs in milliseconds */

static const int thread_counts[] = {1, 2, 3, 4, 8, 16, 32, 64, 128};
static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16};
enum { COUNTS = sizeof thread_counts / sizeof thread_counts[0], DTYPES = sizeof dtypes / sizeof dtypes[0] };

typedef struct {
    check_run run;
    unsigned char *bits[AN_MAX_OUTPUTS]; /* of the outputs with one thread, for the kernel at hand */
    bool is_bad;                         /* not for this kernel, or it failed: more threads would only repeat it */
} threads_case;

static bool prepare(threads_case *c, const check_options *options, const check_family *family, an_dtype dtype,
                    int64_t number) {
    const char *why;
    if (check_run_create(&c->run, options, family, dtype, number, CHECK_DENORMALS, &why)) {
        check_run_place(&c->run, CHECK_DENSE, number % 2 == 1);
        return true;
    }
    check_fail(&c->run, NULL, "the op refuses the case: %s", why);
    check_run_destroy(&c->run);
    return false;
}

static void keep_bits(threads_case *c) {
    for (int i = 0; i < c->run.dst_count; i++) {
        const check_operand *dst = &c->run.dst[i];
        if (!c->bits[i]) c->bits[i] = check_allocate(dst->bytes, 1);
        memcpy(c->bits[i], dst->memory, dst->bytes);
    }
}

static void run_case(threads_case *c, const an_kernel *kernel, an_context *ctx, bool flush) {
    int threads = an_context_threads(ctx);
    const char *wrong = check_run_call(&c->run, kernel, ctx, -1, flush ? CHECK_FLUSHED : 0);
    if (!wrong && threads == 1 && !flush) keep_bits(c);
    for (int i = 0; i < c->run.dst_count && !wrong; i++)
        if (memcmp(c->bits[i], c->run.dst[i].memory, c->run.dst[i].bytes) != 0) wrong = "other bits than with 1 thread";
    check_count();
    c->is_bad = wrong;
    if (wrong)
        check_fail(&c->run, kernel->name, "%d thread%s%s: %s", threads, threads > 1 ? "s" : "",
                   flush ? ", flush-to-zero" : "", wrong);
}

/* A kernel that does not take the layout of a case is given it permuted. */
static bool place_for(threads_case *c, const an_kernel *kernel) {
    if (check_applies(&c->run, kernel)) return true;
    for (int i = 0; i < c->run.dst_count; i++) { /* the next are of another size */
        free(c->bits[i]);
        c->bits[i] = NULL;
    }
    check_run_place(&c->run, CHECK_PERMUTED, false);
    return check_applies(&c->run, kernel);
}

/* How many of the thread counts are wanted. */
static int count_of(const check_options *options) {
    int count = 0;
    while (count < COUNTS && (!options->most_threads || thread_counts[count] <= options->most_threads)) count++;
    return count;
}

static an_context *context_of(const check_options *options, int threads) {
    an_context_options context;
    an_context_options_init(&context, sizeof context);
    an_context *ctx = NULL;
    context.threads = threads;
    context.isa = options->isa;
    if (an_context_create(&ctx, &context) != AN_OK)
        check_fail_plain("no context of %d threads: %s", threads, an_last_error(NULL));
    return ctx;
}

static void run_kernel(threads_case *cases, int count, const an_kernel *kernel) {
    bool left = count > 0;
    for (int i = 0; i < count; i++) {
        cases[i].is_bad = !place_for(&cases[i], kernel);
        left = left && cases[i].is_bad;
        if (cases[i].run.options->only >= 0 || cases[i].run.options->dtypes) left = false; /* may be none of its own */
    }
    if (left) check_fail_plain("%s %s: applies to no case", cases[0].run.op->name, kernel->name);
    for (int t = 0; count > 0 && t < count_of(cases[0].run.options);
         t++) { /* outermost: a team of threads is made once */
        an_context *ctx = context_of(cases[0].run.options, thread_counts[t]);
        if (!ctx) return;
        for (int i = 0; i < 2 * count; i++)
            if (!cases[i / 2].is_bad) run_case(&cases[i / 2], kernel, ctx, i % 2);
        an_context_destroy(&ctx);
    }
}

/* ---- nodes of real models ---- */

static const char *run_node(node_case *c, const an_kernel *kernel, an_context *ctx, unsigned char **bits) {
    node_call *call = &c->whole;
    const int src_count = call->at.call.src_count;
    const char *wrong = node_run(c, call, kernel, ctx, call);
    for (int i = 0; i < call->at.call.dst_count && !wrong; i++) {
        const size_t bytes = call->bytes[src_count + i];
        if (!bits[i]) {
            bits[i] = check_allocate(bytes, 1);
            memcpy(bits[i], call->memory[src_count + i], bytes);
        } else if (memcmp(bits[i], call->memory[src_count + i], bytes) != 0) {
            wrong = "other bits than with 1 thread";
        }
    }
    return wrong;
}

static void check_node(node_case *c, const an_kernel *kernel) {
    unsigned char *bits[AN_MAX_OUTPUTS] = {NULL}; /* of one thread */
    const char *wrong = NULL;
    for (int t = 0; t < count_of(c->options) && !wrong; t++) {
        an_context *ctx = context_of(c->options, thread_counts[t]);
        if (!ctx) break;
        wrong = run_node(c, kernel, ctx, bits);
        if (wrong) node_fail(c, kernel, "%d threads: %s", thread_counts[t], wrong);
        an_context_destroy(&ctx);
    }
    for (int i = 0; i < AN_MAX_OUTPUTS; i++) free(bits[i]);
}

static void visit_node(node_case *c) {
    for (const an_kernel *kernel = check_kernels(c->options, c->node->op); kernel->name; kernel++)
        if (check_wants_kernel(c->options, kernel) && node_call_applies(&c->whole, kernel, c->graph->ctx))
            check_node(c, kernel);
}

/* ---- all of it ---- */

static bool takes(const check_options *options, const check_family *family, const an_kernel *kernel, int64_t number) {
    check_run *run = check_allocate(1, sizeof *run);
    bool found = false;
    for (int d = 0; d < DTYPES && !found; d++) {
        const char *why;
        if (!check_wants_dtype(options, family, dtypes[d])) continue;
        found = check_run_create(run, options, family, dtypes[d], number, CHECK_SHAPES_ONLY, &why) &&
                check_applies(run, kernel);
        check_run_destroy(run);
    }
    free(run);
    return found;
}

/* An ordinary case for every kernel that takes none of the first ones. */
static int choose_more(const check_options *options, const check_family *family, const an_kernel *kernels,
                       int64_t *numbers) {
    int count = 0;
    for (int i = 0; kernels[i].name && count < MOST_CHOSEN; i++) {
        int64_t number = 0;
        while (number < DRAWS && !takes(options, family, &kernels[i], number)) number++;
        if (number >= SMALL && number < DRAWS) numbers[count++] = number;
    }
    return count;
}

static void check_random_cases(const check_options *options, const check_family *family, const an_op *op) {
    const an_kernel *kernels = check_kernels(options, op);
    int64_t numbers[SMALL + MOST_CHOSEN + MOST_LARGE];
    int wanted = 0, count = 0, large = options->shapes < 1 ? LARGE : (int)options->shapes;
    if (large > MOST_LARGE) large = MOST_LARGE;
    if (options->only >= 0) {
        numbers[wanted++] = options->only;
    } else {
        while (wanted < SMALL) {
            numbers[wanted] = wanted;
            wanted++;
        }
        wanted += choose_more(options, family, kernels, numbers + wanted);
        wanted += check_find_large(options, family, LEAST_ELEMENTS, MOST_ELEMENTS, most_flops, large, numbers + wanted);
    }
    threads_case *cases = check_allocate((size_t)DTYPES * (size_t)wanted, sizeof *cases);
    for (int d = 0; d < DTYPES; d++)
        for (int i = 0; i < wanted && check_wants_dtype(options, family, dtypes[d]); i++)
            count += prepare(&cases[count], options, family, dtypes[d], numbers[i]);
    for (int i = 0; kernels[i].name; i++)
        if (check_wants_kernel(options, &kernels[i])) run_kernel(cases, count, &kernels[i]);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < cases[i].run.dst_count; k++) free(cases[i].bits[k]);
        check_run_destroy(&cases[i].run);
    }
    free(cases);
}

void check_threads(const check_options *options, const check_family *family, const an_op *op) {
    if (!options->model) check_random_cases(options, family, op);
    if (options->only < 0) nodes_visit(options, op, false, visit_node);
}
