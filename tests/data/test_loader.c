/* The loader gives batches in order, the same ones for any number of threads, errors at their batch,
 * and stops at any moment. */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "data/loader.h"
#include "data/permutation.h"
#include "data/support.h"

enum { COUNT = 1000, BATCH = 7, WIDTH = 5 };

/* A dataset that takes its time, differently for each sample, and notes what is asked of it. */
typedef struct {
    long nanoseconds;
    int64_t bad; /* sample that cannot be read; -1: none */
    pthread_mutex_t mutex;
    int64_t reads, furthest; /* calls; the largest first index */
} slow;

static an_status read_slow(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                           size_t message_capacity) {
    slow *s = user;
    for (int64_t i = 0; i < n; i++) {
        const struct timespec pause = {0, s->nanoseconds * (indices[i] % 3)};
        if (s->nanoseconds > 0) nanosleep(&pause, NULL);
        if (indices[i] == s->bad) {
            snprintf(message, message_capacity, "slow.bin: byte %d: it is bad", (int)indices[i]);
            return AN_ERR_PARSE;
        }
        for (int k = 0; k < WIDTH; k++) ((int64_t *)fields[0])[i * WIDTH + k] = indices[i] * 10 + k;
        ((float *)fields[1])[i] = (float)indices[i];
    }
    pthread_mutex_lock(&s->mutex);
    s->reads++;
    if (n > 0 && indices[0] > s->furthest) s->furthest = indices[0];
    pthread_mutex_unlock(&s->mutex);
    return AN_OK;
}

static an_dataset *make_slow(an_context *ctx, slow *s) {
    an_field fields[2] = {{.size = sizeof *fields, .name = "x", .dtype = AN_DTYPE_I64, .ndims = 1, .dims = {WIDTH}},
                          {.size = sizeof *fields, .name = "y", .dtype = AN_DTYPE_F32, .target = true}};
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    an_dataset *d = NULL;
    pthread_mutex_init(&s->mutex, NULL);
    record.count = COUNT;
    record.field_count = 2;
    record.fields = fields;
    record.read = read_slow;
    record.user = s;
    OK(ctx, an_dataset_create(&d, ctx, &record));
    return d;
}

/* Epochs in an order of their own; every fifth batch is short, every eleventh empty. */
static an_batch_part shuffled(void *user, int64_t batch, int64_t *indices) {
    const an_permutation p = an_permutation_make(5, (uint64_t)(batch / 100), COUNT);
    const int64_t n = batch % 11 == 10 ? 0 : batch % 5 == 4 ? 2 : BATCH;
    (void)user;
    for (int64_t i = 0; i < n; i++) indices[i] = an_permutation_at(&p, (batch % 100 * BATCH + i) % COUNT);
    return (an_batch_part){.n = n, .total = n};
}

static an_batch_part in_order(void *user, int64_t batch, int64_t *indices) {
    const int64_t *end = user;
    if (end && batch >= *end) return (an_batch_part){.n = -1};
    for (int64_t i = 0; i < BATCH; i++) indices[i] = (batch * BATCH + i) % COUNT;
    return (an_batch_part){.n = BATCH, .total = BATCH};
}

static an_loader_options options_of(const an_dataset *d, int threads, int ahead) {
    return (an_loader_options){.dataset = d, .threads = threads, .ahead = ahead, .maximum = BATCH, .indices = shuffled};
}

static void check_batch(const an_batch *batch, int64_t number) {
    int64_t indices[BATCH];
    assert_int_equal(batch->number, number);
    assert_int_equal(batch->part.n, shuffled(NULL, number, indices).n);
    assert_memory_equal(batch->indices, indices, (size_t)batch->part.n * 8);
    for (int64_t i = 0; i < batch->part.n; i++) {
        for (int k = 0; k < WIDTH; k++)
            assert_int_equal(((int64_t *)batch->fields[0])[i * WIDTH + k], indices[i] * 10 + k);
        assert_true(((float *)batch->fields[1])[i] == (float)indices[i]);
    }
}

