#include "anneal/core.h"

#if defined(ANNEAL_HAVE_ONEDNN) && defined(__x86_64__)
#include "kernels/onednn/onednn.h"

#include <dnnl_debug.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/isa.h"
#include "base/memory.h"
#include "base/parallel.h"

const char *an_onednn_version(void) {
    static _Thread_local char text[32]; /* of the library that was loaded, which need not be the one built with */
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

typedef struct {
    uint64_t used; /* when it was last asked for; 0: empty */
    size_t key_bytes;
    unsigned char key[AN_ONEDNN_KEY_BYTES];
    an_onednn_set set;
} entry;

typedef struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint64_t now;
    entry entries[AN_ONEDNN_CAPACITY];
} onednn_state;

/* ---- statuses ---- */

an_status an_onednn_status(an_context *ctx, dnnl_status_t status, const char *what) {
    if (status == dnnl_success) return AN_OK;
    if (status == dnnl_out_of_memory) return AN_ERROR(ctx, AN_ERR_MEMORY, "out of memory: oneDNN, %s", what);
    return AN_ERROR(ctx, status == dnnl_unimplemented ? AN_ERR_UNSUPPORTED : AN_ERR_KERNEL, "oneDNN, %s: %s", what,
                    dnnl_status2str(status));
}

/* ---- the state that a context keeps ---- */

static void clear(entry *e) {
    for (int i = 0; i < AN_ONEDNN_PRIMITIVES; i++)
        if (e->set.primitives[i]) dnnl_primitive_destroy(e->set.primitives[i]);
    for (int i = 0; i < AN_ONEDNN_LAYOUTS; i++)
        if (e->set.layouts[i]) dnnl_memory_desc_destroy(e->set.layouts[i]);
    memset(e, 0, sizeof *e);
}

static void release(an_context *ctx) {
    onednn_state *state = ctx->engine;
    for (int i = 0; i < AN_ONEDNN_CAPACITY; i++) clear(&state->entries[i]);
    if (state->stream) dnnl_stream_destroy(state->stream);
    if (state->engine) dnnl_engine_destroy(state->engine);
    an_release(ctx, &ctx->engine, 1, sizeof *state);
    ctx->engine_release = NULL;
}

/* The limit can be set once and before it is first asked for; where somebody else was first, theirs must do. Its values
 * are masks, in which more means newer. What ANNEAL_MAX_ISA keeps from contexts, oneDNN does not use either. */
static an_status check_level(an_context *ctx) {
#ifdef AN_TILE_MODEL /* a test program that shall not use the processor's tiles: kernels/common/tiles.h */
    const dnnl_cpu_isa_t maximum = dnnl_cpu_isa_avx512_core;
#else
    const dnnl_cpu_isa_t maximum = dnnl_cpu_isa_avx512_core_amx;
#endif
    const dnnl_cpu_isa_t minimum = ctx->isa == AN_ISA_AMX ? maximum : dnnl_cpu_isa_avx512_core;
    (void)dnnl_set_max_cpu_isa(an_isa_allowed() < AN_ISA_AMX ? dnnl_cpu_isa_avx512_core : maximum);
    (void)dnnl_set_cpu_isa_hints(dnnl_cpu_isa_no_hints);
    const dnnl_cpu_isa_t limit = dnnl_get_effective_cpu_isa();
    if ((limit & minimum) == minimum && limit <= maximum && dnnl_get_cpu_isa_hints() == dnnl_cpu_isa_no_hints)
        return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_STATE,
        "the program has limited oneDNN to %s%s for the whole process, but a context with instruction set %s needs %s: "
        "create a plan before oneDNN is first used, or use kernels without it, as in convolution=portable",
        dnnl_cpu_isa2str(limit), dnnl_get_cpu_isa_hints() == dnnl_cpu_isa_no_hints ? "" : " with hints",
        an_isa_name(ctx->isa), dnnl_cpu_isa2str(minimum));
}

static an_status open_state(an_context *ctx) {
    if (ctx->engine) return AN_OK;
    AN_TRY_RETURN(check_level(ctx));
    AN_TRY_RETURN(an_alloc(ctx, &ctx->engine, 1, sizeof(onednn_state)));
    ctx->engine_release = release;
    onednn_state *state = ctx->engine;
    dnnl_status_t status = dnnl_engine_create(&state->engine, dnnl_cpu, 0);
    if (status == dnnl_success) status = dnnl_stream_create(&state->stream, state->engine, dnnl_stream_default_flags);
    if (status != dnnl_success) release(ctx);
    return an_onednn_status(ctx, status, "making an engine");
}

/* ---- the cache ---- */

/* oneDNN takes as many threads as the calling thread may start: some primitives when they are made, others when they
 * run. The setting is the calling thread's own, and the caller gets it back. */
static int begin_alone(void) {
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    return threads;
}

static void end_alone(int threads) {
    omp_set_num_threads(threads);
}

