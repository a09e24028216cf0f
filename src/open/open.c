/* Opens a run from its config: data, model, and the options of the trainer. */
#include "open/open.h"

#include <stdio.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "anneal/ranks.h"
#include "anneal/run.h"
#include "base/context.h"
#include "base/guard.h"
#include "config/structs.h"
#include "kinds/data/data.h"
#include "kinds/models/models.h"
#include "launch/launcher.h"

enum { MOST_RULES = 64, MOST_ENTRIES = 64 };

typedef struct {
    an_config *config;
    an_context *ctx;
    const an_open_options *opened;
    an_dataset *training, *evaluation; /* NULL: there is none */
    const an_dataset *vocabulary;      /* the first text by characters, or the first table; NULL: none */
    an_graph *graph;
    an_batches *batches;
    bool streams;
    int64_t steps, tokens_a_sample;

    an_trainer_options options;
    an_batch_options batch;
    an_augment_options augment;
    an_group_options groups;
    an_optimizer_options optimizer;
    an_schedule_options schedule;
    double *class_weights; /* NULL: none */
    int64_t class_weight_count;
    an_group_rule rules[MOST_RULES];
    an_accumulate_entry table[MOST_ENTRIES];
    an_arena arena;         /* what the schedule points to */
    an_resume *resume;      /* NULL: the run begins anew */
    const char *checkpoint; /* of the resume */
} opening;

/* ---- the length of the run ---- */

/* Tokens in a training sample; 1 where it is not made of tokens. */
static an_status get_tokens(opening *o) {
    an_field field;
    an_field_init(&field, sizeof field);
    AN_TRY_RETURN(an_dataset_field(o->training, 0, &field));
    o->tokens_a_sample = field.ndims == 1 && field.dtype == AN_DTYPE_I32 ? field.dims[0] : 1;
    return AN_OK;
}

/* One of them is set; none for a stream that may go on for ever. */
static an_status get_run_length(opening *o) {
    const an_settings *s = o->config->settings;
    const an_lengths lengths = {o->config, o->ctx, o->batches, o->tokens_a_sample};
    const struct {
        const char *key;
        const an_length *length;
    } lists[] = {{AN_SETTING(run.steps), &s->run.steps},
                 {AN_SETTING(run.tokens), &s->run.tokens},
                 {AN_SETTING(run.samples), &s->run.samples},
                 {AN_SETTING(run.epochs), &s->run.epochs}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (lists[i].length->amount > 0) return an_open_steps(&lengths, lists[i].key, lists[i].length, 0, 0, &o->steps);
    return AN_OK;
}

/* ---- batch ---- */

static an_status get_batch(opening *o) {
    an_batch_options *b = &o->batch;
    b->leaves = o->resume ? an_resume_leaves(o->resume)
                          : 0;       /* auto is settled once, when the run begins (train/default_leaves.h) */
    const int64_t usual = b->global; /* what the struct has if the config does not say it */
    AN_TRY_RETURN(an_config_fill(o->config, "", an_batch_options, b));
    static const char *const key = AN_SETTING(batch.accumulate);
    if (!an_key_is_there(o->config, key)) return AN_OK;
    if (an_config_origin_of(o->config, AN_SETTING(batch.global)) == AN_ORIGIN_DEFAULT) b->global = usual;
    const int entries = an_config_size(o->config, key);
    if (entries == 0) return an_config_count(o->config, key, &b->accumulate);
    for (int i = 0; i < entries && i < MOST_ENTRIES; i++) {
        double number;
        AN_TRY_RETURN(an_config_pair(o->config, key, i, &o->table[i].epoch, &number));
        o->table[i].accumulate = (int64_t)number;
    }
    b->table = o->table;
    b->table_count = entries;
    return AN_OK;
}

/* ---- optimizer ---- */

static an_status get_rules(opening *o) {
    an_context *ctx = o->ctx;
    static const char *const key = AN_SETTING(optimizer.groups);
    const int count = an_config_size(o->config, key);
    if (count > MOST_RULES)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %d groups are listed; at most %d are possible",
                        an_config_place(o->config, key), count, MOST_RULES);
    for (int i = 0; i < count; i++) {
        char path[AN_PATH_TEXT];
        an_group_rule *rule = &o->rules[i];
        snprintf(path, sizeof path, "%s[%d]", key, i);
        an_group_rule_init(rule, sizeof *rule);
        AN_TRY_RETURN(an_config_fill(o->config, path, an_group_rule, rule));
    }
    o->groups.rules = o->rules;
    o->groups.rule_count = count;
    return AN_OK;
}

