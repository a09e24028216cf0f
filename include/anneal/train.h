/* Training: the parts of a step as objects of their own (parameter groups, optimizers, schedules, the loss scaler, batches), a step
 * by its parts, the trainer that puts them together in the one right order, and prediction.
 *
 * What PyTorch has too agrees with it, to rounding.
 */
#ifndef ANNEAL_TRAIN_H
#define ANNEAL_TRAIN_H

#include "anneal/config.h"
#include "anneal/data.h"
#include "anneal/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number that is off, where 0 means the default. */
#define AN_OFF (-1.0)

/* Which optimizer; parameter groups ask because the default weight decay depends on it. */
typedef enum an_optimizer_type {
    AN_OPTIMIZER_ADAMW = 0, /* decay apart from the gradient: usually the right one */
    AN_OPTIMIZER_ADAM = 1,  /* decay added to the gradient (L2) */
    AN_OPTIMIZER_SGD = 2    /* the same; with momentum if that is given */
} an_optimizer_type;

/* ---- parameter groups ---- None of these is collective. */

typedef struct an_groups an_groups;

/* Which parameters decay, before any rule is asked. */
typedef enum an_decay {
    AN_DECAY_DIM = 0,  /* those of two or more dimensions */
    AN_DECAY_NAMES = 1 /* all but those of norm layers (known from the op) and those that are called bias or norm */
} an_decay;

/* What holds for the parameters whose whole name the regular expression finds something in. The first rule that matches a
 * parameter has it; one that matches none is an error. */
typedef struct an_group_rule {
    size_t size;
    const char *match;   /* PCRE2 */
    double lr_scale;     /* 0: 1 */
    double weight_decay; /* 0: as without the rule; AN_OFF: none */
    bool freeze;         /* no gradient, no moments */
} an_group_rule;

typedef struct an_group_options {
    size_t size;
    an_decay decay;
    double weight_decay; /* 0: the default of `optimizer`; AN_OFF: none */
    bool
        embeddings_stay; /* tables of tokens and positions do not decay: those that an embedding reads, tied ones too, and
                             those that are added to what it read */
    double layer_decay; /* d: parameters of depth k of L get the rate's factor d^(L-k); 0: 1; a model without blocks is
                             refused */
    int rule_count;
    const an_group_rule *rules;
    an_optimizer_type
        optimizer; /* weight decay is 0.01 by default with ADAMW, and 0 with the others; a trainer sets this
                                    to the type of its optimizer */
} an_group_options;

/* Puts every parameter of a graph into one group, and freezes those that a rule freezes; so it comes before an_graph_verify,
 * an_params_create and an_plan_create. `options` may be NULL. */
AN_API an_status an_groups_create(an_groups **groups, an_graph *graph, const an_group_options *options);
AN_API void an_groups_destroy(an_groups **groups);

typedef struct an_group_info {
    size_t size;
    const char *match; /* the rule's expression; "": none */
    int64_t tensors, elements;
    double lr_scale, weight_decay;
    bool frozen;
    int64_t tied;      /* tensors that serve as an embedding and as a head */
    const char *first; /* its first parameter */
} an_group_info;
AN_API int an_groups_count(const an_groups *groups);
AN_API an_status an_groups_info(const an_groups *groups, int index, an_group_info *info);
/* The group of a parameter. */
AN_API an_status an_groups_find(const an_groups *groups, const char *parameter, int *index);

/* ---- optimizers ---- None of these is collective. */

typedef struct an_optimizer an_optimizer;

typedef struct an_optimizer_options {
    size_t size;
    an_optimizer_type type;
    double beta_1, beta_2, epsilon; /* 0: 0.9, 0.999, 1e-8; a beta AN_OFF: 0 */
    double momentum, dampening;     /* of SGD; 0: none */
    bool nesterov;                  /* needs momentum and no dampening */
} an_optimizer_options;

/* How many moments the parameter store must have for it: an_params_options.moments, an_plan_options.moments. */
AN_API int an_optimizer_moments(const an_optimizer_options *options);

/* Works on the parameters of `params`, by the groups of the graph that they were made from. Both must outlive it. `options` may be
 * NULL. */
AN_API an_status an_optimizer_create(an_optimizer **optimizer, an_params *params, const an_groups *groups,
                                     const an_optimizer_options *options);
AN_API void an_optimizer_destroy(an_optimizer **optimizer);

/* What one update needs to know. */
typedef struct an_update {
    size_t size;
    double rate;       /* of groups whose factor is 1 */
    double beta_1;     /* (momentum of SGD) where a schedule moves it; 0: as in the options */
    double scale;      /* how many times too large the gradients are; 0: 1 */
    double clip_norm;  /* 0: no limit */
    double clip_value; /* 0: no limit */
} an_update;

