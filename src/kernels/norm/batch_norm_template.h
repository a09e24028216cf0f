/* Channels of batch norm, for REAL. Included by batch_norm_portable.c through instantiate.h. */

/* Puts elements begin … begin + n - 1 of a channel where an_range_load finds them. */
static void NAME(store_range)(const an_tensor *merged, int64_t base, int64_t begin, int64_t n, const REAL *values) {
    const int last = merged->ndims - 1;
    const int64_t size = last < 0 ? 1 : merged->dims[last], stride = last < 0 ? 1 : merged->strides[last];
    for (int64_t done = 0; done < n;) {
        const int64_t row = (begin + done) / size, column = (begin + done) % size;
        const int64_t part = size - column < n - done ? size - column : n - done;
        const int64_t offset = base + (last < 0 ? 0 : an_row_offset(merged, last, row)) + column * stride;
        NAME(an_row_store)(merged, offset, stride, part, values + done);
        done += part;
    }
}

static const REAL *NAME(load_chunk)(const channel_tensor *t, int64_t channel, int64_t begin, int64_t n, REAL *buffer) {
    return NAME(an_range_load)(&t->merged, channel * t->stride, begin, n, buffer);
}

/* One number for each channel: a weight or a statistic. */
static REAL NAME(load_number)(const an_tensor *vector, int64_t channel) {
    REAL buffer;
    return *NAME(an_row_load)(vector, channel * vector->strides[0], 1, 1, &buffer);
}

static void NAME(store_number)(const an_tensor *vector, int64_t channel, REAL value) {
    NAME(an_row_store)(vector, channel * vector->strides[0], 1, 1, &value);
}

/* Mean and biased variance of a channel, in two passes. */
static void NAME(channel_statistics)(const batch_norm_job *j, int64_t channel, REAL *mean, REAL *variance) {
    NAME(an_sum_tree) sum, squares;
    REAL buffer[AN_SUM_CHUNK], terms[AN_SUM_CHUNK];
    sum.chunks = squares.chunks = 0;
    for (int64_t begin = 0; begin < j->count; begin += AN_SUM_CHUNK) {
        const int64_t n = chunk_size(j, begin);
        NAME(an_sum_tree_push)(&sum, NAME(an_chunk_sum)(NAME(load_chunk)(&j->src, channel, begin, n, buffer), n));
    }
    *mean = NAME(an_sum_tree_total)(&sum) / (REAL)j->count;
    for (int64_t begin = 0; begin < j->count; begin += AN_SUM_CHUNK) {
        const int64_t n = chunk_size(j, begin);
        const REAL *x = NAME(load_chunk)(&j->src, channel, begin, n, buffer);
        for (int64_t i = 0; i < n; i++) terms[i] = (x[i] - *mean) * (x[i] - *mean);
        NAME(an_sum_tree_push)(&squares, NAME(an_chunk_sum)(terms, n));
    }
    *variance = NAME(an_sum_tree_total)(&squares) / (REAL)j->count;
}

/* dst may be src: the statistics of a channel are complete before its first element is written. */
static void NAME(forward_channel)(const batch_norm_job *j, int64_t channel) {
    REAL mean, variance, buffer[AN_SUM_CHUNK], dst[AN_SUM_CHUNK];
    if (j->is_fixed) {
        mean = NAME(load_number)(j->mean, channel);
        variance = NAME(load_number)(j->variance, channel);
    } else {
        NAME(channel_statistics)(j, channel, &mean, &variance);
    }
    const REAL inverse = 1 / NAME(square_root)(variance + (REAL)j->epsilon);
    if (!j->is_fixed) {
        /* One element has no unbiased variance; its biased one, 0, keeps the running statistics finite. */
        const REAL unbiased = j->count > 1 ? variance * ((REAL)j->count / (REAL)(j->count - 1)) : variance;
        NAME(store_number)(j->mean, channel, mean);
        NAME(store_number)(j->variance, channel, unbiased);
        NAME(store_number)(j->inverse, channel, inverse);
    }
    const REAL factor = inverse * NAME(load_number)(j->weight, channel), bias = NAME(load_number)(j->bias, channel);
    for (int64_t begin = 0; begin < j->count; begin += AN_SUM_CHUNK) {
        const int64_t n = chunk_size(j, begin);
        const REAL *x = NAME(load_chunk)(&j->src, channel, begin, n, buffer);
        for (int64_t i = 0; i < n; i++) dst[i] = (x[i] - mean) * factor + bias;
        NAME(store_range)(&j->dst.merged, channel * j->dst.stride, begin, n, dst);
    }
}

