/* Types of data. A type is one file with a record, and a line in kinds.def: docs/howto/add-a-kind.md. */
#ifndef AN_KINDS_DATA_DATA_H
#define AN_KINDS_DATA_DATA_H

#include "anneal/open.h"
#include "anneal/text.h"
#include "base/options/kind.h"
#include "kinds/keys.h"

/* A source that is being opened. */
typedef struct an_data_opening {
    an_dataset **dataset;
    const an_dataset **vocabulary; /* as in an_data_open */
    an_config *config;
    an_context *ctx;
    const char *path; /* of the source in the config, "data.train" */
} an_data_opening;

/* A file of samples that is being opened for a model. */
typedef struct an_samples_opening {
    an_data_opening source; /* that says how the file is read */
    const an_samples_options *model;
    an_samples_info *info;
} an_samples_opening;

typedef struct an_data_kind {
    an_kind kind;
    /* Makes the dataset; NULL: samples come from a program. */
    an_status (*open)(const an_data_opening *o);
    /* The same of a file that is given, all of it, with or without targets. NULL: nobody predicts on such data. */
    an_status (*open_samples)(const an_samples_opening *o);
    bool is_text;       /* so a spreadsheet in its place is worth a message of its own */
    bool is_in_memory;  /* its numbers are checked once, before the first step */
    bool has_tokenizer; /* the file NAME.tokenizer beside it says how many different tokens there are */
} an_data_kind;

#define AN_DATA(name) extern const an_data_kind an_data_##name;
#include "kinds/data/kinds.def"
#undef AN_DATA

/* The members of a source that the config names. */
#define AN_FILL(opening, type, source) an_config_fill((opening)->config, (opening)->path, type, source)

/* The same of a file of samples, whose path is given: all of it, whatever part training has. */
static inline an_status an_data_take_all(an_status filled, double *begin, double *end) {
    *begin = 0;
    *end = 1;
    return filled;
}
#define AN_FILL_ALL(opening, type, s) an_data_take_all(AN_FILL(&(opening)->source, type, (s)), &(s)->begin, &(s)->end)

/* The kind of the source at `path`; NULL: there is no source. */
const an_data_kind *an_data_kind_at(const an_config *config, const char *path);
/* Whether data.train is a stream, which has no end. */
bool an_data_streams(const an_config *config);

/* The dataset under `path` ("data.train"); *dataset is NULL if the config has none. *vocabulary is the first text by
 * characters, table or source with names of classes: later ones must have its numbers of characters and names. It
 * is set where it is NULL. */
an_status an_data_open(an_dataset **dataset, const an_dataset **vocabulary, an_config *config, an_context *ctx,
                       const char *path);

/* ---- for records ---- */

/* Tokens of a sample: those of the source, or of the model's context. */
an_status an_data_context(an_config *config, an_context *ctx, const char *path, int64_t *context);
/* Whether images are rows unless the config says otherwise, and whether the model takes them as images. */
bool an_data_is_flat(const an_data_opening *o);
bool an_data_is_of_images(const an_data_opening *o);
bool an_data_evaluates(const an_data_opening *o);
/* A dataset whose names of classes this one must number as it does; NULL: there is none. */
const an_dataset *an_data_classes(const an_data_opening *o);
/* Lets later sources have the numbers of characters and names of this one. */
void an_data_remember(const an_data_opening *o);
/* Whether the targets at borders of documents are left out; documents that are joined have none. */
an_status an_data_ignores_borders(const an_data_opening *o, bool documents, bool *ignores);
/* A tokenizer: the source's own, or that of the model that the weights come from. */
an_status an_data_tokenizer(const an_data_opening *o, an_tokenizer **tokenizer, const char **place);
/* Numbers or tokens of a sample's input. */
int64_t an_data_elements(const an_dataset *dataset);
/* Refuses samples that the model does not read: `what` ("an image") has another number of elements. `advice` ends the
 * message. */
an_status an_samples_check(const an_samples_opening *o, const char *what, const char *advice);
/* Conversations and prompts with answers, or pairs of answers. */
an_status an_data_open_chat(const an_data_opening *o, bool pairs);

#endif