/* The L2 norm of all gradients, divided by `scale` (0: 1). It is finite if and only if all of them are (of f64: if their squares
 * are). The same bits however parameters are cut. */
AN_API an_status an_optimizer_norm(an_optimizer *optimizer, double scale, double *norm);
/* The same of one parameter, after an_optimizer_norm. */
AN_API an_status an_optimizer_parameter_norm(const an_optimizer *optimizer, const char *parameter, double *norm);

/* Unscales, clips and updates, in one pass over the parameters. With clip_norm it needs an_optimizer_norm since the last update. A
 * norm that is not finite is refused, and nothing is changed. */
AN_API an_status an_optimizer_update(an_optimizer *optimizer, const an_update *update);

/* Updates so far: t of AdamW's corrections. Setting it is for those who load moments. */
AN_API int64_t an_optimizer_updates(const an_optimizer *optimizer);
AN_API void an_optimizer_set_updates(an_optimizer *optimizer, int64_t updates);

/* ---- schedules ---- None of these is collective. */

typedef struct an_schedule an_schedule;

/* The factor on the peak rate from step to step, after the warm-up. */
typedef enum an_schedule_type {
    AN_SCHEDULE_CONSTANT = 0,
    AN_SCHEDULE_LINEAR = 1,          /* from 1 to min_ratio: usual for fine-tuning */
    AN_SCHEDULE_COSINE = 2,          /* half a wave from 1 to min_ratio: usual for training from scratch */
    AN_SCHEDULE_COSINE_RESTARTS = 3, /* such waves, of period, period·period_growth, … steps */
    AN_SCHEDULE_ONE_CYCLE = 4,       /* up to 1 and down again, momentum the other way: few epochs of a small model */
    AN_SCHEDULE_INVERSE_SQRT = 5,    /* of steps over those of the warm-up (10,000 without): runs without a known end */
    AN_SCHEDULE_WSD = 6,             /* 1, and in the last decay_steps down to min_ratio: runs that may be extended */
    AN_SCHEDULE_STEP = 7,            /* times gamma after every period: image models of old */
    AN_SCHEDULE_EXPONENTIAL = 8,     /* times gamma after every step */
    AN_SCHEDULE_POLYNOMIAL = 9,      /* (1 - t/T)^power, down to min_ratio */
    AN_SCHEDULE_POINTS = 10,         /* linear between points */
    AN_SCHEDULE_SEQUENCE = 11,       /* parts one after another */
    AN_SCHEDULE_CUSTOM = 12          /* a function of the caller's */
} an_schedule_type;

/* From step `from` on, the rate changes every `every` steps: as many as an epoch has. */
typedef struct an_hold {
    int64_t from, every;
} an_hold;

/* Everything in steps of the optimizer. Periods, points, milestones and the custom function's steps count from the end of the
 * warm-up. */
typedef struct an_schedule_options {
    size_t size;
    an_schedule_type type;
    int64_t steps;       /* of the run, the warm-up included; parts of a sequence: 0 is up to the next milestone; shapes
                            that have no end, such as exponential, do without */
    int64_t warmup;      /* steps in which the factor rises, in a line, from start_factor to 1 */
    double start_factor; /* 0: 1 ÷ warmup, so that the first step is not wasted; AN_OFF: 0 */
    double min_ratio;
    bool
        clamp; /* cosine: to 0, but never below min_ratio, as many hand-written ones do; else the wave ends in min_ratio */
    int64_t period, period_growth;                  /* cosine_restarts, step; growth 0: 1 */
    double gamma;                                   /* step, exponential */
    double power;                                   /* polynomial; 0: 1 */
    int64_t decay_steps;                            /* wsd */
    double pct_start, div_factor, final_div_factor; /* one_cycle; 0: 0.3, 25, 10,000 */
    bool linear, three_phase, fixed_momentum;       /* one_cycle */
    int point_count;
    const int64_t *point_steps;
    const double *point_factors;
    int part_count;
    const struct an_schedule_options *parts;
    const int64_t *milestones; /* part_count - 1: the step at which the next part begins */
    double (*custom)(void *user,
                     int64_t step); /* a pure function; `name` and `version` are stored with a run and checked */
    void *custom_user;
    const char *custom_name;
    int custom_version;
    int hold_count;         /* of the whole schedule, not of parts; 0: the rate changes at every step */
    const an_hold *holds;   /* in order, the first from step 0 on */
    int border_count;       /* cosine_restarts, step: the first periods, where they are not all as long; 0: none */
    const int64_t *borders; /* the steps at which they end, in order; after the last one, a period has `period` steps */
} an_schedule_options;

AN_API an_status an_schedule_create(an_schedule **schedule, an_context *ctx, const an_schedule_options *options);
AN_API void an_schedule_destroy(an_schedule **schedule);

