/* Opens a run from its config: data, model, and the options of the trainer. */
#include "train/open.h"

#include <stdio.h>
#include <string.h>

#include "base/isa.h"

enum { MOST_RULES = 64, MOST_POINTS = 256 };

typedef struct {
    an_config *config;
    an_context *ctx;
    an_trainer *trainer; /* whose data and graph are open */
    an_batches batches;
    int64_t steps, tokens_a_sample;

    an_trainer_options options;
    an_group_options groups;
    an_optimizer_options optimizer;
    an_schedule_options schedule;
    an_group_rule rules[MOST_RULES];
    an_accumulate_entry table[AN_BATCH_TABLE];
    int64_t point_steps[MOST_POINTS];
    double point_factors[MOST_POINTS];
} opening;

/* ---- lengths ---- */

/* Steps of a length, at least one unless it is 0. `whole` is the run's, for shares. */
static an_status to_steps(const opening *o, const char *path, const an_length *length, int64_t whole, int64_t *steps) {
    const double amount = length->amount, global = (double)o->batches.global;
    double exact = amount;
    switch (length->unit) {
    case AN_LENGTH_STEPS: break;
    case AN_LENGTH_EPOCHS:
        if (amount == (double)(int64_t)amount) {
            *steps = an_batches_steps_before(&o->batches, (int64_t)amount);
            return AN_OK;
        }
        exact = amount * (double)an_batches_steps_in(&o->batches, 0);
        break;
    case AN_LENGTH_SAMPLES: exact = amount / global; break;
    case AN_LENGTH_TOKENS: exact = amount / (global * (double)o->tokens_a_sample); break;
    case AN_LENGTH_SHARE: exact = amount * (double)whole; break;
    default:
        return AN_ERROR(o->ctx, AN_ERR_ARGUMENT, "%s: a length in time cannot be turned into steps",
                        an_config_place(o->config, path));
    }
    *steps = (int64_t)exact + ((double)(int64_t)exact < exact);
    return AN_OK;
}

static an_status get_steps(const opening *o, const char *path, int64_t whole, int64_t *steps) {
    an_context *ctx = o->ctx;
    an_length length = AN_INIT(length);
    if (an_config_origin_of(o->config, path) == AN_ORIGIN_NONE) return AN_OK;
    AN_TRY_RETURN(an_config_length(o->config, path, &length));
    return to_steps(o, path, &length, whole, steps);
}

/* Epochs have a default, so what the user gave goes first. */
static an_status get_run_length(opening *o) {
    static const char *const keys[] = {"run.steps", "run.tokens", "run.samples"};
    an_context *ctx = o->ctx;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (an_config_origin_of(o->config, keys[i]) != AN_ORIGIN_NONE) return get_steps(o, keys[i], 0, &o->steps);
    AN_TRY_RETURN(get_steps(o, "run.epochs", 0, &o->steps));
    return AN_OK;
}

/* ---- batch ---- */

static an_status get_batch(opening *o) {
    an_context *ctx = o->ctx;
    an_batch_options *b = &o->options.batch;
    b->size = sizeof *b;
    b->leaves = 1;
    const bool accumulates = an_config_origin_of(o->config, "batch.accumulate") != AN_ORIGIN_NONE;
    if (!accumulates || an_config_origin_of(o->config, "batch.global") != AN_ORIGIN_DEFAULT)
        AN_TRY_RETURN(an_config_count(o->config, "batch.global", &b->global));
    AN_TRY_RETURN(an_open_count(o->config, "batch.micro", &b->micro));
    AN_TRY_RETURN(an_open_count(o->config, "batch.leaves", &b->leaves));
    AN_TRY_RETURN(an_config_bool(o->config, "data.drop_last", &b->drop_last));
    if (!accumulates) return AN_OK;
    const int entries = an_config_size(o->config, "batch.accumulate");
    if (entries == 0) return an_config_count(o->config, "batch.accumulate", &b->accumulate);
    for (int i = 0; i < entries && i < AN_BATCH_TABLE; i++) {
        double number;
        AN_TRY_RETURN(an_config_pair(o->config, "batch.accumulate", i, &o->table[i].epoch, &number));
        o->table[i].accumulate = (int64_t)number;
    }
    b->table = o->table;
    b->table_count = entries;
    return AN_OK;
}

/* ---- optimizer ---- */

/* 0 is a value here, and the default of the option structs: AN_OFF stands for it. */
static double or_off(double value) {
    return value == 0 ? AN_OFF : value;
}

