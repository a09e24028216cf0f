/* Tensors of any weights in the types that files for other programs have. */
#ifndef AN_STORE_EXPORT_WEIGHTS_H
#define AN_STORE_EXPORT_WEIGHTS_H

#include "store/export_file.h"
#include "store/gguf_types.h"

/* Writes a tensor, in pieces of constant size. A number of it that this type cannot hold is AN_ERR_NONFINITE. */
an_status an_export_file_weights(an_export_file *f, const an_weights *weights, int64_t index, const an_gguf_type *type);

#endif
