/* data.normalize with fit: running, of a stream: the states are those of all samples so far, and have the bits of one
 * process on several ranks and from a checkpoint on other ranks. The ranks are threads. */
#include <math.h>

#include "anneal/checkpoint.h"
#include "anneal/graph.h"
#include "anneal/open.h"
#include "ranks/threads.h"

enum { STOP = 4, STEPS = 9, SAMPLES = 24, FEATURES = 3 };

static const char config[] =
    "run: {dir: run-%s, steps: 9, seed: 5}\nmodel: {type: mlp, inputs: 3, outputs: 1, hidden: [40, 30]}\n"
    "data: {train: {type: stream}, normalize: {inputs: standard, targets: range, fit: running}}\n"
    "batch: {global: 24, leaves: 8}\ntrain: {precision: %s}\nsave: {writers: 2, every: off}\nranks: {shard: %s}\n";

/* The samples move: later steps have other means, and a feature that was constant at first changes. */
static void fill(int64_t step, float x[SAMPLES][FEATURES], float y[SAMPLES]) {
    for (int i = 0; i < SAMPLES; i++) {
        const uint64_t number = (uint64_t)(step * SAMPLES + i);
        x[i][0] = 1e5f + (float)(100 * noise(number) + 30 * (double)step);
        x[i][1] = (float)(1e-3 * noise(number + 10000));
        x[i][2] = step < 2 ? 7 : (float)noise(number + 20000);
        y[i] = 50 + (float)noise(number) + (float)step;
    }
}

typedef struct {
    char name[64];
    int64_t stop;
    float mean[FEATURES], scale[FEATURES], minimum[FEATURES], maximum[FEATURES], target[2];
} leg;

static void get(one_rank *r, an_trainer *t, const char *name, int64_t count, float *values) {
    an_array array = {.data = values, .dtype = AN_DTYPE_F32, .ndims = 1, .dims = {count}};
    if (!*r->error) rank_failed(r, name, an_params_get(an_trainer_params(t), name, AN_PART_WEIGHT, &array));
}

static void train(one_rank *r) {
    leg *l = r->user;
    const int ranks = r->comm.ranks, rank = r->comm.rank, share = SAMPLES / ranks;
    an_trainer *t = NULL;
    float x[SAMPLES][FEATURES], y[SAMPLES];
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, l->name, NULL))) return;
    while (!*r->error && an_trainer_next_step(t) < l->stop) {
        fill(an_trainer_next_step(t), x, y);
        rank_failed(r, "step", an_trainer_step_on_f32(t, share, x[rank * share], &y[rank * share], NULL));
        if (!*r->error && an_trainer_next_step(t) == STOP) rank_failed(r, "save", an_trainer_save_over(t, STOP));
    }
    if (!*r->error) rank_failed(r, "hash", an_trainer_state_hash(t, r->hash));
    if (rank == 0) {
        get(r, t, "normalize.input.mean", FEATURES, l->mean);
        get(r, t, "normalize.input.scale", FEATURES, l->scale);
        get(r, t, "normalize.input.least", FEATURES, l->minimum);
        get(r, t, "normalize.input.most", FEATURES, l->maximum);
        get(r, t, "normalize.target.mean", 1, &l->target[0]);
        get(r, t, "normalize.target.scale", 1, &l->target[1]);
    }
    an_trainer_destroy(&t);
}

static void run_leg(leg *l, int count, char hash[HASH_TEXT]) {
    static one_rank ranks[MOST_RANKS];
    run_ranks_on(ranks, count, count > 2 ? count / 2 : 1, train, l, NULL);
    for (int i = 0; i < count; i++) {
        if (*ranks[i].error) fail_msg("%s, %d ranks: %s", l->name, count, ranks[i].error);
        assert_string_equal(ranks[i].hash, ranks[0].hash);
    }
    memcpy(hash, ranks[0].hash, HASH_TEXT);
}

static void write_config(leg *l, const char *name, const char *precision, const char *shard) {
    snprintf(l->name, sizeof l->name, "%s.yaml", name);
    FILE *file = fopen(l->name, "w");
    assert_non_null(file);
    fprintf(file, config, name, precision, shard);
    fclose(file);
}

static void check_near(double got, double expected, double maximum) {
    if (!(fabs(got - expected) <= maximum * fabs(expected))) fail_msg("%.9g, and not %.9g", got, expected);
}

/* The states after a number of steps are those of all their samples. */
static void check_states(const leg *l, int64_t steps) {
    float x[SAMPLES][FEATURES], y[SAMPLES];
    double mean[FEATURES] = {0}, squares[FEATURES] = {0}, minimum[FEATURES], maximum[FEATURES], low = INFINITY,
           high = -INFINITY;
    const double n = (double)(steps * SAMPLES);
    for (int f = 0; f < FEATURES; f++) minimum[f] = INFINITY, maximum[f] = -INFINITY;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t s = 0; s < steps; s++) {
            fill(s, x, y);
            for (int i = 0; i < SAMPLES; i++) {
                low = fmin(low, (double)y[i]), high = fmax(high, (double)y[i]);
                for (int f = 0; f < FEATURES; f++) {
                    const double v = (double)x[i][f];
                    if (pass == 0)
                        mean[f] += v / n;
                    else
                        squares[f] += (v - mean[f]) * (v - mean[f]);
                    minimum[f] = fmin(minimum[f], v), maximum[f] = fmax(maximum[f], v);
                }
            }
        }
    for (int f = 0; f < FEATURES; f++) {
        assert_true((double)l->minimum[f] == minimum[f] && (double)l->maximum[f] == maximum[f]);
        check_near((double)l->mean[f], mean[f], 1e-5);
        check_near((double)l->scale[f], minimum[f] < maximum[f] ? sqrt(squares[f] / n) : 1, 1e-4);
    }
    assert_true((double)l->target[0] == low);
    check_near((double)l->target[1], high - low, 1e-6);
}