/* With y = (src - mean)·inverse: diff_bias = sum(diff_dst), diff_weight = sum(diff_dst·y) and
 * diff_src = weight·inverse·(diff_dst - diff_bias / count - y·diff_weight / count), the last two terms only where the
 * statistics come from src. diff_src may be diff_dst or src. */
static void NAME(diff_channel)(const batch_norm_job *j, int64_t channel) {
    const REAL count = (REAL)j->count, mean = NAME(load_number)(j->mean, channel);
    const REAL inverse = j->is_fixed ? 1 / NAME(square_root)(NAME(load_number)(j->variance, channel) + (REAL)j->epsilon)
                                     : NAME(load_number)(j->inverse, channel);
    NAME(an_sum_tree) sum, products;
    REAL d_buffer[AN_SUM_CHUNK], x_buffer[AN_SUM_CHUNK], terms[AN_SUM_CHUNK];
    sum.chunks = products.chunks = 0;
    for (int64_t begin = 0; begin < j->count; begin += AN_SUM_CHUNK) {
        const int64_t n = chunk_size(j, begin);
        const REAL *d = NAME(load_chunk)(&j->diff_dst, channel, begin, n, d_buffer);
        const REAL *x = NAME(load_chunk)(&j->src, channel, begin, n, x_buffer);
        for (int64_t i = 0; i < n; i++) terms[i] = d[i] * ((x[i] - mean) * inverse);
        NAME(an_sum_tree_push)(&sum, NAME(an_chunk_sum)(d, n));
        NAME(an_sum_tree_push)(&products, NAME(an_chunk_sum)(terms, n));
    }
    const REAL diff_bias = NAME(an_sum_tree_total)(&sum), diff_weight = NAME(an_sum_tree_total)(&products);
    const REAL factor = NAME(load_number)(j->weight, channel) * inverse;
    const REAL mean_d = j->is_fixed ? 0 : diff_bias / count, mean_dy = j->is_fixed ? 0 : diff_weight / count;
    NAME(store_number)(&j->call->dst[1], channel, diff_weight);
    NAME(store_number)(&j->call->dst[2], channel, diff_bias);
    for (int64_t begin = 0; begin < j->count; begin += AN_SUM_CHUNK) {
        const int64_t n = chunk_size(j, begin);
        const REAL *d = NAME(load_chunk)(&j->diff_dst, channel, begin, n, d_buffer);
        const REAL *x = NAME(load_chunk)(&j->src, channel, begin, n, x_buffer);
        for (int64_t i = 0; i < n; i++) terms[i] = factor * (d[i] - mean_d - (x[i] - mean) * inverse * mean_dy);
        NAME(store_range)(&j->dst.merged, channel * j->dst.stride, begin, n, terms);
    }
}

static void NAME(forward_task)(void *user, int64_t index, int thread) {
    const batch_norm_job *j = user;
    (void)thread;
    for (int64_t channel = index * j->channels_a_task; channel < task_end(j, index); channel++)
        NAME(forward_channel)(j, channel);
}

static void NAME(diff_task)(void *user, int64_t index, int thread) {
    const batch_norm_job *j = user;
    (void)thread;
    for (int64_t channel = index * j->channels_a_task; channel < task_end(j, index); channel++)
        NAME(diff_channel)(j, channel);
}
