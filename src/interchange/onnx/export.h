/* A checkpoint as an ONNX model. */
#ifndef AN_INTERCHANGE_ONNX_EXPORT_H
#define AN_INTERCHANGE_ONNX_EXPORT_H

#include "anneal/checkpoint.h"

/* Protocol Buffers end at 2 GiB. Weights with more bytes than this go to a file beside the model, NAME.onnx.data. */
enum { AN_ONNX_MOST_INSIDE = 1 << 30 };

an_status an_onnx_export(const an_checkpoint *checkpoint, const char *file, int64_t most_inside);

#endif
