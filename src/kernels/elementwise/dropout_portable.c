/* Portable kernel of dropout: dst = src · mask / (1 - rate). An element's random word depends on seed, step, the
 * sample's number in the run, the site and the element's number in its sample, in C order; not on where the sample lies
 * in a batch. So the gradient makes the same mask again. */
#include "base/parallel.h"
#include "base/philox.h"
#include "kernels/common/row.h"
#include "kernels/elementwise/dropout.h"

enum {
    PIECE = 512,             /* elements at once */
    TASK_ELEMENTS = 1 << 12, /* some ten microseconds of random numbers */
};

typedef struct {
    const an_call *call;
    int axis;            /* along which rows lie; -1: a sample is one element */
    int64_t rows, width; /* of a sample */
    int64_t all_rows, rows_a_task;
    double rate;
    uint32_t threshold;
    an_philox_key key; /* without its sample */
} dropout_job;

static an_philox_key key_of(const dropout_job *j, int64_t sample) {
    const an_tensor *samples = &j->call->src[1];
    an_philox_key key = j->key;
    key.sample = (uint64_t)an_load_index(samples, sample * samples->strides[0]);
    return key;
}

#define AN_TEMPLATE "kernels/elementwise/dropout_template.h"
#include "kernels/common/instantiate.h"

/* (src, samples, seed, step) */
static an_status run_dropout(const an_call *call) {
    const an_dropout_attributes *attributes = call->attributes;
    const an_tensor *src = &call->src[0];
    dropout_job j = {.call = call, .axis = src->ndims > 1 ? src->ndims - 1 : -1, .rate = attributes->rate};
    j.threshold = an_dropout_threshold(attributes->rate);
    j.key.seed = (uint64_t)an_load_index(&call->src[2], 0);
    j.key.step = (uint64_t)an_load_index(&call->src[3], 0);
    j.key.site = (uint64_t)attributes->site;
    j.width = j.axis < 0 ? 1 : src->dims[j.axis];
    j.all_rows = an_tensor_elements(src) / j.width;
    j.rows = j.all_rows / src->dims[0];
    j.rows_a_task = j.width < TASK_ELEMENTS ? TASK_ELEMENTS / j.width : 1;
    an_parallel(call->ctx, (j.all_rows + j.rows_a_task - 1) / j.rows_a_task,
                an_call_is_f64(call) ? dropout_task_f64 : dropout_task_f32, &j);
    return AN_OK;
}

AN_KERNEL_LIST(dropout) = {{.name = "portable", .run = run_dropout}, {0}};
