/* Prediction: reads samples from a file and writes the model's outputs to another. */
#ifndef AN_CLI_PREDICT_PREDICT_H
#define AN_CLI_PREDICT_PREDICT_H

#include "cli/checkpoint/source.h"
#include "cli/train/open.h"

/* What a model's outputs are. */
typedef enum cli_outputs {
    CLI_NUMBERS, /* like its targets */
    CLI_CLASSES, /* logits of classes */
    CLI_LABELS,  /* logits of labels, each by itself */
    CLI_TOKENS   /* logits of each token's next */
} cli_outputs;

/* ---- columns to keep ---- */

enum { CLI_MOST_KEPT = 256 };

typedef struct cli_kept {
    char *texts[CLI_MOST_SETS]; /* of --keep, cut into names */
    const char *names[CLI_MOST_KEPT];
    int count;
} cli_kept;

/* What --keep says; an exit code, after a message. To be freed whatever this returns. */
int cli_kept_list(const cli_call *call, cli_kept *kept);
void cli_kept_free(cli_kept *kept);

/* ---- samples ---- */

typedef struct cli_samples {
    const cli_call *call;
    an_context *ctx;
    an_encoding *encoding; /* of the run's table, which it destroys; NULL: none */
    an_dataset *dataset;
    void *numbers; /* of a .npy file, whose dataset it is */
    void **fields; /* of the dataset, for `most` samples */
    int64_t *indices;
    int64_t count, maximum;     /* samples: in all, of a call */
    int64_t elements;           /* of the model's input for one sample */
    int64_t token_count;        /* of a text, whose last sample is filled up with zeros; 0: all samples are full */
    an_dtype dtype;             /* that the model reads */
    const char *const *columns; /* of the output that come from the file, as it has them; they are the caller's */
    int column_count;
    const char *name; /* of the column that is kept unless others are asked for; NULL: none */
    an_cells *cells;  /* their texts; NULL: there are none */
    bool has_classes; /* the second field is the class that a sample is known to have: its folder */
    bool sentences;   /* the first three fields are its inputs: tokens, their types, and the mask of padding */
} cli_samples;

/* Opens a file that is read as the run's data is; `config` is that of the run. An exit code, after a message. */
int cli_samples_open(cli_samples *samples, an_config *config, const char *file);
void cli_samples_close(cli_samples *samples);
/* Reads the texts of the columns; of images, their files if no column is asked for. An exit code, after a message. */
int cli_samples_keep(cli_samples *samples);
/* The class that sample `i` of those that were read last is known to have; NULL: of none is it known. */
const char *cli_samples_class(const cli_samples *samples, int64_t i);
/* The model's input for n samples from number `begin` on, dense, of its type. */
an_status cli_samples_read(cli_samples *samples, int64_t begin, int64_t n, void *inputs);

/* ---- NumPy's files ---- */

/* Reads a whole file as the type; what it cannot be is told in `problem`. The numbers are the caller's to free. */
void *cli_npy_read(const char *file, an_dtype dtype, int64_t elements, int64_t *count, char *problem, size_t capacity);
/* The head of a file of f32 or f64 with this shape. */
void cli_npy_begin(FILE *file, an_dtype dtype, int ndims, const int64_t *dims);

/* ---- outputs ---- */

typedef struct cli_predictions {
    FILE *file;
    bool numpy; /* as they are; else a line a sample, or a token */
    cli_outputs kind;
    an_dtype dtype;
    int64_t elements, classes;   /* of a sample's output; of a class's or token's */
    an_config *config;           /* which may have names for columns */
    const an_encoding *encoding; /* which may have names for classes; NULL: none */
    int64_t known, right;        /* samples whose class is known to be one of the model's; that are predicted so */
    int64_t unknown;             /* samples whose class is none of the model's */
} cli_predictions;

void cli_predictions_begin(const cli_predictions *predictions, const cli_samples *samples);
/* Outputs of n samples from number `begin` on; `inputs` are theirs. */
void cli_predictions_write(const cli_predictions *predictions, const cli_samples *samples, int64_t begin, int64_t n,
                           const void *inputs, const void *outputs);
/* Compares the most likely classes of n samples, those that were read last, with the ones that they are known to
 * have. */
void cli_predictions_compare(cli_predictions *predictions, const cli_samples *samples, int64_t n, const void *outputs);

#endif
