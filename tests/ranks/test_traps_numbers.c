/* Mistakes of programs on several ranks that docs/traps.md tells of: numbers that depend on how many ranks there
 * are. The ranks are threads. */
#include "anneal/run.h"
#include "ranks/own_run.h"

enum { MOST = 5, STEPS = 10 }; /* steps of two epochs */

static const own_choices *chosen; /* by the test, for all ranks */
static own_run runs[MOST];

/* What a rank has seen of a run. */
typedef struct {
    an_step_metrics steps[STEPS];
    an_evaluation evaluation;
    int64_t sent; /* bytes, in the last step */
    char initial[HASH_TEXT], hash[HASH_TEXT];
} seen;
static seen all[MOST];

static void train(one_rank *r) {
    seen *s = &all[r->comm.rank];
    own_run *o = &runs[r->comm.rank];
    *s = (seen){0};
    if (rank_failed(r, "create", own_create(o, r->ctx, *chosen)) ||
        rank_failed(r, "hash", an_trainer_weights_hash(o->trainer, s->initial)))
        goto end;
    for (int i = 0; i < STEPS && !own_is_done(o); i++) {
        const int64_t sent = r->messages.sent;
        an_step_metrics_init(&s->steps[i], sizeof s->steps[i]);
        if (rank_failed(r, "step", an_trainer_step(o->trainer, &s->steps[i]))) goto end;
        s->sent = r->messages.sent - sent;
    }
    an_evaluation_init(&s->evaluation, sizeof s->evaluation);
    if (!rank_failed(r, "evaluate", an_trainer_evaluate(o->trainer, &s->evaluation)))
        rank_failed(r, "hash", an_trainer_state_hash(o->trainer, s->hash));
end:
    own_destroy(o);
}

static void train_on(int count, const own_choices *c) {
    one_rank ranks[MOST];
    chosen = c;
    run_ranks(ranks, count, train, NULL, NULL);
    for (int i = 0; i < count; i++)
        if (*ranks[i].error) fail_msg("%d ranks: %s", count, ranks[i].error);
}

/* The numbers of every rank are those of one process, to the bit. */
static void check_all(own_choices c) {
    train_on(1, &c);
    const seen alone = all[0];
    for (int count = 2; count <= MOST; count++) {
        train_on(count, &c);
        for (int i = 0; i < count; i++) {
            assert_string_equal(all[i].initial, alone.initial);
            assert_string_equal(all[i].hash, alone.hash);
            for (int k = 0; k < STEPS; k++) assert_memory_equal(&all[i].steps[k], &alone.steps[k], sizeof *alone.steps);
        }
    }
}

/* ---- batches and rates ---- */

/* The loss that a rank reports is that of all ranks; batch and rate do not grow with their number, and the schedule
 * is not stepped by each of them. */
static void test_every_rank_has_the_numbers_of_the_whole_step(void **state) {
    own_choices c = own_usual();
    (void)state;
    c.has_schedule = true;
    c.schedule.type = AN_SCHEDULE_LINEAR;
    check_all(c);
    for (int k = 0; k < STEPS; k++) {
        assert_int_equal(all[MOST - 1].steps[k].samples, k % 5 == 4 ? TRAINING % 8 : 8);
        assert_true(fabs(all[MOST - 1].steps[k].rate - 1e-2 * (1 - k / (double)STEPS)) < 1e-15);
    }
}

/* Ranks have different numbers of targets in a step, and some have none. */
static void test_ranks_with_few_targets_do_not_count_more(void **state) {
    own_choices c = own_usual();
    (void)state;
    c.masked = true;
    check_all(c);
    int64_t targets = 0;
    for (int k = 0; k < STEPS; k++) targets += all[0].steps[k].targets;
    assert_int_equal(targets, 2 * 21); /* of two epochs */
}

/* The mean over samples that the ranks bring along: one on rank 0, three on rank 1. */
static double stepped_loss[2], stepped_norm[2];

