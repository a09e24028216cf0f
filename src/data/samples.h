/* Buffers for samples. */
#ifndef AN_DATA_SAMPLES_H
#define AN_DATA_SAMPLES_H

#include "data/dataset.h"

enum { AN_MAX_FEEDS = 32 }; /* fields of a sample that a model can read */

/* Samples in memory, dense by field. */
typedef struct an_sample_buffer {
    int64_t capacity, count;
    int field_count;
    void *fields[AN_MAX_FEEDS];
    size_t bytes[AN_MAX_FEEDS]; /* of a sample */
    int64_t *indices, *numbers; /* in the dataset; in the run */
} an_sample_buffer;

/* Adds what a buffer for so many samples takes. */
bool an_sample_buffer_bytes(const an_dataset *dataset, int64_t capacity, size_t *bytes);
an_status an_sample_buffer_create(an_sample_buffer *b, an_context *ctx, const an_dataset *dataset, int64_t capacity);
void an_sample_buffer_destroy(an_sample_buffer *b, an_context *ctx);

/* Calls `see` with the classes of all samples in order, those of some samples at a time, of which the first is
 * `begin`. Samples are read only if their classes are not known without; a dataset whose targets are no classes
 * is read, and nothing is seen. */
typedef void an_see_classes(void *user, int64_t begin, const int32_t *classes, int64_t count);
an_status an_dataset_see_classes(an_dataset *dataset, an_see_classes *see, void *user);

#endif
