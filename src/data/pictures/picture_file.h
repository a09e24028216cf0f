/* What the decoders of pictures share. */
#ifndef AN_DATA_PICTURES_PICTURE_FILE_H
#define AN_DATA_PICTURES_PICTURE_FILE_H

#include "data/pictures/picture.h"

enum { AN_PICTURE_BUFFER = 1 << 14 };

/* A file that is being decoded, from its first byte to its last. The first thing that is wrong with it stays its
 * status. */
typedef struct an_picture_file {
    an_reader file;
    an_note note;
    an_status status;
    int64_t read;     /* bytes in and before the buffer */
    size_t at, end;   /* the part of the buffer that nobody has taken yet */
    bool header_only; /* the picture's sizes are wanted, and nothing else */
    unsigned char buffer[AN_PICTURE_BUFFER];
} an_picture_file;

/* Fills the buffer, all of which was taken; false: the file has ended, or cannot be read. */
bool an_picture_fill(an_picture_file *file);
/* Writes "PATH: byte N: what is wrong" into the note. */
void an_picture_refuse(an_picture_file *file, const char *format, ...) AN_PRINTF(2, 3);

/* Makes room for a picture's pixels once its header is known. `least` bytes of file are needed for it, whatever they
 * are. */
bool an_picture_room(an_picture_file *file, an_picture *picture, int64_t minimum);

/* Each leaves its problem in the file's status. */
void an_png_decode(an_picture_file *file, an_picture *picture);
void an_jpeg_decode(an_picture_file *file, an_picture *picture);

#endif
