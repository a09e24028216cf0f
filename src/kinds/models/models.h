/* Types of models. A type is one file with a record, and a line in kinds.def: docs/howto/add-a-kind.md. */
#ifndef AN_KINDS_MODELS_MODELS_H
#define AN_KINDS_MODELS_MODELS_H

#include "anneal/models.h"
#include "base/options/kind.h"
#include "kinds/keys.h"

/* A model that is being made. */
typedef struct an_model_opening {
    an_graph **graph;
    an_config *config;
    an_context *ctx;
    an_dataset *dataset; /* NULL: samples are what the model says */
    an_dtype dtype;
    an_field inputs, targets; /* the first of each */
    int64_t classes;          /* 0: targets are numbers, or nobody knows how many classes there are */
    const char *checkpoint;   /* that the run resumes from; NULL: none */
} an_model_opening;

typedef struct an_model_kind {
    an_kind kind;
    an_status (*open)(an_model_opening *o); /* makes the graph */
    const char *no_scale;                   /* why data.normalize cannot be used; NULL: it can */
    bool embeds;                            /* data.train.categories: embedding */
    bool takes_rows;                        /* images are rows of numbers, unless the data says otherwise */
    bool takes_images;                      /* images have channels, and targets are classes */
} an_model_kind;

#define AN_MODEL(name) extern const an_model_kind an_model_kind_##name;
#include "kinds/models/kinds.def"
#undef AN_MODEL

/* NULL: the config has no model. */
const an_model_kind *an_model_kind_of(const an_config *config);
/* Whether the config has an adapter. */
bool an_model_adapts(const an_config *config);

/* The graph of the config's model; sizes that the config leaves open are those of the data, which a stream (NULL) does
 * not say. `dtype` is of its parameters. `checkpoint`: that the run resumes from; NULL: none. */
an_status an_model_open(an_graph **graph, an_config *config, an_context *ctx, an_dataset *dataset, an_dtype dtype,
                        const char *checkpoint);
/* model.context; a published model that takes fewer tokens than the default has its own. */
an_status an_model_context(an_config *config, an_context *ctx, int64_t *context);
/* Whether data.normalize.inputs or data.normalize.targets asks for a scaling. */
bool an_model_normalizes(const an_config *config, const char *path);

/* ---- for records ---- */

/* Only data says what is left open: refuses options that are auto where there is none. */
an_status an_model_expect_sizes(const an_model_opening *o, const char *const *paths, int count);
/* How many different tokens there are, unless the config says it. */
an_status an_model_vocabulary(const an_model_opening *o, int64_t *vocabulary);
/* Whether the loss is over classes: the config says so, or the targets are integers. */
bool an_model_wants_classes(const an_model_opening *o);
an_status an_model_loss_kind(const an_model_opening *o, an_loss_kind *loss);
/* Finds how many classes the data has, O(samples). */
an_status an_model_classes(an_model_opening *o);
/* Whether samples say which document a token is of: then attention must not cross their borders. */
bool an_model_keeps_documents_apart(const an_model_opening *o);

/* The columns of categories that the model embeds; none unless the config asks for that. */
enum { AN_MODEL_MOST_EMBEDDED = 256 };
bool an_model_embeds(const an_config *config);
an_status an_model_embedded(an_model_opening *o, an_embedded_column columns[AN_MODEL_MOST_EMBEDDED], int *count);

#define AN_TOKENS_HAVE_NO_SCALE "the inputs and targets of a language model are tokens, which have no scale"

#endif
