#include "comm/pipeline.h"

#include <stdio.h>

#include "base/status.h"

an_parcel *an_pipeline_parcel(const an_pipeline *p, uint64_t number) {
    return (an_parcel *)(void *)((char *)p->parcels + number % (uint64_t)p->in_flight * p->kind->parcel_bytes);
}

/* ---- messages of a parcel ---- */

an_status an_parcel_send(an_pipeline *p, an_parcel *parcel, const void *bytes, size_t count, int to) {
    p->sent += (int64_t)count;
    p->messages++;
    return an_comm_send(p->ctx, p->comm, bytes, count, to, p->kind->tag + parcel->slot,
                        &parcel->requests[parcel->room - ++parcel->sends]);
}

an_status an_parcel_receive(an_pipeline *p, an_parcel *parcel, void *bytes, size_t count, int from) {
    p->received += (int64_t)count;
    return an_comm_receive(p->ctx, p->comm, bytes, count, from, p->kind->tag + parcel->slot,
                           &parcel->requests[parcel->receives++]);
}

/* One rank alone has no requests. */
static an_comm_request *sends_of(const an_parcel *parcel) {
    return parcel->sends > 0 ? parcel->requests + parcel->room - parcel->sends : NULL;
}

an_status an_parcel_has_come(an_pipeline *p, an_parcel *parcel, bool *done) {
    return an_comm_test(p->ctx, p->comm, parcel->requests, parcel->receives, done);
}

an_status an_parcel_has_gone(an_pipeline *p, an_parcel *parcel, bool *done) {
    return an_comm_test(p->ctx, p->comm, sends_of(parcel), parcel->sends, done);
}

/* ---- moving on ---- */

/* Begins parcels of units that were started, as long as there is room for them. */
static an_status begin_parcels(an_pipeline *p) {
    while (p->first < p->started && p->number - p->done < (uint64_t)p->in_flight) {
        const int unit = p->units[p->first % (uint64_t)p->unit_count].waiting;
        an_parcel *parcel = an_pipeline_parcel(p, p->number);
        const int64_t index = p->begun++;
        parcel->unit = unit;
        parcel->number = p->number++;
        parcel->is_busy = true;
        parcel->receives = parcel->sends = 0;
        if (p->begun == p->units[unit].parcels) {
            p->first++;
            p->begun = 0;
        }
        AN_TRY_RETURN(p->kind->begin(p->owner, parcel, index));
    }
    return AN_OK;
}

/* One look at every parcel that is on its way. */
static an_status move_on(an_pipeline *p, bool *moved) {
    an_status status = AN_OK;
    *moved = false;
    if (p->is_moving) return AN_OK;
    p->is_moving = true;
    const uint64_t done = p->done;
    for (uint64_t number = done; number < p->number; number++) {
        an_parcel *parcel = an_pipeline_parcel(p, number);
        if (parcel->is_busy) AN_TRY(p->kind->advance(p->owner, parcel, moved));
    }
    while (p->done < p->number && !an_pipeline_parcel(p, p->done)->is_busy) p->done++;
    if (p->kind->take_done && p->done > done) p->kind->take_done(p->owner, p->done);
    AN_TRY(begin_parcels(p));
fail:
    p->is_moving = false;
    p->mover.is_busy = p->done < p->announced;
    return status;
}

/* An error is found again by who waits. */
static void move(void *user) {
    bool moved;
    (void)move_on(user, &moved);
}

/* ---- what owners call ---- */

void an_pipeline_begin(an_pipeline *p, void *parcels, an_comm_request *requests, int room) {
    p->parcels = parcels;
    for (int i = 0; i < p->in_flight; i++) {
        an_parcel *parcel = an_pipeline_parcel(p, (uint64_t)i);
        parcel->slot = i;
        if (!requests) continue; /* no messages */
        parcel->room = room;
        parcel->requests = requests + (ptrdiff_t)i * room;
    }
    p->mover = (an_mover){.move = move, .user = p};
    an_context_add_mover(p->ctx, &p->mover);
}

void an_pipeline_end(an_pipeline *p) {
    an_pipeline_cancel(p);
    an_context_remove_mover(p->ctx, &p->mover);
}

bool an_pipeline_is_done(const an_pipeline *p, int unit) {
    return p->done >= p->units[unit].end;
}

bool an_pipeline_all_done(const an_pipeline *p, int unused) {
    (void)unused;
    return p->done == p->announced;
}

an_status an_pipeline_check(an_pipeline *p) {
    an_context *ctx = p->ctx;
    AN_TRY_RETURN(an_comm_check(ctx));
    return p->is_lost ? AN_ERROR(ctx, AN_ERR_ORDER, "%s that were on their way have been given up", p->kind->what)
                      : AN_OK;
}

an_status an_pipeline_fail(const an_pipeline *p, an_status status) {
    if (p->comm->ranks > 1) an_comm_abort(p->ctx, status, p->ctx->error.message);
    return status;
}

an_status an_pipeline_start(an_pipeline *p, int unit) {
    p->announced += (uint64_t)p->units[unit].parcels;
    p->units[unit].end = p->announced;
    p->units[p->started++ % (uint64_t)p->unit_count].waiting = unit;
    p->mover.is_busy = true;
    p->is_moving = true; /* what begins may open a parallel region, too */
    const an_status status = begin_parcels(p);
    p->is_moving = false;
    return status;
}

an_status an_pipeline_wait(an_pipeline *p, an_pipeline_test *is_so, int unit) {
    an_status status;
    an_context *ctx = p->ctx;
    an_comm_turn turn = {0};
    AN_TRY(an_pipeline_check(p)); /* a caller may have overlooked the error of a start, and a mover has none */
    while (!is_so(p, unit)) {
        bool moved;
        char what[AN_HEARTBEAT_TEXT];
        AN_TRY(move_on(p, &moved));
        if (moved) {
            turn = (an_comm_turn){0};
            continue;
        }
        if (unit < 0 && p->kind->rest && p->done == p->number)
            snprintf(what, sizeof what, "%s", p->kind->rest);
        else
            snprintf(what, sizeof what, "the %s of %s", p->kind->what,
                     p->units[unit >= 0 ? unit : an_pipeline_parcel(p, p->done)->unit].name);
        AN_TRY(an_comm_turn_take(ctx, &turn, what));
    }
    return AN_OK;
fail:
    an_pipeline_cancel(p);
    return status;
}

void an_pipeline_cancel(an_pipeline *p) {
    if (p->is_open) p->is_lost = true;
    for (; p->done < p->number; p->done++) {
        an_parcel *parcel = an_pipeline_parcel(p, p->done);
        if (!parcel->is_busy) continue;
        an_comm_cancel(p->comm, parcel->requests, parcel->receives);
        an_comm_cancel(p->comm, sends_of(parcel), parcel->sends);
        parcel->is_busy = false;
    }
    p->number = p->done = p->announced;
    p->first = p->started;
    p->begun = 0;
    p->is_open = p->mover.is_busy = false;
}
