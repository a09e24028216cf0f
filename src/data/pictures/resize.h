/* Changes the size of pictures, in integers. */
#ifndef AN_DATA_PICTURES_RESIZE_H
#define AN_DATA_PICTURES_RESIZE_H

#include "data/pictures/picture.h"

/* How one axis of `from` pixels becomes one of `to`: pixel i of the result is a weighted sum of a few neighbours. */
typedef struct an_resize_axis {
    int64_t from, to;
    int64_t maximum;  /* neighbours that a pixel has at most */
    int64_t *first;   /* of each pixel of the result */
    int64_t *count;   /* of neighbours */
    int32_t *weights; /* `most` a pixel */
} an_resize_axis;

/* Memory that is used again from picture to picture. Begins as {0}. */
typedef struct an_resizer {
    an_resize_axis x, y;
    unsigned char *narrow, *result; /* the picture after its first axis, and after both */
    size_t narrow_capacity, result_capacity;
} an_resizer;

/* Stretches a picture to another size: bilinear where it grows, a mean over the area where it shrinks. *pixels are the
 * picture's own if it has that size, or else the resizer's. false: there is not enough memory. */
bool an_resize(an_resizer *resizer, const an_picture *picture, int64_t height, int64_t width,
               const unsigned char **pixels);
void an_resizer_release(an_resizer *resizer);

#endif
