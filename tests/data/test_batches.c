/* Batch arithmetic: which samples each step takes. */
#include "data/batches.h"
#include "support/support.h"

static an_context *ctx;

static int setup(void **state) {
    (void)state;
    return an_context_create(&ctx, NULL) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return 0;
}

static an_batches make(int64_t samples, const an_batch_options *options) {
    an_batches b;
    OK(ctx, an_batches_make(&b, ctx, samples, options));
    return b;
}

/* 103 samples by 16: six steps of 16 and one of 7. */
static void test_leftovers_are_a_step_of_their_own(void **state) {
    an_batch_options o;
    an_batch_options_init(&o, sizeof o);
    (void)state;
    o.global = 16;
    const an_batches b = make(103, &o);
    assert_int_equal(an_batches_epoch_steps(&b, 0), 7);
    for (int64_t step = 0; step < 21; step++) {
        const an_step_batch s = an_batches_at(&b, step);
        assert_int_equal(s.epoch, step / 7);
        assert_int_equal(s.begin, step % 7 * 16);
        assert_int_equal(s.count, step % 7 == 6 ? 7 : 16);
        assert_int_equal(s.first_sample, step / 7 * 103 + step % 7 * 16);
    }
}

static void test_drop_last_drops_them(void **state) {
    an_batch_options o;
    an_batch_options_init(&o, sizeof o);
    (void)state;
    o.global = 16;
    o.drop_last = true;
    const an_batches b = make(103, &o);
    assert_int_equal(an_batches_epoch_steps(&b, 0), 6);
    assert_int_equal(an_batches_at(&b, 6).epoch, 1);
    assert_int_equal(an_batches_at(&b, 6).first_sample, 96);
}

/* Every sample of every epoch once, in steps that follow each other, whatever the table says. */
static void test_epochs_are_whole(void **state) {
    static const an_accumulate_entry table[] = {{0, 16}, {4, 8}, {8, 2}};
    an_batch_options o;
    an_batch_options_init(&o, sizeof o);
    int64_t step = 0;
    (void)state;
    o.micro = 3;
    o.leaves = 2;
    o.table = table;
    o.table_count = 3;
    const an_batches b = make(1000, &o);
    assert_int_equal(an_batches_largest(&b), 48);
    for (int64_t epoch = 0; epoch < 12; epoch++) {
        int64_t at = 0;
        assert_int_equal(an_batches_epoch_begin(&b, epoch), step);
        for (int64_t i = 0; i < an_batches_epoch_steps(&b, epoch); i++, step++) {
            const an_step_batch s = an_batches_at(&b, step);
            assert_int_equal(s.epoch, epoch);
            assert_int_equal(s.epoch_step, i);
            assert_int_equal(s.begin, at);
            assert_int_equal(s.first_sample, epoch * 1000 + at);
            at += s.count;
        }
        assert_int_equal(at, 1000);
        assert_int_equal(an_batches_epoch_steps(&b, epoch), epoch < 4 ? 21 : epoch < 8 ? 42 : 167);
    }
}

static void test_leaves_cover_a_step(void **state) {
    an_batch_options o;
    an_batch_options_init(&o, sizeof o);
    (void)state;
    o.global = 16;
    o.leaves = 8;
    const an_batches b = make(103, &o);
    assert_int_equal(b.micro, 2);
    for (int64_t count = 1; count <= 16; count++) {
        assert_int_equal(an_leaf_begin(&b, count, 0), 0);
        assert_int_equal(an_leaf_begin(&b, count, 8), count);
        for (int64_t leaf = 0; leaf < 8; leaf++)
            assert_true(an_leaf_begin(&b, count, leaf + 1) - an_leaf_begin(&b, count, leaf) <= 2);
    }
}

/* Rank r of P has leaves r, P + r and so on: every sample of the step once, in the order of its leaf. */
static void check_rounds(const an_batches *b, int64_t step, int64_t ranks) {
    int64_t taken = 0;
    for (int64_t rank = 0; rank < ranks; rank++) {
        const an_leaf_set set = {rank, ranks, (b->leaves - rank + ranks - 1) / ranks, 1};
        const an_batch_part part = an_leaves_part(b, step, &set);
        int64_t at = 0;
        for (an_leaf_samples l = {.index = -1}; an_leaf_set_next(b, &set, &part, &l);) {
            assert_int_equal(l.leaf, rank + l.index * ranks);
            assert_int_equal(l.at, at);
            assert_int_equal(l.first, an_leaf_begin(b, part.total, l.leaf));
            assert_int_equal(l.first + l.count, an_leaf_begin(b, part.total, l.leaf + 1));
            at += l.count;
        }
        assert_int_equal(part.n, at);
        assert_in_range(part.n, 0, an_leaves_most(b, &set));
        taken += part.n;
        /* Samples that a program gave are cut evenly. */
        const an_batch_part own = {.n = 7, .first = 3, .total = 20, .own = true};
        at = 0;
        for (an_leaf_samples l = {.index = -1}; an_leaf_set_next(b, &set, &own, &l); at += l.count)
            assert_int_equal(l.first, 3 + at);
        assert_int_equal(at, 7);
    }
    assert_int_equal(taken, an_batches_at(b, step).count);
}

