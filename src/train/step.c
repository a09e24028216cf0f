/* One step of the optimizer. The state machine holds the order; leaves are added in the tree of comm/tree.h. */
#include "train/step.h"

#include <string.h>

#include "base/guard.h"
#include "base/heartbeat.h"
#include "base/structs.h"
#include "exec/array.h"
#include "ops/ops.h"
#include "ops/sink.h"

/* ---- the order ---- */

typedef enum { BEGIN, MICRO_BATCH, REDUCE, UNSCALE, CLIP, UPDATE, SCHEDULE, END, CALLS } call;

#define AT(place) (1U << AN_STEP_##place)

/* Where each call may be made, where it leads, and what went wrong anywhere else. */
static const struct {
    unsigned from;
    an_step_place to;
    const char *name, *too_early, *too_late;
} calls[CALLS] = {
    [BEGIN] = {AT(IDLE), AN_STEP_BEGUN, "an_step_begin", "",
               "the previous step has not ended: call an_step_end, or an_step_cancel to abandon it"},
    [MICRO_BATCH] = {AT(BEGUN) | AT(ACCUMULATED), AN_STEP_ACCUMULATED, "an_step_micro_batch",
                     "the divisor of the loss must be known before the first micro-batch: call an_step_begin first",
                     "the gradients of this step are already reduced; another micro-batch would not be part of them"},
    [REDUCE] = {AT(ACCUMULATED), AN_STEP_REDUCED, "an_step_reduce",
                "there is no gradient yet, because no micro-batch has run",
                "the gradients of this step are already reduced; reducing them again would count them twice"},
    [UNSCALE] = {AT(REDUCED), AN_STEP_UNSCALED, "an_step_unscale",
                 "the gradients are not complete: call an_step_reduce before unscaling",
                 "the gradients of this step are already unscaled; unscaling them again would make them too small"},
    [CLIP] = {AT(UNSCALED), AN_STEP_CLIPPED, "an_step_clip",
              "clipping scaled gradients would use the wrong norm: call an_step_unscale first",
              "this step is already clipped or updated, so clipping would change nothing"},
    [UPDATE] =
        {AT(UNSCALED) | AT(CLIPPED), AN_STEP_UPDATED, "an_step_update",
         "an update needs gradients that are complete and unscaled: call an_step_reduce and an_step_unscale first",
         "the weights are already updated with this gradient; a second update would take the step twice"},
    [SCHEDULE] = {AT(UPDATED), AN_STEP_SCHEDULED, "an_step_schedule",
                  "the schedule advances after the update; otherwise the first learning rate would never be used",
                  "the schedule has already advanced in this step"},
    [END] = {AT(SCHEDULED), AN_STEP_IDLE, "an_step_end",
             "the step is not complete: update the weights and advance the schedule before ending it, or abandon it "
             "with an_step_cancel",
             ""},
};

static an_status check_order(const an_stepper *s, call c) {
    if (calls[c].from >> s->place & 1U) return AN_OK;
    const bool late = (1U << s->place) > calls[c].from; /* behind every place it may be called from */
    return AN_ERROR(s->ctx, AN_ERR_ORDER, "%s: %s", calls[c].name,
                    late && *calls[c].too_late ? calls[c].too_late : calls[c].too_early);
}

/* ---- making one ---- */

static bool is_state(const an_node *node) {
    return node->op == &an_op_output && ((const an_output_attributes *)node->attributes)->state;
}

bool an_stepper_bytes(const an_graph *model, int64_t leaves, size_t *bytes) {
    const size_t nodes = (size_t)an_tree_nodes(leaves);
    const an_stepper *s = NULL; /* for its members' sizes */
    size_t states = 0, elements = 0, most = 0;
    for (const an_node *n = model->first; n; n = n->next) {
        if (!is_state(n)) continue;
        const an_result *r = an_node_input(n, 0);
        size_t each = 1;
        for (int d = 0; d < r->ndims; d++) each *= (size_t)r->dims[d]; /* those of a run state: laid out, so they fit */
        states++;
        elements += each;
        if (each > most) most = each;
    }
    return an_add_elements(bytes, 1, sizeof *s) &&
           an_add_elements(bytes, nodes, sizeof *s->buffers + sizeof *s->losses + sizeof *s->node_samples) &&
           an_add_elements(bytes, states, sizeof *s->states) &&
           an_add_elements(bytes, nodes * elements, sizeof *s->states->sum) &&
           an_add_elements(bytes, most, sizeof *s->staging);
}

