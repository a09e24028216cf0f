/* Mistakes of training loops that docs/traps.md tells of: what the trainer does from step to step, with
 * data, evaluations and memory. */
#include <stdatomic.h>

#include "anneal/models.h"
#include "anneal/predict.h"
#include "anneal/run.h"
#include "models/small_models.h"

enum { INPUTS = 4, CLASSES = 3, TRAINING = 103, EVALUATION = 29, IGNORED = -100 };

/* ---- data that notes who reads it ---- */

typedef struct {
    int64_t lost, odd; /* the sample that cannot be read; the one that is NaN when it is read first; -1: none */
    atomic_bool was_odd;
    bool masked; /* every third sample has no target */
    atomic_int reads[TRAINING], threads;
} source;

static bool is_masked(const source *s, int64_t sample) {
    return s->masked && sample % 3 == 0;
}

static int32_t class_of(int64_t sample) {
    return (int32_t)(sample * 7 % CLASSES);
}

static float input_of(int64_t sample, int k) {
    return (float)((class_of(sample) + k) % CLASSES - 1) + (float)(sample * (k + 3) % 11 - 5) / 4;
}

static an_status read_source(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                             size_t message_capacity) {
    static _Thread_local const source *known; /* NULL in a thread that never read: a new one, whatever its number */
    source *s = user;
    if (known != s) atomic_fetch_add(&s->threads, 1);
    known = s;
    for (int64_t i = 0; i < n; i++) {
        if (indices[i] == s->lost) {
            snprintf(message, message_capacity, "sample %lld is gone", (long long)indices[i]);
            return AN_ERR_FILE;
        }
        const bool odd = indices[i] == s->odd && !atomic_exchange(&s->was_odd, true);
        atomic_fetch_add(&s->reads[indices[i]], 1);
        for (int k = 0; k < INPUTS; k++) ((float *)fields[0])[i * INPUTS + k] = odd ? NAN : input_of(indices[i], k);
        ((int32_t *)fields[1])[i] = is_masked(s, indices[i]) ? IGNORED : class_of(indices[i]);
    }
    return AN_OK;
}

static an_dataset *make_dataset(source *s, int64_t count) {
    const an_field fields[] = {
        {.size = sizeof *fields, .name = "x", .dtype = AN_DTYPE_F32, .ndims = 1, .dims = {INPUTS}},
        {.size = sizeof *fields, .name = "targets", .dtype = AN_DTYPE_I32, .target = true}};
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    an_dataset *dataset = NULL;
    record.count = count;
    record.field_count = 2;
    record.fields = fields;
    record.read = read_source;
    record.user = s;
    OK(ctx, an_dataset_create(&dataset, ctx, &record));
    return dataset;
}

/* ---- a run ---- */

typedef struct {
    source training_source, evaluation_source;
    an_graph *graph;
    an_dataset *training, *evaluation;
    an_trainer *trainer;
} run;

typedef struct {
    int64_t samples;
    double dropout;
    int64_t lost, odd; /* of training; 0: none */
    bool masked;       /* in evaluation */
    an_trainer_options options;
    an_batch_options batch;
} choices;

static choices usual(void) {
    choices c = {.samples = TRAINING, .options = {DEFAULTS(an_trainer_options)}};
    c.batch = (an_batch_options){.size = sizeof c.batch, .global = 16};
    c.options.epochs = 1;
    c.options.seed = 11;
    c.options.rate = 1e-2;
    return c;
}

static void run_create(run *r, choices c) {
    an_mlp_options model = small_mlp_options();
    *r = (run){.training_source = {.lost = c.lost ? c.lost : -1, .odd = c.odd ? c.odd : -1},
               .evaluation_source = {.lost = -1, .odd = -1, .masked = c.masked}};
    model.dropout = c.dropout;
    c.options.batch = &c.batch;
    r->training = make_dataset(&r->training_source, c.samples);
    r->evaluation = make_dataset(&r->evaluation_source, EVALUATION);
    OK(ctx, an_model_mlp(&r->graph, ctx, &model));
    OK(ctx, an_trainer_create(&r->trainer, r->graph, r->training, r->evaluation, &c.options));
}

static void run_destroy(run *r) {
    an_trainer_destroy(&r->trainer);
    an_graph_destroy(&r->graph);
    an_dataset_destroy(&r->training);
    an_dataset_destroy(&r->evaluation);
}

static an_step_metrics take_step(const run *r) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_trainer_step(r->trainer, &metrics));
    return metrics;
}

static an_evaluation evaluate(const run *r) {
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    OK(ctx, an_trainer_evaluate(r->trainer, &evaluation));
    return evaluation;
}

