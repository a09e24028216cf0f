/* collect_gradients, scatter_gradients, scattered_gradients: the gradients of a unit in memory of their own, which
 * goes to the ranks that own its pieces. */
#include <string.h>

#include "base/dtype.h"
#include "base/exchange.h"
#include "base/status.h"
#include "kernels/sink/sink.h"

static an_status collect(const an_call *call) {
    const an_collect_attributes *attributes = call->attributes;
    const an_tensor *root = &call->dst[0];
    const size_t size = an_dtype_size(root->dtype);
    for (int64_t i = 0; i < attributes->zero_count; i++) {
        const an_element_range *zeros = &attributes->zeros[i];
        memset((char *)root->data + (size_t)zeros->begin * size, 0, (size_t)(zeros->end - zeros->begin) * size);
    }
    return AN_OK;
}

/* A program whose gradients leave it by units is of no use alone. */
static an_status nobody(const an_call *call) {
    return AN_ERROR(call->ctx, AN_ERR_STATE,
                    "the plan divides gradients among ranks (an_plan_options.shard), but nobody takes them: let a "
                    "stepper run the program");
}

static an_status scatter(const an_call *call) {
    const an_exchange_attributes *attributes = call->attributes;
    const an_exchange *x = call->exchange;
    if (!x || !x->gradients.is_open) return nobody(call);
    return x->gradients.send_unit(x->gradients.user, (int)attributes->unit, call->src[0].data, call->failed);
}

static an_status scattered(const an_call *call) {
    const an_exchange_attributes *attributes = call->attributes;
    const an_exchange *x = call->exchange;
    if (!x || !x->gradients.is_open) return nobody(call);
    return x->gradients.wait_sent(x->gradients.user, (int)attributes->unit);
}

AN_KERNEL_LIST(collect_gradients) = {{.name = "portable", .run = collect}, {0}};
AN_KERNEL_LIST(scatter_gradients) = {{.name = "ranks", .run = scatter}, {0}};
AN_KERNEL_LIST(scattered_gradients) = {{.name = "ranks", .run = scattered}, {0}};
