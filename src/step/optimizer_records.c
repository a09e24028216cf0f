#include "step/optimizer_records.h"

#include <stdio.h>
#include <string.h>

#include "base/added.h"
#include "base/guard.h"
#include "base/status.h"
#include "base/text/nearest.h"
#include "base/text/text.h"

/* By an_optimizer_type, and by level of instructions. */
static const an_optimizer_kind *const builtin[][AN_LEVELS] = {
#define AN_OPTIMIZER(type, name) AN_OPTIMIZER_LEVELS(name),
#include "anneal/optimizers.def"
#undef AN_OPTIMIZER
};
enum { BUILTIN = sizeof builtin / sizeof *builtin, MOST_MOMENTS = 2 };

/* ---- the rule of records without one ---- */

static an_optimizer_numbers numbers_of(const an_update_attributes *a, const an_update_run *run) {
    return (an_optimizer_numbers){.update = a->update,
                                  .rate = run->rate,
                                  .weight_decay = run->weight_decay,
                                  .beta_1 = a->beta_1,
                                  .beta_2 = a->beta_2,
                                  .epsilon = a->epsilon,
                                  .correction_1 = a->correction_1,
                                  .correction_2 = a->correction_2};
}

static void record_page_f32(const an_update_attributes *a, const an_update_run *run, float *g, float *w,
                            float *const *moments) {
    const an_optimizer_numbers numbers = numbers_of(a, run);
    a->record->update_f32(a->record->user, &numbers, AN_PAGE, g, w, moments[0], moments[1]);
}

static void record_page_f64(const an_update_attributes *a, const an_update_run *run, double *g, double *w,
                            double *const *moments) {
    const an_optimizer_numbers numbers = numbers_of(a, run);
    a->record->update_f64(a->record->user, &numbers, AN_PAGE, g, w, moments[0], moments[1]);
}

static const an_update_rule record_rule = {.page_f32 = record_page_f32, .page_f64 = record_page_f64};

/* ---- asking ---- */

/* All of them, one after the other; NULL behind the last. */
static const an_optimizer_record *record_at(const an_context *ctx, int index) {
    if (index < BUILTIN) return &builtin[index][0]->record;
    const an_added *item = an_added_at(ctx, AN_ADDED_OPTIMIZER, index - BUILTIN);
    return item ? (const an_optimizer_record *)item->record : NULL;
}

const an_optimizer_record *an_optimizer_builtin(an_optimizer_type type) {
    return (unsigned)type < BUILTIN ? &builtin[type][0]->record : NULL;
}

const an_optimizer_kind *an_optimizer_kind_of(const an_optimizer_record *record, an_isa isa) {
    for (int i = 0; i < BUILTIN; i++)
        if (&builtin[i][0]->record == record) return builtin[i][an_level_of(isa)];
    return NULL;
}

an_update_function an_optimizer_function(const an_optimizer_record *record, an_isa isa) {
    const an_optimizer_kind *kind = an_optimizer_kind_of(record, isa);
    if (!kind) return (an_update_function){&record_rule, record};
    return (an_update_function){kind->rule.page_f32 ? &kind->rule : &record_rule, &kind->record};
}

const an_optimizer_record *an_optimizer_record_find(const an_context *ctx, const char *name) {
    const an_optimizer_record *record;
    for (int i = 0; (record = record_at(ctx, i)); i++)
        if (!strcmp(record->name, name)) return record;
    return NULL;
}

an_optimizer_names an_optimizer_names_list(const an_context *ctx) {
    an_optimizer_names list = {""};
    const an_optimizer_record *record;
    size_t used = 0;
    for (int i = 0; (record = record_at(ctx, i)) && used < sizeof list.text; i++)
        used += (size_t)snprintf(list.text + used, sizeof list.text - used, "%s%s", i ? ", " : "", record->name);
    return list;
}

static an_status refuse_name(an_context *ctx, const char *name) {
    const an_optimizer_record *known;
    an_nearest nearest;
    an_nearest_init(&nearest, name, strlen(name));
    for (int i = 0; (known = record_at(ctx, i)); i++) an_nearest_consider(&nearest, known->name, strlen(known->name));
    return AN_ERROR(ctx, AN_ERR_UNKNOWN,
                    "there is no optimizer '%s'; this program has %s (an_context_add_optimizer adds others)%s",
                    AN_QUOTE(name), an_optimizer_names_list(ctx).text, AN_NEAREST(&nearest));
}

an_status an_optimizer_record_get(const an_optimizer_record **record, an_context *ctx, an_optimizer_type type,
                                  const char *name) {
    *record = name ? an_optimizer_record_find(ctx, name) : an_optimizer_builtin(type);
    if (*record) return AN_OK;
    if (name) return refuse_name(ctx, name);
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "optimizer type %d does not exist", (int)type);
}

/* ---- adding ---- */

static bool is_beta(double beta) {
    return beta >= 0 && beta < 1;
}

an_status an_context_add_optimizer(an_context *ctx, const an_optimizer_record *record) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, record);
    an_status status;
    const an_optimizer_record *r = record;
    an_added *added;
    AN_CHECK(ctx, r->name && an_added_is_name(r->name), AN_ERR_ARGUMENT,
             "an optimizer cannot be called '%s': a name is a lower-case letter, then lower-case letters, digits and "
             "underscores, at most %d",
             r->name ? AN_QUOTE(r->name) : "NULL", AN_ADDED_NAME - 1);
    AN_CHECK(ctx, !an_optimizer_record_find(ctx, r->name), AN_ERR_ARGUMENT,
             "there already is an optimizer '%s'; give this one another name", r->name);
    AN_CHECK(ctx, r->version >= 1, AN_ERR_ARGUMENT, "optimizer '%s' has version %d; versions are counted from 1",
             r->name, r->version);
    AN_CHECK(ctx, r->moments >= 0 && r->moments <= MOST_MOMENTS, AN_ERR_ARGUMENT,
             "optimizer '%s' has %d moments; it can have 0 to %d", r->name, r->moments, MOST_MOMENTS);
    AN_CHECK(ctx, r->update_f32 && r->update_f64, AN_ERR_ARGUMENT,
             "optimizer '%s' needs both functions, update_f32 and update_f64", r->name);
    AN_CHECK(ctx, is_beta(r->beta_1) && is_beta(r->beta_2), AN_ERR_ARGUMENT,
             "optimizer '%s' has betas %g and %g; they are shares of the past, from 0 to below 1", r->name, r->beta_1,
             r->beta_2);
    AN_CHECK(ctx, r->weight_decay >= 0 && __builtin_isfinite(r->weight_decay), AN_ERR_ARGUMENT,
             "optimizer '%s' has weight_decay %g; it is a number that is not negative", r->name, r->weight_decay);
    AN_TRY(an_added_add(ctx, AN_ADDED_OPTIMIZER, r->name, r, sizeof *r, &added));
    ((an_optimizer_record *)added->record)->name = added->name;
    return AN_OK;
fail:
    return status;
}
