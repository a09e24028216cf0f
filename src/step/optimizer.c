/* Optimizers: what is the same for all parameters is computed here, once per update; one kernel then goes over all of
 * them. */
#include "step/optimizer.h"

#include <stddef.h>
#include <string.h>

#include "base/elementary/elementary.h"
#include "base/guard.h"
#include "base/options/option.h"
#include "kernels/update/update.h"
#include "step/optimizer_records.h"
#include "step/structs.h"

static const double most_rate = 1e30;    /* far more than any, and a number in f32 */
static const double norm_epsilon = 1e-6; /* PyTorch's: a norm of 0 divides nothing */

static double or_default(double given, double otherwise) {
    return an_is_auto(given) ? otherwise : given;
}

/* ---- what it needs ---- */

static int moments_of(const an_optimizer_record *record, const an_optimizer_options *options) {
    const an_optimizer_kind *kind = an_optimizer_kind_of(record, AN_ISA_BASE);
    return kind && kind->moments ? kind->moments(options) : record->moments;
}

int an_optimizer_moments(const an_optimizer_options *options) {
    AN_GUARD;
    an_optimizer_options o;
    if (an_optimizer_options_read(NULL, &o, options) != AN_OK) return 0;
    const an_optimizer_record *record = o.name ? NULL : an_optimizer_builtin(o.type);
    return record ? moments_of(record, &o) : AN_MOST_MOMENTS;
}

an_status an_optimizer_moments_in(an_context *ctx, const an_optimizer_options *options, int *moments) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, moments);
    an_optimizer_options o;
    const an_optimizer_record *record;
    AN_TRY_RETURN(an_optimizer_options_read(ctx, &o, options));
    AN_TRY_RETURN(an_optimizer_record_get(&record, ctx, o.type, o.name));
    *moments = moments_of(record, &o);
    return AN_OK;
}

/* ---- making one ---- */

/* Sets what is automatic to the defaults of the optimizer. */
static void resolve(an_optimizer_options *options, const an_optimizer_record *record) {
    options->beta_1 = or_default(options->beta_1, record->beta_1);
    options->beta_2 = or_default(options->beta_2, record->beta_2);
    options->name = record->name;
}

/* Whether a row of its options goes to this member of an_optimizer_options. */
static bool has_member(const an_kind *kind, size_t offset) {
    for (const an_option *o = kind ? kind->options : NULL; o && o->path; o++)
        for (const an_option_member *m = o->members; m && m->in; m++)
            if (m->offset == offset && !strcmp(m->in, "an_optimizer_options")) return true;
    return false;
}

/* Switches that other optimizers have. */
static an_status check_switches(an_context *ctx, const an_optimizer_options *given, const an_kind *kind) {
    for (const an_kind *const *other = ctx->kinds[AN_KINDS_OPTIMIZER]; other && *other; other++)
        for (const an_option *o = (*other)->options; o && o->path; o++)
            for (const an_option_member *m = o->members; m && m->in; m++) {
                if (m->kind != AN_MEMBER_BOOL || strcmp(m->in, "an_optimizer_options") != 0) continue;
                if (!*(const bool *)((const char *)given + m->offset) || has_member(kind, m->offset)) continue;
                return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s is for %s; %s does not have it", strrchr(o->path, '.') + 1,
                                (*other)->name, given->name);
            }
    return AN_OK;
}

