/* Programs for ranks that have pieces: weights are gathered region by region, and gradients leave unit by unit. Here
 * one process plays all others: a hook fills the roots of a region from a whole store, and another takes the gradients
 * of a unit. What is computed has the bits of the ordinary plan; nothing is read before it has arrived or written
 * after it has left; and nothing of the program's own store is read or written. */
#include "exec/program.h"
#include "exec/recompute_models.h"
#include "gathered_models.h"

typedef struct {
    an_recompute recompute;
    an_dtype precision;
    an_shard shard;
    int64_t min_elements;
    bool unfused;
} trial;

static an_status plan_trial(an_plan **plan, an_context *ctx, const an_graph *g, const trial *t) {
    an_plan_options o;
    an_plan_options_init(&o, sizeof o);
    while (an_graph_symbol_name(g, o.symbol_count)) o.symbol_count++;
    o.symbols = symbols;
    o.maxima = (const int64_t[]){BATCH, TOKENS};
    o.recompute = t->recompute;
    o.precision = t->precision;
    o.shard = t->shard;
    o.min_elements = t->min_elements;
    o.fused = !t->unfused;
    o.programs = AN_PROGRAM_TRAINING | AN_PROGRAM_EVALUATION | AN_PROGRAM_PREDICTION;
    return an_plan_create(plan, ctx, g, &o);
}

/* ---- the other ranks ---- */

enum { POISON = 0xff }; /* not a number in every type */

typedef struct {
    const an_plan *plan;
    const an_params *whole;
    int posted, arrived; /* regions of the run */
    void *roots[256][AN_WEIGHT_KINDS];
    int scattered; /* the unit that is on its way; NONE: none is */
    char *root, *copy;
    char *gradients; /* as they have come */
    int scatters;
    uint64_t units; /* that have come */
} others;

enum { NONE = -1 };

static size_t page_bytes(const others *o, int kind) {
    return AN_PAGE * an_dtype_size(kind == AN_WEIGHTS_LOW ? o->plan->low : o->plan->sizes.trainable_dtype);
}

static void expect_bytes(const char *memory, int byte, size_t bytes, const char *what) {
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)memory[i] != byte) fail_msg("%s is written to, at byte %zu", what, i);
}

static an_status gather(void *user, int form, int region, void *const roots[AN_WEIGHT_KINDS]) {
    others *o = user;
    const an_shard_plan *s = o->plan->forms[form]->shard;
    assert_int_equal(region, o->posted++);
    assert_true(region < s->region_count && region < 256);
    assert_true(region <= o->arrived + 1); /* one is on its way, and the next */
    for (int kind = 0; kind < AN_WEIGHT_KINDS; kind++) {
        const an_region_root *root = &s->regions[region].roots[kind];
        assert_int_equal(roots[kind] != NULL, root->pages > 0);
        o->roots[region][kind] = roots[kind];
        if (roots[kind]) memset(roots[kind], POISON, (size_t)root->pages * page_bytes(o, kind));
    }
    return AN_OK;
}

static an_status wait_region(void *user, int form, int region) {
    others *o = user;
    const an_shard_plan *s = o->plan->forms[form]->shard;
    if (region == o->arrived - 1) return AN_OK; /* its second root */
    assert_int_equal(region, o->arrived++);
    assert_true(o->posted > region && o->posted <= s->region_count); /* test_prefetch says when the next is posted */
    for (int kind = 0; kind < AN_WEIGHT_KINDS; kind++) {
        const an_region_root *root = &s->regions[region].roots[kind];
        const size_t page = page_bytes(o, kind);
        char *dst = o->roots[region][kind];
        int64_t at = 0;
        if (root->pages == 0) continue;
        expect_bytes(dst, POISON, (size_t)root->pages * page, "a root that is on its way");
        const char *src = kind == AN_WEIGHTS_LOW ? o->whole->low : o->whole->masters;
        for (int i = 0; i < root->run_count; i++) {
            const an_region_run *run = &root->runs[i];
            assert_int_equal(run->at, at);
            memcpy(dst + (size_t)at * page, src + (size_t)run->pages.begin * page,
                   (size_t)(run->pages.end - run->pages.begin) * page);
            at += run->pages.end - run->pages.begin;
        }
        assert_int_equal(at, root->pages);
    }
    return AN_OK;
}

