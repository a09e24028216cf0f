/* Type mixture: samples of several sources, in random order. */
#include <stdio.h>

#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    OPTION_AT(380, "data.train.parts", TABLES, REQUIRED, "", TABLE_OF("data.train"), FIXED(SAMPLES), NO_MEMBER,
              "sources to mix"),
    OPTION_AT(390, "data.train.count", COUNT, "auto", "auto", FROM(1), FIXED(ORDER), INTO(IN(an_mixture_source, count)),
              "samples in an epoch; auto ends the epoch when one source runs out"),
    OPTIONS_END,
};

enum { MOST_PARTS = 63 };

static an_status open_parts(const an_data_opening *o, const char *key, an_mixture_source *s, an_dataset **parts,
                            double *weights) {
    an_context *ctx = o->ctx;
    for (int i = 0; i < s->source_count; i++) {
        char part[AN_PATH_TEXT + 16];
        snprintf(part, sizeof part, "%s[%d]", key, i);
        AN_TRY_RETURN(an_config_real(o->config, AN_KEY(part, "weight"), &weights[i]));
        AN_TRY_RETURN(an_data_open(&parts[i], o->vocabulary, o->config, ctx, part));
    }
    AN_TRY_RETURN(AN_FILL(o, an_mixture_source, s));
    s->sources = parts;
    s->weights = weights;
    s->owns = true;
    return an_dataset_create_mixture(o->dataset, ctx, s);
}

static an_status open_source(const an_data_opening *o) {
    an_context *ctx = o->ctx;
    an_mixture_source s;
    an_mixture_source_init(&s, sizeof s);
    an_dataset *parts[MOST_PARTS] = {NULL};
    double weights[MOST_PARTS];
    const an_key joined = an_key_join(o->path, "parts");
    s.source_count = an_config_size(o->config, joined.text);
    if (s.source_count > MOST_PARTS)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %d sources are listed; a mixture has at most %d",
                        an_config_place(o->config, joined.text), s.source_count, MOST_PARTS);
    const an_dataset *before = *o->vocabulary;
    const an_status status = open_parts(o, joined.text, &s, parts, weights);
    if (status == AN_OK) return AN_OK;
    *o->vocabulary = before;
    for (int i = s.source_count; i-- > 0;) an_dataset_destroy(&parts[i]);
    return status;
}

const an_data_kind an_data_mixture = {
    .kind = {.name = "mixture", .options = options, .flags = AN_KIND_MIXTURE},
    .open = open_source,
};