/* Run states that the training program updates. */
static an_status find_states(an_stepper *s) {
    an_status status;
    an_context *ctx = s->ctx;
    const an_program_form *form = &s->program->forms[AN_FORM_TRAIN_FIRST];
    const an_params *p = s->params;
    int count = 0;
    for (const an_node *n = form->graph->first; n; n = n->next) count += is_state(n);
    AN_TRY(an_alloc(ctx, (void **)&s->states, (size_t)count, sizeof *s->states));
    s->state_count = count;
    count = 0;
    for (const an_node *n = form->graph->first; n; n = n->next) {
        const an_output_attributes *a = n->attributes;
        if (!is_state(n)) continue;
        const double *momentum = an_node_attribute(an_node_input(n, 0)->node, "momentum", AN_ATTRIBUTE_FLOAT);
        an_step_state *state = &s->states[count++];
        AN_CHECK(ctx, momentum, AN_ERR_UNSUPPORTED, "the op that computes the statistic '%s' has no momentum", a->name);
        state->momentum = *momentum;
        for (size_t i = p->parameter_count; i < p->entry_count; i++)
            if (!strcmp(p->entries[i].name, a->name)) state->stored = &p->entries[i];
        AN_CHECK(ctx, state->stored, AN_ERR_UNKNOWN, "the parameters have no run state '%s'", a->name);
        state->name = state->stored->name;
        const int64_t elements = state->stored->elements;
        if (elements > s->staging_elements) s->staging_elements = elements;
        AN_TRY(an_alloc(ctx, (void **)&state->sum, (size_t)(elements * s->buffer_count), sizeof *state->sum));
    }
    AN_TRY(an_alloc(ctx, (void **)&s->staging, (size_t)s->staging_elements, sizeof *s->staging));
    return AN_OK;
fail:
    return status;
}

static an_status check_options(an_context *ctx, const an_program *program, const an_optimizer *optimizer,
                               const an_stepper_options *o) {
    an_status status;
    AN_CHECK(ctx, program->forms[AN_FORM_TRAIN_FIRST].graph, AN_ERR_ARGUMENT,
             "the program cannot train, because its plan was created without AN_PROGRAM_TRAINING");
    AN_CHECK(ctx, program->params == optimizer->params, AN_ERR_ARGUMENT,
             "the program and the optimizer have different parameters");
    AN_CHECK(ctx, o->rate >= 0, AN_ERR_ARGUMENT, "the rate is %g; it must be 0 or more", o->rate);
    AN_CHECK(ctx, o->clip_norm >= 0 && o->clip_value >= 0, AN_ERR_ARGUMENT,
             "clip_norm is %g and clip_value %g; they must be 0 or more, and 0 means no limit", o->clip_norm,
             o->clip_value);
    AN_CHECK(ctx, o->leaves >= 0 && o->leaves <= AN_MOST_LEAVES, AN_ERR_ARGUMENT, "leaves is %lld, but must be 1 to %d",
             (long long)o->leaves, AN_MOST_LEAVES);
    return AN_OK;
fail:
    return status;
}

static bool is_scaler(const an_scaler *s) {
    return s->scale > 0 && __builtin_isfinite(s->scale) && s->growth > 0 && s->backoff > 0 && s->interval > 0;
}

/* Buffer i ← buffer i + buffer i + 1. It points into itself, so it stays where it is. */
typedef struct {
    an_tensor src[2];
    an_call call;
} sum_call;