/* The factor on the peak rate at a step, counted from 0. After the last step, shapes that end there stay at their end and the
 * others go on. */
AN_API double an_schedule_factor(const an_schedule *schedule, int64_t step);
/* beta_1 (momentum of SGD) at a step, where the schedule moves it; 0: it does not. */
AN_API double an_schedule_momentum(const an_schedule *schedule, int64_t step);
AN_API const char *an_schedule_type_name(an_schedule_type type); /* "cosine" */

/* ---- the loss scaler of f16 ---- */

enum { AN_FIRST_SCALE = 65536 };

/* Multiply the loss's gradient by `scale`; after the norm is known, an_scaler_update. */
typedef struct an_scaler {
    size_t size;
    double scale;                 /* 0: 65,536 at first */
    double growth, backoff;       /* 0: 2 and 0.5 */
    int64_t interval, good_steps; /* interval 0: 2,000 */
} an_scaler;

/* Whether the step is to be skipped, because a gradient was not finite: the scale then falls; else it rises after `interval` good
 * steps on end. */
AN_API bool an_scaler_update(an_scaler *scaler, bool finite);

/* ---- a step, part by part ----
 *
 * For programs that drive training themselves. A trainer makes the same calls. One step is
 *
 *     an_step_begin                 how many targets the whole step has, over all its micro-batches
 *     an_step_micro_batch …         forward, backward; gradients are added
 *     an_step_reduce                leaves become one
 *     an_step_unscale               the norm; with f16, whether the step is skipped
 *     an_step_clip                  if wanted
 *     an_step_update                the optimizer
 *     an_step_schedule              the next rate
 *     an_step_end                   gradients are forgotten
 *
 * and any other order is refused with AN_ERR_ORDER and the reason. A call that fails changes no weight. None is collective yet. */

typedef struct an_stepper an_stepper;

typedef struct an_stepper_options {
    size_t size;
    double rate;       /* the peak; 0: 1e-4; AN_OFF: 0 */
    double clip_norm;  /* 0: 1; AN_OFF: no limit */
    double clip_value; /* 0: no limit */
    int64_t leaves;    /* 0: 1; more cost log2(leaves) gradient buffers and make the bits ready for as many ranks */
    bool scales;       /* with a loss scale, for f16 */
    an_scaler scaler;  /* how it starts */
    bool skips;        /* a gradient that is not finite skips the step; else it is an error */
    int64_t seed;      /* of dropout */
} an_stepper_options;

/* The program must have the training form. All of them must outlive it. `schedule` may be NULL: the rate is constant. */
AN_API an_status an_stepper_create(an_stepper **stepper, an_program *program, an_optimizer *optimizer,
                                   const an_schedule *schedule, const an_stepper_options *options);
AN_API void an_stepper_destroy(an_stepper **stepper);

typedef struct an_step_metrics {
    size_t size;
    int64_t step; /* of the run, from 1 */
    double loss;  /* the mean over the step's targets */
    double rate;  /* that it was made with */
    double norm;  /* of the gradients, before clipping */
    double scale; /* of the loss */
    int64_t targets, samples;
    bool skipped;
    int64_t skips; /* skipped steps of the run so far, this one included */
} an_step_metrics;

AN_API an_status an_step_begin(an_stepper *stepper, int64_t targets);
/* Runs the program on the inputs that are set. Leaves come in rising order, each with one or more micro-batches; `samples` is
 * how many are in this one. */
AN_API an_status an_step_micro_batch(an_stepper *stepper, int64_t leaf, int64_t samples);
AN_API an_status an_step_reduce(an_stepper *stepper);
AN_API an_status an_step_unscale(an_stepper *stepper);
AN_API an_status an_step_clip(an_stepper *stepper);
AN_API an_status an_step_update(an_stepper *stepper);
AN_API an_status an_step_schedule(an_stepper *stepper);
AN_API an_status an_step_end(an_stepper *stepper, an_step_metrics *metrics); /* metrics may be NULL */
/* Gives up the step that is under way: weights and schedule stay as they are. */
AN_API void an_step_cancel(an_stepper *stepper);
/* What the next step will be made with. */
AN_API double an_stepper_rate(const an_stepper *stepper);

/* ---- the trainer ---- None of these is collective yet. */

typedef struct an_trainer an_trainer;

/* Which norms of gradients an_trainer_norm tells, beside that of all. */
typedef enum an_norms {
    AN_NORMS_GLOBAL = 0,   /* none */
    AN_NORMS_BLOCK = 1,    /* of the model's blocks, and of the layers that are in none */
    AN_NORMS_PARAMETER = 2 /* of each parameter */
} an_norms;

