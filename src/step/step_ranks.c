/* The part of a step that ranks have in common: what they agree on, and what that takes. */
#include <string.h>

#include "comm/comm.h"
#include "step/rank_weights.h"
#include "step/step.h"

/* ---- what it takes ---- */

int an_step_leaf_forests(const an_params_pieces *pieces, int64_t leaves) {
    const int64_t rounds = an_leaf_rounds_count(pieces, leaves);
    return rounds > 0 ? (int)rounds : 1;
}

size_t an_step_record_bytes(const an_graph *model, int64_t leaves, int forests) {
    return sizeof(an_agreement) + (size_t)forests * an_forest_bytes(leaves, an_leaf_width(model));
}

/* A record that is merged; as many come as go. */
static void count_record(an_reduction_cost *cost, int rank, int ranks, size_t bytes) {
    const int64_t records = an_comm_merge_sends(rank, ranks, 1);
    cost->sent += records * (int64_t)bytes;
    cost->received += records * (int64_t)bytes;
    cost->messages += records;
}

/* Whether every host has all pieces, so that ranks agree within hosts first. */
static bool has_groups(const an_params_pieces *pieces) {
    return pieces->shards && pieces->shards->groups > 1;
}

an_status an_stepper_predict(const an_plan *plan, const an_params_pieces *pieces, const an_stepper_shape *options,
                             size_t *bytes, an_reduction_cost *cost) {
    const an_borders *borders = options->borders;
    const int rank = options->rank;
    const an_stepper *s = NULL; /* for its size */
    const an_graph *model = plan->model;
    an_context *ctx = model->ctx;
    const int forests = an_step_leaf_forests(pieces, borders->leaves);
    size_t record = an_step_record_bytes(model, borders->leaves, forests);
    if (pieces->shards) record += an_page_sums_record_bytes(pieces->shards, options->norms ? model : NULL);
    const int64_t rounds = an_leaf_rounds_count(pieces, borders->leaves);
    if (rounds > 0) {
        *cost = (an_reduction_cost){0};
        AN_TRY_RETURN(an_leaf_rounds_predict(plan, pieces, borders->leaves, options->is_bf16, bytes, cost));
    } else {
        AN_TRY_RETURN(an_leaves_predict(plan, borders, pieces->shards != NULL, rank, options->host_ranks, bytes, cost));
    }
    AN_TRY_RETURN(an_remote_weights_predict(plan, pieces, rounds * an_leaf_rounds_passes(pieces), bytes, cost));
    count_record(cost, rank, borders->ranks, sizeof(an_agreement));
    if (has_groups(pieces)) {
        count_record(cost, pieces->shards->rank, pieces->shards->ranks, record);
        count_record(cost, pieces->shards->group, pieces->shards->groups,
                     an_step_record_bytes(model, borders->leaves, 1));
    } else {
        count_record(cost, rank, borders->ranks, record);
    }
    if (!an_statistics_bytes(model, bytes) || !an_add_elements(bytes, 1, sizeof *s) ||
        !an_add_elements(bytes, 2, record))
        return AN_ERROR(ctx, AN_ERR_OVERFLOW, "the leaves of a step do not fit in memory");
    return AN_OK;
}

/* ---- agreeing ---- */

/* A rank that has failed still takes part in everything that others wait for, up to the next record, where
 * all of them fail together. */
an_status an_step_fail(an_stepper *s, an_status status, int64_t leaf) {
    if (an_step_is_alone(s) || status == AN_OK || s->failed.status != AN_OK)
        return an_step_is_alone(s) ? status : AN_OK;
    s->failed.status = status;
    s->failed.leaf = leaf;
    memcpy(s->failed.message, s->ctx->error.message, sizeof s->failed.message);
    return AN_OK;
}

/* Hosts agree among themselves first, as leaves are in rounds and pages in pieces within a host, and then with each
 * other about their leaves. An error goes on to all. */
static an_status agree_in_groups(an_stepper *s, an_agreement *a, int forests, void *received) {
    an_context *ctx = s->ctx;
    const an_status compared = s->replicas_compared ? an_rank_weights_pieces_some(s->params, s->steps, &a->pieces)
                                                    : an_rank_weights_pieces_all(s->params, &a->pieces);
    if (a->status == AN_OK && compared != AN_OK) { /* nobody compares then */
        a->status = (int32_t)compared;
        memcpy(a->message, ctx->error.message, sizeof a->message);
    }
    AN_TRY_RETURN(an_agree_among(ctx, an_axis_comm(ctx, AN_AXIS_SHARD), a, forests, received));
    if (a->status == AN_OK) an_leaf_rounds_join(&s->rounds);
    a->weights = a->pieces; /* of the whole host, so that all of its ranks compare the same with other hosts */
    s->replicas_compared = true;
    AN_TRY_RETURN(an_agree_among(ctx, an_axis_comm(ctx, AN_AXIS_REPLICA), a, 1, received));
    return an_agreement_result(a, ctx);
}

an_status an_step_agree(an_stepper *s, an_agreement *a, int forests) {
    void *received = s->record + s->record_bytes;
    if (s->failed.status != AN_OK) {
        a->status = (int32_t)s->failed.status;
        a->leaf = s->failed.leaf;
        memcpy(a->message, s->failed.message, sizeof a->message);
        s->failed.status = AN_OK;
    }
    s->settled = true; /* whatever comes, it comes on all ranks */
    const bool in_groups = forests > 0 && has_groups(&s->params->pieces);
    const an_status status =
        in_groups ? agree_in_groups(s, a, forests, received) : an_agree(s->ctx, a, forests, received);
    if (status == AN_OK && forests > 0 && !in_groups) an_leaf_rounds_join(&s->rounds);
    if (status != AN_OK && !an_step_is_alone(s) && an_comm_check(s->ctx) != AN_OK) s->broken = true;
    return status;
}

an_status an_step_compare_weights(an_stepper *s, an_agreement *a) {
    if (an_step_is_alone(s)) return AN_OK;
    return s->compared ? an_rank_weights_some(s->params, s->steps, &a->weights)
                       : an_rank_weights_all(s->params, &a->weights);
}