static void find_unit(const others *o, int unit, size_t *begin, size_t *bytes) {
    an_unit units[256];
    assert_true(o->plan->model->parameter_count <= 256);
    assert_true(unit < an_units_find(o->plan->model, units, NULL, NULL));
    const size_t size = an_dtype_size(o->plan->sizes.trainable_dtype);
    *begin = (size_t)units[unit].begin * size;
    *bytes = (size_t)(units[unit].end - units[unit].begin) * size;
}

static an_status send(void *user, int unit, void *root, an_status failed) {
    others *o = user;
    size_t begin, bytes;
    (void)failed;
    assert_int_equal(o->scattered, NONE);
    find_unit(o, unit, &begin, &bytes);
    o->scattered = unit;
    o->root = root;
    o->copy = malloc(bytes);
    assert_non_null(o->copy);
    memcpy(o->copy, root, bytes);
    return AN_OK;
}

static an_status wait_sent(void *user, int unit) {
    others *o = user;
    size_t begin, bytes;
    assert_int_equal(o->scattered, unit);
    find_unit(o, unit, &begin, &bytes);
    if (memcmp(o->root, o->copy, bytes) != 0) fail_msg("unit %d has changed while it left", unit);
    memcpy(o->gradients + begin, o->copy, bytes);
    free(o->copy);
    o->copy = NULL;
    o->scattered = NONE;
    o->units |= UINT64_C(1) << unit;
    o->scatters++;
    return AN_OK;
}

/* NULL: nobody exchanges anything. */
static void join(an_program *program, others *o) {
    program->exchange = (an_exchange){
        .gradients = {.user = o, .is_open = o != NULL, .send_unit = send, .wait_sent = wait_sent},
        .weights = {.user = o, .is_open = o != NULL, .gather = gather, .wait_region = wait_region},
    };
}

/* ---- the same bits ---- */

static void prepare(an_context *ctx, an_program *program, int run) {
    if (program->arena) memset(program->arena, POISON, (size_t)program->plan->arena_bytes);
    OK(ctx, an_program_bind(program, "batch", BATCH - run));
    feed(ctx, program, (uint64_t)run);
    if (an_program_set_scalar_i64(program, "seed", 42) == AN_OK)
        OK(ctx, an_program_set_scalar_i64(program, "step", run)); /* where there is dropout */
}

static void compare_outputs(an_context *ctx, const an_program *a, const an_program *b, an_form form) {
    const an_program_form *f = &a->forms[form];
    assert_int_equal(f->tables.outputs, b->forms[form].tables.outputs);
    for (size_t i = 0; i < f->tables.outputs; i++) {
        const an_program *const both[] = {a, b};
        char *data[2];
        size_t bytes = 0;
        for (int k = 0; k < 2; k++) {
            an_array array = {0};
            data[k] = calloc(1, 1 << 20);
            assert_non_null(data[k]);
            array.data = data[k];
            OK(ctx, an_program_get_output(both[k], f->outputs[i].name, &array));
            bytes = an_dtype_size(array.dtype);
            for (int d = 0; d < array.ndims; d++) bytes *= (size_t)array.dims[d];
            assert_true(bytes <= 1 << 20);
        }
        if (memcmp(data[0], data[1], bytes) != 0) fail_msg("form %d: '%s' has other bits", form, f->outputs[i].name);
        free(data[0]);
        free(data[1]);
    }
}

static void compare_gradients(const others *o, const an_params *whole) {
    const char *expected = whole->gradients;
    for (size_t i = 0; i < whole->parameter_count; i++) {
        const an_stored *e = &whole->entries[i];
        if (e->storage != AN_STORAGE_MASTER) continue;
        const size_t bytes = (size_t)e->elements * an_dtype_size(e->dtype);
        if (memcmp(expected + e->offset, o->gradients + e->offset, bytes) != 0)
            fail_msg("the gradient of '%s' has other bits", e->name);
    }
    /* … and what lies behind them is zeros. */
    assert_memory_equal(expected, o->gradients, (size_t)an_params_flat_bytes(&whole->sizes));
}

typedef struct {
    an_context *ctx;
    ledger *memory;
    an_params *whole, *own;
    an_program *ordinary, *divided;
    others o;
} pair;

