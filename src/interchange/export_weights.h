/* Tensors of any weights in the types that files for other programs have. */
#ifndef AN_INTERCHANGE_EXPORT_WEIGHTS_H
#define AN_INTERCHANGE_EXPORT_WEIGHTS_H

#include "formats/gguf_types.h"
#include "interchange/export_file.h"

/* Writes a tensor, in pieces of constant size. A number of it that this type cannot hold is AN_ERR_NONFINITE. */
an_status an_export_file_weights(an_export_file *f, const an_weights *weights, int64_t index, const an_gguf_type *type);

#endif
