#include "ir/published.h"

#include <string.h>

#include "base/word.h"

static const char gpt2[] = "transformer.", bert[] = "bert.", classifier[] = "classifier.";

const char *an_published_bare(const char *name) {
    static const char *const prefixes[] = {gpt2, bert};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return name + strlen(prefixes[i]);
    return name;
}

/* BertModel alone has no name before those of its layers; with a classifier it is the body of another class. */
static bool is_body_of_bert(const an_graph *graph, const char *name) {
    bool body = false, head = false;
    for (size_t i = 0; i < graph->parameter_count; i++) {
        body = body || !strcmp(graph->parameters[i].name, "embeddings.word_embeddings.weight");
        head = head || !strncmp(graph->parameters[i].name, classifier, strlen(classifier));
    }
    return body && head && strncmp(name, classifier, strlen(classifier) - 1) != 0;
}

const char *an_published_prefix(const an_graph *graph, const char *name) {
    if (!strncmp(name, "h.", 2) && an_is_digit(name[2])) return gpt2;
    return is_body_of_bert(graph, name) ? bert : "";
}
