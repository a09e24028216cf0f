#include "comm/scatter.h"

#include <stdio.h>

#include "base/status.h"
#include "comm/scatter_inside.h"

an_status an_scattering_begin(an_scattering *scattering, void *dst) {
    an_status status;
    an_scattering *s = scattering;
    an_pipeline *p = &s->peers.pipeline;
    an_context *ctx = p->ctx;
    AN_TRY(an_pipeline_check(p));
    AN_CHECK(ctx, !p->is_open, AN_ERR_ORDER, "a step is begun before an_scattering_finish of the one before it");
    for (int i = 0; i < p->unit_count; i++) s->peers.states[i] = (an_scatter_state){.rounds = 0};
    s->peers.levels[0] = dst;
    p->is_open = true;
    return AN_OK;
fail:
    return an_pipeline_fail(p, status);
}

/* What is checked at each start. */
static an_status check_start(an_scattering *s, int unit, int64_t round, const void *src) {
    an_status status;
    an_pipeline *p = &s->peers.pipeline;
    an_context *ctx = p->ctx;
    AN_CHECK(ctx, unit >= 0 && unit < p->unit_count, AN_ERR_ARGUMENT, "unit %d of %d", unit, p->unit_count);
    AN_TRY(an_pipeline_check(p));
    const char *name = s->units[unit].name;
    AN_CHECK(ctx, p->is_open, AN_ERR_ORDER, "unit %s was started before an_scattering_begin", name);
    AN_CHECK(ctx, round >= 0 && round < s->peers.rounds, AN_ERR_ARGUMENT, "round %lld of %lld", (long long)round,
             (long long)s->peers.rounds);
    AN_CHECK(ctx, round == s->peers.states[unit].rounds, AN_ERR_ORDER,
             "unit %s was started in round %lld instead of %lld", name, (long long)round,
             (long long)s->peers.states[unit].rounds);
    AN_CHECK(ctx, an_pipeline_is_done(p, unit), AN_ERR_ORDER, "unit %s was started again before an_scattering_wait",
             name);
    AN_CHECK(ctx, !src || s->peers.rank < an_scatter_leaves(&s->peers, round), AN_ERR_ARGUMENT,
             "round %lld has no leaf for rank %d, and unit %s has gradients of one", (long long)round, s->peers.rank,
             name);
    return AN_OK;
fail:
    return status;
}

an_status an_scattering_start(an_scattering *scattering, int unit, int64_t round, const void *src) {
    an_status status;
    an_scattering *s = scattering;
    an_pipeline *p = &s->peers.pipeline;
    an_context *ctx = p->ctx;
    char what[AN_HEARTBEAT_TEXT];
    AN_TRY(check_start(s, unit, round, src));
    const an_page_range *pages = &s->units[unit].pages;
    snprintf(what, sizeof what, "the gradients of %s", s->units[unit].name);
    if (s->peers.ranks > 1)
        an_comm_enter(ctx, p->comm, what, (size_t)(pages->end - pages->begin) * s->peers.page_bytes);
    s->peers.states[unit] = (an_scatter_state){.rounds = round + 1, .src = src};
    AN_TRY(an_pipeline_start(p, unit));
    return AN_OK;
fail:
    return an_pipeline_fail(p, status);
}

an_status an_scattering_wait(an_scattering *scattering, int unit) {
    an_pipeline *p = &scattering->peers.pipeline;
    if (unit < 0 || unit >= p->unit_count)
        return AN_ERROR(p->ctx, AN_ERR_ARGUMENT, "unit %d of %d", unit, p->unit_count);
    return an_pipeline_wait(p, an_pipeline_is_done, unit);
}

an_status an_scattering_finish(an_scattering *scattering) {
    an_status status;
    an_scattering *s = scattering;
    an_pipeline *p = &s->peers.pipeline;
    an_context *ctx = p->ctx;
    AN_TRY(an_pipeline_check(p));
    AN_CHECK(ctx, p->is_open, AN_ERR_ORDER, "an_scattering_finish comes after an_scattering_begin");
    for (int i = 0; i < p->unit_count; i++)
        AN_CHECK(ctx, s->peers.states[i].rounds == s->peers.rounds, AN_ERR_ORDER,
                 "the step ends after %lld of %lld rounds of unit %s", (long long)s->peers.states[i].rounds,
                 (long long)s->peers.rounds, s->units[i].name);
    AN_TRY(an_pipeline_wait(p, an_pipeline_all_done, -1));
    p->is_open = false;
    return AN_OK;
fail:
    an_pipeline_cancel(p);
    return an_pipeline_fail(p, status);
}

void an_scattering_cancel(an_scattering *scattering) {
    an_pipeline_cancel(&scattering->peers.pipeline);
}
