/* What the ranks of a run agree on: small records that are merged from all ranks and come back the same to all.
 *
 * A step has two, one before its first micro-batch and one before its update, and a run has some between steps. Every
 * record carries a status. A rank that has failed takes part with its error, and then all ranks return that error
 * together: the one of the lowest leaf, or else of the lowest rank. On one rank the record is its own. */
#ifndef AN_STEP_AGREE_H
#define AN_STEP_AGREE_H

#include "base/context.h"
#include "comm/comm.h"
#include "comm/forest.h"

/* Where a rank takes part: ranks at different places have taken different branches. */
typedef enum an_agree_place {
    AN_AGREE_STEP_BEGIN = 1,
    AN_AGREE_STEP_END,
    AN_AGREE_NONFINITE,
    AN_AGREE_EVALUATE,
    AN_AGREE_RUN,
    AN_AGREE_SAVE,
    AN_AGREE_PLACES
} an_agree_place;

/* What a run decides by and what only one process knows: a clock, a signal, a disk. Every rank has the same one, and
 * nothing looks again before the next. */
typedef struct an_run_facts {
    double spent;   /* rank 0: seconds since the run began */
    double reserve; /* rank 0: seconds that a further step and its save need */
    int64_t stop;   /* any rank: it was asked to stop */
    int64_t saving; /* the least of all ranks: phases of saves that have ended (run/save_phases.h) */
} an_run_facts;

typedef struct an_agreement {
    int32_t place, status;
    int32_t rank; /* whose record or error it is; -1: the message names ranks itself */
    int32_t reserved;
    int64_t step;
    int64_t leaf;     /* where the error is; -1: in none */
    uint64_t weights; /* what this rank's weights are, as a number that must be everyone's; 0: not said */
    /* sums */
    int64_t targets, samples, counted;
    uint64_t pieces; /* by a hybrid: what this rank's pieces of the weights are. It wraps around */
    int64_t maximum; /* the largest */
    an_run_facts facts;
    char message[AN_MESSAGE_BYTES];
} an_agreement;

/* A record of this rank with its status, and the context's message if it is an error. */
void an_agreement_begin(an_agreement *a, const an_context *ctx, an_agree_place place, int64_t step, an_status status);
/* The record of all ranks. An error is that of the rank that has one, with its message. So many forests lie right
 * behind the record, one after another, and are merged too; `received` has room for all of it. Collective. */
an_status an_agree(an_context *ctx, an_agreement *a, int forests, void *received);
/* The same among the ranks of one communicator. An error of one of them stays in the record, so that others can
 * still be told; only messages that fail are an error here. */
an_status an_agree_among(an_context *ctx, an_comm *comm, an_agreement *a, int forests, void *received);
/* The error in a record, if there is one. */
an_status an_agreement_result(an_agreement *a, an_context *ctx);

#endif
