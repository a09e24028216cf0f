/* Packing of an operand into panels, for REAL. Included by product_core.c through its template.
 *
 * A panel holds `width` lanes: all lanes of the first k, all lanes of the second, … , each `stride` elements after the
 * one before. Lanes after an operand's last hold numbers that do not matter.
 */

/* to[p][lane] = lines[lane][p] for LANES lines and LANES p. After log2(LANES) rounds of interleaving line i with line
 * i + LANES / 2, the square is turned around. */
static void NAME(turn)(const REAL *const *lines, int64_t begin, REAL *to, int64_t stride) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL) };
    NAME(vector) from[LANES], turned[LANES];
    UNROLL for (int i = 0; i < LANES; i++) from[i] = *(const NAME(vector_unaligned) *)(lines[i] + begin);
    UNROLL for (int round = 1; round < LANES; round *= 2) {
        UNROLL for (int i = 0; i < LANES / 2; i++) {
            turned[2 * i] = NAME(INTERLEAVE_LOW)(from[i], from[i + LANES / 2]);
            turned[2 * i + 1] = NAME(INTERLEAVE_HIGH)(from[i], from[i + LANES / 2]);
        }
        UNROLL for (int i = 0; i < LANES; i++) from[i] = turned[i];
    }
    UNROLL for (int i = 0; i < LANES; i++) {
        __builtin_prefetch(to + (i + 2 * LANES) * stride, 1);
        *(NAME(vector) *)(to + i * stride) = from[i];
    }
}

/* Lines along k: squares are turned around, as many lines at a time as a vector has lanes. */
static void NAME(pack_along_k)(const an_product_operand *operand, int64_t item, range lanes, range depth, int64_t width,
                               int64_t stride, REAL *panels, REAL *buffer) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL) };
    for (int64_t begin = 0; begin < lanes.count; begin += width, panels += stride * depth.count) {
        int64_t panel_lanes = smaller(width, lanes.count - begin);
        for (int64_t lane = 0; lane < panel_lanes; lane += LANES) {
            const REAL *lines[LANES];
            int64_t p = 0, n = smaller(LANES, panel_lanes - lane);
            for (int64_t i = 0; i < n; i++)
                lines[i] = operand->NAME(line)(operand->source, item, lanes.begin + begin + lane + i, depth.begin,
                                               depth.count, buffer + i * depth.count);
            for (int64_t i = n; i < LANES; i++) lines[i] = lines[0];
            for (; p + LANES <= depth.count; p += LANES) NAME(turn)(lines, p, panels + p * stride + lane, stride);
            for (; p < depth.count; p++)
                for (int i = 0; i < LANES; i++) panels[p * stride + lane + i] = lines[i][p];
        }
    }
}

/* Lines of lanes: every line is cut into pieces as wide as a panel. Few panels at a time, as they lie a multiple of the
 * size of a cache's ways apart. */
static inline __attribute__((always_inline)) void NAME(pack_lanes)(const an_product_operand *operand, int64_t item,
                                                                   range lanes, range depth, const int64_t width,
                                                                   const int64_t stride, REAL *panels, REAL *buffer) {
    for (int64_t begin = 0; begin < lanes.count; begin += PACK_PANELS * width) {
        int64_t n = smaller(PACK_PANELS * width, lanes.count - begin), whole = n / width;
        REAL *restrict first = panels + begin / width * stride * depth.count;
        const REAL *before = buffer;
        for (int64_t p = 0; p < depth.count; p++, first += stride) {
            const REAL *restrict from =
                operand->NAME(line)(operand->source, item, depth.begin + p, lanes.begin + begin, n, buffer);
            for (int64_t i = 0; i < n; i += (int64_t)(VECTOR_BYTES / sizeof(REAL)))
                __builtin_prefetch(from + i + 16 * (from - before));
            before = from;
            for (int64_t i = 0; i < whole; i++)
                memcpy(first + i * stride * depth.count, from + i * width, (size_t)width * sizeof *from);
            if (whole * width == n) continue;
            REAL *last = first + whole * stride * depth.count;
            for (int64_t i = 0; i < width; i++) last[i] = whole * width + i < n ? from[whole * width + i] : 0;
        }
    }
}

/* Panels of a piece lie stride · depth.count apart. */
static void NAME(pack)(const job_run *run, int s, int64_t item, range lanes, range depth, REAL *panels, REAL *buffer) {
    const an_product_operand *operand = s == AN_ROWS ? &run->job->a : &run->job->b;
    const an_product_side *side = &run->plan.sides[s];
    if (operand->along_k)
        NAME(pack_along_k)(operand, item, lanes, depth, side->width, side->stride, panels, buffer);
    else if (s == AN_ROWS)
        NAME(pack_lanes)(operand, item, lanes, depth, PANEL_ROWS, PANEL_ROW_STRIDE, panels, buffer);
    else
        NAME(pack_lanes)
        (operand, item, lanes, depth, PANEL_BYTES / sizeof(REAL), PANEL_BYTES / sizeof(REAL), panels, buffer);
}