static bool is_done(const run *r) {
    return an_trainer_next_step(r->trainer) == an_trainer_steps(r->trainer);
}

typedef struct {
    char text[AN_HASH_TEXT];
} hash;

static hash hash_of(const run *r) {
    hash h;
    OK(ctx, an_trainer_weights_hash(r->trainer, h.text));
    return h;
}

/* ---- steps ---- */

/* Steps up to the one that fails, which must leave weights and position as they were. */
static void expect_failure(const run *r, an_status expected, const char *words) {
    an_status status = AN_OK;
    while (status == AN_OK && !is_done(r)) {
        const hash before = hash_of(r);
        const int64_t step = an_trainer_next_step(r->trainer);
        status = an_trainer_step(r->trainer, NULL);
        if (status == AN_OK) continue;
        assert_int_equal(status, expected);
        if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
        assert_int_equal(an_trainer_next_step(r->trainer), step);
        assert_string_equal(hash_of(r).text, before.text);
    }
    assert_int_equal(status, expected);
}

static void test_failed_step_changes_nothing(void **state) {
    choices c = usual();
    run r;
    (void)state;
    c.lost = 40;
    run_create(&r, c);
    expect_failure(&r, AN_ERR_FILE, "sample 40 is gone");
    run_destroy(&r);
}

/* Once the sample is what it should be, the run goes on as if nothing had been. */
static void test_failed_step_can_be_tried_again(void **state) {
    (void)state;
    for (int threads = 0; threads <= 2; threads += 2) {
        choices c = usual();
        run good, odd;
        c.options.epochs = 2;
        c.options.loader_threads = threads;
        c.dropout = 0.2;
        run_create(&good, c);
        c.odd = 40;
        run_create(&odd, c);
        while (!is_done(&good)) take_step(&good);
        expect_failure(&odd, AN_ERR_NONFINITE, "input 'x' of sample 40");
        while (!is_done(&odd)) take_step(&odd);
        assert_string_equal(hash_of(&odd).text, hash_of(&good).text);
        run_destroy(&good);
        run_destroy(&odd);
    }
}

/* Seven samples where a step has room for sixteen, in micro-batches of 3, 3 and 1: the step of seven at once. */
static void test_short_step_has_its_own_divisor(void **state) {
    an_step_metrics metrics[2];
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        choices c = usual();
        run r;
        c.samples = 7;
        c.batch.global = cut ? 16 : 7;
        c.batch.micro = cut ? 3 : 7;
        run_create(&r, c);
        metrics[cut] = take_step(&r);
        assert_true(is_done(&r));
        run_destroy(&r);
    }
    assert_int_equal(metrics[1].targets, 7);
    assert_true(fabs(metrics[0].loss - metrics[1].loss) < 1e-6);
    assert_true(metrics[0].norm > 0.1 && fabs(metrics[0].norm - metrics[1].norm) < 1e-6);
}

/* All weights, one after another. */
enum { MOST = 256 };
static int64_t read_weights(const run *r, float *numbers) {
    const an_params *params = an_trainer_params(r->trainer);
    int64_t count = 0;
    for (int64_t i = 0; i < an_params_count(params); i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        OK(ctx, an_params_info(params, i, &info));
        assert_true(count + info.elements <= MOST);
        an_array array = array_of(numbers + count, AN_DTYPE_F32, info.ndims, info.dims);
        OK(ctx, an_params_get(params, info.name, AN_PART_WEIGHT, &array));
        count += info.elements;
    }
    return count;
}

/* Six steps of 16 and one of 7, each made of micro-batches: all of them are clipped. */
static void test_short_step_is_clipped(void **state) {
    const an_optimizer_options sgd = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD};
    const an_group_options groups = {DEFAULTS(an_group_options), .weight_decay = 0};
    const double limit = 1e-2;
    choices c = usual();
    run r;
    (void)state;
    c.options.optimizer = &sgd;
    c.options.groups = &groups;
    c.options.rate = 1;
    c.options.clip_norm = limit;
    c.batch.micro = 3;
    run_create(&r, c);
    for (int step = 0; step < 7; step++) {
        float before[MOST], after[MOST];
        double sum = 0;
        read_weights(&r, before);
        const an_step_metrics metrics = take_step(&r);
        const int64_t count = read_weights(&r, after);
        for (int64_t i = 0; i < count; i++) sum += pow((double)after[i] - (double)before[i], 2);
        assert_int_equal(metrics.samples, step < 6 ? 16 : 7);
        assert_true(metrics.norm > 2 * limit && fabs(sqrt(sum) - limit) < 1e-3 * limit);
    }
    assert_true(is_done(&r));
    run_destroy(&r);
}

/* ---- rates ---- */

