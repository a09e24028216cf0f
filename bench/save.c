/* What saving costs a run: a save every 20 steps, so that ten steps with a save behind them take turns with ten
 * without.
 *
 *     save CONFIG THREADS [KEY=VALUE]...
 *
 * Prints one line of JSON: bytes of a checkpoint; medians over the saves of the seconds that the copy, the whole save
 * and its CPU took; medians of ten steps with a save (without the copy) and without; what memcpy takes for as many
 * bytes; what loading one takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <anneal/checkpoint.h>
#include <anneal/open.h>
#include <anneal/run.h>

enum { SEGMENT = 10, MOST = 64, ROUNDS = 5 };

typedef struct {
    int count;
    double values[MOST];
} series;

typedef struct {
    double last; /* when the last segment ended */
    series with, without, copies, saves, work, waits;
    int64_t bytes;
    char path[4096];
} watching;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void add(series *s, double value) {
    if (s->count < MOST) s->values[s->count++] = value;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(series *s) {
    if (s->count == 0) return 0;
    qsort(s->values, (size_t)s->count, sizeof *s->values, compare);
    return s->values[s->count / 2];
}

/* The first segment has nothing behind it and is left out: it warms up. */
static an_status after_step(void *user, an_trainer *trainer) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    if (an_trainer_step_metrics(trainer, &metrics) != AN_OK) return AN_ERR_STATE;
    watching *w = user;
    if (metrics.step % SEGMENT) return AN_OK;
    const double time = now(), took = time - w->last;
    const int64_t segment = metrics.step / SEGMENT;
    w->last = time;
    if (segment > 2) add(segment % 2 ? &w->with : &w->without, took);
    return AN_OK;
}

static an_status after_save(void *user, an_trainer *trainer) {
    an_save_report report;
    an_save_report_init(&report, sizeof report);
    if (an_trainer_save_report(trainer, &report) != AN_OK) return AN_ERR_STATE;
    watching *w = user;
    if (report.error) {
        fprintf(stderr, "save: %s\n", report.error);
        return AN_ERR_FILE;
    }
    add(&w->copies, report.copy_seconds);
    add(&w->saves, report.seconds);
    add(&w->work, report.cpu_seconds);
    add(&w->waits, report.wait_seconds);
    w->bytes = report.bytes;
    snprintf(w->path, sizeof w->path, "%s", report.path);
    return AN_OK;
}

static double time_memcpy(size_t bytes) {
    series s = {0};
    char *from = malloc(bytes), *to = malloc(bytes);
    if (from && to) {
        memset(from, 1, bytes);
        memset(to, 2, bytes);
        for (int i = 0; i < ROUNDS; i++) {
            const double begin = now();
            memcpy(to, from, bytes);
            add(&s, now() - begin);
            from[i] = to[bytes - 1 - (size_t)i];
        }
    }
    free(from);
    free(to);
    return median(&s);
}

/* Into a trainer that is there: what is timed is reading, hashing and putting in place. */
static an_status time_load(an_context *ctx, an_config *config, const char *path, double *seconds) {
    an_open_options options;
    an_open_options_init(&options, sizeof options);
    series s = {0};
    an_status status = AN_OK;
    options.fresh = true;
    for (int i = 0; i < ROUNDS && status == AN_OK; i++) {
        an_trainer *trainer = NULL;
        status = an_trainer_open_config(&trainer, ctx, config, &options);
        const double begin = now();
        if (status == AN_OK) status = an_trainer_load(trainer, path);
        add(&s, now() - begin);
        an_trainer_destroy(&trainer);
    }
    *seconds = median(&s);
    return status;
}

int main(int argc, char **argv) {
    enum { CONFIG = 1, THREADS, SETTINGS };
    static watching w;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_config_options config_options;
    an_config_options_init(&config_options, sizeof config_options);
    an_run_options run;
    an_run_options_init(&run, sizeof run);
    an_context *ctx = NULL;
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    double load = 0;
    if (argc < SETTINGS) {
        fprintf(stderr, "usage: save CONFIG THREADS [KEY=VALUE]...\n");
        return 2;
    }
    options.threads = (int)strtol(argv[THREADS], NULL, 10);
    config_options.file = argv[CONFIG];
    config_options.sets = (const char *const *)argv + SETTINGS;
    config_options.set_count = argc - SETTINGS;
    an_status status = an_context_create(&ctx, &options);
    if (status == AN_OK) status = an_config_create(&config, ctx, &config_options);
    if (status == AN_OK) status = an_trainer_open_config(&trainer, ctx, config, NULL);
    if (status == AN_OK) status = an_trainer_run_options(trainer, &run);
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.after_step = after_step;
    callbacks.after_save = after_save;
    callbacks.user = &w;
    run.callbacks = &callbacks;
    w.last = now();
    if (status == AN_OK) status = an_trainer_run(trainer, &run, NULL);
    an_trainer_destroy(&trainer);
    if (status == AN_OK) status = time_load(ctx, config, w.path, &load);
    if (status != AN_OK) fprintf(stderr, "save: %s: %s\n", an_status_name(status), an_last_error(ctx));
    const double copy = median(&w.copies);
    if (status == AN_OK)
        printf("{\"bytes\": %lld, \"saves\": %d, \"copy\": %.6f, \"save\": %.6f, \"cpu\": %.6f, \"wait\": %.6f, "
               "\"with\": %.6f, \"without\": %.6f, \"memcpy\": %.6f, \"load\": %.6f, \"path\": \"%s\"}\n",
               (long long)w.bytes, w.saves.count, copy, median(&w.saves), median(&w.work), median(&w.waits),
               median(&w.with) - copy, median(&w.without), time_memcpy((size_t)w.bytes), load, w.path);
    an_config_destroy(&config);
    an_context_destroy(&ctx);
    return status == AN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
