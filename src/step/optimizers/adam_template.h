/* The formula that adam and adamw share, as a template: adamw takes the decay from the weights, adam adds it to the
 * gradient. Numbers are made in f64 and rounded once. Included through instantiate.h. */

static void NAME(update_page)(const an_update_attributes *a, const an_update_run *run, bool decoupled, REAL *restrict g,
                              REAL *restrict w, REAL *restrict m, REAL *restrict v) {
    const REAL rate = (REAL)run->rate, epsilon = (REAL)a->epsilon;
    const REAL beta_1 = (REAL)a->beta_1, rest_1 = (REAL)(1 - a->beta_1), inverse_1 = (REAL)(1 / a->correction_1);
    const REAL beta_2 = (REAL)a->beta_2, rest_2 = (REAL)(1 - a->beta_2), inverse_2 = (REAL)(1 / a->correction_2);
    const REAL kept = (REAL)(1 - run->rate * run->weight_decay), decay = (REAL)run->weight_decay;
    if (decoupled)
        for (int i = 0; i < AN_PAGE; i++) w[i] = w[i] * kept;
    else
        for (int i = 0; i < AN_PAGE; i++) g[i] = g[i] + decay * w[i];
    for (int i = 0; i < AN_PAGE; i++) {
        m[i] = beta_1 * m[i] + rest_1 * g[i];
        v[i] = beta_2 * v[i] + rest_2 * (g[i] * g[i]);
        const REAL root = NAME(an_square_root)(v[i] * inverse_2);
        w[i] = w[i] - rate * (m[i] * inverse_1) / (root + epsilon);
    }
}

static void NAME(page)(const an_update_attributes *a, const an_update_run *run, REAL *g, REAL *w,
                       REAL *const *moments) {
    NAME(update_page)(a, run, DECOUPLED, g, w, moments[0], moments[1]);
}
