/* oneDNN's kernel of convolution_diff_weights.
 *
 * The matrix of filters and channels is cut into slices and the samples of a leaf into parts, for which there are
 * primitives. Parts form chains. A task adds the parts of one chain, in order, for one slice; then chains are added, in
 * order, and leaves in their tree. The last part of a leaf is filled up with zeros. So parts and chains begin anew at
 * each leaf, and a leaf has the bits that it has alone; without leaves, all samples are one.
 *
 * Leaves come in waves of as many chains as one leaf alone may have. Sums stay in the layout that oneDNN chose for
 * weights, and are copied out once, at the end. Where that layout is not the same for all leaves, or one of them is
 * left to the portable kernel, leaves are run one after the other (leaves.c).
 */
#if defined(ANNEAL_HAVE_ONEDNN) && defined(__x86_64__)
#include <stdatomic.h>
#include <string.h>

#include "base/integer.h"
#include "kernels/common/leaves.h"
#include "kernels/convolution/leaves.h"
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

/* Leaves of one sample have primitives of their own: oneDNN is told other strides. The others have those of their
 * parts, of LEAST_SAMPLES, twice as many, … MOST_SAMPLES. */
enum { ONE_SAMPLE, FIRST_PART, KINDS = FIRST_PART + 3 };
_Static_assert(LEAST_SAMPLES << (KINDS - FIRST_PART - 1) == MOST_SAMPLES, "each size of parts has its kind");

typedef struct {
    bool is_known;
    an_convolution_key keys[2][2]; /* by whether it is the last slice of filters, of channels */
    an_convolution_set sets[2][2];
} primitives;

/* The samples of a leaf. */
typedef struct {
    int64_t first, samples, maximum; /* most: that a part may have */
    int64_t part, parts, chains;     /* samples in a part, and how many parts and chains */
    int64_t chain;                   /* the first of its chains among those of the wave */
    int kind;
    int slot, joins; /* of an_leaf_walk */
} leaf;

