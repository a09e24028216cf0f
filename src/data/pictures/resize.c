/* The triangle filter, one axis after the other, as most image libraries have it. A pixel of the result looks at the
 * pixels of the original whose centres are less than one step from its own: a step of the original where the picture
 * grows, and one of the result where it shrinks. Weights are fractions of 2^22; they are computed in integers from the
 * positions, so no compiler and no library can change them. */
#include "data/pictures/resize.h"

#include <stdlib.h>
#include <string.h>

enum { BITS = 22 };

/* ---- weights ---- */

static void release_axis(an_resize_axis *a) {
    free(a->first);
    free(a->count);
    free(a->weights);
    *a = (an_resize_axis){0};
}

/* All positions are in units of 1 / (2 to): pixel i of the original has its centre at (2i + 1) to, of the
 * result at (2i + 1) from. */
static void weigh_pixel(an_resize_axis *a, int64_t i) {
    const int64_t step = 2 * (a->from > a->to ? a->from : a->to), centre = (2 * i + 1) * a->from;
    int32_t *weights = a->weights + i * a->maximum;
    int64_t begin = (centre - step) / (2 * a->to), sum = 0, largest = 0, left = INT64_C(1) << BITS;
    if (begin < 0) begin = 0;
    while (centre - (2 * begin + 1) * a->to >= step) begin++;
    int64_t count = 0;
    for (int64_t p = begin; p < a->from; p++, count++) {
        const int64_t offset = (2 * p + 1) * a->to - centre, distance = offset < 0 ? -offset : offset;
        if (distance >= step) break;
        sum += step - distance;
    }
    for (int64_t k = 0; k < count; k++) {
        const int64_t offset = (2 * (begin + k) + 1) * a->to - centre, distance = offset < 0 ? -offset : offset;
        weights[k] = (int32_t)(((step - distance) << BITS) / sum); /* below 2^(28 + 22) */
        left -= weights[k];
        if (weights[k] > weights[largest]) largest = k;
    }
    weights[largest] += (int32_t)left; /* what rounding lost, so that a picture of one colour keeps it */
    a->first[i] = begin;
    a->count[i] = count;
}

static bool set_axis(an_resize_axis *a, int64_t from, int64_t to) {
    if (a->from == from && a->to == to) return true;
    release_axis(a);
    const int64_t larger = from > to ? from : to;
    a->maximum = 2 * larger / to + 2;
    a->first = malloc((size_t)to * sizeof *a->first);
    a->count = malloc((size_t)to * sizeof *a->count);
    a->weights = calloc((size_t)to * (size_t)a->maximum, sizeof *a->weights);
    if (!a->first || !a->count || !a->weights) {
        release_axis(a);
        return false;
    }
    a->from = from;
    a->to = to;
    for (int64_t i = 0; i < to; i++) weigh_pixel(a, i);
    return true;
}

/* ---- pixels ---- */

/* One pixel of the result: neighbours lie `stride` bytes apart. */
static unsigned char sum(const an_resize_axis *a, int64_t i, const unsigned char *line, size_t stride) {
    const int32_t *weights = a->weights + i * a->maximum;
    const unsigned char *at = line + (size_t)a->first[i] * stride;
    uint32_t total = UINT32_C(1) << (BITS - 1);
    for (int64_t k = 0; k < a->count[i]; k++) total += (uint32_t)weights[k] * at[(size_t)k * stride];
    return (unsigned char)(total >> BITS); /* weights are not negative and make 2^22 together: at most 255 */
}

static bool need(unsigned char **memory, size_t *capacity, size_t bytes) {
    if (bytes <= *capacity) return true;
    free(*memory);
    *memory = malloc(bytes);
    *capacity = *memory ? bytes : 0;
    return *memory != NULL;
}

bool an_resize(an_resizer *r, const an_picture *p, int64_t height, int64_t width, const unsigned char **pixels) {
    const size_t channels = (size_t)p->channels, from = (size_t)p->width * channels, to = (size_t)width * channels;
    *pixels = p->pixels;
    if (p->width == width && p->height == height) return true;
    if (!set_axis(&r->x, p->width, width) || !set_axis(&r->y, p->height, height) ||
        !need(&r->narrow, &r->narrow_capacity, (size_t)p->height * to) ||
        !need(&r->result, &r->result_capacity, (size_t)height * to))
        return false;
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < width; x++)
            for (size_t c = 0; c < channels; c++)
                r->narrow[(size_t)y * to + (size_t)x * channels + c] =
                    sum(&r->x, x, p->pixels + (size_t)y * from + c, channels);
    for (int64_t y = 0; y < height; y++)
        for (size_t x = 0; x < to; x++) r->result[(size_t)y * to + x] = sum(&r->y, y, r->narrow + x, to);
    *pixels = r->result;
    return true;
}

void an_resizer_release(an_resizer *r) {
    release_axis(&r->x);
    release_axis(&r->y);
    free(r->narrow);
    free(r->result);
    *r = (an_resizer){0};
}
