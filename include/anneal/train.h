/* The trainer: a model, its data and an optimizer, combined in the right order. run.h trains to the end, with
 * evaluations and saves in between.
 *
 * With several ranks, these are collective: an_trainer_create, an_trainer_step, an_trainer_step_on and its typed twins,
 * and an_trainer_evaluate. Every rank calls them, in the same order, and all of them return the same status: an error
 * of one rank is everyone's.
 */
#ifndef ANNEAL_TRAIN_H
#define ANNEAL_TRAIN_H

#include "anneal/adapter.h"
#include "anneal/data.h"
#include "anneal/step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

/* Which gradient norms an_trainer_norm returns, besides the norm of all gradients. */
typedef enum an_norms {
    AN_NORMS_GLOBAL = 0,    /* none */
    AN_NORMS_BLOCK = 1,     /* one for each block of the model, and for each layer outside of blocks */
    AN_NORMS_PARAMETER = 2, /* one for each parameter */
    AN_NORMS_LIMIT = 0x7fffffff
} an_norms;

/* What a trainer is made for. */
typedef enum an_open_purpose {
    AN_OPEN_RUN = 0,
    AN_OPEN_PLAN = 1, /* to inspect its plan: no weight is allocated, and no step can be taken */
    /* as a reference for comparisons: f32 (or f64), nothing fused; in a context with AN_ISA_BASE, portable kernels */
    AN_OPEN_PLAIN = 2,
    AN_OPEN_LIMIT = 0x7fffffff
} an_open_purpose;

/* What evaluations keep in addition to their metrics, if the model has it (details.h). These are bits, combined with
 * |. */
typedef enum an_detail {
    /* the confusion matrix, for up to 1,000 classes: precision, recall and F1 */
    AN_DETAIL_CLASSES = 1,
    AN_DETAIL_SCORES = 2,  /* the scores of two classes, 8 bytes a target: the ROC curve and the area under it */
    AN_DETAIL_OUTPUTS = 4, /* errors by output of a model that predicts numbers, on one process */
    AN_DETAIL_TOKENS = 8,  /* the accuracy of a language model is part of state_hash; every evaluation reports it */
    AN_DETAIL_LIMIT = 0x7fffffff
} an_detail;

/* If ranks divide gradients and a step has several micro-batches on each rank: whether a rank adds their gradients in
 * whole buffers of its own and sends them once, or sends the gradients of each micro-batch. The bits are the same. */
typedef enum an_accumulation {
    AN_ACCUMULATE_AUTO = 0, /* ON if there is room for the buffers, otherwise OFF */
    AN_ACCUMULATE_ON = 1,
    AN_ACCUMULATE_OFF = 2, /* minimum memory, maximum traffic. A micro-batch must have room for a leaf */
    AN_ACCUMULATE_LIMIT = 0x7fffffff
} an_accumulation;