static an_status check_own(an_context *ctx, const an_optimizer_options *o, const an_optimizer_record *record) {
    an_status status;
    const an_optimizer_kind *built_in = an_optimizer_kind_of(record, AN_ISA_BASE);
    const an_kind *kind = built_in ? &built_in->kind : NULL;
    AN_CHECK(ctx, o->momentum >= 0 && __builtin_isfinite(o->momentum), AN_ERR_ARGUMENT,
             "momentum is %g; it cannot be negative", o->momentum);
    AN_CHECK(ctx, __builtin_isfinite(o->dampening), AN_ERR_ARGUMENT, "dampening is %g", o->dampening);
    const bool has_momentum = has_member(kind, offsetof(an_optimizer_options, momentum));
    AN_CHECK(ctx, has_momentum || (o->momentum == 0 && o->dampening == 0), AN_ERR_ARGUMENT,
             "momentum and dampening are for sgd; %s has betas", record->name);
    AN_CHECK(ctx, o->dampening == 0 || has_member(kind, offsetof(an_optimizer_options, dampening)), AN_ERR_ARGUMENT,
             "dampening is for sgd; %s does not have it", record->name);
    AN_TRY(check_switches(ctx, o, kind));
    return built_in && built_in->check ? built_in->check(ctx, o) : AN_OK;
fail:
    return status;
}

static an_status check(an_context *ctx, const an_optimizer_options *o, const an_optimizer_record *record,
                       const an_params *params) {
    an_status status;
    AN_CHECK(ctx, o->beta_1 >= 0 && o->beta_1 < 1 && o->beta_2 >= 0 && o->beta_2 < 1, AN_ERR_ARGUMENT,
             "beta_1 is %g and beta_2 %g; both must be 0 or more and below 1", o->beta_1, o->beta_2);
    const bool f64 = params->sizes.trainable_dtype == AN_DTYPE_F64; /* what is above 0 there may be 0 in f32 */
    AN_CHECK(ctx, (f64 ? o->epsilon : (double)(float)o->epsilon) > 0, AN_ERR_ARGUMENT,
             "epsilon is %g; it must be greater than 0, because otherwise a weight whose gradient was always 0 would "
             "become NaN",
             o->epsilon);
    AN_TRY(check_own(ctx, o, record));
    const int moments = moments_of(record, o);
    AN_CHECK(ctx, params->has_gradients, AN_ERR_STATE,
             "the parameters were created without gradients, so they cannot be updated");
    AN_CHECK(ctx, params->moment_count >= moments, AN_ERR_STATE,
             "the parameters have %d moments, but the optimizer needs %d: create them with the number from "
             "an_optimizer_moments",
             params->moment_count, moments);
    return AN_OK;
fail:
    return status;
}

/* Pages of neighbours in one group are one run. Frozen parameters are not in the flat buffers. */
static void make_runs(an_optimizer *o) {
    const an_params *p = o->params;
    int last = -1;
    for (size_t i = 0; i < p->parameter_count; i++) {
        const an_stored *e = &p->entries[i];
        if (e->storage != AN_STORAGE_MASTER) continue;
        const int group = o->groups->members[i].group;
        const int64_t begin = e->offset / (int64_t)an_dtype_size(e->dtype) / AN_PAGE;
        const int64_t end = begin + (e->elements + AN_PAGE - 1) / AN_PAGE;
        if (group != last) {
            o->run_groups[o->run_count] = group;
            o->run_count++;
            last = group;
        }
        o->runs[o->run_count - 1].end = end;
    }
}

static an_status check_groups(an_context *ctx, const an_params *params, const an_groups *groups) {
    bool same = params->parameter_count == groups->member_count;
    for (size_t i = 0; same && i < groups->member_count; i++) {
        const an_group *group = &groups->groups[groups->members[i].group];
        same = !strcmp(groups->members[i].name, params->entries[i].name) &&
               group->frozen == (params->entries[i].storage != AN_STORAGE_MASTER);
    }
    if (same) return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_ARGUMENT,
        "these groups belong to another graph, or were created after the parameters: create the groups first");
}

/* ---- its kernel ---- The call points into itself, so it stays where it is. */

typedef struct {
    an_tensor src, dst[4];
    an_call call;
} piece_call;

static an_tensor tensor_of(void *flat, an_dtype dtype, const an_page_range *pages) {
    if (!flat) return (an_tensor){.dtype = AN_DTYPE_NONE};
    return an_flat_tensor(flat, dtype, pages);
}

