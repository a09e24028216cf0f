/* The exact reduction against MPI_Allreduce of the same bytes, in one process: each has its turn in every round.
 *
 *     mpirun -n 2 reduce-openmpi [--mib 4,16,64,256] [--rounds 30] [--bucket BYTES] [--in-flight N]
 *     [--without-window]
 *
 * Prints one line of JSON for each size, and "end": milliseconds of each (median over the rounds of the slowest
 * rank), the median of the ratios within a round, and the ratio of the fastest rounds, which means something on a
 * busy machine too. It looks inside the library, as a reduction is no public call. The sums of both are
 * compared with what they must be. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <anneal/mpi.h>
#include <anneal/plan.h>

#include "comm/reduce.h"

enum { ALL_REDUCE, MESSAGES, WINDOW, CONTENDERS, MOST_ROUNDS = 1000, MOST_SIZES = 16 };
static const char *const names[CONTENDERS] = {"all_reduce", "messages", "window"};

typedef struct {
    int rounds, sizes;
    int64_t mib[MOST_SIZES];
    size_t bucket;
    int in_flight;
    bool has_window;
} arguments;

typedef struct {
    an_context *ctx;
    int ranks, rank;
    size_t count; /* elements */
    float *flat[CONTENDERS];
    an_reduction *reductions[CONTENDERS];
    double seconds[CONTENDERS][MOST_ROUNDS];
} race;