static void test_order(void **state) {
    static const int cases[][2] = {{0, 0}, {1, 1}, {1, 3}, {2, 0}, {3, 1}, {4, 9}, {16, 2}};
    an_context *ctx = new_context();
    slow s = {.nanoseconds = 20000, .bad = -1};
    an_dataset *d = make_slow(ctx, &s);
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        an_loader *l = NULL;
        an_batch batch;
        an_loader_options options = options_of(d, cases[c][0], cases[c][1]);
        options.first = 95;
        OK(ctx, an_loader_create(&l, ctx, &options));
        const size_t bytes = an_context_bytes(ctx);
        for (int64_t b = 95; b < 215; b++) {
            OK(ctx, an_loader_next(l, &batch));
            check_batch(&batch, b);
        }
        static const int64_t seeks[] = {3, 214, 214, 0, 100};
        for (int i = 0; i < 5; i++) {
            an_loader_seek(l, seeks[i]);
            for (int64_t b = 0; b < i + 2; b++) {
                OK(ctx, an_loader_next(l, &batch));
                check_batch(&batch, seeks[i] + b);
            }
        }
        assert_int_equal(an_context_bytes(ctx), bytes); /* nothing is allocated on the way */
        an_loader_destroy(&l);
        assert_null(l);
    }
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* No more batches are read than were asked to be held. */
static void test_bounded(void **state) {
    an_context *ctx = new_context();
    slow s = {.bad = -1};
    an_dataset *d = make_slow(ctx, &s);
    (void)state;
    for (int threads = 0; threads < 4; threads++) {
        an_loader *l = NULL;
        an_batch batch;
        const int ahead = 5;
        s.reads = s.furthest = 0;
        an_loader_options options = options_of(d, threads, ahead);
        options.indices = in_order;
        OK(ctx, an_loader_create(&l, ctx, &options));
        for (int i = 0; i < 3; i++) OK(ctx, an_loader_next(l, &batch));
        const int64_t expected = 3 + (threads ? ahead : 0);
        int64_t reads = 0;
        for (int wait = 0; wait < 2000 && reads < expected; wait++) {
            nanosleep(&(struct timespec){0, 1000000}, NULL);
            pthread_mutex_lock(&s.mutex);
            reads = s.reads;
            pthread_mutex_unlock(&s.mutex);
        }
        nanosleep(&(struct timespec){0, 20000000}, NULL); /* time to do too much */
        pthread_mutex_lock(&s.mutex);
        assert_int_equal(s.reads, expected);
        assert_int_equal(s.furthest, (expected - 1) * BATCH);
        pthread_mutex_unlock(&s.mutex);
        an_loader_destroy(&l);
    }
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* Since the last call. */
static int64_t count_reads(slow *s) {
    pthread_mutex_lock(&s->mutex);
    const int64_t reads = s->reads;
    s->reads = 0;
    pthread_mutex_unlock(&s->mutex);
    return reads;
}

/* One for evaluations reads nothing before the first of them, between two and after the last batch. */
static void test_rest(void **state) {
    an_context *ctx = new_context();
    static const struct timespec pause = {0, 20000000}; /* time to do too much */
    slow s = {.nanoseconds = 200000, .bad = -1};
    an_dataset *d = make_slow(ctx, &s);
    int64_t end = 12;
    (void)state;
    for (int threads = 0; threads < 4; threads++) {
        an_loader *l = NULL;
        an_batch batch;
        an_loader_options options = options_of(d, threads, 3);
        options.indices = in_order;
        options.user = &end;
        options.evaluates = true;
        OK(ctx, an_loader_create(&l, ctx, &options));
        nanosleep(&pause, NULL);
        assert_int_equal(count_reads(&s), 0);
        for (int again = 0; again < 3; again++) {
            an_loader_seek(l, 4);
            for (int64_t b = 4; b < end; b++) {
                OK(ctx, an_loader_next(l, &batch));
                assert_int_equal(batch.number, b);
                assert_int_equal(batch.indices[0], b * BATCH);
            }
            an_loader_rest(l);
            assert_int_equal(count_reads(&s), end - 4);
        }
        an_loader_seek(l, 0); /* one that is stopped midway */
        OK(ctx, an_loader_next(l, &batch));
        an_loader_rest(l);
        assert_in_range(count_reads(&s), 1, 4);
        nanosleep(&pause, NULL);
        assert_int_equal(count_reads(&s), 0);
        an_loader_destroy(&l);
    }
    an_dataset_destroy(&d);
    end_context(&ctx);
}

static void test_errors(void **state) {
    an_context *ctx = new_context();
    slow s = {.nanoseconds = 1000, .bad = 3 * BATCH + 2};
    an_dataset *d = make_slow(ctx, &s);
    int64_t end = 6;
    (void)state;
    for (int threads = 0; threads < 5; threads++) {
        an_loader *l = NULL;
        an_batch batch;
        an_loader_options options = options_of(d, threads, 0);
        options.indices = in_order;
        options.user = &end;
        OK(ctx, an_loader_create(&l, ctx, &options));
        for (int64_t b = 0; b < end; b++) {
            if (b == 3)
                FAILS(ctx, an_loader_next(l, &batch), AN_ERR_PARSE, "slow.bin: byte 23: it is bad");
            else
                OK(ctx, an_loader_next(l, &batch));
            assert_int_equal(batch.number, b);
        }
        for (int i = 0; i < 3; i++) FAILS(ctx, an_loader_next(l, &batch), AN_ERR_STATE, "batch 6");
        an_loader_seek(l, 5);
        OK(ctx, an_loader_next(l, &batch));
        an_loader_destroy(&l);
    }
    an_dataset_destroy(&d);
    an_loader *l = NULL;
    an_loader_options options = options_of(NULL, 0, 0);
    FAILS(ctx, an_loader_create(&l, ctx, &options), AN_ERR_ARGUMENT, "needs a dataset");
    end_context(&ctx);
}

/* A thread that is told by the test whether a signal may reach it. */
static an_status read_mask(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                           size_t message_capacity) {
    sigset_t mask;
    (void)user, (void)indices, (void)message, (void)message_capacity;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int64_t i = 0; i < n; i++) ((uint8_t *)fields[0])[i] = (uint8_t)sigismember(&mask, SIGTERM);
    return AN_OK;
}

