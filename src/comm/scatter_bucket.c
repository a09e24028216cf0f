#include <string.h>

#include "base/float16.h"
#include "base/integer.h"
#include "base/parallel.h"
#include "base/status.h"
#include "comm/scatter_inside.h"

/* ---- leaves ---- */

int an_scatter_leaves(const an_scatter_peers *peers, int64_t round) {
    const int64_t left = peers->leaves.end - peers->leaves.begin - round * peers->ranks;
    return (int)an_smaller(left, peers->ranks);
}

static int64_t first_leaf(const an_scatter_peers *p, int64_t round) {
    return an_smaller(p->leaves.begin + round * p->ranks, p->leaves.end);
}

/* Whatever does not reach the next leaf has been added, so these are the maximal nodes of all leaves before it. */
int an_scatter_waiting(const an_scatter_peers *peers, int64_t round, an_tree_node nodes[AN_FOREST_MOST]) {
    const an_leaf_range before = {peers->leaves.begin, first_leaf(peers, round), peers->leaves.leaves};
    return an_forest_nodes(&before, nodes);
}

/* The order of additions of a round (add.h), and how many nodes waited before it; *left: how many are left. */
static int list_joins(const an_scatter_peers *p, int64_t round, int *joins, int *left) {
    an_tree_node nodes[AN_FOREST_MOST];
    int64_t parts[AN_FOREST_MOST + 1];
    const int waiting = an_scatter_waiting(p, round, nodes), leaves = an_scatter_leaves(p, round);
    const int64_t first = first_leaf(p, round), next = round + 1 < p->rounds ? first + leaves : INT64_MAX;
    int count = waiting;
    for (int i = 0; i < waiting; i++) {
        parts[i] = nodes[i].first;
        joins[i] = 0;
    }
    for (int i = 0; i <= leaves; i++) {
        const int64_t leaf = i < leaves ? first + i : next;
        int before = 0;
        for (; an_forest_joins(&p->leaves, parts, count, leaf); count--) before++;
        joins[waiting + i] = before;
        if (i < leaves) parts[count++] = leaf;
    }
    *left = count;
    return waiting;
}

/* ---- slices ---- */

/* Pieces differ by a page at most: the longest. */
static int64_t longest_piece(const an_scatter_peers *p, int unit) {
    const an_page_range *pages = &p->units[unit].pages;
    return an_divide_up(pages->end - pages->begin, p->ranks);
}

int64_t an_scatter_buckets(const an_scatter_peers *peers, int unit) {
    return an_divide_up(longest_piece(peers, unit), peers->slice_pages);
}

int64_t an_scatter_longest_slice(const an_scatter_peers *peers, int unit) {
    return an_divide_up(longest_piece(peers, unit), an_scatter_buckets(peers, unit));
}

static int64_t length(const an_page_range *pages) {
    return pages->end - pages->begin;
}

/* What a rank owns of a bucket. */
static an_page_range slice_of(const an_scatter_peers *p, const an_scatter_bucket *b, int rank) {
    const an_page_range piece =
        an_piece(&p->units[b->parcel.unit].pages, p->units[b->parcel.unit].turn, rank, p->ranks);
    const int64_t pages = length(&piece), count = an_scatter_buckets(p, b->parcel.unit);
    return (an_page_range){piece.begin + pages * b->index / count, piece.begin + pages * (b->index + 1) / count};
}

/* Messages for a piece and a leaf: a slice has a page, or there is none. */
static int64_t messages_of(int64_t pages, int64_t buckets) {
    return an_smaller(pages, buckets);
}

/* Of P pieces of N pages, N mod P have a page more than the others, so all of them are counted without looking at
 * each. */
void an_scatter_measure(const an_scatter_peers *peers, int unit, an_scatter_cost *cost) {
    const an_scatter_peers *p = peers;
    const an_page_range *all = &p->units[unit].pages, own = an_piece(all, p->units[unit].turn, p->rank, p->ranks);
    const int64_t leaves = p->leaves.end - p->leaves.begin, buckets = an_scatter_buckets(p, unit);
    const int64_t mine = an_divide_up(an_larger(leaves - p->rank, 0), p->ranks); /* leaves of this rank */
    const int64_t each = length(all) / p->ranks, longer = length(all) % p->ranks;
    const int64_t messages = longer * messages_of(each + 1, buckets) + (p->ranks - longer) * messages_of(each, buckets);
    cost->received += (leaves - mine) * length(&own) * (int64_t)p->sent_bytes;
    cost->sent += mine * (length(all) - length(&own)) * (int64_t)p->sent_bytes;
    cost->messages += mine * (messages - messages_of(length(&own), buckets));
}

/* ---- messages ---- */

enum { TASK_NUMBERS = 64 << 10 }; /* some ten microseconds */

typedef struct rounding {
    uint16_t *dst;
    const float *src;
    int64_t count;
} rounding;

static void round_some(void *user, int64_t index, int thread) {
    const rounding *r = user;
    const int64_t begin = index * TASK_NUMBERS, end = an_smaller(begin + TASK_NUMBERS, r->count);
    (void)thread;
    for (int64_t i = begin; i < end; i++) r->dst[i] = an_f32_to_bf16(r->src[i]);
}

/* Pages of this rank's leaf. */
static const char *leaf_pages(const an_scatter_peers *p, const an_scatter_bucket *b, const an_page_range *pages) {
    return b->src + (size_t)(pages->begin - p->units[b->parcel.unit].pages.begin) * p->page_bytes;
}