static void make_sum_call(const an_stepper *s, int i, sum_call *c) {
    for (int k = 0; k < 2; k++)
        c->src[k] = (an_tensor){.data = s->buffers[i + k],
                                .dtype = s->params->sizes.trainable_dtype,
                                .ndims = 1,
                                .dims = {s->params->sizes.trainable_elements},
                                .strides = {1}};
    c->call = (an_call){.ctx = s->ctx, .src_count = 2, .dst_count = 1, .src = c->src, .dst = c->src};
}

an_status an_stepper_create(an_stepper **stepper, an_program *program, an_optimizer *optimizer,
                            const an_schedule *schedule, const an_stepper_options *given) {
    AN_GUARD;
    AN_NEED(program, stepper, optimizer);
    an_status status;
    an_context *ctx = program->ctx;
    an_stepper *s = NULL;
    an_stepper_options options;
    const an_device *device = program->device;
    *stepper = NULL;
    AN_TRY(an_stepper_options_read(ctx, &options, given));
    AN_TRY(check_options(ctx, program, optimizer, &options));
    AN_TRY(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    s->ctx = ctx;
    s->program = program;
    s->params = program->params;
    s->optimizer = optimizer;
    s->schedule = schedule;
    s->options = options;
    if (options.leaves == 0) s->options.leaves = 1;
    AN_TRY(an_scaler_read(ctx, &s->scaler, options.scaler));
    s->options.scaler = NULL; /* the caller's */
    AN_CHECK(ctx, is_scaler(&s->scaler), AN_ERR_ARGUMENT,
             "the loss scaler has scale %g, growth %g, backoff %g and interval %lld; they must be above 0",
             s->scaler.scale, s->scaler.growth, s->scaler.backoff, (long long)s->scaler.interval);
    if (!options.scales) s->scaler.scale = 0; /* as checkpoints have it */
    s->leaf = -1;
    s->buffer_count = an_tree_nodes(s->options.leaves);
    AN_TRY(an_alloc(ctx, (void **)&s->buffers, (size_t)s->buffer_count, sizeof *s->buffers));
    AN_TRY(an_alloc(ctx, (void **)&s->losses, (size_t)s->buffer_count, sizeof *s->losses));
    AN_TRY(an_alloc(ctx, (void **)&s->node_samples, (size_t)s->buffer_count, sizeof *s->node_samples));
    s->buffers[0] = s->params->gradients;
    const size_t bytes = (size_t)an_params_flat_bytes(&s->params->sizes);
    for (int i = 1; i < s->buffer_count && bytes; i++) {
        AN_TRY(device->allocate(device, ctx, &s->buffers[i], bytes));
        AN_TRY(device->fill(device, ctx, s->buffers[i], 0, bytes));
    }
    if (s->buffer_count > 1 && bytes) {
        sum_call sum;
        make_sum_call(s, 0, &sum);
        AN_TRY(an_device_kernel(ctx, an_op_add.name, &sum.call, &s->add));
    }
    AN_TRY(find_states(s));
    *stepper = s;
    return AN_OK;
fail:
    an_stepper_destroy(&s);
    return status;
}

void an_stepper_destroy(an_stepper **stepper) {
    an_stepper *s = stepper ? *stepper : NULL;
    if (!s) return;
    an_context *ctx = s->ctx;
    const an_device *device = s->program->device;
    const size_t bytes = (size_t)an_params_flat_bytes(&s->params->sizes);
    an_step_cancel(s); /* the parameters get their own buffer back */
    for (int i = 0; i < s->state_count; i++)
        if (s->states[i].stored)
            an_release(ctx, (void **)&s->states[i].sum, (size_t)(s->states[i].stored->elements * s->buffer_count),
                       sizeof *s->states[i].sum);
    an_release(ctx, (void **)&s->states, (size_t)s->state_count, sizeof *s->states);
    an_release(ctx, (void **)&s->staging, (size_t)s->staging_elements, sizeof *s->staging);
    for (int i = 0; s->buffers && i < s->buffer_count; i++)
        if (s->buffers[i] != s->params->gradients) device->release(device, ctx, &s->buffers[i], bytes);
    an_release(ctx, (void **)&s->node_samples, (size_t)s->buffer_count, sizeof *s->node_samples);
    an_release(ctx, (void **)&s->losses, (size_t)s->buffer_count, sizeof *s->losses);
    an_release(ctx, (void **)&s->buffers, (size_t)s->buffer_count, sizeof *s->buffers);
    an_release(ctx, (void **)stepper, 1, sizeof *s);
}

/* ---- leaves ---- */

/* Node top - 1 ← node top - 1 + node top, of everything that leaves have. */
static an_status add_nodes(an_stepper *s) {
    an_context *ctx = s->ctx;
    const int top = s->tree.count - 1;
    if (s->add) {
        const an_device *device = s->program->device;
        sum_call sum;
        make_sum_call(s, top - 1, &sum);
        AN_TRY_RETURN(device->launch(device, s->add, &sum.call));
    }
    s->losses[top - 1] += s->losses[top];
    s->node_samples[top - 1] += s->node_samples[top];
    for (int i = 0; i < s->state_count; i++) {
        const int64_t elements = s->states[i].stored->elements;
        double *left = s->states[i].sum + (top - 1) * elements;
        for (int64_t k = 0; k < elements; k++) left[k] += left[elements + k];
    }
    an_tree_added(&s->tree);
    return AN_OK;
}

static void end_leaf(an_stepper *s) {
    if (s->leaf < 0) return;
    an_tree_push(&s->tree, s->leaf);
    s->leaf = -1;
}

/* The new leaf's gradients go to the first free buffer. */
static an_status begin_leaf(an_stepper *s, int64_t leaf) {
    an_context *ctx = s->ctx;
    end_leaf(s);
    while (an_tree_must_add(&s->tree, leaf)) AN_TRY_RETURN(add_nodes(s));
    const int at = s->tree.count;
    an_program_bind_gradients(s->program, s->buffers[at]);
    s->losses[at] = 0;
    s->node_samples[at] = 0;
    for (int i = 0; i < s->state_count; i++) {
        const int64_t elements = s->states[i].stored->elements;
        memset(s->states[i].sum + at * elements, 0, (size_t)elements * sizeof(double));
    }
    s->leaf = leaf;
    return AN_OK;
}

/* Adds the statistics of the last run, times its samples, to those of its leaf. */
static an_status add_states(an_stepper *s, int64_t samples) {
    an_context *ctx = s->ctx;
    for (int i = 0; i < s->state_count; i++) {
        const an_stored *e = s->states[i].stored;
        an_array array = {0};
        double *sum = s->states[i].sum + s->tree.count * e->elements;
        array.data = s->staging;
        AN_TRY_RETURN(an_program_get_output(s->program, s->states[i].name, &array));
        an_convert_to_f64(e->dtype, e->elements, s->staging);
        for (int64_t k = 0; k < e->elements; k++) sum[k] += s->staging[k] * (double)samples;
    }
    return AN_OK;
}

/* ---- the calls ---- */

/* Models with dropout have these; others do not. */
static bool has_scalar(const an_program *program, const char *name) {
    for (int i = 0; i < program->plan->scalar_count; i++)
        if (!strcmp(program->plan->scalars[i], name)) return true;
    return false;
}

static an_status set_loss_gradient(an_stepper *s) {
    const double scale = s->options.scales ? s->scaler.scale : 1;
    return an_program_set_scalar(s->program, "loss_gradient", scale / ((double)s->divisor * (double)s->each));
}

an_status an_step_divide(an_stepper *stepper, int64_t divisor, int64_t each) {
    stepper->divisor = divisor;
    stepper->each = each;
    return set_loss_gradient(stepper);
}

an_status an_step_begin(an_stepper *stepper, int64_t targets) {
    AN_GUARD;
    AN_NEED(stepper);
    an_stepper *s = stepper;
    an_context *ctx = s->ctx;
    AN_TRY_RETURN(check_order(s, BEGIN));
    if (targets < 1)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the step has %lld targets, because every label of its batch is masked",
                        (long long)targets);
    s->divisor = targets;
    s->each = 1;
    AN_TRY_RETURN(set_loss_gradient(s));
    if (has_scalar(s->program, "seed")) AN_TRY_RETURN(an_program_set_scalar_i64(s->program, "seed", s->options.seed));
    if (has_scalar(s->program, "step")) AN_TRY_RETURN(an_program_set_scalar_i64(s->program, "step", s->steps));
    s->targets = targets;
    s->samples = 0;
    s->skipped = s->clipped = false;
    s->tree.count = 0;
    s->leaf = -1;
    s->place = calls[BEGIN].to;
    return AN_OK;
}

