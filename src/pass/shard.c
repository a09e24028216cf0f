/* shard: adds what ranks do with each other while a program runs. Replaces the hooks, buckets, wrappers and no_sync()
 * of hand-written data parallelism.
 *
 * Where every rank has all gradients, an `exchange` comes after the last gradient of each unit, so that ranks exchange
 * it while the rest of backward still computes. Where ranks have pieces of gradients or weights, shard_gradients.c and
 * shard_regions.c say what is added.
 *
 * It runs after order, because what is read and complete at which point is what it asks, and after recompute, because
 * nothing that ranks do together is done twice. Units are exchanged in the same order in every form, as one rank may
 * end its step in the form FIRST while another ends it in NEXT: a unit with a parameter that no gradient reaches,
 * whose zeros are written by the form FIRST alone, is exchanged at the end. */
#include "pass/shard.h"

#include "ops/sink.h"
#include "pass/insert.h"

static an_status add_exchange(an_graph *g, int64_t unit, an_node *after) {
    return an_pass_insert(g,
                          &(an_insertion){.op = &an_op_exchange,
                                          .attributes = &(an_exchange_attributes){.unit = unit},
                                          .before = after ? after->next : NULL,
                                          .like = after,
                                          .phase = AN_PHASE_BACKWARD},
                          NULL);
}

static an_status add_exchanges(const an_sharder *s, bool *reached, bool *late, an_node **last) {
    an_graph *g = s->g;
    for (an_node *n = g->first; n; n = n->next) {
        if (!(n->op->flags & AN_OP_BINDS_GRADIENT)) continue;
        const int64_t parameter = an_gradient_parameter(n);
        reached[parameter] = reached[parameter] || !an_gradient_is_zeros(n);
        last[an_units_at(s->units, s->unit_count, an_gradient_offset(g, n))] = n;
    }
    for (size_t i = 0; i < g->parameter_count; i++)
        if (s->unit_of[i] >= 0 && !reached[i]) late[s->unit_of[i]] = true;
    for (int unit = 0; unit < s->unit_count; unit++)
        if (!late[unit]) AN_TRY_RETURN(add_exchange(g, unit, last[unit]));
    for (int unit = 0; unit < s->unit_count; unit++)
        if (late[unit]) AN_TRY_RETURN(add_exchange(g, unit, NULL));
    return AN_OK;
}

static an_status exchange_all(const an_sharder *s) {
    an_status status;
    an_context *ctx = s->g->ctx;
    const size_t parameters = s->g->parameter_count, units = (size_t)s->unit_count;
    bool *reached = NULL,
         *late = NULL;     /* by parameter: a gradient reaches it; by unit: none reaches one of its parameters */
    an_node **last = NULL; /* by unit: its last gradient */
    AN_TRY(an_alloc(ctx, (void **)&reached, parameters, sizeof *reached));
    AN_TRY(an_alloc(ctx, (void **)&late, units, sizeof *late));
    AN_TRY(an_alloc(ctx, (void **)&last, units, sizeof *last));
    status = add_exchanges(s, reached, late, last);
fail:
    an_release(ctx, (void **)&last, units, sizeof *last);
    an_release(ctx, (void **)&late, units, sizeof *late);
    an_release(ctx, (void **)&reached, parameters, sizeof *reached);
    return status;
}

static an_status name_units(an_sharder *s) {
    an_arena *arena = &s->g->arena;
    AN_TRY_RETURN(an_arena_alloc(arena, (void **)&s->names, (size_t)s->unit_count, sizeof *s->names));
    for (int i = 0; i < s->unit_count; i++) {
        char *name = NULL;
        s->names[i] = "the rest of the model";
        if (!*s->units[i].name) continue;
        AN_TRY_RETURN(an_arena_alloc(arena, (void **)&name, an_unit_describe(&s->units[i], NULL), 1));
        an_unit_describe(&s->units[i], name);
        s->names[i] = name;
    }
    return AN_OK;
}

an_status an_pass_shard(an_graph *g, const an_pass_options *options) {
    an_status status;
    an_context *ctx = g->ctx;
    const size_t parameters = g->parameter_count, maximum = an_units_most(g);
    const bool trains = an_form_trains(options->form), scatters = trains && options->scatters;
    an_sharder s = {.g = g, .form = options->form};
    if (!scatters && !options->gathers && !(trains && options->exchanges)) return AN_OK;
    AN_TRY(an_alloc(ctx, (void **)&s.units, maximum, sizeof *s.units));
    AN_TRY(an_alloc(ctx, (void **)&s.unit_of, parameters, sizeof *s.unit_of));
    s.unit_count = an_units_find(g, s.units, NULL, s.unit_of);
    AN_TRY(name_units(&s));
    if (options->gathers) AN_TRY(an_shard_weights(&s));
    if (scatters) AN_TRY(an_shard_gradients(&s));
    if (trains && options->exchanges) AN_TRY(exchange_all(&s));
    if (options->gathers) AN_TRY(an_graph_refresh_views(g));
    if (options->gathers || scatters)
        AN_TRY(an_pass_prune(g, options)); /* weights, views of them and zeros that nobody reads any more */
    status = AN_OK;
fail:
    an_release(ctx, (void **)&s.unit_of, parameters, sizeof *s.unit_of);
    an_release(ctx, (void **)&s.units, maximum, sizeof *s.units);
    return status;
}
