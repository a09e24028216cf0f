/* Types of numbers in NumPy's arrays, and what samples are made of. Arrays of HDF5 have the same types. */
#ifndef AN_FORMATS_NPY_NUMBERS_H
#define AN_FORMATS_NPY_NUMBERS_H

#include "anneal/core.h"

typedef struct an_npy_type {
    const char *name; /* as NumPy writes it, without the byte order */
    size_t width;
    bool integer;
    double (*number)(const unsigned char *bytes); /* integers beyond 2^53 are rounded */
} an_npy_type;

/* The type of this name; NULL: there is none. */
const an_npy_type *an_npy_type_find(const char *name);

/* Converts numbers, lower byte first, to `dtype` (I32, F32 or F64), divided by `divisor`. The result is how many could
 * be converted; if it is less than `count`, the next number is not `*what`: "a finite number". */
size_t an_npy_convert(const an_npy_type *type, an_dtype dtype, float divisor, const unsigned char *from, size_t count,
                      void *to, const char **what);

#endif
