/* What a plan recomputes: the options checked and, for a budget, the search for the cheapest choice that fits.
 *
 * Only a whole plan knows its arena, so the search is a loop around the passes. The recompute pass orders what could be
 * dropped by worth; a level is how many of these values go. Higher levels free more and cost more time, so the lowest
 * that fits is found by halving. If even the highest does not, inputs of blocks have to go too: then it is full
 * recompute of as many runs of blocks as fit. */
#include <stdio.h>

#include "exec/plan.h"
#include "pass/recompute.h"

static const an_form training[] = {AN_FORM_TRAIN_FIRST, AN_FORM_TRAIN_NEXT};
enum { TRAINING = 2, HOLDS_BYTES = 320 };

typedef struct {
    an_plan *p;
    int forms;                    /* that train: gradients in pieces need no NEXT */
    int64_t others;               /* arena of the forms that do not train */
    an_graph *selected[TRAINING]; /* as the passes before recompute leave them */
    bool fits;                    /* the last try */
    an_recompute_plan found;      /* by it */
    int64_t minimum;              /* arena of all tries, and what fills it */
    char holds[HOLDS_BYTES];
} search;

/* The largest values when most is alive. */
static void describe(const an_memory_plan *m, char *text) {
    enum { MOST = 3 };
    const an_life *largest[MOST] = {0};
    for (size_t i = 0; i < m->life_count; i++) {
        const an_life *l = &m->lives[i];
        if (l->begin > m->fullest || l->end < m->fullest) continue;
        for (int k = 0; k < MOST && l; k++) {
            if (largest[k] && largest[k]->bytes >= l->bytes) continue;
            const an_life *smaller = largest[k];
            largest[k] = l;
            l = smaller;
        }
    }
    size_t length = 0;
    for (int k = 0; k < MOST && largest[k] && length < HOLDS_BYTES; k++)
        length += (size_t)snprintf(text + length, HOLDS_BYTES - length, "%s%lld of %s%s at '%s'", k ? ", " : "",
                                   (long long)largest[k]->bytes, largest[k]->scratch ? "the scratch of " : "",
                                   largest[k]->node->op->name, largest[k]->node->path);
}

/* Makes the forms by the passes from recompute on, and judges the larger one. */
static an_status try_passes(search *s) {
    an_status status;
    an_context *ctx = s->p->ctx;
    an_graph *g[TRAINING] = {0};
    for (int i = 0; i < TRAINING && i < s->forms; i++) {
        AN_TRY(an_graph_clone(&g[i], s->selected[i]));
        AN_TRY(an_plan_run_passes(s->p, g[i], training[i], "recompute", NULL));
    }
    const an_graph *larger = g[0];
    AN_CHECK(ctx, larger, AN_ERR_STATE, "the plan has no training program");
    if (s->forms > 1 && g[1]->memory->arena_bytes >= larger->memory->arena_bytes) larger = g[1];
    const int64_t arena = larger->memory->arena_bytes;
    s->fits = arena <= s->p->passes.budget && s->others <= s->p->passes.budget;
    if (larger->recompute) s->found = *larger->recompute;
    if (s->minimum == 0 || arena < s->minimum) {
        s->minimum = arena;
        describe(larger->memory, s->holds);
    }
    status = AN_OK;
fail:
    for (int i = 0; i < TRAINING; i++) an_graph_destroy(&g[i]);
    return status;
}

/* Starts tries of a mode; it matters to the passes before recompute too, as what is fused cannot go one by one. */
static an_status select_for(search *s, an_recompute mode) {
    s->p->passes.recompute = mode;
    for (int i = 0; i < TRAINING && i < s->forms; i++) {
        an_graph_destroy(&s->selected[i]);
        AN_TRY_RETURN(an_graph_clone(&s->selected[i], s->p->model));
        an_plan_bind(s->p, s->selected[i], training[i]);
        AN_TRY_RETURN(an_plan_run_passes(s->p, s->selected[i], training[i], NULL, "select"));
    }
    return AN_OK;
}

