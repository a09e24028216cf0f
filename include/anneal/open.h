/* From a config to a trainer. an_trainer_open (anneal.h) does all of this in one call. Functions that open a trainer
 * are collective over the ranks of the context; others say so if they are collective.
 */
#ifndef ANNEAL_OPEN_H
#define ANNEAL_OPEN_H

#include "anneal/config.h"
#include "anneal/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

/* What happens to a schedule that ends with the run, if a resumed run gets more steps. */
typedef enum an_extend {
    AN_EXTEND_REFUSE = 0,
    AN_EXTEND_KEEP = 1,    /* the schedule stays; after its end the rate keeps its last value */
    AN_EXTEND_STRETCH = 2, /* the schedule is computed again for the new length: the rate jumps */
    AN_EXTEND_LIMIT = 0x7fffffff
} an_extend;

/* Whether a checkpoint is continued, or a new run begins with its state. */
typedef enum an_restart {
    AN_RESTART_NONE = 0,
    /* A new run with its own rate, schedule, length, data and seed, whose steps count from 0. It begins with the
     * checkpoint's weights, running statistics and normalization, with the optimizer's moments and number of updates,
     * and with the moving average. Its folder (run.dir) must have no other run in it; if the run has checkpoints
     * there, it resumes from them, so the same call continues it. */
    AN_RESTART_SCHEDULE = 1,
    AN_RESTART_LIMIT = 0x7fffffff
} an_restart;

/* A trainer that is opened for a run resumes from the newest good checkpoint in its folder (run.dir), unless
 * these options say otherwise. */
typedef struct an_open_options {
    size_t size;
    const char *kernels; /* as in an_plan_options */
    const char *resume;  /* resume from this checkpoint, or from the newest good one of this run folder, or fail */
    /* resume from the checkpoint that an_trainer_save made with this number, or fail; NULL: any */
    const int64_t *user_step;
    an_open_purpose purpose;
    an_extend extend;
    int rank, ranks, hosts; /* as in an_trainer_options */
    uint32_t details;       /* of evaluations, in addition to those that the config's metrics need; bits of an_detail */
    an_model_weights weights; /* as in an_trainer_options */
    an_restart restart;       /* whether a new run begins with the checkpoint of `resume` */
    /* start a new run, without resuming. A folder that has the checkpoints of another run is refused when the run
     * begins, because the new run's saves would remove them */
    bool fresh;
    /* resume although the checkpoint was made with another instruction set, kernel choice, oneDNN or anneal version, so
     * that results may differ in their last bits; the same as run.allow_new_bits in the config */
    bool new_bits;
    uint8_t reserved[6];
} an_open_options;
AN_API void an_open_options_init(an_open_options *options, size_t size);

/* Reads a config as an_config_create does, for all ranks of a context: rank 0 reads the file and the settings, and
 * every rank gets the same config, with paths relative to rank 0's file. Collective. On one process it is
 * an_config_create. */
AN_API an_status an_config_read(an_config **config, an_context *ctx, const an_config_options *options);

/* Opens a trainer as an_trainer_open does, with a config that was read before. A resumed run keeps the checkpoint's
 * values of keys that the config leaves at their default: `config` then has these values, with the origin
 * AN_ORIGIN_CHECKPOINT. `options` may be NULL. Collective. */
AN_API an_status an_trainer_open_config(an_trainer **trainer, an_context *ctx, an_config *config,
                                        const an_open_options *options);

/* ==== details ==== the rest of the interface */

/* Sets `threads` and `isa` of context options, if they are automatic, to the values that a config requires
 * (ranks.threads, run.isa); a context with other values refuses the config. If the config does not name an instruction
 * set, it is that of the run that would be resumed, if this machine supports it. `open` may be NULL: as
 * an_trainer_open. an_last_error(NULL) has the message of an error. Not collective.
 *
 *     an_context_options options;
 *     an_context_options_init(&options, sizeof options);
 *     an_config_options config;
 *     an_config_options_init(&config, sizeof config);
 *     config.file = "run.yaml";
 *     if (an_context_options_from_config(&options, &config, NULL) == AN_OK &&
 *         an_context_create(&ctx, &options) == AN_OK) ... */