static void test_signals_are_the_hosts(void **state) {
    an_context *ctx = new_context();
    an_field field = {.size = sizeof field, .name = "blocked", .dtype = AN_DTYPE_U8};
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    an_dataset *d = NULL;
    an_loader *l = NULL;
    an_batch batch;
    sigset_t mask;
    (void)state;
    record.count = COUNT;
    record.field_count = 1;
    record.fields = &field;
    record.read = read_mask;
    OK(ctx, an_dataset_create(&d, ctx, &record));
    an_loader_options options = options_of(d, 2, 0);
    OK(ctx, an_loader_create(&l, ctx, &options));
    OK(ctx, an_loader_next(l, &batch));
    assert_int_equal(*(uint8_t *)batch.fields[0], 1);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
    an_loader_destroy(&l);
    an_dataset_destroy(&d);
    end_context(&ctx);
}

static void test_stops_at_any_moment(void **state) {
    an_context *ctx = new_context();
    slow s = {.nanoseconds = 10000, .bad = -1};
    an_dataset *d = make_slow(ctx, &s);
    (void)state;
    for (int i = 0; i < 200; i++) {
        an_loader *l = NULL;
        an_batch batch;
        const an_loader_options options = options_of(d, 1 + i % 4, i % 3);
        OK(ctx, an_loader_create(&l, ctx, &options));
        for (int b = 0; b < i % 7; b++) OK(ctx, an_loader_next(l, &batch));
        if (i % 5 == 0) an_loader_seek(l, 50);
        an_loader_destroy(&l);
    }
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* ---- parts ---- */

typedef struct {
    an_batches batches;
    int64_t begin, end; /* leaves */
} leaves;

static an_batch_part part_of_step(void *user, int64_t batch, int64_t *indices) {
    const leaves *l = user;
    const an_step_batch step = an_batches_at(&l->batches, batch);
    const an_permutation order = an_permutation_make(5, (uint64_t)step.epoch, l->batches.samples);
    const an_batch_part part =
        an_leaves_part(&l->batches, batch, &(an_leaf_set){l->begin, 1, l->end - l->begin, l->end - l->begin});
    for (int64_t i = 0; i < part.n; i++) indices[i] = an_permutation_at(&order, step.begin + part.first + i);
    return part;
}

static an_loader *load_leaves(an_context *ctx, const an_dataset *d, leaves *l) {
    an_loader *loader = NULL;
    const an_loader_options options = {
        .dataset = d,
        .threads = 1,
        .maximum = an_leaves_most(&l->batches, &(an_leaf_set){l->begin, 1, l->end - l->begin, l->end - l->begin}),
        .indices = part_of_step,
        .user = l};
    size_t bytes = an_context_bytes(ctx);
    assert_true(an_loader_bytes(&options, &bytes));
    OK(ctx, an_loader_create(&loader, ctx, &options));
    assert_int_equal(an_context_bytes(ctx), bytes);
    return loader;
}

static void same_part(const an_batch *part, const an_batch *whole) {
    const int64_t first = part->part.first, n = part->part.n;
    assert_int_equal(part->part.total, whole->part.n);
    assert_in_range(first + n, 0, whole->part.n);
    assert_memory_equal(part->indices, whole->indices + first, (size_t)n * sizeof *part->indices);
    assert_memory_equal(part->fields[0], (int64_t *)whole->fields[0] + first * WIDTH, (size_t)n * WIDTH * 8);
    assert_memory_equal(part->fields[1], (float *)whole->fields[1] + first, (size_t)n * sizeof(float));
}

/* Loaders of some of the leaves have together what a loader of all has: in short steps, in those with empty leaves,
 * and where the table changes the batch. */
static void test_parts_are_the_whole(void **state) {
    enum { SAMPLES = 317, LEAVES = 5, EPOCHS = 4 }; /* steps of 105, 35 and 70 samples, and of 2 */
    static const an_accumulate_entry table[] = {{0, 15}, {1, 5}, {2, 10}};
    an_context *ctx = new_context();
    slow s = {.bad = -1};
    an_dataset *d = make_slow(ctx, &s);
    an_batch_options o;
    an_batch_options_init(&o, sizeof o);
    (void)state;
    o.micro = 7;
    o.leaves = LEAVES;
    o.table = table;
    o.table_count = sizeof table / sizeof *table;
    leaves parts[LEAVES + 1];
    OK(ctx, an_batches_make(&parts[0].batches, ctx, SAMPLES, &o));
    for (int ranks = 1; ranks <= LEAVES; ranks++) {
        an_loader *loaders[LEAVES + 1];
        for (int i = 0; i <= ranks; i++) { /* the last one has all */
            parts[i].batches = parts[0].batches;
            parts[i].begin = i < ranks ? i * LEAVES / ranks : 0;
            parts[i].end = i < ranks ? (i + 1) * LEAVES / ranks : LEAVES;
            loaders[i] = load_leaves(ctx, d, &parts[i]);
        }
        for (int64_t step = 0; step < an_batches_epoch_begin(&parts[0].batches, EPOCHS); step++) {
            an_batch whole, part;
            int64_t next = 0;
            OK(ctx, an_loader_next(loaders[ranks], &whole));
            assert_int_equal(whole.part.first, 0);
            assert_int_equal(whole.part.n, whole.part.total);
            for (int i = 0; i < ranks; i++) {
                OK(ctx, an_loader_next(loaders[i], &part));
                assert_int_equal(part.part.first, next);
                same_part(&part, &whole);
                next += part.part.n;
            }
            assert_int_equal(next, whole.part.n);
        }
        for (int i = 0; i <= ranks; i++) an_loader_destroy(&loaders[i]);
    }
    an_dataset_destroy(&d);
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_signals_are_the_hosts),
        cmocka_unit_test(test_stops_at_any_moment),
        cmocka_unit_test(test_parts_are_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
