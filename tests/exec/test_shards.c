/* The ownership map: pieces are a partition of every unit, whatever the number of ranks; what forms read is
 * found, through views too. */
#include "exec/plan.h"
#include "exec/shards.h"
#include "ir/graph.h"
#include "recompute_models.h"

enum { MOST_RANKS = 8 };

typedef struct {
    ledger memory;
    an_context *ctx;
    an_graph *g;
    an_plan *plan;
} model;

static void open_model(model *m, an_status (*build)(an_graph **, an_context *), an_dtype precision) {
    *m = (model){0};
    assert_int_equal(context_with_ledger(&m->ctx, &m->memory, 2), AN_OK);
    OK(m->ctx, build(&m->g, m->ctx));
    OK(m->ctx, an_graph_verify(m->g));
    OK(m->ctx, plan_choice(&m->plan, m->ctx, m->g, (choice){.mode = AN_RECOMPUTE_BLOCK, .precision = precision}));
}

static void close_model(model *m) {
    an_plan_destroy(&m->plan);
    an_graph_destroy(&m->g);
    an_context_destroy(&m->ctx);
    assert_int_equal(m->memory.held, 0);
    assert_false(m->memory.mismatch);
}

static an_shards *map_of(const model *m, int ranks, int rank, int64_t min_elements) {
    an_shards *shards = NULL;
    m->plan->model->min_elements = min_elements;
    OK(m->ctx, an_shards_create(&shards, m->ctx, m->plan, &(an_shards_options){.ranks = ranks, .rank = rank}));
    return shards;
}

/* ---- pieces ---- */

static void test_pieces_are_a_partition(void **state) {
    (void)state;
    for (int64_t pages = 0; pages <= 50; pages++) {
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
            const an_page_range unit = {7, 7 + pages};
            int64_t at = unit.begin;
            for (int rank = 0; rank < ranks; rank++) {
                const an_page_range piece = an_piece(&unit, 0, rank, ranks);
                assert_int_equal(piece.begin, at);
                assert_int_equal(piece.end, unit.begin + (rank + 1) * pages / ranks);
                at = piece.end;
            }
            assert_int_equal(at, unit.end);
        }
    }
    /* Sizes whose product does not fit in 64 bits. */
    const an_page_range unit = {0, INT64_C(9000000000000000001)};
    const int ranks = INT32_MAX;
    for (int i = 0; i <= 10; i++) {
        const int rank = i == 10 ? ranks - 1 : ranks / 10 * i;
        const an_page_range piece = an_piece(&unit, 0, rank, ranks);
        assert_true(piece.begin == (int64_t)((__int128)unit.end * rank / ranks));
        assert_true(piece.end == (int64_t)((__int128)unit.end * (rank + 1) / ranks));
    }
}

static bool has_page(const an_page_runs *runs, int64_t page) {
    for (int i = 0; i < runs->count; i++)
        if (runs->runs[i].begin <= page && page < runs->runs[i].end) return true;
    return false;
}

static void check_runs(const an_shards *s) {
    for (int set = 0; set < AN_PAGE_SETS; set++) {
        const an_page_runs *runs = &s->sets[set];
        for (int i = 0; i < runs->count; i++) {
            assert_true(runs->runs[i].begin < runs->runs[i].end && runs->runs[i].end <= s->pages);
            if (i > 0) assert_true(runs->runs[i - 1].end < runs->runs[i].begin);
        }
    }
    for (int64_t page = 0; page < s->pages; page++) {
        bool has[AN_PAGE_SETS];
        for (int set = 0; set < AN_PAGE_SETS; set++) has[set] = has_page(&s->sets[set], page);
        assert_true(has[AN_PAGES_ALL]);
        assert_int_equal(has[AN_PAGES_OWN_OR_MASTER_READ], has[AN_PAGES_OWN] || has[AN_PAGES_MASTER_READ]);
    }
}

