/* Kernels of ops/convolution.c: two-dimensional convolution and its gradients. */
#ifndef AN_KERNELS_CONVOLUTION_CONVOLUTION_H
#define AN_KERNELS_CONVOLUTION_CONVOLUTION_H

#include "ir/op.h"
#include "kernels/common/list.h"

/* Of convolution, and with `dims` of its gradients. The lists are of (height, width). */
typedef struct an_convolution_attributes {
    an_int_list stride, padding, dilation;
    int64_t groups;
    an_dtype dtype;   /* of dst, diff_src; AN_DTYPE_NONE: the wider input's; not of diff_weights */
    an_dim_list dims; /* of src for diff_src, of weights for diff_weights */
} an_convolution_attributes;

AN_DECLARE_KERNELS(convolution);              /* src, weights */
AN_DECLARE_KERNELS(convolution_diff_src);     /* diff_dst, weights */
AN_DECLARE_KERNELS(convolution_diff_weights); /* diff_dst, src */

/* onednn_images.c and onednn_weights.c: kernels in builds with oneDNN, from level avx512 on. */
#if defined(ANNEAL_HAVE_ONEDNN)
bool an_convolution_onednn_applies(const an_call *call);
size_t an_convolution_onednn_scratch(const an_call *call);
an_status an_convolution_onednn_run(const an_call *call);
bool an_convolution_diff_src_onednn_applies(const an_call *call);
size_t an_convolution_diff_src_onednn_scratch(const an_call *call);
an_status an_convolution_diff_src_onednn_run(const an_call *call);
bool an_convolution_diff_weights_onednn_applies(const an_call *call);
size_t an_convolution_diff_weights_onednn_scratch(const an_call *call);
an_status an_convolution_diff_weights_onednn_run(const an_call *call);
#endif

#endif