static void make_update_call(const an_optimizer *o, const an_update_attributes *attributes, const an_page_range *pages,
                             bool has_low, piece_call *c) {
    const an_params *p = o->params;
    const an_dtype dtype = p->sizes.trainable_dtype;
    const int moments = moments_of(o->record, &o->options); /* the store may have more */
    c->src = tensor_of(p->gradients, dtype, pages);
    c->dst[0] = tensor_of(p->masters, dtype, pages);
    c->dst[1] = tensor_of(moments > 0 ? p->moments[0] : NULL, dtype, pages);
    c->dst[2] = tensor_of(moments > 1 ? p->moments[1] : NULL, dtype, pages);
    c->dst[3] = tensor_of(has_low ? p->low : NULL, p->low_dtype, pages);
    c->call = (an_call){
        .ctx = o->ctx, .attributes = attributes, .src_count = 1, .dst_count = 4, .src = &c->src, .dst = c->dst};
}

static an_status choose_kernel(an_optimizer *o) {
    const an_update_function f = an_optimizer_function(o->record, o->ctx->isa);
    const an_update_attributes attributes = {.rule = f.rule, .record = f.record, .options = &o->options};
    const an_page_range pages = {0, o->params->sizes.trainable_elements / AN_PAGE};
    piece_call c;
    make_update_call(o, &attributes, &pages, true, &c);
    return an_device_kernel(o->ctx, "update", &c.call, &o->update);
}

bool an_optimizer_bytes(int64_t own_pages, size_t parameters, size_t *bytes) {
    const an_optimizer *o = NULL; /* for its members' sizes */
    return an_add_elements(bytes, 1, sizeof *o) &&
           an_add_elements(bytes, parameters, sizeof *o->runs + sizeof *o->run_groups) &&
           an_page_sums_bytes(own_pages, bytes);
}

an_status an_optimizer_create(an_optimizer **optimizer, an_params *params, const an_groups *groups,
                              const an_optimizer_options *given) {
    AN_GUARD;
    AN_NEED(params, optimizer, groups);
    an_status status;
    an_context *ctx = params->ctx;
    an_optimizer *o = NULL;
    an_optimizer_options options;
    const an_optimizer_record *record;
    *optimizer = NULL;
    AN_TRY(an_optimizer_options_read(ctx, &options, given));
    AN_TRY(an_optimizer_record_get(&record, ctx, options.type, options.name));
    resolve(&options, record);
    AN_TRY(check(ctx, &options, record, params));
    AN_TRY(check_groups(ctx, params, groups));
    AN_TRY(an_alloc(ctx, (void **)&o, 1, sizeof *o));
    o->ctx = ctx;
    o->params = params;
    o->groups = groups;
    o->record = record;
    o->options = options;
    AN_TRY(an_alloc(ctx, (void **)&o->runs, params->parameter_count, sizeof *o->runs));
    AN_TRY(an_alloc(ctx, (void **)&o->run_groups, params->parameter_count, sizeof *o->run_groups));
    AN_TRY(an_page_sums_make(&o->sums, params));
    if (o->sums.pages) AN_TRY(choose_kernel(o));
    make_runs(o);
    *optimizer = o;
    return AN_OK;
fail:
    an_optimizer_destroy(&o);
    return status;
}

void an_optimizer_destroy(an_optimizer **optimizer) {
    an_optimizer *o = optimizer ? *optimizer : NULL;
    if (!o) return;
    an_context *ctx = o->ctx;
    an_page_sums_destroy(&o->sums);
    an_release(ctx, (void **)&o->run_groups, o->params->parameter_count, sizeof *o->run_groups);
    an_release(ctx, (void **)&o->runs, o->params->parameter_count, sizeof *o->runs);
    an_release(ctx, (void **)optimizer, 1, sizeof *o);
}

/* ---- the norm ---- */

an_status an_optimizer_square(an_optimizer *o, double scale) {
    an_context *ctx = o->ctx;
    AN_TRY_RETURN(an_context_check_threads(ctx));
    if (!(scale > 0 && __builtin_isfinite(scale)))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "scale is %g; it must be above 0", scale);
    o->scale = scale;
    return an_page_sums_compute(&o->sums);
}

