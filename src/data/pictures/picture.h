/* Pictures in files, PNG and JPEG, recognised by their first bytes and not by their names. Decoding runs on
 * several threads at once, so it has no context: errors are notes, and memory is the C library's, from which
 * the decoders take theirs anyway. */
#ifndef AN_DATA_PICTURES_PICTURE_H
#define AN_DATA_PICTURES_PICTURE_H

#include "base/files/reader.h"

enum { AN_PICTURE_PIXELS = 1 << 26 }; /* of the largest picture that is read */

/* Bytes, row by row; the channels of a pixel lie side by side. Begins as {0}; the memory is used
 * again for the next file. */
typedef struct an_picture {
    int64_t width, height;
    int channels; /* 1: grey; 3: red, green, blue */
    unsigned char *pixels;
    size_t capacity;
} an_picture;

/* Whether a file begins like a picture; false also if it cannot be read. */
bool an_picture_is(const char *path);
/* Reads the header: the pixels are left as they are. */
an_status an_picture_measure(an_picture *picture, const char *path, an_note note);
/* Reads the whole file. Transparency, gamma, colour profiles and the orientation that a camera recorded are ignored. */
an_status an_picture_read(an_picture *picture, const char *path, an_note note);
void an_picture_release(an_picture *picture);

/* Makes colours grey: 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601), rounded, in integers. */
void an_picture_make_grey(an_picture *picture);

#endif
