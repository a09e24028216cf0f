/* eval.generate: what the model writes at every evaluation. */
#ifndef AN_CLI_TRAIN_WRITTEN_H
#define AN_CLI_TRAIN_WRITTEN_H

#include "cli/train/open.h"

typedef struct cli_prompt {
    char *text;
    int32_t *tokens;
    int64_t count;
    char *written; /* of the evaluation at hand */
    size_t length;
} cli_prompt;

typedef struct cli_writer {
    struct an_generator *generator; /* NULL: the config does not ask for it */
    cli_prompt *prompts;
    int64_t count;
    bool has_failed; /* a warning was given */
} cli_writer;

/* Reads the prompts; an exit code, after a message. To be closed whatever this returns. */
int cli_writer_open(cli_writer *writer, cli_training *training);
/* A file of the run's folder gets a line for each prompt. What fails is a warning, given once: a run does not end
 * for it. Collective where ranks divide the weights. */
void cli_writer_write(cli_writer *writer, cli_training *training, int64_t step);
void cli_writer_close(cli_writer *writer);

#endif
