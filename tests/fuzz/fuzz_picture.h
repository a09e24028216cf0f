/* What fuzzers of pictures share: a file is measured and decoded twice, and made small; the first byte chooses the
 * size. The file itself begins as one of its kind does, whatever the input is, so that none is wasted. */
#ifndef TESTS_FUZZ_FUZZ_PICTURE_H
#define TESTS_FUZZ_FUZZ_PICTURE_H

#include "data/pictures/picture.h"
#include "data/pictures/resize.h"
#include "fuzz_data.h"
#include "fuzz_peak.h"

static inline void check_note(an_status status, const char *text) {
    if ((status != AN_ERR_PARSE && status != AN_ERR_MEMORY) || (status == AN_ERR_PARSE && !strstr(text, ": byte "))) {
        fprintf(stderr, "fuzz_picture: a refusal without a place: %s\n", text);
        abort();
    }
}

static inline void fuzz_picture(const uint8_t *data, size_t size, const void *beginning, size_t length) {
    static memory_file file;
    static unsigned char bytes[1 << 16];
    static an_picture picture; /* its memory is used again, as by a thread that loads */
    static an_resizer resizer;
    char text[AN_MESSAGE_BYTES] = "";
    const an_note note = {text, sizeof text};
    const unsigned char *pixels;
    uint32_t hashes[2] = {2166136261u, 2166136261u};
    if (size < 1 || size + length > sizeof bytes) return;
    need_context();
    memcpy(bytes, beginning, length);
    memcpy(bytes + length, data + 1, size - 1);
    fill_file(&file, bytes, size - 1 + length);
    an_picture first = {0};
    peak_begin();
    an_status status = an_picture_measure(&first, file.path, note);
    if (status != AN_OK) {
        check_note(status, text);
        return;
    }
    peak_check(1 << 20, 16, size);                    /* measuring needs no pixels */
    if (first.width * first.height > 1 << 20) return; /* allowed, but too slow to be tried often */
    for (int i = 0; i < 2; i++) {
        status = an_picture_read(&picture, file.path, note);
        if (status != AN_OK) {
            check_note(status, text);
            return;
        }
        if (picture.width != first.width || picture.height != first.height || picture.channels != first.channels)
            abort();
        const size_t count = (size_t)(picture.width * picture.height * picture.channels);
        for (size_t k = 0; k < count; k++) hashes[i] = (hashes[i] ^ picture.pixels[k]) * 16777619u;
    }
    if (hashes[0] != hashes[1]) abort(); /* pixels that nobody wrote */
    peak_check(1 << 20, 64,
               size + (size_t)(picture.width * picture.height)); /* libjpeg holds coefficients of all scans */
    if (data[0] & 1) an_picture_make_grey(&picture);
    if (!an_resize(&resizer, &picture, 1 + data[0] / 8, 1 + data[0] % 19, &pixels)) abort();
    for (int k = 0; k < (1 + data[0] / 8) * (1 + data[0] % 19) * picture.channels; k++) hashes[0] ^= pixels[k];
}

#endif