/* Eight, four and one micro-batches a step, by epoch: the rate falls to its end over the steps that this
 * makes, not over batches. */
static void test_schedule_ends_with_the_run(void **state) {
    static const an_accumulate_entry table[] = {{0, 8}, {1, 4}, {2, 1}};
    const an_schedule_options schedule = {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_LINEAR};
    const int steps = 7 + 13 + 52; /* 103 samples by 16, 8 and 2 */
    choices c = usual();
    run r;
    (void)state;
    c.options.epochs = 3;
    c.batch.global = 0;
    c.batch.micro = 2;
    c.batch.table = table;
    c.batch.table_count = 3;
    c.options.schedule = &schedule;
    run_create(&r, c);
    assert_int_equal(an_trainer_steps(r.trainer), steps);
    for (int step = 0; step < steps; step++)
        assert_true(fabs(take_step(&r).rate - 1e-2 * (1 - (double)step / steps)) < 1e-15);
    assert_true(is_done(&r));
    run_destroy(&r);
}

static void test_schedule_moves_in_every_precision(void **state) {
    static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16, AN_DTYPE_F16};
    const an_schedule_options schedule = {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_COSINE, .warmup = 3};
    (void)state;
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        choices c = usual();
        double last = -1;
        run r;
        c.options.precision = precisions[i];
        c.options.schedule = &schedule;
        run_create(&r, c);
        while (!is_done(&r)) {
            const double factor = an_schedule_factor(an_trainer_schedule(r.trainer), an_trainer_next_step(r.trainer));
            const an_step_metrics metrics = take_step(&r);
            assert_true(!metrics.skipped && metrics.rate == 1e-2 * factor && metrics.rate != last);
            last = metrics.rate;
        }
        run_destroy(&r);
    }
}

/* ---- memory ---- */

/* What a trainer holds when it is made is what it holds after ten steps and ten evaluations, and
 * nobody asked for more between. */
static void test_memory_of_a_run_is_fixed(void **state) {
    an_context *outside = ctx;
    (void)state;
    for (int threads = 0; threads <= 2; threads += 2) {
        static ledger l; /* a context that a failure leaves behind still has it */
        choices c = usual();
        run r;
        l = (ledger){0};
        assert_int_equal(context_with_ledger(&ctx, &l, 2), AN_OK);
        c.options.epochs = 2;
        c.options.precision = AN_DTYPE_BF16;
        c.batch.micro = 3;
        c.options.loader_threads = threads;
        c.dropout = 0.2;
        run_create(&r, c);
        const size_t held = l.held;
        const long calls = l.calls;
        for (int step = 0; step < 10; step++) {
            take_step(&r);
            evaluate(&r);
        }
        assert_int_equal(l.held, held);
        assert_int_equal(l.calls, calls);
        run_destroy(&r);
        an_context_destroy(&ctx);
        assert_true(l.held == 0 && !l.mismatch);
    }
    ctx = outside;
}

/* ---- evaluation ---- */

/* A model with dropout evaluates as the same model without, before and after a step; and the steps between do drop. */
static void test_evaluation_has_no_dropout(void **state) {
    choices c = usual();
    run plain, dropping;
    (void)state;
    c.options.rate = 0; /* weights stay the same */
    run_create(&plain, c);
    c.dropout = 0.5;
    run_create(&dropping, c);
    for (int step = 0; step < 3; step++) {
        assert_true(evaluate(&plain).loss == evaluate(&dropping).loss);
        assert_true(fabs(take_step(&plain).loss - take_step(&dropping).loss) > 1e-4);
    }
    run_destroy(&plain);
    run_destroy(&dropping);
}

static void test_evaluation_reads_every_sample_once(void **state) {
    static const int64_t sizes[] = {1, 3, 5, 16};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        choices c = usual();
        run r;
        c.batch.micro = sizes[i];
        run_create(&r, c);
        for (int times = 1; times <= 2; times++) {
            assert_int_equal(evaluate(&r).samples, EVALUATION);
            for (int k = 0; k < EVALUATION; k++) assert_int_equal(r.evaluation_source.reads[k], times);
        }
        run_destroy(&r);
    }
}

/* Loss and accuracy from what prediction gives, over all targets, and as the mean over batches that a loop would
 * take. */
typedef struct {
    double loss, accuracy, mean_of_means;
    int64_t targets;
} expected;

