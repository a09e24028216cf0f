/* Every byte of every file comes exactly once from its owner, whoever asks; both sides of a transfer
 * have it, in the same order. */
#include "store/route.h"

#include "store/ranks_support.h"

enum { MOST_RANKS = 8, MOST_FILES = 9, MOMENTS = 2 };

static an_context *ctx;
static ledger memory;
static an_graph *graph;
static an_plan *plan;
static const int64_t chunks[] = {1000, 4096, 20000, 64 << 20};
static const an_route_way ways[] = {AN_ROUTE_SAVE, AN_ROUTE_LOAD};

static int setup(void **state) {
    (void)state;
    assert_int_equal(context_with_ledger(&ctx, &memory, 1), AN_OK);
    OK(ctx, build_model(&graph, ctx));
    OK(ctx, plan_model(&plan, ctx, graph));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    an_plan_destroy(&plan);
    an_graph_destroy(&graph);
    an_context_destroy(&ctx);
    return memory.held != 0 || memory.mismatch;
}

/* The routes of all ranks. */
typedef struct {
    int ranks;
    an_save_layout *layout;
    an_shards *shards[MOST_RANKS];
    an_route *routes[MOST_RANKS];
    const an_shards *map; /* NULL: there is none */
    an_route_way way;
} routes;

/* groups: of ranks that divide the state; 0: nobody does */
static void open_routes(routes *r, int ranks, int writers, int groups, an_route_way way, int64_t chunk) {
    *r = (routes){.ranks = ranks, .way = way};
    OK(ctx, an_save_layout_create(&r->layout, ctx, graph, (an_kept){.moments = MOMENTS}, writers));
    for (int i = 0; i < ranks; i++) {
        const int each = groups > 0 ? ranks / groups : 0;
        const an_shards_options map = {
            .ranks = each, .rank = each ? i % each : 0, .groups = groups, .group = each ? i / each : 0};
        if (groups > 0) OK(ctx, an_shards_create(&r->shards[i], ctx, plan, &map));
        const an_route_options options = {
            .ranks = ranks, .rank = i, .shards = r->shards[i], .way = way, .chunk = chunk};
        const size_t before = memory.held;
        OK(ctx, an_route_create(&r->routes[i], r->layout, &options));
        assert_int_equal(memory.held - before, an_route_bytes(r->routes[i]));
    }
    r->map = r->shards[0];
}

static void close_routes(routes *r) {
    for (int i = 0; i < r->ranks; i++) {
        an_route_destroy(&r->routes[i]);
        an_shards_destroy(&r->shards[i]);
    }
    an_save_layout_destroy(&r->layout);
}

/* Who owns a byte of a tensor, in the first group, found the long way. */
static int owner_of(const routes *r, const an_saved_tensor *t, int64_t byte) {
    if (t->grid < 0) return AN_ROUTE_ALL;
    if (!r->map) return AN_ROUTE_ALL;
    const int64_t page = (t->grid + byte / (int64_t)an_dtype_size(t->dtype)) / AN_PAGE;
    for (int unit = 0; unit < r->map->unit_count; unit++)
        for (int q = 0; q < r->map->ranks; q++) {
            const an_page_range piece = an_shards_piece(r->map, unit, q);
            if (piece.begin <= page && page < piece.end) return q;
        }
    fail_msg("page %lld has no owner", (long long)page);
    return -1;
}

static bool is_sorted(const an_transfer *a, const an_transfer *b) {
    if (a->round != b->round) return a->round < b->round;
    if (a->hops != b->hops) return a->hops < b->hops;
    if (a->file != b->file) return a->file < b->file;
    return a->offset + a->bytes <= b->offset || (a->offset == b->offset && a->owner < b->owner);
}

static void check_order(const an_route *r) {
    for (size_t i = 1; i < r->count; i++) assert_true(is_sorted(&r->transfers[i - 1], &r->transfers[i]));
    size_t seen = 0, maximum = 0;
    while (seen < r->count) {
        const size_t some = an_route_round(r, seen);
        assert_true(some > 0);
        if (some > maximum) maximum = some;
        seen += some;
    }
    assert_int_equal(seen, r->count);
    assert_int_equal(maximum, r->maximum);
}

/* ---- every byte once ---- */

/* How often its bytes were given before: a load gives them to one group after another. */
static int copy_of(const routes *r, const an_transfer *x) {
    return r->way == AN_ROUTE_SAVE || x->owner == AN_ROUTE_ALL ? 0 : x->owner / r->map->ranks;
}

static int copies_of(const routes *r, const an_saved_tensor *t) {
    return r->way == AN_ROUTE_SAVE || !r->map || t->grid < 0 ? 1 : r->map->groups;
}