/* An optimizer of the program's has defaults of its own, which the config calls auto. */
static an_status get_optimizer(opening *o) {
    AN_TRY_RETURN(an_config_fill(o->config, AN_SETTING(optimizer), an_optimizer_options, &o->optimizer));
    AN_TRY_RETURN(an_config_fill(o->config, AN_SETTING(optimizer), an_group_options, &o->groups));
    return get_rules(o);
}

/* ---- precision and the rest ---- */

/* Whether targets are classes or tokens: numbers that are measured need more digits than bf16 has. */
static bool counts_targets(const an_dataset *training) {
    an_field field;
    an_field_init(&field, sizeof field);
    for (int i = 0; training && i < an_dataset_field_count(training); i++)
        if (an_dataset_field(training, i, &field) == AN_OK && field.target) return field.dtype == AN_DTYPE_I32;
    return false;
}

/* f64 where the data is, bf16 where the machine has instructions for it and targets are no measured numbers. */
static void resolve_precision(opening *o, an_dtype *parameters) {
    an_field field;
    an_field_init(&field, sizeof field);
    const an_settings *s = o->config->settings;
    const bool automatic = s->train.precision == AN_DTYPE_NONE;
    const an_dataset *training = o->training;
    const bool wide = training ? an_dataset_field(training, 0, &field) == AN_OK && field.dtype == AN_DTYPE_F64
                               : an_config_is(o->config, AN_SETTING(data.train.dtype), "f64");
    *parameters = AN_DTYPE_F32;
    if ((automatic && wide) || s->train.precision == AN_DTYPE_F64) *parameters = AN_DTYPE_F64;
    if (s->train.precision == AN_DTYPE_F16 || s->train.precision == AN_DTYPE_BF16)
        o->options.precision = s->train.precision;
    if (automatic && !wide && counts_targets(training) && an_context_isa(o->ctx) == AN_ISA_AMX)
        o->options.precision = AN_DTYPE_BF16;
    if (*parameters == AN_DTYPE_F32 && o->options.precision == AN_DTYPE_NONE &&
        s->train.matmul_precision == AN_MATMUL_MEDIUM) {
        o->options.precision = AN_DTYPE_BF16;
        o->options.f32_storage = true;
    }
    if (o->opened->purpose == AN_OPEN_PLAIN) {
        o->options.precision = AN_DTYPE_NONE;
        o->options.fused = false;
    }
}

/* Numbers that were read in f32 stay what they are, and those in f64 are not rounded in silence. A program pushes
 * either into a stream. */
static an_status check_width(const opening *o, an_dtype parameters) {
    an_field field;
    an_field_init(&field, sizeof field);
    an_context *ctx = o->ctx;
    const an_dataset *training = o->training;
    if (!training || an_dataset_field(training, 0, &field) != AN_OK || field.dtype == parameters ||
        (field.dtype != AN_DTYPE_F32 && field.dtype != AN_DTYPE_F64))
        return AN_OK;
    const bool has_types = an_key_is_there(o->config, AN_SETTING(data.train.dtype));
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: train.precision is %s, but data.train is read in %s; %s",
                    an_config_place(o->config, AN_SETTING(train.precision)),
                    an_dtype_name(o->config->settings->train.precision), an_dtype_name(field.dtype),
                    field.dtype == AN_DTYPE_F64 ? "set data.train.dtype to f32, or train.precision to f64"
                    : has_types                 ? "set data.train.dtype to f64"
                                                : "use f32, because data of this type cannot be read as f64");
}

/* What the config says of the trainer itself. */
static an_status get_trainer(opening *o) {
    an_trainer_options *t = &o->options;
    t->clip_norm = 0; /* off, unless the config says a number */
    t->max_skips = INT64_MAX;
    AN_TRY_RETURN(an_config_fill(o->config, "", an_trainer_options, t));
    if (t->segments > 0) t->recompute = AN_RECOMPUTE_SEGMENTS;
    if (t->budget > 0) t->recompute = AN_RECOMPUTE_BUDGET;
    return AN_OK;
}

