#include "comm/bucket.h"

#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "comm/add.h"

static int64_t length(const an_page_range *pages) {
    return pages->end - pages->begin;
}

static bool is_windowed(const an_reduction_peers *x, int round) {
    return round == 0 && x->host_ranks > 1;
}

/* ---- the staging ---- For each round: the nodes of others, node after node; then, unless the sum is complete, the
 * nodes after the round. A node has the pages that this rank holds, in the order of cells. */

static an_round_nodes nodes_of(const an_reduction_peers *x, int round) {
    return (an_round_nodes){x->rounds[round].nodes, x->rounds[round].all};
}

static int64_t others_of(const an_reduction_peers *x, int round) {
    const an_reduction_round *r = &x->rounds[round];
    return is_windowed(x, round) ? 0 : r->all - r->nodes;
}

static int64_t outputs_of(const an_reduction_peers *x, int round) {
    return round + 1 < x->schedule.rounds ? x->rounds[round].outputs : 0;
}

void an_bucket_measure(const an_reduction_peers *peers, const an_page_range *pages, const an_part *part,
                       int64_t *staging, int *requests, an_reduction_cost *cost) {
    const an_reduction_peers *x = peers;
    const int64_t page_bytes = (int64_t)x->page_bytes;
    int64_t all = 0;
    for (int round = 0; round < x->schedule.rounds; round++) {
        const an_round_nodes nodes = nodes_of(x, round);
        int64_t kept;
        an_traffic t = an_rounds_traffic(&x->schedule, &nodes, pages, part, x->rank, round, &kept);
        if (x->scatters) t.returned_out = t.returned_in = t.returns_out = t.returns_in = 0;
        all += (others_of(x, round) + outputs_of(x, round)) * kept;
        if (is_windowed(x, round)) {
            cost->read += t.gathered_in * page_bytes;
            cost->written += t.returned_out * page_bytes;
            continue;
        }
        cost->sent += (t.gathered_out + t.returned_out) * page_bytes;
        cost->received += (t.gathered_in + t.returned_in) * page_bytes;
        cost->messages += t.gathers_out + t.returns_out;
        *requests = (int)an_larger(*requests, t.gathers_out + t.gathers_in);
        *requests = (int)an_larger(*requests, t.returns_out + t.returns_in);
    }
    *staging = an_larger(*staging, all);
}

static char *staged(const an_reduction_peers *x, const an_bucket *b, int64_t page) {
    return b->staging + (size_t)page * x->page_bytes;
}

static char *flat_pages(const an_reduction_peers *x, void *flat, int64_t page) {
    return (char *)flat + (size_t)page * x->page_bytes;
}

/* Where the sum goes. */
static char *dst_pages(const an_reduction_peers *x, const an_bucket *b, int64_t page) {
    return flat_pages(x, b->nodes[x->rounds[0].nodes], page);
}

/* A node of this rank before a round; `position`: how many pages it holds before this one. */
static char *node_pages(const an_reduction_peers *x, const an_bucket *b, int round, int node, int64_t page,
                        int64_t position) {
    if (round == 0) return flat_pages(x, b->nodes[node], page);
    return staged(x, b, b->outputs_at[round - 1] + node * b->held[round] + position);
}

/* A node of another group; `node` counts those of all groups. */
static char *received_pages(const an_reduction_peers *x, const an_bucket *b, int node, int64_t position) {
    const an_reduction_round *r = &x->rounds[b->round];
    if (node >= r->starts[r->mine + 1]) node -= r->nodes;
    return staged(x, b, b->received_at[b->round] + node * b->held[b->round + 1] + position);
}

/* ---- messages ---- */

static an_status send(an_reduction_peers *x, an_bucket *b, const char *from, const an_page_range *pages, int to) {
    const size_t bytes = (size_t)length(pages) * x->page_bytes;
    return an_parcel_send(&x->pipeline, &b->parcel, from, bytes, to);
}

