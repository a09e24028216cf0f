/* The public collectives, on messages between two ranks. They are for a program's own numbers:
 * training has its own exchanges. */
#include <string.h>

#include "anneal/ranks.h"
#include "base/guard.h"
#include "base/memory.h"
#include "base/tree.h"
#include "comm/agree.h"
#include "comm/binomial.h"
#include "comm/mesh.h"

enum { CHUNK = 1 << 20 }; /* bytes that are reduced at once: scratch stays small whatever the count */

/* ---- how two elements are combined ---- */

typedef void combiner(size_t count, void *dst, const void *next);

#define SUM(type, a, b) (a) + (b)
#define WRAPPED_SUM(type, a, b) (type)((uint64_t)(a) + (uint64_t)(b))
/* Either number if it is NaN, the one that is not the other. */
#define MIN(type, a, b) (a) != (a) || (a) < (b) ? (a) : (b)
#define MAX(type, a, b) (a) != (a) || (a) > (b) ? (a) : (b)
#define COMBINER(name, type, expression)                                                    \
    static void name(size_t count, void *dst, const void *next) {                           \
        type *a = dst;                                                                      \
        const type *b = next;                                                               \
        for (size_t i = 0; i < count / sizeof *a; i++) a[i] = expression(type, a[i], b[i]); \
    }
COMBINER(sum_f32, float, SUM)
COMBINER(sum_f64, double, SUM)
COMBINER(sum_i32, int32_t, WRAPPED_SUM)
COMBINER(sum_i64, int64_t, WRAPPED_SUM)
COMBINER(min_f32, float, MIN)
COMBINER(min_f64, double, MIN)
COMBINER(min_i32, int32_t, MIN)
COMBINER(min_i64, int64_t, MIN)
COMBINER(max_f32, float, MAX)
COMBINER(max_f64, double, MAX)
COMBINER(max_i32, int32_t, MAX)
COMBINER(max_i64, int64_t, MAX)

static const struct {
    an_dtype dtype;
    combiner *combine[AN_REDUCE_MAX]; /* by an_reduce_kind, from 1 */
} combiners[] = {{AN_DTYPE_F32, {sum_f32, min_f32, max_f32}},
                 {AN_DTYPE_F64, {sum_f64, min_f64, max_f64}},
                 {AN_DTYPE_I32, {sum_i32, min_i32, max_i32}},
                 {AN_DTYPE_I64, {sum_i64, min_i64, max_i64}}};

/* ---- what one rank can say about its call ---- */

static an_status check_reduction(an_context *ctx, an_dtype dtype, an_reduce_kind kind, combiner **combine) {
    if (kind < AN_REDUCE_SUM || kind > AN_REDUCE_MAX)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%d is not a value of an_reduce_kind", (int)kind);
    for (size_t i = 0; i < sizeof combiners / sizeof *combiners; i++)
        if (combiners[i].dtype == dtype) {
            *combine = combiners[i].combine[kind - 1];
            return AN_OK;
        }
    return AN_ERROR(ctx, AN_ERR_DTYPE, "elements of type %s cannot be reduced; f32, f64, i32 and i64 can",
                    an_dtype_name(dtype));
}