static void run_both(pair *p, an_form form, int run, bool gathers, bool scatters) {
    others *o = &p->o;
    const size_t flat = (size_t)an_params_flat_bytes(&p->whole->sizes);
    prepare(p->ctx, p->ordinary, run);
    OK(p->ctx, an_program_run(p->ordinary, form));
    prepare(p->ctx, p->divided, run);
    o->posted = o->arrived = o->scatters = 0;
    o->units = 0;
    memset(o->gradients, POISON, flat);
    join(p->divided, o);
    const long calls = p->memory->calls;
    OK(p->ctx, an_program_run(p->divided, form));
    assert_int_equal(p->memory->calls, calls);
    join(p->divided, NULL);
    compare_outputs(p->ctx, p->ordinary, p->divided, form);
    const an_graph *g = o->plan->forms[form];
    assert_int_equal(o->posted, gathers ? g->shard->region_count : 0);
    assert_int_equal(o->arrived, o->posted);
    assert_int_equal(o->scattered, NONE);
    const bool leave = form == AN_FORM_TRAIN_FIRST && scatters;
    if (leave) {
        an_unit units[256];
        const int count = an_units_find(o->plan->model, units, NULL, NULL);
        assert_int_equal(o->scatters, count);
        assert_int_equal(o->units, (UINT64_C(1) << count) - 1);
        compare_gradients(o, p->whole);
    } else {
        assert_int_equal(o->scatters, 0);
    }
}

static void check_trial(an_context *ctx, ledger *memory, const an_graph *g, const trial *t) {
    const bool gathers = t->shard >= AN_SHARD_FULL, scatters = t->shard >= AN_SHARD_GRADIENTS;
    pair p = {.ctx = ctx, .memory = memory, .o = {.scattered = NONE}};
    an_plan *plans[2] = {0};
    trial ordinary = *t;
    ordinary.shard = AN_SHARD_NONE;
    OK(ctx, plan_trial(&plans[0], ctx, g, &ordinary));
    OK(ctx, plan_trial(&plans[1], ctx, g, t));
    OK(ctx, an_params_create(&p.whole, ctx, g, NULL));
    OK(ctx, an_params_reset(p.whole, 3));
    OK(ctx, an_program_create(&p.ordinary, plans[0], p.whole));
    const size_t before = memory->held;
    OK(ctx, an_params_create(&p.own, ctx, g, NULL));
    OK(ctx, an_program_create(&p.divided, plans[1], p.own));
    assert_int_equal(memory->held - before, memory_of(plans[1]).peak);
    OK(ctx, an_params_reset(p.own, 3));
    const size_t flat = (size_t)an_params_flat_bytes(&p.own->sizes);
    if (gathers) memset(p.own->masters, POISON, flat);
    if (scatters) memset(p.own->gradients, 0x5a, flat);
    p.o.plan = plans[1];
    p.o.whole = p.whole;
    p.o.gradients = malloc(flat);
    assert_non_null(p.o.gradients);
    for (int run = 0; run < 2; run++) {
        run_both(&p, AN_FORM_TRAIN_FIRST, run, gathers, scatters);
        if (g->loss) run_both(&p, AN_FORM_EVALUATE, run, gathers, scatters);
        run_both(&p, AN_FORM_PREDICT, run, gathers, scatters);
    }
    assert_null(scatters ? plans[1]->forms[AN_FORM_TRAIN_NEXT] : NULL);
    if (scatters) expect_bytes(p.own->gradients, 0x5a, flat, "the flat buffer of gradients");
    free(p.o.gradients);
    an_program_destroy(&p.divided);
    an_program_destroy(&p.ordinary);
    an_params_destroy(&p.own);
    an_params_destroy(&p.whole);
    for (int i = 0; i < 2; i++) an_plan_destroy(&plans[i]);
}

typedef an_status (*builder)(an_graph **g, an_context *ctx);

static void check_model(builder build, const trial *trials, size_t count) {
    ledger memory = {0};
    an_context *ctx = NULL;
    an_graph *g = NULL;
    assert_int_equal(context_with_ledger(&ctx, &memory, 2), AN_OK);
    OK(ctx, build(&g, ctx));
    OK(ctx, an_graph_verify(g));
    for (size_t i = 0; i < count; i++) check_trial(ctx, &memory, g, &trials[i]);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
    assert_int_equal(memory.held, 0);
    assert_false(memory.mismatch);
}

