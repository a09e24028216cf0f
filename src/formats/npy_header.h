/* The header of NumPy's .npy format: what the numbers are, and how many. */
#ifndef AN_FORMATS_NPY_HEADER_H
#define AN_FORMATS_NPY_HEADER_H

#include "anneal/core.h"
#include "base/note.h"
#include "formats/npy_numbers.h"

typedef struct an_npy_header {
    const an_npy_type *type;
    bool fortran; /* the first dimension changes fastest */
    int rank;
    int64_t dims[AN_MAX_DIMS];
    int64_t count; /* of all numbers */
    size_t begin;  /* of the numbers, in bytes from the beginning of the file */
} an_npy_header;

enum { AN_NPY_PREFIX = 12, AN_NPY_TEXT = 1 << 16 };

/* How many bytes the whole header has, from its first AN_NPY_PREFIX bytes; at most AN_NPY_PREFIX + AN_NPY_TEXT. `place`
 * is where the file begins: "x.npy: byte 0". */
an_status an_npy_header_size(const unsigned char prefix[AN_NPY_PREFIX], const char *place, size_t *bytes, an_note note);
/* Reads a header of so many bytes. */
an_status an_npy_header_read(const unsigned char *bytes, size_t size, const char *place, an_npy_header *header,
                             an_note note);

#endif