typedef struct an_trainer_options {
    size_t size;
    int64_t steps;                         /* length of the run; 0: `epochs` */
    int64_t epochs;                        /* length of the run in passes over the data, if `steps` is 0; 0: 1 */
    uint64_t seed;                         /* random seed for weights, sample order and dropout */
    const an_batch_options *batch;         /* NULL: defaults */
    const an_group_options *groups;        /* NULL: defaults */
    const an_optimizer_options *optimizer; /* NULL: defaults */
    const an_schedule_options *schedule;   /* NULL: constant; its steps 0: those of the run */
    double rate, clip_norm, clip_value;    /* as in an_stepper_options */
    const char *kernels;                   /* as in an_plan_options */
    int64_t budget;                        /* as in an_plan_options */
    int64_t evaluation_samples;            /* number of samples to evaluate, from the first; 0: all */
    /* fail after this many consecutive skipped steps, or if the loss scale falls below 1; 100 by default */
    int64_t max_skips;
    /* for the plan, with `owns`: bytes of the context (an_context_bytes) that graph and datasets hold */
    int64_t owned_bytes;
    /* files of a checkpoint that are written at the same time; 0: one per rank, or one per host if there are more than
     * 64 ranks */
    int64_t writers;
    int64_t min_elements;              /* as in an_plan_options */
    const an_augment_options *augment; /* random changes of training samples; NULL: none */
    /* weight of each class, for a model that predicts one class per sample; copied. The loss of a step is the sum of
     * weight · loss over its targets, divided by the sum of their weights. Evaluations do not use them. NULL: none */
    const double *class_weights;
    int64_t class_weight_count; /* 0: none */
    /* name of the field of the training data, f32 or f64 without dimensions, with the weight of each sample: 0 or more,
     * and finite. It is multiplied by the weight of the sample's class. The loss of a step is the sum of weight · loss
     * over its targets, divided by the sum of their weights; a step whose weights are all 0 has the loss 0 and no
     * gradient. Weights are rounded to 2^-40 of the largest, or less. Evaluations do not use them. All weights are read
     * once, O(samples). NULL: all samples have the same weight */
    const char *sample_weights;
    double ema_decay; /* as in an_stepper_options; 0: none */
    /* samples that are evaluated at a time. Part of the run, because sums are added by these groups. 0: 512 rows
     * (samples × tokens), or 32 images */
    int64_t evaluation_micro;
    an_dtype precision; /* NONE: as the graph is written; with F16 the loss is scaled */
    an_recompute recompute;
    int segments;       /* as in an_plan_options */
    int loader_threads; /* threads that read ahead, and as many for evaluations; 0: samples are read when needed */
    an_norms norms;
    an_open_purpose purpose;
    int rank, ranks; /* with AN_OPEN_PLAN: plan for this one of `ranks` ranks; ranks 0: those of the context */
    int hosts;       /* with AN_OPEN_PLAN: number of hosts of these ranks; 0: one */
    an_shard shard;  /* as in an_plan_options, or AN_SHARD_AUTO; one process divides nothing */
    /* bits of an_detail; 0: none. Metrics of classes that are requested here are part of state_hash */
    uint32_t details;
    /* weights for evaluations and predictors of this trainer: AUTO and AVERAGE are the moving average, if there is
     * one */
    an_model_weights weights;
    an_accumulation accumulate;
    bool skips;       /* skip a step with numbers that are not finite; otherwise it is an error */
    bool fused;       /* as in an_plan_options; true by default */
    bool f32_storage; /* as in an_plan_options */
    /* the loss is the mean over samples of the mean over each sample's targets; otherwise it is the mean over all
     * targets of a step. Samples without targets do not count */
    bool sample_mean;
    /* graph and datasets are destroyed with the trainer; if it cannot be created, they remain the caller's */
    bool owns;
    bool saves;        /* the run will be saved: the plan counts the memory of a checkpoint */
    bool reduces_bf16; /* as in an_stepper_options */
    /* an_trainer_load_weights or a resume follows: only parameters that it does not load get random values. Until then
     * weights are 0 */
    bool loads_weights;
    uint8_t reserved[4];
} an_trainer_options;
AN_API void an_trainer_options_init(an_trainer_options *options, size_t size);

/* Creates a trainer for a model and a dataset. `evaluation` and `options` may be NULL. Groups may freeze parameters of
 * the graph. The graph, the datasets and everything that the options point to must outlive the trainer, except the
 * option structs themselves. Collective. */
AN_API an_status an_trainer_create(an_trainer **trainer, an_graph *graph, an_dataset *training, an_dataset *evaluation,
                                   const an_trainer_options *options);

/* ---- initial weights ---- */

/* Renames tensors of a file: `text` replaces the match of the regular expression. This struct never grows. */
typedef struct an_load_rename {
    const char *pattern, *text;
} an_load_rename;

/* Initial weights from files. */
typedef struct an_load_options {
    size_t size;
    const char *path;       /* a checkpoint, a run folder, a safetensors file, or a Hugging Face model directory */
    const char *model_type; /* "gpt2" or "llama": required type of a Hugging Face model; NULL: any */
    const char *place;      /* text that messages begin with; NULL: none */
    const an_load_rename *renames; /* applied to the names in the files, in order */
    int rename_count;
    bool accepts_missing;    /* parameters that the files do not have keep their random values; otherwise an error */
    bool accepts_unexpected; /* tensors that the model does not have are ignored; otherwise an error */
    /* `path` is a PEFT folder with adapter_config.json and adapter_model.safetensors: they are loaded into the adapter
     * of the model (an_graph_add_lora), which must have the same layers, rank, alpha, rslora and dora. Otherwise the
     * adapter is unchanged, and magnitudes of DoRA become the norms of the weights */
    bool adapter;
    /* a BERT head (pooler, classifier) that the files do not have in this shape keeps its random values, and the log
     * says so; heads for other tasks are ignored. Otherwise both are errors */
    bool new_heads;
    an_model_weights weights; /* of a checkpoint */
    uint32_t reserved_weights;
} an_load_options;
AN_API void an_load_options_init(an_load_options *options, size_t size);
/* Loads initial weights into a trainer that has not taken a step. Everything is checked before the first weight
 * changes. */
AN_API an_status an_trainer_load_weights(an_trainer *trainer, const an_load_options *options);

/* ---- normalization ---- */

/* How mean and scale follow from the statistics of a feature. If all numbers of a feature are equal, the mean is this
 * number and the scale is 1. */
