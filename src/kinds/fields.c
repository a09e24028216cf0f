#include "kinds/fields.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

int an_field_find(const an_dataset *dataset, const char *name) {
    an_field field;
    an_field_init(&field, sizeof field);
    for (int i = 0; dataset && i < an_dataset_field_count(dataset); i++)
        if (an_dataset_field(dataset, i, &field) == AN_OK && !strcmp(field.name, name)) return i;
    return -1;
}

int64_t an_field_elements(const an_field *field) {
    int64_t elements = 1;
    for (int d = 0; d < field->ndims; d++)
        if (!an_multiply_i64(elements, field->dims[d], &elements)) return INT64_MAX; /* no data has as many */
    return elements;
}

an_sizes_text an_sizes_describe(const an_field *field) {
    an_sizes_text sizes = {"["};
    for (int d = 0; d < field->ndims; d++) {
        const size_t used = strlen(sizes.text);
        snprintf(sizes.text + used, sizeof sizes.text - used, "%s%lld", d ? ", " : "", (long long)field->dims[d]);
    }
    const size_t used = strlen(sizes.text);
    snprintf(sizes.text + used, sizeof sizes.text - used, "]");
    return sizes;
}