#define CHECK(build, ...) \
    check_model(build, (const trial[]){__VA_ARGS__}, sizeof((const trial[]){__VA_ARGS__}) / sizeof(trial))

static void test_gpt(void **state) {
    (void)state;
    static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16, AN_DTYPE_F16};
    static const an_recompute modes[] = {AN_RECOMPUTE_NONE, AN_RECOMPUTE_BLOCK, AN_RECOMPUTE_FULL};
    trial trials[3 * 3 * 2 * 3];
    size_t count = 0;
    for (int p = 0; p < 3; p++)
        for (int m = 0; m < 3; m++)
            for (int unfused = 0; unfused < 2; unfused++)
                for (an_shard shard = AN_SHARD_GRADIENTS; shard <= AN_SHARD_HYBRID; shard++) {
#ifdef ANNEAL_SANITIZED
                    /* It looks at accesses, and not at bits: any two of the four, and not all four, with each other. */
                    if ((p + m + unfused + (int)shard) % 3 != 0) continue;
#endif
                    trials[count++] =
                        (trial){.precision = precisions[p], .recompute = modes[m], .unfused = unfused, .shard = shard};
                }
    check_model(build_gpt, trials, count);
}

static void test_joined_units(void **state) {
    (void)state;
    static const int64_t minimum[] = {2 * AN_PAGE + 1, 21 * AN_PAGE, INT64_MAX};
    for (int i = 0; i < 3; i++)
        CHECK(build_gpt, {.shard = AN_SHARD_FULL, .min_elements = minimum[i]},
              {.shard = AN_SHARD_FULL,
               .min_elements = minimum[i],
               .precision = AN_DTYPE_BF16,
               .recompute = AN_RECOMPUTE_BLOCK},
              {.shard = AN_SHARD_GRADIENTS, .min_elements = minimum[i]});
}

static void test_other_models(void **state) {
    (void)state;
    static const builder builders[] = {build_llama, build_mlp, build_cnn, build_odd, build_many};
    for (size_t i = 0; i < sizeof builders / sizeof *builders; i++)
        CHECK(builders[i], {.shard = AN_SHARD_GRADIENTS}, {.shard = AN_SHARD_FULL},
              {.shard = AN_SHARD_FULL, .precision = AN_DTYPE_BF16}, {.shard = AN_SHARD_FULL, .unfused = true},
              {.shard = AN_SHARD_FULL, .min_elements = 5 * AN_PAGE});
}

/* ---- what is gathered when ---- */

/* Blocks of some size, so that the last norm is a small unit. */
static an_status build_wide(an_graph **g, an_context *ctx) {
    an_gpt2_options o;
    an_gpt2_options_init(&o, sizeof o);
    o.layers = 4;
    o.heads = 2;
    o.width = 96;
    o.context = TOKENS;
    o.vocabulary = 2000;
    const an_status status = an_model_gpt2(g, ctx, &o);
    return status == AN_OK ? an_graph_verify(*g) : status;
}

typedef struct {
    an_context *ctx;
    an_graph *g;
    an_plan *plan;
} wide;

static wide open_wide(const trial *t) {
    wide w = {0};
    assert_int_equal(an_context_create(&w.ctx, NULL), AN_OK);
    OK(w.ctx, build_wide(&w.g, w.ctx));
    OK(w.ctx, plan_trial(&w.plan, w.ctx, w.g, t));
    return w;
}

static void close_wide(wide *w) {
    an_plan_destroy(&w->plan);
    an_graph_destroy(&w->g);
    an_context_destroy(&w->ctx);
}

static void expect_regions(const an_plan *plan, an_form form, const char *expected) {
    const an_shard_plan *s = plan->forms[form]->shard;
    char words[512] = "";
    for (int i = 0; i < s->region_count; i++) {
        const size_t length = strlen(words);
        snprintf(words + length, sizeof words - length, "%s%s", i ? ", " : "", s->regions[i].name);
    }
    assert_string_equal(words, expected);
}