an_status an_step_micro_batch(an_stepper *stepper, int64_t leaf, int64_t samples) {
    AN_GUARD;
    AN_NEED(stepper);
    an_stepper *s = stepper;
    an_context *ctx = s->ctx;
    const int64_t last = s->leaf >= 0 ? s->leaf : s->tree.count ? s->tree.parts[s->tree.count - 1] : -1;
    double loss;
    AN_TRY_RETURN(check_order(s, MICRO_BATCH));
    if (leaf < 0 || leaf < last || leaf >= s->options.leaves)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "leaf %lld comes after leaf %lld of %lld, but leaves must come in increasing order",
                        (long long)leaf, (long long)last, (long long)s->options.leaves);
    if (samples < 1)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "a micro-batch cannot have %lld samples", (long long)samples);
    const bool first = leaf != s->leaf;
    if (first) AN_TRY_RETURN(begin_leaf(s, leaf));
    AN_TRY_RETURN(an_program_run(s->program, first ? AN_FORM_TRAIN_FIRST : AN_FORM_TRAIN_NEXT));
    AN_TRY_RETURN(an_program_loss(s->program, &loss));
    AN_TRY_RETURN(add_states(s, samples));
    s->losses[s->tree.count] += loss / (double)s->each;
    s->node_samples[s->tree.count] += samples;
    s->place = calls[MICRO_BATCH].to;
    return AN_OK;
}

