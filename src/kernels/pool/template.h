/* Planes of the pooling kernels, for REAL. Included by portable.c through instantiate.h. A plane is dense; `image`
 * is one of src or diff_src, `pooled` one of dst or diff_dst. */

/* The largest element of every window and where it is: the first of equal ones. A NaN counts as larger than all
 * others. */
static void NAME(find_largest)(const shape *s, const REAL *image, REAL *restrict values, int32_t *restrict at) {
    const int64_t n = pooled_elements(s), elements = window_elements(s->attributes);
    const int32_t *restrict places = s->places;
    for (int64_t o = 0; o < n; o++) {
        at[o] = places[o];
        values[o] = image[places[o]];
    }
    for (int64_t e = 1; e < elements; e++) {
        places += n;
        for (int64_t o = 0; o < n; o++) {
            const REAL x = image[places[o]];
            const bool larger = !(x <= values[o]) & (values[o] == values[o]);
            values[o] = larger ? x : values[o];
            at[o] = larger ? places[o] : at[o];
        }
    }
}

static void NAME(max_pool)(const shape *s, const REAL *image, const REAL *unused, REAL *pooled, void *work) {
    (void)unused;
    NAME(find_largest)(s, image, pooled, work);
}

static void NAME(max_pool_diff)(const shape *s, const REAL *diff_pooled, const REAL *image, REAL *diff_image,
                                void *work) {
    const int64_t n = pooled_elements(s);
    REAL *values = work;
    int32_t *at = (int32_t *)(values + n);
    NAME(find_largest)(s, image, values, at);
    memset(diff_image, 0, (size_t)(s->image[0] * s->image[1]) * sizeof *diff_image);
    for (int64_t o = 0; o < n; o++) diff_image[at[o]] += diff_pooled[o];
}

static void NAME(average_pool)(const shape *s, const REAL *image, const REAL *unused, REAL *pooled, void *work) {
    (void)unused;
    (void)work;
    for (int64_t i = 0; i < s->pooled[0]; i++) {
        for (int64_t j = 0; j < s->pooled[1]; j++) {
            box b = box_at(s, i, j);
            REAL sum = 0;
            for (int64_t y = b.top; y < b.bottom; y++)
                for (int64_t x = b.left; x < b.right; x++) sum += image[y * s->image[1] + x];
            pooled[i * s->pooled[1] + j] = sum / (REAL)divisor(s, b);
        }
    }
}

static void NAME(average_pool_diff)(const shape *s, const REAL *diff_pooled, const REAL *unused, REAL *diff_image,
                                    void *work) {
    (void)unused;
    (void)work;
    memset(diff_image, 0, (size_t)(s->image[0] * s->image[1]) * sizeof *diff_image);
    for (int64_t i = 0; i < s->pooled[0]; i++) {
        for (int64_t j = 0; j < s->pooled[1]; j++) {
            box b = box_at(s, i, j);
            REAL share = diff_pooled[i * s->pooled[1] + j] / (REAL)divisor(s, b);
            for (int64_t y = b.top; y < b.bottom; y++)
                for (int64_t x = b.left; x < b.right; x++) diff_image[y * s->image[1] + x] += share;
        }
    }
}

/* ---- from tensors to planes and back ---- */

static const REAL *NAME(load_plane)(const an_tensor *t, int64_t plane, REAL *buffer) {
    int64_t offset = plane_offset(t, plane), width = t->dims[3];
    if (is_line(t)) return NAME(an_row_load)(t, offset, t->strides[3], t->dims[2] * width, buffer);
    for (int64_t y = 0; y < t->dims[2]; y++) {
        REAL *to = buffer + y * width;
        const REAL *row = NAME(an_row_load)(t, offset + y * t->strides[2], t->strides[3], width, to);
        if (row != to) memcpy(to, row, (size_t)width * sizeof *row);
    }
    return buffer;
}

static REAL *NAME(target_plane)(const an_tensor *t, int64_t plane, REAL *buffer) {
    return is_line(t) ? NAME(an_row_target)(t, plane_offset(t, plane), t->strides[3], buffer) : buffer;
}

static void NAME(store_plane)(const an_tensor *t, int64_t plane, const REAL *from) {
    int64_t offset = plane_offset(t, plane), width = t->dims[3];
    if (is_line(t)) {
        NAME(an_row_store)(t, offset, t->strides[3], t->dims[2] * width, from);
        return;
    }
    for (int64_t y = 0; y < t->dims[2]; y++)
        NAME(an_row_store)(t, offset + y * t->strides[2], t->strides[3], width, from + y * width);
}

static void NAME(pool_task)(void *user, int64_t index, int thread) {
    const job *j = user;
    const an_call *call = j->call;
    const an_tensor *dst = &call->dst[0];
    int64_t end = an_smaller((index + 1) * j->planes_per_task, j->planes);
    for (int64_t plane = index * j->planes_per_task; plane < end; plane++) {
        char *buffer = j->scratch + (size_t)thread * j->thread_bytes;
        const REAL *src[2] = {NULL, NULL};
        for (int i = 0; i < call->src_count; i++) {
            src[i] = NAME(load_plane)(&call->src[i], plane, (REAL *)buffer);
            buffer += plane_bytes(&call->src[i], sizeof(REAL));
        }
        REAL *to = NAME(target_plane)(dst, plane, (REAL *)buffer);
        buffer += plane_bytes(dst, sizeof(REAL));
        j->NAME(pool)(&j->shape, src[0], src[1], to, buffer);
        NAME(store_plane)(dst, plane, to);
    }
}
