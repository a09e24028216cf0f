/* gather_weights, arrive_weights: weights that come from the ranks that own their pieces. */
#include "base/exchange.h"
#include "base/status.h"
#include "kernels/sink/sink.h"

/* Memory that nobody fills would be read as weights. */
static an_status nobody(const an_call *call) {
    return AN_ERROR(call->ctx, AN_ERR_STATE,
                    "the plan divides weights among ranks (an_plan_options.shard), but nobody gathers them: let a "
                    "stepper run the program");
}

static an_status gather(const an_call *call) {
    const an_gather_weights_attributes *attributes = call->attributes;
    const an_exchange *x = call->exchange;
    void *roots[AN_WEIGHT_KINDS] = {NULL};
    int count = 0;
    if (!x || !x->weights.is_open) return nobody(call);
    if (attributes->masters) roots[AN_WEIGHTS_MASTER] = call->dst[count++].data;
    if (attributes->low) roots[AN_WEIGHTS_LOW] = call->dst[count].data;
    return x->weights.gather(x->weights.user, (int)attributes->region.form, (int)attributes->region.region, roots);
}

static an_status arrive(const an_call *call) {
    const an_region_attributes *attributes = call->attributes;
    const an_exchange *x = call->exchange;
    if (!x || !x->weights.is_open) return nobody(call);
    return x->weights.wait_region(x->weights.user, (int)attributes->form, (int)attributes->region);
}

AN_KERNEL_LIST(gather_weights) = {{.name = "ranks", .run = gather}, {0}};
AN_KERNEL_LIST(arrive_weights) = {{.name = "ranks", .run = arrive}, {0}};
