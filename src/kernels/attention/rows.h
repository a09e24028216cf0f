/* Rows of scores: what the fast kernels of attention do between their products.
 *
 * A row has the products of one query with a tile of keys. Only its `columns` were computed: those that some query near
 * this one sees, rounded outwards; what this one does not see gets a probability of 0. So a query's bits do not depend
 * on the queries beside it.
 *
 * These functions fuse multiplications with additions, so they are for levels that can. Vectors of any width give the
 * same bits.
 */
#ifndef AN_KERNELS_ATTENTION_ROWS_H
#define AN_KERNELS_ATTENTION_ROWS_H

#include "base/elementary/elementary.h"
#include "base/memory.h"
#include "kernels/attention/job.h"
#include "kernels/attention/vector.h"
#include "kernels/common/reduce_order.h"

enum { AN_ATTENTION_TILE = 256 }; /* most keys of a tile */

/* Keys, the head of queries that looks at them, and the documents that they belong to. */
typedef struct an_key_tile {
    an_head at;
    an_tokens keys;
    int64_t documents[AN_ATTENTION_TILE];
} an_key_tile;

static inline void an_set_tile(const an_attention_job *j, an_key_tile *tile, an_tokens keys) {
    tile->keys = keys;
    an_load_documents(j, tile->at.batch, keys, tile->documents);
}

/* The columns of a tile that are computed for each `rows` of these queries, in multiples of `granule`. Returns how many
 * such groups there are. */
static inline int64_t an_set_columns(const an_attention_job *j, const an_key_tile *tile, an_tokens queries,
                                     int64_t rows, int64_t granule, an_tokens *columns) {
    const int64_t groups = an_tiles(queries.count, rows), first = tile->keys.begin;
    for (int64_t g = 0; g < groups; g++) {
        const int64_t count = an_smaller(rows, queries.count - g * rows);
        const an_key_range visible = an_visible_keys(j, (an_tokens){queries.begin + g * rows, count});
        const int64_t end = an_smaller(visible.end - first, tile->keys.count);
        const int64_t begin = visible.begin > first ? (visible.begin - first) / granule * granule : 0;
        columns[g] = (an_tokens){begin, end > begin ? an_next_multiple(end - begin, granule) : 0};
    }
    return groups;
}

/* The queries for which a column was computed, in whole groups of `rows`: as all that is seen moves on from query to
 * query, they are neighbours. */
static inline bool an_has_column(an_tokens columns, int64_t column) {
    return column >= columns.begin && column < columns.begin + columns.count;
}
static inline an_tokens an_seeing_rows(const an_tokens *columns, int64_t groups, int64_t column, int64_t rows) {
    int64_t begin = 0, end = groups;
    while (begin < end && !an_has_column(columns[begin], column)) begin++;
    while (begin < end && !an_has_column(columns[end - 1], column)) end--;
    return (an_tokens){begin * rows, (end - begin) * rows};
}

/* Takes `bytes` of a task's scratch; `memory` is NULL where only the sum is asked for. */
static inline void *an_scratch_take(void *memory, size_t *at, size_t bytes) {
    void *taken = memory ? (char *)memory + *at : NULL;
    *at += an_round_up(bytes, AN_ALIGNMENT);
    return taken;
}

static inline float infinity_f32(void) {
    return __builtin_inff();
}
static inline double infinity_f64(void) {
    return __builtin_inf();
}

/* Powers of a base that makes them cheap, 2 or e, for what a softmax needs: 0 for the power of -inf and everything
 * below the smallest normal number, finite above the largest. Scores are multiplied with the unit first. */
static const float power_unit_f32 = AN_LOG2_E_F32;
static const double power_unit_f64 = 1;

/* 2^x. The polynomial of a fraction f of at most 1/2 has an error of 2^-23.1; tools/minimax.py finds it as (2^f - 1)
 * / f. */
static inline vector_f32 power_f32(vector_f32 x) {
    const vector_f32 rounder = broadcast_f32(AN_ROUNDER_F32);
    const vector_f32 limited = larger_f32(broadcast_f32(-127), smaller_f32(broadcast_f32(127), x)); /* -127 gives 0 */
    const vector_f32 shifted = limited + rounder, fraction = limited - (shifted - rounder);
    vector_f32 p = broadcast_f32(0x1.5bba2ep-10f);
    p = multiply_add_f32(p, fraction, broadcast_f32(0x1.3cea88p-7f));
    p = multiply_add_f32(p, fraction, broadcast_f32(0x1.c6b752p-5f));
    p = multiply_add_f32(p, fraction, broadcast_f32(0x1.ebf9bcp-3f));
    p = multiply_add_f32(p, fraction, broadcast_f32(0x1.62e42ap-1f));
    p = multiply_add_f32(p, fraction, broadcast_f32(1));
    return add_exponent_f32(p, shifted);
}

static inline vector_f64 power_f64(vector_f64 x) {
    double lanes[LANES_f64];
    store_f64(lanes, x);
    for (int l = 0; l < LANES_f64; l++) lanes[l] = an_exp_f64(lanes[l]);
    return load_f64(lanes);
}

#define AN_TEMPLATE "kernels/attention/rows_template.h"
#include "kernels/common/instantiate.h"

#endif