/* Marks the bytes of a transfer in its file, which must not be marked yet. */
static void mark(const routes *r, unsigned char **files, const an_transfer *x) {
    const an_saved_tensor *t = &r->layout->tensors[x->tensor];
    assert_true(x->bytes > 0 && x->offset + x->bytes <= (int64_t)r->layout->files[x->file].bytes);
    const int each = x->owner == AN_ROUTE_ALL ? 1 : r->map->ranks,
              group = x->owner == AN_ROUTE_ALL ? 0 : x->owner / each;
    assert_int_equal(x->owner - group * each, owner_of(r, t, x->at));
    assert_int_equal(x->owner - group * each, owner_of(r, t, x->at + x->bytes - 1));
    if (r->way == AN_ROUTE_SAVE && x->owner != AN_ROUTE_ALL) assert_int_equal(group, x->holder / each);
    for (int64_t i = 0; i < x->bytes; i++) assert_int_equal(files[x->file][x->offset + i]++, copy_of(r, x));
}

static void check_marks(const routes *r, unsigned char **files) {
    const an_save_layout *l = r->layout;
    for (size_t i = 0; i < l->piece_count; i++) {
        const an_saved_piece *p = &l->pieces[i];
        const int64_t size = (int64_t)an_dtype_size(l->tensors[p->tensor].dtype);
        for (int64_t byte = 0; byte < (p->end - p->begin) * size; byte++) {
            assert_int_equal(files[p->file][p->offset + byte], copies_of(r, &l->tensors[p->tensor]));
            files[p->file][p->offset + byte] = 0;
        }
    }
    for (size_t i = 0; i < l->file_count; i++) /* the headers */
        for (size_t byte = 0; byte < l->files[i].bytes; byte++) assert_int_equal(files[i][byte], 0);
}

/* The place in its tensor of each transfer is where the layout has it. */
static void check_place(const routes *r, const an_transfer *x) {
    const an_save_layout *l = r->layout;
    for (size_t i = 0; i < l->piece_count; i++) {
        const an_saved_piece *p = &l->pieces[i];
        const int64_t size = (int64_t)an_dtype_size(l->tensors[p->tensor].dtype);
        if (p->tensor != x->tensor || p->file != x->file) continue;
        if (x->offset - p->offset != x->at - p->begin * size) continue;
        if (x->at >= p->begin * size && x->at + x->bytes <= p->end * size) return;
    }
    fail_msg("a transfer of '%s' lies in none of its pieces", l->tensors[x->tensor].name);
}

static void check_holders(const routes *r, unsigned char **files) {
    for (int rank = 0; rank < r->ranks; rank++) {
        const an_route *route = r->routes[rank];
        check_order(route);
        for (size_t i = 0; i < route->count; i++) {
            const an_transfer *x = &route->transfers[i];
            const an_file_range own = an_route_files(r->layout->file_count, x->holder, r->ranks);
            assert_true(own.begin <= x->file && x->file < own.end);
            assert_int_equal(x->place, (int64_t)an_save_image_offset(r->layout, own, x->file) + x->offset);
            if (x->holder != rank) continue;
            check_place(r, x);
            mark(r, files, x);
        }
    }
    check_marks(r, files);
}

static bool is_same(const an_transfer *a, const an_transfer *b) {
    return a->tensor == b->tensor && a->file == b->file && a->at == b->at && a->offset == b->offset &&
           a->bytes == b->bytes && a->round == b->round && a->owner == b->owner && a->holder == b->holder;
}

/* What one rank holds and another owns is the same on both lists, in the same order. */
static void check_pair(const routes *r, int holder, int other) {
    const an_route *a = r->routes[holder], *b = r->routes[other];
    size_t i = 0, k = 0;
    for (;;) {
        while (i < a->count && (a->transfers[i].holder != holder || a->transfers[i].owner != other)) i++;
        while (k < b->count && (b->transfers[k].holder != holder || b->transfers[k].owner != other)) k++;
        if (i == a->count || k == b->count) break;
        assert_true(is_same(&a->transfers[i++], &b->transfers[k++]));
    }
    assert_int_equal(i, a->count);
    assert_int_equal(k, b->count);
}

/* Of what goes round, what a rank sends on is what the next one gets, hop by hop and in the same order. */
static void check_ring(const routes *r, int rank) {
    const int next = (rank + 1) % r->ranks;
    const an_route *a = r->routes[rank], *b = r->routes[next];
    size_t i = 0, k = 0;
    for (;;) {
        while (i < a->count && (a->transfers[i].owner != AN_ROUTE_ALL || a->transfers[i].hops + 1 == r->ranks)) i++;
        while (k < b->count && (b->transfers[k].owner != AN_ROUTE_ALL || b->transfers[k].hops == 0)) k++;
        if (i == a->count || k == b->count) break;
        assert_int_equal(a->transfers[i].hops + 1, b->transfers[k].hops);
        assert_true(is_same(&a->transfers[i++], &b->transfers[k++]));
    }
    assert_int_equal(i, a->count);
    assert_int_equal(k, b->count);
}

