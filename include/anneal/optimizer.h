/* Parameter groups, optimizers, learning-rate schedules and the loss scaler. They agree with PyTorch's to rounding.
 * None of these functions is collective.
 */
#ifndef ANNEAL_OPTIMIZER_H
#define ANNEAL_OPTIMIZER_H

#include "anneal/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what an_trainer_options takes */

/* ---- optimizer ---- */

/* AN_OPTIMIZER_ADAMW, AN_OPTIMIZER_ADAM, …, from 0. anneal/optimizers.def describes them. */
typedef enum an_optimizer_type {
#define AN_OPTIMIZER(type, name) AN_OPTIMIZER_##type,
#include "anneal/optimizers.def"
#undef AN_OPTIMIZER
    AN_OPTIMIZER_LIMIT = 0x7fffffff
} an_optimizer_type;

typedef struct an_optimizer_options {
    size_t size;
    /* AN_AUTO: the defaults of the optimizer; 0.9 and 0.999, with Lion 0.9 and 0.99, with RMSprop 0 and 0.99, which is
     * its alpha */
    double beta_1, beta_2;
    double epsilon;   /* 1e-8 by default */
    double momentum;  /* of SGD and RMSprop; 0 by default */
    double dampening; /* of SGD; 0 by default */
    const char *name; /* instead of `type`: a built-in optimizer, or one of an_context_add_optimizer; NULL: `type` */
    an_optimizer_type type;
    bool nesterov; /* of SGD; needs momentum and no dampening */
    bool centered; /* of RMSprop; without momentum */
    uint8_t reserved[2];
} an_optimizer_options;
AN_API void an_optimizer_options_init(an_optimizer_options *options, size_t size);

/* ---- parameter groups ---- */

/* Which parameters decay unless a rule says otherwise. */
typedef enum an_decay {
    AN_DECAY_DIM = 0,   /* those with two or more dimensions */
    AN_DECAY_NAMES = 1, /* all except those of norm layers (recognized by their op) and those named bias or norm */
    AN_DECAY_LIMIT = 0x7fffffff
} an_decay;

/* Settings for parameters whose full name matches the pattern. The first matching rule applies. A rule that matches no
 * parameter is an error. */
typedef struct an_group_rule {
    size_t size;
    const char *match;   /* a PCRE2 regular expression, found anywhere in the name */
    double lr_scale;     /* factor on the learning rate; 1 by default */
    double weight_decay; /* AN_AUTO: as without the rule */
    bool freeze;         /* not trained: no gradient, no moments */
    uint8_t reserved[7];
} an_group_rule;
AN_API void an_group_rule_init(an_group_rule *rule, size_t size);

typedef struct an_group_options {
    size_t size;
    double weight_decay; /* AN_AUTO: the default of the optimizer; 0.01 with AdamW, 0 with the other built-in ones */
    /* d: parameters at depth k of L get the learning-rate factor d^(L-k). 1 by default. Needs blocks */
    double layer_decay;
    const an_group_rule *rules;
    const char *optimizer_name; /* instead of `optimizer`, its name; NULL: `optimizer`. A trainer sets it */
    int rule_count;
    an_decay decay;
    an_optimizer_type optimizer; /* for the default weight decay; a trainer sets it */
    /* true by default. false: token and position tables do not decay. These are the tables that an embedding reads,
     * including tied ones, and those that are added to its result */
    bool decay_embeddings;
    uint8_t reserved[3];
} an_group_options;
AN_API void an_group_options_init(an_group_options *options, size_t size);

/* ---- schedule ---- */

/* How the factor on the peak learning rate changes after the warm-up: AN_SCHEDULE_CONSTANT, AN_SCHEDULE_LINEAR, …, from
 * 0. anneal/schedules.def describes them. */
typedef enum an_schedule_type {
#define AN_SCHEDULE(type, name) AN_SCHEDULE_##type,
#include "anneal/schedules.def"
#undef AN_SCHEDULE
    AN_SCHEDULE_LIMIT = 0x7fffffff
} an_schedule_type;

/* From step `from`, counted from 0, the rate changes every `every` steps, the steps of an epoch. This struct never
 * grows. */
typedef struct an_schedule_hold {
    int64_t from, every;
} an_schedule_hold;

/* A schedule. All lengths are in optimizer steps. Periods, points, milestones and the custom function's steps count
 * from 0 at the end of the warm-up. */
typedef struct an_schedule_options {
    size_t size;
    /* steps of the run, including the warm-up. In a part of a sequence, 0: up to the next milestone. Schedules without
     * an end, such as exponential, do not need it */
    int64_t steps;
    int64_t warmup;      /* steps in which the factor rises linearly from start_factor to 1 */
    double start_factor; /* AN_AUTO: 1 ÷ warmup, so that the first step is not wasted */
    double min_ratio;
    int64_t period, period_growth;                  /* cosine_restarts, step; growth is 1 by default */
    double gamma;                                   /* step, exponential */
    double power;                                   /* polynomial; 1 by default */
    int64_t decay_steps;                            /* wsd */
    double pct_start, div_factor, final_div_factor; /* one_cycle; 0.3, 25 and 10,000 by default */
    const int64_t *point_steps;
    const double *point_factors;
    const struct an_schedule_options *parts;
    const int64_t *milestones; /* part_count - 1 steps, each the start of the next part */
    /* a pure function. Its name and version are stored in checkpoints and checked on resume */
    double (*custom)(void *user, int64_t step);
    void *custom_user;
    const char *custom_name;
    const an_schedule_hold *holds; /* in order, the first from step 0; only of the whole schedule, not of a part */
    /* cosine_restarts, step: the steps at which the first periods end, in order; after the last one, a period has
     * `period` steps */
    const int64_t *borders;
    an_schedule_type type;
    int point_count;
    int part_count;
    int custom_version;
    int hold_count; /* 0: the rate changes at every step */
    int border_count;
    bool clamp;               /* cosine: the wave goes to 0, cut off at min_ratio; otherwise it ends at min_ratio */
    bool linear, three_phase; /* one_cycle */
    bool cycle_momentum;      /* one_cycle: momentum falls while the rate rises; true by default */
    uint8_t reserved[4];
} an_schedule_options;
AN_API void an_schedule_options_init(an_schedule_options *options, size_t size);