static an_status get_rules(opening *o) {
    an_context *ctx = o->ctx;
    const int count = an_config_size(o->config, "optimizer.groups");
    if (count > MOST_RULES)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %d groups; at most %d",
                        an_config_place(o->config, "optimizer.groups"), count, MOST_RULES);
    for (int i = 0; i < count; i++) {
        char path[AN_PATH_TEXT];
        double scale, decay;
        an_group_rule *rule = &o->rules[i];
        snprintf(path, sizeof path, "optimizer.groups[%d]", i);
        rule->size = sizeof *rule;
        AN_TRY_RETURN(an_config_string(o->config, AN_KEY(path, "match"), &rule->match));
        AN_TRY_RETURN(an_config_real(o->config, AN_KEY(path, "lr_scale"), &scale));
        AN_TRY_RETURN(an_config_bool(o->config, AN_KEY(path, "freeze"), &rule->freeze));
        rule->lr_scale = scale;
        if (an_config_origin_of(o->config, AN_KEY(path, "weight_decay")) != AN_ORIGIN_NONE) {
            AN_TRY_RETURN(an_config_real(o->config, AN_KEY(path, "weight_decay"), &decay));
            rule->weight_decay = or_off(decay);
        }
    }
    o->groups.rules = o->rules;
    o->groups.rule_count = count;
    return AN_OK;
}

static an_status get_optimizer(opening *o) {
    an_context *ctx = o->ctx;
    an_optimizer_options *p = &o->optimizer;
    an_group_options *g = &o->groups;
    bool decay_embeddings;
    p->size = sizeof *p;
    g->size = sizeof *g;
    p->type = an_config_is(o->config, "optimizer.type", "sgd")    ? AN_OPTIMIZER_SGD
              : an_config_is(o->config, "optimizer.type", "adam") ? AN_OPTIMIZER_ADAM
                                                                  : AN_OPTIMIZER_ADAMW;
    if (p->type == AN_OPTIMIZER_SGD) {
        AN_TRY_RETURN(an_config_real(o->config, "optimizer.momentum", &p->momentum));
        AN_TRY_RETURN(an_config_real(o->config, "optimizer.dampening", &p->dampening));
        AN_TRY_RETURN(an_config_bool(o->config, "optimizer.nesterov", &p->nesterov));
    } else {
        double betas[2] = {0, 0};
        int count;
        AN_TRY_RETURN(an_config_reals(o->config, "optimizer.betas", 2, betas, &count));
        AN_TRY_RETURN(an_config_real(o->config, "optimizer.eps", &p->epsilon));
        p->beta_1 = or_off(betas[0]);
        p->beta_2 = or_off(betas[1]);
    }
    AN_TRY_RETURN(an_config_real(o->config, "optimizer.lr", &o->options.rate));
    o->options.rate = or_off(o->options.rate);
    AN_TRY_RETURN(an_config_real(o->config, "optimizer.weight_decay", &g->weight_decay));
    g->weight_decay = or_off(g->weight_decay);
    g->decay = an_config_is(o->config, "optimizer.decay", "names") ? AN_DECAY_NAMES : AN_DECAY_DIM;
    AN_TRY_RETURN(an_config_bool(o->config, "optimizer.decay_embeddings", &decay_embeddings));
    g->embeddings_stay = !decay_embeddings;
    AN_TRY_RETURN(an_config_real(o->config, "optimizer.layer_decay", &g->layer_decay));
    return get_rules(o);
}

/* ---- schedule ---- */

static an_status get_points(opening *o) {
    an_context *ctx = o->ctx;
    an_schedule_options *s = &o->schedule;
    s->point_count = an_config_size(o->config, "schedule.points");
    if (s->point_count > MOST_POINTS)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %d points; at most %d",
                        an_config_place(o->config, "schedule.points"), s->point_count, MOST_POINTS);
    for (int i = 0; i < s->point_count; i++)
        AN_TRY_RETURN(an_config_pair(o->config, "schedule.points", i, &o->point_steps[i], &o->point_factors[i]));
    s->point_steps = o->point_steps;
    s->point_factors = o->point_factors;
    return AN_OK;
}

static an_status get_one_cycle(opening *o) {
    an_context *ctx = o->ctx;
    an_schedule_options *s = &o->schedule;
    bool momentum;
    AN_TRY_RETURN(an_config_real(o->config, "schedule.pct_start", &s->pct_start));
    AN_TRY_RETURN(an_config_real(o->config, "schedule.div_factor", &s->div_factor));
    AN_TRY_RETURN(an_config_real(o->config, "schedule.final_div_factor", &s->final_div_factor));
    AN_TRY_RETURN(an_config_bool(o->config, "schedule.three_phase", &s->three_phase));
    AN_TRY_RETURN(an_config_bool(o->config, "schedule.momentum", &momentum));
    s->linear = an_config_is(o->config, "schedule.anneal", "linear");
    s->fixed_momentum = !momentum;
    if (an_config_origin_of(o->config, "schedule.max_lr") != AN_ORIGIN_NONE)
        return an_config_real(o->config, "schedule.max_lr", &o->options.rate);
    return AN_OK;
}