/* ---- all of it ---- */

static an_status open_data_and_model(opening *o) {
    an_context *ctx = o->ctx;
    an_dtype dtype;
    if (!o->streams) AN_TRY_RETURN(an_data_open(&o->training, &o->vocabulary, o->config, ctx, AN_SETTING(data.train)));
    AN_TRY_RETURN(an_data_open(&o->evaluation, &o->vocabulary, o->config, ctx, AN_SETTING(data.eval)));
    AN_TRY_RETURN(an_open_split(&o->training, &o->evaluation, o->config, ctx));
    if (!o->training && !o->streams)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: data.train is missing, so there is nothing to train on",
                        an_config_place(o->config, AN_SETTING(data)));
    resolve_precision(o, &dtype);
    AN_TRY_RETURN(check_width(o, dtype));
    AN_TRY_RETURN(an_model_open(&o->graph, o->config, ctx, o->training, dtype, o->checkpoint));
    AN_TRY_RETURN(an_open_precision(o->config, o->graph, &o->options.precision));
    o->options.f32_storage = o->options.f32_storage && o->options.precision == AN_DTYPE_BF16;
    AN_TRY_RETURN(an_open_rank_precision(o->config, ctx, dtype, &o->options));
    AN_TRY_RETURN(an_open_loss(o->config, o->graph));
    AN_TRY_RETURN(an_open_lora(o->config, ctx, o->graph, o->options.precision, o->options.f32_storage));
    AN_TRY_RETURN(an_open_dpo(o->config, ctx, o->graph, o->training));
    if (o->streams) AN_TRY_RETURN(an_open_stream(&o->training, o->config, o->graph));
    AN_TRY_RETURN(an_open_fit(o->config, o->graph, o->training, AN_SETTING(data.train)));
    return o->evaluation ? an_open_fit(o->config, o->graph, o->evaluation, AN_SETTING(data.eval)) : AN_OK;
}

/* As the trainer will have it. */
static int64_t run_steps(const opening *o) {
    return o->steps || !o->streams ? o->steps : INT64_MAX;
}

/* The schedule of a run of so many steps; what it points to lies in the arena. */
static an_status get_schedule(opening *o, int64_t steps, an_schedule_options *schedule, double *rate) {
    an_context *ctx = o->ctx;
    const an_lengths lengths = {o->config, ctx, o->batches, o->tokens_a_sample};
    AN_TRY_RETURN(an_open_schedule(schedule, &lengths, &o->arena, steps, rate));
    if (schedule->steps == 0 && steps < INT64_MAX) schedule->steps = steps;
    return AN_OK;
}

/* For a resume, which compares the schedules of two lengths. */
static an_status make_schedule(void *user, int64_t steps, an_schedule **schedule, double *rate) {
    opening *o = user;
    an_context *ctx = o->ctx;
    an_schedule_options options;
    an_schedule_options_init(&options, sizeof options);
    AN_TRY_RETURN(an_config_real(o->config, AN_SETTING(optimizer.lr), rate));
    AN_TRY_RETURN(get_schedule(o, steps, &options, rate));
    return an_schedule_create(schedule, ctx, &options);
}

/* A trainer makes its own groups; these are made for the message, which then has its place. */
static an_status check_groups(const opening *o) {
    an_context *ctx = o->ctx;
    an_groups *groups = NULL;
    an_group_info info;
    an_group_info_init(&info, sizeof info);
    bool trains = false;
    an_status status = an_groups_create(&groups, o->graph, &o->groups);
    for (int i = 0; status == AN_OK && i < an_groups_count(groups); i++)
        trains = trains || (an_groups_get(groups, i, &info) == AN_OK && !info.frozen);
    an_groups_destroy(&groups);
    if (status == AN_OK && !trains)
        status = AN_ERROR(ctx, AN_ERR_ARGUMENT, "the groups freeze every parameter, so nothing is left to train");
    return an_key_blame(o->config, o->ctx, status, AN_SETTING(optimizer.groups));
}