/* What is sent of them: as they lie there, or rounded. *room: what is left of it. */
static const char *pages_to_send(an_scatter_peers *p, const an_scatter_bucket *b, const an_page_range *pages,
                                 char **room) {
    if (!b->src) return p->absent;
    const char *src = leaf_pages(p, b, pages);
    if (!p->is_bf16) return src;
    rounding r = {(uint16_t *)(void *)*room, (const float *)(const void *)src,
                  length(pages) * (int64_t)(p->page_bytes / sizeof(float))};
    an_parallel(p->pipeline.ctx, an_divide_up(r.count, TASK_NUMBERS), round_some, &r);
    *room += (size_t)length(pages) * p->sent_bytes;
    return (const char *)r.dst;
}

static an_status send(an_scatter_peers *p, an_scatter_bucket *b, int to, char **room) {
    const an_page_range pages = slice_of(p, b, to);
    const size_t bytes = (size_t)length(&pages) * p->sent_bytes;
    if (bytes == 0) return AN_OK;
    return an_parcel_send(&p->pipeline, &b->parcel, pages_to_send(p, b, &pages, room), bytes, to);
}

/* Where the slice of another rank's leaf comes. */
static char *received_pages(const an_scatter_peers *p, const an_scatter_bucket *b, int from, size_t bytes) {
    return b->incoming + (size_t)(from < p->rank ? from : from - 1) * bytes;
}

/* Between two ranks, messages of a slot go in the order of the buckets that had it: one each way at most. */
static an_status begin(void *owner, an_parcel *parcel, int64_t index) {
    an_scatter_peers *p = owner;
    an_scatter_bucket *b = (an_scatter_bucket *)(void *)parcel;
    b->round = p->states[parcel->unit].rounds - 1;
    b->index = index;
    b->src = p->states[parcel->unit].src;
    const int leaves = an_scatter_leaves(p, b->round);
    const an_page_range own = slice_of(p, b, p->rank);
    const size_t bytes = (size_t)length(&own) * p->sent_bytes;
    b->is_added = false;
    for (int i = 1; i < p->ranks && bytes > 0; i++) {
        const int from = (p->rank + i) % p->ranks;
        if (from >= leaves) continue;
        AN_TRY_RETURN(an_parcel_receive(&p->pipeline, &b->parcel, received_pages(p, b, from, bytes), bytes, from));
    }
    char *room = b->outgoing;
    for (int i = 1; i < p->ranks && p->rank < leaves; i++) AN_TRY_RETURN(send(p, b, (p->rank + i) % p->ranks, &room));
    return AN_OK;
}

/* ---- adding ---- */

static char *level_pages(const an_scatter_peers *p, int level, int64_t page) {
    return (char *)p->levels[level] + (size_t)page * p->page_bytes;
}

/* The slice of a leaf of the round: where it is, and how it is stored. */
static const void *find_leaf(const an_scatter_peers *p, const an_scatter_bucket *b, const an_page_range *own, int rank,
                             an_addend *addend) {
    *addend = p->is_bf16 ? AN_ADDEND_BF16 : AN_ADDEND_PLAIN;
    if (rank != p->rank) return received_pages(p, b, rank, (size_t)length(own) * p->sent_bytes);
    if (!b->src) return p->absent;
    if (p->is_bf16) *addend = AN_ADDEND_ROUNDED;
    return leaf_pages(p, b, own);
}

static void add(an_scatter_peers *p, const an_scatter_bucket *b) {
    const an_page_range own = slice_of(p, b, p->rank);
    if (length(&own) == 0) return;
    int left;
    const int waiting = list_joins(p, b->round, p->joins, &left), leaves = an_scatter_leaves(p, b->round);
    for (int i = 0; i < waiting; i++) {
        p->src[i] = level_pages(p, i, own.begin);
        p->addends[i] = AN_ADDEND_PLAIN;
    }
    for (int rank = 0; rank < leaves; rank++)
        p->src[waiting + rank] = find_leaf(p, b, &own, rank, &p->addends[waiting + rank]);
    for (int i = 0; i < left; i++) p->dst[i] = level_pages(p, i, own.begin);
    const an_addition addition = {.dtype = p->dtype,
                                  .count = waiting + leaves,
                                  .src = p->src,
                                  .addends = p->is_bf16 ? p->addends : NULL,
                                  .joins = p->joins,
                                  .outputs = left,
                                  .copies = 1,
                                  .dst = p->dst,
                                  .bytes = (size_t)length(&own) * p->page_bytes};
    an_add_nodes(p->pipeline.ctx, &addition);
}

/* ---- from one to the next ---- */

static an_status advance(void *owner, an_parcel *parcel, bool *moved) {
    an_scatter_peers *p = owner;
    an_scatter_bucket *bucket = (an_scatter_bucket *)(void *)parcel;
    bool done = true;
    if (!bucket->is_added) {
        AN_TRY_RETURN(an_parcel_has_come(&p->pipeline, &bucket->parcel, &done));
        if (!done) return AN_OK;
        add(p, bucket);
        bucket->is_added = *moved = true;
    }
    AN_TRY_RETURN(an_parcel_has_gone(&p->pipeline, &bucket->parcel, &done));
    if (!done) return AN_OK;
    bucket->parcel.is_busy = false;
    *moved = true;
    return AN_OK;
}

const an_pipeline_kind an_scatter_kind = {.what = "gradients",
                                          .tag = AN_TAG_SCATTER,
                                          .parcel_bytes = sizeof(an_scatter_bucket),
                                          .begin = begin,
                                          .advance = advance};
