/* What gatherings and scatterings have in common (comm/pipeline.h), on one rank: parcels begin and end in their order,
 * never more of them than there is room for, and what begins is not moved on before it has begun. */
#include "comm/pipeline.h"

#include "base/context.h"
#include "support/support.h"

enum { UNITS = 3, IN_FLIGHT = 2, MOST_PARCELS = 5, TURNS = 3 };

typedef struct {
    an_parcel parcel; /* first */
    int64_t index;
    int turns; /* that it takes to be done */
    bool has_begun;
} part;

typedef struct {
    an_context *ctx;
    an_pipeline pipeline;
    an_pipeline_unit units[UNITS];
    part parts[IN_FLIGHT];
    int on_their_way, begun[UNITS];
    uint64_t done;
} owner;

/* As a parallel region does, which messages are moved on by who waits for it. */
static an_status begin(void *user, an_parcel *parcel, int64_t index) {
    owner *o = user;
    part *p = (part *)(void *)parcel;
    p->has_begun = false;
    p->index = index;
    p->turns = parcel->number % 2 ? 1 : TURNS; /* a later one may be ready first */
    assert_true(++o->on_their_way <= IN_FLIGHT);
    assert_int_equal(index, o->begun[parcel->unit]++);
    assert_int_equal(parcel->slot, parcel->number % IN_FLIGHT);
    an_context_progress(o->ctx);
    p->has_begun = true;
    return AN_OK;
}

static an_status advance(void *user, an_parcel *parcel, bool *moved) {
    owner *o = user;
    part *p = (part *)(void *)parcel;
    assert_true(p->has_begun);
    if (--p->turns > 0) return AN_OK;
    parcel->is_busy = false;
    *moved = true;
    o->on_their_way--;
    return AN_OK;
}

static void take_done(void *user, uint64_t done) {
    owner *o = user;
    assert_true(done > o->done);
    o->done = done;
}

static const an_pipeline_kind kind = {
    .what = "parts", .parcel_bytes = sizeof(part), .begin = begin, .advance = advance, .take_done = take_done};

static void set_up(owner *o) {
    static const int64_t parcels[UNITS] = {2, MOST_PARCELS, 1};
    *o = (owner){.ctx = NULL};
    assert_int_equal(an_context_create(&o->ctx, NULL), AN_OK);
    for (int i = 0; i < UNITS; i++) o->units[i] = (an_pipeline_unit){.name = "unit", .parcels = parcels[i]};
    o->pipeline = (an_pipeline){
        .ctx = o->ctx, .kind = &kind, .owner = o, .unit_count = UNITS, .in_flight = IN_FLIGHT, .units = o->units};
    an_pipeline_begin(&o->pipeline, o->parts, NULL, 0);
}

static void tear_down(owner *o) {
    an_pipeline_end(&o->pipeline);
    an_context_destroy(&o->ctx);
}

static void test_order(void **state) {
    owner o;
    (void)state;
    set_up(&o);
    for (int round = 0; round < 3; round++) {
        memset(o.begun, 0, sizeof o.begun);
        for (int i = 0; i < UNITS; i++) OK(o.ctx, an_pipeline_start(&o.pipeline, i));
        for (int i = 0; i < UNITS; i++) { /* so many turns are enough, and others may make them */
            for (int turn = 0; turn < TURNS * MOST_PARCELS; turn++) an_context_progress(o.ctx);
            assert_true(an_pipeline_is_done(&o.pipeline, i));
            assert_int_equal(o.begun[i], o.units[i].parcels);
        }
        assert_true(an_pipeline_all_done(&o.pipeline, -1));
        assert_int_equal(o.done, o.pipeline.announced);
        assert_int_equal(o.on_their_way, 0);
    }
    tear_down(&o);
}

/* What is given up is lost, and the next unit begins in free places. */
static void test_cancel(void **state) {
    owner o;
    (void)state;
    set_up(&o);
    o.pipeline.is_open = true;
    OK(o.ctx, an_pipeline_start(&o.pipeline, 1));
    an_pipeline_cancel(&o.pipeline);
    assert_true(an_pipeline_all_done(&o.pipeline, -1));
    for (int i = 0; i < IN_FLIGHT; i++) assert_false(o.parts[i].parcel.is_busy);
    FAILS(o.ctx, an_pipeline_wait(&o.pipeline, an_pipeline_is_done, 1), AN_ERR_ORDER,
          "parts that were on their way have been given up");
    o.pipeline.is_lost = false;
    o.on_their_way = 0;
    OK(o.ctx, an_pipeline_start(&o.pipeline, 0));
    assert_int_equal(o.on_their_way, IN_FLIGHT);
    an_pipeline_cancel(&o.pipeline);
    tear_down(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_cancel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