static void check_map(const model *m, int ranks, int64_t min_elements) {
    an_shards *maps[MOST_RANKS];
    for (int rank = 0; rank < ranks; rank++) {
        maps[rank] = map_of(m, ranks, rank, min_elements);
        check_runs(maps[rank]);
    }
    const an_shards *first = maps[0];
    assert_int_equal(first->pages * AN_PAGE, m->plan->sizes.trainable_elements);
    int64_t at = 0;
    for (int unit = 0; unit < first->unit_count; unit++) {
        assert_int_equal(first->units[unit].pages.begin, at);
        for (int q = 0; q < ranks; q++) {
            const int rank = (q + unit) % ranks;          /* the rank after it begins the next unit */
            for (int other = 0; other < ranks; other++) { /* a rank knows the pieces of all */
                const an_page_range a = an_shards_piece(maps[rank], unit, other),
                                    b = an_shards_piece(first, unit, other);
                assert_true(a.begin == b.begin && a.end == b.end);
            }
            const an_page_range piece = an_shards_piece(first, unit, rank);
            assert_int_equal(piece.begin, at);
            at = piece.end;
        }
        assert_int_equal(first->units[unit].pages.end, at);
    }
    assert_int_equal(at, first->pages);
    for (int64_t page = 0; page < first->pages; page++) {
        int owners = 0;
        for (int rank = 0; rank < ranks; rank++) {
            owners += has_page(&maps[rank]->sets[AN_PAGES_OWN], page);
            for (int set = AN_PAGES_MASTER_READ; set <= AN_PAGES_LOW_READ; set++) /* what is read depends on no rank */
                assert_int_equal(has_page(&maps[rank]->sets[set], page), has_page(&first->sets[set], page));
        }
        assert_int_equal(owners, 1);
    }
    for (int rank = 0; rank < ranks; rank++) an_shards_destroy(&maps[rank]);
}

static void test_every_page_has_one_owner(void **state) {
    (void)state;
    static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16};
    for (int i = 0; i < 2; i++) {
        model m;
        open_model(&m, build_gpt, precisions[i]);
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
            check_map(&m, ranks, 0);
            check_map(&m, ranks, 21 * AN_PAGE);
        }
        close_model(&m);
    }
}

static void test_find_and_have(void **state) {
    (void)state;
    static const an_page_range ranges[] = {{2, 4}, {5, 6}, {9, 20}};
    for (int count = 0; count <= 3; count++) {
        const an_page_runs runs = {.runs = ranges, .count = count};
        for (int64_t page = 0; page < 25; page++) {
            int expected = 0;
            while (expected < count && ranges[expected].end <= page) expected++;
            assert_int_equal(an_page_runs_find(&runs, page), expected);
            for (int64_t end = page; end < 25; end++) {
                bool all = true;
                for (int64_t p = page; p < end; p++) all = all && has_page(&runs, p);
                assert_int_equal(an_page_runs_have(&runs, &(an_page_range){page, end}), all);
            }
        }
    }
}

/* ---- units ---- */

/* The map has these units, and a plan of several ranks that is made for them exchanges as many, and the
 * table's second gradient. */
static void expect_units(const model *m, int64_t min_elements, int count, const char *const *names) {
    an_shards *s = map_of(m, 2, 1, min_elements);
    if (s->unit_count != count) fail_msg("%d units, not %d", s->unit_count, count);
    for (int i = 0; i < count; i++) assert_string_equal(s->units[i].name, names[i]);
    an_shards_destroy(&s);
    an_plan *plan = NULL;
    an_plan_options o;
    an_plan_options_init(&o, sizeof o);
    o.symbol_count = 2;
    o.symbols = symbols;
    o.maxima = (const int64_t[]){BATCH, TOKENS};
    o.ranks = 2;
    o.leaves = 2;
    o.min_elements = min_elements;
    OK(m->ctx, an_plan_create(&plan, m->ctx, m->g, &o));
    for (int form = AN_FORM_TRAIN_FIRST; form <= AN_FORM_TRAIN_NEXT; form++) {
        uint64_t seen = 0;
        for (const an_node *n = plan->forms[form]->first; n; n = n->next)
            if (!strcmp(n->op->name, "exchange"))
                seen |= UINT64_C(1) << *(const int64_t *)an_node_attribute(n, "unit", AN_ATTRIBUTE_INT);
        assert_int_equal(seen, (UINT64_C(2) << count) - 1);
    }
    an_plan_destroy(&plan);
    o.min_elements = -1;
    FAILS(m->ctx, an_plan_create(&plan, m->ctx, m->g, &o), AN_ERR_ARGUMENT, "min_elements");
}

