/* Cross-entropy for REAL, row by row. Included by cross_entropy.c through instantiate.h. */

/* What the loss of a row is multiplied by. */
static REAL NAME(weight_of)(const job *j, int64_t row) {
    REAL load;
    if (!j->weights) return 1;
    return *NAME(an_row_load)(j->weights, an_row_offset(j->weights, NO_AXIS, row / j->each), 1, 1, &load);
}

/* (1 - p)^γ for a target whose cross entropy is `loss`, so that p = exp(-loss); *slope becomes what the gradient of the
 * loss is multiplied by: (1 - p)^γ (1 + γ p·loss / (1 - p)), where loss / (1 - p) is 1 in the limit p = 1. */
static REAL NAME(focus)(REAL gamma, REAL loss, REAL *slope) {
    const REAL rest = -NAME(an_expm1)(-loss);
    const REAL factor = rest > 0 ? NAME(an_exp)(gamma * NAME(an_log)(rest)) : 0;
    *slope = factor * (1 + gamma * (1 - rest) * (rest > 0 ? loss / rest : 1));
    return factor;
}

/* With p the softmax and s the smoothing: -(1 - s) log p[target] - s mean(log p), where -log p[i] = log Σ exp(x - m) +
 * (m - x[i]) and m is the largest logit, so that nothing large is subtracted from something large. */
static void NAME(loss_row)(const job *j, int64_t row, REAL *buffer) {
    const an_tensor *logits = &j->call->src[0], *losses = &j->call->dst[0], *log_sum_exp = &j->call->dst[1];
    int last = logits->ndims - 1;
    int64_t label = label_of(j, row);
    REAL loss = 0, whole = 0, smoothing = (REAL)j->attributes->label_smoothing;
    if (label != j->attributes->ignored) {
        const REAL *x =
            NAME(an_row_load)(logits, an_row_offset(logits, last, row), logits->strides[last], j->classes, buffer);
        REAL largest = NAME(an_row_max)(x, j->classes), sum, log_sum;
        AN_SUM_TERMS(sum, i, j->classes, NAME(an_exp)(x[i] - largest));
        log_sum = NAME(an_log)(sum);
        whole = largest + log_sum;
        loss = log_sum + (largest - x[label]);
        if (smoothing > 0) {
            AN_SUM_TERMS(sum, i, j->classes, largest - x[i]);
            loss = (1 - smoothing) * loss + smoothing * (log_sum + sum / (REAL)j->classes);
        }
        if (j->attributes->focal > 0) loss *= NAME(focus)((REAL)j->attributes->focal, loss, &sum);
        loss *= NAME(weight_of)(j, row);
    }
    if (j->losses)
        ((REAL *)j->losses)[row] = loss;
    else
        NAME(an_row_store)(losses, an_row_offset(losses, NO_AXIS, row), 1, 1, &loss);
    NAME(an_row_store)(log_sum_exp, an_row_offset(log_sum_exp, NO_AXIS, row), 1, 1, &whole);
}

/* weight·diff_dst·(p - (1 - s)·[i = target] - s/classes). In place diff_logits is logits, so what the target's element
 * needs is read before the row is written. */
static void NAME(diff_row)(const job *j, int64_t row, REAL *buffer) {
    const an_tensor *logits = &j->call->src[1], *log_sum_exp = &j->call->src[3], *dst = &j->call->dst[0];
    int last = logits->ndims - 1;
    int64_t n = j->classes, label = label_of(j, row), offset = an_row_offset(dst, last, row);
    REAL *second = needs_buffer(j->call, logits) ? buffer + n : buffer, load;
    REAL *diff = NAME(an_row_target)(dst, offset, dst->strides[last], second);
    REAL smoothing = (REAL)j->attributes->label_smoothing, spread = smoothing / (REAL)n;
    if (label == j->attributes->ignored) {
        for (int64_t i = 0; i < n; i++) diff[i] = 0;
    } else {
        const REAL *x = NAME(an_row_load)(logits, an_row_offset(logits, last, row), logits->strides[last], n, buffer);
        REAL d = *NAME(an_row_load)(&j->call->src[0], 0, 1, 1, &load) * NAME(weight_of)(j, row);
        REAL whole = *NAME(an_row_load)(log_sum_exp, an_row_offset(log_sum_exp, NO_AXIS, row), 1, 1, &load);
        if (j->attributes->focal > 0) {
            REAL slope;
            NAME(focus)((REAL)j->attributes->focal, whole - x[label] > 0 ? whole - x[label] : 0, &slope);
            d *= slope;
        }
        REAL of_target = d * (NAME(an_expm1)(x[label] - whole) + (smoothing - spread));
        AN_EACH_ELEMENT(i, n) diff[i] = d * (NAME(an_exp)(x[i] - whole) - spread);
        diff[label] = of_target;
    }
    NAME(an_row_store)(dst, offset, dst->strides[last], n, diff);
}

static REAL NAME(sum_leaves)(const REAL *losses, const an_leaf_cut *leaves, int64_t rows) {
    REAL sums[AN_TREE_DEPTH];
    sums[0] = 0;
    an_leaf_walk w = an_leaf_walk_begin(leaves, rows);
    while (an_leaf_walk_next(&w)) {
        sums[w.slot] = NAME(an_row_sum)(losses + w.begin, w.end - w.begin);
        for (int i = 0; i < w.joins; i++) sums[w.slot - i - 1] = sums[w.slot - i - 1] + sums[w.slot - i];
    }
    return sums[0];
}

static void NAME(sum_rows)(const job *j) {
    const an_leaf_cut *leaves = an_call_leaves(j->call);
    const REAL total = leaves ? NAME(sum_leaves)(j->losses, leaves, j->rows) : NAME(an_row_sum)(j->losses, j->rows);
    NAME(an_row_store)(&j->call->dst[0], 0, 1, 1, &total);
}
