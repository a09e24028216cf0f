/* Tokens a second of a model of the size of SmolLM2-135M, and the limit that the memory's bandwidth sets: bytes of
 * weights and cache ÷ bytes a second that as many threads read. Both are measured in turns, because other work on the
 * machine slows both. The weights are zeros: their values do not change the time.
 *
 *     generate [precision] [threads] [batch] [position] [rounds] [tokens] [profile]
 *
 * The precision is f32, bf16, q8_0, which is f32 with matrices of q8_0, or q8_0-bf16, which is bf16 with them.
 * `tokens` are how many of each sequence are computed at once: 1, or those of a prompt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "anneal/models.h"
#include "base/parallel.h"
#include "base/system/clock.h"
#include "base/system/large_pages.h"
#include "exec/program.h"
#include "pass/decoding.h"
#include "pass/frozen.h"

enum { LAYERS = 30, HEADS = 9, KV_HEADS = 3, WIDTH = 576, HIDDEN = 1536, VOCABULARY = 49152, CONTEXT = 1024 };
enum { READ_BYTES = 512 << 20, PART_BYTES = 1 << 20, RUNS = 16, MOST_ROWS = 1024 };

static void check(an_context *ctx, an_status status) {
    if (status == AN_OK) return;
    fprintf(stderr, "%s\n", an_last_error(ctx));
    exit(1);
}

/* On one thread, the processor's time: other work on the machine does not count then, but for what it takes
 * of the memory's bandwidth. */
