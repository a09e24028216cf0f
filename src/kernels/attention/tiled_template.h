/* Attention by tiles, for REAL. Included by tiled.c through instantiate.h. */

/* ---- products ---- */

/* c[i][x] (+)= Σ a[i][p]·b[p][x] over p < depth, for i < ROWS and x < vectors·LANES. Element (i, p) of a lies at
 * i·a_row + p·a_step, so that a may be transposed. */
static inline __attribute__((always_inline)) void NAME(register_tile)(const int vectors, int64_t depth, const REAL *a,
                                                                      int64_t a_row, int64_t a_step, const REAL *b,
                                                                      int64_t b_step, REAL *c, int64_t c_row,
                                                                      bool add) {
    NAME(vector) sum[ROWS][MOST_VECTORS], right[MOST_VECTORS];
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = add ? NAME(load)(c + i * c_row + v * NAME(LANES)) : NAME(broadcast)(0);
    for (int64_t p = 0; p < depth; p++) {
        for (int v = 0; v < vectors; v++) right[v] = NAME(load)(b + p * b_step + v * NAME(LANES));
        for (int i = 0; i < ROWS; i++) {
            const NAME(vector) left = NAME(broadcast)(a[i * a_row + p * a_step]);
            for (int v = 0; v < vectors; v++) sum[i][v] = NAME(multiply_add)(left, right[v], sum[i][v]);
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < vectors; v++) NAME(store)(c + i * c_row + v * NAME(LANES), sum[i][v]);
}

/* The same for any number of columns that is a multiple of GRANULE. */
static void NAME(multiply)(int64_t columns, int64_t depth, const REAL *a, int64_t a_row, int64_t a_step, const REAL *b,
                           int64_t b_step, REAL *c, int64_t c_row, bool add) {
    int64_t x = 0;
    for (; x + MOST_VECTORS * NAME(LANES) <= columns; x += MOST_VECTORS * NAME(LANES))
        NAME(register_tile)(MOST_VECTORS, depth, a, a_row, a_step, b + x, b_step, c + x, c_row, add);
    for (; x + 2 * NAME(LANES) <= columns; x += 2 * NAME(LANES))
        NAME(register_tile)(2, depth, a, a_row, a_step, b + x, b_step, c + x, c_row, add);
    for (; x < columns; x += NAME(LANES))
        NAME(register_tile)(1, depth, a, a_row, a_step, b + x, b_step, c + x, c_row, add);
}

/* ---- loading and storing rows of (batch, heads, tokens, size) ---- */

static const REAL *NAME(load_token)(const an_attention_job *j, const an_tensor *t, an_head at, int64_t token,
                                    REAL *buffer) {
    an_prefetch_token(t, at, token + AN_PREFETCH_AHEAD, false);
    return NAME(an_row_load)(t, an_token_offset(t, at, token), t->strides[3], j->size, buffer);
}

/* Rows of `width` elements, with zeros after those of the tensor, and rows of zeros up to a multiple of `multiple`. */
static void NAME(load_rows)(const an_attention_job *j, const an_tensor *t, an_head at, an_tokens tokens,
                            int64_t multiple, REAL *rows) {
    const int64_t width = width_of(j->size);
    for (int64_t i = 0; i < tokens.count; i++) {
        REAL *to = rows + i * width;
        const REAL *row = NAME(load_token)(j, t, at, tokens.begin + i, to);
        if (j->size == width) { /* usual, and too short for a call of memcpy */
            for (int64_t d = 0; d < width; d += NAME(LANES)) NAME(store)(to + d, NAME(load)(row + d));
            continue;
        }
        for (int64_t d = 0; d < width; d++) to[d] = d < j->size ? row[d] : 0;
    }
    const int64_t empty = an_next_multiple(tokens.count, multiple) - tokens.count;
    memset(rows + tokens.count * width, 0, (size_t)(empty * width) * sizeof *rows);
}

/* Element d of token i goes to slab i / SLAB, row d, column i % SLAB; zeros follow up to a multiple of GRANULE. */
static void NAME(load_columns)(const an_attention_job *j, const an_tensor *t, an_head at, an_tokens tokens,
                               REAL *slabs) {
    REAL buffer[SQUARE][AN_ATTENTION_HEAD];
    static const REAL zeros[AN_ATTENTION_HEAD];
    const int64_t size = j->size, end = an_next_multiple(tokens.count, GRANULE);
    for (int64_t i = 0; i < end; i += SQUARE) {
        REAL *columns = slabs + i / SLAB * SLAB * size + i % SLAB;
        const REAL *rows[SQUARE];
        int64_t d = 0;
        for (int64_t r = 0; r < SQUARE; r++)
            rows[r] = i + r < tokens.count ? NAME(load_token)(j, t, at, tokens.begin + i + r, buffer[r]) : zeros;
        for (; d + SQUARE <= size; d += SQUARE) NAME(transpose)(rows, d, columns + d * SLAB);
        for (; d < size; d++)
            for (int64_t r = 0; r < SQUARE; r++) columns[d * SLAB + r] = rows[r][d];
    }
}

/* Stores a row times a factor. */
static void NAME(store_token)(const an_attention_job *j, const an_tensor *t, an_head at, int64_t token, REAL factor,
                              const REAL *row) {
    REAL buffer[AN_ATTENTION_HEAD];
    const int64_t offset = an_token_offset(t, at, token);
    REAL *to = NAME(an_row_target)(t, offset, t->strides[3], buffer);
    for (int64_t d = 0; d < j->size; d++) to[d] = row[d] * factor;
    NAME(an_row_store)(t, offset, t->strides[3], j->size, to);
}

static void NAME(store_rows)(const an_attention_job *j, const an_tensor *t, an_head at, an_tokens tokens, REAL factor,
                             const REAL *rows) {
    for (int64_t i = 0; i < tokens.count; i++)
        NAME(store_token)(j, t, at, tokens.begin + i, factor, rows + i * width_of(j->size));
}

/* ---- forward ---- */

/* What a thread's scratch holds for a task. */
typedef struct {
    REAL *q, *sums;          /* TASK rows */
    REAL *keys, *values;     /* slabs of columns, and rows, of a tile */
    REAL *scores;            /* BLOCK rows of a tile's keys */
    NAME(softmax) * softmax; /* TASK */
} NAME(forward_scratch);

static size_t NAME(forward_layout)(void *memory, int64_t size, NAME(forward_scratch) * s) {
    const size_t row = (size_t)width_of(size) * sizeof(REAL), columns = (size_t)size * sizeof(REAL);
    size_t at = 0;
    s->q = an_scratch_take(memory, &at, TASK * row);
    s->sums = an_scratch_take(memory, &at, TASK * row);
    s->keys = an_scratch_take(memory, &at, AN_ATTENTION_TILE * columns);
    s->values = an_scratch_take(memory, &at, AN_ATTENTION_TILE * row);
    s->scores = an_scratch_take(memory, &at, BLOCK * AN_ATTENTION_TILE * sizeof(REAL));
    s->softmax = an_scratch_take(memory, &at, TASK * sizeof *s->softmax);
    return at;
}

/* A block of queries with a tile of keys: adds to their sums of values. `first` is the block's place in the task. */
static void NAME(forward_block)(const an_attention_job *j, const an_key_tile *tile, an_tokens queries, int64_t first,
                                const NAME(forward_scratch) * s) {
    const int64_t size = j->size, width = width_of(size);
    an_tokens columns[BLOCK / ROWS];
    const int64_t groups = an_set_columns(j, tile, queries, ROWS, GRANULE, columns);
    REAL *sums = s->sums + first * width;
    for (int64_t slab = 0; slab < tile->keys.count; slab += SLAB)
        for (int64_t g = 0; g < groups; g++) {
            const an_tokens c = within_slab(columns[g], slab);
            const REAL *q = s->q + (first + g * ROWS) * width, *keys = s->keys + slab * size + c.begin;
            REAL *scores = s->scores + g * ROWS * AN_ATTENTION_TILE + slab + c.begin;
            if (c.count > 0) NAME(multiply)(c.count, size, q, width, 1, keys, SLAB, scores, AN_ATTENTION_TILE, false);
        }
    for (int64_t i = 0; i < queries.count; i++) {
        const an_tokens c = columns[i / ROWS];
        if (c.count == 0) continue;
        REAL *row = s->scores + i * AN_ATTENTION_TILE;
        an_prefetch_token(j->dst, tile->at, queries.begin + i, true);
        const REAL shrink = NAME(forward_row)(j, tile, queries.begin + i, c, &s->softmax[first + i], row);
        for (int64_t d = 0; d < width && shrink != 1; d++) sums[i * width + d] *= shrink;
    }
    for (int64_t slab = 0; slab < tile->keys.count; slab += SLAB)
        for (int64_t g = 0; g < groups; g++) {
            const an_tokens c = within_slab(columns[g], slab);
            const REAL *scores = s->scores + g * ROWS * AN_ATTENTION_TILE + slab + c.begin;
            const REAL *values = s->values + (slab + c.begin) * width;
            REAL *sum = sums + g * ROWS * width;
            if (c.count > 0)
                NAME(multiply)(width, c.count, scores, AN_ATTENTION_TILE, 1, values, width, sum, width, true);
        }
}

static void NAME(forward_task)(void *user, int64_t index, int thread) {
    const an_attention_job *j = user;
    const an_head at = {index / j->query_tiles / j->heads, index / j->query_tiles % j->heads};
    const an_tokens queries = an_tile_tokens(index % j->query_tiles, TASK, j->queries);
    const int64_t width = width_of(j->size), rows = an_next_multiple(queries.count, ROWS);
    const an_key_range visible = an_visible_keys(j, queries);
    an_key_tile tile = {.at = at};
    NAME(forward_scratch) s;

    NAME(forward_layout)(an_thread_scratch(j, thread), j->size, &s);
    NAME(load_rows)(j, j->q, at, queries, ROWS, s.q);
    memset(s.sums, 0, (size_t)(rows * width) * sizeof *s.sums);
    for (int64_t i = 0; i < queries.count; i++) s.softmax[i] = (NAME(softmax)){-NAME(infinity)(), 0};
    for (int64_t begin = visible.begin / AN_ATTENTION_TILE * AN_ATTENTION_TILE; begin < visible.end;
         begin += AN_ATTENTION_TILE) {
        an_set_tile(j, &tile, (an_tokens){begin, an_smaller(AN_ATTENTION_TILE, visible.end - begin)});
        NAME(load_columns)(j, j->k, an_key_head(j, at), tile.keys, s.keys);
        NAME(load_rows)(j, j->v, an_key_head(j, at), tile.keys, GRANULE, s.values);
        for (int64_t first = 0; first < queries.count; first += BLOCK) {
            const an_tokens block = {queries.begin + first, an_smaller(BLOCK, queries.count - first)};
            NAME(forward_block)(j, &tile, block, first, &s);
        }
    }
    for (int64_t i = 0; i < queries.count; i++) {
        const REAL log_sum = NAME(softmax_log_sum)(&s.softmax[i]);
        const int64_t token = queries.begin + i;
        NAME(store_token)(j, j->dst, at, token, NAME(softmax_factor)(&s.softmax[i]), s.sums + i * width);
        NAME(an_row_store)(j->log_sum, an_token_offset(j->log_sum, at, token), 1, 1, &log_sum);
    }
}

/* ---- backward ---- */

/* What a task's scratch holds. */
typedef struct {
    REAL *key_columns, *value_columns, *key_rows; /* of a tile */
    REAL *diff_k, *diff_v;                        /* rows, of a tile or, if several heads share them, of all keys */
    REAL *scores, *diff_scores;                   /* of a tile of queries with one of keys */
    REAL *q, *diff_dst, *diff_q;                  /* rows of all queries of the part */
    NAME(query_sums) * sums;
} NAME(diff_scratch);

static size_t NAME(diff_layout)(void *memory, int64_t size, int64_t held, int64_t queries, NAME(diff_scratch) * s) {
    const size_t row = (size_t)width_of(size) * sizeof(REAL), columns = (size_t)size * sizeof(REAL);
    const size_t all_keys = (size_t)an_next_multiple(held, TILE);
    const size_t all_queries = (size_t)an_next_multiple(queries, TILE);
    size_t at = 0;
    s->key_columns = an_scratch_take(memory, &at, TILE * columns);
    s->value_columns = an_scratch_take(memory, &at, TILE * columns);
    s->key_rows = an_scratch_take(memory, &at, TILE * row);
    s->diff_k = an_scratch_take(memory, &at, all_keys * row);
    s->diff_v = an_scratch_take(memory, &at, all_keys * row);
    s->scores = an_scratch_take(memory, &at, TILE * TILE * sizeof(REAL));
    s->diff_scores = an_scratch_take(memory, &at, TILE * TILE * sizeof(REAL));
    s->q = an_scratch_take(memory, &at, all_queries * row);
    s->diff_dst = an_scratch_take(memory, &at, all_queries * row);
    s->diff_q = an_scratch_take(memory, &at, all_queries * row);
    s->sums = an_scratch_take(memory, &at, (size_t)queries * sizeof *s->sums);
    return at;
}

static size_t NAME(diff_bytes)(int64_t size, int64_t held, int64_t queries) {
    NAME(diff_scratch) s;
    return NAME(diff_layout)(NULL, size, held, queries, &s);
}

/* sums[k] += Σ scores[i][k]·rows[i] over the queries i for which column k was computed. */
static void NAME(add_columns)(int64_t keys, int64_t queries, int64_t width, const an_tokens *columns,
                              const REAL *scores, const REAL *rows, REAL *sums) {
    const int64_t groups = an_tiles(queries, ROWS);
    for (int64_t k = 0; k < keys; k += ROWS) {
        const an_tokens seeing = an_seeing_rows(columns, groups, k, ROWS);
        const int64_t first = seeing.begin, depth = an_smaller(seeing.count, queries - first);
        const REAL *column = scores + first * TILE + k, *row = rows + first * width;
        if (depth > 0) NAME(multiply)(width, depth, column, 1, TILE, row, width, sums + k * width, width, true);
    }
}

/* One tile of queries with one of keys: adds to the gradients that the part is for. */
static void NAME(diff_tile)(const an_attention_job *j, const an_diff_part *part, const an_key_tile *tile,
                            an_tokens queries, const NAME(diff_scratch) * s, REAL *diff_k, REAL *diff_v) {
    const int64_t size = j->size, width = width_of(size), first = queries.begin - part->queries.begin;
    const REAL *q = s->q + first * width, *diff_dst = s->diff_dst + first * width;
    an_tokens columns[TILE / ROWS];
    const int64_t groups = an_set_columns(j, tile, queries, ROWS, GRANULE, columns);
    for (int64_t g = 0; g < groups; g++) {
        const an_tokens c = columns[g];
        const int64_t row = g * ROWS, at = row * TILE + c.begin;
        const REAL *keys = s->key_columns + c.begin, *values = s->value_columns + c.begin;
        if (c.count == 0) continue;
        NAME(multiply)(c.count, size, q + row * width, width, 1, keys, SLAB, s->scores + at, TILE, false);
        NAME(multiply)(c.count, size, diff_dst + row * width, width, 1, values, SLAB, s->diff_scores + at, TILE, false);
        an_prefetch_diff(j, part, tile->at, queries, tile->keys, row, ROWS);
        for (int64_t i = row; i < row + ROWS && i < queries.count; i++) {
            REAL *scores = s->scores + i * TILE, *diff_scores = s->diff_scores + i * TILE;
            NAME(diff_row)(j, tile, queries.begin + i, c, s->sums[first + i], scores, diff_scores);
        }
    }
    if (part->of_keys) {
        NAME(add_columns)(tile->keys.count, queries.count, width, columns, s->scores, diff_dst, diff_v);
        NAME(add_columns)(tile->keys.count, queries.count, width, columns, s->diff_scores, q, diff_k);
    }
    for (int64_t g = 0; g < groups && part->of_queries; g++) {
        const an_tokens c = columns[g];
        const REAL *diff_scores = s->diff_scores + g * ROWS * TILE + c.begin, *keys = s->key_rows + c.begin * width;
        REAL *diff_q = s->diff_q + (first + g * ROWS) * width;
        if (c.count > 0) NAME(multiply)(width, c.count, diff_scores, TILE, 1, keys, width, diff_q, width, true);
    }
}

/* All that one head of queries adds to a tile of keys, and what it gets from there. The tile has those that are
 * seen. */
static void NAME(diff_keys)(const an_attention_job *j, const an_diff_part *part, const an_key_tile *tile,
                            const NAME(diff_scratch) * s, REAL *diff_k, REAL *diff_v) {
    const an_head at = an_key_head(j, tile->at);
    const an_tokens seeing = an_seeing_queries(j, part->queries, tile->keys);
    if (tile->keys.count <= 0 || seeing.count <= 0) return;
    NAME(load_columns)(j, j->k, at, tile->keys, s->key_columns);
    NAME(load_columns)(j, j->v, at, tile->keys, s->value_columns);
    if (part->of_queries) NAME(load_rows)(j, j->k, at, tile->keys, GRANULE, s->key_rows);
    for (int64_t q = seeing.begin / TILE * TILE; q < seeing.begin + seeing.count; q += TILE) {
        const int64_t rest = part->queries.begin + part->queries.count - q;
        NAME(diff_tile)(j, part, tile, (an_tokens){q, an_smaller(TILE, rest)}, s, diff_k, diff_v);
    }
}

static void NAME(diff_part)(const an_attention_job *j, const an_diff_part *part, void *memory) {
    const int64_t width = width_of(j->size), last = part->heads.begin + part->heads.count - 1;
    const REAL scale = (REAL)j->attributes->scale;
    const size_t tile_bytes = (size_t)(TILE * width) * sizeof(REAL);
    const an_key_range visible = an_visible_keys(j, part->queries);
    NAME(diff_scratch) s;
    NAME(diff_layout)(memory, j->size, an_diff_held(part, TILE), part->queries.count, &s);
    for (int64_t head = part->heads.begin; head <= last; head++) {
        const an_head at = {part->batch, head}, key_at = an_key_head(j, at);
        an_key_tile tile = {.at = at};
        NAME(load_sums)(j, at, part->queries, s.sums);
        NAME(load_rows)(j, j->q, at, part->queries, ROWS, s.q);
        NAME(load_rows)(j, j->diff_dst, at, part->queries, ROWS, s.diff_dst);
        memset(s.diff_q, 0, (size_t)(an_next_multiple(part->queries.count, ROWS) * width) * sizeof *s.diff_q);
        for (int64_t done = 0; done < part->keys.count; done += TILE) {
            const int64_t begin = part->keys.begin + done, held = part->heads.count > 1 ? done * width : 0;
            const an_tokens keys = {begin, an_smaller(TILE, part->keys.count - done)};
            REAL *diff_k = s.diff_k + held, *diff_v = s.diff_v + held;
            if (head == part->heads.begin) {
                memset(diff_k, 0, tile_bytes);
                memset(diff_v, 0, tile_bytes);
            }
            an_set_tile(j, &tile, (an_tokens){begin, an_smaller(keys.count, visible.end - begin)});
            NAME(diff_keys)(j, part, &tile, &s, diff_k, diff_v);
            if (!part->of_keys || head != last) continue;
            NAME(store_rows)(j, j->diff_k, key_at, keys, scale, diff_k);
            NAME(store_rows)(j, j->diff_v, key_at, keys, 1, diff_v);
        }
        if (part->of_queries) NAME(store_rows)(j, j->diff_q, at, part->queries, scale, s.diff_q);
    }
}
