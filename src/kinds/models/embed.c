/* data.train.categories: embedding and model.embedding: which inputs of a model are categories, and
 * how wide their tables are. */
#include "kinds/models/models.h"

static const char path[] = "model.embedding", categories[] = "data.train.categories";

bool an_model_embeds(const an_config *config) {
    return an_config_is(config, categories, "embedding");
}

/* Half as many numbers as categories, and at most 50: more categories share what they have in common. */
static int64_t usual_width(int64_t count) {
    enum { MOST = 50 };
    const int64_t half = (count + 1) / 2;
    return half < MOST ? half : MOST;
}

static an_status refuse(const an_model_opening *o, const char *key, const char *problem) {
    return AN_ERROR(o->ctx, AN_ERR_ARGUMENT, "%s: %s", an_config_place(o->config, key), problem);
}

an_status an_model_embedded(an_model_opening *o, an_embedded_column columns[AN_MODEL_MOST_EMBEDDED], int *count) {
    an_context *ctx = o->ctx;
    const an_encoding *encoding = o->dataset ? an_dataset_encoding(o->dataset) : NULL;
    *count = 0;
    if (!an_model_embeds(o->config)) {
        if (an_key_is_there(o->config, path) && !an_config_is(o->config, path, "auto"))
            return refuse(o, path, "there is nothing to embed: set data.train.categories to embedding, or remove it");
        return AN_OK;
    }
    const int64_t found = encoding ? an_encoding_category_count(encoding) : 0;
    if (found == 0)
        return refuse(
            o, categories,
            "no input column of the table has text, so there is nothing to embed; remove data.train.categories");
    if (found > AN_MODEL_MOST_EMBEDDED)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %lld columns have text; at most %d can be embedded",
                        an_config_place(o->config, categories), (long long)found, AN_MODEL_MOST_EMBEDDED);
    for (; *count < found; ++*count) {
        an_category_info info;
        an_category_info_init(&info, sizeof info);
        AN_TRY_RETURN(an_encoding_category(encoding, *count, &info));
        an_embedded_column *c = &columns[*count];
        an_embedded_column_init(c, sizeof *c);
        c->begin = info.begin;
        c->count = info.count;
        c->width = usual_width(info.count);
        AN_TRY_RETURN(an_key_count(o->config, path, &c->width));
    }
    return AN_OK;
}