AN_API an_status an_context_options_from_config(an_context_options *options, const an_config_options *config,
                                                const an_open_options *open);

/* ---- samples to predict ---- */

/* How a model reads a sample: what its predictor says. */
typedef struct an_samples_options {
    size_t size;
    const char *path; /* file or folder with the samples */
    /* of the run's table, "encoding.json" in its checkpoint; it must outlive the dataset. NULL: none */
    const an_encoding *encoding;
    int64_t elements; /* numbers or tokens of a sample: an_predictor_input_elements */
    an_dtype dtype;   /* an_predictor_dtype */
    uint32_t reserved;
} an_samples_options;
AN_API void an_samples_options_init(an_samples_options *options, size_t size);

/* What was opened. */
typedef struct an_samples_info {
    size_t size;
    int64_t tokens; /* of a text, whose last sample is filled up with zeros; 0: all samples are full */
    const char
        *name; /* a column for an_cells_create that tells samples apart, such as the file of an image; NULL: none */
    bool has_classes; /* targets are the classes that samples are known to have: the folders of images */
    bool sentences;   /* the first three fields are inputs: tokens, their types, and the mask of padding */
    uint8_t reserved[6];
} an_samples_info;
AN_API void an_samples_info_init(an_samples_info *info, size_t size);

/* Opens a file as `config` says of data.train (of a mixture: of its first part), to predict with a model. The first
 * field is the input, dense, with options.elements numbers a sample. Targets may be absent. The whole file is read,
 * whatever data.train.part says. AN_ERR_SHAPE: its samples are not those of the model. AN_ERR_UNSUPPORTED: data of this
 * type cannot be predicted on, such as a stream. `info` may be NULL. Not collective. */
AN_API an_status an_samples_open(an_dataset **dataset, an_context *ctx, an_config *config,
                                 const an_samples_options *options, an_samples_info *info);

/* ---- resuming, part by part ---- */

typedef struct an_candidates an_candidates;
/* The checkpoints that a run could resume from, best first: those that the options and the config name. None for a new
 * run. Collective: all ranks must have the same config, rank 0 looks, and every rank gets its list. */
AN_API an_status an_candidates_create(an_candidates **candidates, an_context *ctx, an_config *config,
                                      const an_open_options *options);
AN_API void an_candidates_destroy(an_candidates **candidates);
AN_API const char *an_candidates_path(const an_candidates *candidates, int index); /* NULL after the last */

typedef struct an_resume an_resume;
/* Reads a checkpoint's description of its run and compares its config with `config`. Keys that `config` leaves at their
 * default get the checkpoint's values. A changed key that must not change is refused. Config and options must outlive
 * the result. Collective: rank 0 reads for all ranks. */
AN_API an_status an_resume_create(an_resume **resume, an_context *ctx, an_config *config, const char *checkpoint,
                                  const an_open_options *options);
/* Restores the config as it was given, unless an_resume_apply succeeded. */
AN_API void an_resume_destroy(an_resume **resume);
/* The number of leaves of each step of the run, which never changes. 0: a new run begins, which has its own. */
AN_API int64_t an_resume_leaves(const an_resume *resume);
/* Gives the number of steps to make the schedule for, in a run of `steps`. `make` makes a schedule for a number of
 * steps. If the schedules for the old and the new length differ, options.extend decides. */
typedef an_status (*an_schedule_maker)(void *user, int64_t steps, an_schedule **schedule, double *rate);
AN_API an_status an_resume_schedule_steps(an_resume *resume, an_schedule_maker make, void *user, int64_t steps,
                                          int64_t *schedule_steps);
/* Checks instruction set and data, and loads everything from the checkpoint into a trainer that has not taken a
 * step. Collective: ranks read it together. */
AN_API an_status an_resume_apply(an_resume *resume, an_trainer *trainer);

#ifdef __cplusplus
}
#endif
#endif
