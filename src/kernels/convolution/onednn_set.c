/* The primitives for the convolution of some samples, and the copies around it. */
#if defined(ANNEAL_HAVE_ONEDNN) && defined(__x86_64__)
#include "kernels/convolution/onednn.h"

enum { SRC = AN_CONVOLUTION_SRC, WEIGHTS = AN_CONVOLUTION_WEIGHTS, DST = AN_CONVOLUTION_DST };
enum { TENSORS = AN_CONVOLUTION_TENSORS };
enum {
    FORWARD = AN_CONVOLUTION_FORWARD,
    DIFF_SRC = AN_CONVOLUTION_DIFF_SRC,
    DIFF_WEIGHTS = AN_CONVOLUTION_DIFF_WEIGHTS
};

/* What lies where in a set. */
enum { CONVOLUTION, COPY };
enum { INSIDE, PART_OUTSIDE = INSIDE + TENSORS, PART_INSIDE = PART_OUTSIDE + TENSORS, SCRATCH = PART_INSIDE + TENSORS };
enum { PARTS, STEP = PARTS + TENSORS, DIRECT = STEP + TENSORS }; /* numbers: STEP in bytes; DIRECT is a mask */

enum { PART_FILTERS = 64 }; /* of weights that are copied at once: work for a task */

static bool is_result(const an_convolution_key *key, int tensor) {
    static const int results[] = {[FORWARD] = DST, [DIFF_SRC] = SRC, [DIFF_WEIGHTS] = WEIGHTS};
    return results[key->kind] == tensor;
}

/* ---- layouts ---- */

typedef struct {
    int ndims;
    dnnl_dims_t dims, strides;
} shape;

/* Weights in groups have a dimension for them in front. */
static shape shape_of(const an_convolution_key *key, int tensor) {
    const int64_t *dims = key->dims[tensor], *strides = key->strides[tensor];
    shape s = {0};
    const int64_t groups = tensor == WEIGHTS ? key->groups : 1;
    if (groups > 1) {
        s.dims[0] = groups;
        s.strides[s.ndims++] = dims[0] / groups * strides[0];
    }
    for (int i = 0; i < AN_IMAGE_DIMS; i++) {
        s.dims[s.ndims] = i == 0 ? dims[0] / groups : dims[i];
        s.strides[s.ndims++] = strides[i];
    }
    return s;
}

/* (batch, height, width, channels) in memory, and dense. */
static bool has_channels_last(const an_convolution_key *key, int tensor) {
    enum { BATCH, CHANNELS, HEIGHT, WIDTH };
    const int64_t *dims = key->dims[tensor], *strides = key->strides[tensor];
    return dims[CHANNELS] > 1 && strides[CHANNELS] == 1 && strides[WIDTH] == dims[CHANNELS] &&
           strides[HEIGHT] == strides[WIDTH] * dims[WIDTH] && strides[BATCH] == strides[HEIGHT] * dims[HEIGHT];
}

/* The primitive may choose, but for images that already lie in a layout that it can use. */
static dnnl_status_t make_choice(const an_convolution_key *key, int tensor, int64_t dtype, dnnl_memory_desc_t *choice) {
    const shape s = shape_of(key, tensor);
    const bool kept = tensor != WEIGHTS && has_channels_last(key, SRC) && has_channels_last(key, DST);
    return dnnl_memory_desc_create_with_tag(choice, s.ndims, s.dims, an_onednn_dtype((an_dtype)dtype),
                                            kept ? dnnl_nhwc : dnnl_format_tag_any);
}

/* ---- the convolution ---- */

typedef struct {
    dnnl_primitive_attr_t attributes;
    dnnl_memory_desc_t choices[TENSORS];
    dnnl_dims_t stride, before, after, dilation;
    dnnl_primitive_desc_t forward, description;
} making;

static void drop_choices(making *m) {
    for (int i = 0; i < TENSORS; i++)
        if (m->choices[i]) dnnl_memory_desc_destroy(m->choices[i]);
    for (int i = 0; i < TENSORS; i++) m->choices[i] = NULL;
}

static dnnl_status_t describe_forward(dnnl_engine_t engine, making *m, dnnl_primitive_desc_t *description) {
    return dnnl_convolution_forward_primitive_desc_create(
        description, engine, dnnl_forward_training, dnnl_convolution_direct, m->choices[SRC], m->choices[WEIGHTS], NULL,
        m->choices[DST], m->stride, m->dilation, m->before, m->after, m->attributes);
}