/* What a trainer is made for. */
typedef enum an_open_purpose {
    AN_OPEN_RUN = 0,
    AN_OPEN_PLAN = 1, /* it can be asked what it would be, and takes no step; no weight is allocated */
    AN_OPEN_PLAIN =
        2 /* others are compared with it: f32 (f64), nothing fused; in a context of AN_ISA_BASE its kernels are the
                         reference */
} an_open_purpose;

typedef struct an_trainer_options {
    size_t size;
    int64_t steps;                  /* of the run; 0: those of `epochs` */
    int64_t epochs;                 /* 0: 1 */
    int64_t seed;                   /* of parameters, order of samples and dropout */
    an_batch_options batch;         /* a struct of its own: batch.size is set too, if anything in it is */
    const an_group_options *groups; /* NULL: defaults */
    const an_optimizer_options *optimizer;
    const an_schedule_options *schedule; /* NULL: constant; steps 0: those of the run */
    double rate, clip_norm, clip_value;  /* as in an_stepper_options */
    bool skips;                          /* a step that is not finite is skipped; else it is an error */
    an_dtype precision;                  /* NONE: as the graph is written; with F16 the loss is scaled */
    an_recompute recompute;
    int segments;
    int64_t budget;
    const char *kernels; /* as in an_plan_options */
    bool unfused;        /* the same */
    int loader_threads;  /* that read ahead; 0: none, the trainer reads when it needs */
    bool sample_mean; /* what is minimised is the mean over samples of the mean over each one's targets; else over all
                            targets of a step. Samples without targets do not count */
    int64_t evaluation_samples; /* the first of them only; 0: all */
    an_norms norms;
    bool f32_storage;  /* as in an_plan_options */
    int64_t max_skips; /* 0: 100; so many skipped steps in a row are an error, as is a loss scale that falls below 1 */
    an_open_purpose purpose;
    bool
        owns; /* the graph and the datasets are destroyed with the trainer; if it cannot be made, they stay the caller's */
    int64_t owned_bytes; /* what they hold of the context (an_context_bytes), which the plan then counts */
    bool saves;          /* the run will be saved: the plan counts the copy that a checkpoint needs */
    int64_t writers;     /* files of a checkpoint that are written at a time; 0: 1 */
} an_trainer_options;

/* A model in training on a dataset; `evaluation` may be NULL. The graph (which groups may freeze parameters of), the datasets
 * and what the options point to at this moment must outlive it, but for the option structs themselves. */
AN_API an_status an_trainer_create(an_trainer **trainer, an_graph *graph, an_dataset *training, an_dataset *evaluation,
                                   const an_trainer_options *options);
AN_API void an_trainer_destroy(an_trainer **trainer);
AN_API void an_trainer_close(an_trainer **trainer); /* the same, for one that was opened */

/* Opens a run from its config; the trainer owns its graph and data.
 *
 * These calls RESUME. If the run's folder (run.dir) holds checkpoints, the trainer continues from the newest good one: weights,
 * optimizer, step and place in the data. Only a folder without checkpoints gives a new run. an_trainer_resumed
 * (anneal/checkpoint.h) returns the checkpoint's path, or NULL for a new run; an_trainer_notes says what changed since;
 * an_trainer_next_step is where the run stands. an_trainer_open_with and `fresh` start a new run in any case. */
AN_API an_status an_trainer_open(an_trainer **trainer, an_context *ctx, const char *file);
/* A run that carries on keeps the checkpoint's value of keys that the config leaves at their default: `config` then has these values, with
 * the origin AN_ORIGIN_CHECKPOINT. */
AN_API an_status an_trainer_open_config(an_trainer **trainer, an_context *ctx, an_config *config);

/* What becomes of a schedule that ends with the run, when a run that carries on is given more steps. */
typedef enum an_extend {
    AN_EXTEND_REFUSE = 0,
    AN_EXTEND_KEEP = 1,   /* the schedule stays; after its end the rate goes on as it was at the end */
    AN_EXTEND_STRETCH = 2 /* it is resolved anew for the new length: the rate jumps */
} an_extend;

/* A trainer that is opened for a run carries on from the newest good checkpoint of its folder (run.dir), unless it is told otherwise. */
typedef struct an_open_options {
    size_t size;
    an_open_purpose purpose;
    const char *kernels; /* as in an_plan_options */
    bool fresh;          /* begin anew, whatever the folder has */
    const char *resume; /* carry on from this checkpoint, or from the newest good one of this run's folder; or refuse */
    const int64_t *user_step; /* carry on from the checkpoint that an_trainer_save made with it, or refuse; NULL: any */
    an_extend extend;
    bool
        new_bits; /* other instructions or kernels, another oneDNN or anneal: what comes now may differ in its last bits; or the
                      config says so (run.allow_new_bits) */
} an_open_options;
AN_API an_status an_trainer_open_with(an_trainer **trainer, an_context *ctx, an_config *config,
                                      const an_open_options *options);