static void step_on_own(one_rank *r) {
    static const float inputs[] = {0.9F, 0.1F, 0.2F, 0.3F}, targets[] = {-2, 0.3F, 0.1F, 0.2F};
    static const int first[] = {0, 1, 4};
    const int begin = r->user ? ((const int *)r->user)[0] : first[r->comm.rank],
              end = r->user ? ((const int *)r->user)[1] : first[r->comm.rank + 1];
    an_trainer *trainer = NULL;
    an_step_metrics m;
    an_step_metrics_init(&m, sizeof m);
    if (!rank_failed(r, "open", an_trainer_open(&trainer, r->ctx, "stream.yaml", NULL)))
        rank_failed(r, "step", an_trainer_step_on_f32(trainer, end - begin, inputs + begin, targets + begin, &m));
    stepped_loss[r->comm.rank] = m.loss;
    stepped_norm[r->comm.rank] = m.norm;
    an_trainer_destroy(&trainer);
}

static double loss_of(int begin, int end, double *norm) {
    one_rank rank;
    run_ranks(&rank, 1, step_on_own, (int[]){begin, end}, NULL);
    if (*rank.error) fail_msg("%s", rank.error);
    *norm = stepped_norm[0];
    return stepped_loss[0];
}

static void test_loss_is_no_mean_of_the_ranks_means(void **state) {
    one_rank ranks[2];
    double norm, ignored;
    (void)state;
    FILE *file = fopen("stream.yaml", "w");
    assert_non_null(file);
    fputs("run: {dir: stream}\nmodel: {type: mlp, inputs: 1, outputs: 1, hidden: [4]}\n"
          "data: {train: {type: stream}}\nbatch: {global: 4, leaves: 4}\n",
          file);
    fclose(file);
    const double whole = loss_of(0, 4, &norm), one = loss_of(0, 1, &ignored), three = loss_of(1, 4, &ignored);
    run_ranks(ranks, 2, step_on_own, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        if (*ranks[i].error) fail_msg("%s", ranks[i].error);
        assert_true(fabs(stepped_loss[i] - whole) < 1e-6 && fabs(stepped_norm[i] - norm) < 1e-6 * norm);
        assert_true(fabs(stepped_loss[i] - (one + three) / 2) > 0.1);
    }
}

/* ---- clipping ---- */

/* Every step is clipped, by the norm that one process has. */
static void test_clipping_uses_the_norm_of_all_ranks(void **state) {
    own_choices c = own_usual();
    (void)state;
    c.options.clip_norm = 1e-3;
    c.optimizer.type = AN_OPTIMIZER_SGD;
    check_all(c);
    for (int k = 0; k < STEPS; k++) assert_true(all[MOST - 1].steps[k].norm > 10 * c.options.clip_norm);
}

/* ---- messages ---- */

/* Gradients are exchanged once a step, whatever the number of micro-batches. */
static void test_accumulation_sends_no_more(void **state) {
    own_choices c = own_usual();
    (void)state;
    c.batch = (an_batch_options){.size = sizeof c.batch, .global = 16, .leaves = 2, .micro = 8};
    train_on(2, &c);
    const int64_t once[] = {all[0].sent, all[1].sent};
    assert_true(once[0] > 0 && once[1] > 0);
    c.batch.micro = 1;
    train_on(2, &c);
    assert_int_equal(all[0].sent, once[0]);
    assert_int_equal(all[1].sent, once[1]);
}

/* ---- random numbers ---- */

/* Samples that are alike: the masks of two ranks differ, as those of two samples do, and are those of one process. */
static void test_ranks_drop_other_elements(void **state) {
    own_choices c = own_usual();
    (void)state;
    c.alike = true;
    c.model.dropout = 0.5;
    c.batch = (an_batch_options){.size = sizeof c.batch, .global = 1};
    train_on(1, &c);
    const double first = all[0].steps[0].loss;
    c.batch = (an_batch_options){.size = sizeof c.batch, .global = 2, .leaves = 2};
    train_on(1, &c);
    const double both = all[0].steps[0].loss;
    train_on(2, &c);
    assert_true(all[0].steps[0].loss == both && all[1].steps[0].loss == both);
    assert_true(fabs(both - first) > 1e-3); /* with the masks of the first sample the second would have its loss */
}

