/* Portable kernels of embedding tables. Indices are checked before any of them is used.
 *
 * The gradient of the table sorts the positions by the row that they name, and then adds row after row: a row's
 * positions in order, leaf by leaf, and the sums of the leaves in their tree. Time and scratch depend on how many
 * positions there are, and not on how many rows the table has; only the zeros do.
 *
 * Leaves in which no position names a row are left out of that row's tree, though a leaf alone would have +0.0 there.
 * The bits are the same: x + 0.0 and 0.0 + x have the bits of x, unless x is -0.0. And no sum is -0.0: where numbers
 * are rounded to nearest, a + b is -0.0 only if a and b both are, and the sum of a leaf begins with 0.0 + its first
 * addend.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/parallel.h"
#include "base/status.h"
#include "kernels/common/copy_tensor.h"
#include "kernels/common/leaves.h"
#include "kernels/common/row.h"
#include "kernels/embedding/embedding.h"

enum {
    COLUMNS = 128, /* of the table, in one task of the gradient */
    TASK_ELEMENTS = 1 << 14,
    MOST_SLOTS = 21, /* of a row's tree */
    DIGIT_BITS = 8,  /* of rows, by which one pass sorts: two passes for most vocabularies */
    DIGITS = 1 << DIGIT_BITS,
};
_Static_assert((int64_t)1 << (MOST_SLOTS - 1) >= AN_MOST_LEAVES, "a tree of the most leaves has its slots");

/* A position of diff_dst: the row of the table to which it is added, its leaf, and where its own row begins. */
typedef struct {
    int64_t row, leaf, from;
} addend;

typedef struct {
    const an_call *call;
    const an_tensor *indices;
    int64_t positions, positions_a_task;
    addend *addends; /* of the gradient: sorted by row, then by position */
} embedding_job;

static int64_t index_at(const embedding_job *j, int64_t position) {
    return an_load_index(j->indices, an_row_offset(j->indices, -1, position));
}

static int64_t task_end(const embedding_job *j, int64_t index) {
    const int64_t end = (index + 1) * j->positions_a_task;
    return end < j->positions ? end : j->positions;
}

/* Where the addends of a row and leaf end that begin with this one. */
static int64_t addends_end(const embedding_job *j, int64_t begin) {
    const addend *a = j->addends;
    int64_t end = begin + 1;
    while (end < j->positions && a[end].row == a[begin].row && a[end].leaf == a[begin].leaf) end++;
    return end;
}

#define AN_TEMPLATE "kernels/embedding/template.h"
#include "kernels/common/instantiate.h"

/* Names the first index outside the table by its place, "[3,17]". */
static an_status wrong_index(const embedding_job *j, int64_t position, int64_t entries) {
    enum { PLACE_BYTES = AN_MAX_DIMS * 21 + 3 }; /* a number of 20 digits and its comma each; brackets, end */
    const an_tensor *indices = j->indices;
    int64_t at[AN_MAX_DIMS], rest = position;
    char place[PLACE_BYTES] = "";
    int length = 0;
    for (int i = indices->ndims - 1; i >= 0; i--) {
        at[i] = rest % indices->dims[i];
        rest /= indices->dims[i];
    }
    for (int i = 0; i < indices->ndims; i++)
        length += snprintf(place + length, sizeof place - (size_t)length, "%s%" PRId64 "%s", i ? "," : "[", at[i],
                           i == indices->ndims - 1 ? "]" : "");
    return AN_ERROR(j->call->ctx, AN_ERR_KERNEL,
                    "indices%s is %" PRId64 ", but the table has %" PRId64 " entries: an index must be 0 to %" PRId64,
                    place, index_at(j, position), entries, entries - 1);
}

static an_status check_indices(const embedding_job *j, int64_t entries) {
    for (int64_t position = 0; position < j->positions; position++) {
        const int64_t index = index_at(j, position);
        if (index < 0 || index >= entries) return wrong_index(j, position, entries);
    }
    return AN_OK;
}