double an_optimizer_take_squares(an_optimizer *o, double sum) {
    o->norm = __builtin_sqrt(sum) / o->scale;
    o->has_norm = true;
    return o->norm;
}

an_status an_optimizer_norm(an_optimizer *optimizer, double scale, double *norm) {
    AN_GUARD;
    AN_NEED(optimizer, norm);
    an_optimizer *o = optimizer;
    an_context *ctx = o->ctx;
    *norm = 0;
    if (o->params->pieces.shards)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "each rank has the gradients of its own pieces only: a stepper computes their norm");
    AN_TRY_RETURN(an_optimizer_square(o, scale));
    *norm = an_optimizer_take_squares(o, an_page_sums_add(&o->sums, 0, o->sums.pages));
    return AN_OK;
}

double an_optimizer_squares(const an_optimizer *o, size_t parameter) {
    const an_stored *e = &o->params->entries[parameter];
    for (int i = 0; i < o->sums.part_count; i++)
        if (o->sums.parts[i].parameter == parameter) return o->sums.parts[i].sum / (o->scale * o->scale);
    const int64_t begin = e->offset / (int64_t)an_dtype_size(e->dtype) / AN_PAGE;
    return an_page_sums_add(&o->sums, begin, begin + (e->elements + AN_PAGE - 1) / AN_PAGE) / (o->scale * o->scale);
}

an_status an_optimizer_parameter_norm(const an_optimizer *optimizer, const char *parameter, double *norm) {
    AN_GUARD;
    AN_NEED(optimizer, parameter, norm);
    const an_params *p = optimizer->params;
    an_context *ctx = optimizer->ctx;
    if (!optimizer->has_norm)
        return AN_ERROR(ctx, AN_ERR_ORDER, "the norm of a parameter is available only after an_optimizer_norm");
    if (p->pieces.shards && !optimizer->sums.parts)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "the gradients are divided among ranks: the norms of parameters must be asked for before the "
                        "first step (log.grad_norms)");
    for (size_t i = 0; i < p->parameter_count; i++) {
        const an_stored *e = &p->entries[i];
        if (strcmp(e->name, parameter) != 0) continue;
        if (e->storage != AN_STORAGE_MASTER)
            return AN_ERROR(ctx, AN_ERR_STATE, "'%s' is frozen and has no gradient", parameter);
        *norm = __builtin_sqrt(an_optimizer_squares(optimizer, i));
        return AN_OK;
    }
    return AN_ERROR(ctx, AN_ERR_UNKNOWN, "there is no parameter '%s'", parameter);
}

/* ---- the update ---- */

/* 1 - beta^t, as exact for a beta near 1 as a power by squaring is. */
static double correction(double beta, int64_t t) {
    double power = 1;
    while (t > 0) {
        if (t % 2) power *= beta;
        beta *= beta;
        t /= 2;
    }
    return 1 - power;
}

static an_status check_update(const an_optimizer *o, const an_update *u) {
    an_status status;
    an_context *ctx = o->ctx;
    AN_CHECK(ctx, u->rate >= 0 && u->rate <= most_rate, AN_ERR_ARGUMENT,
             "the learning rate is %g, which is out of range", u->rate);
    AN_CHECK(ctx, an_is_auto(u->beta_1) || (u->beta_1 >= 0 && u->beta_1 < 1), AN_ERR_ARGUMENT,
             "beta_1 is %g; it must be 0 or more and below 1", u->beta_1);
    AN_CHECK(ctx, u->clip_norm >= 0 && u->clip_value >= 0, AN_ERR_ARGUMENT,
             "clip_norm is %g and clip_value %g; they must be 0 or more, and 0 means no limit", u->clip_norm,
             u->clip_value);
    AN_CHECK(ctx, u->scale > 0 && __builtin_isfinite(u->scale), AN_ERR_ARGUMENT, "scale is %g; it must be above 0",
             u->scale);
    AN_CHECK(ctx, u->clip_norm == 0 || o->has_norm, AN_ERR_ORDER,
             "clipping needs the norm of these gradients: call an_optimizer_norm after the last backward pass and "
             "before the update");
    AN_CHECK(ctx, !o->has_norm || o->scale == u->scale, AN_ERR_ORDER,
             "the norm was computed with scale %g, but the update has scale %g: use the same scale for both", o->scale,
             u->scale);
    AN_CHECK(ctx, !o->has_norm || __builtin_isfinite(o->norm), AN_ERR_STATE,
             "the gradient norm is %g, so an update would destroy the weights", o->norm);
    return AN_OK;
fail:
    return status;
}

