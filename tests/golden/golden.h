/* Reads golden files: cases, each a graph and named arrays that PyTorch made. case.py says what is in them and what the
 * roles mean. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stdio.h>

#include "anneal/anneal.h"

enum { GOLDEN_NAME_BYTES = 64, GOLDEN_ARRAYS = 256 /* at most in a case */ };

typedef struct golden_array {
    char role[GOLDEN_NAME_BYTES], name[GOLDEN_NAME_BYTES];
    an_dtype dtype; /* as stored; integers keep it, all else takes the type under test */
    int ndims;
    int64_t dims[AN_MAX_DIMS], count;
    double *values; /* every integer in these files is one that f64 has */
} golden_array;

typedef struct golden_case {
    char name[GOLDEN_NAME_BYTES];
    char *graph; /* its text; NULL: a model that golden_model builds */
    int count;
    golden_array arrays[GOLDEN_ARRAYS];
} golden_case;

/* Opens a file of cases; NULL if there is none, or if it begins otherwise. Close it with fclose. */
FILE *golden_open(const char *path);

/* The next case of the file. False at its end, with `*wrong` NULL, or where it is damaged, with `*wrong` saying how;
 * there is nothing to release then. */
bool golden_read(golden_case *c, FILE *file, const char **wrong);
void golden_release(golden_case *c);

/* A whole file of text, with a NUL behind it; NULL if there is none. Free it. */
char *golden_read_text(const char *path, size_t *length);

/* The array of this role and name, NULL if there is none; a NULL name is any. */
const golden_array *golden_find(const golden_case *c, const char *role, const char *name);

/* The array as the library takes it: integers in their own type, all else in `dtype`. Free its data. */
an_array golden_convert(const golden_array *array, an_dtype dtype);

/* Room for an array of this shape, all bytes 0xff: a NaN, and an index that no table has. Free its data. */
an_array golden_room(const golden_array *array, an_dtype dtype);

/* Element i of a floating array. */
double golden_element(const an_array *array, int64_t i);

#endif
