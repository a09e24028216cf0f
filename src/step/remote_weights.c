#include "step/remote_weights.h"

#include "base/integer.h"
#include "base/memory.h"
#include "base/status.h"

/* ---- what is gathered ----
 *
 * Both lists are counted first, with NULL for where they go, and then made. */

typedef struct {
    an_gather_unit *units;
    an_gather_run *runs;
    size_t unit_count, run_count;
    size_t page_bytes[AN_GATHER_CHANNELS];
} list;

static list list_of(const an_flat_sizes *sizes, an_dtype low) {
    const an_dtype dtypes[] = {[AN_WEIGHTS_MASTER] = sizes->trainable_dtype,
                               [AN_WEIGHTS_LOW] = low == AN_DTYPE_NONE ? sizes->trainable_dtype : low};
    list l = {0};
    for (int i = 0; i < AN_WEIGHT_KINDS; i++) l.page_bytes[i] = AN_PAGE * an_dtype_size(dtypes[i]);
    return l;
}

static void add_unit(list *l, const an_shards *s, int unit, const char *name) {
    if (l->units)
        l->units[l->unit_count] = (an_gather_unit){.pages = s->units[unit].pages,
                                                   .turn = unit,
                                                   .runs = l->runs + l->run_count,
                                                   .name = *name ? name : "the rest of the model"};
    l->unit_count++;
}

/* Of the unit that was added last; `to`: where its first page goes. */
static void add_run(list *l, const an_page_range *pages, int channel, int64_t to) {
    const int64_t bytes = (int64_t)l->page_bytes[channel];
    if (l->runs) {
        l->runs[l->run_count] =
            (an_gather_run){.pages = *pages, .channel = channel, .src_at = pages->begin * bytes, .dst_at = to * bytes};
        l->units[l->unit_count - 1].run_count++;
    }
    l->run_count++;
}

/* The runs of a set that lie in a unit, to the same places of the flat buffer. */
static void add_read(list *l, const an_page_runs *set, const an_page_range *unit, int channel) {
    for (int i = an_page_runs_find(set, unit->begin); i < set->count && set->runs[i].begin < unit->end; i++) {
        const an_page_range pages = {an_larger(set->runs[i].begin, unit->begin),
                                     an_smaller(set->runs[i].end, unit->end)};
        add_run(l, &pages, channel, pages.begin);
    }
}

static void add_units(list *l, const an_shards *s) {
    for (int i = 0; i < s->unit_count; i++) {
        const an_page_range *pages = &s->units[i].pages;
        add_unit(l, s, i, s->units[i].name);
        add_read(l, &s->sets[AN_PAGES_MASTER_READ], pages, AN_WEIGHTS_MASTER);
        add_read(l, &s->sets[AN_PAGES_LOW_READ], pages, AN_WEIGHTS_LOW);
    }
}

static void add_regions(list *l, const an_shards *s, const an_graph *form) {
    for (int i = 0; form && form->shard && i < form->shard->region_count; i++) {
        const an_region *region = &form->shard->regions[i];
        add_unit(l, s, region->unit, region->name);
        for (int kind = 0; kind < AN_WEIGHT_KINDS; kind++)
            for (int k = 0; k < region->roots[kind].run_count; k++)
                add_run(l, &region->roots[kind].runs[k].pages, kind, region->roots[kind].runs[k].at);
    }
}

static bool has_regions(const an_params_pieces *pieces) {
    return pieces->sharding >= AN_SHARD_FULL;
}

/* Both forms of training gather alike, so while one rank runs the first micro-batch of a leaf, another may run
 * the next one of its own. */
static const an_graph *form_of(const an_plan *plan, int form) {
    return form == AN_FORM_TRAIN_NEXT ? NULL : plan->forms[form];
}

static bool have_same_runs(const an_region_root *a, const an_region_root *b) {
    bool same = a->run_count == b->run_count;
    for (int i = 0; same && i < a->run_count; i++)
        same = a->runs[i].at == b->runs[i].at && a->runs[i].pages.begin == b->runs[i].pages.begin &&
               a->runs[i].pages.end == b->runs[i].pages.end;
    return same;
}