/* ---- samples ---- */

typedef struct {
    int reads[TRAINING];
    int64_t order[TRAINING];
} epoch;
static epoch epochs[MOST][2];
static an_evaluation evaluations[MOST][2];
static int evaluation_reads[MOST][EVALUATION];

static void read_epochs(one_rank *r) {
    own_run *o = &runs[r->comm.rank];
    own_choices c = own_usual();
    if (rank_failed(r, "create", own_create(o, r->ctx, c))) goto end;
    for (int e = 0; e < 2; e++) {
        own_source *s = &o->training_source;
        memset(s->reads, 0, sizeof s->reads);
        s->read = 0;
        for (int k = 0; k < STEPS / 2; k++)
            if (rank_failed(r, "step", an_trainer_step(o->trainer, NULL))) goto end;
        for (int i = 0; i < TRAINING; i++) epochs[r->comm.rank][e].reads[i] = s->reads[i];
        memcpy(epochs[r->comm.rank][e].order, s->order, sizeof epochs[0][0].order);
        an_evaluation_init(&evaluations[r->comm.rank][e], sizeof(an_evaluation));
        if (rank_failed(r, "evaluate", an_trainer_evaluate(o->trainer, &evaluations[r->comm.rank][e]))) goto end;
        evaluations[r->comm.rank][e].seconds = 0;
    }
    for (int i = 0; i < EVALUATION; i++) evaluation_reads[r->comm.rank][i] = o->evaluation_source.reads[i];
end:
    own_destroy(o);
}

static void test_ranks_share_out_every_epoch(void **state) {
    one_rank ranks[MOST];
    (void)state;
    for (int count = 1; count <= MOST; count++) {
        run_ranks(ranks, count, read_epochs, NULL, NULL);
        for (int i = 0; i < count; i++)
            if (*ranks[i].error) fail_msg("%d ranks: %s", count, ranks[i].error);
        for (int e = 0; e < 2; e++)
            for (int i = 0; i < TRAINING; i++) {
                int reads = 0;
                for (int k = 0; k < count; k++) reads += epochs[k][e].reads[i];
                if (reads != 1) fail_msg("%d ranks read sample %d %d times in epoch %d", count, i, reads, e);
            }
        assert_memory_not_equal(epochs[0][0].order, epochs[0][1].order, sizeof epochs[0][0].order);
    }
}

/* 29 samples in micro-batches of 1 divide by no number of ranks: nothing is padded, nothing is dropped, and the sums
 * are those of one process. */
static void test_ranks_evaluate_every_sample_once(void **state) {
    one_rank ranks[MOST];
    an_evaluation alone[2];
    (void)state;
    for (int count = 1; count <= MOST; count++) {
        run_ranks(ranks, count, read_epochs, NULL, NULL);
        for (int i = 0; i < count; i++)
            if (*ranks[i].error) fail_msg("%d ranks: %s", count, ranks[i].error);
        for (int i = 0; i < EVALUATION; i++) {
            int reads = 0;
            for (int k = 0; k < count; k++) reads += evaluation_reads[k][i];
            if (reads != 2) fail_msg("%d ranks read sample %d %d times in two evaluations", count, i, reads);
        }
        if (count == 1) memcpy(alone, evaluations[0], sizeof alone);
        assert_int_equal(alone[0].samples, EVALUATION);
        for (int k = 0; k < count; k++) assert_memory_equal(evaluations[k], alone, sizeof alone);
    }
}

/* ---- unused parameters ---- */

enum { ROWS = 12 };

