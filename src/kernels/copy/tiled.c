/* Makes a transposed tensor contiguous, in square tiles.
 *
 * The portable kernel writes dst row by row and so reads src down its columns: it uses one element of every cache
 * line, and if a column is larger than the cache, the line is evicted before the next element is needed. In a tile,
 * all elements that are read from a line are used while it is in the cache.
 */
#include "base/parallel.h"
#include "kernels/common/copy_tensor.h"
#include "kernels/copy/copy.h"

/* A row of a tile is a cache line of f32; lines of both sides fit in any first-level cache. A task has 2¹⁵ elements. */
enum { TILE = 16, TASK_TILES = 128 };

typedef struct {
    const char *src;
    char *dst;
    an_dtype dtype;
    an_copy_space space;
    int across; /* the dimension in which src is dense; dst is in the last */
    int64_t row_tiles, column_tiles, tiles;
} job;

/* The dimension in which src is dense, if it is another than dst's; else -1. Where steps of src are small, or none, as
 * where a row has few elements or one is repeated, the portable kernel has the rest of the line in its next steps. */
static int find_across(const an_copy_space *s) {
    int last = s->ndims - 1;
    if (s->dst_strides[last] != 1 || s->src_strides[last] < TILE) return -1;
    for (int i = last - 1; i >= 0; i--)
        if (s->src_strides[i] == 1) return i;
    return -1;
}

bool an_contiguous_tiled_applies(const an_call *call) {
    an_copy_space space;
    an_copy_space_make(&space, &call->src[0], &call->dst[0]);
    return call->src[0].dtype == call->dst[0].dtype && find_across(&space) >= 0;
}

#define MOVE(type)                                                                                   \
    do {                                                                                             \
        const type *from = (const type *)j->src + src_at;                                            \
        type *to = (type *)j->dst + dst_at;                                                          \
        for (int64_t i = 0; i < rows; i++)                                                           \
            for (int64_t k = 0; k < columns; k++) to[i * dst_stride + k] = from[k * src_stride + i]; \
    } while (0)

static int64_t tile_size(int64_t begin, int64_t size) {
    return size - begin < TILE ? size - begin : TILE;
}

static void move_tile(const job *j, int64_t tile) {
    const an_copy_space *s = &j->space;
    int last = s->ndims - 1;
    int64_t column = tile % j->column_tiles * TILE, row = tile / j->column_tiles % j->row_tiles * TILE;
    int64_t rest = tile / j->column_tiles / j->row_tiles;
    int64_t columns = tile_size(column, s->dims[last]), rows = tile_size(row, s->dims[j->across]);
    int64_t dst_stride = s->dst_strides[j->across], src_stride = s->src_strides[last];
    int64_t src_at = column * src_stride + row, dst_at = row * dst_stride + column;
    for (int i = last - 1; i >= 0; i--) {
        if (i == j->across) continue;
        src_at += rest % s->dims[i] * s->src_strides[i];
        dst_at += rest % s->dims[i] * s->dst_strides[i];
        rest /= s->dims[i];
    }
    switch (j->dtype) {
    case AN_DTYPE_F32: MOVE(float); break;
    case AN_DTYPE_F64: MOVE(double); break;
    case AN_DTYPE_BF16:
    case AN_DTYPE_F16: MOVE(uint16_t); break;
    case AN_DTYPE_I32: MOVE(int32_t); break;
    case AN_DTYPE_I64: MOVE(int64_t); break;
    case AN_DTYPE_U8: MOVE(uint8_t); break;
    case AN_DTYPE_Q8_0: /* has no element of its own */
    case AN_DTYPE_NONE:
    case AN_DTYPE_LIMIT: break;
    }
}

static void tile_task(void *user, int64_t index, int thread) {
    const job *j = user;
    int64_t end = (index + 1) * TASK_TILES < j->tiles ? (index + 1) * TASK_TILES : j->tiles;
    (void)thread;
    for (int64_t tile = index * TASK_TILES; tile < end; tile++) move_tile(j, tile);
}

an_status an_contiguous_tiled_run(const an_call *call) {
    const an_tensor *src = &call->src[0], *dst = &call->dst[0];
    job j = {.src = src->data, .dst = dst->data, .dtype = dst->dtype};
    an_copy_space_make(&j.space, src, dst);
    j.across = find_across(&j.space);
    if (j.across < 0) { /* asked at the largest sizes it applied; with a dimension of 1 there is nothing to transpose */
        an_copy_tensor(call->ctx, src, dst);
        return AN_OK;
    }
    j.column_tiles = (j.space.dims[j.space.ndims - 1] + TILE - 1) / TILE;
    j.row_tiles = (j.space.dims[j.across] + TILE - 1) / TILE;
    j.tiles = j.column_tiles * j.row_tiles;
    for (int i = 0; i < j.space.ndims - 1; i++)
        if (i != j.across) j.tiles *= j.space.dims[i];
    an_parallel(call->ctx, (j.tiles + TASK_TILES - 1) / TASK_TILES, tile_task, &j);
    return AN_OK;
}