static an_status compare_forms(const an_plan *plan) {
    const an_graph *first = plan->forms[AN_FORM_TRAIN_FIRST], *next = plan->forms[AN_FORM_TRAIN_NEXT];
    if (!next || !next->shard || !first->shard) return AN_OK;
    bool same = first->shard->region_count == next->shard->region_count;
    for (int i = 0; same && i < first->shard->region_count; i++) {
        const an_region *a = &first->shard->regions[i], *b = &next->shard->regions[i];
        same = a->unit == b->unit;
        for (int kind = 0; kind < AN_WEIGHT_KINDS; kind++)
            same = same && have_same_runs(&a->roots[kind], &b->roots[kind]);
    }
    if (same) return AN_OK;
    return AN_ERROR(
        plan->ctx, AN_ERR_UNSUPPORTED,
        "the first micro-batch of a leaf reads other weights than the next ones, so ranks that divide weights "
        "cannot add up the gradients of several micro-batches");
}

/* `first` (NULL: not asked) gets the first region of each form. */
static void add_all(list *l, const an_params_pieces *pieces, const an_plan *plan, int *first) {
    if (!has_regions(pieces)) {
        add_units(l, pieces->shards);
        return;
    }
    for (int form = 0; form < AN_FORMS; form++) {
        if (first) first[form] = (int)l->unit_count;
        add_regions(l, pieces->shards, form_of(plan, form));
    }
    if (first) first[AN_FORM_TRAIN_NEXT] = first[AN_FORM_TRAIN_FIRST];
}

static an_gather_options options_of(const list *l) {
    an_gather_options o = {.units = l->units, .unit_count = (int)l->unit_count};
    for (int i = 0; i < AN_GATHER_CHANNELS; i++) o.page_bytes[i] = l->page_bytes[i];
    return o;
}

/* ---- what programs ask for ---- */

static an_status wait_unit(void *user, int unit) {
    an_remote_weights *w = user;
    return unit == AN_ALL_UNITS ? an_remote_weights_finish(w) : an_gathering_wait(w->gathering, unit);
}

static an_status gather_region(void *user, int form, int region, void *const roots[AN_WEIGHT_KINDS]) {
    const an_remote_weights *w = user;
    const void *const flats[AN_GATHER_CHANNELS] = {w->params->masters, w->params->low};
    return an_gathering_start(w->gathering, w->first[form] + region, flats, roots);
}

static an_status wait_region(void *user, int form, int region) {
    const an_remote_weights *w = user;
    return an_gathering_wait(w->gathering, w->first[form] + region);
}

static void join_ranks(an_remote_weights *w, an_program *program) {
    w->exchange = &program->exchange.weights;
    *w->exchange = w->has_regions ? (an_weight_exchange){.user = w, .gather = gather_region, .wait_region = wait_region}
                                  : (an_weight_exchange){.user = w, .wait_unit = wait_unit};
}

/* ---- a step ---- */

an_status an_remote_weights_start(an_remote_weights *w) {
    an_params *p = w->params;
    void *const flats[AN_GATHER_CHANNELS] = {p->masters, p->low};
    const bool changed = w->version != p->version;
    if (!w->gathering || !(changed || w->has_regions)) return AN_OK;
    AN_TRY_RETURN(an_params_refresh(p)); /* of its own pieces */
    if (changed) AN_TRY_RETURN(an_gathering_publish(w->gathering));
    for (int i = 0; !w->has_regions && i < (int)w->unit_count; i++)
        AN_TRY_RETURN(an_gathering_start(w->gathering, i, (const void *const *)flats, flats));
    w->version = p->version;
    w->exchange->is_open = true;
    return AN_OK;
}

an_status an_remote_weights_finish(an_remote_weights *w) {
    if (!w->gathering) return AN_OK;
    w->exchange->is_open = false;
    AN_TRY_RETURN(an_gathering_finish(w->gathering));
    return AN_OK;
}

