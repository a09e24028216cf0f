/* Writes values of a config to the members of structs that the table of options names. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "config/config.h"

typedef struct {
    const an_config *config;
    const char *type;
    char *members;
} filling;

/* ---- one value ---- Values were checked when the config was made, so reading them again does not fail. */

/* Its place among the words of a choice; -1: it is none of them, but a name that a program has added. */
static int word_number(const char *words, const char *word) {
    int number = 0;
    for (const char *at = words; *at; number++) {
        const size_t length = strcspn(at, "|");
        if (!strncmp(at, word, length) && !word[length]) return number;
        at += length + (at[length] == '|');
    }
    return -1;
}

/* Whether a word stands in the place of a value. */
static bool is_word(const an_config_node *node) {
    const an_option *o = node->option;
    return o->kind != AN_OPTION_CHOICE && !node->quoted && an_words_have(o->words, node->text);
}

static double read_number(const an_option *o, const char *text) {
    double real = 0;
    int64_t count = 0;
    switch (o->kind) {
    case AN_OPTION_REAL: return an_read_real(text, &real) ? real : 0;
    case AN_OPTION_SHARE: return an_read_share(text, &real) ? real : 0;
    case AN_OPTION_DURATION: return an_read_seconds(text, &real) ? real : 0;
    default: return an_read_count(text, &count) ? (double)count : 0;
    }
}

/* The number of a word, or of off and on. */
static int number_of(const an_option *o, const char *text) {
    bool is_on = false;
    if (o->kind == AN_OPTION_CHOICE) return word_number(o->words, text);
    return an_read_bool(text, &is_on) && is_on;
}

static int64_t read_whole(const an_option *o, const an_option_member *m, const char *text) {
    int64_t count = 0;
    switch (o->kind) {
    case AN_OPTION_BYTES: return an_read_bytes(text, &count) ? count : 0;
    case AN_OPTION_FIRST_SAMPLES: return an_read_first_samples(text, &count) ? count : 0;
    case AN_OPTION_CHOICE:
    case AN_OPTION_BOOL: {
        const int number = number_of(o, text);
        return number >= 0 && m->values ? m->values[number] : number;
    }
    default: return an_read_count(text, &count) ? count : 0;
    }
}

static void store_whole(void *to, an_member_kind kind, int64_t value) {
    switch (kind) {
    case AN_MEMBER_BOOL: *(bool *)to = value != 0; break;
    case AN_MEMBER_INT: *(int *)to = (int)value; break;
    case AN_MEMBER_INT64: *(int64_t *)to = value; break;
    default: break;
    }
}

static an_status store_text(const filling *f, const an_config_node *node, const char *path, void *to) {
    if (an_option_is_path(node->option)) return an_config_path(f->config, path, to);
    *(const char **)to = node->text;
    return AN_OK;
}

static an_status store_scalar(const filling *f, const an_option_member *m, const an_config_node *node,
                              const char *path) {
    const an_option *o = node->option;
    void *to = f->members + m->offset;
    if (o->kind == AN_OPTION_RANGE) {
        an_read_range(node->text, to, (double *)(void *)(f->members + m->second));
        return AN_OK;
    }
    switch (m->kind) {
    case AN_MEMBER_TEXT: return store_text(f, node, path, to);
    case AN_MEMBER_CHARACTER: *(char *)to = node->text[0]; break;
    case AN_MEMBER_LENGTH: an_read_length(node->text, o->units, to); break;
    case AN_MEMBER_REAL: *(double *)to = read_number(o, node->text); break;
    default: store_whole(to, m->kind, read_whole(o, m, node->text)); break;
    }
    return AN_OK;
}

/* ---- lists ---- */

static an_status store_counts(const filling *f, const an_config_node *list, const int64_t **to) {
    int64_t *counts;
    AN_TRY_RETURN(an_arena_alloc(f->config->texts, (void **)&counts, (size_t)list->count, sizeof *counts));
    *to = counts;
    for (const an_config_node *n = list->first; n; n = n->next) (void)an_read_count(n->text, counts++);
    return AN_OK;
}

static an_status store_texts(const filling *f, const an_config_node *list, const char *const **to) {
    const char **texts;
    AN_TRY_RETURN(an_arena_alloc(f->config->texts, (void **)&texts, (size_t)list->count, sizeof *texts));
    *to = texts;
    for (const an_config_node *n = list->first; n; n = n->next) *texts++ = n->text;
    return AN_OK;
}

/* Two numbers, each with a member. */
static void store_pair(const filling *f, const an_option_member *m, const an_config_node *list) {
    if (list->count != 2) return; /* check.c refuses that */
    an_read_real(list->first->text, (double *)(void *)(f->members + m->offset));
    an_read_real(list->first->next->text, (double *)(void *)(f->members + m->second));
}

static an_status store_list(const filling *f, const an_option_member *m, const an_config_node *list) {
    void *to = f->members + m->offset;
    if (m->kind == AN_MEMBER_REAL) {
        store_pair(f, m, list);
        return AN_OK;
    }
    store_whole(f->members + m->second, m->second_kind, list->count);
    return m->kind == AN_MEMBER_COUNTS ? store_counts(f, list, to) : store_texts(f, list, to);
}

/* ---- all of them ---- */

static an_status fill_node(const filling *f, const an_config_node *node, const char *path) {
    const bool is_list = node->type == AN_CONFIG_LIST;
    if (!node->option || !node->option->members || (!is_list && is_word(node))) return AN_OK;
    for (const an_option_member *m = node->option->members; m->in; m++) {
        if (strcmp(m->in, f->type) != 0) continue;
        const bool lists =
            m->kind == AN_MEMBER_COUNTS || m->kind == AN_MEMBER_TEXTS || node->option->kind == AN_OPTION_REALS;
        if (is_list != lists) return AN_OK; /* files in the place of one */
        return is_list ? store_list(f, m, node) : store_scalar(f, m, node, path);
    }
    return AN_OK;
}

static an_status fill_table(const filling *f, const an_config_node *table, const char *path) {
    for (const an_config_node *n = table->first; n; n = n->next) {
        char inside[256];
        snprintf(inside, sizeof inside, "%s%s%s", path, *path ? "." : "", n->key);
        AN_TRY_RETURN(n->type == AN_CONFIG_TABLE ? fill_table(f, n, inside) : fill_node(f, n, inside));
    }
    return AN_OK;
}

an_status an_config_fill_in(const an_config *config, const char *path, const char *type, void *members) {
    AN_GUARD;
    const filling f = {config, type, members};
    const an_config_node *table = an_config_find(config, path);
    return table && table->type == AN_CONFIG_TABLE ? fill_table(&f, table, path) : AN_OK;
}

an_status an_config_settle(an_config *config) {
    an_settings *settings;
    AN_TRY_RETURN(an_arena_alloc(&config->arena, (void **)&settings, 1, sizeof *settings));
    *settings = (an_settings){.model.type = NULL};
    AN_TRY_RETURN(an_config_fill(config, "", an_settings, settings));
    config->settings = settings;
    return AN_OK;
}