static int64_t pages_of(const an_plan *plan, an_form form, an_weight_kind kind) {
    const an_shard_plan *s = plan->forms[form]->shard;
    int64_t pages = 0;
    for (int i = 0; i < s->region_count; i++) pages += s->regions[i].roots[kind].pages;
    return pages;
}

/* The table is gathered for the embedding and for the head; the last block stays from forward to backward; every
 * other block is gathered twice. No more than twice the model moves. */
static void test_regions(void **state) {
    (void)state;
    static const an_recompute modes[] = {AN_RECOMPUTE_NONE, AN_RECOMPUTE_BLOCK};
    for (int i = 0; i < 4; i++) {
        const trial t = {
            .shard = AN_SHARD_FULL, .recompute = modes[i % 2], .precision = i < 2 ? AN_DTYPE_NONE : AN_DTYPE_BF16};
        wide w = open_wide(&t);
        expect_regions(w.plan, AN_FORM_TRAIN_FIRST,
                       "wte.weight, the rest of the model, h.0, h.1, h.2, h.3, ln_f, wte.weight, h.2, h.1, h.0");
        expect_regions(w.plan, AN_FORM_EVALUATE,
                       "wte.weight, the rest of the model, h.0, h.1, h.2, h.3, ln_f, wte.weight");
        expect_regions(w.plan, AN_FORM_PREDICT,
                       "wte.weight, the rest of the model, h.0, h.1, h.2, h.3, ln_f, wte.weight");
        const int64_t n = w.plan->sizes.trainable_elements / AN_PAGE;
        const int64_t pages = pages_of(w.plan, AN_FORM_TRAIN_FIRST, AN_WEIGHTS_MASTER) +
                              pages_of(w.plan, AN_FORM_TRAIN_FIRST, AN_WEIGHTS_LOW);
        assert_true(pages > n && pages <= 2 * n);
        if (i < 2) assert_int_equal(pages_of(w.plan, AN_FORM_TRAIN_FIRST, AN_WEIGHTS_LOW), 0);
        if (i >= 2) /* only the embedding, norms and biases are read in f32 */
            assert_true(pages_of(w.plan, AN_FORM_TRAIN_FIRST, AN_WEIGHTS_MASTER) < n);
        close_wide(&w);
    }
}

static int64_t region_of(const an_node *gather) {
    return *(const int64_t *)an_node_attribute(gather, "region", AN_ATTRIBUTE_INT);
}

/* While a region is on its way, something is computed with the weights of others; a larger one that is let go
 * meanwhile is not in memory with it. */
static void check_prefetch(const an_graph *g) {
    const an_shard_plan *s = g->shard;
    int64_t readers[64] = {0}, posted[64]; /* since the region was posted; the count when it was */
    int64_t first[64], last[64], count = 0;
    assert_true(s->region_count <= 64);
    for (int i = 0; i < s->region_count; i++) posted[i] = first[i] = last[i] = -1;
    for (const an_node *n = g->first; n; n = n->next) {
        if (!strcmp(n->op->name, "gather_weights")) posted[region_of(n)] = count;
        if (!an_node_runs(n) || n->op->flags & AN_OP_COMMUNICATION) continue;
        bool reads = false;
        for (int i = 0; i < n->input_count; i++) {
            const an_result *r = an_node_input(n, i);
            if (!r || strcmp(r->root->node->op->name, "gather_weights") != 0) continue;
            const int64_t region = region_of(r->root->node);
            if (first[region] < 0) {
                readers[region] = count - posted[region];
                first[region] = count;
            }
            last[region] = count;
            reads = true;
        }
        count += reads;
    }
    for (int i = 1; i < s->region_count; i++) {
        if (posted[i] < 0 || readers[i] < 1) fail_msg("region %d of '%s' is not prefetched", i, s->regions[i].name);
        for (int k = 0; k < i; k++)
            if (s->regions[k].unit == 0 && s->regions[i].unit > 0 && last[k] >= posted[i] && last[k] < first[i] - 1)
                fail_msg("region %d of '%s' is gathered while the table is still there", i, s->regions[i].name);
    }
}

