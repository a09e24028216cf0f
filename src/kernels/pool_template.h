/* Planes of the pooling kernels, for REAL. Included by pool_reference.c through instantiate.h. A plane is dense; `image`
 * is one of src or diff_src, `pooled` one of dst or diff_dst. */

/* Where the largest element of a window is: the first of equal ones. A NaN counts as larger than all others. */
static int64_t NAME(largest)(const REAL *image, int64_t width, box b) {
    int64_t at = b.top * width + b.left;
    for (int64_t y = b.top; y < b.bottom; y++)
        for (int64_t x = b.left; x < b.right; x++)
            if (!(image[y * width + x] <= image[at]) && image[at] == image[at]) at = y * width + x;
    return at;
}

static void NAME(max_pool)(const shape *s, const REAL *image, const REAL *unused, REAL *pooled) {
    (void)unused;
    for (int64_t i = 0; i < s->pooled[0]; i++)
        for (int64_t j = 0; j < s->pooled[1]; j++)
            pooled[i * s->pooled[1] + j] = image[NAME(largest)(image, s->image[1], box_at(s, i, j))];
}

static void NAME(max_pool_diff)(const shape *s, const REAL *diff_pooled, const REAL *image, REAL *diff_image) {
    memset(diff_image, 0, (size_t)(s->image[0] * s->image[1]) * sizeof *diff_image);
    for (int64_t i = 0; i < s->pooled[0]; i++)
        for (int64_t j = 0; j < s->pooled[1]; j++)
            diff_image[NAME(largest)(image, s->image[1], box_at(s, i, j))] += diff_pooled[i * s->pooled[1] + j];
}

static void NAME(average_pool)(const shape *s, const REAL *image, const REAL *unused, REAL *pooled) {
    (void)unused;
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

static void NAME(average_pool_diff)(const shape *s, const REAL *diff_pooled, const REAL *unused, REAL *diff_image) {
    (void)unused;
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
    int64_t end = smaller((index + 1) * j->planes_per_task, j->planes);
    for (int64_t plane = index * j->planes_per_task; plane < end; plane++) {
        char *buffer = (char *)call->scratch + (size_t)thread * thread_bytes(call);
        const REAL *src[2] = {NULL, NULL};
        for (int i = 0; i < call->src_count; i++) {
            src[i] = NAME(load_plane)(&call->src[i], plane, (REAL *)buffer);
            buffer += plane_bytes(&call->src[i], sizeof(REAL));
        }
        REAL *to = NAME(target_plane)(dst, plane, (REAL *)buffer);
        j->NAME(pool)(&j->shape, src[0], src[1], to);
        NAME(store_plane)(dst, plane, to);
    }
}