static void check_routes(int ranks, int writers, int groups, an_route_way way, int64_t chunk) {
    routes r;
    unsigned char *files[MOST_FILES];
    open_routes(&r, ranks, writers, groups, way, chunk);
    assert_true(r.layout->file_count <= MOST_FILES);
    for (size_t i = 0; i < r.layout->file_count; i++) {
        files[i] = calloc(r.layout->files[i].bytes, 1);
        assert_non_null(files[i]);
    }
    check_holders(&r, files);
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++)
            if (a != b) check_pair(&r, a, b);
    for (int a = 0; a < ranks && way == AN_ROUTE_LOAD && ranks > 1; a++) check_ring(&r, a);
    for (size_t i = 0; i < r.layout->file_count; i++) free(files[i]);
    close_routes(&r);
}

static void test_every_byte_once(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (int writers = 1; writers <= MOST_FILES; writers++)
            for (size_t way = 0; way < 2; way++)
                for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
                    for (int groups = 0; groups <= ranks; groups++)
                        if (groups == 0 || ranks % groups == 0)
                            check_routes(ranks, writers, groups, ways[way], chunks[c]);
                }
}

/* ---- the rules ---- */

static void test_places_are_those_of_the_plan(void **state) {
    an_save_layout *layout;
    size_t on_grid = 0;
    (void)state;
    OK(ctx, an_save_layout_create(&layout, ctx, graph, (an_kept){.moments = MOMENTS}, 1));
    for (size_t i = 0; i < layout->tensor_count; i++) {
        const an_saved_tensor *t = &layout->tensors[i];
        if (t->entry >= plan->model->parameter_count) {
            assert_int_equal(t->grid, -1); /* a run state */
            continue;
        }
        const an_parameter *p = &plan->model->parameters[t->entry];
        const bool trained = p->node->outputs[0].storage == AN_STORAGE_MASTER;
        assert_int_equal(t->grid, trained ? p->offset : -1);
        on_grid += trained;
    }
    assert_true(on_grid > 0 && on_grid < layout->tensor_count);
    an_save_layout_destroy(&layout);
}

static void test_files_of_ranks(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= 70; ranks++)
        for (size_t files = 1; files <= 70; files++) {
            size_t next = 0;
            for (int rank = 0; rank < ranks; rank++) {
                const an_file_range own = an_route_files(files, rank, ranks);
                assert_int_equal(own.begin, next);
                assert_true(own.end - own.begin <= (files + (size_t)ranks - 1) / (size_t)ranks);
                for (size_t i = own.begin; i < own.end; i++) assert_int_equal(an_route_holder(i, files, ranks), rank);
                next = own.end;
            }
            assert_int_equal(next, files);
        }
    assert_int_equal(an_route_writers(1, 1), 1);
    assert_int_equal(an_route_writers(64, 2), 64);
    assert_int_equal(an_route_writers(65, 2), 2);
}

static void test_owner_is_the_inverse_of_piece(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= 20; ranks++)
        for (int64_t pages = 1; pages <= 50; pages++) {
            const an_page_range unit = {5, 5 + pages};
            for (int turn = 0; turn <= ranks; turn++)
                for (int rank = 0; rank < ranks; rank++) {
                    const an_page_range piece = an_piece(&unit, turn, rank, ranks);
                    for (int64_t page = piece.begin; page < piece.end; page++)
                        assert_int_equal(an_piece_owner(&unit, turn, page, ranks), rank);
                }
        }
}

/* ---- memory that is not there ---- */

static void test_faults(void **state) {
    an_save_layout *layout;
    an_route *route = NULL;
    const an_route_options options = {.ranks = 2, .rank = 1, .way = AN_ROUTE_LOAD, .chunk = 4096};
    (void)state;
    OK(ctx, an_save_layout_create(&layout, ctx, graph, (an_kept){.moments = MOMENTS}, 3));
    const size_t held = memory.held;
    long failures = 0;
    for (an_status status = AN_ERR_MEMORY; status != AN_OK; failures++) {
        memory.fail_at = memory.calls + failures + 1;
        status = an_route_create(&route, layout, &options);
        memory.fail_at = 0;
        if (status == AN_OK) break;
        assert_int_equal(status, AN_ERR_MEMORY);
        assert_null(route);
        assert_int_equal(memory.held, held);
    }
    assert_int_equal(failures, 3);
    an_route_destroy(&route);
    an_save_layout_destroy(&layout);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_once), cmocka_unit_test(test_places_are_those_of_the_plan),
        cmocka_unit_test(test_files_of_ranks),  cmocka_unit_test(test_owner_is_the_inverse_of_piece),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