static void check(an_context *ctx, an_status status) {
    if (status == AN_OK) return;
    fprintf(stderr, "reduce: %s\n", an_last_error(ctx));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(const double *values, int count) {
    double sorted[MOST_ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    return sorted[count / 2];
}

static double fastest(const double *values, int count) {
    double minimum = values[0];
    for (int i = 1; i < count; i++) minimum = values[i] < minimum ? values[i] : minimum;
    return minimum;
}

/* Small whole numbers: their sums are exact, in any order. */
static float number_of(const race *r, size_t i, int rank) {
    (void)r;
    return (float)((i * 7 + (size_t)rank * 13) % 1009);
}

static void prepare(race *r, int contender) {
    for (size_t i = 0; i < r->count; i++) r->flat[contender][i] = number_of(r, i, r->rank);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void run(race *r, int contender) {
    if (contender == ALL_REDUCE) {
        MPI_Allreduce(MPI_IN_PLACE, r->flat[contender], (int)r->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        return;
    }
    void *node = r->flat[contender];
    check(r->ctx, an_reduction_start(r->reductions[contender], 0, &node, node));
    check(r->ctx, an_reduction_finish(r->reductions[contender]));
}

static void verify(const race *r, int contender) {
    for (size_t i = 0; i < r->count; i++) {
        float expected = 0;
        for (int rank = 0; rank < r->ranks; rank++) expected += number_of(r, i, rank);
        if (r->flat[contender][i] == expected) continue;
        fprintf(stderr, "reduce: %s: element %zu is %g, not %g\n", names[contender], i, (double)r->flat[contender][i],
                (double)expected);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void create(race *r, int contender, const arguments *a) {
    const int64_t pages = (int64_t)(r->count / AN_PAGE);
    const an_reduction_unit unit = {.pages = {0, pages}, .name = "everything"};
    const an_reduction_options options = {.borders = {AN_BORDERS_SUBTREE, r->ranks, r->ranks},
                                          .dtype = AN_DTYPE_F32,
                                          .pages = pages,
                                          .units = &unit,
                                          .unit_count = 1,
                                          .buffers = 1,
                                          .uses_window = contender == WINDOW,
                                          .bucket_bytes = a->bucket,
                                          .in_flight = a->in_flight};
    check(r->ctx, an_reduction_create(&r->reductions[contender], r->ctx, an_axis_comm(r->ctx, AN_AXIS_DATA), &options));
    r->flat[contender] = an_reduction_buffer(r->reductions[contender], 0);
}

static void race_once(race *r, const arguments *a) {
    const int contenders = a->has_window ? CONTENDERS : WINDOW;
    double ratios[MOST_ROUNDS];
    for (int round = -2; round < a->rounds; round++) /* two to warm up */
        for (int contender = 0; contender < contenders; contender++) {
            prepare(r, contender);
            const double begin = MPI_Wtime();
            run(r, contender);
            const double mine = MPI_Wtime() - begin;
            double slowest;
            MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (round >= 0) r->seconds[contender][round] = slowest;
            if (round < 0) verify(r, contender);
        }
    if (r->rank > 0) return;
    printf("{\"mib\": %.0f, \"ranks\": %d", (double)r->count * sizeof(float) / (1 << 20), r->ranks);
    for (int contender = 0; contender < contenders; contender++)
        printf(", \"%s_ms\": %.3f", names[contender], 1e3 * median(r->seconds[contender], a->rounds));
    for (int contender = 0; contender < contenders; contender++)
        printf(", \"%s_fastest_ms\": %.3f", names[contender], 1e3 * fastest(r->seconds[contender], a->rounds));
    for (int contender = 1; contender < contenders; contender++) {
        for (int i = 0; i < a->rounds; i++) ratios[i] = r->seconds[contender][i] / r->seconds[ALL_REDUCE][i];
        printf(", \"%s\": %.3f, \"%s_fastest\": %.3f", names[contender], median(ratios, a->rounds), names[contender],
               fastest(r->seconds[contender], a->rounds) / fastest(r->seconds[ALL_REDUCE], a->rounds));
    }
    printf("}\n");
    fflush(stdout);
}

static arguments read_arguments(int count, char **texts) {
    arguments a = {.rounds = 30, .sizes = 4, .mib = {4, 16, 64, 256}, .has_window = true};
    for (int i = 1; i < count; i++) {
        const char *value = i + 1 < count ? texts[i + 1] : "";
        if (!strcmp(texts[i], "--without-window")) {
            a.has_window = false;
            continue;
        }
        if (!strcmp(texts[i], "--rounds")) a.rounds = (int)strtol(value, NULL, 10);
        if (!strcmp(texts[i], "--bucket")) a.bucket = (size_t)strtoull(value, NULL, 10);
        if (!strcmp(texts[i], "--in-flight")) a.in_flight = (int)strtol(value, NULL, 10);
        if (!strcmp(texts[i], "--mib")) {
            char *end = texts[i + 1];
            for (a.sizes = 0; *end && a.sizes < MOST_SIZES; end += *end == ',')
                a.mib[a.sizes++] = strtoll(end, &end, 10);
        }
        i++;
    }
    if (a.rounds < 1 || a.rounds > MOST_ROUNDS) a.rounds = MOST_ROUNDS;
    return a;
}

int main(int count, char **texts) {
    static race r;
    MPI_Init(&count, &texts);
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
    const arguments a = read_arguments(count, texts);
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = 1;
    check(NULL, an_context_create_mpi(&r.ctx, MPI_COMM_WORLD, &options));
    for (int i = 0; i < a.sizes; i++) {
        r.count = (size_t)a.mib[i] * (1 << 20) / sizeof(float);
        r.flat[ALL_REDUCE] = aligned_alloc(4096, r.count * sizeof(float));
        if (!r.flat[ALL_REDUCE]) MPI_Abort(MPI_COMM_WORLD, 1);
        create(&r, MESSAGES, &a);
        if (a.has_window) create(&r, WINDOW, &a);
        if (a.has_window && an_reduction_host_ranks(r.reductions[WINDOW]) == 1 && r.rank == 0)
            fprintf(stderr, "reduce: these ranks share no memory, so the window is messages\n");
        race_once(&r, &a);
        for (int contender = 1; contender < CONTENDERS; contender++) an_reduction_destroy(&r.reductions[contender]);
        free(r.flat[ALL_REDUCE]);
    }
    if (r.rank == 0) printf("end\n");
    fflush(stdout);
    an_context_destroy(&r.ctx);
    MPI_Finalize();
    return 0;
}
