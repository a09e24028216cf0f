/* What the kernels of onednn_*.c share.
 *
 * Images lie in memory as (batch, channels, height, width), for which oneDNN has no fast code: it needs channels, or
 * blocks of channels, innermost. So a task copies its part of the tensors ("outside") into the layout that the
 * primitive chose ("inside"), runs the primitive and copies the result out, all in its core's cache.
 */
#ifndef AN_KERNELS_CONVOLUTION_ONEDNN_H
#define AN_KERNELS_CONVOLUTION_ONEDNN_H

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/convolution/convolution.h"
#include "kernels/onednn/onednn.h"

/* The three tensors of a convolution, by their places in it; the kind says which of them is the result. */
enum { AN_CONVOLUTION_SRC, AN_CONVOLUTION_WEIGHTS, AN_CONVOLUTION_DST, AN_CONVOLUTION_TENSORS };
enum { AN_CONVOLUTION_FORWARD, AN_CONVOLUTION_DIFF_SRC, AN_CONVOLUTION_DIFF_WEIGHTS };
enum { AN_IMAGE_DIMS = 4 };

/* All that makes the primitives of a convolution. Strides are those outside. */
typedef struct an_convolution_key {
    int64_t kind, groups;
    int64_t dtypes[AN_CONVOLUTION_TENSORS];
    int64_t dims[AN_CONVOLUTION_TENSORS][AN_IMAGE_DIMS], strides[AN_CONVOLUTION_TENSORS][AN_IMAGE_DIMS];
    int64_t stride[2], before[2], after[2], dilation[2]; /* before, after: the padding */
} an_convolution_key;

/* ---- calls (onednn_call.c) ---- */

/* Whether oneDNN does this call. It may do one of the largest sizes, and not one of some that are smaller. */
bool an_convolution_onednn_can(const an_call *call, int kind);

/* The key of the whole batch, and where its tensors lie. */
an_convolution_key an_convolution_key_make(const an_call *call, int kind);
void an_convolution_outside(const an_call *call, int kind, void **outside);

/* Where element (first, second) of a tensor's first two dimensions lies. */
void *an_convolution_at(const an_convolution_key *key, int tensor, void *outside, int64_t first, int64_t second);

/* ---- room: what a kernel has as scratch ----
 *
 * What oneDNN needs may grow where an image shrinks, as it then may take other code; scratch must not. So there is room
 * that only grows with sizes and is enough for all of oneDNN's fast code; a call that needs more than its room does
 * what the portable kernel does, in the same scratch. */

size_t an_convolution_sample_room(const an_convolution_key *key); /* for one sample of both images */
size_t an_convolution_weights_room(const an_convolution_key *key);
size_t an_convolution_run_room(const an_convolution_key *key, size_t images); /* for the scratchpad of a primitive */

/* How many samples, a power of two from `least` to `most`, to run at once so that they have no more than `bytes`; and
 * the room in which this many lie, now and where a sample is smaller. */
int64_t an_convolution_samples_at_once(size_t bytes, size_t sample, int64_t minimum, int64_t maximum);
size_t an_convolution_samples_room(size_t bytes, size_t sample, int64_t minimum, int64_t maximum);

/* The last of a list. */
const an_kernel *an_convolution_portable(const an_kernel *list);

/* ---- primitives (onednn_set.c) ---- */

typedef struct an_convolution_set {
    an_context *ctx;
    const an_convolution_key *key;
    const an_onednn_set *set;
    int64_t parts[AN_CONVOLUTION_TENSORS]; /* in which a tensor is copied: samples of images, some filters of weights */
    size_t bytes[AN_CONVOLUTION_TENSORS];  /* inside, rounded up to how memory is aligned */
    size_t scratch;                        /* bytes that a run needs, rounded too */
    bool is_direct[AN_CONVOLUTION_TENSORS]; /* inside is as outside: nothing need be copied */
} an_convolution_set;

/* `key` must stay for as long as the set is used; the set stays as an_onednn_find says. */
an_status an_convolution_set_find(an_context *ctx, const an_convolution_key *key, an_convolution_set *set);

/* Whether a tensor has the same layout inside of both. */
bool an_convolution_set_is_alike(const an_convolution_set *a, const an_convolution_set *b, int tensor);

/* Copies one part in, or out if the tensor is the result. `outside` and `inside` are where all of it begins. */
dnnl_status_t an_convolution_set_copy(const an_convolution_set *set, int tensor, int64_t part, void *outside,
                                      void *inside);

/* Runs the convolution on what lies inside. */
dnnl_status_t an_convolution_set_run(const an_convolution_set *set, void *const *inside, void *scratch);

#endif