static void test_prefetch(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        wide w = open_wide(&(trial){.shard = AN_SHARD_FULL,
                                    .recompute = i & 1 ? AN_RECOMPUTE_BLOCK : AN_RECOMPUTE_NONE,
                                    .precision = i & 2 ? AN_DTYPE_BF16 : AN_DTYPE_NONE});
        check_prefetch(w.plan->forms[AN_FORM_TRAIN_FIRST]);
        check_prefetch(w.plan->forms[AN_FORM_EVALUATE]);
        close_wide(&w);
    }
}

/* A root of weights is let go before the next but one is gathered; the gradient of the tied table lives from the
 * head to the end, by a name. */
static void test_lives(void **state) {
    (void)state;
    wide w = open_wide(&(trial){.shard = AN_SHARD_FULL});
    int64_t last = an_plan_life_count(w.plan, AN_FORM_TRAIN_FIRST), end = 0, tables = 0, before[2] = {-1, -1};
    for (int64_t i = 0; i < last; i++) {
        an_plan_life life;
        an_plan_life_init(&life, sizeof life);
        OK(w.ctx, an_plan_life_get(w.plan, AN_FORM_TRAIN_FIRST, i, &life));
        if (life.end > end) end = life.end;
        const bool stays = !strcmp(life.path, "h.3") || !strcmp(life.path, "ln_f"); /* until backward */
        if (!strcmp(life.op, "gather_weights") && !stays) {
            assert_true(before[0] < life.begin);
            before[0] = before[1];
            before[1] = life.end;
        }
        if (strcmp(life.op, "collect_gradients") != 0 || strcmp(life.path, "wte.weight") != 0) continue;
        assert_true(life.bytes >= 2000 * 96 * (int64_t)sizeof(float));
        tables++;
        assert_true(life.end > end - 2);
    }
    assert_int_equal(tables, 1);
    close_wide(&w);
}

/* ---- what goes wrong ---- */

/* Communication alone, before sizes are bound: a rank without samples takes part in every region and unit. */
static void test_communication_alone(void **state) {
    (void)state;
    wide w = open_wide(&(trial){.shard = AN_SHARD_FULL, .precision = AN_DTYPE_BF16});
    an_params *params = NULL;
    an_program *program = NULL;
    OK(w.ctx, an_params_create(&params, w.ctx, w.g, NULL));
    OK(w.ctx, an_program_create(&program, w.plan, params));
    others o = {.plan = w.plan, .whole = params, .scattered = NONE};
    o.gradients = malloc((size_t)an_params_flat_bytes(&params->sizes));
    assert_non_null(o.gradients);
    OK(w.ctx, an_params_refresh(params));
    join(program, &o);
    an_program_communicate(program, AN_FORM_TRAIN_FIRST, AN_OK);
    join(program, NULL);
    assert_int_equal(o.arrived, w.plan->forms[AN_FORM_TRAIN_FIRST]->shard->region_count);
    assert_int_equal(o.scatters, 7);
    FAILS(w.ctx, an_program_run(program, AN_FORM_EVALUATE), AN_ERR_STATE, "nobody gathers them");
    FAILS(w.ctx, an_program_run(program, AN_FORM_TRAIN_NEXT), AN_ERR_ARGUMENT, "does not have this form");
    free(o.gradients);
    an_program_destroy(&program);
    an_params_destroy(&params);
    close_wide(&w);
}

static void test_every_allocation_fails(void **state) {
    (void)state;
    ledger memory = {0};
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_plan *plan = NULL;
    assert_int_equal(context_with_ledger(&ctx, &memory, 1), AN_OK);
    OK(ctx, build_odd(&g, ctx));
    OK(ctx, an_graph_verify(g));
    const size_t before = memory.held;
    long failed = 0;
    for (an_status status = AN_ERR_MEMORY; status != AN_OK; failed++) {
        memory.calls = 0;
        memory.fail_at = failed + 1;
        memory.once = true;
        status = plan_trial(&plan, ctx, g, &(trial){.shard = AN_SHARD_FULL});
        memory.fail_at = 0;
        if (status != AN_OK) assert_int_equal(status, AN_ERR_MEMORY);
        an_plan_destroy(&plan);
        assert_int_equal(memory.held, before);
    }
    assert_true(failed > 50);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt),
        cmocka_unit_test(test_joined_units),
        cmocka_unit_test(test_other_models),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_communication_alone),
        cmocka_unit_test(test_every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
