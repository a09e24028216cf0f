/* Turns a config into the parts of a run. */
#ifndef AN_OPEN_OPEN_H
#define AN_OPEN_OPEN_H

#include "anneal/config.h"
#include "anneal/models.h"
#include "anneal/train.h"
#include "base/memory.h"
#include "config/config.h"

/* Threads and instructions that the config asks for must be those of the context. A plain trainer is for a
 * context of any instructions. */
an_status an_open_check_context(an_config *config, an_context *ctx, an_open_purpose purpose);

/* Divides the training data as data.split says; nothing if it says nothing. */
an_status an_open_split(an_dataset **training, an_dataset **evaluation, an_config *config, an_context *ctx);
/* Fits what the model normalises to the training data, unless a checkpoint has it already. A stream has it from its
 * program, or from its steps. */
an_status an_open_normalize(an_trainer *trainer, an_config *config, an_context *ctx, bool streams, bool resumes);
/* Columns of very different scales that nothing normalises become a warning of the config. Reads a few samples. */
an_status an_open_look_at_scales(an_config *config, an_dataset *training);

/* Does what the config's model.init says, or else loads the weights of model.from; nothing if the config has
 * neither. All is checked before the first weight changes. */
an_status an_open_init(an_trainer *trainer, an_config *config, an_context *ctx);

/* The details that metrics of the config need. */
uint32_t an_open_details(const an_config *config);
/* Chooses the metrics that are reported; the model must have them. */
an_status an_open_metrics(an_config *config, an_context *ctx, an_trainer *trainer);

/* The weights of data.class_weights, or none: NULL and 0. Release them as `weights` of `count` numbers. */
an_status an_open_class_weights(an_config *config, an_context *ctx, an_dataset *training, double **weights,
                                int64_t *count);
/* The field of the training data with the weights of samples; NULL: none. */
an_status an_open_sample_weights(an_config *config, an_context *ctx, an_dataset *training, const char **field);

/* A stream has the fields that the graph reads. */
an_status an_open_stream(an_dataset **dataset, an_config *config, const an_graph *graph);
/* Puts label smoothing and the exponent of a focal loss into the graph's loss. */
an_status an_open_loss(an_config *config, an_graph *graph);
/* Whether the types of a graph from a file go with train.precision; `auto` may change *precision. */
an_status an_open_precision(an_config *config, const an_graph *graph, an_dtype *precision);
/* ranks.precision, for parameters of this type. */
an_status an_open_rank_precision(an_config *config, an_context *ctx, an_dtype parameters, an_trainer_options *options);
/* Adds the config's adapter to the model, for a plan of this precision; loads the one to start from. */
an_status an_open_lora(an_config *config, an_context *ctx, an_graph *graph, an_dtype precision, bool f32_storage);
an_status an_open_adapter(an_trainer *trainer, an_config *config);
/* Gives the model the loss of preferences where the data has them. */
an_status an_open_dpo(an_config *config, an_context *ctx, an_graph *graph, const an_dataset *training);
/* Reads sources that are in memory once, so that a number out of range is found before the first step; classes that
 * training never sees become a warning of the config. O(samples). */
an_status an_open_look(an_config *config, an_dataset *training, an_dataset *evaluation);
/* Batch norm over too few samples becomes a warning of the config. O(nodes). */
an_status an_open_look_at_batches(an_config *config, an_trainer *trainer);
/* What data.augment says; `training` may be NULL (a stream); *changes: whether it changes anything. */
an_status an_open_augment(an_config *config, an_context *ctx, an_dataset *training, an_augment_options *options,
                          bool *changes);
/* Whether the graph can read a source ("data.train"). */
an_status an_open_fit(an_config *config, an_graph *graph, const an_dataset *dataset, const char *source);

/* ---- lengths and schedules ---- */

/* What turns a length into steps. */
typedef struct an_lengths {
    an_config *config;
    an_context *ctx;
    const an_batches *batches;
    int64_t tokens_a_sample;
} an_lengths;

/* Steps of a length that begins at step `from` of the run; `run` is the run's steps, for shares (0 or INT64_MAX: not
 * known). */
an_status an_open_steps(const an_lengths *lengths, const char *path, const an_length *length, int64_t from, int64_t run,
                        int64_t *steps);
an_length_options an_open_length_options(const an_lengths *lengths, int64_t from, int64_t run);
bool an_open_counts_samples(const an_length *length); /* or tokens */

/* The config's schedule for a run of `steps` (0: endless); what it points to lies in the arena. *rate changes where the
 * schedule has its own. */
an_status an_open_schedule(an_schedule_options *schedule, const an_lengths *lengths, an_arena *arena, int64_t steps,
                           double *rate);

/* What the config says of the run as a whole, into a trainer that has everything else. */
an_status an_open_run(an_trainer *trainer, const an_lengths *lengths, an_open_purpose purpose, bool evaluates);

#endif