/* With our floating-point environment: some of oneDNN's choices are made by computing. */
static dnnl_status_t make_alone(dnnl_engine_t engine, const void *key, an_onednn_make *make, an_onednn_set *set) {
    an_float_environment outside = an_float_enter();
    const int threads = begin_alone();
    dnnl_status_t status = make(engine, key, set);
    end_alone(threads);
    an_float_leave(outside);
    return status;
}

an_status an_onednn_find(an_context *ctx, const char *what, const void *key, size_t key_bytes, an_onednn_make *make,
                         const an_onednn_set **set) {
    AN_TRY_RETURN(open_state(ctx));
    onednn_state *state = ctx->engine;
    entry *oldest = state->entries;
    for (entry *e = state->entries; e < state->entries + AN_ONEDNN_CAPACITY; e++) {
        if (e->used < oldest->used) oldest = e;
        if (!e->used || e->key_bytes != key_bytes || memcmp(e->key, key, key_bytes) != 0) continue;
        e->used = ++state->now;
        *set = &e->set;
        return AN_OK;
    }
    clear(oldest);
    memcpy(oldest->key, key, key_bytes);
    oldest->key_bytes = key_bytes;
    dnnl_status_t status = make_alone(state->engine, key, make, &oldest->set);
    if (status != dnnl_success) {
        clear(oldest);
        return an_onednn_status(ctx, status, what);
    }
    oldest->used = ++state->now;
    *set = &oldest->set;
    return AN_OK;
}

/* ---- running ---- */

dnnl_status_t an_onednn_execute(an_context *ctx, dnnl_primitive_t primitive, int count,
                                const an_onednn_operand *operands) {
    enum { MOST = 8 };
    const onednn_state *state = ctx->engine;
    dnnl_exec_arg_t arguments[MOST];
    dnnl_status_t status = count <= MOST ? dnnl_success : dnnl_invalid_arguments;
    int made = 0;
    for (; made < count && status == dnnl_success; made++) {
        arguments[made].arg = operands[made].argument;
        status = dnnl_memory_create(&arguments[made].memory, operands[made].layout, state->engine, operands[made].data);
        if (status != dnnl_success) break;
    }
    const int threads = begin_alone();
    /* A stream of a CPU holds nothing, so threads can share it. */
    if (status == dnnl_success) status = dnnl_primitive_execute(primitive, state->stream, count, arguments);
    end_alone(threads);
    while (made > 0) dnnl_memory_destroy(arguments[--made].memory);
    return status;
}

/* ---- for makers ---- */

dnnl_data_type_t an_onednn_dtype(an_dtype dtype) {
    return dtype == AN_DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

dnnl_status_t an_onednn_attributes(dnnl_primitive_attr_t *attributes) {
    dnnl_primitive_attr_t made;
    *attributes = NULL;
    AN_ONEDNN_TRY(dnnl_primitive_attr_create(&made));
    dnnl_status_t status = dnnl_primitive_attr_set_scratchpad_mode(made, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_fpmath_mode(made, dnnl_fpmath_mode_strict);
    if (status == dnnl_success)
        *attributes = made;
    else
        dnnl_primitive_attr_destroy(made);
    return status;
}

dnnl_status_t an_onednn_make_copy(dnnl_engine_t engine, const_dnnl_memory_desc_t from, const_dnnl_memory_desc_t to,
                                  dnnl_primitive_t *copy) {
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t description;
    AN_ONEDNN_TRY(an_onednn_attributes(&attributes));
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&description, from, engine, to, engine, attributes);
    dnnl_primitive_attr_destroy(attributes);
    if (status != dnnl_success) return status;
    if (dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0)) > 0)
        status = dnnl_unimplemented; /* none that we make needs a scratchpad */
    if (status == dnnl_success) status = dnnl_primitive_create(copy, description);
    dnnl_primitive_desc_destroy(description);
    return status;
}

dnnl_status_t an_onednn_copy(an_context *ctx, dnnl_primitive_t copy, const an_onednn_operand *from,
                             const an_onednn_operand *to) {
    const an_onednn_operand operands[] = {{DNNL_ARG_FROM, from->layout, from->data},
                                          {DNNL_ARG_TO, to->layout, to->data}};
    return an_onednn_execute(ctx, copy, 2, operands);
}

bool an_onednn_has_strides(const_dnnl_memory_desc_t layout, const int64_t *strides) {
    int blocks, ndims;
    dnnl_dims_t *dims, *own;
    if (dnnl_memory_desc_query(layout, dnnl_query_inner_nblks_s32, &blocks) != dnnl_success || blocks > 0 ||
        dnnl_memory_desc_query(layout, dnnl_query_ndims_s32, &ndims) != dnnl_success ||
        dnnl_memory_desc_query(layout, dnnl_query_dims, &dims) != dnnl_success ||
        dnnl_memory_desc_query(layout, dnnl_query_strides, &own) != dnnl_success)
        return false;
    for (int i = 0; i < ndims; i++) /* the stride of a dimension of 1 means nothing */
        if ((*dims)[i] > 1 && (*own)[i] != strides[i]) return false;
    return true;
}

#else
const char *an_onednn_version(void) {
    return "";
}
#endif
