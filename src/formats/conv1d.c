#include "formats/conv1d.h"

#include <string.h>

#include "base/word.h"

bool an_conv1d_has(const char *name) {
    return an_ends_in(name, ".attn.c_attn.weight") || an_ends_in(name, ".attn.c_proj.weight") ||
           an_ends_in(name, ".mlp.c_fc.weight") || an_ends_in(name, ".mlp.c_proj.weight");
}

bool an_conv1d_is_buffer(const char *name) {
    return an_ends_in(name, ".attn.bias") || an_ends_in(name, ".attn.masked_bias");
}

void an_conv1d_transpose(const an_safetensor *tensor, const char *whole, int64_t first, int64_t count, void *to) {
    const int64_t inputs = tensor->dims[0], outputs = tensor->dims[1];
    const size_t size = tensor->type->size;
    int64_t output = first / inputs, input = first % inputs;
    for (int64_t i = 0; i < count; i++) {
        memcpy((char *)to + (size_t)i * size, whole + (size_t)(input * outputs + output) * size, size);
        if (++input == inputs) {
            input = 0;
            output++;
        }
    }
}
