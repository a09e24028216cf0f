/* From a config to the parts of a run. */
#ifndef AN_TRAIN_OPEN_H
#define AN_TRAIN_OPEN_H

#include "anneal/config.h"
#include "train/trainer.h"

enum { AN_PATH_TEXT = 256 };

/* The dataset under `path` ("data.train"); *dataset is NULL if the config has none. `sources` owns it. */
an_status an_open_data(an_dataset **dataset, an_sources *sources, an_config *config, an_context *ctx, const char *path);
void an_sources_destroy(an_sources *sources);

/* The graph of the config's model; sizes that the config leaves open are those of the data. `dtype` is of its parameters. */
an_status an_open_model(an_graph **graph, an_config *config, an_context *ctx, an_dataset *dataset, an_dtype dtype);

/* ---- values, with the place of the config where they cannot be used ---- */

/* `path` and a key behind it. */
typedef struct an_key {
    char text[AN_PATH_TEXT];
} an_key; /* "", which no option has, where mixtures of mixtures are deeper than this */
an_key an_key_join(const char *path, const char *key);
/* … for the expression that it is in, and no longer. */
#define AN_KEY(path, key) (an_key_join((path), (key)).text)

/* A count that may be the word `auto`, which leaves *value as it is. */
an_status an_open_count(an_config *config, const char *path, int64_t *value);

#endif
