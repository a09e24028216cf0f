/* Lines of patches, for REAL. Included by portable.c through instantiate.h. */

/* One tap of the window as it moves over all positions: a row of the matrix that others write out as im2col. Outside
 * the image it is zero. */
static const REAL *NAME(patch_line)(const void *source, int64_t group, int64_t line, int64_t begin, int64_t count,
                                    REAL *buffer) {
    const patches *p = source;
    const an_tensor *image = p->image;
    const axis *vertical = &p->axes[0], *horizontal = &p->axes[1];
    int64_t column_tap = line % horizontal->taps, row_tap = line / horizontal->taps % vertical->taps;
    int64_t channel = group * p->channels + line / horizontal->taps / vertical->taps;
    int64_t n, inner = horizontal->stride * image->strides[3];
    for (int64_t done = 0; done < count; done += n) {
        int64_t position = begin + done, column = position % horizontal->positions;
        int64_t row = position / horizontal->positions % vertical->positions;
        int64_t sample = position / horizontal->positions / vertical->positions;
        int64_t y = place_of(vertical, row, row_tap);
        REAL *to = buffer + done;
        n = an_smaller(count - done, horizontal->positions - column);
        range inside = {0, 0};
        if (y >= 0 && y < image->dims[2]) inside = positions_inside(horizontal, image->dims[3], column, n, column_tap);
        memset(to, 0, (size_t)inside.begin * sizeof *to);
        memset(to + inside.end, 0, (size_t)(n - inside.end) * sizeof *to);
        if (inside.begin == inside.end) continue;
        int64_t x = place_of(horizontal, column + inside.begin, column_tap);
        int64_t offset =
            sample * image->strides[0] + channel * image->strides[1] + y * image->strides[2] + x * image->strides[3];
        const REAL *from = NAME(an_row_load)(image, offset, inner, inside.end - inside.begin, to + inside.begin);
        if (from != to + inside.begin)
            memcpy(to + inside.begin, from, (size_t)(inside.end - inside.begin) * sizeof *to);
    }
    return buffer;
}