typedef enum an_scaling {
    AN_SCALING_STANDARD = 0, /* mean and deviation: numbers around 0, of deviation 1 */
    AN_SCALING_RANGE = 1,    /* minimum and range: numbers from 0 to 1 */
    AN_SCALING_LIMIT = 0x7fffffff
} an_scaling;

typedef struct an_normalize_options {
    size_t size;
    int64_t samples;            /* number of training samples to use, from the first; 10,000 by default; 0: all */
    const an_features *inputs;  /* statistics to use instead, as for a stream, with the model's features. NULL: none */
    const an_features *targets; /* the same */
    an_scaling input_scaling, target_scaling;
    /* for a stream: compute the statistics from the samples of the steps so far, each step with the same weight. The
     * first step uses those of its own samples */
    bool running;
    uint8_t reserved[7];
} an_normalize_options;
AN_API void an_normalize_options_init(an_normalize_options *options, size_t size);

/* Gives a model that was built with normalize_inputs or normalize_targets (models.h) its means, scales and ranges,
 * before the first step. Constant features become a note of the trainer. With `running`, call it for a resumed run too,
 * whose states continue from those of the checkpoint. Not collective: every rank computes everything, and all ranks
 * must give the same options. */
AN_API an_status an_trainer_normalize(an_trainer *trainer, const an_normalize_options *options);

/* ---- evaluations ---- an_trainer_step is in anneal.h, an_trainer_run in run.h. */

typedef struct an_evaluation {
    size_t size;
    int64_t samples, targets;
    double loss;                    /* mean over all targets */
    double perplexity;              /* e^loss */
    double accuracy, top5;          /* fractions from 0 to 1; only if `classifies`, accuracy also if `counts_right` */
    double mean_absolute_error, r2; /* only if `measures` */
    double seconds;                 /* duration of the evaluation */
    double precision, recall, f1;   /* means over classes; only if `counts_classes` */
    double auc;          /* area under the ROC curve, NaN if a class has no targets; only if `scores_classes` */
    double margin;       /* mean reward of the chosen answers minus that of the rejected ones; only if `prefers` */
    bool classifies;     /* the model predicts classes */
    bool measures;       /* the model predicts numbers like its targets */
    bool counts_classes; /* the trainer has AN_DETAIL_CLASSES, and the model classifies */
    bool scores_classes; /* the trainer has AN_DETAIL_SCORES, and the model has two classes */
    bool counts_right;   /* accuracy is known without `classifies`, for a language model, whose targets are tokens */
    bool prefers;        /* the model learns from pairs of answers (an_graph_add_dpo) */
    uint8_t reserved[2];
} an_evaluation;
AN_API void an_evaluation_init(an_evaluation *evaluation, size_t size);

/* Evaluates all samples of the evaluation dataset (or the first evaluation_samples), each once. Training is not
 * affected. Collective. */
AN_API an_status an_trainer_evaluate(an_trainer *trainer, an_evaluation *evaluation);
/* Gives the last evaluation of the run (run.h); after a resume, the one in the checkpoint. AN_ERR_STATE: there was
 * none. Not collective. */
AN_API an_status an_trainer_evaluation(const an_trainer *trainer, an_evaluation *evaluation);

/* Gives a number of an evaluation by its name: "val_loss", "val_perplexity", "val_accuracy", "val_top5", "val_mae",
 * "val_r2", "val_precision", "val_recall", "val_f1", "val_auc", "val_margin". false: there is no such metric, or this
 * model or this trainer does not have it. Not collective. */
AN_API bool an_evaluation_metric(const an_evaluation *evaluation, const char *name, double *value);

/* ==== details ==== the rest of the interface */

/* Checks that a graph can read the samples of a dataset. The message of an error says what does not fit. Not
 * collective. */
AN_API an_status an_graph_check_data(an_graph *graph, const an_dataset *dataset);

/* ---- metrics and norms ---- */

/* Gives the numbers of the last step; after a resume, those in the checkpoint. AN_ERR_STATE: there was none. Not
 * collective. */
AN_API an_status an_trainer_step_metrics(const an_trainer *trainer, an_step_metrics *metrics);

/* Sets the metrics of evaluations that are reported, by name. count 0: the loss, and the metrics that suit the
 * model. */
AN_API an_status an_trainer_set_metrics(an_trainer *trainer, int count, const char *const *names);
/* The names of these metrics; NULL after the last. */
AN_API const char *an_trainer_metric(const an_trainer *trainer, int index);
/* Checks that the model can have a metric. The message of an error says why not. */
AN_API an_status an_trainer_check_metric(const an_trainer *trainer, const char *name);

