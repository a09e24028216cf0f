/* Pages of a step's end, for REAL. Included by update.c through instantiate.h. */

/* Gradients as the rule sees them. */
static void NAME(load_gradients)(const an_update_attributes *a, const REAL *restrict src, REAL *restrict g) {
    const REAL factor = (REAL)a->factor, limit = (REAL)a->clip_value;
    for (int i = 0; i < AN_PAGE; i++) g[i] = src[i] * factor;
    if (limit > 0)
        for (int i = 0; i < AN_PAGE; i++) g[i] = g[i] > limit ? limit : g[i] < -limit ? -limit : g[i];
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
        REAL *w = NAME(page_at)(&dst[WEIGHTS], page);
        REAL *const moments[] = {NAME(page_at)(&dst[MOMENT_1], page), NAME(page_at)(&dst[MOMENT_2], page)};
        NAME(load_gradients)(a, NAME(page_at)(&j->call->src[0], page), g);
        NAME(run_rule)(a, run, g, w, moments);
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