/* Everything that the options of the trainer say. */
static an_status get_options(opening *o) {
    an_context *ctx = o->ctx;
    int64_t schedule_steps;
    const size_t before = an_context_bytes(ctx);
    AN_TRY_RETURN(get_trainer(o));
    AN_TRY_RETURN(open_data_and_model(o));
    o->options.owned_bytes = (int64_t)(an_context_bytes(ctx) - before);
    AN_TRY_RETURN(get_batch(o));
    const int64_t samples = o->streams ? 0 : an_dataset_count(o->training);
    const an_status status = an_batches_create(&o->batches, ctx, samples, &o->batch);
    AN_TRY_RETURN(an_key_blame(o->config, o->ctx, status, AN_SETTING(batch)));
    AN_TRY_RETURN(get_tokens(o));
    AN_TRY_RETURN(get_run_length(o));
    AN_TRY_RETURN(get_optimizer(o));
    AN_TRY_RETURN(check_groups(o));
    schedule_steps = o->steps;
    if (o->resume) AN_TRY_RETURN(an_resume_schedule_steps(o->resume, make_schedule, o, run_steps(o), &schedule_steps));
    AN_TRY_RETURN(get_schedule(o, schedule_steps, &o->schedule, &o->options.rate));
    o->options.weights = o->opened->weights;
    o->options.details = o->opened->details | an_open_details(o->config);
    AN_TRY_RETURN(an_open_class_weights(o->config, ctx, o->training, &o->class_weights, &o->class_weight_count));
    o->options.class_weights = o->class_weights;
    o->options.class_weight_count = o->class_weight_count;
    AN_TRY_RETURN(an_open_sample_weights(o->config, ctx, o->training, &o->options.sample_weights));
    bool augments;
    AN_TRY_RETURN(an_open_augment(o->config, ctx, o->training, &o->augment, &augments));
    o->options.augment = augments ? &o->augment : NULL;
    o->options.batch = &o->batch;
    o->options.steps = o->steps;
    o->options.groups = &o->groups;
    o->options.optimizer = &o->optimizer;
    o->options.schedule = &o->schedule;
    o->options.kernels = o->opened->kernels;
    o->options.purpose = o->opened->purpose;
    o->options.rank = o->opened->rank;
    o->options.ranks = o->opened->ranks;
    o->options.hosts = o->opened->hosts;
    o->options.owns = true;
    o->options.saves = o->opened->purpose != AN_OPEN_PLAIN;
    const bool has_files = an_key_is_there(o->config, AN_SETTING(model.from)) || o->config->settings->model.init.from;
    o->options.loads_weights = has_files || (o->resume && !an_model_adapts(o->config));
    return AN_OK;
}

static an_status finish(opening *o, an_trainer *t) {
    an_context *ctx = o->ctx;
    if (o->opened->purpose != AN_OPEN_PLAN) {
        AN_TRY_RETURN(an_open_normalize(t, o->config, ctx, o->streams, o->resume != NULL));
        /* These weights come with their own scaling. A checkpoint of an adapter does not hold them. */
        if (!o->resume || an_model_adapts(o->config)) AN_TRY_RETURN(an_open_init(t, o->config, ctx));
        if (!o->resume) AN_TRY_RETURN(an_open_adapter(t, o->config));
        AN_TRY_RETURN(an_open_look(o->config, o->training, o->evaluation));
        AN_TRY_RETURN(an_open_look_at_batches(o->config, t));
        AN_TRY_RETURN(an_open_look_at_scales(o->config, o->training));
    }
    if (o->evaluation) AN_TRY_RETURN(an_open_metrics(o->config, ctx, t));
    const an_lengths lengths = {o->config, ctx, o->batches, o->tokens_a_sample};
    return an_open_run(t, &lengths, o->opened->purpose, o->evaluation != NULL);
}

/* One try, from a checkpoint (NULL: anew). Where ranks wait for each other, an_trainer_create and later, all of
 * them must have come so far. */