static an_status run_embedding(const an_call *call) {
    const an_tensor *indices = &call->src[0], *table = &call->src[1];
    const int64_t width = table->dims[1];
    embedding_job j = {.call = call, .indices = indices, .positions = an_tensor_elements(indices)};
    const an_status status = check_indices(&j, table->dims[0]);
    if (status != AN_OK) return status;
    j.positions_a_task = width < TASK_ELEMENTS ? TASK_ELEMENTS / width : 1;
    an_parallel(call->ctx, (j.positions + j.positions_a_task - 1) / j.positions_a_task,
                an_call_is_f64(call) ? embedding_task_f64 : embedding_task_f32, &j);
    return AN_OK;
}

/* ---- the gradient ---- */

/* Whether the first dimensions are as one, whose stride is that of the last of them. */
static bool is_one_dimension(const an_tensor *t, int dims) {
    for (int i = 0; i + 1 < dims; i++)
        if (t->strides[i] != t->strides[i + 1] * t->dims[i + 1]) return false;
    return dims > 0;
}

static void list_addends(const embedding_job *j, int64_t leaf, int64_t begin, int64_t end) {
    const an_tensor *diff_dst = &j->call->src[0], *indices = j->indices;
    const int last = indices->ndims - 1;
    addend *a = j->addends;
    if (is_one_dimension(indices, last + 1) && is_one_dimension(diff_dst, last + 1))
        for (int64_t p = begin; p < end; p++)
            a[p] = (addend){an_load_index(indices, p * indices->strides[last]), leaf, p * diff_dst->strides[last]};
    else
        for (int64_t p = begin; p < end; p++)
            a[p] = (addend){index_at(j, p), leaf, an_row_offset(diff_dst, last + 1, p)};
}

static void list_all_addends(const embedding_job *j) {
    const an_leaf_cut *leaves = an_call_leaves(j->call);
    if (!leaves) {
        list_addends(j, 0, 0, j->positions);
        return;
    }
    an_leaf_walk w = an_leaf_walk_begin(leaves, j->positions);
    while (an_leaf_walk_next(&w)) list_addends(j, w.leaf, w.begin, w.end);
}

/* Sorts by row, digit after digit from the lowest on; those with the same row stay in order. The sorted ones lie in
 * `addends` or in `other`. */
static addend *sort_addends(addend *addends, addend *other, int64_t count, int64_t rows) {
    for (int shift = 0; (rows - 1) >> shift > 0; shift += DIGIT_BITS) {
        int64_t places[DIGITS] = {0}, place = 0;
        for (int64_t i = 0; i < count; i++) places[addends[i].row >> shift & (DIGITS - 1)]++;
        for (int digit = 0; digit < DIGITS; digit++) {
            const int64_t those = places[digit];
            places[digit] = place;
            place += those;
        }
        for (int64_t i = 0; i < count; i++) other[places[addends[i].row >> shift & (DIGITS - 1)]++] = addends[i];
        addend *const sorted = other;
        other = addends;
        addends = sorted;
    }
    return addends;
}

static size_t embedding_diff_scratch(const an_call *call) {
    return 2 * (size_t)an_tensor_elements(&call->src[1]) * sizeof(addend);
}

static an_status run_embedding_diff(const an_call *call) {
    const an_tensor *indices = &call->src[1], *diff_table = &call->dst[0];
    const int64_t rows = diff_table->dims[0];
    embedding_job j = {.call = call, .indices = indices, .positions = an_tensor_elements(indices)};
    j.addends = call->scratch;
    list_all_addends(&j);
    for (int64_t p = 0; p < j.positions; p++)
        if (j.addends[p].row < 0 || j.addends[p].row >= rows) return wrong_index(&j, p, rows);
    j.addends = sort_addends(j.addends, j.addends + j.positions, j.positions, rows);
    an_zero_tensor(call->ctx, diff_table);
    an_parallel(call->ctx, (diff_table->dims[1] + COLUMNS - 1) / COLUMNS,
                an_call_is_f64(call) ? embedding_diff_task_f64 : embedding_diff_task_f32, &j);
    return AN_OK;
}

AN_KERNEL_LIST(embedding) = {{.name = "portable", .run = run_embedding}, {0}};
AN_KERNEL_LIST(embedding_diff) = {
    {.name = "portable", .scratch = embedding_diff_scratch, .run = run_embedding_diff, .by_leaves = true},
    {0},
};
