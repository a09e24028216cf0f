/* Weights under other names and in another layout: what a model calls them, or a file that is written. */
#ifndef AN_FORMATS_WEIGHTS_VIEW_H
#define AN_FORMATS_WEIGHTS_VIEW_H

#include "formats/weights.h"

enum { AN_VIEW_JOINED = 3 }; /* most tensors that are put together */

typedef struct an_view_tensor {
    int64_t index;    /* of the weights that are viewed */
    const char *name; /* copied */
    bool transposed;  /* a matrix whose dimensions are exchanged; it is held in memory while it is read */
    /* rows of heads, each of twice as many rows: 0, 1, 2, … become 0, half, 1, half + 1, …; 0: rows stay */
    int64_t half;
    int64_t first_row, rows; /* of a part; rows 0: the whole tensor */
    /* tensors whose rows follow, which differ from it in their number only, and in type */
    int64_t joined[AN_VIEW_JOINED - 1];
    int joined_count;
} an_view_tensor;

/* Puts a view in the place of the weights, which it takes over. If this fails, they stay as they are. */
an_status an_weights_view(an_weights *weights, const an_view_tensor *tensors, size_t count);

#endif
