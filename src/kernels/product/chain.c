/* A product whose elements go through a chain where they are made: product's own kernels, with a finish. */
#include "kernels/product/chain.h"

#include <string.h>

#include "base/float16.h"
#include "kernels/common/row.h"

typedef struct {
    const an_call *call;
    const an_chain *chain; /* the first stage is what the product is rounded to, if it is */
    an_dtype dtype;
    int kept, operands;         /* operands: of the products. They stand first among those of the whole */
    int64_t item_rows, columns; /* of dst: rows of an item, and all columns */
} job;

#define AN_TEMPLATE "kernels/product/chain_template.h"
#include "kernels/common/instantiate.h"

static int operands_of(const an_call *call) {
    return 2 * (1 + (int)((const an_product_chain_attributes *)call->attributes)->added);
}

/* The call of the products alone. */
static an_call product_call(const an_call *call, an_product_attributes *product, const an_product_finish *finish) {
    const an_product_chain_attributes *a = call->attributes;
    *product = (an_product_attributes){
        .transpose_a = a->transpose_a, .transpose_b = a->transpose_b, .rounds_a = a->rounds_a, .finish = finish};
    an_call part = *call;
    part.attributes = product;
    part.src_count = operands_of(call);
    part.dst_count = 1;
    return part;
}

static const an_kernel *choose(const an_call *product) {
    const an_kernel *k = product->src_count > 2 ? AN_LEVELED(an_kernels_product_sum) : AN_LEVELED(an_kernels_product);
    while (k->applies && !k->applies(product)) k++;
    return k;
}

/* Nodes give it nothing else. */
static bool applies(const an_call *call) {
    bool dense = true;
    for (int i = operands_of(call); i < call->src_count; i++) dense = dense && an_tensor_is_dense(&call->src[i]);
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

static size_t kept(const an_call *call) {
    an_product_attributes product;
    const an_call part = product_call(call, &product, NULL);
    const an_kernel *k = choose(&part);
    return k->kept ? k->kept(&part) : 0;
}

static an_status keep(const an_call *call) {
    an_product_attributes product;
    const an_call part = product_call(call, &product, NULL);
    return choose(&part)->keep(&part);
}

static an_status run(const an_call *call) {
    const an_product_chain_attributes *a = call->attributes;
    const an_tensor *dst = &call->dst[0];
    job j = {.call = call,
             .chain = &a->chain,
             .dtype = a->dtype,
             .kept = (int)a->kept,
             .operands = operands_of(call),
             .item_rows = dst->dims[dst->ndims - 2],
             .columns = dst->dims[dst->ndims - 1]};
    const an_product_finish finish = {.f32 = finish_f32, .f64 = finish_f64, .user = &j};
    an_product_attributes product;
    const an_call part = product_call(call, &product, &finish);
    return choose(&part)->run(&part);
}

AN_KERNEL_LIST(product_chain) = {
    {.name = "finish", .applies = applies, .scratch = scratch, .run = run, .kept = kept, .keep = keep}, {0}};