/* Threads and instructions belong to a context, and a config may ask for some (ranks.threads, run.isa): opening it in a context that has
 * others is refused. This reads a config before there is a context, and fills in what `options` leaves open: `threads` 0, `isa`
 * AN_ISA_AUTO. Where the config leaves the instructions open too, they are those of the run that would be carried on, if this machine has
 * them. `open` may be NULL: as an_trainer_open. The message of an error is that of an_last_error(NULL).
 *
 *     an_context_options options = AN_INIT(options);
 *     an_config_options config = AN_INIT(config);
 *     config.file = "run.yaml";
 *     if (an_context_options_from_config(&options, &config, NULL) == AN_OK && an_context_create(&ctx, &options) == AN_OK) ...  */
AN_API an_status an_context_options_from_config(an_context_options *options, const an_config_options *config,
                                                const an_open_options *open);

/* ---- from a config to a trainer, part by part ---- an_trainer_open does all of this. */

/* Whether a graph can read the samples of a dataset; the message says what does not fit. */
AN_API an_status an_graph_check_data(an_graph *graph, const an_dataset *dataset);

/* A dataset without samples: the program hands them over, step by step (an_trainer_step_on). It has the fields that the graph reads. A
 * dimension that is a symbol, but for the number of samples, has `symbol_size` elements; 0: such a dimension is refused. */
AN_API an_status an_dataset_create_stream(an_dataset **dataset, const an_graph *graph, int64_t symbol_size);

/* A tensor of a file gets another name: `text` stands for what the regular expression matches. This struct never grows. */
typedef struct an_init_rename {
    const char *pattern, *text;
} an_init_rename;

/* Initial weights from files. */
typedef struct an_init_options {
    size_t size;
    const char *path;        /* a checkpoint, a run, a safetensors file, or a folder as Hugging Face has them */
    const char *model_type;  /* "gpt2" or "llama", which a Hugging Face folder must be; NULL: not known */
    const char *place;       /* what messages begin with; NULL: nothing */
    bool accepts_missing;    /* parameters that the files do not have keep their random values; else it is an error */
    bool accepts_unexpected; /* tensors that the model does not have are ignored; else they are an error */
    int rename_count;
    const an_init_rename *renames; /* applied to the files' names, in order */
} an_init_options;
/* Loads them into a trainer that has taken no step. All is checked before the first weight changes. */
AN_API an_status an_trainer_init(an_trainer *trainer, const an_init_options *options);

/* Which metrics of evaluations are reported, by name; count 0: those that the model has a use for. */
AN_API an_status an_trainer_set_metrics(an_trainer *trainer, int count, const char *const *names);
/* AN_OK if the model can have a metric; else the message says why not. */
AN_API an_status an_trainer_check_metric(const an_trainer *trainer, const char *name);

/* The run in numbers. */
typedef struct an_trainer_info {
    size_t size;
    int64_t parameters;                  /* elements */
    int64_t samples, evaluation_samples; /* in the data, 0: a stream; of an evaluation, 0: none */
    int64_t tokens;                      /* in a sample; 1 where it is not made of tokens */
    int64_t steps, epoch_steps;          /* of the run; of its first epoch, 0: a stream */
    int64_t global, micro, leaves;       /* samples in a step, in a forward and backward; parts of a step */
    an_dtype dtype, precision;           /* of the parameters; of products */
    int loader_threads;
    double epochs; /* of the run; 0: a stream */
    double rate;   /* the peak learning rate, which the schedule multiplies; 0: opened for its plan only */
    int64_t least_epoch_steps,
        most_epoch_steps; /* of its epochs, which differ where accumulation changes by epoch; 0: a stream */
    int64_t least_micro;  /* samples in the smallest micro-batch of the run; 0: a stream */
} an_trainer_info;
AN_API an_status an_trainer_info_get(const an_trainer *trainer, an_trainer_info *info);

/* One step of the optimizer, on the next samples. On error the weights are as before the call. AN_ERR_STATE after the last.
 * AN_ERR_NONFINITE: the loss or a gradient is not finite and such steps are not skipped, or too many were skipped in a row (max_skips), or
 * the loss scale of f16 would fall below 1. The message says which, and where the first value is that is not finite. */
AN_API an_status an_trainer_step(an_trainer *trainer, an_step_metrics *metrics);

/* One step on n samples of the caller's own, which are read before it returns; it takes the place of the data's step of that number.
 * The first dimension of both arrays is n (the last one in Fortran), the others are those of the model's only input and of its
 * targets; any strides; f32 and f64 are converted into each other where the model has the other. n may be larger than a
 * micro-batch or than batch.global: leaves and micro-batches are cut as in any step, and the divisor is the n samples'. */
