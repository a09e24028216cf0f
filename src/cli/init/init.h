/* What `anneal init` finds in data, and the config that it makes of it.
 *
 *     cli/init/init.c     the command, and which kind of data a path is
 *     cli/init/table.c    CSV
 *     cli/init/columns.c  which columns of a CSV are used
 *     cli/init/balance.c  classes that are rare
 *     cli/init/lines.c    JSON lines
 *     cli/init/language.c JSON lines with conversations, pairs of answers or sentences
 *     cli/init/arrays.c   IDX and NumPy
 *     cli/init/images.c   folders of images
 *     cli/init/text.c     plain text
 *     cli/init/charset.c  texts that are not UTF-8
 *     cli/init/target.c   what targets are: classes or numbers
 *     cli/init/show.c     texts of the data on a terminal
 *     cli/init/path.c     paths in the config
 *     cli/init/write.c    the config
 *
 * What was found is told on standard error, so that standard output has the config alone. */
#ifndef AN_CLI_INIT_INIT_H
#define AN_CLI_INIT_INIT_H

#include <stdio.h>

#include "anneal/data.h"
#include "cli/main/cli.h"

enum { INIT_PATH = 4096 };

typedef enum init_task { INIT_AUTO, INIT_CLASSIFY, INIT_REGRESS } init_task;

/* What is known of the data. A function for a kind of data fills it. */
typedef struct init_found {
    const cli_call *call;
    an_context *ctx;
    const char *data;       /* as it was given */
    char folder[INIT_PATH]; /* of the config */
    char config[INIT_PATH]; /* its file; "": it is written to a terminal or a pipe */
    const char *target;     /* of --target; NULL: not given */
    const char *from;       /* of --from: a published model; NULL: not given */
    const char *numbers;    /* of --numbers: point or comma; NULL: not given */
    const char *dates;      /* of --dates: day_first or month_first; NULL: not given */
    init_task task;

    const char *type;                         /* of data.train */
    char *source;                             /* lines of data.train after its type */
    FILE *source_stream;                      /* writes them */
    bool is_whole;                            /* `source` is the whole config */
    int64_t samples;                          /* of the whole data */
    int64_t inputs;                           /* numbers of a sample */
    int64_t classes;                          /* 0: targets are numbers */
    bool has_labels;                          /* targets are 0 or 1, several for a sample */
    int64_t rarest;                           /* samples of the class with the fewest; 0: not known, or none */
    int64_t commonest;                        /* of the class with the most */
    char rarest_name[64], commonest_name[64]; /* of these classes, as init_show gives them */
    char group[256];                          /* the column that says which samples belong together; "": none */
    const char *missing;                      /* method of data.missing; NULL: no cell is missing */
    bool is_image;                            /* samples are [channels, height, width] */
    bool is_scaled;                           /* inputs are numbers from 0 to 1 */
    int64_t height, width;
    bool has_evaluation;                 /* the data has a part of its own to evaluate on, which `source` says */
    int64_t tokens, vocabulary, context; /* of text; vocabulary 0: it is no text */
} init_found;

/* Whether the first of these JSON lines has the members of a conversation, a pair of answers or a sentence with a
 * label; and the config for such data. `firsts` are the first characters of the values. */
bool init_is_language(const init_found *f, const char *const *names, const char *firsts, int64_t count);
int init_language(init_found *f, const char *const *names, const char *firsts, int64_t count);

/* One function for a kind of data: an exit code, after a message. */
int init_table(init_found *f);
int init_lines(init_found *f);
int init_idx(init_found *f);
int init_npy(init_found *f);
int init_images(init_found *f);
int init_text(init_found *f);

/* CLI_MISUSED, after a message, if the file or one of those that fit a pattern is a text that is not UTF-8. */
int init_check_charset(const init_found *f);

/* A text of the data as a terminal may show it: without control characters, and cut off at a whole character. */
typedef struct init_shown {
    char text[64];
} init_shown;
init_shown init_show(const char *text, size_t maximum);

/* ---- classes ---- */

/* Counts the samples of one more class. */
void init_count_class(init_found *f, const char *name, int64_t samples);
/* Whether the rarest class has less than a fifth of what it would have if all had the same. */
bool init_is_unbalanced(const init_found *f);
/* What to expect of rare classes, on standard error. */
void init_tell_balance(const init_found *f);

/* ---- targets ---- */

/* The target among names of columns, by the name that it has in most tables, or else the last. Names that are NULL are
 * skipped. The reason is told. -1: --target names another. */
int64_t init_choose_target(const init_found *f, const char *const *names, int64_t count);

/* The column of a name, or of a number from 1 on; -1: there is none. */
int64_t init_find_column(const char *name, const char *const *names, int64_t count);

/* Numbers that could be classes or measurements. */
typedef struct init_numbers {
    double minimum, maximum;
    int64_t different; /* numbers; above INIT_MOST_CLASSES: more than that */
    bool whole;
} init_numbers;
enum { INIT_MOST_CLASSES = 1000 };
/* Decides whether these are classes, tells the reason, and sets what is found. CLI_MISUSED: --task asks
 * for what they cannot be. */
int init_decide(init_found *f, const char *name, const init_numbers *numbers);
/* Reads all targets of a dataset, which have one number each; false: they have more. */
int init_read_targets(init_found *f, an_dataset *dataset, init_numbers *numbers, bool *single);

/* ---- writing ---- */

/* A text as YAML and JSON quote it; without quotes where it needs none. */
void init_put_text(FILE *file, const char *text);
/* The file of the config, and where paths in it start: the folder of --output, or that of the file which standard
 * output goes to, or else the working directory. False, with errno: it is not there. */
bool init_find_folder(init_found *f, const char *output);
/* Writes the path of a file to the source as the config names it: relative to its folder if the file is inside
 * it, or else from the root. */
void init_put_path(const init_found *f, const char *path);
void init_write(FILE *out, const init_found *f);

#endif
