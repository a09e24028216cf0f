/* Writes pictures for tests: PNG files of any kind by hand, JPEG files by libjpeg. */
#ifndef TESTS_DATA_PICTURES_H
#define TESTS_DATA_PICTURES_H

#include "data/support.h"

enum { PNG_GREY = 0, PNG_RGB = 2, PNG_PALETTE = 3, PNG_GREY_ALPHA = 4, PNG_RGB_ALPHA = 6 };

static inline size_t put_chunk(unsigned char *to, const char *name, const void *bytes, size_t size) {
    const uint32_t sizes[2] = {(uint32_t)size, 0};
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(sizes[0] >> (24 - 8 * i));
    memcpy(to + 4, name, 4);
    if (size > 0) memcpy(to + 8, bytes, size);
    const uint32_t check = (uint32_t)crc32(0, to + 4, (uInt)size + 4);
    for (int i = 0; i < 4; i++) to[8 + size + (size_t)i] = (unsigned char)(check >> (24 - 8 * i));
    return size + 12;
}

/* A PNG file in memory, of rows that are packed as PNG has them. Gives its size. */
static inline size_t make_png(unsigned char *to, int width, int height, int type, int depth, const void *rows,
                              const unsigned char *palette, int colours) {
    static const int channels[] = {1, 0, 3, 1, 2, 0, 4};
    const size_t row = ((size_t)width * (size_t)channels[type] * (size_t)depth + 7) / 8;
    unsigned char header[13] = {0};
    size_t size = 8;
    for (int i = 0; i < 4; i++) {
        header[i] = (unsigned char)((uint32_t)width >> (24 - 8 * i));
        header[4 + i] = (unsigned char)((uint32_t)height >> (24 - 8 * i));
    }
    header[8] = (unsigned char)depth;
    header[9] = (unsigned char)type;
    unsigned char *plain = calloc((size_t)height, row + 1);
    uLongf packed_size = compressBound((uLong)((size_t)height * (row + 1)));
    unsigned char *packed = malloc(packed_size);
    assert_true(plain && packed);
    for (int y = 0; y < height; y++)
        memcpy(plain + (size_t)y * (row + 1) + 1, (const char *)rows + (size_t)y * row, row);
    assert_int_equal(compress(packed, &packed_size, plain, (uLong)((size_t)height * (row + 1))), Z_OK);
    put_bytes(to, "\x89PNG\r\n\x1a\n", 8);
    size += put_chunk(to + size, "IHDR", header, sizeof header);
    if (palette) size += put_chunk(to + size, "PLTE", palette, 3 * (size_t)colours);
    size += put_chunk(to + size, "IDAT", packed, packed_size);
    size += put_chunk(to + size, "IEND", NULL, 0);
    free(plain);
    free(packed);
    return size;
}

static inline void write_png(const char *path, int width, int height, int type, const void *rows) {
    unsigned char *file = malloc((size_t)width * (size_t)height * 8 + 4096);
    assert_non_null(file);
    write_file(path, file, make_png(file, width, height, type, 8, rows, NULL, 0));
    free(file);
}

#ifdef AN_HAVE_JPEG
#include <jpeglib.h>

/* 1 or 3 channels; gives the size of the file in memory, which the caller frees. */
static inline size_t make_jpeg(unsigned char **file, int width, int height, int channels, const unsigned char *rows,
                               bool progressive) {
    struct jpeg_compress_struct info = {0};
    struct jpeg_error_mgr errors;
    unsigned long size = 0;
    *file = NULL;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, file, &size);
    info.image_width = (JDIMENSION)width;
    info.image_height = (JDIMENSION)height;
    info.input_components = channels;
    info.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 90, TRUE);
    if (progressive) jpeg_simple_progression(&info);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(rows + (size_t)info.next_scanline * (size_t)(width * channels));
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    return size;
}

static inline void write_jpeg(const char *path, int width, int height, int channels, const unsigned char *rows) {
    unsigned char *file;
    const size_t size = make_jpeg(&file, width, height, channels, rows, false);
    write_file(path, file, size);
    free(file);
}
#endif
#endif