/* ---- making it ---- */

static an_status make_list(an_context *ctx, list *l) {
    const size_t units = l->unit_count, runs = l->run_count;
    l->unit_count = l->run_count = 0;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&l->units, units, sizeof *l->units));
    return an_alloc(ctx, (void **)&l->runs, runs, sizeof *l->runs);
}

/* What one run of the training program moves, or one round of units. The regions of training come first. */
static an_gather_cost cost_of(const list *l, const an_params_pieces *pieces, const an_plan *plan) {
    const an_graph *trains = plan->forms[AN_FORM_TRAIN_FIRST];
    an_gather_options options = options_of(l);
    if (has_regions(pieces)) options.unit_count = trains && trains->shard ? trains->shard->region_count : 0;
    return an_gather_predict(&options, pieces->shards->rank, pieces->shards->ranks, 1);
}

an_status an_remote_weights_predict(const an_plan *plan, const an_params_pieces *pieces, int64_t runs, size_t *bytes,
                                    an_reduction_cost *cost) {
    an_status status;
    an_context *ctx = plan->ctx;
    const an_shards *s = pieces->shards;
    list l = list_of(&plan->sizes, plan->low);
    if (!s) return AN_OK;
    add_all(&l, pieces, plan, NULL);
    const size_t units = l.unit_count, all = l.run_count;
    AN_TRY(make_list(ctx, &l));
    add_all(&l, pieces, plan, NULL);
    const an_gather_options options = options_of(&l);
    const an_gather_cost whole = an_gather_predict(&options, s->rank, s->ranks, 1), once = cost_of(&l, pieces, plan);
    const int64_t times = has_regions(pieces) ? runs : 1;
    AN_CHECK(ctx,
             an_add_elements(bytes, units, sizeof *l.units) && an_add_elements(bytes, all, sizeof *l.runs) &&
                 an_add_elements(bytes, whole.bytes, 1),
             AN_ERR_OVERFLOW, "the weights that ranks gather do not fit in memory");
    cost->sent += times * once.sent;
    cost->received += times * once.received;
    cost->messages += times * once.messages;
    cost->read += times * once.read;
    status = AN_OK;
fail:
    an_release(ctx, (void **)&l.runs, all, sizeof *l.runs);
    an_release(ctx, (void **)&l.units, units, sizeof *l.units);
    return status;
}

an_status an_remote_weights_make(an_remote_weights *w, an_program *program) {
    an_params *params = program->params;
    an_context *ctx = params->ctx;
    const an_params_pieces *pieces = &params->pieces;
    list l = list_of(&params->sizes, params->low_dtype);
    *w = (an_remote_weights){.ctx = ctx, .params = params, .version = params->version - 1};
    if (!pieces->shards) return AN_OK;
    w->has_regions = has_regions(pieces);
    if (w->has_regions) AN_TRY_RETURN(compare_forms(program->plan));
    add_all(&l, pieces, program->plan, w->first);
    w->unit_count = l.unit_count;
    w->run_count = l.run_count;
    const an_status status = make_list(ctx, &l);
    w->units = l.units;
    w->runs = l.runs;
    AN_TRY_RETURN(status);
    add_all(&l, pieces, program->plan, NULL);
    const an_gather_options options = options_of(&l);
    AN_TRY_RETURN(an_gathering_create(&w->gathering, ctx, an_shards_comm(pieces->shards), &options));
    join_ranks(w, program);
    return AN_OK;
}

void an_remote_weights_destroy(an_remote_weights *w) {
    an_context *ctx = w->ctx;
    if (!ctx) return;
    if (w->exchange) *w->exchange = (an_weight_exchange){0};
    an_gathering_destroy(&w->gathering);
    an_release(ctx, (void **)&w->runs, w->run_count, sizeof *w->runs);
    an_release(ctx, (void **)&w->units, w->unit_count, sizeof *w->units);
    w->ctx = NULL;
}
