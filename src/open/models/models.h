/* Types of models. A type is one file with a record, and a line in kinds.def: docs/howto/add-a-kind.md. */
#ifndef AN_OPEN_MODELS_MODELS_H
#define AN_OPEN_MODELS_MODELS_H

#include "base/options/kind.h"
#include "open/open.h"

typedef struct an_model_kind {
    an_kind kind;
    an_status (*open)(an_model_opening *o); /* makes the graph */
    const char *no_scale;                   /* why data.normalize cannot be used; NULL: it can */
    bool embeds;                            /* data.train.categories: embedding */
    bool takes_rows;                        /* images are rows of numbers, unless the data says otherwise */
    bool takes_images;                      /* images have channels, and targets are classes */
} an_model_kind;

#define AN_MODEL(name) extern const an_model_kind an_model_kind_##name;
#include "open/models/kinds.def"
#undef AN_MODEL

/* NULL: the config has no model. */
const an_model_kind *an_model_kind_of(const an_config *config);

/* Only data says what is left open: refuses options that are auto where there is none. */
an_status an_model_expect_sizes(const an_model_opening *o, const char *const *paths, int count);
/* How many different tokens there are, unless the config says it. */
an_status an_model_vocabulary(const an_model_opening *o, int64_t *vocabulary);

#define AN_TOKENS_HAVE_NO_SCALE "the inputs and targets of a language model are tokens, which have no scale"

#endif