/* However the leaves are divided, the parts follow each other, are the whole step, and have room. */
static void test_parts_are_the_whole_step(void **state) {
    static const an_accumulate_entry table[] = {{0, 15}, {1, 5}, {3, 10}};
    static const struct {
        int64_t samples, global, micro, leaves;
        int entries;
    } cases[] = {{103, 16, 0, 8, 0}, {21, 8, 0, 5, 0}, {1, 8, 0, 8, 0}, {40, 11, 2, 7, 0}, {103, 0, 2, 5, 3}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        an_batch_options o;
        an_batch_options_init(&o, sizeof o);
        o.global = cases[c].global;
        o.micro = cases[c].micro;
        o.leaves = cases[c].leaves;
        o.table = table;
        o.table_count = cases[c].entries;
        const an_batches b = make(cases[c].samples, &o);
        assert_int_equal(an_leaves_most(&b, &(an_leaf_set){0, 1, b.leaves, b.leaves}), b.global);
        for (int64_t step = 0; step < an_batches_epoch_begin(&b, 5); step++)
            for (int64_t ranks = 1; ranks <= b.leaves; ranks++) {
                int64_t next = 0;
                for (int64_t rank = 0; rank < ranks; rank++) {
                    const int64_t begin = rank * b.leaves / ranks, end = (rank + 1) * b.leaves / ranks;
                    const an_batch_part part =
                        an_leaves_part(&b, step, &(an_leaf_set){begin, 1, end - begin, end - begin});
                    assert_int_equal(part.total, an_batches_at(&b, step).count);
                    assert_int_equal(part.first, next);
                    assert_in_range(part.n, 0, an_leaves_most(&b, &(an_leaf_set){begin, 1, end - begin, end - begin}));
                    next += part.n;
                }
                assert_int_equal(next, an_batches_at(&b, step).count);
                check_rounds(&b, step, ranks);
            }
    }
}

/* Of 8 samples, leaf 2 of 5 has one; of the 7 of a short step it has two. */
static void test_short_steps_may_have_larger_parts(void **state) {
    an_batch_options o;
    an_batch_options_init(&o, sizeof o);
    (void)state;
    o.global = 8;
    o.leaves = 5;
    const an_batches b = make(15, &o);
    assert_int_equal(an_leaves_part(&b, 0, &(an_leaf_set){2, 1, 1, 1}).n, 1);
    assert_int_equal(an_leaves_part(&b, 1, &(an_leaf_set){2, 1, 1, 1}).n, 2);
    assert_int_equal(an_leaves_most(&b, &(an_leaf_set){2, 1, 1, 1}), 2);
}

static void refused(an_batch_options o, const char *words) {
    an_batches b;
    assert_int_not_equal(an_batches_make(&b, ctx, 103, &o), AN_OK);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
}

static void test_contradictions_are_written_out(void **state) {
    an_batch_options o;
    an_batch_options_init(&o, sizeof o);
    (void)state;
    refused(o, "batch: set global, the number of samples in a step, or micro and accumulate");
    o.global = 64;
    o.micro = 4;
    o.accumulate = 8;
    o.leaves = 3;
    refused(o, "global is 64, but micro 4 × accumulate 8 = 32: omit one of them");
    o.accumulate = 0;
    o.leaves = 65;
    refused(o, "65 leaves, but a step has only 64 samples; every leaf needs at least one");
    o = (an_batch_options){.size = sizeof o, .accumulate = 4};
    refused(o, "batch: accumulate counts micro-batches, so micro, the number of samples in a micro-batch, must be set");
    o = (an_batch_options){.size = sizeof o, .global = 104, .drop_last = true};
    refused(o, "drop_last drops everything: an epoch has 103 samples, but a step takes 104");
    o = (an_batch_options){.size = sizeof o, .micro = INT64_MAX, .accumulate = 2};
    refused(o, "is too large");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leftovers_are_a_step_of_their_own),
        cmocka_unit_test(test_drop_last_drops_them),
        cmocka_unit_test(test_epochs_are_whole),
        cmocka_unit_test(test_leaves_cover_a_step),
        cmocka_unit_test(test_parts_are_the_whole_step),
        cmocka_unit_test(test_short_steps_may_have_larger_parts),
        cmocka_unit_test(test_contradictions_are_written_out),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
