/* A parameter store in pieces: what ranks own together is the whole store, bit for bit; what is there is what was
 * planned, to the byte; what is not cannot be reached. */
#include "base/device.h"
#include "exec/params.h"
#include "exec/program.h"
#include "recompute_models.h"
#include "support/mappings.h"

enum { MOST_RANKS = 8, SEED = 7 };

static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16};
static const an_shard shardings[] = {AN_SHARD_NONE, AN_SHARD_OPTIMIZER, AN_SHARD_GRADIENTS, AN_SHARD_FULL,
                                     AN_SHARD_HYBRID};

typedef struct {
    ledger memory;
    an_context *ctx;
    an_graph *g;
    an_plan *plan;
    an_params *whole; /* without pieces, at the same values */
} model;

static void open_model(model *m, an_dtype precision) {
    *m = (model){0};
    assert_int_equal(context_with_ledger(&m->ctx, &m->memory, 2), AN_OK);
    OK(m->ctx, build_gpt(&m->g, m->ctx));
    OK(m->ctx, an_graph_verify(m->g));
    OK(m->ctx, plan_choice(&m->plan, m->ctx, m->g, (choice){.precision = precision}));
    OK(m->ctx, an_params_create(&m->whole, m->ctx, m->g, NULL));
    OK(m->ctx, an_params_reset(m->whole, SEED));
    OK(m->ctx, an_params_need_low(m->whole, m->plan->low));
    OK(m->ctx, an_params_refresh(m->whole));
}

static void close_model(model *m) {
    an_params_destroy(&m->whole);
    an_plan_destroy(&m->plan);
    an_graph_destroy(&m->g);
    an_context_destroy(&m->ctx);
    assert_int_equal(m->memory.held, 0);
    assert_false(m->memory.mismatch);
    assert_int_equal(mappings.held, 0);
}

/* A rank and what it has. */
typedef struct {
    an_shards *shards;
    an_params_pieces pieces;
    an_params *params;
} part;

static an_status make_part(const model *m, part *r, an_shard sharding, int ranks, int rank) {
    *r = (part){0};
    an_status status =
        an_shards_create(&r->shards, m->ctx, m->plan, &(an_shards_options){.ranks = ranks, .rank = rank});
    r->pieces = (an_params_pieces){.shards = r->shards, .sharding = sharding};
    if (status == AN_OK) status = an_params_create_in(&r->params, m->ctx, m->g, NULL, &r->pieces);
    if (status == AN_OK) status = an_params_reset(r->params, SEED);
    if (status == AN_OK) status = an_params_need_low(r->params, m->plan->low);
    if (status == AN_OK) status = an_params_refresh(r->params);
    return status;
}

static void drop_part(part *r) {
    an_params_destroy(&r->params);
    an_shards_destroy(&r->shards);
}

static const an_page_runs *set_of(const part *r, an_flat flat) {
    return &r->shards->sets[an_params_pieces_set(&r->pieces, flat)];
}

static bool has_page(const an_page_runs *runs, int64_t page) {
    return an_page_runs_have(runs, &(an_page_range){page, page + 1});
}

static void compare_page(const void *a, const void *b, int64_t page, size_t page_bytes, const char *what) {
    const size_t at = (size_t)page * page_bytes;
    if (memcmp((const char *)a + at, (const char *)b + at, page_bytes))
        fail_msg("page %lld of the %s differs", (long long)page, what);
}

/* ---- the same bits ---- */

/* Masters have their values wherever they are; low copies where the rank owns them, and are zeros elsewhere
 * until they are gathered. */
static void check_pages(const model *m, const part *r, int *owners) {
    static const char zeros[AN_PAGE * sizeof(double)];
    const size_t f32 = AN_PAGE * sizeof(float), low = AN_PAGE * an_dtype_size(m->plan->low);
    const bool all = r->pieces.sharding == AN_SHARD_NONE;
    for (int64_t page = 0; page < r->shards->pages; page++) {
        const bool own = has_page(&r->shards->sets[AN_PAGES_OWN], page);
        owners[page] += own;
        if (own) assert_true(has_page(set_of(r, AN_FLAT_MASTERS), page));
        if (has_page(set_of(r, AN_FLAT_MASTERS), page))
            compare_page(r->params->masters, m->whole->masters, page, f32, "masters");
        if (low == 0 || !has_page(set_of(r, AN_FLAT_LOW), page)) continue;
        if (own || all)
            compare_page(r->params->low, m->whole->low, page, low, "low copies");
        else
            assert_memory_equal((char *)r->params->low + (size_t)page * low, zeros, low);
    }
}