/* The descriptions of gradients need that of forward, whose tensors are of one type. */
static dnnl_status_t describe(dnnl_engine_t engine, const an_convolution_key *key, making *m) {
    AN_ONEDNN_TRY(an_onednn_attributes(&m->attributes));
    for (int i = 0; i < 2; i++) {
        m->stride[i] = key->stride[i];
        m->before[i] = key->before[i];
        m->after[i] = key->after[i];
        m->dilation[i] = key->dilation[i] - 1; /* oneDNN counts what is left out */
    }
    if (key->kind != FORWARD) {
        const int64_t dtype = key->kind == DIFF_SRC ? key->dtypes[DST] : key->dtypes[SRC];
        for (int i = 0; i < TENSORS; i++) AN_ONEDNN_TRY(make_choice(key, i, dtype, &m->choices[i]));
        AN_ONEDNN_TRY(describe_forward(engine, m, &m->forward));
        drop_choices(m);
    }
    for (int i = 0; i < TENSORS; i++) AN_ONEDNN_TRY(make_choice(key, i, key->dtypes[i], &m->choices[i]));
    if (key->kind == FORWARD) return describe_forward(engine, m, &m->description);
    if (key->kind == DIFF_SRC)
        return dnnl_convolution_backward_data_primitive_desc_create(
            &m->description, engine, dnnl_convolution_direct, m->choices[SRC], m->choices[WEIGHTS], m->choices[DST],
            m->stride, m->dilation, m->before, m->after, m->forward, m->attributes);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        &m->description, engine, dnnl_convolution_direct, m->choices[SRC], m->choices[WEIGHTS], NULL, m->choices[DST],
        m->stride, m->dilation, m->before, m->after, m->forward, m->attributes);
}