static void test_states(void **state) {
    (void)state;
    char hash[HASH_TEXT];
    for (int64_t steps = 1; steps <= STEPS; steps += 2) { /* after one step, and while a feature is constant */
        leg l = {.stop = steps};
        char name[64];
        snprintf(name, sizeof name, "states-%d", (int)steps);
        write_config(&l, name, "f32", "none");
        run_leg(&l, 1, hash);
        check_states(&l, steps);
    }
}

static void test_one_hash(void **state) {
    (void)state;
    static const char *const precisions[] = {"f32", "bf16"};
    static const char *const shards[] = {"none", "optimizer"};
    static const int counts[] = {2, 4};
    for (int p = 0; p < 2; p++) {
        leg alone = {.stop = STEPS};
        char first[HASH_TEXT], hash[HASH_TEXT], name[64];
        snprintf(name, sizeof name, "alone-%d", p);
        write_config(&alone, name, precisions[p], "none");
        run_leg(&alone, 1, first);
        for (int s = 0; s < 2; s++)
            for (int c = 0; c < 2; c++) {
                leg l = {.stop = STOP};
                snprintf(name, sizeof name, "leg-%d-%d-%d", p, s, counts[c]);
                write_config(&l, name, precisions[p], shards[s]);
                run_leg(&l, counts[c], hash);
                l.stop = STEPS; /* goes on with others */
                run_leg(&l, counts[1 - c], hash);
                assert_string_equal(hash, first);
                check_states(&l, STEPS);
            }
    }
}

/* Where ranks divide gradients, the samples of a rank are those of leaves that are not neighbours: other sums, but
 * the same ones after a stop. */
static void test_divided_gradients(void **state) {
    (void)state;
    static const char *const shards[] = {"gradients", "full"};
    for (int s = 0; s < 2; s++) {
        leg whole = {.stop = STEPS}, l = {.stop = STOP};
        char first[HASH_TEXT], hash[HASH_TEXT], name[64];
        snprintf(name, sizeof name, "whole-%d", s);
        write_config(&whole, name, "f32", shards[s]);
        run_leg(&whole, 4, first);
        snprintf(name, sizeof name, "parts-%d", s);
        write_config(&l, name, "f32", shards[s]);
        run_leg(&l, 4, hash);
        l.stop = STEPS;
        run_leg(&l, 4, hash);
        assert_string_equal(hash, first);
        check_states(&l, STEPS);
    }
}

/* ---- what goes wrong ---- */

static void stumble(one_rank *r) {
    leg *l = r->user;
    const int ranks = r->comm.ranks, rank = r->comm.rank, share = SAMPLES / ranks;
    an_trainer *t = NULL;
    float x[SAMPLES][FEATURES], y[SAMPLES];
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, l->name, NULL))) return;
    while (!*r->error && an_trainer_next_step(t) < l->stop) {
        /* Numbers that are not finite, of the last rank, fail on all, and leave everything as it was. */
        fill(an_trainer_next_step(t), x, y);
        x[SAMPLES - 1][1] = NAN;
        const an_status status = an_trainer_step_on_f32(t, share, x[rank * share], &y[rank * share], NULL);
        if (status != AN_ERR_NONFINITE) snprintf(r->error, sizeof r->error, "rank %d: status %d", rank, (int)status);
        fill(an_trainer_next_step(t), x, y);
        rank_failed(r, "step", an_trainer_step_on_f32(t, share, x[rank * share], &y[rank * share], NULL));
    }
    if (!*r->error) rank_failed(r, "hash", an_trainer_state_hash(t, r->hash));
    an_trainer_destroy(&t);
}

static void test_failed_steps(void **state) {
    (void)state;
    char expected[HASH_TEXT];
    leg alone = {.stop = 5}, stumbling = {.stop = 5};
    write_config(&alone, "steady", "f32", "none");
    run_leg(&alone, 1, expected);
    for (int count = 1; count <= 4; count *= 2) {
        static one_rank ranks[MOST_RANKS];
        write_config(&stumbling, "stumbling", "f32", "none");
        run_ranks(ranks, count, stumble, &stumbling, NULL);
        for (int i = 0; i < count; i++) {
            if (*ranks[i].error) fail_msg("%d ranks: %s", count, ranks[i].error);
            assert_string_equal(ranks[i].hash, expected);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_states), cmocka_unit_test(test_one_hash),
                                       cmocka_unit_test(test_divided_gradients), cmocka_unit_test(test_failed_steps)};
    if (system("rm -rf run-*") != 0) return 1; /* of an earlier test */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