static void test_the_union_is_the_whole_store(void **state) {
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        model m;
        open_model(&m, precisions[p]);
        const int64_t pages = m.plan->sizes.trainable_elements / AN_PAGE;
        int *owners = calloc((size_t)pages, sizeof *owners);
        assert_non_null(owners);
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
            for (size_t s = 0; s < AN_SHARD_COUNT; s++) {
                memset(owners, 0, (size_t)pages * sizeof *owners);
                for (int rank = 0; rank < ranks; rank++) {
                    part r;
                    OK(m.ctx, make_part(&m, &r, shardings[s], ranks, rank));
                    check_pages(&m, &r, owners);
                    drop_part(&r);
                }
                for (int64_t page = 0; page < pages; page++) assert_int_equal(owners[page], 1);
            }
        }
        free(owners);
        close_model(&m);
    }
}

/* ---- memory ---- */

/* What a store takes, as a plan counts it. */
static int64_t planned_bytes(const model *m, const an_params_pieces *pieces) {
    const an_flat_sizes *sizes = &m->plan->sizes;
    const an_dtype dtype = sizes->trainable_dtype;
    return an_params_table_bytes(m->plan->model) + sizes->frozen_bytes + sizes->state_bytes +
           an_params_buffer_bytes(sizes, pieces, AN_FLAT_MASTERS, dtype) +
           an_params_buffer_bytes(sizes, pieces, AN_FLAT_LOW, m->plan->low) +
           an_params_buffer_bytes(sizes, pieces, AN_FLAT_GRADIENTS, dtype) +
           2 * an_params_buffer_bytes(sizes, pieces, AN_FLAT_MOMENTS, dtype);
}

static void check_share(const part *r, const an_flat_sizes *sizes, an_flat flat, an_dtype dtype) {
    const int64_t page = sysconf(_SC_PAGESIZE), ranks = r->shards->ranks,
                  whole = an_params_buffer_bytes(sizes, NULL, flat, dtype),
                  bytes = an_params_buffer_bytes(sizes, &r->pieces, flat, dtype);
    /* A page of the grid more or less, and half pages of the system at both ends where a page of the grid is
     * smaller. */
    const int64_t grid = AN_PAGE * (int64_t)an_dtype_size(dtype), maximum = grid < page ? 2 * page : grid;
    if (llabs(bytes - whole / ranks) > r->shards->unit_count * maximum)
        fail_msg("rank %d of %d has %lld bytes of %lld", r->shards->rank, r->shards->ranks, (long long)bytes,
                 (long long)whole);
}

static void test_planned_is_allocated(void **state) {
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        model m;
        open_model(&m, precisions[p]);
        const int64_t whole = planned_bytes(&m, NULL);
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
            int64_t before_it = INT64_MAX; /* of the strategy that divides less */
            for (size_t s = 0; s < AN_SHARD_COUNT; s++) {
                int64_t bytes = 0;
                for (int rank = 0; rank < ranks; rank++) {
                    const size_t before = an_context_bytes(m.ctx);
                    part r;
                    OK(m.ctx, make_part(&m, &r, shardings[s], ranks, rank));
                    const int64_t planned = planned_bytes(&m, &r.pieces);
                    assert_int_equal((int64_t)(an_context_bytes(m.ctx) - before), planned + an_shards_bytes(r.shards));
                    for (int flat = 0; flat < AN_FLATS; flat++)
                        if (an_params_pieces_set(&r.pieces, (an_flat)flat) == AN_PAGES_OWN)
                            check_share(&r, &m.plan->sizes, (an_flat)flat,
                                        flat == AN_FLAT_LOW ? m.plan->low : AN_DTYPE_F32);
                    if (shardings[s] == AN_SHARD_NONE) assert_int_equal(planned, whole);
                    bytes += planned;
                    drop_part(&r);
                    assert_int_equal(an_context_bytes(m.ctx), before);
                    assert_int_equal(mappings.held, 0);
                }
                if (shardings[s] == AN_SHARD_HYBRID)
                    assert_int_equal(bytes, before_it);
                else if (ranks > 1)
                    assert_true(bytes < before_it);
                before_it = bytes;
            }
        }
        close_model(&m);
    }
}

/* What each strategy must have, said once more: the pages that a rank owns, and those of parameters
 * that are read in this type. */