static an_status open_once(an_trainer **trainer, an_context *ctx, an_config *config, const an_open_options *options,
                           const char *checkpoint) {
    an_status status;
    opening *o = NULL;
    an_trainer *t = NULL;
    AN_TRY(an_alloc(ctx, (void **)&o, 1, sizeof *o));
    *o = (opening){.config = config, .ctx = ctx, .opened = options, .checkpoint = checkpoint};
    an_trainer_options_init(&o->options, sizeof o->options);
    an_batch_options_init(&o->batch, sizeof o->batch);
    an_augment_options_init(&o->augment, sizeof o->augment);
    an_group_options_init(&o->groups, sizeof o->groups);
    an_optimizer_options_init(&o->optimizer, sizeof o->optimizer);
    an_schedule_options_init(&o->schedule, sizeof o->schedule);
    o->streams = an_data_streams(config);
    an_arena_init(&o->arena, ctx);
    status = checkpoint ? an_resume_create(&o->resume, ctx, config, checkpoint, options) : AN_OK;
    if (status == AN_OK) status = get_options(o);
    AN_TRY(an_ranks_agree(ctx, status));
    AN_TRY(an_trainer_create(&t, o->graph, o->training, o->evaluation, &o->options));
    AN_TRY(an_ranks_agree(ctx, finish(o, t)));
    if (o->resume) AN_TRY(an_resume_apply(o->resume, t));
    *trainer = t;
    status = AN_OK;
fail:
    if (o) {
        an_resume_destroy(&o->resume);
        if (!t) {
            an_graph_destroy(&o->graph);
            an_dataset_destroy(&o->evaluation); /* before what it may have its vocabulary from */
            an_dataset_destroy(&o->training);
        }
        if (status != AN_OK) an_trainer_destroy(&t);
        an_release(ctx, (void **)&o->class_weights, (size_t)o->class_weight_count, sizeof *o->class_weights);
        an_batches_destroy(&o->batches);
        an_arena_destroy(&o->arena);
    }
    an_release(ctx, (void **)&o, 1, sizeof *o);
    return status;
}

/* A run that is under way removes its old checkpoints before another process has read them: these are not damaged.
 * Collective. */
static an_status check_free(an_context *ctx, an_config *config) {
    const char *folder = "";
    an_status status = AN_OK;
    if (an_context_rank(ctx) == 0) status = an_config_path(config, AN_SETTING(run.dir), &folder);
    if (an_context_rank(ctx) == 0 && status == AN_OK) status = an_folder_check_free(ctx, folder);
    return an_ranks_agree(ctx, status);
}

/* A checkpoint that is not as it was written is skipped for the one before it. That none is good is an error: to begin
 * anew is for the user to say. All ranks skip the same ones, as each try ends alike on all of them. */
an_status an_trainer_open_config(an_trainer **trainer, an_context *ctx, an_config *config,
                                 const an_open_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, trainer, config);
    an_status status;
    an_text skipped;
    an_candidates *candidates = NULL;
    const char *path;
    an_open_options own;
    const an_open_options *const options = &own;
    *trainer = NULL;
    an_text_init(&skipped, ctx);
    status = an_open_options_read(ctx, &own, given);
    if (status == AN_OK && options->purpose != AN_OPEN_PLAN) status = an_launcher_check(ctx);
    if (status == AN_OK) status = an_open_check_context(config, ctx, options->purpose);
    AN_TRY(an_ranks_agree(ctx, status));
    AN_TRY(an_candidates_create(&candidates, ctx, config, options));
    if (!an_candidates_path(candidates, 0)) AN_TRY(open_once(trainer, ctx, config, options, NULL));
    for (int i = 0; !*trainer && (path = an_candidates_path(candidates, i)); i++) {
        status = open_once(trainer, ctx, config, options, path);
        if (status == AN_OK) break;
        if (status != AN_ERR_DAMAGED) goto fail;
        an_text_add(&skipped, "skipped: %s\n", an_last_error(ctx));
    }
    AN_TRY(skipped.status);
    if (!*trainer) {
        AN_TRY(check_free(ctx, config));
        AN_FAIL(ctx, AN_ERR_DAMAGED,
                "none of the checkpoints of this run can be read; add --fresh to start a new run beside it:\n%s",
                skipped.bytes);
    }
    if (skipped.length > 0) AN_TRY(an_trainer_add_note(*trainer, skipped.bytes));
    status = AN_OK;
fail:
    if (status != AN_OK) an_trainer_destroy(trainer);
    an_text_destroy(&skipped);
    an_candidates_destroy(&candidates);
    return status;
}

an_status an_trainer_open(an_trainer **trainer, an_context *ctx, const char *file, const an_open_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, trainer, file);
    an_status status;
    an_config *config = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    options.file = file;
    *trainer = NULL;
    AN_TRY(an_config_read(&config, ctx, &options));
    AN_TRY(an_trainer_open_config(trainer, ctx, config, given));
    status = AN_OK;
fail:
    an_config_destroy(&config);
    return status;
}
