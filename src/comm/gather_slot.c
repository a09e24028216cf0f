#include "comm/gather_inside.h"

#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/parallel.h"

/* ---- what a rank owns of a run ---- */

typedef struct segment {
    int channel;
    size_t src_at, dst_at, bytes; /* no bytes: no page of the run is in its piece */
} segment;

static segment segment_of(const an_gather_peers *p, const an_gather_unit *unit, int run, int rank) {
    const an_gather_run *r = &unit->runs[run];
    const an_page_range piece = an_piece(&unit->pages, unit->turn, rank, p->ranks);
    const int64_t begin = an_larger(piece.begin, r->pages.begin), end = an_smaller(piece.end, r->pages.end);
    if (begin >= end) return (segment){.channel = r->channel};
    const size_t page_bytes = p->page_bytes[r->channel], at = (size_t)(begin - r->pages.begin) * page_bytes;
    return (segment){.channel = r->channel,
                     .src_at = (size_t)r->src_at + at,
                     .dst_at = (size_t)r->dst_at + at,
                     .bytes = (size_t)(end - begin) * page_bytes};
}

static int64_t messages_of(const an_gather_peers *p, int64_t bytes) {
    return an_divide_up(bytes, (int64_t)p->message_bytes);
}

/* The messages in which all ranks send their segments of a run to one other. Pieces that lie in the run whole have
 * ⌊N/P⌋ or ⌊N/P⌋ + 1 pages: of pieces a … b - 1, ⌊b·r/P⌋ - ⌊a·r/P⌋ have one more, where r is the rest of N/P
 * (comm/pieces.h). Only the first and the last piece of a run can be cut by its borders. */
static int64_t run_messages(const an_gather_peers *p, const an_gather_unit *unit, int run) {
    const an_page_range *pages = &unit->runs[run].pages;
    const int64_t page_bytes = (int64_t)p->page_bytes[unit->runs[run].channel];
    const int64_t each = (unit->pages.end - unit->pages.begin) / p->ranks;
    const int64_t rest = (unit->pages.end - unit->pages.begin) % p->ranks;
    const int first = an_piece_owner(&unit->pages, unit->turn, pages->begin, p->ranks),
              last = an_piece_owner(&unit->pages, unit->turn, pages->end - 1, p->ranks);
    const int64_t a = an_piece_number(unit->turn, first, p->ranks) + 1, b = an_piece_number(unit->turn, last, p->ranks);
    int64_t messages = messages_of(p, (int64_t)segment_of(p, unit, run, first).bytes);
    if (b < a) return messages; /* one piece has the whole run */
    const int64_t longer = b * rest / p->ranks - a * rest / p->ranks;
    messages += longer * messages_of(p, (each + 1) * page_bytes) + (b - a - longer) * messages_of(p, each * page_bytes);
    return messages + messages_of(p, (int64_t)segment_of(p, unit, run, last).bytes);
}

int64_t an_gather_slot_measure(const an_gather_peers *peers, const an_gather_unit *unit, an_gather_cost *cost) {
    const an_gather_peers *p = peers;
    const int64_t others = p->ranks - 1;
    int64_t requests = 0;
    for (int run = 0; run < unit->run_count; run++) {
        const an_gather_run *r = &unit->runs[run];
        const int64_t all = (r->pages.end - r->pages.begin) * (int64_t)p->page_bytes[r->channel],
                      own = (int64_t)segment_of(p, unit, run, p->rank).bytes;
        if (p->is_windowed) {
            cost->read += all - own;
            continue;
        }
        const int64_t sent = messages_of(p, own) * others;
        cost->sent += own * others;
        cost->received += all - own;
        cost->messages += sent;
        requests += sent + run_messages(p, unit, run) - messages_of(p, own);
    }
    return requests;
}

/* ---- messages ---- */

static an_status send(an_gather_peers *p, an_gather_slot *slot, int run, int to) {
    const segment s = segment_of(p, slot->unit, run, p->rank);
    for (size_t at = 0; at < s.bytes; at += p->message_bytes) {
        const size_t bytes = (size_t)an_smaller((int64_t)(s.bytes - at), (int64_t)p->message_bytes);
        AN_TRY_RETURN(an_parcel_send(&p->pipeline, &slot->parcel, slot->src[s.channel] + s.src_at + at, bytes, to));
    }
    return AN_OK;
}

static an_status receive(an_gather_peers *p, an_gather_slot *slot, int run, int from) {
    const segment s = segment_of(p, slot->unit, run, from);
    for (size_t at = 0; at < s.bytes; at += p->message_bytes) {
        const size_t bytes = (size_t)an_smaller((int64_t)(s.bytes - at), (int64_t)p->message_bytes);
        AN_TRY_RETURN(
            an_parcel_receive(&p->pipeline, &slot->parcel, slot->dst[s.channel] + s.dst_at + at, bytes, from));
    }
    return AN_OK;
}

/* Between two ranks, messages of a slot go in the order of the units that had it, and of their runs. */
static an_status begin(void *owner, an_parcel *parcel, int64_t index) {
    an_gather_peers *p = owner;
    an_gather_slot *slot = (an_gather_slot *)(void *)parcel;
    const an_gather_start *start = &p->starts[parcel->unit];
    (void)index;
    slot->unit = &p->units[parcel->unit];
    slot->version = p->version;
    memcpy(slot->src, start->src, sizeof slot->src);
    memcpy(slot->dst, start->dst, sizeof slot->dst);
    slot->has_come = false;
    slot->next_rank = slot->next_run = 0;
    slot->copied = 0;
    if (p->is_windowed) return AN_OK;
    for (int i = 1; i < p->ranks; i++)
        for (int run = 0; run < slot->unit->run_count; run++)
            AN_TRY_RETURN(receive(p, slot, run, (p->rank + i) % p->ranks));
    for (int i = 1; i < p->ranks; i++)
        for (int run = 0; run < slot->unit->run_count; run++)
            AN_TRY_RETURN(send(p, slot, run, (p->rank + i) % p->ranks));
    return AN_OK;
}

