/* The squares of the gradients, summed by page, and added up in one binary tree over the pages of the
 * model.
 *
 * A rank that owns pieces of the model has the sums of its own pages only. What it can add of them is a
 * forest for every unit (comm/forest.h); the step's record merges those of all ranks, and then the norm
 * has the bits of one process. */
#ifndef AN_STEP_PAGE_SUMS_H
#define AN_STEP_PAGE_SUMS_H

#include "comm/forest.h"
#include "exec/params.h"

/* The pages of a parameter, which have a sum of their own: a tree over their distances from the first. */
typedef struct an_page_part {
    an_page_range pages;
    size_t parameter;
    double sum; /* after an_page_sums_close */
} an_page_part;

typedef struct an_page_sums {
    an_context *ctx;
    const an_params *params;
    int64_t pages;           /* of this rank */
    double *sums, *room;     /* of its pages, piece after piece; half as many, for adding them */
    void *device_sums;       /* where the device writes them: 20 bytes a page in all */
    const an_kernel *kernel; /* NULL without pages */
    an_page_part *parts;     /* of a store in pieces, if the sum of each parameter is wanted; NULL: it is not */
    int part_count;
    size_t part_capacity;
} an_page_sums;

/* Adds what those of so many pages take. */
bool an_page_sums_bytes(int64_t pages, size_t *bytes);
an_status an_page_sums_make(an_page_sums *p, const an_params *params);
void an_page_sums_destroy(an_page_sums *p);

/* From the gradients that the parameters have. */
an_status an_page_sums_compute(an_page_sums *p);
/* Of a store that is whole: the sum of pages begin … end - 1, in a tree over their distances from the first. */
double an_page_sums_add(const an_page_sums *p, int64_t begin, int64_t end);

/* For a store in pieces: parameters have sums of their own, too. Adds what that takes. */
an_status an_page_sums_divide(an_page_sums *p);
bool an_page_sums_part_bytes(size_t parameters, size_t *bytes);

/* The forests of a store in pieces, in a row: two for each unit, and then two for each part. How many; what they take;
 * their shape, before there are sums; their sums; and the sum of all, once those of all ranks are merged. `model`:
 * its parameters are parts; NULL: there are none. */
int an_page_sums_forests(const an_page_sums *p);
size_t an_page_sums_record_bytes(const an_shards *shards, const an_graph *model);
void an_page_sums_begin(const an_page_sums *p, an_forest *forests);
void an_page_sums_fill(const an_page_sums *p, an_forest *forests);
an_status an_page_sums_close(an_page_sums *p, an_forest *forests, double *sum);

#endif
