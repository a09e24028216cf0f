/* Portable kernels of embedding tables. Indices are checked before any of them is used. */
#include <inttypes.h>
#include <stdio.h>

#include "base/parallel.h"
#include "base/status.h"
#include "kernels/common/copy_tensor.h"
#include "kernels/common/row.h"
#include "kernels/embedding/embedding.h"

enum {
    COLUMNS = 128, /* of the table, in one task of the gradient */
    TASK_ELEMENTS = 1 << 14,
};

typedef struct {
    const an_call *call;
    const an_tensor *indices;
    int64_t positions, positions_a_task;
} embedding_job;

static int64_t index_at(const embedding_job *j, int64_t position) {
    return an_load_index(j->indices, an_row_offset(j->indices, -1, position));
}

static int64_t task_end(const embedding_job *j, int64_t index) {
    const int64_t end = (index + 1) * j->positions_a_task;
    return end < j->positions ? end : j->positions;
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

static an_status run_embedding_diff(const an_call *call) {
    const an_tensor *indices = &call->src[1], *diff_table = &call->dst[0];
    embedding_job j = {.call = call, .indices = indices, .positions = an_tensor_elements(indices)};
    const an_status status = check_indices(&j, diff_table->dims[0]);
    if (status != AN_OK) return status;
    an_zero_tensor(call->ctx, diff_table);
    an_parallel(call->ctx, (diff_table->dims[1] + COLUMNS - 1) / COLUMNS,
                an_call_is_f64(call) ? embedding_diff_task_f64 : embedding_diff_task_f32, &j);
    return AN_OK;
}

AN_KERNEL_LIST(embedding) = {{.name = "portable", .run = run_embedding}, {0}};
AN_KERNEL_LIST(embedding_diff) = {{.name = "portable", .run = run_embedding_diff}, {0}};