static expected expect(const run *r, int64_t batch) {
    an_predictor_options maximum;
    an_predictor_options_init(&maximum, sizeof maximum);
    an_predictor *predictor = NULL;
    expected e = {0};
    int64_t batches = 0;
    maximum.max_samples = 1;
    OK(ctx, an_predictor_create(&predictor, r->trainer, &maximum));
    for (int64_t begin = 0; begin < EVALUATION; begin += batch, batches++) {
        double loss = 0, targets = 0;
        for (int64_t i = begin; i < EVALUATION && i < begin + batch; i++) {
            float x[INPUTS], y[CLASSES];
            double sum = 0;
            int best = 0;
            if (is_masked(&r->evaluation_source, i)) continue;
            for (int k = 0; k < INPUTS; k++) x[k] = input_of(i, k);
            OK(ctx, an_predictor_run_f32(predictor, 1, x, y));
            for (int k = 0; k < CLASSES; k++) sum += exp((double)y[k]), best = y[k] > y[best] ? k : best;
            loss += log(sum) - (double)y[class_of(i)];
            e.accuracy += best == class_of(i);
            targets++;
        }
        e.loss += loss;
        e.targets += (int64_t)targets;
        e.mean_of_means += loss / targets;
    }
    an_predictor_destroy(&predictor);
    e.loss /= (double)e.targets;
    e.accuracy /= (double)e.targets;
    e.mean_of_means /= (double)batches;
    return e;
}

static void test_evaluation_weights_by_targets(void **state) {
    static const int64_t sizes[] = {2, 5, 16};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        choices c = usual();
        run r;
        c.masked = true;
        c.batch.micro = sizes[i];
        run_create(&r, c);
        take_step(&r);
        const an_evaluation evaluation = evaluate(&r);
        const expected e = expect(&r, sizes[i]);
        assert_int_equal(evaluation.targets, e.targets);
        assert_int_equal(e.targets, EVALUATION - (EVALUATION + 2) / 3);
        assert_true(fabs(evaluation.loss - e.loss) < 1e-6 && fabs(e.mean_of_means - e.loss) > 1e-4);
        assert_true(fabs(evaluation.accuracy - e.accuracy) < 1e-12);
        run_destroy(&r);
    }
}

typedef struct {
    int count, best_at;
    double accuracies[64];
} seen;

static an_status note_evaluation(void *user, an_trainer *trainer, int64_t step, bool best) {
    seen *s = user;
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    OK(ctx, an_trainer_evaluation(trainer, &evaluation));
    (void)step;
    if (best) s->best_at = s->count;
    s->accuracies[s->count++] = evaluation.accuracy;
    return AN_OK;
}

/* Which way is better goes with the metric: nobody has to say that more accuracy is. */
static void test_best_accuracy_is_the_highest(void **state) {
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    an_run_options o;
    an_run_options_init(&o, sizeof o);
    seen s = {0};
    choices c = usual();
    run r;
    (void)state;
    c.options.epochs = 8;
    run_create(&r, c);
    o.evaluate_every = 1;
    o.evaluate_at_start = true;
    o.best = "val_accuracy";
    o.callbacks =
        &(const an_run_callbacks){.size = sizeof(an_run_callbacks), .after_evaluation = note_evaluation, .user = &s};
    OK(ctx, an_trainer_run(r.trainer, &o, &outcome));
    assert_int_equal(s.count, 1 + 56);
    assert_true(outcome.best_value == s.accuracies[s.best_at] && outcome.best_value > s.accuracies[0]);
    for (int i = 0; i < s.count; i++) {
        assert_true(s.accuracies[i] <= outcome.best_value);
        if (i < s.best_at) assert_true(s.accuracies[i] < outcome.best_value); /* the first of equals */
    }
    run_destroy(&r);
}

/* ---- loading ---- */

/* Three epochs: the two threads that read the first read the last, and nobody else reads. */
static void test_loader_threads_start_once(void **state) {
    choices c = usual();
    run r;
    (void)state;
    c.options.epochs = 3;
    c.options.loader_threads = 2;
    run_create(&r, c);
    while (!is_done(&r)) take_step(&r);
    assert_in_range(r.training_source.threads, 1, 2);
    for (int i = 0; i < TRAINING; i++) assert_int_equal(r.training_source.reads[i], 3);
    run_destroy(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failed_step_changes_nothing),
        cmocka_unit_test(test_failed_step_can_be_tried_again),
        cmocka_unit_test(test_short_step_has_its_own_divisor),
        cmocka_unit_test(test_short_step_is_clipped),
        cmocka_unit_test(test_schedule_ends_with_the_run),
        cmocka_unit_test(test_schedule_moves_in_every_precision),
        cmocka_unit_test(test_memory_of_a_run_is_fixed),
        cmocka_unit_test(test_evaluation_has_no_dropout),
        cmocka_unit_test(test_evaluation_reads_every_sample_once),
        cmocka_unit_test(test_evaluation_weights_by_targets),
        cmocka_unit_test(test_best_accuracy_is_the_highest),
        cmocka_unit_test(test_loader_threads_start_once),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
