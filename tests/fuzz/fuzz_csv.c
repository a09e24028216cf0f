/* Fuzzes tables: with a header and without, by names and numbers of columns, plain and compressed. */
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static memory_file file;
    static const char *const names[] = {"a", "2"};
    an_csv_source source;
    an_csv_source_init(&source, sizeof source);
    an_dataset *d = NULL;
    if (size < 1 || size > 1 << 15) return 0;
    need_context();
    const size_t bytes = an_context_bytes(context);
    const int options = data[0];
    fill_either(&file, options, data + 1, size - 1);
    source.path = file.path;
    source.header = (an_csv_header)(options >> 1 & 3) == 3 ? AN_CSV_HEADER_AUTO : (an_csv_header)(options >> 1 & 3);
    source.classes = options & 8;
    source.dtype = options & 16 ? AN_DTYPE_F64 : AN_DTYPE_NONE;
    source.delimiter = options & 32 ? '\t' : 0;
    source.inputs = names;
    source.target_count = options >> 6 & 1;
    source.targets = names + 1;
    source.input_count = options >> 7;
    const an_status status = an_dataset_create_csv(&d, context, &source);
    finish(status, &d, bytes);
    return 0;
}