static bool on_one_thread;
static double now(void) {
    struct timespec t;
    if (!on_one_thread) return an_clock_seconds();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *memory;
static volatile long long sums[READ_BYTES / PART_BYTES];

static void read_task(void *user, int64_t index, int thread) {
    const long long *part = (const long long *)(const void *)(memory + index * PART_BYTES);
    long long a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    (void)user, (void)thread;
    for (size_t i = 0; i < PART_BYTES / sizeof a; i += 8) {
        a += part[i], b += part[i + 1], c += part[i + 2], d += part[i + 3];
        e += part[i + 4], f += part[i + 5], g += part[i + 6], h += part[i + 7];
    }
    sums[index] = a + b + c + d + e + f + g + h;
}

/* Bytes a second. */
static double read_memory(an_context *ctx) {
    const double begin = now();
    an_parallel(ctx, READ_BYTES / PART_BYTES, read_task, NULL);
    return READ_BYTES / (now() - begin);
}

static void set(an_context *ctx, an_program *p, const char *name, int ndims, int64_t rows, int64_t tokens,
                int32_t *numbers) {
    an_array array = {.data = numbers, .dtype = AN_DTYPE_I32, .ndims = ndims, .dims = {rows, tokens}};
    check(ctx, an_program_set_input(p, name, &array));
}

static int by_number(const void *a, const void *b) {
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static void print_profile(const an_program *p) {
    struct {
        const char *op, *kernel;
        double seconds;
        int64_t runs;
    } ops[64];
    int count = 0;
    for (int64_t i = 0; i < an_program_profile_count(p, AN_FORM_PREDICT); i++) {
        an_profile_entry e;
        an_profile_entry_init(&e, sizeof e);
        if (an_program_profile_entry(p, AN_FORM_PREDICT, i, &e) != AN_OK) continue;
        int at = 0;
        while (at < count && (strcmp(ops[at].op, e.op) != 0 || strcmp(ops[at].kernel, e.kernel) != 0)) at++;
        if (at == count) {
            ops[count].op = e.op, ops[count].kernel = e.kernel, ops[count].seconds = 0, ops[count].runs = 0;
            count++;
        }
        ops[at].seconds += e.seconds;
        ops[at].runs += e.runs;
    }
    for (int i = 0; i < count; i++)
        printf("  %-20s %-10s %6lld runs %8.3f ms each\n", ops[i].op, ops[i].kernel, (long long)ops[i].runs,
               1e3 * ops[i].seconds / (double)ops[i].runs);
}

static int argument(int argc, char **argv, int index, int usual) {
    return argc > index ? (int)strtol(argv[index], NULL, 10) : usual;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "bf16";
    const bool has_blocks = !strncmp(name, "q8_0", 4);
    const an_dtype precision = !strcmp(name, "f32") || !strcmp(name, "q8_0") ? AN_DTYPE_NONE : AN_DTYPE_BF16;
    const int threads = argument(argc, argv, 2, 2), batch = argument(argc, argv, 3, 1);
    const int position = argument(argc, argv, 4, 128), rounds = argument(argc, argv, 5, 5);
    const int count = argument(argc, argv, 6, 1), runs = count > 1 ? 1 : RUNS;
    on_one_thread = threads == 1;
    an_context *ctx = NULL;
    an_graph *graph = NULL;
    an_params *params = NULL;
    an_plan *plan = NULL;
    an_program *program = NULL;
    an_decoding facts;
    an_context_options context;
    an_llama_options o;
    an_params_options stored;
    an_plan_options planned;
    an_context_options_init(&context, sizeof context);
    context.threads = threads;
    if (an_context_create(&ctx, &context) != AN_OK || batch * count > MOST_ROWS) return 1;
    an_llama_options_init(&o, sizeof o);
    o.layers = LAYERS, o.heads = HEADS, o.kv_heads = KV_HEADS, o.width = WIDTH, o.hidden = HIDDEN;
    o.context = CONTEXT, o.vocabulary = VOCABULARY, o.tied = true;
    check(ctx, an_model_llama(&graph, ctx, &o));
    const an_decoding_options decoding = {.slots = batch, .context = CONTEXT, .cache = precision};
    check(ctx, an_graph_make_decoding(graph, &decoding, &facts));
    if (has_blocks) check(ctx, an_graph_freeze(graph, AN_DTYPE_Q8_0));
    if (has_blocks) check(ctx, an_graph_round_products(graph));
    an_params_options_init(&stored, sizeof stored);
    stored.gradients = false;
    check(ctx, an_params_create(&params, ctx, graph, &stored));
    an_plan_options_init(&planned, sizeof planned);
    planned.symbols = (const char *[]){"batch", "tokens"};
    planned.maxima = (const int64_t[]){batch, count};
    planned.symbol_count = 2;
    planned.moments = 0;
    planned.precision = precision;
    planned.programs = AN_PROGRAM_PREDICTION;
    check(ctx, an_plan_create(&plan, ctx, graph, &planned));
    check(ctx, an_program_create(&program, plan, params));
    check(ctx, an_program_bind(program, "batch", batch));
    check(ctx, an_program_bind(program, "tokens", count));
    char *block = aligned_alloc(64, READ_BYTES);
    if (!block) return 1;
    an_prefer_large_pages(block, READ_BYTES); /* as weights have them */
    memset(block, 1, READ_BYTES);
    memory = block;

    const double element = precision == AN_DTYPE_NONE ? 4 : 2;
    const double weights = (double)plan->sizes.trainable_elements * element +
                           (double)plan->sizes.frozen_bytes; /* each is read once; the embedding is the head */
    int32_t tokens[MOST_ROWS], positions[MOST_ROWS], slots[MOST_ROWS];
    for (int i = 0; i < batch * count; i++) tokens[i] = i, slots[i] = i;
    double speeds[64], limits[64], parts[64];
    for (int r = 0; r <= rounds && r < 64; r++) {
        const double bandwidth = read_memory(ctx), begin = now();
        if (r == 1) an_program_profile(program, argc > 7);
        for (int t = 0; t < runs; t++) {
            for (int i = 0; i < batch * count; i++) positions[i] = position + t + i % count;
            set(ctx, program, "tokens", 2, batch, count, tokens);
            set(ctx, program, AN_DECODING_POSITIONS, 2, batch, count, positions);
            set(ctx, program, AN_DECODING_SLOTS, 1, batch, 1, slots);
            check(ctx, an_program_run(program, AN_FORM_PREDICT));
        }
        const double seconds = (now() - begin) / runs;
        const int64_t cached =
            (int64_t)batch * LAYERS * 2 * KV_HEADS * (WIDTH / HEADS) * (position + (count > 1 ? count : RUNS) / 2);
        const double cache = (double)cached * element;
        if (r == 0) continue;
        speeds[r - 1] = batch * count / seconds;
        limits[r - 1] = batch * count * bandwidth / (weights + cache);
        parts[r - 1] = speeds[r - 1] / limits[r - 1];
    }
    qsort(speeds, (size_t)rounds, sizeof *speeds, by_number);
    qsort(limits, (size_t)rounds, sizeof *limits, by_number);
    qsort(parts, (size_t)rounds, sizeof *parts, by_number);
    printf("%s, %d threads, batch %d, position %d, %d at once: %.1f tokens/s, limit by bandwidth %.1f, ratio %.2f "
           "(medians of %d)\n",
           name, threads, batch, position, count, speeds[rounds / 2], limits[rounds / 2], parts[rounds / 2], rounds);
    if (argc > 7) print_profile(program);
    free(block);
    an_program_destroy(&program);
    an_plan_destroy(&plan);
    an_params_destroy(&params);
    an_graph_destroy(&graph);
    an_context_destroy(&ctx);
    return 0;
}