/* ---- copies: own pages, and with a window those of all others ---- */

enum { TASK_BYTES = 256 << 10 }; /* some ten microseconds */

typedef struct copy {
    char *dst;
    const char *src;
    size_t bytes;
} copy;

static void copy_some(void *user, int64_t index, int thread) {
    const copy *c = user;
    const size_t at = (size_t)index * TASK_BYTES;
    (void)thread;
    memcpy(c->dst + at, c->src + at, (size_t)an_smaller(TASK_BYTES, (int64_t)(c->bytes - at)));
}

/* A segment of another rank, in its part of the window. Its place was written by another process, so it is
 * looked at before it is used. */
static an_status find_in_window(const an_gather_peers *p, const segment *s, int rank, const char **at) {
    an_context *ctx = p->pipeline.ctx;
    const uint64_t place = __atomic_load_n(&an_gather_head_of(p, rank)->places[s->channel], __ATOMIC_RELAXED);
    const uint64_t end = s->src_at + s->bytes, bytes = p->part_bytes[rank];
    if (place % AN_ALIGNMENT != 0 || place > bytes || end > bytes - place) {
        char message[AN_COMM_NOTE];
        snprintf(message, sizeof message, "rank %d has weights that are not in its shared memory", rank);
        an_comm_abort(ctx, AN_ERR_COMMUNICATION, message);
        return AN_ERROR(ctx, AN_ERR_COMMUNICATION, "%s", message);
    }
    *at = (const char *)an_window_part(p->window, rank) + place + s->src_at;
    return AN_OK;
}

/* As much of the next segment as `room` allows. */
static an_status copy_segment(an_gather_peers *p, an_gather_slot *slot, int from, size_t *room) {
    an_context *ctx = p->pipeline.ctx;
    const segment s = segment_of(p, slot->unit, slot->next_run, from);
    if (s.bytes == 0) return AN_OK;
    const char *src = slot->src[s.channel] + s.src_at;
    char *dst = slot->dst[s.channel] + s.dst_at;
    if (from != p->rank) AN_TRY_RETURN(find_in_window(p, &s, from, &src));
    if (src == dst) return AN_OK;
    copy c = {dst + slot->copied, src + slot->copied, s.bytes - slot->copied};
    if (c.bytes > *room) c.bytes = *room;
    an_parallel(ctx, an_divide_up((int64_t)c.bytes, TASK_BYTES), copy_some, &c);
    *room -= c.bytes;
    slot->copied += c.bytes;
    if (from != p->rank) p->read += (int64_t)c.bytes;
    return AN_OK;
}

/* All ranks publish as often as this one, and their next version comes only after this rank has said
 * that it has read this one. */
static bool has_published(const an_gather_peers *p, int rank, uint64_t version) {
    return an_window_read(&an_gather_head_of(p, rank)->published) >= version;
}

static bool is_copied(const an_gather_peers *p, const an_gather_slot *slot) {
    return slot->next_rank == (p->is_windowed ? p->ranks : 1);
}

static an_status copy_what_is_there(an_gather_peers *p, an_gather_slot *slot, bool *moved) {
    size_t room = AN_GATHER_COPY_BYTES;
    for (; !is_copied(p, slot); slot->next_rank++, slot->next_run = 0) {
        const int from = (p->rank + slot->next_rank) % p->ranks;
        if (from != p->rank && !has_published(p, from, slot->version)) return AN_OK;
        for (; slot->next_run < slot->unit->run_count; slot->next_run++, slot->copied = 0) {
            AN_TRY_RETURN(copy_segment(p, slot, from, &room));
            *moved = true;
            if (room == 0) return AN_OK; /* whether or not this was the end of the segment */
        }
    }
    return AN_OK;
}

/* ---- from one to the next ---- */

static an_status advance(void *owner, an_parcel *parcel, bool *moved) {
    an_gather_peers *p = owner;
    an_gather_slot *slot = (an_gather_slot *)(void *)parcel;
    bool done = true;
    if (!slot->has_come) {
        AN_TRY_RETURN(copy_what_is_there(p, slot, moved));
        if (!is_copied(p, slot)) return AN_OK;
        AN_TRY_RETURN(an_parcel_has_come(&p->pipeline, &slot->parcel, &done));
        if (!done) return AN_OK;
        slot->has_come = *moved = true;
    }
    AN_TRY_RETURN(an_parcel_has_gone(&p->pipeline, &slot->parcel, &done));
    if (!done) return AN_OK;
    slot->parcel.is_busy = false;
    *moved = true;
    return AN_OK;
}

static void take_done(void *owner, uint64_t done) {
    const an_gather_peers *p = owner;
    if (p->is_windowed) an_window_publish(&an_gather_head_of(p, p->rank)->read, done);
}

const an_pipeline_kind an_gather_kind = {.what = "weights",
                                         .rest = "other ranks to copy the weights of this one",
                                         .tag = AN_TAG_GATHER,
                                         .parcel_bytes = sizeof(an_gather_slot),
                                         .begin = begin,
                                         .advance = advance,
                                         .take_done = take_done};
