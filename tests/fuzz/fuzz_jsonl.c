/* Fuzzes JSON lines: columns that are named and that are not, numbers and classes. */
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static memory_file file;
    static const char *const inputs[] = {"a", "b.c"}, *const targets[] = {"y"};
    an_jsonl_source source;
    an_jsonl_source_init(&source, sizeof source);
    an_dataset *d = NULL;
    if (size < 1 || size > 1 << 15) return 0;
    need_context();
    const size_t bytes = an_context_bytes(context);
    const int options = data[0];
    fill_file(&file, data + 1, size - 1);
    source.path = file.path;
    source.inputs = inputs;
    source.input_count = options & 3 ? (options & 3) - 1 : 0;
    source.targets = targets;
    source.target_count = options >> 2 & 1;
    source.classes = options & 8;
    source.has_targets = source.target_count || !(options & 16);
    if (options & 32) source.dtype = AN_DTYPE_F64;
    if (options & 64) source.begin = 0.5;
    if (options & 128) source.weights = "w";
    source.weights_optional = options & 1;
    const an_status status = an_dataset_create_jsonl(&d, context, &source);
    finish(status, &d, bytes);
    return 0;
}
