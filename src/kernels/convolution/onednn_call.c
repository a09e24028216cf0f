/* Which calls oneDNN can compute, and how much scratch they get. */
#if defined(ANNEAL_HAVE_ONEDNN) && defined(__x86_64__)
#include "kernels/convolution/onednn.h"

enum { SRC = AN_CONVOLUTION_SRC, WEIGHTS = AN_CONVOLUTION_WEIGHTS, DST = AN_CONVOLUTION_DST };
enum { TENSORS = AN_CONVOLUTION_TENSORS };

enum {
    BLOCK = 16, /* inside, channels are filled up to whole blocks */
    /* for a gradient of weights: with fewer it is mostly copies, and the portable kernel is faster */
    LEAST_POSITIONS = 8
};

/* ---- tensors ---- */

static void get_tensors(const an_call *call, int kind, const an_tensor **tensors) {
    tensors[SRC] = kind == AN_CONVOLUTION_DIFF_SRC ? &call->dst[0] : &call->src[kind == AN_CONVOLUTION_DIFF_WEIGHTS];
    tensors[WEIGHTS] = kind == AN_CONVOLUTION_DIFF_WEIGHTS ? &call->dst[0] : &call->src[1];
    tensors[DST] = kind == AN_CONVOLUTION_FORWARD ? &call->dst[0] : &call->src[0];
}

/* f32 throughout, or bf16 that may give f32. onednn.h says why levels matter. */
static bool has_dtypes(const an_call *call) {
    const an_dtype from = call->src[0].dtype, to = call->dst[0].dtype;
    if (call->src[1].dtype != from) return false;
    if (from == AN_DTYPE_F32) return call->ctx->isa >= AN_ISA_AVX512 && to == AN_DTYPE_F32;
    return from == AN_DTYPE_BF16 && call->ctx->isa == AN_ISA_AMX && (to == AN_DTYPE_BF16 || to == AN_DTYPE_F32);
}

/* Whether no two elements share a place. */
static bool is_apart(const an_tensor *t) {
    bool done[AN_IMAGE_DIMS] = {0};
    int64_t minimum = 1;
    for (int i = 0; i < AN_IMAGE_DIMS; i++) { /* dimensions from the smallest stride on */
        int next = -1;
        for (int d = 0; d < AN_IMAGE_DIMS; d++)
            if (!done[d] && t->dims[d] > 1 && (next < 0 || t->strides[d] < t->strides[next])) next = d;
        if (next < 0) break;
        if (t->strides[next] < minimum) return false;
        done[next] = true;
        minimum = t->strides[next] * t->dims[next];
    }
    return true;
}

enum { MOST_DIM = 1 << 20, MOST_ELEMENTS = 1 << 26 }; /* oneDNN counts many things in 32 bits */

static bool is_small(const an_tensor *t, int from_dim) {
    int64_t elements = 1;
    for (int i = from_dim; i < AN_IMAGE_DIMS; i++) {
        if (t->dims[i] > MOST_DIM) return false;
        elements *= t->dims[i];
        if (elements > MOST_ELEMENTS) return false;
    }
    return true;
}

/* ---- windows ---- */

/* One direction of a convolution. */
typedef struct {
    int64_t size, positions, taps, stride, dilation;
    int64_t first;         /* of the taps that are used */
    int64_t before, after; /* padding */
} axis;

/* Whether a tap stands on the image at some position. */
static bool is_met(const axis *a, int64_t tap) {
    const int64_t place = tap * a->dilation - a->before; /* at position 0 */
    const int64_t first = place < 0 ? (a->stride - 1 - place) / a->stride : 0;
    return first < a->positions && place + first * a->stride < a->size;
}

static bool meets_all(const axis *a) {
    for (int64_t tap = 0; tap < a->taps; tap++)
        if (!is_met(a, tap)) return false;
    return true;
}

/* Leaves out taps at both ends that never stand on the image: of a window of 3 × 3 on an image of one pixel, eight do
 * not. Where that makes no convolution that oneDNN knows, nothing is left out. */