static an_status receive(an_reduction_peers *x, an_bucket *b, char *to, const an_page_range *pages, int from) {
    const size_t bytes = (size_t)length(pages) * x->page_bytes;
    return an_parcel_receive(&x->pipeline, &b->parcel, to, bytes, from);
}

static an_status gather_piece(an_reduction_peers *x, an_bucket *b, const an_cell *cell, int group, int64_t held,
                              int64_t kept) {
    const an_reduction_round *r = &x->rounds[b->round];
    const an_page_range theirs = an_cell_slice(cell, group, &b->part), own = an_cell_slice(cell, cell->mine, &b->part);
    const int holder = an_cell_holder(cell, group);
    const int64_t position = held + theirs.begin - cell->pages.begin;
    for (int node = r->starts[group]; node < r->starts[group + 1] && length(&own) > 0; node++)
        AN_TRY_RETURN(receive(x, b, received_pages(x, b, node, kept), &own, holder));
    for (int node = 0; node < r->nodes && length(&theirs) > 0; node++)
        AN_TRY_RETURN(send(x, b, node_pages(x, b, b->round, node, theirs.begin, position), &theirs, holder));
    return AN_OK;
}

static an_status begin_gather(an_reduction_peers *x, an_bucket *b, int round) {
    b->round = round;
    b->is_added = false;
    b->parcel.receives = b->parcel.sends = 0;
    if (is_windowed(x, round)) return AN_OK; /* nothing is sent: the others see what is here */
    int64_t held = 0, kept = 0;
    an_cell cell;
    for (int64_t from = b->pages.begin; an_rounds_cell(&x->schedule, &b->pages, x->rank, round, from, &cell);
         from = cell.pages.end) {
        for (int group = 0; group < cell.groups; group++)
            if (group != cell.mine) AN_TRY_RETURN(gather_piece(x, b, &cell, group, held, kept));
        const an_page_range own = an_cell_slice(&cell, cell.mine, &b->part);
        held += length(&cell.pages);
        kept += length(&own);
    }
    return AN_OK;
}

/* ---- the window ---- */

static int host_first(const an_reduction_peers *x) {
    return x->rank - x->window.host->rank;
}

/* A flat gradient of another rank of the host, in its part of the window. Its place was written by another process,
 * so it is looked at before it is used. */
static an_status find_in_window(an_reduction_peers *x, const an_bucket *b, int group, int node, int64_t page,
                                void **at) {
    an_context *ctx = x->pipeline.ctx;
    char *part = (char *)an_window_part(&x->window, group);
    const int nodes = x->rounds[0].starts[group + 1] - x->rounds[0].starts[group];
    const uint64_t *places = (const uint64_t *)(void *)(part + x->places_at);
    const uint64_t place = places[(int64_t)b->parcel.unit * (nodes + 1) + node];
    const uint64_t end = (uint64_t)b->pages.end * x->page_bytes, bytes = x->part_bytes[group];
    if (place % AN_ALIGNMENT != 0 || place > bytes || end > bytes - place) {
        const char *message = "a rank has gradients that are not in its shared memory";
        an_comm_abort(ctx, AN_ERR_COMMUNICATION, message);
        return AN_ERROR(ctx, AN_ERR_COMMUNICATION, "rank %d: %s", host_first(x) + group, message);
    }
    *at = part + place + (size_t)page * x->page_bytes;
    return AN_OK;
}

static bool all_have_started(const an_reduction_peers *x, const an_bucket *b) {
    for (int i = 0; i < x->window.host->ranks; i++)
        if (an_window_read(&an_window_part(&x->window, i)->started) <= b->parcel.number) return false;
    return true;
}

static bool all_have_returned(const an_reduction_peers *x, const an_bucket *b) {
    for (int i = 0; i < x->window.host->ranks; i++)
        if (an_window_read(&an_window_part(&x->window, i)->done[b->parcel.slot]) <= b->parcel.number) return false;
    return true;
}

