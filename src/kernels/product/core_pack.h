/* Packing of an operand into panels, for REAL. Included by core.c through its template.
 *
 * A panel holds `width` lanes: all lanes of the first k, all lanes of the second, … , each `stride` elements after the
 * one before; panels of the same piece of k follow each other. Lanes after an operand's last are copies or zeros: what
 * is multiplied by them is not kept, and takes no longer than other numbers.
 */

/* to[p][lane] = lines[lane][begin + p] for as many lines and p as a vector has lanes. After log2(LANES) rounds of
 * interleaving line i with line i + LANES / 2, the square is turned around. */
static void NAME(turn)(const REAL *const *lines, int64_t begin, REAL *to, int64_t stride) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL) };
    NAME(vector) from[LANES], turned[LANES];
    AN_UNROLL for (int i = 0; i < LANES; i++) from[i] = *(const NAME(vector_unaligned) *)(lines[i] + begin);
    AN_UNROLL for (int round = 1; round < LANES; round *= 2) {
        AN_UNROLL for (int i = 0; i < LANES / 2; i++) {
            turned[2 * i] = NAME(INTERLEAVE_LOW)(from[i], from[i + LANES / 2]);
            turned[2 * i + 1] = NAME(INTERLEAVE_HIGH)(from[i], from[i + LANES / 2]);
        }
        AN_UNROLL for (int i = 0; i < LANES; i++) from[i] = turned[i];
    }
    AN_UNROLL for (int i = 0; i < LANES; i++) {
        __builtin_prefetch(to + (i + 2 * LANES) * stride, 1); /* the square after the next */
        *(NAME(vector) *)(to + i * stride) = from[i];
    }
}

/* Where an operand's lines come from, for one item. */
typedef struct {
    const an_product_operand *operand;
    int64_t item;
    const REAL *first; /* of lines that lie evenly, `stride` apart; or NULL */
    int64_t stride;
} NAME(lines);

static NAME(lines) NAME(lines_of)(const job_run *run, int s, int64_t item) {
    const an_product_operand *operand = operand_of(run, s);
    NAME(lines) lines = {operand, item, NULL, 0};
    if (run->even[s]) {
        const an_matrix *m = operand->source;
        lines.first = (const REAL *)m->tensor->data + m->offset + grid_offset(&m->items, item);
        lines.stride = grid_inner_stride(&m->lines);
    }
    return lines;
}

static inline const REAL *NAME(line_at)(NAME(lines) lines, int64_t line, int64_t begin, int64_t count, REAL *buffer) {
    if (lines.first) return lines.first + line * lines.stride + begin;
    return lines.operand->NAME(line)(lines.operand->source, lines.item, line, begin, count, buffer);
}

/* Lines along k. */
static void NAME(pack_along_k)(NAME(lines) source, range lanes, range depth, int64_t width, int64_t stride,
                               REAL *panels, REAL *buffer) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL) };
    for (int64_t begin = 0; begin < lanes.count; begin += width, panels += stride * depth.count) {
        int64_t panel_lanes = an_smaller(width, lanes.count - begin);
        for (int64_t lane = 0; lane < panel_lanes; lane += LANES) {
            const REAL *lines[LANES];
            int64_t p = 0, n = an_smaller(LANES, panel_lanes - lane), first = lanes.begin + begin + lane;
            for (int64_t i = 0; i < n; i++)
                lines[i] = NAME(line_at)(source, first + i, depth.begin, depth.count, buffer + i * depth.count);
            for (int64_t i = n; i < LANES; i++) lines[i] = lines[0];
            for (; p + LANES <= depth.count; p += LANES) NAME(turn)(lines, p, panels + p * stride + lane, stride);
            for (; p < depth.count; p++)
                for (int i = 0; i < LANES; i++) panels[p * stride + lane + i] = lines[i][p];
        }
    }
}

/* Fetches the line that is PACK_AHEAD lines after `line`, if all are as far apart as it is from the one before. */
static void NAME(fetch_line)(const REAL *line, const REAL *before, int64_t count) {
    uintptr_t ahead = (uintptr_t)line + PACK_AHEAD * ((uintptr_t)line - (uintptr_t)before);
    for (uintptr_t i = 0; i < (uintptr_t)count * sizeof *line; i += AN_ALIGNMENT)
        __builtin_prefetch((const void *)(ahead + i));
}

/* Lines of lanes. Few panels at a time: they lie a multiple of the size of a cache's ways apart. Width and stride are
 * constants where this is inlined. */
static inline __attribute__((always_inline)) void NAME(pack_lanes)(NAME(lines) source, range lanes, range depth,
                                                                   const int64_t width, const int64_t stride,
                                                                   REAL *panels, REAL *buffer) {
    const int64_t panel = stride * depth.count;
    for (int64_t begin = 0; begin < lanes.count; begin += AN_PACK_PANELS * width) {
        int64_t n = an_smaller(AN_PACK_PANELS * width, lanes.count - begin), whole = n / width * width;
        REAL *restrict first = panels + begin / width * panel, *restrict last = first + whole / width * panel;
        const REAL *before = NULL;
        if (whole < n) memset(last, 0, (size_t)panel * sizeof *last);
        for (int64_t p = 0; p < depth.count; p++, first += stride, last += stride) {
            const REAL *from = NAME(line_at)(source, depth.begin + p, lanes.begin + begin, n, buffer);
            REAL *to = first;
            if (before) NAME(fetch_line)(from, before, n);
            before = from;
            for (int64_t i = 0; i < whole; i += width, to += panel) memcpy(to, from + i, (size_t)width * sizeof *from);
            for (int64_t i = whole; i < n; i++) last[i - whole] = from[i];
        }
    }
}

static void NAME(pack)(const job_run *run, int s, int64_t item, range lanes, range depth, REAL *panels, REAL *buffer) {
    enum { PANEL_COLUMNS = PANEL_BYTES / sizeof(REAL) };
    const an_product_side *side = &run->plan.sides[s];
    NAME(lines) lines = NAME(lines_of)(run, s, item);
    if (operand_of(run, s)->along_k)
        NAME(pack_along_k)(lines, lanes, depth, side->width, side->stride, panels, buffer);
    else if (s == AN_ROWS)
        NAME(pack_lanes)(lines, lanes, depth, PANEL_ROWS, PANEL_ROW_STRIDE, panels, buffer);
    else
        NAME(pack_lanes)(lines, lanes, depth, PANEL_COLUMNS, PANEL_COLUMNS, panels, buffer);
}
