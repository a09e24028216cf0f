#include "comm/scatter.h"

#include <stdio.h>

#include "base/status.h"
#include "comm/scatter_inside.h"

static an_scatter_bucket *bucket_of(const an_scattering *s, uint64_t number) {
    return &s->buckets[number % (uint64_t)s->in_flight];
}

/* Whether all of a unit that was started is sent and added. */
static bool is_added(const an_scattering *s, int unit) {
    return s->done >= s->states[unit].end;
}

static bool are_all_added(const an_scattering *s, int unused) {
    (void)unused;
    return s->done == s->announced;
}

static an_status check_usable(an_scattering *s) {
    an_context *ctx = s->peers.ctx;
    AN_TRY_RETURN(an_comm_check(ctx));
    return s->is_lost ? AN_ERROR(ctx, AN_ERR_ORDER, "gradients that were on their way have been given up") : AN_OK;
}

/* The others would wait for what this rank cannot do. */
static an_status tell_others(an_scattering *s, an_status status) {
    an_context *ctx = s->peers.ctx;
    if (s->peers.ranks > 1) an_comm_abort(ctx, status, ctx->error.message);
    return status;
}

an_status an_scattering_begin(an_scattering *scattering, void *dst) {
    an_status status;
    an_scattering *s = scattering;
    an_context *ctx = s->peers.ctx;
    AN_TRY(check_usable(s));
    AN_CHECK(ctx, !s->is_begun, AN_ERR_ORDER, "a step is begun before an_scattering_finish of the one before it");
    for (int i = 0; i < s->unit_count; i++) s->states[i] = (an_scatter_state){.end = s->done};
    s->peers.levels[0] = dst;
    s->is_begun = true;
    return AN_OK;
fail:
    return tell_others(s, status);
}

/* Begins buckets of units that were started, as long as there is room for them. */
static an_status begin_buckets(an_scattering *s) {
    an_context *ctx = s->peers.ctx;
    while (s->first < s->started && s->number - s->done < (uint64_t)s->in_flight) {
        const int unit = s->queue[s->first % (uint64_t)s->unit_count];
        an_scatter_state *state = &s->states[unit];
        an_scatter_bucket *b = bucket_of(s, s->number++);
        b->unit = unit;
        b->round = state->rounds - 1;
        b->index = state->begun++;
        b->src = state->src;
        if (state->begun == an_scatter_buckets(&s->peers, unit)) s->first++;
        AN_TRY_RETURN(an_scatter_bucket_begin(&s->peers, b));
    }
    return AN_OK;
}

/* One look at every bucket that is on its way. */
static an_status move_on(an_scattering *s, bool *moved) {
    an_context *ctx = s->peers.ctx;
    an_status status = AN_OK;
    *moved = false;
    if (s->is_moving) return AN_OK;
    s->is_moving = true;
    for (uint64_t number = s->done; number < s->number; number++) {
        bool this_moved;
        AN_TRY(an_scatter_bucket_advance(&s->peers, bucket_of(s, number), &this_moved));
        *moved |= this_moved;
    }
    while (s->done < s->number && !bucket_of(s, s->done)->is_busy) s->done++;
    AN_TRY(begin_buckets(s));
fail:
    s->is_moving = false;
    return status;
}

static void say_gradients(char what[AN_HEARTBEAT_TEXT], const an_reduction_unit *unit) {
    snprintf(what, AN_HEARTBEAT_TEXT, "the gradients of %s", unit->name);
}

/* What is checked at each start. */
static an_status check_start(an_scattering *s, int unit, int64_t round, const void *src) {
    an_status status;
    an_context *ctx = s->peers.ctx;
    AN_CHECK(ctx, unit >= 0 && unit < s->unit_count, AN_ERR_ARGUMENT, "unit %d of %d", unit, s->unit_count);
    AN_TRY(check_usable(s));
    const char *name = s->units[unit].name;
    AN_CHECK(ctx, s->is_begun, AN_ERR_ORDER, "unit %s was started before an_scattering_begin", name);
    AN_CHECK(ctx, round >= 0 && round < s->peers.rounds, AN_ERR_ARGUMENT, "round %lld of %lld", (long long)round,
             (long long)s->peers.rounds);
    AN_CHECK(ctx, round == s->states[unit].rounds, AN_ERR_ORDER, "unit %s was started in round %lld instead of %lld",
             name, (long long)round, (long long)s->states[unit].rounds);
    AN_CHECK(ctx, is_added(s, unit), AN_ERR_ORDER, "unit %s was started again before an_scattering_wait", name);
    AN_CHECK(ctx, !src || s->peers.rank < an_scatter_leaves(&s->peers, round), AN_ERR_ARGUMENT,
             "round %lld has no leaf for rank %d, and unit %s has gradients of one", (long long)round, s->peers.rank,
             name);
    return AN_OK;
fail:
    return status;
}

