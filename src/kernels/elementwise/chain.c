#include "kernels/elementwise/chain.h"

#include <string.h>

#include "base/float16.h"

#define AN_TEMPLATE "kernels/elementwise/chain_template.h"
#include "kernels/common/instantiate.h"

static an_status run(const an_call *call) {
    const an_chain_attributes *attributes = call->attributes;
    an_call rows = *call;
    rows.attributes = &attributes->chain;
    return an_elementwise(&rows, chain_row_f32, chain_row_f64);
}

AN_KERNEL_LIST(chain) = {{.name = "portable", .run = run}, {0}};