an_status an_step_reduce(an_stepper *stepper) {
    AN_GUARD;
    AN_NEED(stepper);
    an_stepper *s = stepper;
    an_context *ctx = s->ctx;
    AN_TRY_RETURN(check_order(s, REDUCE));
    AN_TRY_RETURN(an_context_check_threads(ctx));
    end_leaf(s);
    while (s->tree.count > 1) AN_TRY_RETURN(add_nodes(s));
    s->samples = s->node_samples[0];
    s->place = calls[REDUCE].to;
    return AN_OK;
}

an_status an_step_unscale(an_stepper *stepper) {
    AN_GUARD;
    AN_NEED(stepper);
    an_stepper *s = stepper;
    an_context *ctx = s->ctx;
    const double scale = s->options.scales ? s->scaler.scale : 1;
    AN_TRY_RETURN(check_order(s, UNSCALE));
    AN_TRY_RETURN(an_optimizer_norm(s->optimizer, scale, &s->norm));
    const bool finite = __builtin_isfinite(s->norm) && __builtin_isfinite(s->losses[0]);
    if (!finite && !s->options.scales && !s->options.skips)
        return AN_ERROR(ctx, AN_ERR_NONFINITE, "the loss is %g and the gradient norm is %g, so nothing was updated",
                        s->losses[0] / (double)s->divisor, s->norm);
    s->skipped = !finite;
    s->place = calls[UNSCALE].to;
    return AN_OK;
}

an_status an_step_clip(an_stepper *stepper) {
    AN_GUARD;
    AN_NEED(stepper);
    an_context *ctx = stepper->ctx;
    AN_TRY_RETURN(check_order(stepper, CLIP));
    stepper->clipped = true;
    stepper->place = calls[CLIP].to;
    return AN_OK;
}

