/* Rows of rotary position embedding, for REAL. Included by portable.c through instantiate.h. */

/* Cosines, then sines (of the turn that is wanted, back for the gradient) of one token. */
static void NAME(angles_task)(void *user, int64_t index, int thread) {
    const rotary_job *j = user;
    const int64_t half = j->attributes->rotated / 2;
    REAL *cosines = (REAL *)((char *)j->call->scratch + j->angles_at) + index * 2 * half, *sines = cosines + half;
    const double *frequencies = j->call->scratch, position = position_of(j, index);
    (void)thread;
    for (int64_t i = 0; i < half; i++) {
        const double angle = position * frequencies[i], sine = an_sin_f64(angle);
        cosines[i] = (REAL)an_cos_f64(angle);
        sines[i] = (REAL)(j->attributes->inverse ? -sine : sine);
    }
}

/* dst may be src: the two elements of a pair are read before either is written. */
static void NAME(rotate_task)(void *user, int64_t index, int thread) {
    const rotary_job *j = user;
    const an_tensor *src = &j->call->src[0], *dst = &j->call->dst[0];
    const int64_t size = src->dims[3], rotated = j->attributes->rotated, half = rotated / 2;
    const int64_t end = (index + 1) * j->rows_a_task < j->rows ? (index + 1) * j->rows_a_task : j->rows;
    const REAL *angles = (const REAL *)((const char *)j->call->scratch + j->angles_at);
    REAL *src_buffer = (REAL *)((char *)j->call->scratch + j->buffers_at + (size_t)thread * j->thread_bytes);
    REAL *dst_buffer = src_buffer + size;
    for (int64_t row = index * j->rows_a_task; row < end; row++) {
        const int64_t from = an_row_offset(src, 3, row), to = an_row_offset(dst, 3, row);
        const REAL *x = NAME(an_row_load)(src, from, src->strides[3], size, src_buffer);
        REAL *y = NAME(an_row_target)(dst, to, dst->strides[3], dst_buffer);
        const REAL *cosines = angles + angles_of(j, row) * rotated, *sines = cosines + half;
#pragma omp simd
        for (int64_t i = 0; i < half; i++) {
            const REAL first = x[i], second = x[half + i];
            y[i] = first * cosines[i] - second * sines[i];
            y[half + i] = second * cosines[i] + first * sines[i];
        }
        for (int64_t i = rotated; i < size; i++) y[i] = x[i];
        NAME(an_row_store)(dst, to, dst->strides[3], size, y);
    }
}
