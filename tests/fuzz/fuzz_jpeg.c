/* Fuzzes JPEG files. */
#include "fuzz_picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size <= 1 << 15) fuzz_picture(data, size, "\xff\xd8\xff", 3);
    return 0;
}