/* ==== details ==== for programs that update parameters themselves */

/* ---- groups of a graph ---- */

typedef struct an_groups an_groups;

/* Assigns every parameter of a graph to a group and freezes those that a rule freezes. Call it before an_graph_verify,
 * an_params_create and an_plan_create. `options` may be NULL. */
AN_API an_status an_groups_create(an_groups **groups, an_graph *graph, const an_group_options *options);
AN_API void an_groups_destroy(an_groups **groups);

typedef struct an_group_info {
    size_t size;
    const char *match; /* pattern of the rule; "": no rule */
    const char *first; /* name of its first parameter */
    int64_t tensors, elements;
    int64_t tied; /* tensors that are used both as an embedding and as an output layer */
    double lr_scale, weight_decay;
    bool frozen;
    uint8_t reserved[7];
} an_group_info;
AN_API void an_group_info_init(an_group_info *info, size_t size);
AN_API int an_groups_count(const an_groups *groups);
AN_API an_status an_groups_get(const an_groups *groups, int index, an_group_info *info);
/* The group of a parameter. */
AN_API an_status an_groups_find(const an_groups *groups, const char *parameter, int *index);

/* ---- updates ---- */

typedef struct an_optimizer an_optimizer;

/* The number of moments that the optimizer needs, for an_params_options.moments and an_plan_options.moments. With
 * `name`, which only a context can look up, 2: enough for any optimizer. */
AN_API int an_optimizer_moments(const an_optimizer_options *options);
/* The exact number, also for the optimizers of a context. */
AN_API an_status an_optimizer_moments_in(an_context *ctx, const an_optimizer_options *options, int *moments);

/* Creates an optimizer for the parameters of `params`, with the groups of the graph that they were made from. Both must
 * outlive it. `options` may be NULL. */
AN_API an_status an_optimizer_create(an_optimizer **optimizer, an_params *params, const an_groups *groups,
                                     const an_optimizer_options *options);
AN_API void an_optimizer_destroy(an_optimizer **optimizer);

/* Settings of one update. */
typedef struct an_update {
    size_t size;
    double rate;       /* learning rate of groups whose factor is 1 */
    double beta_1;     /* beta_1, or the momentum, if a schedule changes it; AN_AUTO: as in the options */
    double scale;      /* the gradients are multiplied by this loss scale; 1 by default */
    double clip_norm;  /* maximum norm of all gradients; 0: no limit */
    double clip_value; /* maximum absolute value of an element of a gradient; 0: no limit */
} an_update;
AN_API void an_update_init(an_update *update, size_t size);

/* The L2 norm of all gradients, divided by `scale`. It is finite if and only if all gradients are (in f64: if all of
 * their squares are). The bits do not depend on how parameters are distributed. */
AN_API an_status an_optimizer_norm(an_optimizer *optimizer, double scale, double *norm);
/* The norm of one parameter's gradient, after an_optimizer_norm. */
AN_API an_status an_optimizer_parameter_norm(const an_optimizer *optimizer, const char *parameter, double *norm);

/* Unscales, clips and updates in one pass over the parameters. clip_norm needs a call of an_optimizer_norm since the
 * last update. A norm that is not finite is refused, and no weight changes. */
AN_API an_status an_optimizer_update(an_optimizer *optimizer, const an_update *update);

/* The number of updates so far: t in AdamW's bias corrections. Set it after loading moments. */
AN_API int64_t an_optimizer_updates(const an_optimizer *optimizer);
AN_API void an_optimizer_set_updates(an_optimizer *optimizer, int64_t updates);

/* ---- factors of a schedule ---- */

typedef struct an_schedule an_schedule;

AN_API an_status an_schedule_create(an_schedule **schedule, an_context *ctx, const an_schedule_options *options);
AN_API void an_schedule_destroy(an_schedule **schedule);

/* The factor on the peak rate at a step, counted from 0. After the last step, schedules with an end keep their last
 * factor; others continue. */
AN_API double an_schedule_factor(const an_schedule *schedule, int64_t step);
/* beta_1, or the momentum, at a step; 0: the schedule does not change it. */
AN_API double an_schedule_momentum(const an_schedule *schedule, int64_t step);
AN_API const char *an_schedule_type_name(an_schedule_type type); /* "cosine" */

/* ---- the loss scaler of f16 ---- */

/* The state of the loss scaler. Multiply the gradient of the loss by `scale`, and call an_scaler_update when the norm
 * is known. */
typedef struct an_scaler {
    size_t size;
    double scale;       /* 65,536 by default */
    double growth;      /* 2 by default */
    double backoff;     /* 0.5 by default */
    int64_t interval;   /* good steps in a row before the scale grows; 2,000 by default */
    int64_t good_steps; /* good steps in a row so far */
} an_scaler;
AN_API void an_scaler_init(an_scaler *scaler, size_t size);

/* Returns whether to skip the step because a gradient was not finite; the scale then falls. Otherwise the scale grows
 * after `interval` good steps in a row. */
AN_API bool an_scaler_update(an_scaler *scaler, bool finite);

#ifdef __cplusplus
}
#endif
#endif
