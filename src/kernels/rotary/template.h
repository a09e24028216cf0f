/* Rows of rotary position embedding, for REAL. Included by portable.c through instantiate.h. */

/* Cosines, then sines (of the turn that is wanted, back for the gradient) of one token. */
static void NAME(angles_task)(void *user, int64_t index, int thread) {
    const rotary_job *j = user;
    const int64_t half = j->attributes->rotated / 2;
    REAL *cosines = (REAL *)((char *)j->call->scratch + j->angles_at) + index * 2 * half, *sines = cosines + half;
    const double *frequencies = j->call->scratch, position = position_of(j, index);
    (void)thread;
    for (int64_t begin = 0; begin < half; begin += ANGLES_AT_ONCE) {
        const int64_t n = an_smaller(ANGLES_AT_ONCE, half - begin);
        double angles[ANGLES_AT_ONCE] = {0}, values[ANGLES_AT_ONCE] = {0};
        for (int64_t i = 0; i < n; i++) angles[i] = position * frequencies[begin + i];
        an_vector_cos_f64(n, angles, values);
        for (int64_t i = 0; i < n; i++) cosines[begin + i] = (REAL)values[i];
        an_vector_sin_f64(n, angles, values);
        for (int64_t i = 0; i < n; i++) sines[begin + i] = (REAL)(j->attributes->inverse ? -values[i] : values[i]);
    }
}

/* The heads of some tokens. dst may be src: the two elements of a pair are read before either is written. */
static void NAME(rotate_task)(void *user, int64_t index, int thread) {
    const rotary_job *j = user;
    const an_tensor *src = &j->call->src[0], *dst = &j->call->dst[0];
    const int64_t heads = src->dims[1], tokens = src->dims[2], size = src->dims[3];
    const int64_t rotated = j->attributes->rotated, half = rotated / 2;
    const int64_t end = an_smaller((index + 1) * j->tokens_a_task, src->dims[0] * tokens);
    const REAL *angles = (const REAL *)((const char *)j->call->scratch + j->angles_at);
    REAL *src_buffer = (REAL *)((char *)j->call->scratch + j->buffers_at + (size_t)thread * j->thread_bytes);
    REAL *dst_buffer = src_buffer + size;
    for (int64_t at = index * j->tokens_a_task; at < end; at++) {
        const int64_t sample = at / tokens, token = at % tokens;
        const REAL *cosines = angles + (j->positions ? at : token) * rotated, *sines = cosines + half;
        int64_t from = sample * src->strides[0] + token * src->strides[2];
        int64_t to = sample * dst->strides[0] + token * dst->strides[2];
        for (int64_t head = 0; head < heads; head++, from += src->strides[1], to += dst->strides[1]) {
            const REAL *x = NAME(an_row_load)(src, from, src->strides[3], size, src_buffer);
            REAL *y = NAME(an_row_target)(dst, to, dst->strides[3], dst_buffer);
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
}
