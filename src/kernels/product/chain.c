/* A product whose elements go through a chain where they are made: product's own kernels, with a finish. */
#include "kernels/product/chain.h"

#include <string.h>

#include "base/float16.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/common/row.h"

typedef struct {
    const an_call *call;
    const an_chain *chain; /* the first stage is what the product is rounded to, if it is */
    an_dtype dtype;
    int kept;
    int64_t item_rows, columns; /* of dst: rows of an item, and all columns */
} job;

#define AN_TEMPLATE "kernels/product/chain_template.h"
#include "kernels/common/instantiate.h"

/* What is kept: the parsed chain, then what the product keeps. */
enum { CHAIN_BYTES = (sizeof(an_chain) + AN_ALIGNMENT - 1) / AN_ALIGNMENT * AN_ALIGNMENT };

/* The call of the product alone; its operands stand first among those of the whole. */
static an_call product_call(const an_call *call, an_product_attributes *product, const an_product_finish *finish) {
    const an_product_chain_attributes *a = call->attributes;
    *product = (an_product_attributes){.transpose_a = a->transpose_a, .transpose_b = a->transpose_b, .finish = finish};
    an_call part = *call;
    part.attributes = product;
    part.src_count = 2;
    part.dst_count = 1;
    if (call->kept) part.kept = (char *)call->kept + CHAIN_BYTES;
    return part;
}

static const an_kernel *choose(const an_call *product) {
    const an_kernel *k = AN_LEVELED(an_kernels_product);
    while (k->applies && !k->applies(product)) k++;
    return k;
}

/* Nodes give it nothing else. */
static bool applies(const an_call *call) {
    bool dense = true;
    for (int i = 2; i < call->src_count; i++) dense = dense && an_tensor_is_dense(&call->src[i]);
    for (int i = 0; i < call->dst_count; i++) dense = dense && an_tensor_is_dense(&call->dst[i]);
    return dense;
}

static size_t scratch(const an_call *call) {
    const an_product_finish finish = {.f32 = finish_f32, .f64 = finish_f64};
    an_product_attributes product;
    const an_call part = product_call(call, &product, &finish);
    const an_kernel *k = choose(&part);
    return k->scratch ? k->scratch(&part) : 0;
}

static an_status parse(const an_call *call, an_chain *chain) {
    const an_product_chain_attributes *a = call->attributes;
    const char *wrong;
    if (!an_chain_parse(a->program, an_context_isa(call->ctx), call->src_count, chain, &wrong))
        return AN_ERROR(call->ctx, AN_ERR_KERNEL, "product_chain '%s': %s", a->program, wrong);
    return AN_OK;
}

static size_t kept(const an_call *call) {
    an_product_attributes product;
    const an_call part = product_call(call, &product, NULL);
    const an_kernel *k = choose(&part);
    const size_t bytes = k->kept ? k->kept(&part) : 0;
    return bytes ? CHAIN_BYTES + bytes : 0;
}

static an_status keep(const an_call *call) {
    an_product_attributes product;
    const an_call part = product_call(call, &product, NULL);
    an_status status = parse(call, call->kept);
    return status == AN_OK ? choose(&part)->keep(&part) : status;
}

static an_status run(const an_call *call) {
    const an_product_chain_attributes *a = call->attributes;
    const an_tensor *dst = &call->dst[0];
    an_chain chain;
    job j = {.call = call,
             .chain = call->kept ? call->kept : &chain,
             .dtype = a->dtype,
             .kept = (int)a->kept,
             .item_rows = dst->dims[dst->ndims - 2],
             .columns = dst->dims[dst->ndims - 1]};
    const an_status status = call->kept ? AN_OK : parse(call, &chain);
    if (status != AN_OK) return status;
    const an_product_finish finish = {.f32 = finish_f32, .f64 = finish_f64, .user = &j};
    an_product_attributes product;
    const an_call part = product_call(call, &product, &finish);
    return choose(&part)->run(&part);
}

AN_KERNEL_LIST(product_chain) = {
    {.name = "finish", .applies = applies, .scratch = scratch, .run = run, .kept = kept, .keep = keep}, {0}};
