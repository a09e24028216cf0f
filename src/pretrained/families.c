#include <stdio.h>
#include <string.h>

#include "ir/graph.h"
#include "pretrained/family.h"

static const an_family *const families[] = {
#define AN_FAMILY(name) &an_family_##name,
#include "pretrained/families.def"
#undef AN_FAMILY
};
enum { FAMILIES = sizeof families / sizeof *families };

const an_family *an_family_at(int index) {
    return index >= 0 && index < FAMILIES ? families[index] : NULL;
}

const an_family *an_family_find(const char *model_type) {
    for (int i = 0; i < FAMILIES; i++)
        if (!strcmp(families[i]->name, model_type)) return families[i];
    return NULL;
}

const an_family *an_family_find_gguf(const char *name, size_t length) {
    for (int i = 0; i < FAMILIES; i++)
        if (families[i]->gguf && strlen(families[i]->gguf) == length && !memcmp(families[i]->gguf, name, length))
            return families[i];
    return NULL;
}

bool an_family_has(const an_family *family, const char *architecture) {
    const char *const *words = family->architectures;
    while (*words && strcmp(architecture, *words) != 0) words++;
    return *words != NULL;
}

const an_family_key *an_family_key_of(const an_family *family, int row) {
    for (const an_family_key *key = family->keys; key->row >= 0; key++)
        if (key->row == row) return key;
    return NULL;
}

const an_family *an_family_of_body(const char *parameter) {
    for (int i = 0; i < FAMILIES; i++)
        if (families[i]->body && !strcmp(families[i]->body, parameter)) return families[i];
    return NULL;
}

static bool has_parameter(const an_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->parameter_count; i++)
        if (!strcmp(graph->parameters[i].name, name)) return true;
    return false;
}

const an_family *an_family_of_model(const an_graph *graph, const bool has[AN_FACTS]) {
    const an_family *other = NULL;
    for (int i = 0; i < FAMILIES; i++) {
        if (!has_parameter(graph, families[i]->table)) continue;
        if (families[i]->fits && families[i]->fits(has)) return families[i];
        if (!families[i]->fits) other = families[i];
    }
    return other;
}

bool an_family_is_head(const an_family *family, const char *name) {
    const size_t all = sizeof family->heads / sizeof *family->heads;
    for (size_t i = 0; family && i < all && family->heads[i]; i++)
        if (!strncmp(name, family->heads[i], strlen(family->heads[i]))) return true;
    return false;
}

const char *an_family_list(char *text, size_t size, bool gguf) {
    int last = FAMILIES - 1;
    size_t at = 0;
    while (gguf && !families[last]->gguf) last--;
    text[0] = 0;
    for (int i = 0; i <= last && at < size; i++) {
        const char *name = gguf ? families[i]->gguf : families[i]->name;
        if (!name) continue;
        const int wrote = snprintf(text + at, size - at, "%s%s", at == 0 ? "" : i == last ? " and " : ", ", name);
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    return text;
}
