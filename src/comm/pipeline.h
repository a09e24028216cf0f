/* Units on their way between ranks, of which nothing blocks: what a gathering, a scattering and a reduction have in
 * common.
 *
 * A unit that is started is cut into parcels, of which some are on their way at a time: while one waits for messages,
 * another is copied or added. All ranks start the same units in the same order. What a parcel is, and how it begins and
 * moves on, is its owner's (an_pipeline_kind).
 *
 * A pipeline is a mover of its context (base/context.h), so its messages move on between kernels and tasks, and
 * while the rank waits for something else. */
#ifndef AN_COMM_PIPELINE_H
#define AN_COMM_PIPELINE_H

#include "comm/comm.h"

/* One parcel on its way. What its owner has of it begins with this. */
typedef struct an_parcel {
    int slot; /* which of those in flight, the same for a parcel on all ranks: its tag */
    int unit;
    uint64_t number; /* of all parcels so far; the same on all ranks */
    bool is_busy;
    an_comm_request *requests; /* receives from the front, sends from the back */
    int room, receives, sends;
} an_parcel;

typedef struct an_pipeline_kind {
    const char *what; /* is on its way: "gradients" */
    const char *rest; /* what is waited for when all is done here; NULL: nothing is */
    int tag;          /* of the first slot */
    size_t parcel_bytes;
    /* `index`: of the unit's parcels. */
    an_status (*begin)(void *owner, an_parcel *parcel, int64_t index);
    /* *moved: whether something has happened. The parcel is done when it is not busy. */
    an_status (*advance)(void *owner, an_parcel *parcel, bool *moved);
    /* Parcels before number `done` are done now. NULL: nobody is told. */
    void (*take_done)(void *owner, uint64_t done);
} an_pipeline_kind;

typedef struct an_pipeline_unit {
    const char *name; /* "blocks.3" */
    int64_t parcels;
    uint64_t end; /* the number of the parcel behind its last, as it was started last */
    int waiting;  /* of the ring at this place: a unit that was started and has parcels left */
} an_pipeline_unit;

typedef struct an_pipeline {
    an_context *ctx;
    an_comm *comm;
    const an_pipeline_kind *kind;
    void *owner;
    int unit_count, in_flight;
    an_pipeline_unit *units;
    void *parcels;
    uint64_t started, first;          /* units so far, and the first that has parcels left */
    int64_t begun;                    /* parcels of that one */
    uint64_t number, done, announced; /* parcels so far: begun, done in order, and of all units that were started */
    bool is_open;                     /* what is given up now is lost */
    bool is_lost;                     /* something was given up */
    bool is_moving;                   /* adding opens a parallel region, and who waits for one moves pipelines on */
    int64_t sent, received, messages; /* bytes, and how many messages were sent */
    an_mover mover;
} an_pipeline;

/* `parcels`: as many as are in flight, zeros; `requests`: `room` for each of them. The tables stay the owner's, and it
 * names the units. Until an_pipeline_end. */
void an_pipeline_begin(an_pipeline *p, void *parcels, an_comm_request *requests, int room);
/* Does nothing if it was not begun. */
void an_pipeline_end(an_pipeline *p);

/* The parcel with a number, which may be done. */
an_parcel *an_pipeline_parcel(const an_pipeline *p, uint64_t number);
/* Whether all of a unit, as it was started last, is done. */
bool an_pipeline_is_done(const an_pipeline *p, int unit);
bool an_pipeline_all_done(const an_pipeline *p, int unused);

/* Whether messages are possible, and nothing was given up. */
an_status an_pipeline_check(an_pipeline *p);
/* The others would wait for what this rank cannot do: they are told. Returns the status. */
an_status an_pipeline_fail(const an_pipeline *p, an_status status);
/* Begins what there is room for of a unit, and returns at once. One that is done, or that has begun all parcels, may be
 * started again. */
an_status an_pipeline_start(an_pipeline *p, int unit);
/* Until it is so; `unit`: what is waited for, -1: everything. If that fails, everything is given up. */
typedef bool an_pipeline_test(const an_pipeline *p, int unit);
an_status an_pipeline_wait(an_pipeline *p, an_pipeline_test *is_so, int unit);
/* Gives up what is under way. */
void an_pipeline_cancel(an_pipeline *p);

/* ---- messages of a parcel ---- */

an_status an_parcel_send(an_pipeline *p, an_parcel *parcel, const void *bytes, size_t count, int to);
an_status an_parcel_receive(an_pipeline *p, an_parcel *parcel, void *bytes, size_t count, int from);
an_status an_parcel_has_come(an_pipeline *p, an_parcel *parcel, bool *done);
an_status an_parcel_has_gone(an_pipeline *p, an_parcel *parcel, bool *done);

#endif