/* ---- adding ---- */

/* The places of the sum: here, and where the others of the host want it, unless its owner keeps it or further rounds
 * come before it is complete. */
static an_status find_outputs(an_reduction_peers *x, an_bucket *b, const an_page_range *own, int64_t kept,
                              int *copies) {
    const an_reduction_round *r = &x->rounds[b->round];
    *copies = 1;
    if (b->round + 1 < x->schedule.rounds) {
        for (int node = 0; node < r->outputs; node++)
            x->dst[node] = node_pages(x, b, b->round + 1, node, own->begin, kept);
        return AN_OK;
    }
    x->dst[0] = dst_pages(x, b, own->begin);
    if (!is_windowed(x, b->round) || x->scatters) return AN_OK;
    for (int group = 0; group < r->groups; group++) {
        const int nodes = r->starts[group + 1] - r->starts[group];
        if (group == r->mine) continue;
        AN_TRY_RETURN(find_in_window(x, b, group, nodes, own->begin, &x->dst[(*copies)++]));
    }
    x->written += (*copies - 1) * length(own) * (int64_t)x->page_bytes;
    return AN_OK;
}

static an_status find_sources(an_reduction_peers *x, an_bucket *b, const an_page_range *own, int64_t position,
                              int64_t kept) {
    const an_reduction_round *r = &x->rounds[b->round];
    for (int group = 0; group < r->groups; group++)
        for (int node = r->starts[group]; node < r->starts[group + 1]; node++) {
            const int index = node - r->starts[group];
            void *at = NULL;
            if (group == r->mine)
                at = node_pages(x, b, b->round, index, own->begin, position);
            else if (is_windowed(x, b->round))
                AN_TRY_RETURN(find_in_window(x, b, group, index, own->begin, &at));
            else
                at = received_pages(x, b, node, kept);
            x->src[node] = at;
        }
    if (is_windowed(x, b->round)) x->read += (r->all - r->nodes) * length(own) * (int64_t)x->page_bytes;
    return AN_OK;
}

static an_status add_round(an_reduction_peers *x, an_bucket *b) {
    an_context *ctx = x->pipeline.ctx;
    const an_reduction_round *r = &x->rounds[b->round];
    int64_t held = 0, kept = 0;
    an_cell cell;
    for (int64_t from = b->pages.begin; an_rounds_cell(&x->schedule, &b->pages, x->rank, b->round, from, &cell);
         from = cell.pages.end) {
        const an_page_range own = an_cell_slice(&cell, cell.mine, &b->part);
        an_addition addition = {.dtype = x->dtype,
                                .count = r->all,
                                .src = x->src,
                                .joins = r->joins,
                                .outputs = r->outputs,
                                .dst = x->dst,
                                .bytes = (size_t)length(&own) * x->page_bytes};
        if (length(&own) > 0) {
            AN_TRY_RETURN(find_sources(x, b, &own, held + own.begin - cell.pages.begin, kept));
            AN_TRY_RETURN(find_outputs(x, b, &own, kept, &addition.copies));
            an_add_nodes(ctx, &addition);
        }
        held += length(&cell.pages);
        kept += length(&own);
    }
    return AN_OK;
}

/* ---- returning ---- */

static an_status return_cell(an_reduction_peers *x, an_bucket *b, const an_cell *cell) {
    const an_page_range own = an_cell_slice(cell, cell->mine, &b->part);
    const size_t bytes = (size_t)length(&own) * x->page_bytes;
    for (int group = 0; group < cell->groups; group++) {
        const an_page_range theirs = an_cell_slice(cell, group, &b->part);
        const int holder = an_cell_holder(cell, group);
        if (group == cell->mine) continue;
        if (is_windowed(x, b->round)) {
            const an_reduction_round *r = &x->rounds[b->round];
            void *at;
            if (length(&own) == 0) continue;
            AN_TRY_RETURN(find_in_window(x, b, group, r->starts[group + 1] - r->starts[group], own.begin, &at));
            memcpy(at, dst_pages(x, b, own.begin), bytes);
            x->written += (int64_t)bytes;
            continue;
        }
        if (length(&theirs) > 0) AN_TRY_RETURN(receive(x, b, dst_pages(x, b, theirs.begin), &theirs, holder));
        if (length(&own) > 0) AN_TRY_RETURN(send(x, b, dst_pages(x, b, own.begin), &own, holder));
    }
    return AN_OK;
}