/* Reals that only some types have. */
static an_status get_if_there(const opening *o, const char *path, double *value) {
    return an_config_origin_of(o->config, path) == AN_ORIGIN_NONE ? AN_OK : an_config_real(o->config, path, value);
}

static an_status get_schedule(opening *o) {
    an_context *ctx = o->ctx;
    an_schedule_options *s = &o->schedule;
    s->size = sizeof *s;
    s->steps = o->steps;
    for (int type = 0; *an_schedule_type_name((an_schedule_type)type); type++)
        if (an_config_is(o->config, "schedule.type", an_schedule_type_name((an_schedule_type)type)))
            s->type = (an_schedule_type)type;
    if (s->type == AN_SCHEDULE_SEQUENCE)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: a sequence of schedules cannot be opened from a config yet",
                        an_config_place(o->config, "schedule.type"));
    AN_TRY_RETURN(get_steps(o, "schedule.warmup.steps", o->steps, &s->warmup));
    if (an_config_origin_of(o->config, "schedule.warmup.start_factor") != AN_ORIGIN_NONE) {
        AN_TRY_RETURN(an_config_real(o->config, "schedule.warmup.start_factor", &s->start_factor));
        s->start_factor = or_off(s->start_factor);
    }
    AN_TRY_RETURN(get_if_there(o, "schedule.min_ratio", &s->min_ratio));
    AN_TRY_RETURN(get_if_there(o, "schedule.gamma", &s->gamma));
    AN_TRY_RETURN(get_if_there(o, "schedule.power", &s->power));
    AN_TRY_RETURN(get_steps(o, "schedule.T_0", o->steps, &s->period));
    AN_TRY_RETURN(get_steps(o, "schedule.period", o->steps, &s->period));
    AN_TRY_RETURN(get_steps(o, "schedule.decay", o->steps, &s->decay_steps));
    if (s->type == AN_SCHEDULE_COSINE_RESTARTS)
        AN_TRY_RETURN(an_config_count(o->config, "schedule.T_mult", &s->period_growth));
    s->clamp = an_config_is(o->config, "schedule.floor", "clamp");
    if (s->type == AN_SCHEDULE_POINTS) AN_TRY_RETURN(get_points(o));
    if (s->type == AN_SCHEDULE_ONE_CYCLE) AN_TRY_RETURN(get_one_cycle(o));
    return AN_OK;
}

/* ---- precision and the rest ---- */

/* f64 where the data is, bf16 where the machine has instructions for it. */
static void resolve_precision(opening *o, an_dtype *parameters) {
    an_field field = AN_INIT(field);
    const bool automatic = an_config_is(o->config, "train.precision", "auto");
    const bool wide = an_dataset_field(o->trainer->training, 0, &field) == AN_OK && field.dtype == AN_DTYPE_F64;
    *parameters = AN_DTYPE_F32;
    if ((automatic && wide) || an_config_is(o->config, "train.precision", "f64")) *parameters = AN_DTYPE_F64;
    if (an_config_is(o->config, "train.precision", "f16")) o->options.precision = AN_DTYPE_F16;
    if (an_config_is(o->config, "train.precision", "bf16") ||
        (automatic && !wide && an_context_isa(o->ctx) == AN_ISA_AMX))
        o->options.precision = AN_DTYPE_BF16;
}

static an_status get_recompute(opening *o) {
    an_context *ctx = o->ctx;
    an_trainer_options *t = &o->options;
    int64_t segments = 0;
    t->recompute = an_config_is(o->config, "train.recompute.mode", "block")  ? AN_RECOMPUTE_BLOCK
                   : an_config_is(o->config, "train.recompute.mode", "full") ? AN_RECOMPUTE_FULL
                                                                             : AN_RECOMPUTE_NONE;
    if (an_config_origin_of(o->config, "train.recompute.segments") != AN_ORIGIN_NONE) {
        AN_TRY_RETURN(an_config_count(o->config, "train.recompute.segments", &segments));
        t->recompute = AN_RECOMPUTE_SEGMENTS;
        t->segments = (int)segments;
    }
    if (an_config_origin_of(o->config, "train.recompute.budget") != AN_ORIGIN_NONE) {
        AN_TRY_RETURN(an_config_count(o->config, "train.recompute.budget", &t->budget));
        t->recompute = AN_RECOMPUTE_BUDGET;
    }
    return AN_OK;
}

