#include "kernels/product/loss_leaves.h"

#include "base/integer.h"
#include "base/status.h"
#include "kernels/product/product.h"

/* ---- the choice ---- */

/* A node that holds b buffers besides its own is made of 2^b nodes that are more than a chunk each (node_buffers). */
static an_loss_cut cut_of(int64_t rows, int64_t all, const an_leaf_cut *maximum) {
    an_loss_cut cut = {.rows = rows};
    const int64_t leaves = an_smaller(maximum->count, maximum->samples);
    for (int64_t nodes = 2; nodes <= leaves && nodes * (rows + 1) <= all; nodes *= 2) cut.buffers++;
    return cut;
}

an_loss_cut an_loss_cut_choose(int64_t all, const an_leaf_cut *maximum, size_t row_bytes, size_t buffer_bytes) {
    an_loss_cut best = {0};
    size_t minimum = SIZE_MAX;
    for (int64_t rows = AN_PRODUCT_CUT; best.rows == 0 || rows < 2 * all; rows *= 2) {
        const an_loss_cut cut = cut_of(rows, all, maximum);
        const size_t bytes = (size_t)an_smaller(rows, all) * row_bytes + (size_t)cut.buffers * buffer_bytes;
        if (bytes < minimum) best = cut, minimum = bytes;
    }
    return best;
}

/* ---- the walk ---- */

/* 2^level leaves from `first` on. */
typedef struct {
    int64_t first;
    int level;
} node;

/* Sums that wait are a stack: those from `pending` on are added at the end of the node under way, the last first. */
typedef struct {
    const an_loss_walk *walk;
    bool is_used[AN_LOSS_MOST_BUFFERS];
    void *waiting[AN_LOSS_MOST_BUFFERS];
    int waiting_count;
} state;

static int64_t end_of(const an_leaf_cut *leaves, int64_t leaf) {
    return leaf <= 0 ? 0 : leaves->ends[an_smaller(leaf, leaves->count) - 1];
}

static int64_t node_rows(const an_loss_walk *w, node n) {
    return (end_of(w->leaves, n.first + ((int64_t)1 << n.level)) - end_of(w->leaves, n.first)) * w->each;
}

static node half_of(node n, int half) {
    return (node){n.first + (half ? (int64_t)1 << (n.level - 1) : 0), n.level - 1};
}

/* Buffers that a node needs if what it is added to has its own: none if it is a chunk, which is added as it is made. */
static int node_buffers(const an_loss_walk *w, node n) {
    if (node_rows(w, n) <= w->cut.rows) return 0;
    if (n.level == 0) return 1;
    const int left = node_buffers(w, half_of(n, 0)), right = node_buffers(w, half_of(n, 1));
    return left == right ? left + 1 : left > right ? left : right;
}

static void *take_buffer(state *s) {
    int i = 0;
    while (s->is_used[i]) i++;
    s->is_used[i] = true;
    return s->walk->buffers[i];
}

/* Releases the buffers that have been added, but for the one that holds the sum. */
static void release_waiting(state *s, int pending, const void *sums) {
    for (; s->waiting_count > pending; s->waiting_count--)
        for (int i = 0; s->waiting[s->waiting_count - 1] != sums && i <= s->walk->cut.buffers; i++)
            if (s->walk->buffers[i] == s->waiting[s->waiting_count - 1]) s->is_used[i] = false;
}

/* Some leaves in one chunk, added to the outermost of what waits. */
static an_status run_chunk(state *s, node n, int pending, void **sums) {
    const an_loss_walk *w = s->walk;
    const int64_t begin = end_of(w->leaves, n.first);
    const int64_t count = an_smaller((int64_t)1 << n.level, w->leaves->count - n.first);
    for (int64_t i = 0; i < count; i++) w->ends[i] = w->leaves->ends[n.first + i] - begin;
    const an_leaf_cut leaves = {.count = count, .samples = w->ends[count - 1], .ends = w->ends};
    *sums = s->waiting_count > pending ? s->waiting[pending] : take_buffer(s);
    const an_loss_chunk chunk = {.row = begin * w->each,
                                 .rows = leaves.samples * w->each,
                                 .leaves = count > 1 ? &leaves : NULL,
                                 .sums = *sums,
                                 .add_count = s->waiting_count - pending,
                                 .add_to = (const void *const *)s->waiting + pending};
    AN_TRY_RETURN(w->run(w->user, &chunk));
    release_waiting(s, pending, *sums);
    return AN_OK;
}

/* A leaf that is longer than a chunk. */
static an_status run_leaf(state *s, node n, int pending, void **sums) {
    const an_loss_walk *w = s->walk;
    const int64_t begin = end_of(w->leaves, n.first) * w->each, rows = node_rows(w, n);
    *sums = take_buffer(s);
    for (int64_t row = 0; row < rows; row += w->cut.rows) {
        const bool is_last = row + w->cut.rows >= rows;
        const an_loss_chunk chunk = {.row = begin + row,
                                     .rows = an_smaller(w->cut.rows, rows - row),
                                     .continues = row > 0,
                                     .sums = *sums,
                                     .add_count = is_last ? s->waiting_count - pending : 0,
                                     .add_to = (const void *const *)s->waiting + pending};
        AN_TRY_RETURN(w->run(w->user, &chunk));
    }
    release_waiting(s, pending, *sums);
    return AN_OK;
}

static an_status run_node(state *s, node n, int pending, void **sums) {
    if (node_rows(s->walk, n) <= s->walk->cut.rows) return run_chunk(s, n, pending, sums);
    if (n.level == 0) return run_leaf(s, n, pending, sums);
    const node halves[] = {half_of(n, 0), half_of(n, 1)};
    const int first = node_buffers(s->walk, halves[1]) > node_buffers(s->walk, halves[0]);
    if (node_rows(s->walk, halves[1 - first]) == 0) return run_node(s, halves[first], pending, sums);
    if (node_rows(s->walk, halves[first]) == 0) return run_node(s, halves[1 - first], pending, sums);
    void *waits;
    AN_TRY_RETURN(run_node(s, halves[first], s->waiting_count, &waits));
    s->waiting[s->waiting_count++] = waits;
    return run_node(s, halves[1 - first], pending, sums);
}

an_status an_loss_walk_run(const an_loss_walk *walk, void **sums) {
    state s = {.walk = walk};
    node all = {0};
    while ((int64_t)1 << all.level < walk->leaves->count) all.level++;
    return run_node(&s, all, 0, sums);
}