AN_API an_status an_trainer_step_on(an_trainer *trainer, int64_t n, const an_array *inputs, const an_array *targets,
                                    an_step_metrics *metrics);
/* The same with dense arrays, for targets that are numbers. */
AN_API an_status an_trainer_step_on_f32(an_trainer *trainer, int64_t n, const float *inputs, const float *targets,
                                        an_step_metrics *metrics);
AN_API an_status an_trainer_step_on_f64(an_trainer *trainer, int64_t n, const double *inputs, const double *targets,
                                        an_step_metrics *metrics);

/* Of the run; INT64_MAX: data of a stream, and no length was given. */
AN_API int64_t an_trainer_steps(const an_trainer *trainer);
AN_API int64_t an_trainer_next_step(const an_trainer *trainer); /* from 0; an_trainer_steps: it is done */

typedef struct an_evaluation {
    size_t size;
    int64_t samples, targets;
    double loss;       /* the mean over all targets */
    double perplexity; /* e^loss */
    bool classifies;   /* whether these two are known: the model gives numbers for classes */
    double accuracy, top5;
    bool measures; /* whether these two are: it gives numbers like its targets */
    double mean_absolute_error, r2;
    double seconds; /* that it took */
} an_evaluation;

/* All samples of the evaluation's dataset (or the first evaluation_samples), each once. Leaves no trace in what is trained. */
AN_API an_status an_trainer_evaluate(an_trainer *trainer, an_evaluation *evaluation);

/* The metrics of evaluations that are to be reported, by their names; NULL after the last. Unless a config says which: the loss and
 * what the model can be judged by. */
AN_API const char *an_trainer_metric(const an_trainer *trainer, int index);

/* Norms of the last step's gradients, before clipping, of the parts that options.norms asks for. Names live as long as the graph. */
AN_API int an_trainer_norm_count(const an_trainer *trainer);
AN_API an_status an_trainer_norm(const an_trainer *trainer, int index, const char **name, double *norm);

/* XXH3-128 over the weights in canonical order, as 32 hexadecimal digits. */
enum { AN_HASH_TEXT = 33 };
AN_API an_status an_trainer_weights_hash(const an_trainer *trainer, char text[AN_HASH_TEXT]);

/* … over everything that a run carries on with: the weights, moments, running statistics, the loss scale, the step, and the loss,
 * rate, norm and evaluations of every step so far. No times. */
AN_API an_status an_trainer_state_hash(const an_trainer *trainer, char text[AN_HASH_TEXT]);

/* The parts, for those who look: they belong to the trainer. */
AN_API an_params *an_trainer_params(an_trainer *trainer);
AN_API an_program *an_trainer_program(an_trainer *trainer);
AN_API const an_dataset *an_trainer_data(const an_trainer *trainer); /* that it trains on; NULL: there is none */
AN_API an_plan *an_trainer_plan(an_trainer *trainer);
AN_API an_graph *an_trainer_graph(an_trainer *trainer);
AN_API const an_groups *an_trainer_groups(const an_trainer *trainer);
AN_API const an_schedule *an_trainer_schedule(const an_trainer *trainer);

/* ---- the whole run ---- */

/* A number of an evaluation by its name: "val_loss", "val_perplexity", "val_accuracy", "val_top5", "val_mae", "val_r2"; false: there is no
 * such metric, or this model does not have it. */
AN_API bool an_evaluation_metric(const an_evaluation *evaluation, const char *name, double *value);

/* How a save went. */
typedef struct an_save_report {
    size_t size;
    int64_t step;
    const char *path;    /* of the checkpoint, good until the callback returns */
    const char *error;   /* NULL: it is safe */
    int64_t bytes;       /* that were written */
    double copy_seconds; /* in which nothing else was done */
    double seconds;      /* behind the run's back, until it was safe */
    double cpu_seconds;  /* of which this machine worked for it */
    double wait_seconds; /* that the run waited for it, beside the copy */
    const char
        *warning; /* it is durable, but something after it failed, such as the link to the best; NULL: nothing did */
} an_save_report;

/* Called at named points of a run, with numbers that are good until it returns. Nothing that it does changes the order of a run; a
 * status other than AN_OK ends it. Each may be NULL. */
typedef struct an_run_callbacks {
    size_t size;
    an_status (*before_step)(void *user, int64_t step); /* from 1 */
    an_status (*after_step)(void *user, const an_step_metrics *metrics);
    an_status (*after_evaluation)(void *user, int64_t step, const an_evaluation *evaluation, bool best);
    /* A save has ended, or failed: the run goes on without it, and tries again at the next one. */
    an_status (*after_save)(void *user, const an_save_report *report);
    void *user;
} an_run_callbacks;