/* A row of a table for each sample -> relu -> 2, and a head that no loss reads. */
static an_status make_branches(an_graph **graph, an_context *ctx) {
    an_status status = an_graph_create(graph, ctx, "branches");
    if (status != AN_OK) return status;
    an_graph *g = *graph;
    const an_dim batch = an_symbol_dim(g, "batch");
    an_value row = an_input(g, "row", AN_DTYPE_I32, AN_DIMS(batch)),
             y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch, 2));
    an_value hidden = an_embedding_layer(g, row, "table", AN_DTYPE_F32, ROWS, 6);
    an_value out = an_linear(g, an_relu(g, hidden), "head", 2);
    an_graph_set_output(g, out, "out");
    an_graph_set_output(g, an_linear(g, hidden, "unused", 3), "other");
    an_graph_set_loss(g, an_squared_error(g, out, y), y);
    return an_graph_verify(g);
}

static void train_branches(one_rank *r) {
    static const char *const names[] = {"row", "y"};
    int32_t rows[ROWS];
    float targets[ROWS * 2];
    an_graph *graph = NULL;
    an_dataset *data = NULL;
    an_trainer *trainer = NULL;
    an_trainer_options train = {DEFAULTS(an_trainer_options)};
    an_batch_options batch = {.size = sizeof batch, .global = 8, .leaves = 8};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    for (int i = 0; i < ROWS; i++) rows[i] = i, targets[2 * i] = (float)i / ROWS, targets[2 * i + 1] = 1;
    const an_array arrays[] = {array_of(rows, AN_DTYPE_I32, 1, (const int64_t[]){ROWS}),
                               array_of(targets, AN_DTYPE_F32, 2, (const int64_t[]){ROWS, 2})};
    source.array_count = 2;
    source.arrays = arrays;
    source.names = names;
    train.batch = &batch;
    train.epochs = 2;
    train.rate = 1e-2;
    if (rank_failed(r, "graph", make_branches(&graph, r->ctx)) ||
        rank_failed(r, "data", an_dataset_create_arrays(&data, r->ctx, &source)) ||
        rank_failed(r, "trainer", an_trainer_create(&trainer, graph, data, NULL, &train)))
        goto end;
    while (an_trainer_next_step(trainer) < an_trainer_steps(trainer))
        if (rank_failed(r, "step", an_trainer_step(trainer, NULL))) goto end;
    rank_failed(r, "hash", an_trainer_state_hash(trainer, r->hash));
end:
    an_trainer_destroy(&trainer);
    an_dataset_destroy(&data);
    an_graph_destroy(&graph);
}

/* The last step of an epoch has four samples for eight leaves, each with a row of the table of its own: most ranks have
 * no gradient for most rows, some have none at all, and no rank has one for the head that the loss does not read. */
static void test_parameters_that_a_rank_does_not_use(void **state) {
    one_rank ranks[MOST];
    char alone[HASH_TEXT];
    (void)state;
    for (int count = 1; count <= MOST; count++) {
        run_ranks(ranks, count, train_branches, NULL, NULL);
        for (int i = 0; i < count; i++) {
            if (*ranks[i].error) fail_msg("%d ranks: %s", count, ranks[i].error);
            if (count == 1) memcpy(alone, ranks[0].hash, sizeof alone);
            assert_string_equal(ranks[i].hash, alone);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rank_has_the_numbers_of_the_whole_step),
        cmocka_unit_test(test_ranks_with_few_targets_do_not_count_more),
        cmocka_unit_test(test_loss_is_no_mean_of_the_ranks_means),
        cmocka_unit_test(test_clipping_uses_the_norm_of_all_ranks),
        cmocka_unit_test(test_accumulation_sends_no_more),
        cmocka_unit_test(test_ranks_drop_other_elements),
        cmocka_unit_test(test_ranks_share_out_every_epoch),
        cmocka_unit_test(test_ranks_evaluate_every_sample_once),
        cmocka_unit_test(test_parameters_that_a_rank_does_not_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
