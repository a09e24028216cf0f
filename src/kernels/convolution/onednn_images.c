/* oneDNN's kernels of convolution and convolution_diff_src: from images to images.
 *
 * A task is a group of samples, as many as the size of an image says; the last group is filled up with zeros. So a
 * sample's bits depend neither on how many samples there are nor on where among them it is.
 */
#if defined(ANNEAL_HAVE_ONEDNN) && defined(__x86_64__)
#include <stdatomic.h>
#include <string.h>

#include "kernels/convolution/onednn.h"

enum { SRC = AN_CONVOLUTION_SRC, WEIGHTS = AN_CONVOLUTION_WEIGHTS, DST = AN_CONVOLUTION_DST };
enum { TENSORS = AN_CONVOLUTION_TENSORS };

enum {
    GROUP_BYTES = 1 << 20, /* of its images: they stay in a second-level cache */
    MOST_SAMPLES = 4,
    MANY_SAMPLES = 8,           /* where weights do not stay there, and are read anew for every group, */
    MANY_WEIGHT_BYTES = 1 << 21 /* which are these */
};

typedef struct {
    an_context *ctx;
    an_convolution_key key;
    an_convolution_set set;
    int in, out;                    /* which image is read, which is written */
    int64_t samples, group, groups; /* in all, in a group, and how many groups */
    size_t weights, images, slot;   /* room in bytes; a slot is what one task has */
    int64_t slots;
    void *outside[TENSORS];
    char *scratch;     /* weights, then slots */
    atomic_int failed; /* a dnnl_status_t */
} job;

static void make_job(const an_call *call, int kind, job *j) {
    j->ctx = call->ctx;
    j->key = an_convolution_key_make(call, kind);
    j->in = kind == AN_CONVOLUTION_FORWARD ? SRC : DST;
    j->out = kind == AN_CONVOLUTION_FORWARD ? DST : SRC;
    j->weights = an_convolution_weights_room(&j->key);
    const int64_t maximum = j->weights > MANY_WEIGHT_BYTES ? MANY_SAMPLES : MOST_SAMPLES;
    const size_t sample = an_convolution_sample_room(&j->key);
    j->samples = j->key.dims[SRC][0];
    j->group = an_convolution_samples_at_once(GROUP_BYTES, sample, 1, maximum);
    j->groups = (j->samples + j->group - 1) / j->group;
    j->key.dims[SRC][0] = j->key.dims[DST][0] = j->group;
    j->images = an_convolution_samples_room(GROUP_BYTES, sample, 1, maximum);
    j->slot = j->images + an_convolution_run_room(&j->key, j->images);
    j->slots = an_context_threads(call->ctx) < j->groups ? an_context_threads(call->ctx) : j->groups;
    j->scratch = call->scratch;
    an_convolution_outside(call, kind, j->outside);
    atomic_init(&j->failed, dnnl_success);
}

static size_t scratch(const an_call *call, int kind, const an_kernel *list) {
    job j;
    make_job(call, kind, &j);
    if (an_convolution_onednn_can(call, kind) && an_convolution_set_find(call->ctx, &j.key, &j.set) != AN_OK)
        return AN_SCRATCH_FAILED;
    const size_t bytes = j.weights + (size_t)j.slots * j.slot;
    const size_t of_portable = an_convolution_portable(list)->scratch(call);
    return bytes > of_portable ? bytes : of_portable;
}

static bool has_room(const job *j) {
    const an_convolution_set *set = &j->set;
    return set->bytes[WEIGHTS] <= j->weights && set->bytes[SRC] + set->bytes[DST] <= j->images &&
           j->images + set->scratch <= j->slot;
}

static void weights_task(void *user, int64_t part, int thread) {
    job *j = user;
    (void)thread;
    dnnl_status_t status = an_convolution_set_copy(&j->set, WEIGHTS, part, j->outside[WEIGHTS], j->scratch);
    if (status != dnnl_success) atomic_store(&j->failed, (int)status);
}

static dnnl_status_t run_group(const job *j, int64_t index, char *slot) {
    const an_convolution_set *set = &j->set;
    const int64_t first = index * j->group, left = j->samples - first, count = left < j->group ? left : j->group;
    const bool is_whole = count == j->group;
    void *const from = an_convolution_at(&j->key, j->in, j->outside[j->in], first, 0);
    void *const to = an_convolution_at(&j->key, j->out, j->outside[j->out], first, 0);
    void *inside[TENSORS];
    inside[WEIGHTS] = set->is_direct[WEIGHTS] ? j->outside[WEIGHTS] : j->scratch;
    inside[j->in] = is_whole && set->is_direct[j->in] ? from : slot;
    inside[j->out] = is_whole && set->is_direct[j->out] ? to : slot + set->bytes[j->in];
    if (!is_whole) memset(inside[j->in], 0, set->bytes[j->in]);
    for (int64_t i = 0; i < count && inside[j->in] != from; i++)
        AN_ONEDNN_TRY(an_convolution_set_copy(set, j->in, i, from, inside[j->in]));
    AN_ONEDNN_TRY(an_convolution_set_run(set, inside, slot + j->images));
    for (int64_t i = 0; i < count && inside[j->out] != to; i++)
        AN_ONEDNN_TRY(an_convolution_set_copy(set, j->out, i, to, inside[j->out]));
    return dnnl_success;
}

static void group_task(void *user, int64_t index, int thread) {
    job *j = user;
    const int64_t slot = j->slots == j->groups ? index : thread;
    dnnl_status_t status = run_group(j, index, j->scratch + j->weights + (size_t)slot * j->slot);
    if (status != dnnl_success) atomic_store(&j->failed, (int)status);
}

static an_status run(const an_call *call, int kind, const an_kernel *list) {
    an_context *ctx = call->ctx;
    job j;
    if (!an_convolution_onednn_can(call, kind)) return an_convolution_portable(list)->run(call);
    make_job(call, kind, &j);
    AN_TRY_RETURN(an_convolution_set_find(ctx, &j.key, &j.set));
    if (!has_room(&j)) return an_convolution_portable(list)->run(call);
    if (!j.set.is_direct[WEIGHTS]) an_parallel(ctx, j.set.parts[WEIGHTS], weights_task, &j);
    an_parallel(ctx, j.groups, group_task, &j);
    return an_onednn_status(ctx, (dnnl_status_t)atomic_load(&j.failed), "a convolution");
}

bool an_convolution_onednn_applies(const an_call *call) {
    return an_convolution_onednn_can(call, AN_CONVOLUTION_FORWARD);
}
size_t an_convolution_onednn_scratch(const an_call *call) {
    return scratch(call, AN_CONVOLUTION_FORWARD, an_kernels_convolution_avx512);
}
an_status an_convolution_onednn_run(const an_call *call) {
    return run(call, AN_CONVOLUTION_FORWARD, an_kernels_convolution_avx512);
}

bool an_convolution_diff_src_onednn_applies(const an_call *call) {
    return an_convolution_onednn_can(call, AN_CONVOLUTION_DIFF_SRC);
}
size_t an_convolution_diff_src_onednn_scratch(const an_call *call) {
    return scratch(call, AN_CONVOLUTION_DIFF_SRC, an_kernels_convolution_diff_src_avx512);
}
an_status an_convolution_diff_src_onednn_run(const an_call *call) {
    return run(call, AN_CONVOLUTION_DIFF_SRC, an_kernels_convolution_diff_src_avx512);
}
#endif
