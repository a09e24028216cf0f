/* oneDNN's kernel of convolution_diff_weights.
 *
 * The matrix of filters and channels is cut into slices and the batch into parts, for which there are primitives. Parts
 * form chains. A task adds the parts of one chain, in order, for one slice; then chains are added, in order. The last part
 * is filled up with zeros.
 */
#if defined(ANNEAL_HAVE_ONEDNN) && defined(__x86_64__)
#include <stdatomic.h>
#include <string.h>

#include "base/integer.h"
#include "kernels/convolution/onednn.h"

enum { SRC = AN_CONVOLUTION_SRC, WEIGHTS = AN_CONVOLUTION_WEIGHTS, DST = AN_CONVOLUTION_DST };
enum { TENSORS = AN_CONVOLUTION_TENSORS };

enum {
    SLICE = 128,          /* filters or channels: wide enough that copying is little work beside it */
    SLICE_STEP = 16,      /* a block of oneDNN's */
    ENOUGH_TASKS = 16,    /* chains are as many as slices leave to this */
    PART_BYTES = 1 << 20, /* of a part's images: they stay in a second-level cache */
    LEAST_SAMPLES = 4,    /* of a part: with fewer, adding up costs more than what is added */
    MOST_SAMPLES = 16,
    SUM_PIECE = 1 << 14 /* elements: work for a task */
};

/* One direction of the matrix. The last slice may be narrower. */
typedef struct {
    int64_t width, count, last_width;
} slices;

static slices cut(int64_t whole, int64_t groups) {
    const int64_t count = groups == 1 ? an_divide_up(whole, SLICE) : 1;
    slices s = {.width = whole};
    if (count > 1) s.width = an_next_multiple(an_divide_up(whole, count), SLICE_STEP);
    s.count = an_divide_up(whole, s.width);
    s.last_width = whole - (s.count - 1) * s.width;
    return s;
}

typedef struct {
    an_context *ctx;
    an_convolution_key keys[2][2]; /* by whether it is the last slice of filters, of channels */
    an_convolution_set sets[2][2];
    slices filters, channels;
    int64_t samples, part, parts, chains; /* in all, in a part, and how many */
    int64_t tasks, slots;
    size_t images, sum, slot; /* room in bytes: of a part's images, of a sum, of all that a task has to itself */
    void *outside[TENSORS];
    char *scratch; /* sums of all tasks, then slots */
    atomic_int failed;
} job;

static an_convolution_key slice_key(const an_convolution_key *whole, int64_t filters, int64_t channels,
                                    int64_t samples) {
    an_convolution_key key = *whole;
    key.dims[WEIGHTS][0] = filters;
    key.dims[WEIGHTS][1] = channels;
    key.dims[SRC][0] = key.dims[DST][0] = samples;
    if (whole->groups > 1) return key; /* not cut */
    key.dims[SRC][1] = channels;
    key.dims[DST][1] = filters;
    return key;
}

static void make_job(const an_call *call, job *j) {
    const an_convolution_key whole = an_convolution_key_make(call, AN_CONVOLUTION_DIFF_WEIGHTS);
    const slices f = cut(whole.dims[WEIGHTS][0], whole.groups), c = cut(whole.dims[WEIGHTS][1], whole.groups);
    const an_convolution_key one = slice_key(&whole, f.width, c.width, 1);
    const size_t sample = an_convolution_sample_room(&one);
    const int64_t chains = an_larger(1, ENOUGH_TASKS / (f.count * c.count));
    j->ctx = call->ctx;
    j->filters = f;
    j->channels = c;
    j->samples = whole.dims[SRC][0];
    const int64_t most = an_larger(LEAST_SAMPLES, an_smaller(MOST_SAMPLES, j->samples / chains));
    j->part = an_convolution_samples_at_once(PART_BYTES, sample, LEAST_SAMPLES, most);
    j->parts = an_divide_up(j->samples, j->part);
    j->chains = an_smaller(chains, j->parts);
    for (int i = 0; i < 4; i++)
        j->keys[i / 2][i % 2] =
            slice_key(&whole, i / 2 ? f.last_width : f.width, i % 2 ? c.last_width : c.width, j->part);
    j->tasks = f.count * c.count * j->chains;
    j->slots = an_smaller(j->tasks, an_context_threads(call->ctx));
    j->images = an_convolution_samples_room(PART_BYTES, sample, LEAST_SAMPLES, most);
    j->sum = an_convolution_weights_room(&one);
    j->slot = j->images + j->sum + an_convolution_run_room(&one, j->images);
    j->scratch = call->scratch;
    an_convolution_outside(call, AN_CONVOLUTION_DIFF_WEIGHTS, j->outside);
    atomic_init(&j->failed, dnnl_success);
}

static an_status find_sets(job *j) {
    an_context *ctx = j->ctx;
    for (int i = 0; i < 4; i++)
        AN_TRY_RETURN(an_convolution_set_find(ctx, &j->keys[i / 2][i % 2], &j->sets[i / 2][i % 2]));
    return AN_OK;
}

static bool has_room(const job *j) {
    bool has = true;
    for (int i = 0; i < 4; i++) {
        const an_convolution_set *set = &j->sets[i / 2][i % 2];
        has = has && set->bytes[WEIGHTS] <= j->sum && set->bytes[SRC] + set->bytes[DST] <= j->images &&
              j->images + j->sum + set->scratch <= j->slot;
    }
    return has;
}

/* ---- tasks ---- */

/* Where a slice begins, and its primitives. */
typedef struct {
    int64_t filter, channel;
    const an_convolution_set *set;
} slice;

