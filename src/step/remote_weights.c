#include "step/remote_weights.h"

#include "base/integer.h"
#include "base/memory.h"
#include "base/status.h"

enum { MASTERS, LOW };

/* ---- what is gathered ---- */

/* The runs of a set that lie in a unit, with their places in a flat buffer; `runs` NULL: they are counted only. */
static size_t add_runs(const an_page_runs *set, const an_page_range *unit, int channel, size_t page_bytes,
                       an_gather_run *runs) {
    size_t count = 0;
    for (int i = an_page_runs_find(set, unit->begin); i < set->count && set->runs[i].begin < unit->end; i++) {
        const an_page_range pages = {an_larger(set->runs[i].begin, unit->begin),
                                     an_smaller(set->runs[i].end, unit->end)};
        const int64_t at = pages.begin * (int64_t)page_bytes;
        if (runs) runs[count] = (an_gather_run){.pages = pages, .channel = channel, .src_at = at, .dst_at = at};
        count++;
    }
    return count;
}

static size_t count_runs(const an_shards *s) {
    size_t count = 0;
    for (int i = 0; i < s->unit_count; i++)
        count += add_runs(&s->sets[AN_PAGES_MASTER_READ], &s->units[i].pages, MASTERS, 0, NULL) +
                 add_runs(&s->sets[AN_PAGES_LOW_READ], &s->units[i].pages, LOW, 0, NULL);
    return count;
}

static an_gather_options describe(const an_shards *s, const an_flat_sizes *sizes, an_dtype low, an_gather_unit *units,
                                  an_gather_run *runs) {
    an_gather_options o = {.units = units, .unit_count = s->unit_count};
    o.page_bytes[MASTERS] = AN_PAGE * an_dtype_size(sizes->trainable_dtype);
    o.page_bytes[LOW] = AN_PAGE * an_dtype_size(low == AN_DTYPE_NONE ? sizes->trainable_dtype : low);
    for (int i = 0; i < s->unit_count; i++) {
        const an_shard_unit *unit = &s->units[i];
        size_t count = add_runs(&s->sets[AN_PAGES_MASTER_READ], &unit->pages, MASTERS, o.page_bytes[MASTERS], runs);
        count += add_runs(&s->sets[AN_PAGES_LOW_READ], &unit->pages, LOW, o.page_bytes[LOW], runs + count);
        units[i] = (an_gather_unit){.pages = unit->pages,
                                    .runs = runs,
                                    .run_count = (int)count,
                                    .name = *unit->name ? unit->name : "the rest of the model"};
        runs += count;
    }
    return o;
}

/* ---- a step ---- */

static an_status arrive(void *user, int unit) {
    an_remote_weights *w = user;
    return unit == AN_ALL_UNITS ? an_remote_weights_finish(w) : an_gathering_wait(w->gathering, unit);
}

static void progress(void *user) {
    const an_remote_weights *w = user;
    (void)an_gathering_progress(w->gathering); /* an error is found again when a unit is waited for */
}

static void set_hooks(an_remote_weights *w, bool on) {
    an_context *ctx = w->ctx;
    if (!on && ctx->arrive_user != w) return;
    ctx->arrive = on ? arrive : NULL;
    ctx->arrive_user = on ? w : NULL;
    ctx->progress[AN_PROGRESS_WEIGHTS] = (an_progress_hook){on ? progress : NULL, w};
}

an_status an_remote_weights_start(an_remote_weights *w) {
    an_context *ctx = w->ctx;
    an_params *p = w->params;
    void *const flats[AN_GATHER_CHANNELS] = {p->masters, p->low};
    if (!w->gathering || w->version == p->version) return AN_OK;
    AN_TRY_RETURN(an_params_refresh(p)); /* of its own pieces */
    AN_TRY_RETURN(an_gathering_publish(w->gathering));
    for (int i = 0; i < p->pieces.shards->unit_count; i++)
        AN_TRY_RETURN(an_gathering_start(w->gathering, i, (const void *const *)flats, flats));
    w->version = p->version;
    set_hooks(w, true);
    return AN_OK;
}

an_status an_remote_weights_finish(an_remote_weights *w) {
    an_context *ctx = w->ctx;
    if (!w->gathering) return AN_OK;
    set_hooks(w, false);
    AN_TRY_RETURN(an_gathering_finish(w->gathering));
    return AN_OK;
}

/* ---- making it ---- */

static bool gathers(const an_params_pieces *pieces) {
    return pieces->shards && pieces->sharding != AN_SHARD_FULL;
}

an_status an_remote_weights_predict(an_context *ctx, const an_params_pieces *pieces, const an_flat_sizes *sizes,
                                    an_dtype low, size_t *bytes, an_reduction_cost *cost) {
    an_status status;
    an_gather_unit *units = NULL;
    an_gather_run *runs = NULL;
    const an_shards *s = pieces->shards;
    const size_t unit_count = gathers(pieces) ? (size_t)s->unit_count : 0;
    const size_t run_count = gathers(pieces) ? count_runs(s) : 0;
    if (!gathers(pieces)) return AN_OK;
    AN_TRY(an_alloc(ctx, (void **)&units, unit_count, sizeof *units));
    AN_TRY(an_alloc(ctx, (void **)&runs, run_count, sizeof *runs));
    const an_gather_options options = describe(s, sizes, low, units, runs);
    const an_gather_cost gather = an_gather_predict(&options, s->rank, s->ranks, 1);
    AN_CHECK(ctx,
             an_add_elements(bytes, unit_count, sizeof *units) && an_add_elements(bytes, run_count, sizeof *runs) &&
                 an_add_elements(bytes, gather.bytes, 1),
             AN_ERR_OVERFLOW, "the weights that ranks gather do not fit in memory");
    cost->sent += gather.sent;
    cost->received += gather.received;
    cost->messages += gather.messages;
    cost->read += gather.read;
    status = AN_OK;
fail:
    an_release(ctx, (void **)&runs, run_count, sizeof *runs);
    an_release(ctx, (void **)&units, unit_count, sizeof *units);
    return status;
}

an_status an_remote_weights_make(an_remote_weights *w, an_params *params, an_comm *comm) {
    an_context *ctx = params->ctx;
    const an_shards *s = params->pieces.shards;
    *w = (an_remote_weights){.ctx = ctx, .params = params, .version = params->version - 1};
    if (!gathers(&params->pieces)) return AN_OK;
    w->run_count = count_runs(s);
    AN_TRY_RETURN(an_alloc(ctx, (void **)&w->units, (size_t)s->unit_count, sizeof *w->units));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&w->runs, w->run_count, sizeof *w->runs));
    const an_gather_options options = describe(s, &params->sizes, params->low_dtype, w->units, w->runs);
    return an_gathering_create(&w->gathering, ctx, comm, &options);
}

void an_remote_weights_destroy(an_remote_weights *w) {
    an_context *ctx = w->ctx;
    if (!ctx) return;
    set_hooks(w, false);
    an_gathering_destroy(&w->gathering);
    an_release(ctx, (void **)&w->runs, w->run_count, sizeof *w->runs);
    an_release(ctx, (void **)&w->units, w->units ? (size_t)w->params->pieces.shards->unit_count : 0, sizeof *w->units);
    w->ctx = NULL;
}
