/* Pages of a step's end, for REAL. Included by update.c through instantiate.h. */

/* What a page is updated with, as REAL: numbers are made in f64 and rounded once. */
typedef struct {
    REAL factor, limit, kept, decay, rate, beta_1, rest_1, beta_2, rest_2, inverse_1, inverse_2, epsilon;
    REAL momentum, undamped;
} NAME(page_numbers);

static NAME(page_numbers) NAME(numbers_of)(const an_update_attributes *a, const an_update_run *run) {
    return (NAME(page_numbers)){
        .factor = (REAL)a->factor,
        .limit = (REAL)a->clip_value,
        .kept = (REAL)(1 - run->rate * run->weight_decay),
        .decay = (REAL)run->weight_decay,
        .rate = (REAL)run->rate,
        .beta_1 = (REAL)a->beta_1,
        .rest_1 = (REAL)(1 - a->beta_1),
        .beta_2 = (REAL)a->beta_2,
        .rest_2 = (REAL)(1 - a->beta_2),
        .inverse_1 = (REAL)(1 / a->correction_1),
        .inverse_2 = (REAL)(1 / a->correction_2),
        .epsilon = (REAL)a->epsilon,
        .momentum = (REAL)a->momentum,
        .undamped = (REAL)(1 - a->dampening),
    };
}

/* Gradients as the rule sees them. */
static void NAME(load_gradients)(const NAME(page_numbers) * n, const REAL *restrict src, REAL *restrict g) {
    for (int i = 0; i < AN_PAGE; i++) g[i] = src[i] * n->factor;
    if (n->limit > 0)
        for (int i = 0; i < AN_PAGE; i++) g[i] = g[i] > n->limit ? n->limit : g[i] < -n->limit ? -n->limit : g[i];
}

/* adamw takes the decay from the weights, adam adds it to the gradient. */
static void NAME(adam_page)(const NAME(page_numbers) * n, bool decoupled, REAL *restrict g, REAL *restrict w,
                            REAL *restrict m, REAL *restrict v) {
    if (decoupled)
        for (int i = 0; i < AN_PAGE; i++) w[i] = w[i] * n->kept;
    else
        for (int i = 0; i < AN_PAGE; i++) g[i] = g[i] + n->decay * w[i];
    for (int i = 0; i < AN_PAGE; i++) {
        m[i] = n->beta_1 * m[i] + n->rest_1 * g[i];
        v[i] = n->beta_2 * v[i] + n->rest_2 * (g[i] * g[i]);
        const REAL root = NAME(square_root)(v[i] * n->inverse_2);
        w[i] = w[i] - n->rate * (m[i] * n->inverse_1) / (root + n->epsilon);
    }
}

static void NAME(sgd_page)(const NAME(page_numbers) * n, const an_update_attributes *a, REAL *restrict g,
                           REAL *restrict w, REAL *restrict m) {
    for (int i = 0; i < AN_PAGE; i++) g[i] = g[i] + n->decay * w[i];
    if (m && a->first)
        for (int i = 0; i < AN_PAGE; i++) m[i] = g[i];
    else if (m)
        for (int i = 0; i < AN_PAGE; i++) m[i] = n->momentum * m[i] + n->undamped * g[i];
    if (m && a->nesterov)
        for (int i = 0; i < AN_PAGE; i++) g[i] = g[i] + n->momentum * m[i];
    const REAL *direction = m && !a->nesterov ? m : g;
    for (int i = 0; i < AN_PAGE; i++) w[i] = w[i] - n->rate * direction[i];
}

/* The function of a record, on gradients that are unscaled and clipped. */
static void NAME(record_page)(const an_update_attributes *a, const an_update_run *run, const REAL *g, REAL *w, REAL *m,
                              REAL *v) {
    const an_optimizer_numbers numbers = {.update = a->update,
                                          .rate = run->rate,
                                          .weight_decay = run->weight_decay,
                                          .beta_1 = a->beta_1,
                                          .beta_2 = a->beta_2,
                                          .epsilon = a->epsilon,
                                          .correction_1 = a->correction_1,
                                          .correction_2 = a->correction_2};
    a->record->NAME(update)(a->record->user, &numbers, AN_PAGE, g, w, m, v);
}

static REAL *NAME(page_at)(const an_tensor *t, int64_t page) {
    return t->data ? (REAL *)t->data + page * AN_PAGE : NULL;
}

static void NAME(update_task)(void *user, int64_t index, int thread) {
    const update_job *j = user;
    const an_update_attributes *a = j->call->attributes;
    const an_tensor *dst = j->call->dst;
    REAL g[AN_PAGE];
    (void)thread;
    for (int64_t page = index * TASK_PAGES; page < task_end(j->pages, index); page++) {
        const an_update_run *run = find_run(a, a->begin + page);
        const NAME(page_numbers) n = NAME(numbers_of)(a, run);
        REAL *w = NAME(page_at)(&dst[WEIGHTS], page), *m = NAME(page_at)(&dst[MOMENT_1], page),
             *v = NAME(page_at)(&dst[MOMENT_2], page);
        NAME(load_gradients)(&n, NAME(page_at)(&j->call->src[0], page), g);
        if (a->rule == AN_UPDATE_RECORD)
            NAME(record_page)(a, run, g, w, m, v);
        else if (a->rule == AN_UPDATE_SGD)
            NAME(sgd_page)(&n, a, g, w, m);
        else
            NAME(adam_page)(&n, a->rule == AN_UPDATE_ADAMW, g, w, m, v);
        if (dst[LOW].data) NAME(an_row_store)(&dst[LOW], page * AN_PAGE, 1, AN_PAGE, w);
    }
}

static void NAME(squares_task)(void *user, int64_t index, int thread) {
    enum { LANES = 16 };
    const update_job *j = user;
    double *sums = j->call->dst[0].data;
    (void)thread;
    for (int64_t page = index * TASK_PAGES; page < task_end(j->pages, index); page++) {
        const REAL *g = NAME(page_at)(&j->call->src[0], page);
        double lanes[LANES] = {0}, sum = 0;
        for (int i = 0; i < AN_PAGE; i += LANES)
            for (int k = 0; k < LANES; k++) lanes[k] += (double)g[i + k] * (double)g[i + k];
        for (int k = 0; k < LANES; k++) sum += lanes[k];
        sums[page] = sum;
    }
}