static void test_small_units_are_joined(void **state) {
    (void)state;
    model m;
    open_model(&m, build_gpt, AN_DTYPE_NONE);
    /* Two tables of 1 page each, of which the head reads the first too; blocks of 20 pages, and 2 of the last norm. */
    static const char table[] = "wte.weight";
    expect_units(&m, 0, 7, (const char *const[]){table, "", "h.0", "h.1", "h.2", "h.3", "ln_f"});
    expect_units(&m, AN_PAGE, 7, (const char *const[]){table, "", "h.0", "h.1", "h.2", "h.3", "ln_f"});
    expect_units(&m, 2 * AN_PAGE, 6, (const char *const[]){table, "h.0", "h.1", "h.2", "h.3", "ln_f"});
    expect_units(&m, 2 * AN_PAGE + 1, 5, (const char *const[]){table, "h.0", "h.1", "h.2", "h.3 to ln_f"});
    expect_units(&m, 21 * AN_PAGE + 1, 3, (const char *const[]){table, "h.0 to h.1", "h.2 to ln_f"});
    expect_units(&m, 41 * AN_PAGE + 1, 2, (const char *const[]){table, "h.0 to ln_f"});
    expect_units(&m, INT64_MAX, 2, (const char *const[]){table, "h.0 to ln_f"});
    an_shards *s = NULL;
    FAILS(m.ctx, an_shards_create(&s, m.ctx, m.plan, &(an_shards_options){.ranks = 2, .rank = 2}), AN_ERR_ARGUMENT,
          "rank 2 of 2");
    FAILS(m.ctx, an_shards_create(&s, m.ctx, m.plan, &(an_shards_options){.ranks = 0, .rank = 0}), AN_ERR_ARGUMENT,
          "rank 0 of 0");
    assert_null(s);
    close_model(&m);
}

/* ---- reads ---- */

static void expect_reads(const model *m, uint8_t (*expected)(const char *name, int ndims)) {
    uint8_t reads[128];
    const an_graph *g = m->plan->model;
    assert_true(g->parameter_count <= sizeof reads);
    an_plan_find_reads(m->plan, reads);
    for (size_t i = 0; i < g->parameter_count; i++) {
        const uint8_t wanted = expected(g->parameters[i].name, g->parameters[i].node->outputs[0].ndims);
        if (reads[i] != wanted) fail_msg("%s is read as %d, not %d", g->parameters[i].name, reads[i], wanted);
    }
}

static uint8_t reads_of_f32(const char *name, int ndims) {
    (void)name, (void)ndims;
    return AN_READS_MASTER;
}

/* Tables are looked up in f32, one of them through a view; the head multiplies with the first, in bf16. */
static uint8_t reads_of_bf16(const char *name, int ndims) {
    if (!strcmp(name, "wte.weight")) return AN_READS_MASTER | AN_READS_LOW;
    if (!strcmp(name, "wpe.weight") || ndims == 1) return AN_READS_MASTER;
    return AN_READS_LOW;
}

static void test_what_gpt2_reads(void **state) {
    (void)state;
    model m;
    open_model(&m, build_gpt, AN_DTYPE_NONE);
    expect_reads(&m, reads_of_f32);
    close_model(&m);
    open_model(&m, build_gpt, AN_DTYPE_BF16);
    expect_reads(&m, reads_of_bf16);
    close_model(&m);
}