/* The gradient norms of the last step, before clipping, as options.norms says. Names live as long as the graph. */
AN_API int an_trainer_norm_count(const an_trainer *trainer);
AN_API an_status an_trainer_norm(const an_trainer *trainer, int index, const char **name, double *norm);

/* ---- looking at a trainer ---- */

/* The run in numbers. */
typedef struct an_trainer_info {
    size_t size;
    int64_t parameters;                       /* elements of all parameters */
    int64_t samples;                          /* of the training data; 0: a stream */
    int64_t evaluation_samples;               /* of an evaluation; 0: there is none */
    int64_t tokens;                           /* per sample; 1 if samples are not made of tokens */
    int64_t steps;                            /* of the run */
    int64_t epoch_steps;                      /* of epoch 1, the first; 0: a stream */
    int64_t min_epoch_steps, max_epoch_steps; /* epochs differ if accumulation changes by epoch; 0: a stream */
    int64_t global, micro, leaves;            /* samples in a step and in a micro-batch; leaves of a step */
    int64_t min_micro;                        /* samples in the smallest micro-batch of the run; 0: a stream */
    double epochs;                            /* length of the run in epochs; 0: a stream */
    double rate;                              /* peak learning rate; 0: opened to inspect its plan */
    int64_t evaluation_micro;                 /* samples that are evaluated at a time; 0: there is no evaluation */
    int64_t together;                         /* leaves in a micro-batch; 1: a micro-batch is a leaf or part of one */
    an_dtype dtype, precision;                /* of the parameters; of products */
    int loader_threads;
    an_recompute recompute; /* the choice, if the options say AN_RECOMPUTE_AUTO */
} an_trainer_info;
AN_API void an_trainer_info_init(an_trainer_info *info, size_t size);
AN_API an_status an_trainer_info_get(const an_trainer *trainer, an_trainer_info *info);

/* A way to divide the state of a run among its ranks, and its cost. A trainer of several ranks that is opened to
 * inspect its plan, or with AN_SHARD_AUTO, has examined all of them. */
typedef struct an_strategy {
    size_t size;
    const char *name; /* as ranks.shard has it */
    /* why AN_SHARD_AUTO takes it, or why it cannot be used; "": neither. Both texts are sentences without their full
     * stops and live as long as the trainer */
    const char *reason;
    const char *room; /* memory that it needs, and memory that there is */
    int64_t sent;     /* bytes of messages in a step, maximum of the ranks */
    /* bytes of other ranks' gradients in shared memory, read and written, maximum of the ranks */
    int64_t shared;
    double seconds; /* of a step, estimated for the machine that the library was tuned on, to compare strategies */
    int rank;       /* the rank that needs most memory */
    bool possible;  /* the leaves and options of this run allow it */
    bool fits;      /* every rank has room for it */
    bool automatic; /* AN_SHARD_AUTO takes it */
    bool taken;     /* by this trainer */
} an_strategy;
AN_API void an_strategy_init(an_strategy *strategy, size_t size);
/* AN_ERR_STATE: the trainer has not examined it. Not collective. */
AN_API an_status an_trainer_strategy(const an_trainer *trainer, an_shard shard, an_strategy *strategy);
/* Gives the memory of the rank that needs most; zeros if the strategy is not possible. Not collective. */
AN_API an_status an_trainer_strategy_memory(const an_trainer *trainer, an_shard shard, an_plan_memory *memory);

enum { AN_HASH_TEXT = 33 };
/* XXH3-128 of the weights in canonical order, as 32 hexadecimal digits. Both hashes are collective if ranks divide the
 * state (an_shard). */
AN_API an_status an_trainer_weights_hash(const an_trainer *trainer, char text[AN_HASH_TEXT]);

/* XXH3-128 of everything that a run continues with: weights, moments, running statistics, the loss scale, the step, and
 * the loss, rate, norm and evaluations of every step so far. Times are not included. */
AN_API an_status an_trainer_state_hash(const an_trainer *trainer, char text[AN_HASH_TEXT]);

/* The parts of a trainer, which belong to the trainer. Not collective. */
AN_API an_params *an_trainer_params(an_trainer *trainer);
AN_API an_program *an_trainer_program(an_trainer *trainer);
AN_API const an_dataset *an_trainer_data(const an_trainer *trainer); /* the training data; NULL: none */
AN_API an_plan *an_trainer_plan(an_trainer *trainer);
AN_API an_graph *an_trainer_graph(an_trainer *trainer);
AN_API const an_groups *an_trainer_groups(const an_trainer *trainer);
AN_API const an_schedule *an_trainer_schedule(const an_trainer *trainer);

#ifdef __cplusplus
}
#endif
#endif