static void crop(axis *a) {
    axis cropped = *a;
    int64_t end = a->taps;
    while (cropped.first < end && !is_met(a, cropped.first)) cropped.first++;
    while (end > cropped.first && !is_met(a, end - 1)) end--;
    cropped.taps = end - cropped.first;
    cropped.before -= cropped.first * a->dilation;
    const int64_t window = (cropped.taps - 1) * a->dilation + 1;
    cropped.after = (a->positions - 1) * a->stride + window - a->size - cropped.before;
    if (cropped.after > -a->stride && cropped.after < 0) cropped.after = 0; /* the last pixels may stay unread */
    if (cropped.taps < 1 || cropped.taps == a->taps || cropped.before < 0 || cropped.after < 0) return;
    *a = cropped;
}

/* All taps of the result of diff_weights are wanted. */
static axis axis_of(const an_call *call, int kind, const an_tensor *const *tensors, int index) {
    const an_convolution_attributes *attributes = call->attributes;
    axis a = {.size = tensors[SRC]->dims[2 + index],
              .positions = tensors[DST]->dims[2 + index],
              .taps = tensors[WEIGHTS]->dims[2 + index],
              .stride = attributes->stride.values[index],
              .dilation = attributes->dilation.values[index],
              .before = attributes->padding.values[index],
              .after = attributes->padding.values[index]};
    if (kind != AN_CONVOLUTION_DIFF_WEIGHTS) crop(&a);
    return a;
}

/* Windows that oneDNN 3.2 has trouble with are left to the portable kernel: it has no fast code for those
 * that stand on padding alone, and in bf16, where a tap never stands on the image, it reads what nobody
 * wrote, or ends the process. */
static bool has_window(const axis *a, bool is_bf16) {
    const int64_t window = (a->taps - 1) * a->dilation + 1;
    return window <= MOST_DIM && a->stride <= MOST_DIM && a->before < window && (!is_bf16 || meets_all(a));
}

/* ---- which calls ---- */

bool an_convolution_onednn_can(const an_call *call, int kind) {
    const an_tensor *tensors[TENSORS];
    if (!has_dtypes(call)) return false;
    get_tensors(call, kind, tensors);
    for (int i = 0; i < TENSORS; i++) /* any number of samples: few are run at once */
        if (!is_apart(tensors[i]) || !is_small(tensors[i], i == WEIGHTS ? 0 : 1)) return false;
    const bool is_bf16 = call->src[0].dtype == AN_DTYPE_BF16;
    const axis vertical = axis_of(call, kind, tensors, 0), horizontal = axis_of(call, kind, tensors, 1);
    if (kind == AN_CONVOLUTION_DIFF_WEIGHTS && vertical.positions * horizontal.positions < LEAST_POSITIONS)
        return false;
    return has_window(&vertical, is_bf16) && has_window(&horizontal, is_bf16);
}

/* Elements from the first to behind the last: the stride of dimensions of 1, whose own means nothing, but by which
 * oneDNN tells layouts that it has fast code for. */
static int64_t span_of(const an_tensor *t) {
    int64_t span = 1;
    for (int i = 0; i < AN_IMAGE_DIMS; i++)
        if (t->dims[i] > 1 && t->strides[i] * t->dims[i] > span) span = t->strides[i] * t->dims[i];
    return span;
}

an_convolution_key an_convolution_key_make(const an_call *call, int kind) {
    const an_convolution_attributes *attributes = call->attributes;
    const an_tensor *tensors[TENSORS];
    an_convolution_key key = {.kind = kind, .groups = attributes->groups};
    get_tensors(call, kind, tensors);
    for (int i = 0; i < TENSORS; i++) {
        const int64_t span = span_of(tensors[i]);
        key.dtypes[i] = tensors[i]->dtype;
        for (int d = 0; d < AN_IMAGE_DIMS; d++) {
            key.dims[i][d] = tensors[i]->dims[d];
            key.strides[i][d] = tensors[i]->dims[d] == 1 ? span : tensors[i]->strides[d];
        }
    }
    for (int i = 0; i < 2; i++) {
        const axis a = axis_of(call, kind, tensors, i);
        key.dims[WEIGHTS][2 + i] = a.taps;
        key.stride[i] = a.stride;
        key.before[i] = a.before;
        key.after[i] = a.after;
        key.dilation[i] = a.dilation;
    }
    return key;
}