static void test_what_is_where(void **state) {
    (void)state;
    enum { OWN, ALL, READ, OWN_OR_READ };
    static const int expected[AN_SHARD_COUNT][AN_FLATS] = {
        [AN_SHARD_NONE] = {ALL, ALL, ALL, ALL},
        [AN_SHARD_OPTIMIZER] = {OWN_OR_READ, READ, ALL, OWN},
        [AN_SHARD_GRADIENTS] = {OWN_OR_READ, READ, OWN, OWN},
        [AN_SHARD_FULL] = {OWN, OWN, OWN, OWN},
        [AN_SHARD_HYBRID] = {OWN, OWN, OWN, OWN},
    };
    model m;
    open_model(&m, AN_DTYPE_BF16);
    uint8_t reads[64];
    assert_true(m.whole->parameter_count <= sizeof reads);
    an_plan_find_reads(m.plan, reads);
    for (size_t s = 0; s < AN_SHARD_COUNT; s++) {
        part r;
        OK(m.ctx, make_part(&m, &r, shardings[s], 3, 1));
        for (int flat = 0; flat < AN_FLATS; flat++) {
            const uint8_t bit = flat == AN_FLAT_MASTERS ? AN_READS_MASTER : flat == AN_FLAT_LOW ? AN_READS_LOW : 0;
            for (size_t i = 0; i < m.whole->parameter_count; i++) {
                const an_parameter *p = &m.plan->model->parameters[i];
                const int wanted = expected[s][flat];
                const bool all = wanted == ALL || (wanted >= READ && reads[i] & bit), own = wanted != READ;
                for (int64_t page = p->offset / AN_PAGE; page * AN_PAGE < p->offset + p->elements; page++)
                    assert_int_equal(has_page(set_of(&r, (an_flat)flat), page),
                                     all || (own && has_page(&r.shards->sets[AN_PAGES_OWN], page)));
            }
        }
        drop_part(&r);
    }
    close_model(&m);
}

/* In f32 every master is read; in bf16 matrices are not, so their masters are in pieces. */
static void test_what_is_whole(void **state) {
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        model m;
        open_model(&m, precisions[p]);
        const an_flat_sizes *sizes = &m.plan->sizes;
        part r;
        OK(m.ctx, make_part(&m, &r, AN_SHARD_OPTIMIZER, 4, 1));
        const int64_t masters = an_params_buffer_bytes(sizes, &r.pieces, AN_FLAT_MASTERS, AN_DTYPE_F32);
        if (p == 0)
            assert_int_equal(masters, an_params_flat_bytes(sizes));
        else
            assert_true(masters < an_params_flat_bytes(sizes) * 3 / 4);
        assert_int_equal(an_params_buffer_bytes(sizes, &r.pieces, AN_FLAT_GRADIENTS, AN_DTYPE_F32),
                         an_params_flat_bytes(sizes));
        drop_part(&r);
        close_model(&m);
    }
}

static void check_buffer(const part *r, const void *base, an_flat flat, an_dtype dtype) {
    const int64_t page_bytes = AN_PAGE * (int64_t)an_dtype_size(dtype), size = sysconf(_SC_PAGESIZE);
    for (int64_t page = 0; page < r->shards->pages; page++) {
        /* A page shares one of the system with its neighbours if it is smaller. */
        const an_page_range near = {page * page_bytes / size * size / page_bytes,
                                    ((page * page_bytes / size + 1) * size + page_bytes - 1) / page_bytes};
        bool there = has_page(set_of(r, flat), page);
        for (int64_t i = near.begin; i < near.end && page_bytes < size; i++)
            there = there || has_page(set_of(r, flat), i);
        assert_int_equal(is_mapped((const char *)base + page * page_bytes), there);
    }
}

static void test_what_is_not_there_cannot_be_touched(void **state) {
    (void)state;
    model m;
    open_model(&m, AN_DTYPE_BF16);
    for (size_t s = 0; s < AN_SHARD_COUNT; s++) {
        part r;
        OK(m.ctx, make_part(&m, &r, shardings[s], 3, 1));
        check_buffer(&r, r.params->masters, AN_FLAT_MASTERS, AN_DTYPE_F32);
        check_buffer(&r, r.params->low, AN_FLAT_LOW, AN_DTYPE_BF16);
        check_buffer(&r, r.params->gradients, AN_FLAT_GRADIENTS, AN_DTYPE_F32);
        for (int i = 0; i < 2; i++) check_buffer(&r, r.params->moments[i], AN_FLAT_MOMENTS, AN_DTYPE_F32);
        /* Gradients may go and come back. */
        const size_t bytes = an_context_bytes(m.ctx);
        an_params_drop_gradients(r.params);
        assert_null(r.params->gradients);
        assert_int_equal((int64_t)(bytes - an_context_bytes(m.ctx)),
                         an_params_buffer_bytes(&m.plan->sizes, &r.pieces, AN_FLAT_GRADIENTS, AN_DTYPE_F32));
        OK(m.ctx, an_params_make_gradients(r.params));
        assert_int_equal(an_context_bytes(m.ctx), bytes);
        check_buffer(&r, r.params->gradients, AN_FLAT_GRADIENTS, AN_DTYPE_F32);
        drop_part(&r);
    }
    close_model(&m);
}

