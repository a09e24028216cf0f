/* Fuzzes token files of every format, with limits and documents. */
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static memory_file file;
    an_token_source source;
    an_token_source_init(&source, sizeof source);
    an_dataset *d = NULL;
    if (size < 2) return 0;
    need_context();
    const size_t bytes = an_context_bytes(context);
    const int options = data[0];
    fill_file(&file, data + 2, size - 2);
    source.path = file.path;
    source.format = (an_token_format)(options % 3);
    source.context = data[1];
    source.limit = options & 4 ? 300 : 0;
    source.documents = options & 8;
    source.end_token = options >> 5;
    source.ignore_borders = options & 16;
    source.end = options & 128 ? 0.75 : 0;
    const an_status status = an_dataset_create_tokens(&d, context, &source);
    finish(status, &d, bytes);
    return 0;
}