/* Which of two numbers is better. */
typedef enum an_better {
    AN_BETTER_AUTO = 0, /* more of val_accuracy, val_top5 and val_r2, less of the others */
    AN_BETTER_LESS = 1,
    AN_BETTER_MORE = 2
} an_better;

typedef struct an_run_options {
    size_t size;
    int64_t evaluate_every;  /* steps; 0: after the last only */
    double evaluate_seconds; /* instead: from one to the next; 0: by steps */
    bool evaluate_at_start;
    double most_seconds; /* the run ends after the step in which they are over; 0: no limit */
    const char *best;    /* the metric; NULL: val_loss */
    an_better best_mode;
    const char *early_stop;     /* the metric; NULL: the run goes to its end */
    int64_t patience;           /* evaluations that do not get better; 0: 5 */
    double min_delta;           /* what counts as better */
    an_run_callbacks callbacks; /* callbacks.size is set too, if there are any */
    double evaluate_epochs; /* instead of steps: at the end of every so many epochs, however many steps each one has */
} an_run_options;

typedef enum an_run_end {
    AN_RUN_DONE = 0,          /* all steps */
    AN_RUN_STOPPED_EARLY = 1, /* the metric no longer got better */
    AN_RUN_REQUESTED = 2,     /* an_trainer_request_stop */
    AN_RUN_TIME = 3           /* most_seconds were over */
} an_run_end;

typedef struct an_run_outcome {
    size_t size;
    an_run_end end;
    int64_t steps;     /* taken, in all */
    int64_t best_step; /* 0: no evaluation was the best, because there was none or its metric was NaN */
    double best_value;
    an_evaluation last;   /* of the last evaluation; samples 0: there was none */
    an_step_metrics step; /* of the last step */
    const char *reason;   /* set by the caller before an_folder_finish: why it requested the stop; NULL: not said */
} an_run_outcome;

/* The options that an_trainer_run takes if it is given none; those of the config, for a trainer that was opened from one. */
AN_API an_status an_trainer_set_run_options(an_trainer *trainer, const an_run_options *options);
/* Asks for them: add callbacks and run it. */
AN_API an_status an_trainer_run_options(const an_trainer *trainer, an_run_options *options);

/* Where and when a run is saved. */
typedef struct an_save_options {
    size_t size;
    const char *folder;     /* of the run; NULL: it is not saved */
    const char *stage;      /* a fast folder that is written to first; NULL: none */
    const char *config;     /* text that checkpoints have as config.yaml; NULL: none */
    an_interval every;      /* none: only the last step */
    int64_t keep_last;      /* checkpoints; 0: all */
    int64_t keep_named;     /* those of an_trainer_save; 0: all */
    an_interval keep_every; /* checkpoints that stay; none: none for this reason */
} an_save_options;
AN_API an_status an_trainer_set_saving(an_trainer *trainer, const an_save_options *options);

/* What of a run is written to its folder. */
typedef struct an_log_options {
    size_t size;
    an_interval every; /* from one line of metrics.jsonl to the next; none: every step */
    bool tensorboard;
} an_log_options;
AN_API an_status an_trainer_set_logging(an_trainer *trainer, const an_log_options *options);

/* Seconds until the Slurm job that this process is in ends, less a minute for the step under way and its checkpoint; above 0. An error if
 * there is no such job, or nothing says when it ends. */
AN_API an_status an_job_seconds(an_context *ctx, double *seconds);

/* ---- carrying on, part by part ---- an_trainer_open does all of this. */

typedef struct an_candidates an_candidates;
/* The checkpoints that a run could carry on from, best first: those that the options and the config name; none if it begins anew. */
AN_API an_status an_candidates_create(an_candidates **candidates, an_context *ctx, an_config *config,
                                      const an_open_options *options);
AN_API void an_candidates_destroy(an_candidates **candidates);
AN_API const char *an_candidates_path(const an_candidates *candidates, int index); /* NULL after the last */

typedef struct an_resume an_resume;
/* Reads what a checkpoint says of its run and compares its config with the one that is wanted: keys that the config leaves at their
 * default get the checkpoint's value, and what may not change is refused. Config and options must outlive it. */
AN_API an_status an_resume_create(an_resume **resume, an_context *ctx, an_config *config, const char *checkpoint,
                                  const an_open_options *options);
/* Unless an_resume_apply has succeeded, the config is again as it was given. */
AN_API void an_resume_destroy(an_resume **resume);
/* For how many steps the schedule is made, where the run is to have `steps`: whether that changes the rate is seen from the schedules that
 * `make` makes for either length, and then options.extend decides. */
typedef an_status (*an_schedule_maker)(void *user, int64_t steps, an_schedule **schedule, double *rate);
AN_API an_status an_resume_schedule_steps(an_resume *resume, an_schedule_maker make, void *user, int64_t steps,
                                          int64_t *schedule_steps);
