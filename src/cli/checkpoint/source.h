/* What the checkpoint commands share. */
#ifndef AN_CLI_CHECKPOINT_SOURCE_H
#define AN_CLI_CHECKPOINT_SOURCE_H

#include "anneal/checkpoint.h"
#include "anneal/config.h"
#include "base/text/json_write.h"
#include "cli/main/cli.h"

enum { CLI_PATH = 4096 };

/* A checkpoint, or a file of tensors, that is looked at. */
typedef struct cli_checkpoint {
    const cli_call *call;
    an_context *ctx;
    an_checkpoint *checkpoint;
    an_checkpoint_info info;
    const char *choice; /* which of a run's checkpoints it is: "best", "newest" or "given" */
} cli_checkpoint;

/* An exit code, after a message. To be closed whatever this returns. */
int cli_checkpoint_open(const cli_call *call, const char *path, cli_checkpoint *opened);
/* The same for a command that uses the model of a run. `which` is the value of --checkpoint; NULL: the best if the run
 * has one, else the newest. Says on standard error which it took. */
int cli_checkpoint_open_model(const cli_call *call, const char *path, const char *which, cli_checkpoint *opened);
#define CLI_CHECKPOINT_ARGUMENT "best|newest|PATH"
#define CLI_CHECKPOINT_HELP                                                                                    \
    "checkpoint of the run to use: best is what the link best in its folder points to, PATH is a folder or a " \
    "name in RUN/checkpoints (default: best if the run has one, otherwise newest)"
void cli_checkpoint_close(cli_checkpoint *opened);

/* The config that the run was saved with, and these settings over it. *config is NULL, and that is no
 * error, where there is none. */
an_status cli_checkpoint_config(const cli_checkpoint *opened, an_context *ctx, int set_count, const char *const *sets,
                                an_config **config);
/* A context for the trainer of a checkpoint: threads of its config, these instructions; for AN_ISA_AUTO those that it
 * was trained with, or those that the machine has, and a remark, where that has not got them. */
int cli_checkpoint_context(const cli_checkpoint *opened, an_config *config, an_isa isa, an_context **ctx);

/* The folder with the tokenizer of a run on tokens; false: none is known. */
bool cli_checkpoint_tokenizer(const cli_checkpoint *opened, an_config *config, char folder[CLI_PATH]);

/* The value of --weights; NULL: it was not given. An exit code, after a message. */
int cli_weights_choose(const cli_call *call, const char *value, an_model_weights *weights);
#define CLI_WEIGHTS_HELP \
    "weights to use: raw, or ema, their moving average (default: the average if the run was trained with train.ema)"

/* ---- elements, in pieces ---- */

enum { CLI_PIECE = 65536 };

/* Memory for a piece of a tensor as it is, and as numbers. */
typedef struct cli_piece {
    char *raw;
    double *numbers; /* of a type that anneal has */
} cli_piece;
bool cli_piece_create(cli_piece *piece); /* false: there is no memory */
void cli_piece_destroy(cli_piece *piece);
/* At most CLI_PIECE elements, from `begin` on. */
an_status cli_piece_read(cli_piece *piece, const cli_checkpoint *from, int64_t index,
                         const an_checkpoint_tensor *tensor, int64_t begin, int64_t count);

/* "[64, 32]"; cut where it does not fit. */
typedef struct cli_shape {
    char text[128];
} cli_shape;
cli_shape cli_shape_of(const an_checkpoint_tensor *tensor);

/* A name from a file as a terminal may show it: other bytes are written as \x1b, and what is too long for a table is
 * cut. */
typedef struct cli_name {
    char text[128];
} cli_name;
cli_name cli_name_of(const char *name);

#endif
