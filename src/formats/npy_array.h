/* One array of a .npy or .npz file. If it is stored as it will be read, it stays on disk; if it is compressed, or in
 * Fortran order, it is held in memory, in C order. */
#ifndef AN_FORMATS_NPY_ARRAY_H
#define AN_FORMATS_NPY_ARRAY_H

#include "base/files/reader.h"
#include "formats/npy_header.h"

typedef struct an_npy_array {
    an_reader file;
    const char *path;       /* the caller's, who keeps it */
    an_npy_header header;   /* its type is NULL until an array is loaded */
    int64_t begin;          /* of the numbers in the file; of a compressed member, if that is where they are */
    unsigned char *numbers; /* NULL: they are on disk */
    size_t bytes;           /* of them, in memory */
    size_t each;            /* numbers of a sample */
    an_dtype dtype;         /* that samples have: I32, F32 or F64 */
    float divisor;
} an_npy_array;

/* Opens a file; *is_zip: it is a .npz. Begins as {0}; an_npy_array_close releases it in any state. */
an_status an_npy_array_open(an_npy_array *a, an_context *ctx, const char *path, bool *is_zip);
/* The array of a .npy file; or the first of these names that a .npz file has, whose number is *found. */
an_status an_npy_array_load(an_npy_array *a, an_context *ctx);
an_status an_npy_array_load_member(an_npy_array *a, an_context *ctx, const char *const *names, int count, int *found);
void an_npy_array_close(an_npy_array *a, an_context *ctx);

/* Numbers first … first + count - 1, as `dtype` and divided by `divisor`. Any number of threads at once. */
an_status an_npy_array_read(const an_npy_array *a, int64_t first, size_t count, void *to, an_note note);
/* "x.npy: byte 136: number 2 of the array". */
void an_npy_array_place(const an_npy_array *a, int64_t number, an_note place);

#endif
