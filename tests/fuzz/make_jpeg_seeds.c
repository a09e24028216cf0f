/* Makes the seeds of the fuzzer of JPEG files: small ones of every kind that libjpeg writes.
 *   make_jpeg_seeds FOLDER
 * A seed is one byte of options and the file without its first three bytes, as fuzz_jpeg.c reads it. */
#include "data/pictures.h"

int main(int count, char **arguments) {
    enum { WIDTH = 19, HEIGHT = 11, BEGINNING = 3 };
    static unsigned char pixels[WIDTH * HEIGHT * 3];
    if (count != 2) return 2;
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (unsigned char)(i * i / 7 + i);
    for (int kind = 0; kind < 4; kind++) {
        unsigned char *file;
        char path[4096];
        const size_t size = make_jpeg(&file, WIDTH, HEIGHT, kind & 1 ? 3 : 1, pixels, kind & 2);
        snprintf(path, sizeof path, "%s/%s%s", arguments[1], kind & 1 ? "rgb" : "grey", kind & 2 ? "_progressive" : "");
        file[BEGINNING - 1] = (unsigned char)(16 * kind + kind);
        write_file(path, file + BEGINNING - 1, size - BEGINNING + 1);
        free(file);
    }
    return 0;
}