typedef struct {
    const an_call *call;
    primitives kinds[KINDS];
    slices filters, channels;
    an_convolution_key whole;
    an_convolution_key one; /* of one sample of the widest slice: for room */
    int64_t matrices, samples;
    int64_t most_chains;      /* of a leaf, and of a wave */
    int64_t chains_room;      /* for how many chains of a slice there are sums */
    int64_t stack;            /* slots of the tree; 0: no leaves */
    int64_t tasks, slots;     /* in a wave, at most; and how many have room at once */
    size_t images, sum, slot; /* room in bytes: of a part's images, of a sum, of all that a task has to itself */
    int kind;                 /* of a leaf: the sums of all have its layout */
    void *outside[TENSORS];
    char *scratch; /* sums of a wave, then the stack, then slots */
    leaf wave[ENOUGH_TASKS];
    int64_t wave_leaves, wave_chains;
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

static int64_t most_samples(const job *j, int64_t samples) {
    return an_larger(LEAST_SAMPLES, an_smaller(MOST_SAMPLES, samples / j->most_chains));
}

static leaf cut_leaf(const job *j, int64_t first, int64_t samples) {
    leaf l = {.first = first, .samples = samples, .maximum = most_samples(j, samples)};
    l.part = an_convolution_samples_at_once(PART_BYTES, an_convolution_sample_room(&j->one), LEAST_SAMPLES, l.maximum);
    l.parts = an_divide_up(samples, l.part);
    l.chains = an_smaller(j->most_chains, l.parts);
    l.kind = ONE_SAMPLE;
    if (samples == 1) return l;
    l.kind = FIRST_PART;
    for (int64_t part = LEAST_SAMPLES; part < l.part; part *= 2) l.kind++;
    return l;
}

static size_t images_room(const job *j, int64_t maximum) {
    return an_convolution_samples_room(PART_BYTES, an_convolution_sample_room(&j->one), LEAST_SAMPLES, maximum);
}

static void make_job(const an_call *call, job *j) {
    const an_convolution_key whole = an_convolution_key_make(call, AN_CONVOLUTION_DIFF_WEIGHTS);
    const an_leaf_cut *leaves = an_call_leaves(call);
    const slices f = cut(whole.dims[WEIGHTS][0], whole.groups), c = cut(whole.dims[WEIGHTS][1], whole.groups);
    j->call = call;
    j->whole = whole;
    j->filters = f;
    j->channels = c;
    j->one = slice_key(&whole, f.width, c.width, 1);
    j->matrices = f.count * c.count;
    j->samples = whole.dims[SRC][0];
    j->most_chains = an_larger(1, ENOUGH_TASKS / j->matrices);
    /* a leaf has no more chains than samples, and no more nodes wait than there are samples */
    j->chains_room = leaves ? an_smaller(j->most_chains, j->samples) : cut_leaf(j, 0, j->samples).chains;
    j->stack = leaves ? an_smaller(an_leaf_slots(leaves->count), j->samples) : 0;
    j->tasks = j->matrices * j->chains_room;
    j->slots = an_smaller(j->tasks, an_context_threads(call->ctx));
    j->images = images_room(j, most_samples(j, j->samples));
    j->sum = an_convolution_weights_room(&j->one);
    j->slot = j->images + j->sum + an_convolution_run_room(&j->one, j->images);
    j->scratch = call->scratch;
    for (int kind = 0; kind < KINDS; kind++) j->kinds[kind].is_known = false;
    an_convolution_outside(call, AN_CONVOLUTION_DIFF_WEIGHTS, j->outside);
    atomic_init(&j->failed, dnnl_success);
}

static size_t job_bytes(const job *j) {
    return (size_t)(j->tasks + j->matrices * j->stack) * j->sum + (size_t)j->slots * j->slot;
}

/* The key of the whole call, as it is for any number of samples but one; or for one. */
static an_convolution_key kind_key(const an_call *call, int kind) {
    an_tensor src[] = {call->src[0], call->src[1]};
    an_call one = *call;
    one.src = src;
    if (kind == ONE_SAMPLE) src[0].dims[0] = src[1].dims[0] = 1;
    return an_convolution_key_make(&one, AN_CONVOLUTION_DIFF_WEIGHTS);
}

static an_status find_sets(job *j, const leaf *l) {
    an_context *ctx = j->call->ctx;
    primitives *p = &j->kinds[l->kind];
    if (p->is_known) return AN_OK;
    const an_convolution_key whole = kind_key(j->call, l->kind);
    for (int i = 0; i < 4; i++) {
        an_convolution_key *key = &p->keys[i / 2][i % 2];
        *key = slice_key(&whole, i / 2 ? j->filters.last_width : j->filters.width,
                         i % 2 ? j->channels.last_width : j->channels.width, l->part);
        AN_TRY_RETURN(an_convolution_set_find(ctx, key, &p->sets[i / 2][i % 2]));
    }
    p->is_known = true;
    return AN_OK;
}

/* Whether a leaf alone has room: no more than that, or it would have other bits there. */
static bool has_room(const job *j, const leaf *l) {
    const size_t images = images_room(j, l->maximum);
    bool has = true;
    for (int i = 0; i < 4; i++) {
        const an_convolution_set *set = &j->kinds[l->kind].sets[i / 2][i % 2];
        has = has && set->bytes[WEIGHTS] <= j->sum && set->bytes[SRC] + set->bytes[DST] <= images &&
              set->scratch <= an_convolution_run_room(&j->one, images);
    }
    return has;
}

static bool has_same_layout(const job *j, int kind, int other) {
    bool has = true;
    for (int i = 0; i < 4; i++)
        has = has && an_convolution_set_is_alike(&j->kinds[kind].sets[i / 2][i % 2],
                                                 &j->kinds[other].sets[i / 2][i % 2], WEIGHTS);
    return has;
}

/* Finds the primitives of all leaves, and says whether these can be run together. */
static an_status find_all_sets(job *j, bool *can) {
    const an_leaf_cut *leaves = an_call_leaves(j->call);
    leaf l = cut_leaf(j, 0, j->samples);
    *can = true;
    if (!leaves) {
        AN_TRY_RETURN(find_sets(j, &l));
        j->kind = l.kind;
        *can = has_room(j, &l);
        return AN_OK;
    }
    an_leaf_walk w = an_leaf_walk_begin(leaves, j->samples);
    for (bool is_first = true; an_leaf_walk_next(&w); is_first = false) {
        l = cut_leaf(j, w.begin, w.end - w.begin);
        AN_TRY_RETURN(find_sets(j, &l));
        if (is_first) j->kind = l.kind;
        *can = *can && has_room(j, &l) && has_same_layout(j, l.kind, j->kind);
    }
    return AN_OK;
}

/* ---- tasks ---- */

/* Where a slice begins, and its primitives for a kind of leaves. */
typedef struct {
    int64_t filter, channel;
    const an_convolution_set *set;
} slice;

static slice slice_at(const job *j, int64_t index, int kind) {
    const int64_t f = index / j->channels.count, c = index % j->channels.count;
    return (slice){f * j->filters.width, c * j->channels.width,
                   &j->kinds[kind].sets[f == j->filters.count - 1][c == j->channels.count - 1]};
}

static char *sum_of(const job *j, int64_t index, int64_t chain) {
    return j->scratch + (size_t)(index * j->chains_room + chain) * j->sum;
}

static char *stack_of(const job *j, int64_t index, int64_t slot) {
    return j->scratch + (size_t)(j->tasks + index * j->stack + slot) * j->sum;
}

/* Where the sum of all is in the end. */
static char *total_of(const job *j, int64_t index) {
    return j->stack ? stack_of(j, index, 0) : sum_of(j, index, 0);
}

static void add(int64_t count, const float *from, float *to) {
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static dnnl_status_t run_part(const job *j, const leaf *l, const slice *s, int64_t part, char *slot, void *sum) {
    const int64_t begin = part * l->part, count = an_smaller(l->part, l->samples - begin);
    void *inside[] = {[SRC] = slot, [WEIGHTS] = sum, [DST] = slot + s->set->bytes[SRC]};
    for (int i = 0; i < TENSORS; i++) {
        if (i == WEIGHTS) continue;
        void *const outside =
            an_convolution_at(&j->whole, i, j->outside[i], l->first + begin, i == SRC ? s->channel : s->filter);
        if (count < l->part) memset(inside[i], 0, s->set->bytes[i]);
        if (count == l->part && s->set->is_direct[i]) inside[i] = outside;
        for (int64_t k = 0; k < count && inside[i] != outside; k++)
            AN_ONEDNN_TRY(an_convolution_set_copy(s->set, i, k, outside, inside[i]));
    }
    return an_convolution_set_run(s->set, inside, slot + j->images + j->sum);
}

static dnnl_status_t run_chain(const job *j, const leaf *l, int64_t index, int64_t chain, char *slot) {
    const slice s = slice_at(j, index, l->kind);
    const int64_t begin = chain * l->parts / l->chains, end = (chain + 1) * l->parts / l->chains;
    char *const sum = sum_of(j, index, l->chain + chain), *const next = slot + j->images;
    AN_ONEDNN_TRY(run_part(j, l, &s, begin, slot, sum));
    for (int64_t part = begin + 1; part < end; part++) {
        AN_ONEDNN_TRY(run_part(j, l, &s, part, slot, next));
        add((int64_t)(s.set->bytes[WEIGHTS] / sizeof(float)), (const float *)(void *)next, (float *)(void *)sum);
    }
    return dnnl_success;
}

static void chain_task(void *user, int64_t index, int thread) {
    job *j = user;
    const int64_t slot = j->slots == j->tasks ? index : thread, chain = index % j->wave_chains;
    char *const memory = j->scratch + (size_t)(j->tasks + j->matrices * j->stack) * j->sum + (size_t)slot * j->slot;
    const leaf *l = j->wave;
    while (chain >= l->chain + l->chains) l++;
    dnnl_status_t status = run_chain(j, l, index / j->wave_chains, chain - l->chain, memory);
    if (status != dnnl_success) atomic_store(&j->failed, (int)status);
}

/* A piece of a slice's chains, and of the tree. */
static void sum_task(void *user, int64_t index, int thread) {
    job *j = user;
    (void)thread;
    const int64_t pieces = an_divide_up((int64_t)(j->sum / sizeof(float)), SUM_PIECE), matrix = index / pieces;
    const int64_t begin = index % pieces * SUM_PIECE;
    const int64_t all = (int64_t)(slice_at(j, matrix, j->kind).set->bytes[WEIGHTS] / sizeof(float));
    const int64_t count = an_smaller(SUM_PIECE, all - begin);
    for (const leaf *l = j->wave; l < j->wave + j->wave_leaves && count > 0; l++) {
        float *sum = (float *)(void *)sum_of(j, matrix, l->chain) + begin;
        for (int64_t chain = 1; chain < l->chains; chain++)
            add(count, (const float *)(void *)sum_of(j, matrix, l->chain + chain) + begin, sum);
        for (int i = 0; i < l->joins; i++) {
            float *const lower = (float *)(void *)stack_of(j, matrix, l->slot - i - 1) + begin;
            add(count, sum, lower);
            sum = lower;
        }
        if (j->stack && l->joins == 0)
            memcpy((float *)(void *)stack_of(j, matrix, l->slot) + begin, sum, (size_t)count * sizeof *sum);
    }
}

static void copy_task(void *user, int64_t index, int thread) {
    job *j = user;
    (void)thread;
    const slice s = slice_at(j, index, j->kind);
    void *outside = an_convolution_at(s.set->key, WEIGHTS, j->outside[WEIGHTS], s.filter, s.channel);
    dnnl_status_t status = dnnl_success;
    for (int64_t part = 0; part < s.set->parts[WEIGHTS] && status == dnnl_success; part++)
        status = an_convolution_set_copy(s.set, WEIGHTS, part, outside, total_of(j, index));
    if (status != dnnl_success) atomic_store(&j->failed, (int)status);
}

/* ---- the kernel ---- */

static void run_wave(job *j) {
    const int64_t pieces = an_divide_up((int64_t)(j->sum / sizeof(float)), SUM_PIECE);
    an_parallel(j->call->ctx, j->matrices * j->wave_chains, chain_task, j);
    if (j->stack || j->wave_chains > 1) an_parallel(j->call->ctx, j->matrices * pieces, sum_task, j);
    j->wave_leaves = j->wave_chains = 0;
}

static void add_leaf(job *j, leaf l) {
    if (j->wave_chains + l.chains > j->most_chains) run_wave(j);
    l.chain = j->wave_chains;
    j->wave_chains += l.chains;
    j->wave[j->wave_leaves++] = l;
}

static void run_job(job *j) {
    const an_leaf_cut *leaves = an_call_leaves(j->call);
    j->wave_leaves = j->wave_chains = 0;
    if (leaves) {
        an_leaf_walk w = an_leaf_walk_begin(leaves, j->samples);
        while (an_leaf_walk_next(&w)) {
            leaf l = cut_leaf(j, w.begin, w.end - w.begin);
            l.slot = w.slot;
            l.joins = w.joins;
            add_leaf(j, l);
        }
    } else {
        add_leaf(j, cut_leaf(j, 0, j->samples));
    }
    run_wave(j);
    an_parallel(j->call->ctx, j->matrices, copy_task, j);
}

bool an_convolution_diff_weights_onednn_applies(const an_call *call) {
    return an_convolution_onednn_can(call, AN_CONVOLUTION_DIFF_WEIGHTS);
}

/* Primitives are made for leaves that are even. Only runs know the others. */
static an_status find_even_sets(job *j) {
    const an_leaf_cut *leaves = an_call_leaves(j->call);
    const int64_t count = leaves ? an_smaller(leaves->count, j->samples) : 1;
    const leaf smaller = cut_leaf(j, 0, j->samples / count), larger = cut_leaf(j, 0, an_divide_up(j->samples, count));
    AN_TRY_RETURN(find_sets(j, &smaller));
    return find_sets(j, &larger);
}

/* Not inlined: oneDNN makes primitives on this stack, of which a caller would keep a second job, 8 kB. */
static __attribute__((noinline)) size_t scratch_of(const an_call *call, bool makes_sets) {
    job j;
    make_job(call, &j);
    if (makes_sets && find_even_sets(&j) != AN_OK) return AN_SCRATCH_FAILED;
    return job_bytes(&j);
}

size_t an_convolution_diff_weights_onednn_scratch(const an_call *call) {
    const bool can = an_convolution_onednn_can(call, AN_CONVOLUTION_DIFF_WEIGHTS);
    const size_t together = scratch_of(call, can);
    an_call alone = *call;
    alone.leaves = NULL;
    const size_t of_portable = an_convolution_portable(an_kernels_convolution_diff_weights_avx512)->scratch(&alone);
    size_t apart = scratch_of(&alone, false);
    if (apart < of_portable) apart = of_portable;
    if (an_call_leaves(call)) apart += an_convolution_leaves_scratch(call);
    return together > apart ? together : apart; /* AN_SCRATCH_FAILED is the largest */
}

an_status an_convolution_diff_weights_onednn_run(const an_call *call) {
    an_context *ctx = call->ctx;
    const an_kernel *portable = an_convolution_portable(an_kernels_convolution_diff_weights_avx512);
    bool can = an_convolution_onednn_can(call, AN_CONVOLUTION_DIFF_WEIGHTS);
    job j;
    if (can) {
        make_job(call, &j);
        AN_TRY_RETURN(find_all_sets(&j, &can));
    }
    if (!can && an_call_leaves(call)) return an_convolution_leaves_run(call, an_convolution_diff_weights_onednn_run);
    if (!can) return portable->run(call);
    run_job(&j);
    return an_onednn_status(ctx, (dnnl_status_t)atomic_load(&j.failed), "a gradient of weights");
}
#endif