/* A frozen parameter, one that is only handed out, one that nothing reads, and one that is read through two views. */
static an_status build_odd(an_graph **graph, an_context *ctx) {
    an_status status = an_graph_create(graph, ctx, "odd");
    if (status != AN_OK) return status;
    an_graph *g = *graph;
    const an_dim batch = an_symbol_dim(g, "batch");
    const an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 64)),
                   y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch, 32));
    const an_value frozen = an_param(g, "frozen", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 1, AN_DIMS(64, 64));
    const an_value shown = an_param(g, "shown", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 1, AN_DIMS(2000));
    (void)an_param(g, "unused", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 1, AN_DIMS(1500));
    const an_value viewed = an_param(g, "viewed", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 1, AN_DIMS(64, 64));
    an_param_freeze(g, frozen);
    const an_value half = an_slice(g, an_transpose(g, viewed, 0, 1), 1, 0, 32);
    const an_value out = an_matmul(g, an_matmul(g, x, frozen, false, false), half, false, false);
    an_graph_set_output(g, shown, "shown");
    an_graph_set_output(g, out, "out");
    an_graph_set_loss(g, an_squared_error(g, out, y), y);
    return AN_OK;
}

static uint8_t reads_of_odd(const char *name, int ndims) {
    (void)ndims;
    return !strcmp(name, "shown") || !strcmp(name, "viewed") ? AN_READS_MASTER : 0;
}

static void test_views_and_outputs_are_read(void **state) {
    (void)state;
    model m = {0};
    assert_int_equal(context_with_ledger(&m.ctx, &m.memory, 1), AN_OK);
    OK(m.ctx, build_odd(&m.g, m.ctx));
    OK(m.ctx, an_graph_verify(m.g));
    OK(m.ctx,
       plan_for(&m.plan, m.ctx, m.g, "batch", 4, AN_PROGRAM_TRAINING | AN_PROGRAM_EVALUATION | AN_PROGRAM_PREDICTION));
    expect_reads(&m, reads_of_odd);
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) check_map(&m, ranks, 0);
    /* shown has pages 0 and 1, unused 2 and 3, viewed 4 to 7: one unit. */
    an_shards *s = map_of(&m, 3, 1, 0);
    assert_int_equal(s->unit_count, 1);
    const an_page_runs *own = &s->sets[AN_PAGES_OWN], *held = &s->sets[AN_PAGES_OWN_OR_MASTER_READ];
    assert_int_equal(own->count, 1);
    assert_true(own->runs[0].begin == 2 && own->runs[0].end == 5);
    assert_int_equal(held->count, 1);
    assert_true(held->runs[0].begin == 0 && held->runs[0].end == 8);
    assert_int_equal(s->sets[AN_PAGES_MASTER_READ].count, 2);
    assert_int_equal(s->sets[AN_PAGES_LOW_READ].count, 0);
    an_shards_destroy(&s);
    close_model(&m);
}

/* ---- memory ---- */

static void test_tables_to_the_byte_and_faults(void **state) {
    (void)state;
    model m;
    open_model(&m, build_gpt, AN_DTYPE_BF16);
    const size_t before = m.memory.held;
    an_shards *s = map_of(&m, 3, 1, 0);
    assert_int_equal(m.memory.held - before, an_shards_bytes(s));
    an_shards_destroy(&s);
    assert_int_equal(m.memory.held, before);
    long failed = 0;
    for (an_status status = AN_ERR_MEMORY; status != AN_OK; failed++) {
        m.memory.calls = 0;
        m.memory.fail_at = failed + 1;
        m.memory.once = true;
        status = an_shards_create(&s, m.ctx, m.plan, &(an_shards_options){.ranks = 3, .rank = 1});
        m.memory.fail_at = 0;
        if (status != AN_OK) {
            assert_int_equal(status, AN_ERR_MEMORY);
            assert_null(s);
        }
        an_shards_destroy(&s);
        assert_int_equal(m.memory.held, before);
    }
    assert_true(failed - 1 >= 6);
    close_model(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_a_partition),
        cmocka_unit_test(test_every_page_has_one_owner),
        cmocka_unit_test(test_find_and_have),
        cmocka_unit_test(test_small_units_are_joined),
        cmocka_unit_test(test_what_gpt2_reads),
        cmocka_unit_test(test_views_and_outputs_are_read),
        cmocka_unit_test(test_tables_to_the_byte_and_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
