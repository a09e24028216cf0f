/* Fuzzes GGUF. A refusal names the file, takes no memory beyond six times the file and leaves none; what is opened is
 * read to its last element. The first byte of an input is the number of zeros behind the rest, in units of 16, so
 * that tensors need not be written out. */
#include "fuzz_data.h"

#include "base/context.h"
#include "formats/gguf.h"

enum { MOST_READ = 1 << 16 };

static void read_tensor(const an_weights *w, int64_t index) {
    static unsigned char memory[MOST_READ * 4];
    an_safetensor t;
    int64_t bytes;
    if (w->get(w, index, &t)) broken("a tensor that is not there");
    if (!an_safetensor_measure(&t, &bytes) || bytes != t.bytes) broken("a tensor with other bytes");
    const int64_t elements = bytes / (int64_t)t.type->size;
    for (int64_t first = 0; first < elements; first += MOST_READ) {
        const int64_t left = elements - first;
        if (w->read(w, index, &t, first, left < MOST_READ ? left : MOST_READ, memory))
            broken("a tensor that cannot be read");
    }
    if (elements > 1 && w->read(w, index, &t, elements / 2, 1, memory)) broken("an element that cannot be read");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static memory_file file;
    static uint8_t bytes[(1 << 15) + 16 * 256];
    an_weights w;
    if (size < 1 || size > 1 << 15) return 0;
    need_context();
    const size_t zeros = 16 * (size_t)data[0], length = size - 1 + zeros, held = an_context_bytes(context);
    memcpy(bytes, data + 1, size - 1);
    memset(bytes + size - 1, 0, zeros);
    fill_file(&file, bytes, length);
    context->peak_bytes = held;
    const an_status status = an_weights_open_gguf(&w, context, file.path);
    if (context->peak_bytes - held > 6 * length + 4096) broken("memory beyond six times the file");
    if (status == AN_OK) {
        for (int64_t i = 0; i < w.count; i++) read_tensor(&w, i);
        an_weights_close(&w);
    } else if (status != AN_ERR_DAMAGED && status != AN_ERR_UNSUPPORTED) {
        broken("a refusal of a strange kind");
    } else if (strncmp(an_last_error(context), file.path, strlen(file.path)) != 0) {
        broken("a refusal without the file");
    }
    if (an_context_bytes(context) != held) broken("memory was not given back");
    return 0;
}
