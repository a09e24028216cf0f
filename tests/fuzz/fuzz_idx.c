/* Fuzzes IDX files, as inputs and as targets, plain and compressed. */
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static memory_file file;
    an_idx_source source;
    an_idx_source_init(&source, sizeof source);
    an_dataset *d = NULL;
    if (size < 1 || size > 1 << 15) return 0;
    need_context();
    const size_t bytes = an_context_bytes(context);
    const int options = data[0];
    fill_either(&file, options, data + 1, size - 1);
    source.inputs = file.path;
    if (options & 2) source.targets = file.path;
    source.flat = options & 4;
    source.scaled = !(options & 8);
    if (options & 16) source.begin = 0.5;
    const an_status status = an_dataset_create_idx(&d, context, &source);
    finish(status, &d, bytes);
    return 0;
}