static an_status begin_return(an_reduction_peers *x, an_bucket *b, int round) {
    b->is_returning = true;
    b->round = round;
    b->parcel.receives = b->parcel.sends = 0;
    /* With a window alone, the addition has written the sum everywhere. */
    if (!x->scatters && (!is_windowed(x, round) || x->schedule.rounds > 1)) {
        an_cell cell;
        for (int64_t from = b->pages.begin; an_rounds_cell(&x->schedule, &b->pages, x->rank, round, from, &cell);
             from = cell.pages.end)
            AN_TRY_RETURN(return_cell(x, b, &cell));
    }
    if (is_windowed(x, round))
        an_window_publish(&an_window_part(&x->window, x->window.host->rank)->done[b->parcel.slot],
                          b->parcel.number + 1);
    return AN_OK;
}

/* ---- from one to the next ---- */

an_status an_bucket_begin(an_reduction_peers *peers, an_bucket *bucket) {
    an_reduction_peers *x = peers;
    int64_t at = 0;
    bucket->is_returning = false;
    bucket->held[0] = length(&bucket->pages);
    for (int round = 0; round < x->schedule.rounds; round++) {
        const an_round_nodes nodes = nodes_of(x, round);
        int64_t *kept = &bucket->held[round + 1];
        an_rounds_traffic(&x->schedule, &nodes, &bucket->pages, &bucket->part, x->rank, round, kept);
        bucket->received_at[round] = at;
        at += others_of(x, round) * *kept;
        bucket->outputs_at[round] = at;
        at += outputs_of(x, round) * *kept;
    }
    return begin_gather(x, bucket, 0);
}

static an_status advance_gather(an_reduction_peers *x, an_bucket *b, bool *moved) {
    bool done = true;
    if (!b->is_added) {
        if (is_windowed(x, b->round))
            done = all_have_started(x, b);
        else
            AN_TRY_RETURN(an_parcel_has_come(&x->pipeline, &b->parcel, &done));
        if (!done) return AN_OK;
        AN_TRY_RETURN(add_round(x, b));
        b->is_added = *moved = true;
    }
    /* What returns may be written where these messages are read from. */
    AN_TRY_RETURN(an_parcel_has_gone(&x->pipeline, &b->parcel, &done));
    if (!done) return AN_OK;
    *moved = true;
    if (b->round + 1 < x->schedule.rounds) return begin_gather(x, b, b->round + 1);
    return begin_return(x, b, b->round);
}

static an_status advance_return(an_reduction_peers *x, an_bucket *b, bool *moved) {
    bool done;
    if (is_windowed(x, b->round)) {
        done = all_have_returned(x, b);
    } else {
        AN_TRY_RETURN(an_parcel_has_come(&x->pipeline, &b->parcel, &done));
        if (done) AN_TRY_RETURN(an_parcel_has_gone(&x->pipeline, &b->parcel, &done));
    }
    if (!done) return AN_OK;
    *moved = true;
    if (b->round > 0) return begin_return(x, b, b->round - 1);
    b->parcel.is_busy = false;
    return AN_OK;
}

an_status an_bucket_advance(an_reduction_peers *peers, an_bucket *bucket, bool *moved) {
    return bucket->is_returning ? advance_return(peers, bucket, moved) : advance_gather(peers, bucket, moved);
}
