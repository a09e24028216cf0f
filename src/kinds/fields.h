/* Fields of a dataset: finding one, and its sizes. */
#ifndef AN_KINDS_FIELDS_H
#define AN_KINDS_FIELDS_H

#include "anneal/data.h"

/* The number of a field; -1: the dataset has none of this name, or is NULL. */
int an_field_find(const an_dataset *dataset, const char *name);

int64_t an_field_elements(const an_field *field);

/* "[1, 28, 28]", the sizes of one sample, for messages. */
typedef struct an_sizes_text {
    char text[128];
} an_sizes_text;
an_sizes_text an_sizes_describe(const an_field *field);
#define AN_FIELD_SIZES(field) (an_sizes_describe(field).text)

#endif
