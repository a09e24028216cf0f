#include "kernels/attention/job.h"

#include <inttypes.h>

#include "base/context.h"
#include "base/status.h"
#include "kernels/elementwise/dropout.h"

static const an_tensor *optional(const an_call *call, int input) {
    return input < call->src_count && call->src[input].dtype != AN_DTYPE_NONE ? &call->src[input] : NULL;
}

/* Everything that a call without data has: q is input `first`, the optional inputs begin at `first_optional`. */
static void make_shape(an_attention_job *j, const an_call *call, int first, int first_optional) {
    const int shift = first_optional - AN_ATTENTION_QUERY_OFFSET;
    *j = (an_attention_job){.call = call, .attributes = call->attributes};
    j->q = &call->src[first];
    j->k = &call->src[first + 1];
    j->v = &call->src[first + 2];
    j->documents = optional(call, shift + AN_ATTENTION_DOCUMENTS);
    j->mask = optional(call, shift + AN_ATTENTION_MASK);
    j->samples = optional(call, shift + AN_ATTENTION_SAMPLES);
    j->batch = j->q->dims[0];
    j->heads = j->q->dims[1];
    j->queries = j->q->dims[2];
    j->size = j->q->dims[3];
    j->kv_heads = j->k->dims[1];
    j->keys = j->k->dims[2];
    for (int i = 0; j->mask && i < j->mask->ndims; i++)
        j->mask_strides[4 - j->mask->ndims + i] = j->mask->dims[i] == 1 ? 0 : j->mask->strides[i];
}

static an_status make(an_attention_job *j, const an_call *call, int first, int first_optional) {
    const int shift = first_optional - AN_ATTENTION_QUERY_OFFSET;
    const an_tensor *offset = optional(call, first_optional);
    make_shape(j, call, first, first_optional);
    j->offset = offset ? an_load_index(offset, 0) : 0;
    if (j->attributes->dropout > 0) {
        j->has_dropout = true;
        j->threshold = an_dropout_threshold(j->attributes->dropout);
        j->key.seed = (uint64_t)an_load_index(&call->src[shift + AN_ATTENTION_SEED], 0);
        j->key.step = (uint64_t)an_load_index(&call->src[shift + AN_ATTENTION_STEP], 0);
        j->key.site = (uint64_t)j->attributes->site;
    }
    if (j->offset < 0 || j->offset > AN_ATTENTION_FARTHEST)
        return AN_ERROR(call->ctx, AN_ERR_KERNEL,
                        "query_offset, the position of query 0, is %" PRId64 ", but must be 0 to %" PRId64, j->offset,
                        AN_ATTENTION_FARTHEST);
    return AN_OK;
}

an_status an_attention_job_make(an_attention_job *j, const an_call *call) {
    const an_status status = make(j, call, AN_ATTENTION_Q, AN_ATTENTION_QUERY_OFFSET);
    j->dst = &call->dst[0];
    j->log_sum = &call->dst[1];
    return status;
}

an_status an_attention_diff_job_make(an_attention_job *j, const an_call *call) {
    const an_status status = make(j, call, AN_ATTENTION_DIFF_OF_Q, AN_ATTENTION_DIFF_OPTIONAL);
    j->diff_dst = &call->src[AN_ATTENTION_DIFF_DST];
    j->dst = &call->src[AN_ATTENTION_DIFF_OF_DST];
    j->log_sum = &call->src[AN_ATTENTION_DIFF_OF_SUM];
    j->diff_q = &call->dst[0];
    j->diff_k = &call->dst[1];
    j->diff_v = &call->dst[2];
    return status;
}

void an_attention_diff_job_shape(an_attention_job *j, const an_call *call) {
    make_shape(j, call, AN_ATTENTION_DIFF_OF_Q, AN_ATTENTION_DIFF_OPTIONAL);
}