static void fill_attributes(an_optimizer *o, const an_update *u, an_update_attributes *a) {
    const double clip = u->clip_norm > 0 ? u->clip_norm / (o->norm + norm_epsilon) : 1;
    const double momentum = or_default(u->beta_1, o->options.momentum);
    const an_update_function f = an_optimizer_function(o->record, o->ctx->isa);
    *a = (an_update_attributes){
        .rule = f.rule,
        .record = f.record,
        .update = o->updates + 1,
        .factor = (clip < 1 ? clip : 1) / u->scale,
        .clip_value = u->clip_value,
        .beta_1 = or_default(u->beta_1, o->options.beta_1),
        .beta_2 = o->options.beta_2,
        .epsilon = o->options.epsilon,
        .momentum = o->options.momentum > 0 ? momentum : 0,
        .dampening = o->options.dampening,
        .options = &o->options,
        .first = o->updates == 0,
        .runs = o->runs,
        .run_count = o->run_count,
    };
    a->correction_1 = correction(a->beta_1, o->updates + 1);
    a->correction_2 = correction(a->beta_2, o->updates + 1);
    for (int64_t i = 0; i < o->run_count; i++) {
        const an_group *group = &o->groups->groups[o->run_groups[i]];
        o->runs[i].rate = u->rate * group->lr_scale;
        o->runs[i].weight_decay = group->weight_decay;
    }
}

/* The kernel makes low copies too, where there are any. */
static an_status update_piece(const an_optimizer *o, an_update_attributes *attributes, const an_page_range *piece) {
    const an_device *device = o->params->device;
    an_page_range part;
    for (an_page_range rest = *piece; rest.begin < rest.end; rest.begin = part.end) {
        bool has_low;
        piece_call c;
        part = an_params_low_part(o->params, &rest, &has_low);
        attributes->begin = part.begin;
        make_update_call(o, attributes, &part, has_low, &c);
        AN_TRY_RETURN(device->launch(device, o->update, &c.call));
    }
    return AN_OK;
}

an_status an_optimizer_update(an_optimizer *optimizer, const an_update *update) {
    AN_GUARD;
    AN_NEED(optimizer, update);
    an_optimizer *o = optimizer;
    an_context *ctx = o->ctx;
    an_params *p = o->params;
    an_update own;
    an_update_attributes attributes;
    AN_TRY_RETURN(an_context_check_threads(ctx));
    AN_TRY_RETURN(an_update_read(ctx, &own, update));
    AN_TRY_RETURN(check_update(o, &own));
    fill_attributes(o, &own, &attributes);
    for (int i = 0; i < an_params_piece_count(p); i++) {
        const an_page_range piece = an_params_piece(p, i);
        AN_TRY_RETURN(update_piece(o, &attributes, &piece));
    }
    o->updates++;
    o->has_norm = false;
    p->version++;
    p->low_version = p->version;
    return AN_OK;
}

int64_t an_optimizer_updates(const an_optimizer *optimizer) {
    AN_NEED_OR(0, optimizer);
    return optimizer->updates;
}

void an_optimizer_set_updates(an_optimizer *optimizer, int64_t updates) {
    AN_NEED_OR(, optimizer);
    optimizer->updates = updates < 0 ? 0 : updates;
}
