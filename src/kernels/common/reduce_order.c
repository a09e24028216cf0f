#include "kernels/common/reduce_order.h"

#include <string.h>

#include "kernels/common/row.h"

an_tensor an_tensor_merged(const an_tensor *tensor) {
    an_tensor merged = {.data = tensor->data, .dtype = tensor->dtype};
    int kept = 0;
    for (int i = 0; i < tensor->ndims; i++) {
        if (tensor->dims[i] == 1) continue;
        if (kept > 0 && merged.strides[kept - 1] == tensor->strides[i] * tensor->dims[i]) {
            merged.dims[kept - 1] *= tensor->dims[i];
            merged.strides[kept - 1] = tensor->strides[i];
        } else {
            merged.dims[kept] = tensor->dims[i];
            merged.strides[kept++] = tensor->strides[i];
        }
    }
    merged.ndims = kept;
    return merged;
}

#define AN_TEMPLATE "kernels/common/reduce_order_template.h"
#include "kernels/common/instantiate.h"
