/* Fuzzes PNG files. Their checksums are made right, so that what is inside is reached. */
#include "fuzz_picture.h"

enum { SIGNATURE = 8, AROUND = 12, LONGEST = 1 << 15 };

static uint32_t upper_first(const uint8_t *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t copy[LONGEST];
    if (size < 1 || size > LONGEST) return 0;
    memcpy(copy, data, size);
    for (size_t at = 1; size - at >= AROUND && !(data[0] & 128);) {
        const uint32_t length = upper_first(copy + at);
        if (length > size - at - AROUND) break;
        const uint32_t check = (uint32_t)crc32(0, copy + at + 4, length + 4);
        for (int i = 0; i < 4; i++) copy[at + 8 + length + (size_t)i] = (uint8_t)(check >> (24 - 8 * i));
        at += AROUND + length;
    }
    fuzz_picture(copy, size, "\x89PNG\r\n\x1a\n", SIGNATURE);
    return 0;
}