/* `bytes` of count elements, of which all ranks together must fit into memory. */
static an_status check_data(an_context *ctx, const an_collective *call, const void *a, const void *b, size_t *bytes) {
    const size_t element = an_dtype_size((an_dtype)call->dtype);
    const int ranks = ctx->mesh->comm->ranks;
    size_t all = 0;
    *bytes = 0;
    if (!element)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %d is not a type of elements", call->name, (int)call->dtype);
    if (call->count < 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: the count is %lld", call->name, (long long)call->count);
    if (!an_add_elements(bytes, (size_t)call->count, element) || !an_add_elements(&all, (size_t)ranks, *bytes))
        return AN_ERROR(ctx, AN_ERR_OVERFLOW, "%s: memory has no room for %lld elements of %d ranks", call->name,
                        (long long)call->count, ranks);
    if (call->root < 0 || call->root >= ranks)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: the root is rank %d of %d", call->name, (int)call->root, ranks);
    if (call->count > 0 && (!a || !b)) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: data is NULL", call->name);
    return AN_OK;
}

/* ---- data of one rank ---- */

an_status an_ranks_barrier(an_context *ctx) {
    AN_NEED_IN(ctx, ctx);
    AN_GUARD;
    const an_collective call = {.name = "an_ranks_barrier"};
    return an_collective_agree(ctx, &call, AN_OK);
}

an_status an_ranks_broadcast(an_context *ctx, void *data, int64_t count, an_dtype dtype, int root) {
    AN_NEED_IN(ctx, ctx);
    AN_GUARD;
    const an_collective call = {.name = "an_ranks_broadcast", .count = count, .dtype = (int32_t)dtype, .root = root};
    size_t bytes;
    const an_status mine = check_data(ctx, &call, data, data, &bytes);
    AN_TRY_RETURN(an_collective_agree(ctx, &call, mine));
    AN_TRY_RETURN(an_comm_spread(ctx, ctx->mesh->comm, data, bytes, root, AN_TAG_COLLECTIVE, call.name));
    return AN_OK;
}

/* ---- data of all ranks ---- */

an_status an_ranks_gather(an_context *ctx, const void *src, void *dst, int64_t count, an_dtype dtype, int root) {
    AN_NEED_IN(ctx, ctx);
    AN_GUARD;
    const an_collective call = {.name = "an_ranks_gather", .count = count, .dtype = (int32_t)dtype, .root = root};
    an_comm *comm = ctx->mesh->comm;
    size_t bytes;
    const an_status mine = check_data(ctx, &call, src, comm->rank == root ? dst : src, &bytes);
    AN_TRY_RETURN(an_collective_agree(ctx, &call, mine));
    if (comm->rank != root) return an_comm_send_all(ctx, comm, src, bytes, root, AN_TAG_COLLECTIVE, "an_ranks_gather");
    if (bytes) memmove((char *)dst + (size_t)root * bytes, src, bytes);
    for (int i = 0; i < comm->ranks; i++) /* O(ranks), as the result is */
        if (i != root)
            AN_TRY_RETURN(an_comm_receive_all(ctx, comm, (char *)dst + (size_t)i * bytes, bytes, i, AN_TAG_COLLECTIVE,
                                              "an_ranks_gather"));
    return AN_OK;
}

/* Sends one block and receives another at the same time, in pieces. */
static an_status pass_on(an_context *ctx, const char *out, int to, char *in, int from, size_t bytes) {
    static const char *const what = "an_ranks_all_gather";
    an_comm *comm = ctx->mesh->comm;
    for (size_t at = 0, piece; at < bytes; at += piece) {
        an_comm_request requests[2];
        piece = bytes - at < ctx->mesh->piece ? bytes - at : ctx->mesh->piece;
        AN_TRY_RETURN(an_comm_receive(ctx, comm, in + at, piece, from, AN_TAG_COLLECTIVE, &requests[0]));
        const an_status status = an_comm_send(ctx, comm, out + at, piece, to, AN_TAG_COLLECTIVE, &requests[1]);
        if (status != AN_OK) {
            an_comm_cancel(comm, requests, 1);
            return status;
        }
        AN_TRY_RETURN(an_comm_wait(ctx, comm, requests, 2, what));
    }
    return AN_OK;
}

/* A ring: each rank passes on what it received last. */
an_status an_ranks_all_gather(an_context *ctx, const void *src, void *dst, int64_t count, an_dtype dtype) {
    AN_NEED_IN(ctx, ctx);
    AN_GUARD;
    const an_collective call = {.name = "an_ranks_all_gather", .count = count, .dtype = (int32_t)dtype};
    const an_comm *comm = ctx->mesh->comm;
    const int rank = comm->rank, ranks = comm->ranks;
    char *blocks = dst;
    size_t bytes;
    const an_status mine = check_data(ctx, &call, src, dst, &bytes);
    AN_TRY_RETURN(an_collective_agree(ctx, &call, mine));
    if (bytes) memmove(blocks + (size_t)rank * bytes, src, bytes);
    for (int i = 0; i < ranks - 1; i++) {
        const int out = (rank - i + ranks) % ranks, in = (rank - i - 1 + ranks) % ranks;
        AN_TRY_RETURN(pass_on(ctx, blocks + (size_t)out * bytes, (int)(((int64_t)rank + 1) % ranks),
                              blocks + (size_t)in * bytes, (rank - 1 + ranks) % ranks, bytes));
    }
    return AN_OK;
}

/* ---- reductions ---- */

typedef struct {
    combiner *combine;
    size_t bytes;
} chunk;

static void merge_chunk(void *user, void *record, const void *next) {
    const chunk *c = user;
    c->combine(c->bytes, record, next);
}

an_status an_ranks_all_reduce(an_context *ctx, void *data, int64_t count, an_dtype dtype, an_reduce_kind kind) {
    AN_NEED_IN(ctx, ctx);
    AN_GUARD;
    const an_collective call = {
        .name = "an_ranks_all_reduce", .count = count, .dtype = (int32_t)dtype, .kind = (int32_t)kind};
    combiner *combine = NULL;
    void *received = NULL;
    size_t bytes = 0, at = 0;
    an_status status = check_reduction(ctx, dtype, kind, &combine);
    if (status == AN_OK) status = check_data(ctx, &call, data, data, &bytes);
    const size_t room = bytes < CHUNK ? bytes : CHUNK;
    if (status == AN_OK) status = an_alloc(ctx, &received, room, 1);
    AN_TRY(an_collective_agree(ctx, &call, status));
    for (; at < bytes; at += room) {
        chunk c = {combine, bytes - at < room ? bytes - at : room};
        const an_comm_merger merger = {.bytes = c.bytes,
                                       .merge = merge_chunk,
                                       .user = &c,
                                       .received = received,
                                       .what = "an_ranks_all_reduce",
                                       .tag = AN_TAG_COLLECTIVE};
        AN_TRY(an_comm_merge(ctx, ctx->mesh->comm, &merger, (char *)data + at));
    }
fail:
    an_release(ctx, &received, room, 1);
    return status;
}

/* What every rank needs to add up one block of its own. */
typedef struct {
    an_comm_request *sends; /* by rank */
    char *nodes;            /* of the tree: `room` bytes each */
    size_t room;
} scatter;

/* Adds a chunk of all ranks in the tree over their numbers, as it arrives in that order. The sum is node 0. */
static an_status add_up(an_context *ctx, const scatter *s, const char *mine, size_t bytes, combiner *combine) {
    an_comm *comm = ctx->mesh->comm;
    an_tree tree = {0};
    for (int i = 0; i < comm->ranks; i++) {
        char *node = s->nodes + (size_t)tree.count * s->room;
        if (i == comm->rank)
            memcpy(node, mine, bytes);
        else
            AN_TRY_RETURN(an_comm_receive_all(ctx, comm, node, bytes, i, AN_TAG_COLLECTIVE, "an_ranks_reduce_scatter"));
        an_tree_push(&tree, i);
        while (an_tree_must_add(&tree, i + 1 < comm->ranks ? i + 1 : INT64_MAX)) {
            char *top = s->nodes + (size_t)(tree.count - 1) * s->room;
            combine(bytes, top - s->room, top);
            an_tree_added(&tree);
        }
    }
    return AN_OK;
}

/* Every rank sends each of the others its block, and adds up the blocks of its own: nothing is sent
 * twice. O(ranks) messages. */
an_status an_ranks_reduce_scatter(an_context *ctx, const void *src, void *dst, int64_t count, an_dtype dtype,
                                  an_reduce_kind kind) {
    AN_NEED_IN(ctx, ctx);
    AN_GUARD;
    const an_collective call = {
        .name = "an_ranks_reduce_scatter", .count = count, .dtype = (int32_t)dtype, .kind = (int32_t)kind};
    an_comm *comm = ctx->mesh->comm;
    const size_t ranks = (size_t)comm->ranks, nodes = (size_t)an_tree_nodes(comm->ranks);
    const char *blocks = src;
    combiner *combine = NULL;
    scatter s = {0};
    size_t bytes = 0;
    an_status status = check_reduction(ctx, dtype, kind, &combine);
    if (status == AN_OK) status = check_data(ctx, &call, src, dst, &bytes);
    s.room = bytes < CHUNK ? bytes : CHUNK;
    if (status == AN_OK) status = an_alloc(ctx, (void **)&s.sends, ranks, sizeof *s.sends);
    if (status == AN_OK) status = an_alloc(ctx, (void **)&s.nodes, nodes * s.room, 1);
    AN_TRY(an_collective_agree(ctx, &call, status));
    for (size_t at = 0; s.nodes && at < bytes; at += s.room) {
        const size_t piece = bytes - at < s.room ? bytes - at : s.room;
        for (size_t i = 0; i < ranks; i++)
            if ((int)i != comm->rank)
                AN_TRY(an_comm_send(ctx, comm, blocks + i * bytes + at, piece, (int)i, AN_TAG_COLLECTIVE, &s.sends[i]));
        AN_TRY(add_up(ctx, &s, blocks + (size_t)comm->rank * bytes + at, piece, combine));
        AN_TRY(an_comm_wait(ctx, comm, s.sends, comm->ranks, "an_ranks_reduce_scatter"));
        memcpy((char *)dst + at, s.nodes, piece);
    }
fail:
    if (s.sends) an_comm_cancel(comm, s.sends, comm->ranks);
    an_release(ctx, (void **)&s.nodes, nodes * s.room, 1);
    an_release(ctx, (void **)&s.sends, ranks, sizeof *s.sends);
    return status;
}