static void test_every_allocation_fails(void **state) {
    (void)state;
    for (size_t s = 0; s < AN_SHARD_COUNT; s++) {
        model m;
        open_model(&m, AN_DTYPE_BF16);
        const size_t before = an_context_bytes(m.ctx);
        for (int maps = 0; maps < 2; maps++) { /* those of the context's allocator, then those of the system */
            long failed = 0;
            for (an_status status = AN_ERR_MEMORY; status != AN_OK; failed++) {
                part r;
                m.memory.calls = mappings.calls = 0;
                m.memory.once = true;
                m.memory.fail_at = maps ? 0 : failed + 1;
                mappings.fail_at = maps ? failed + 1 : 0;
                status = make_part(&m, &r, shardings[s], 3, 1);
                m.memory.fail_at = mappings.fail_at = 0;
                if (status != AN_OK && status != AN_ERR_MEMORY)
                    fail_msg("call %ld failed and gave %s: %s", failed + 1, an_status_name(status),
                             an_last_error(m.ctx));
                drop_part(&r);
                assert_int_equal(an_context_bytes(m.ctx), before);
                assert_int_equal(mappings.held, 0);
            }
            if (!maps)
                assert_true(failed > 10);
            else
                assert_int_equal(failed > 10, shardings[s] != AN_SHARD_NONE);
        }
        close_model(&m);
    }
}

/* ---- by name ---- */

static an_status get_or_set(const model *m, an_params *params, const char *name, an_param_part which, bool sets,
                            float *values) {
    an_param_info info;
    an_param_info_init(&info, sizeof info);
    for (int64_t i = 0; i < an_params_count(params); i++) {
        OK(m->ctx, an_params_info(params, i, &info));
        if (strcmp(info.name, name)) continue;
        an_array array = array_of(values, AN_DTYPE_F32, info.ndims, info.dims);
        return sets ? an_params_set(params, name, which, &array) : an_params_get(params, name, which, &array);
    }
    fail_msg("there is no %s", name);
    return AN_ERR_UNKNOWN;
}

static void test_get_and_set(void **state) {
    (void)state;
    enum { ELEMENTS = 96 * 32 };
    static const char matrix[] = "h.1.attn.c_attn.weight", norm[] = "h.1.ln_1.weight";
    float a[ELEMENTS];
    model m;
    open_model(&m, AN_DTYPE_BF16);
    part r;
    OK(m.ctx,
       make_part(&m, &r, AN_SHARD_OPTIMIZER, 5, 3)); /* h.1 begins on this rank: two of the matrix's three pages */
    an_params *p = r.params;
    /* Ranks give each other what they own (tests/ranks/test_shard.c): alone, only setting works. */
    FAILS(m.ctx, get_or_set(&m, p, matrix, AN_PART_WEIGHT, false, a), AN_ERR_STATE, "divided among 5 ranks");
    FAILS(m.ctx, get_or_set(&m, p, norm, AN_PART_MOMENT_1, false, a), AN_ERR_STATE, "the context has 1");
    for (int i = 0; i < ELEMENTS; i++) a[i] = (float)i;
    OK(m.ctx, get_or_set(&m, p, matrix, AN_PART_WEIGHT, true, a));
    OK(m.ctx, get_or_set(&m, p, norm, AN_PART_WEIGHT, true, a));
    for (size_t i = 0; i < p->parameter_count; i++) {
        const an_stored *e = &p->entries[i];
        if (strcmp(e->name, matrix) != 0 && strcmp(e->name, norm) != 0) continue;
        const float *weights = (const float *)(const void *)((const char *)p->masters + e->offset);
        int64_t here = 0;
        for (int64_t first, end = 0; an_params_next(p, e, AN_FLAT_MASTERS, end, &first, &end); here += end - first)
            assert_memory_equal(weights + first, a + first, (size_t)(end - first) * sizeof *a);
        assert_int_equal(here, strcmp(e->name, norm) ? 2 * AN_PAGE : e->elements); /* the norm is read in f32 */
    }
    drop_part(&r);
    close_model(&m);
}

/* ---- programs ---- */

