/* Fuzzes arrays of NumPy: .npy and .npz files, as inputs and as targets. What is compressed is held once: three arrays
 * may be made of the same bytes, and each be 1,032 times as long. */
#include "fuzz_data.h"
#include "fuzz_peak.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static memory_file file;
    an_npy_source source;
    an_npy_source_init(&source, sizeof source);
    an_dataset *d = NULL;
    if (size < 1 || size > 1 << 15) return 0;
    need_context();
    const size_t bytes = an_context_bytes(context);
    const int options = data[0];
    fill_file(&file, data + 1, size - 1);
    source.path = file.path;
    if (options & 1) source.labels = file.path;
    source.flat = options & 2;
    source.channel = options & 4;
    source.scaled = options & 8;
    if (options & 16) source.dtype = AN_DTYPE_F64;
    if (options & 32) source.begin = 0.5;
    if (options & 64) source.weights = "w";
    source.weights_optional = options & 128;
    peak_begin();
    const an_status status = an_dataset_create_npy(&d, context, &source);
    peak_check(1 << 20, 3 * 1032, size);
    finish(status, &d, bytes);
    return 0;
}