/* Checks bits and data, and takes everything from the checkpoint, into a trainer that has taken no step. */
AN_API an_status an_resume_apply(an_resume *resume, an_trainer *trainer);

/* Takes all steps that are left, with evaluations between them and, if there is data for it, one after the last. `options` may be
 * NULL: those of the config. So may `outcome`. */
AN_API an_status an_trainer_run(an_trainer *trainer, const an_run_options *options, an_run_outcome *outcome);

/* The run ends after the step that is under way. For signal handlers and other threads too. */
AN_API void an_trainer_request_stop(an_trainer *trainer);

/* ---- the folder of a run ----
 *
 * config.yaml (the config with its defaults, files by their whole path), metrics.jsonl, an event file for TensorBoard, log.txt, and at
 * the end summary.json and outcome.json. None of these is collective. */

typedef struct an_folder an_folder;

typedef struct an_folder_options {
    size_t size;
    const char *path; /* NULL: run.dir of the config */
    bool fresh;       /* where it has a run in it, a new one beside it: path-2, path-3, … */
} an_folder_options;

/* How far the run in a folder came; AN_FOLDER_EMPTY if there is none, or no folder. */
typedef enum an_folder_state { AN_FOLDER_EMPTY = 0, AN_FOLDER_UNFINISHED = 1, AN_FOLDER_FINISHED = 2 } an_folder_state;
AN_API an_status an_folder_look(an_context *ctx, const char *path, an_folder_state *state);

/* Makes the folder and what belongs in it before the first step. One that has a run in it is refused, and so is one in which a run is
 * under way. `config` is the one that the trainer was opened from; `options` may be NULL. The trainer must outlive the folder. */
AN_API an_status an_folder_create(an_folder **folder, an_trainer *trainer, an_config *config,
                                  const an_folder_options *options);
AN_API void an_folder_destroy(an_folder **folder);
AN_API const char *an_folder_path(const an_folder *folder);

/* What happens, as the callbacks of a run tell it. A step is written if log.every says so: *logged, which may be NULL, is then true. */
AN_API an_status an_folder_step(an_folder *folder, const an_step_metrics *metrics, bool *logged);
AN_API an_status an_folder_evaluation(an_folder *folder, int64_t step, const an_evaluation *evaluation);
AN_API an_status an_folder_log(an_folder *folder, const char *line); /* one more line of log.txt */
/* How it ended: a run that failed has its error as the reason, others NULL. `outcome` may be NULL if there is an error. */
AN_API an_status an_folder_finish(an_folder *folder, const an_run_outcome *outcome, const char *error);
/* Tokens (samples, where there are none) a second, over the last logged steps and without evaluations. */
AN_API double an_folder_speed(const an_folder *folder);

/* ---- prediction ----
 *
 * A predictor has a copy of a trainer's weights and memory of its own, and allocates nothing in a call. Different predictors may be
 * used by different threads at once, also inside the caller's parallel region, where each runs on the thread that calls it. The
 * same sample gives the same bits alone and in any batch. None of these is collective. */

typedef struct an_predictor an_predictor;

typedef struct an_predictor_options {
    size_t size;
    int64_t most;       /* samples in a call; 0: 1 */
    int threads;        /* 0: the trainer's */
    const char *output; /* which of the model's; NULL: the first */
} an_predictor_options;

/* `options` may be NULL. It starts with the weights of this moment. */
AN_API an_status an_predictor_create(an_predictor **predictor, an_trainer *trainer,
                                     const an_predictor_options *options);
AN_API void an_predictor_destroy(an_predictor **predictor);

/* Takes the weights of this moment; not while the trainer or the predictor is at work. */
AN_API an_status an_predictor_refresh(an_predictor *predictor, const an_trainer *trainer);

/* Elements of one sample of the (only) input and of the output, of which type they are. */
AN_API int64_t an_predictor_input_elements(const an_predictor *predictor);
AN_API int64_t an_predictor_output_elements(const an_predictor *predictor);
AN_API an_dtype an_predictor_dtype(const an_predictor *predictor);

/* n samples, dense, of models with one input of floating numbers. An error is told by an_predictor_error. */
AN_API an_status an_predictor_run_f32(an_predictor *predictor, int64_t n, const float *inputs, float *outputs);
AN_API an_status an_predictor_run_f64(an_predictor *predictor, int64_t n, const double *inputs, double *outputs);
/* The same of models that read tokens: each sample is the context's tokens, and what it gives is the logits of each one's next. */
AN_API an_status an_predictor_run_tokens(an_predictor *predictor, int64_t n, const int32_t *tokens, float *outputs);
AN_API const char *an_predictor_error(const an_predictor *predictor);

#ifdef __cplusplus
}
#endif
#endif