/* running ← (1 - momentum)·running + momentum·mean, in f64, rounded once. */
static an_status update_states(an_stepper *s) {
    an_context *ctx = s->ctx;
    for (int i = 0; i < s->state_count; i++) {
        const an_step_state *state = &s->states[i];
        const an_stored *e = state->stored;
        an_array array = {0};
        array.data = s->staging;
        array.dtype = e->dtype;
        array.ndims = e->ndims;
        memcpy(array.dims, e->dims, sizeof array.dims);
        AN_TRY_RETURN(an_params_get(s->params, state->name, AN_PART_WEIGHT, &array));
        an_convert_to_f64(e->dtype, e->elements, s->staging);
        for (int64_t k = 0; k < e->elements; k++)
            s->staging[k] += state->momentum * (state->sum[k] / (double)s->samples - s->staging[k]);
        an_convert_from_f64(e->dtype, e->elements, s->staging);
        AN_TRY_RETURN(an_params_set(s->params, state->name, AN_PART_WEIGHT, &array));
    }
    return AN_OK;
}

double an_stepper_rate(const an_stepper *stepper) {
    AN_GUARD;
    AN_NEED_OR(0, stepper);
    const double factor = stepper->schedule ? an_schedule_factor(stepper->schedule, stepper->step) : 1;
    return stepper->options.rate * factor;
}

an_status an_step_update(an_stepper *stepper) {
    AN_GUARD;
    AN_NEED(stepper);
    an_stepper *s = stepper;
    an_context *ctx = s->ctx;
    an_update update;
    an_update_init(&update, sizeof update);
    AN_TRY_RETURN(check_order(s, UPDATE));
    an_heartbeat_enter(ctx, AN_HEARTBEAT_STEP, "update");
    if (!s->skipped) {
        update.rate = an_stepper_rate(s);
        const double momentum = s->schedule ? an_schedule_momentum(s->schedule, s->step) : 0;
        if (momentum > 0) update.beta_1 = momentum;
        update.scale = s->options.scales ? s->scaler.scale : 1;
        update.clip_norm = s->clipped ? s->options.clip_norm : 0;
        update.clip_value = s->clipped ? s->options.clip_value : 0;
        AN_TRY_RETURN(an_optimizer_update(s->optimizer, &update));
        AN_TRY_RETURN(update_states(s));
    }
    s->place = calls[UPDATE].to;
    return AN_OK;
}

an_status an_step_schedule(an_stepper *stepper) {
    AN_GUARD;
    AN_NEED(stepper);
    an_context *ctx = stepper->ctx;
    AN_TRY_RETURN(check_order(stepper, SCHEDULE));
    stepper->place = calls[SCHEDULE].to;
    return AN_OK;
}

an_status an_step_end(an_stepper *stepper, an_step_metrics *metrics) {
    AN_GUARD;
    AN_NEED(stepper);
    an_stepper *s = stepper;
    an_context *ctx = s->ctx;
    AN_TRY_RETURN(check_order(s, END));
    if (metrics) AN_TRY_RETURN(an_step_metrics_check(ctx, metrics));
    s->steps++;
    const an_step_metrics own = {.step = s->steps,
                                 .loss = s->losses[0] / (double)s->divisor,
                                 .rate = an_stepper_rate(s),
                                 .norm = s->norm,
                                 .scale = s->options.scales ? s->scaler.scale : 1,
                                 .targets = s->targets,
                                 .samples = s->samples,
                                 .skipped = s->skipped,
                                 .skips = s->skips + s->skipped};
    if (metrics) AN_TRY_RETURN(an_step_metrics_write(ctx, metrics, &own));
    s->skips += s->skipped;
    s->step += !s->skipped;
    s->skips_in_row = s->skipped ? s->skips_in_row + 1 : 0;
    if (s->options.scales) an_scaler_update(&s->scaler, !s->skipped);
    s->tree.count = 0;
    s->place = calls[END].to;
    return AN_OK;
}

void an_step_cancel(an_stepper *stepper) {
    AN_NEED_OR(, stepper);
    if (stepper->buffers && stepper->program) an_program_bind_gradients(stepper->program, stepper->params->gradients);
    stepper->tree.count = 0;
    stepper->leaf = -1;
    stepper->place = AN_STEP_IDLE;
}
