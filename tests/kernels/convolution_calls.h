/* Convolutions of oneDNN, called as a program would call them. */
#ifndef TESTS_KERNELS_CONVOLUTION_CALLS_H
#define TESTS_KERNELS_CONVOLUTION_CALLS_H

#include "base/isa.h"
#include "base/memory.h"
#include "kernels/convolution/convolution.h"
#include "support/support.h"

enum { SRC, WEIGHTS, DST, TENSORS };
enum { FORWARD, DIFF_SRC, DIFF_WEIGHTS, KINDS };

typedef struct {
    int64_t samples, channels, height, width, filters, window, stride, padding, groups;
} problem;

static inline an_context *make_context(int threads, an_isa isa) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_context *ctx = NULL;
    options.threads = threads;
    options.isa = isa;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    return ctx;
}

static inline int64_t out_size(int64_t size, const problem *p) {
    return (size + 2 * p->padding - p->window) / p->stride + 1;
}

static inline void set_shape(an_tensor *t, an_dtype dtype, int64_t a, int64_t b, int64_t c, int64_t d) {
    *t = (an_tensor){.dtype = dtype, .ndims = 4, .dims = {a, b, c, d}, .strides = {b * c * d, c * d, d, 1}};
}

static inline int64_t elements_of(const an_tensor *t) {
    return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
}

static inline int result_of(int kind) {
    return kind == FORWARD ? DST : kind == DIFF_SRC ? SRC : WEIGHTS;
}

/* Shapes of the tensors; the result is f32 where `f32_result`. */
static inline void set_shapes(const problem *p, int kind, an_dtype dtype, bool f32_result, an_tensor *tensors) {
    set_shape(&tensors[SRC], dtype, p->samples, p->channels, p->height, p->width);
    set_shape(&tensors[WEIGHTS], dtype, p->filters, p->channels / p->groups, p->window, p->window);
    set_shape(&tensors[DST], dtype, p->samples, p->filters, out_size(p->height, p), out_size(p->width, p));
    if (f32_result || kind == DIFF_WEIGHTS) tensors[result_of(kind)].dtype = AN_DTYPE_F32;
}

static inline void fill(an_tensor *t, uint64_t seed) {
    for (int64_t i = 0; i < elements_of(t); i++) {
        float value = (float)noise(seed * 1000003 + (uint64_t)i);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (t->dtype == AN_DTYPE_F32)
            ((float *)t->data)[i] = value;
        else
            ((uint16_t *)t->data)[i] = (uint16_t)(bits >> 16);
    }
}

static inline size_t bytes_of(const an_tensor *t) {
    return (size_t)elements_of(t) * an_dtype_size(t->dtype);
}

typedef struct {
    an_convolution_attributes attributes;
    an_tensor src[2], dst[1];
    an_call call;
} convolution_call;

static inline void make_call(convolution_call *c, an_context *ctx, const problem *p, int kind,
                             const an_tensor *tensors) {
    c->attributes = (an_convolution_attributes){.stride = {2, {p->stride, p->stride}},
                                                .padding = {2, {p->padding, p->padding}},
                                                .dilation = {2, {1, 1}},
                                                .groups = p->groups};
    c->src[0] = tensors[kind == FORWARD ? SRC : DST];
    c->src[1] = tensors[kind == DIFF_WEIGHTS ? SRC : WEIGHTS];
    c->dst[0] = tensors[result_of(kind)];
    c->call = (an_call){
        .ctx = ctx, .attributes = &c->attributes, .src_count = 2, .dst_count = 1, .src = c->src, .dst = c->dst};
}

static inline bool has_level(an_isa isa) {
    return an_isa_highest() >= isa;
}

/* Memory and numbers for all tensors. */
static inline void allocate_tensors(an_tensor *tensors) {
    for (int i = 0; i < TENSORS; i++) {
        tensors[i].data = malloc(bytes_of(&tensors[i]));
        assert_non_null(tensors[i].data);
        fill(&tensors[i], (uint64_t)i + 1);
    }
}

static inline void free_tensors(an_tensor *tensors) {
    for (int i = 0; i < TENSORS; i++) free(tensors[i].data);
}

#if defined(__x86_64__)
static const an_kernel *const kernels[KINDS] = {an_kernels_convolution_avx512, an_kernels_convolution_diff_src_avx512,
                                                an_kernels_convolution_diff_weights_avx512};

static inline const an_kernel *portable_of(int kind) {
    const an_kernel *k = kernels[kind];
    while (k[1].name) k++;
    assert_string_equal(k->name, "portable");
    return k;
}

static inline const an_kernel *onednn_of(int kind) {
    assert_string_equal(kernels[kind]->name, "onednn");
    return kernels[kind];
}

static inline bool applies(an_context *ctx, const problem *p, int kind, an_dtype dtype) {
    convolution_call c;
    an_tensor tensors[TENSORS];
    set_shapes(p, kind, dtype, false, tensors);
    make_call(&c, ctx, p, kind, tensors);
    return onednn_of(kind)->applies(&c.call);
}
#endif

#endif