static dnnl_status_t make_convolution(dnnl_engine_t engine, const an_convolution_key *key, an_onednn_set *set) {
    static const dnnl_query_t chosen[][TENSORS] = {
        [FORWARD] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
        [DIFF_SRC] = {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
        [DIFF_WEIGHTS] = {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md},
    };
    making m = {0};
    dnnl_status_t status = describe(engine, key, &m);
    for (int i = 0; i < TENSORS && status == dnnl_success; i++)
        status = dnnl_memory_desc_clone(&set->layouts[INSIDE + i],
                                        dnnl_primitive_desc_query_md(m.description, chosen[key->kind][i], 0));
    if (status == dnnl_success)
        status = dnnl_memory_desc_clone(&set->layouts[SCRATCH],
                                        dnnl_primitive_desc_query_md(m.description, dnnl_query_scratchpad_md, 0));
    if (status == dnnl_success) status = dnnl_primitive_create(&set->primitives[CONVOLUTION], m.description);
    drop_choices(&m);
    if (m.description) dnnl_primitive_desc_destroy(m.description);
    if (m.forward) dnnl_primitive_desc_destroy(m.forward);
    if (m.attributes) dnnl_primitive_attr_destroy(m.attributes);
    return status;
}

/* ---- copies ---- */

/* How far apart parts lie inside, in bytes. Fails where a part is not made of whole blocks. */
static dnnl_status_t part_step(const_dnnl_memory_desc_t whole, const int64_t *part_dims, int64_t *bytes) {
    const dnnl_dims_t second = {part_dims[0]};
    dnnl_memory_desc_t layout;
    dnnl_data_type_t dtype;
    int64_t elements = 0;
    AN_ONEDNN_TRY(dnnl_memory_desc_create_submemory(&layout, whole, part_dims, second));
    dnnl_status_t status = dnnl_memory_desc_query(layout, dnnl_query_submemory_offset_s64, &elements);
    if (status == dnnl_success) status = dnnl_memory_desc_query(layout, dnnl_query_data_type, &dtype);
    if (status == dnnl_success) *bytes = elements * (int64_t)dnnl_data_type_size(dtype);
    dnnl_memory_desc_destroy(layout);
    return status;
}

/* A part is a sample of an image, or some filters of weights where they can be cut. */
static dnnl_status_t make_copy(dnnl_engine_t engine, const an_convolution_key *key, int tensor, an_onednn_set *set) {
    const dnnl_data_type_t dtype = an_onednn_dtype((an_dtype)key->dtypes[tensor]);
    dnnl_memory_desc_t whole = set->layouts[INSIDE + tensor];
    const dnnl_dims_t first = {0};
    dnnl_memory_desc_t *out = &set->layouts[PART_OUTSIDE + tensor], *in = &set->layouts[PART_INSIDE + tensor];
    shape s = shape_of(key, tensor);
    if (an_onednn_has_strides(whole, s.strides)) set->numbers[DIRECT] |= 1 << tensor;

    const int64_t all = s.dims[0], part = tensor == WEIGHTS ? PART_FILTERS : 1;
    const bool is_cut = all > part && all % part == 0 && (tensor != WEIGHTS || key->groups == 1);
    s.dims[0] = is_cut ? part : all;
    dnnl_status_t status = is_cut ? part_step(whole, s.dims, &set->numbers[STEP + tensor]) : dnnl_success;
    if (status != dnnl_success && tensor != WEIGHTS) return status;
    if (status != dnnl_success) s.dims[0] = all;
    set->numbers[PARTS + tensor] = all / s.dims[0];
    AN_ONEDNN_TRY(dnnl_memory_desc_create_with_strides(out, s.ndims, s.dims, dtype, s.strides));
    AN_ONEDNN_TRY(dnnl_memory_desc_create_submemory(in, whole, s.dims, first));
    const bool result = is_result(key, tensor);
    return an_onednn_make_copy(engine, result ? *in : *out, result ? *out : *in, &set->primitives[COPY + tensor]);
}

static dnnl_status_t make_set(dnnl_engine_t engine, const void *key, an_onednn_set *set) {
    AN_ONEDNN_TRY(make_convolution(engine, key, set));
    for (int i = 0; i < TENSORS; i++) AN_ONEDNN_TRY(make_copy(engine, key, i, set));
    return dnnl_success;
}

/* ---- what kernels call ---- */

an_status an_convolution_set_find(an_context *ctx, const an_convolution_key *key, an_convolution_set *set) {
    _Static_assert(sizeof *key <= AN_ONEDNN_KEY_BYTES, "a key fits into an entry");
    const an_onednn_set *found;
    AN_TRY_RETURN(an_onednn_find(ctx, "a convolution", key, sizeof *key, make_set, &found));
    *set = (an_convolution_set){.ctx = ctx, .key = key, .set = found};
    for (int i = 0; i < TENSORS; i++) {
        set->parts[i] = found->numbers[PARTS + i];
        set->bytes[i] = an_round_up(dnnl_memory_desc_get_size(found->layouts[INSIDE + i]), AN_ALIGNMENT);
        set->is_direct[i] = found->numbers[DIRECT] >> i & 1;
    }
    set->scratch = an_round_up(dnnl_memory_desc_get_size(found->layouts[SCRATCH]), AN_ALIGNMENT);
    return AN_OK;
}

bool an_convolution_set_is_alike(const an_convolution_set *a, const an_convolution_set *b, int tensor) {
    return dnnl_memory_desc_equal(a->set->layouts[INSIDE + tensor], b->set->layouts[INSIDE + tensor]) == 1;
}

dnnl_status_t an_convolution_set_copy(const an_convolution_set *set, int tensor, int64_t part, void *outside,
                                      void *inside) {
    const an_convolution_key *key = set->key;
    const int64_t first = part * (key->dims[tensor][0] / set->parts[tensor]) * key->strides[tensor][0];
    const size_t element = an_dtype_size((an_dtype)key->dtypes[tensor]);
    const an_onednn_operand out = {.layout = set->set->layouts[PART_OUTSIDE + tensor],
                                   .data = (char *)outside + first * (int64_t)element};
    const an_onednn_operand in = {.layout = set->set->layouts[PART_INSIDE + tensor],
                                  .data = (char *)inside + part * set->set->numbers[STEP + tensor]};
    const bool result = is_result(key, tensor);
    return an_onednn_copy(set->ctx, set->set->primitives[COPY + tensor], result ? &in : &out, result ? &out : &in);
}

dnnl_status_t an_convolution_set_run(const an_convolution_set *set, void *const *inside, void *scratch) {
    static const int arguments[][TENSORS] = {
        [FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [DIFF_SRC] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        [DIFF_WEIGHTS] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
    };
    an_onednn_operand operands[TENSORS + 1] = {[TENSORS] = {DNNL_ARG_SCRATCHPAD, set->set->layouts[SCRATCH], scratch}};
    for (int i = 0; i < TENSORS; i++)
        operands[i] = (an_onednn_operand){arguments[set->key->kind][i], set->set->layouts[INSIDE + i], inside[i]};
    return an_onednn_execute(set->ctx, set->set->primitives[CONVOLUTION], TENSORS + 1, operands);
}
#endif
