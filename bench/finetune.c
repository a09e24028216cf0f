/* Fine-tuning of a language model on the windows that torch_lora.py takes, in its order.
 *
 *     finetune CONFIG TOKENS STEPS THREADS [KEY=VALUE]...
 *
 * TOKENS is what `anneal tokenize` wrote: its first token of a window of T + 1 tokens is k · T, and step s takes
 * windows ((4 · s + i) · 7919) mod W for i = 0 to 3. Evaluations are those of the config. Prints a line for each step,
 * the validation loss before and after, tokens a second by the median of the steps, and the peak of memory.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <anneal/open.h>

enum { CONTEXT = 256, BATCH = 4, STRIDE = 7919, HEADER = 1024, MOST_STEPS = 10000 };

typedef struct {
    an_context *ctx;
    an_config *config;
    an_trainer *trainer;
    uint16_t *tokens;
    int64_t count;
    double seconds[MOST_STEPS];
} tuning;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Without the token behind the last document, which torch_lora.py does not have. */
static int read_tokens(tuning *t, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) return -1;
    t->count = (ftell(file) - HEADER) / (int64_t)sizeof *t->tokens - 1;
    t->tokens = t->count > CONTEXT ? malloc((size_t)t->count * sizeof *t->tokens) : NULL;
    const int failed = !t->tokens || fseek(file, HEADER, SEEK_SET) ||
                       fread(t->tokens, sizeof *t->tokens, (size_t)t->count, file) != (size_t)t->count;
    fclose(file);
    return failed ? -1 : 0;
}

static an_status evaluate(const tuning *t, const char *when) {
    an_evaluation e;
    an_evaluation_init(&e, sizeof e);
    const an_status status = an_trainer_evaluate(t->trainer, &e);
    if (status == AN_OK) printf("%s %.6f\n", when, e.loss);
    return status;
}

static an_array array_of(int32_t numbers[BATCH][CONTEXT]) {
    return (an_array){
        .data = numbers, .dtype = AN_DTYPE_I32, .ndims = 2, .dims = {BATCH, CONTEXT}, .strides = {CONTEXT, 1}};
}

static an_status step(tuning *t, int64_t number) {
    static int32_t inputs[BATCH][CONTEXT], targets[BATCH][CONTEXT];
    const int64_t windows = (t->count - 1) / CONTEXT;
    for (int64_t i = 0; i < BATCH; i++) {
        const uint16_t *window = t->tokens + (BATCH * number + i) * STRIDE % windows * CONTEXT;
        for (int64_t k = 0; k < CONTEXT; k++) {
            inputs[i][k] = window[k];
            targets[i][k] = window[k + 1];
        }
    }
    an_step_metrics m;
    an_step_metrics_init(&m, sizeof m);
    const an_array x = array_of(inputs), y = array_of(targets);
    const double begin = now();
    const an_status status = an_trainer_step_on(t->trainer, BATCH, &x, &y, &m);
    t->seconds[number] = now() - begin;
    if (status == AN_OK) printf("step %lld loss %.5f norm %.4f\n", (long long)number + 1, m.loss, m.norm);
    fflush(stdout);
    return status;
}

static an_status open_all(tuning *t, int argc, char **argv) {
    an_context_options options;
    an_config_options config_options;
    an_open_options anew;
    an_context_options_init(&options, sizeof options);
    an_config_options_init(&config_options, sizeof config_options);
    an_open_options_init(&anew, sizeof anew);
    anew.fresh = true;
    options.threads = (int)strtol(argv[4], NULL, 10);
    config_options.file = argv[1];
    config_options.sets = (const char *const *)argv + 5;
    config_options.set_count = argc - 5;
    an_status status = an_context_create(&t->ctx, &options);
    if (status == AN_OK) status = an_config_create(&t->config, t->ctx, &config_options);
    return status == AN_OK ? an_trainer_open_config(&t->trainer, t->ctx, t->config, &anew) : status;
}

int main(int argc, char **argv) {
    static tuning t;
    const long steps = argc < 5 ? 0 : strtol(argv[3], NULL, 10);
    if (steps < 1 || steps > MOST_STEPS) {
        fprintf(stderr, "usage: finetune CONFIG TOKENS STEPS THREADS [KEY=VALUE]...\n");
        return 2;
    }
    if (read_tokens(&t, argv[2])) {
        fprintf(stderr, "finetune: %s cannot be read, or has too few tokens\n", argv[2]);
        return 1;
    }
    an_status status = open_all(&t, argc, argv);
    if (status == AN_OK) status = evaluate(&t, "before");
    for (int64_t s = 0; s < steps && status == AN_OK; s++) status = step(&t, s);
    if (status == AN_OK) status = evaluate(&t, "after");
    if (status == AN_OK) {
        struct rusage usage;
        qsort(t.seconds, (size_t)steps, sizeof *t.seconds, compare);
        getrusage(RUSAGE_SELF, &usage);
        printf("tokens/s %.1f peak MB %ld\n", BATCH * CONTEXT / t.seconds[steps / 2], usage.ru_maxrss / 1024);
    }
    if (status != AN_OK) fprintf(stderr, "finetune: %s: %s\n", an_status_name(status), an_last_error(t.ctx));
    an_trainer_destroy(&t.trainer);
    an_config_destroy(&t.config);
    an_context_destroy(&t.ctx);
    free(t.tokens);
    return status == AN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