static an_status get_limits(opening *o) {
    an_context *ctx = o->ctx;
    int64_t threads;
    o->options.clip_norm = AN_OFF;
    if (!an_config_is(o->config, "train.clip_norm", "off"))
        AN_TRY_RETURN(an_config_real(o->config, "train.clip_norm", &o->options.clip_norm));
    if (!an_config_is(o->config, "train.clip_value", "off"))
        AN_TRY_RETURN(an_config_real(o->config, "train.clip_value", &o->options.clip_value));
    AN_TRY_RETURN(an_config_count(o->config, "run.seed", &o->options.seed));
    AN_TRY_RETURN(an_config_count(o->config, "data.threads", &threads));
    o->options.loader_threads = (int)threads;
    o->options.skips = an_config_is(o->config, "train.on_nonfinite", "skip");
    return AN_OK;
}

/* What cannot be done yet is refused, not left out. */
static an_status check_supported(const opening *o) {
    static const struct {
        const char *path, *word;
    } later[] = {{"train.matmul_precision", "medium"},
                 {"train.loss.reduction", "sample_mean"},
                 {"train.on_nonfinite", "rollback"},
                 {"schedule.per", "epoch"}};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (an_config_is(o->config, later[i].path, later[i].word))
            return AN_ERROR(o->ctx, AN_ERR_UNSUPPORTED, "%s: %s: %s is not there yet",
                            an_config_place(o->config, later[i].path), later[i].path, later[i].word);
    return AN_OK;
}

/* ---- all of it ---- */

static an_status open_parts(opening *o) {
    an_context *ctx = o->ctx;
    an_dtype dtype;
    an_field field = AN_INIT(field);
    an_trainer *t = o->trainer;
    AN_TRY_RETURN(check_supported(o));
    AN_TRY_RETURN(an_open_data(&t->training, &t->sources, o->config, ctx, "data.train"));
    AN_TRY_RETURN(an_open_data(&t->evaluation, &t->sources, o->config, ctx, "data.eval"));
    if (!t->training)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: data.train is missing: nothing to train on",
                        an_config_place(o->config, "data"));
    AN_TRY_RETURN(get_batch(o));
    AN_TRY_RETURN(an_batches_make(&o->batches, ctx, an_dataset_count(t->training), &o->options.batch));
    AN_TRY_RETURN(an_dataset_field(t->training, 0, &field));
    o->tokens_a_sample = field.ndims == 1 && field.dtype == AN_DTYPE_I32 ? field.dims[0] : 1;
    AN_TRY_RETURN(get_run_length(o));
    AN_TRY_RETURN(get_optimizer(o));
    AN_TRY_RETURN(get_schedule(o));
    AN_TRY_RETURN(get_recompute(o));
    AN_TRY_RETURN(get_limits(o));
    resolve_precision(o, &dtype);
    AN_TRY_RETURN(an_open_model(&t->graph, o->config, ctx, t->training, dtype));
    o->options.size = sizeof o->options;
    o->options.steps = o->steps;
    o->options.groups = &o->groups;
    o->options.optimizer = &o->optimizer;
    o->options.schedule = &o->schedule;
    return an_trainer_fill(t, &o->options);
}

an_status an_trainer_open_config(an_trainer **trainer, an_context *ctx, an_config *config) {
    an_status status;
    opening *o = NULL;
    an_trainer *t = NULL;
    *trainer = NULL;
    AN_TRY(an_alloc(ctx, (void **)&o, 1, sizeof *o));
    AN_TRY(an_alloc(ctx, (void **)&t, 1, sizeof *t));
    t->ctx = ctx;
    t->owns = true;
    *o = (opening){.config = config, .ctx = ctx, .trainer = t};
    AN_TRY(open_parts(o));
    *trainer = t;
    t = NULL;
    status = AN_OK;
fail:
    an_trainer_destroy(&t);
    an_release(ctx, (void **)&o, 1, sizeof *o);
    return status;
}

an_status an_trainer_open(an_trainer **trainer, an_context *ctx, const char *file) {
    an_status status;
    an_config *config = NULL;
    an_config_options options = AN_INIT(options);
    options.file = file;
    *trainer = NULL;
    AN_TRY(an_config_create(&config, ctx, &options));
    AN_TRY(an_trainer_open_config(trainer, ctx, config));
    status = AN_OK;
fail:
    an_config_destroy(&config);
    return status;
}
