/* GPT-2's published files store the weights of four layers of each block as [in, out] (Hugging Face calls this layer
 * Conv1D). A linear layer here has [out, in]. */
#ifndef AN_FORMATS_CONV1D_H
#define AN_FORMATS_CONV1D_H

#include "formats/safetensors.h"

/* Whether a parameter of the model is the weight of such a layer. */
bool an_conv1d_has(const char *name);
/* Whether a tensor beside them is a causal mask, which is no weight. */
bool an_conv1d_is_buffer(const char *name);

/* Elements of the transposed matrix, from number `first` on; `whole` is the tensor as its file has it. */
void an_conv1d_transpose(const an_safetensor *tensor, const char *whole, int64_t first, int64_t count, void *to);

#endif