void an_convolution_outside(const an_call *call, int kind, void **outside) {
    const an_tensor *tensors[TENSORS];
    get_tensors(call, kind, tensors);
    for (int i = 0; i < TENSORS; i++) outside[i] = tensors[i]->data;
    if (!outside[WEIGHTS]) return; /* not there yet */
    int64_t first = 0;
    for (int i = 0; i < 2; i++) first += axis_of(call, kind, tensors, i).first * tensors[WEIGHTS]->strides[2 + i];
    outside[WEIGHTS] = (char *)outside[WEIGHTS] + first * (int64_t)an_dtype_size(tensors[WEIGHTS]->dtype);
}

void *an_convolution_at(const an_convolution_key *key, int tensor, void *outside, int64_t first, int64_t second) {
    const int64_t elements = first * key->strides[tensor][0] + second * key->strides[tensor][1];
    return (char *)outside + elements * (int64_t)an_dtype_size((an_dtype)key->dtypes[tensor]);
}

/* ---- room ---- */

static size_t image_room(const an_convolution_key *key, int tensor) {
    const int64_t *dims = key->dims[tensor];
    return an_round_up((size_t)dims[1], BLOCK) * (size_t)(dims[2] * dims[3]) *
           an_dtype_size((an_dtype)key->dtypes[tensor]);
}

size_t an_convolution_sample_room(const an_convolution_key *key) {
    return image_room(key, SRC) + image_room(key, DST);
}

/* Blocks of weights that are read may be larger; where groups are of one channel, they are what is filled up. */
size_t an_convolution_weights_room(const an_convolution_key *key) {
    enum { LARGE_BLOCK = 64 };
    const int64_t *dims = key->dims[WEIGHTS];
    const size_t block = key->groups == 1 && key->kind != AN_CONVOLUTION_DIFF_WEIGHTS ? LARGE_BLOCK : BLOCK;
    const size_t groups = key->groups == 1 ? 1 : an_round_up((size_t)key->groups, BLOCK);
    const size_t filters = (size_t)(dims[0] / key->groups), channels = (size_t)dims[1];
    const size_t matrix =
        key->groups > 1 && filters * channels == 1 ? 1 : an_round_up(filters, block) * an_round_up(channels, block);
    const size_t elements = groups * matrix * (size_t)(dims[2] * dims[3]);
    return an_round_up(elements * an_dtype_size((an_dtype)key->dtypes[WEIGHTS]), AN_ALIGNMENT);
}

/* In bf16 it may copy an image once more. */
size_t an_convolution_run_room(const an_convolution_key *key, size_t images) {
    enum { LEAST = 1 << 19 };
    const bool is_f32 = key->dtypes[SRC] == AN_DTYPE_F32 && key->dtypes[DST] == AN_DTYPE_F32;
    return LEAST + (is_f32 ? 0 : images);
}

int64_t an_convolution_samples_at_once(size_t bytes, size_t sample, int64_t minimum, int64_t maximum) {
    int64_t samples = minimum;
    while (2 * samples <= maximum && 2 * (size_t)samples * sample <= bytes) samples *= 2;
    return samples;
}

size_t an_convolution_samples_room(size_t bytes, size_t sample, int64_t minimum, int64_t maximum) {
    const size_t fewest = (size_t)minimum * sample, all = (size_t)maximum * sample;
    const size_t room = fewest > bytes ? fewest : all < bytes ? all : bytes;
    return an_round_up(room, AN_ALIGNMENT) + AN_ALIGNMENT; /* each of two images is aligned */
}

const an_kernel *an_convolution_portable(const an_kernel *list) {
    while (list[1].name) list++;
    return list;
}
#endif