/* The lowest level that fits. */
static an_status search_levels(search *s) {
    int64_t low = 0, high, *level = &s->p->passes.budget_level;
    AN_TRY_RETURN(select_for(s, AN_RECOMPUTE_BUDGET));
    *level = INT64_MAX;
    AN_TRY_RETURN(try_passes(s));
    if (!s->fits) return AN_OK;
    high = s->found.levels;
    while (high - low > 1) {
        *level = low + (high - low) / 2;
        AN_TRY_RETURN(try_passes(s));
        *(s->fits ? &high : &low) = *level;
    }
    s->fits = true;
    *level = high;
    return AN_OK;
}

/* The most runs of full recompute that fit. */
static an_status search_runs(search *s) {
    int low = 1, high, *runs = &s->p->passes.segments;
    if (s->found.blocks == 0) return AN_OK;
    AN_TRY_RETURN(select_for(s, AN_RECOMPUTE_FULL));
    s->p->passes.budget_level = 0;
    *runs = low;
    AN_TRY_RETURN(try_passes(s));
    if (!s->fits) return AN_OK;
    high = 2 * s->found.blocks + 2; /* more than blocks and what is between them */
    while (high - low > 1) {
        *runs = low + (high - low) / 2;
        AN_TRY_RETURN(try_passes(s));
        *(s->fits ? &low : &high) = *runs;
    }
    s->fits = true;
    *runs = low;
    return AN_OK;
}

static an_status fit(search *s) {
    an_context *ctx = s->p->ctx;
    AN_TRY_RETURN(select_for(s, AN_RECOMPUTE_NONE));
    AN_TRY_RETURN(try_passes(s));
    if (!s->fits) AN_TRY_RETURN(search_levels(s));
    if (!s->fits) AN_TRY_RETURN(search_runs(s));
    if (s->fits) return AN_OK;
    if (s->others > s->minimum)
        return AN_ERROR(ctx, AN_ERR_MEMORY,
                        "graph '%s' needs %lld bytes of activations and scratch for evaluation or prediction, where "
                        "nothing is recomputed, but the budget is %lld",
                        s->p->model->name, (long long)s->others, (long long)s->p->passes.budget);
    return AN_ERROR(ctx, AN_ERR_MEMORY,
                    "graph '%s' needs %lld bytes of activations and scratch even if everything possible is recomputed, "
                    "among them %s, but the budget is %lld",
                    s->p->model->name, (long long)s->minimum, s->holds, (long long)s->p->passes.budget);
}

an_status an_plan_choose_recompute(an_plan *p, const an_plan_options *options, bool trains) {
    an_status status;
    an_context *ctx = p->ctx;
    const an_recompute mode = options->recompute;
    search s = {.p = p, .forms = p->passes.scatters ? 1 : TRAINING, .others = p->arena_bytes};
    AN_CHECK(ctx, mode >= AN_RECOMPUTE_NONE && mode <= AN_RECOMPUTE_BUDGET, AN_ERR_ARGUMENT,
             "recompute is %d, which is not a value of an_recompute", (int)mode);
    AN_CHECK(ctx, mode == AN_RECOMPUTE_SEGMENTS ? options->segments > 0 : options->segments == 0, AN_ERR_ARGUMENT,
             "segments is %d; it must be at least 1 with AN_RECOMPUTE_SEGMENTS, and 0 otherwise", options->segments);
    AN_CHECK(ctx, mode == AN_RECOMPUTE_BUDGET ? options->budget > 0 : options->budget == 0, AN_ERR_ARGUMENT,
             "budget is %lld bytes; it must be at least 1 with AN_RECOMPUTE_BUDGET, and 0 otherwise",
             (long long)options->budget);
    p->passes.recompute = mode;
    p->passes.segments = options->segments;
    p->passes.budget = options->budget;
    if (mode == AN_RECOMPUTE_BUDGET && trains) AN_TRY(fit(&s));
    status = AN_OK;
fail:
    for (int i = 0; i < TRAINING; i++) an_graph_destroy(&s.selected[i]);
    return status;
}