static double train_once(const model *m, an_params *params) {
    an_program *program = NULL;
    double loss;
    OK(m->ctx, an_program_create(&program, m->plan, params));
    feed(m->ctx, program, 3);
    OK(m->ctx, an_program_set_scalar_i64(program, "seed", 42));
    OK(m->ctx, an_program_run(program, AN_FORM_TRAIN_FIRST));
    OK(m->ctx, an_program_loss(program, &loss));
    an_program_destroy(&program);
    return loss;
}

static void test_programs_run_or_are_refused(void **state) {
    (void)state;
    model m;
    part r;
    an_program *program = NULL;
    open_model(&m, AN_DTYPE_NONE);
    const double loss = train_once(&m, m.whole);
    /* In f32 every rank has all masters, with their first values: the gradients of a step are the same bits. */
    OK(m.ctx, make_part(&m, &r, AN_SHARD_OPTIMIZER, 3, 1));
    assert_true(train_once(&m, r.params) == loss);
    assert_memory_equal(r.params->gradients, m.whole->gradients, (size_t)an_params_flat_bytes(&m.plan->sizes));
    drop_part(&r);
    OK(m.ctx, make_part(&m, &r, AN_SHARD_GRADIENTS, 3, 1));
    FAILS(m.ctx, an_program_create(&program, m.plan, r.params), AN_ERR_UNSUPPORTED,
          "writes whole gradients, but with ranks.shard gradients, rank 1 of 3");
    drop_part(&r);
    for (int rank = 0; rank < 3; rank++) {
        OK(m.ctx, make_part(&m, &r, AN_SHARD_FULL, 3, rank));
        FAILS(m.ctx, an_program_create(&program, m.plan, r.params), AN_ERR_UNSUPPORTED, "with ranks.shard full, rank");
        assert_null(program);
        drop_part(&r);
    }
    OK(m.ctx, make_part(&m, &r, AN_SHARD_FULL, 1, 0)); /* one rank has everything */
    assert_true(train_once(&m, r.params) == loss);
    drop_part(&r);
    close_model(&m);

    open_model(&m, AN_DTYPE_BF16);
    const double low_loss = train_once(&m, m.whole);
    OK(m.ctx, make_part(&m, &r, AN_SHARD_OPTIMIZER, 1, 0));
    assert_true(train_once(&m, r.params) == low_loss);
    drop_part(&r);
    OK(m.ctx, make_part(&m, &r, AN_SHARD_OPTIMIZER, 3, 1)); /* all that it reads has a place */
    OK(m.ctx, an_program_create(&program, m.plan, r.params));
    an_program_destroy(&program);
    drop_part(&r);
    /* Another plan than the map's: it reads masters that this rank does not have. */
    an_plan *f32 = NULL;
    OK(m.ctx, plan_choice(&f32, m.ctx, m.g, (choice){0}));
    OK(m.ctx, make_part(&m, &r, AN_SHARD_OPTIMIZER, 3, 1));
    FAILS(m.ctx, an_program_create(&program, f32, r.params), AN_ERR_UNSUPPORTED, "reads whole weights");
    drop_part(&r);
    an_plan_destroy(&f32);
    close_model(&m);
}

/* ---- what is refused ---- */

static void test_wrong_maps_and_devices(void **state) {
    (void)state;
    model m;
    part r;
    an_graph *other = NULL;
    an_params *params = NULL;
    open_model(&m, AN_DTYPE_NONE);
    OK(m.ctx, make_part(&m, &r, AN_SHARD_OPTIMIZER, 2, 0));
    OK(m.ctx, small_mlp(&other, m.ctx));
    FAILS(m.ctx, an_params_create_in(&params, m.ctx, other, NULL, &r.pieces), AN_ERR_ARGUMENT, "pages");
    assert_null(params);
    an_device device = an_device_host;
    device.name = "elsewhere";
    const an_device *host = m.ctx->device;
    m.ctx->device = &device;
    FAILS(m.ctx, an_params_create_in(&params, m.ctx, m.g, NULL, &r.pieces), AN_ERR_UNSUPPORTED, "elsewhere");
    assert_null(params);
    m.ctx->device = host;
    an_graph_destroy(&other);
    drop_part(&r);
    close_model(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_union_is_the_whole_store),
        cmocka_unit_test(test_planned_is_allocated),
        cmocka_unit_test(test_what_is_where),
        cmocka_unit_test(test_what_is_whole),
        cmocka_unit_test(test_what_is_not_there_cannot_be_touched),
        cmocka_unit_test(test_every_allocation_fails),
        cmocka_unit_test(test_get_and_set),
        cmocka_unit_test(test_programs_run_or_are_refused),
        cmocka_unit_test(test_wrong_maps_and_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