static slice slice_at(const job *j, int64_t index) {
    const int64_t f = index / j->channels.count, c = index % j->channels.count;
    return (slice){f * j->filters.width, c * j->channels.width,
                   &j->sets[f == j->filters.count - 1][c == j->channels.count - 1]};
}

static char *sum_of(const job *j, int64_t index, int64_t chain) {
    return j->scratch + (size_t)(index * j->chains + chain) * j->sum;
}

static void add(int64_t count, const float *from, float *to) {
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static dnnl_status_t run_part(const job *j, const slice *s, int64_t part, char *slot, void *sum) {
    const int64_t first = part * j->part, count = an_smaller(j->part, j->samples - first);
    void *inside[] = {[SRC] = slot, [WEIGHTS] = sum, [DST] = slot + s->set->bytes[SRC]};
    for (int i = 0; i < TENSORS; i++) {
        if (i == WEIGHTS) continue;
        void *const outside =
            an_convolution_at(s->set->key, i, j->outside[i], first, i == SRC ? s->channel : s->filter);
        if (count < j->part) memset(inside[i], 0, s->set->bytes[i]);
        if (count == j->part && s->set->is_direct[i]) inside[i] = outside;
        for (int64_t k = 0; k < count && inside[i] != outside; k++)
            AN_ONEDNN_TRY(an_convolution_set_copy(s->set, i, k, outside, inside[i]));
    }
    return an_convolution_set_run(s->set, inside, slot + j->images + j->sum);
}

static dnnl_status_t run_chain(const job *j, int64_t index, int64_t chain, char *slot) {
    const slice s = slice_at(j, index);
    const int64_t begin = chain * j->parts / j->chains, end = (chain + 1) * j->parts / j->chains;
    char *const sum = sum_of(j, index, chain), *const next = slot + j->images;
    AN_ONEDNN_TRY(run_part(j, &s, begin, slot, sum));
    for (int64_t part = begin + 1; part < end; part++) {
        AN_ONEDNN_TRY(run_part(j, &s, part, slot, next));
        add((int64_t)(s.set->bytes[WEIGHTS] / sizeof(float)), (const float *)(void *)next, (float *)(void *)sum);
    }
    return dnnl_success;
}

static void chain_task(void *user, int64_t index, int thread) {
    job *j = user;
    const int64_t slot = j->slots == j->tasks ? index : thread;
    char *const memory = j->scratch + (size_t)j->tasks * j->sum + (size_t)slot * j->slot;
    dnnl_status_t status = run_chain(j, index / j->chains, index % j->chains, memory);
    if (status != dnnl_success) atomic_store(&j->failed, (int)status);
}

/* A piece of a slice's chains. */
static void sum_task(void *user, int64_t index, int thread) {
    job *j = user;
    (void)thread;
    const int64_t pieces = an_divide_up((int64_t)(j->sum / sizeof(float)), SUM_PIECE);
    const slice s = slice_at(j, index / pieces);
    const int64_t begin = index % pieces * SUM_PIECE, all = (int64_t)(s.set->bytes[WEIGHTS] / sizeof(float));
    for (int64_t chain = 1; chain < j->chains && begin < all; chain++)
        add(an_smaller(SUM_PIECE, all - begin), (const float *)(void *)sum_of(j, index / pieces, chain) + begin,
            (float *)(void *)sum_of(j, index / pieces, 0) + begin);
}

static void copy_task(void *user, int64_t index, int thread) {
    job *j = user;
    (void)thread;
    const slice s = slice_at(j, index);
    void *outside = an_convolution_at(s.set->key, WEIGHTS, j->outside[WEIGHTS], s.filter, s.channel);
    dnnl_status_t status = dnnl_success;
    for (int64_t part = 0; part < s.set->parts[WEIGHTS] && status == dnnl_success; part++)
        status = an_convolution_set_copy(s.set, WEIGHTS, part, outside, sum_of(j, index, 0));
    if (status != dnnl_success) atomic_store(&j->failed, (int)status);
}

/* ---- the kernel ---- */

bool an_convolution_diff_weights_onednn_applies(const an_call *call) {
    return an_convolution_onednn_can(call, AN_CONVOLUTION_DIFF_WEIGHTS);
}

size_t an_convolution_diff_weights_onednn_scratch(const an_call *call) {
    job j;
    make_job(call, &j);
    if (an_convolution_onednn_can(call, AN_CONVOLUTION_DIFF_WEIGHTS) && find_sets(&j) != AN_OK)
        return AN_SCRATCH_FAILED;
    const size_t bytes = (size_t)j.tasks * j.sum + (size_t)j.slots * j.slot;
    const size_t of_portable = an_convolution_portable(an_kernels_convolution_diff_weights_avx512)->scratch(call);
    return bytes > of_portable ? bytes : of_portable;
}

an_status an_convolution_diff_weights_onednn_run(const an_call *call) {
    an_context *ctx = call->ctx;
    const an_kernel *portable = an_convolution_portable(an_kernels_convolution_diff_weights_avx512);
    job j;
    if (!an_convolution_onednn_can(call, AN_CONVOLUTION_DIFF_WEIGHTS)) return portable->run(call);
    make_job(call, &j);
    AN_TRY_RETURN(find_sets(&j));
    if (!has_room(&j)) return portable->run(call);
    const int64_t matrices = j.filters.count * j.channels.count;
    an_parallel(ctx, j.tasks, chain_task, &j);
    if (j.chains > 1)
        an_parallel(ctx, matrices * an_divide_up((int64_t)(j.sum / sizeof(float)), SUM_PIECE), sum_task, &j);
    an_parallel(ctx, matrices, copy_task, &j);
    return an_onednn_status(ctx, (dnnl_status_t)atomic_load(&j.failed), "a gradient of weights");
}
#endif
