/* oneDNN behind one file: its level, its statuses, and the primitives that a context keeps. Only *_onednn*.c use it.
 *
 * Bits. Every primitive is made for one thread and run inside a task of ours, on a part of the work that shapes alone
 * cut out; so bits do not depend on how oneDNN would share work among threads, which for most of its products and
 * gradients of weights changes with their number.
 *
 * Levels. oneDNN has one limit of instructions for the whole process, which holds from the first primitive on. It is
 * set to AMX with bf16, or to avx512_core where ANNEAL_MAX_ISA keeps AMX from all contexts. Contexts of level avx512
 * use oneDNN in f32 only, where it takes the same code and gives the same bits under every limit from avx512_core to
 * avx512_core_amx; bf16 needs level amx; levels below never use it. So contexts of all levels live side by side, and a
 * level means the same bits on every machine and in every process.
 */
#ifndef AN_KERNELS_ONEDNN_ONEDNN_H
#define AN_KERNELS_ONEDNN_ONEDNN_H

#include <dnnl.h>

#include "base/context.h"

enum { AN_ONEDNN_PRIMITIVES = 8, AN_ONEDNN_LAYOUTS = 16, AN_ONEDNN_NUMBERS = 8, AN_ONEDNN_KEY_BYTES = 384 };

/* Primitives that work together, and the layouts of what they work on. */
typedef struct an_onednn_set {
    dnnl_primitive_t primitives[AN_ONEDNN_PRIMITIVES];
    dnnl_memory_desc_t layouts[AN_ONEDNN_LAYOUTS];
    int64_t numbers[AN_ONEDNN_NUMBERS]; /* what else their maker wants to keep */
} an_onednn_set;

/* Fills a set from its key. What it put into the set when it fails is released by the caller. */
typedef dnnl_status_t an_onednn_make(dnnl_engine_t engine, const void *key, an_onednn_set *set);

/* The set of this key, which says everything that makes it and has no bytes that mean nothing: the one that the context
 * keeps, or a new one in the place of that which was not used for longest. Valid until AN_ONEDNN_CAPACITY - 1 others
 * have been asked for. */
enum { AN_ONEDNN_CAPACITY = 128 };
an_status an_onednn_find(an_context *ctx, const char *what, const void *key, size_t key_bytes, an_onednn_make *make,
                         const an_onednn_set **set);

typedef struct an_onednn_operand {
    int argument; /* DNNL_ARG_… */
    const_dnnl_memory_desc_t layout;
    void *data;
} an_onednn_operand;

/* Runs a primitive on the calling thread; for tasks, once an_onednn_find has returned. */
dnnl_status_t an_onednn_execute(an_context *ctx, dnnl_primitive_t primitive, int count,
                                const an_onednn_operand *operands);

/* AN_OK, or the error of this status. */
an_status an_onednn_status(an_context *ctx, dnnl_status_t status, const char *what);

/* For makers: passes a failure on. */
#define AN_ONEDNN_TRY(call)                          \
    do {                                             \
        dnnl_status_t status_ = (call);              \
        if (status_ != dnnl_success) return status_; \
    } while (0)

dnnl_data_type_t an_onednn_dtype(an_dtype dtype); /* of f32 and bf16 */

/* What every primitive of ours is made with: scratchpads from the caller, f32 computed in f32 whatever the environment
 * variables of oneDNN say. */
dnnl_status_t an_onednn_attributes(dnnl_primitive_attr_t *attributes);

/* A primitive that copies from one layout to another. */
dnnl_status_t an_onednn_make_copy(dnnl_engine_t engine, const_dnnl_memory_desc_t from, const_dnnl_memory_desc_t to,
                                  dnnl_primitive_t *copy);
dnnl_status_t an_onednn_copy(an_context *ctx, dnnl_primitive_t copy, const an_onednn_operand *from,
                             const an_onednn_operand *to);

/* Whether a layout is plain and has these strides. */
bool an_onednn_has_strides(const_dnnl_memory_desc_t layout, const int64_t *strides);

#endif