an_status an_scattering_start(an_scattering *scattering, int unit, int64_t round, const void *src) {
    an_status status;
    an_scattering *s = scattering;
    an_context *ctx = s->peers.ctx;
    char what[AN_HEARTBEAT_TEXT];
    AN_TRY(check_start(s, unit, round, src));
    const an_page_range *pages = &s->units[unit].pages;
    say_gradients(what, &s->units[unit]);
    if (s->peers.ranks > 1)
        an_comm_enter(ctx, s->peers.comm, what, (size_t)(pages->end - pages->begin) * s->peers.page_bytes);
    s->announced += (uint64_t)an_scatter_buckets(&s->peers, unit);
    s->states[unit] = (an_scatter_state){.rounds = round + 1, .end = s->announced, .src = src};
    s->queue[s->started++ % (uint64_t)s->unit_count] = unit;
    s->is_moving = true; /* rounding opens a parallel region, too */
    status = begin_buckets(s);
    s->is_moving = false;
    if (status == AN_OK) return AN_OK;
fail:
    return tell_others(s, status);
}

an_status an_scattering_progress(an_scattering *scattering) {
    an_context *ctx = scattering->peers.ctx;
    bool moved;
    AN_TRY_RETURN(move_on(scattering, &moved));
    return AN_OK;
}

/* `unit`: what is waited for; -1: everything. */
static an_status wait_until(an_scattering *s, bool (*is_so)(const an_scattering *s, int unit), int unit) {
    an_status status;
    an_context *ctx = s->peers.ctx;
    an_comm_turn turn = {0};
    AN_TRY(check_usable(s)); /* a caller may have overlooked the error of an_scattering_start or …_progress */
    while (!is_so(s, unit)) {
        bool moved;
        char what[AN_HEARTBEAT_TEXT];
        AN_TRY(move_on(s, &moved));
        if (moved) {
            turn = (an_comm_turn){0};
            continue;
        }
        say_gradients(what, &s->units[unit >= 0 ? unit : bucket_of(s, s->done)->unit]);
        AN_TRY(an_comm_turn_take(ctx, &turn, what));
    }
    return AN_OK;
fail:
    an_scattering_cancel(s);
    return status;
}

an_status an_scattering_wait(an_scattering *scattering, int unit) {
    an_context *ctx = scattering->peers.ctx;
    if (unit < 0 || unit >= scattering->unit_count)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "unit %d of %d", unit, scattering->unit_count);
    AN_TRY_RETURN(wait_until(scattering, is_added, unit));
    return AN_OK;
}

an_status an_scattering_finish(an_scattering *scattering) {
    an_status status;
    an_scattering *s = scattering;
    an_context *ctx = s->peers.ctx;
    AN_TRY(check_usable(s));
    AN_CHECK(ctx, s->is_begun, AN_ERR_ORDER, "an_scattering_finish comes after an_scattering_begin");
    for (int i = 0; i < s->unit_count; i++)
        AN_CHECK(ctx, s->states[i].rounds == s->peers.rounds, AN_ERR_ORDER,
                 "the step ends after %lld of %lld rounds of unit %s", (long long)s->states[i].rounds,
                 (long long)s->peers.rounds, s->units[i].name);
    AN_TRY(wait_until(s, are_all_added, -1));
    s->is_begun = false;
    return AN_OK;
fail:
    an_scattering_cancel(s);
    return tell_others(s, status);
}

void an_scattering_cancel(an_scattering *scattering) {
    an_scattering *s = scattering;
    if (s->is_begun) s->is_lost = true;
    for (; s->done < s->number; s->done++) an_scatter_bucket_cancel(&s->peers, bucket_of(s, s->done));
    s->number = s->done = s->announced;
    s->first = s->started;
    s->is_begun = false;
}
