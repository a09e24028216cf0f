/* The table of options, and lookups in it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "anneal/data.h"
#include "anneal/models.h"
#include "anneal/optimizer.h"
#include "anneal/pretrained.h"
#include "anneal/run.h"
#include "anneal/train.h"
#include "base/added.h"
#include "base/options/option_rows.h"
#include "config/config.h"
#include "config/structs.h"

/* ---- the table ---- What options.def says in its own words. */

#define METRICS                                                                                                        \
    "val_loss|val_perplexity|val_accuracy|val_top5|val_mae|val_r2|val_precision|val_recall|val_f1|val_auc|val_margin|" \
    "loss|perplexity|accuracy|top5|mae|r2|precision|recall|f1|auc|margin"

const an_option an_fixed_options[] = {
#define OPTION(path_, kind_, default_, words_, limits_, resume_, members_, help_) \
    {.path = path_,                                                               \
     .kind = AN_OPTION_##kind_,                                                   \
     .of = "",                                                                    \
     .default_value = default_,                                                   \
     .words = words_,                                                             \
     .help = help_,                                                               \
     limits_,                                                                     \
     resume_,                                                                     \
     members_},
#define OPTIONS_OF(sort, table) {.path = table, .rows = AN_KINDS_##sort},
#define OPTIONS_UP_TO(last, sort, table) {.path = table, .rows = AN_KINDS_##sort, .last_place = last},
#include "config/options.def"
    OPTIONS_END};

const an_rename an_renames[] = {{NULL, NULL, NULL}};

/* ---- asking it ---- */

const char *an_option_key(const an_option *option) {
    const char *dot = strrchr(option->path, '.');
    return dot ? dot + 1 : option->path;
}

const char *an_option_table(const an_option *option) {
    return option->table ? option->table : option->path;
}

bool an_option_is_required(const an_option *option) {
    return option->default_value && !strcmp(option->default_value, AN_OPTION_REQUIRED);
}

const char *an_option_default(const an_option *option) {
    return an_option_is_required(option) ? NULL : option->default_value;
}

/* The part of a path inside of a table; NULL: it is not in it. (By hand, as most paths differ in their first
 * letter.) */
static const char *inside(const char *path, const char *table) {
    if (!*table) return path;
    while (*table && *path == *table) path++, table++;
    return !*table && *path == '.' ? path + 1 : NULL;
}

static bool is_key(const char *path) {
    while (*path && *path != '.') path++;
    return !*path;
}

/* All that is in a table stands together, so looking ends where that does. */
const an_option *an_option_next(const an_option_list *all, const char *table, const an_option *after) {
    for (int i = after ? (int)(after - all->items) + 1 : 0; i < all->count; i++) {
        const char *path = inside(all->items[i].path, table);
        if (path && is_key(path)) return &all->items[i];
        if (!path && after) return NULL;
    }
    return NULL;
}

bool an_option_is_of(const an_option *option, const char *type) {
    return !*option->of || (type && an_words_have(option->of, type));
}

/* Without an_option_next: each key of each config is looked up, so paths are compared once and not measured first. */
const an_option *an_option_find(const an_option_list *all, const char *table, const char *key, const char *type) {
    bool begun = false;
    if (strchr(key, '.')) return NULL; /* or it would name what is in a table inside */
    for (int i = 0; i < all->count; i++) {
        const char *path = inside(all->items[i].path, table);
        if (!path && begun) return NULL;
        begun = path != NULL;
        if (path && *path == *key && !strcmp(path, key) && (!type || an_option_is_of(&all->items[i], type)))
            return &all->items[i];
    }
    return NULL;
}

/* ---- words ---- */

bool an_words_have(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; *at;) {
        const size_t here = strcspn(at, "|");
        if (here == length && !memcmp(at, word, length)) return true;
        at += here + (at[here] == '|');
    }
    return false;
}

an_words_text an_words_describe(const char *words, const char *last) {
    an_words_text out = {""};
    size_t used = 0;
    for (const char *at = words; *at && used < sizeof out.text;) {
        const size_t here = strcspn(at, "|");
        const bool ends = at[here] == 0;
        const int added = snprintf(out.text + used, sizeof out.text - used, "%s%.*s",
                                   at == words ? ""
                                   : ends      ? last
                                               : ", ",
                                   (int)here, at);
        used += added > 0 ? (size_t)added : 0;
        at += here + !ends;
    }
    return out;
}

an_words_text an_option_words(const an_option *option) {
    an_words_text out = {""};
    size_t used = 0;
    for (const char *at = option->words; *at && used < sizeof out.text;) {
        const size_t here = strcspn(at, "|");
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)here, at);
        at += here + (at[here] == '|');
        if (option->unsupported && an_words_have(option->unsupported, word)) continue;
        used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%s", used ? "|" : "", word);
    }
    return out;
}

/* ---- names that a program has added ---- */

/* A checkpoint was written by a program that had its names; and a config may be looked at before the program has
 * added them. */
static bool has_added(const an_config *config, an_added_kind kind, const char *name) {
    if (config->stored || config->ctx->adds_later) return an_added_is_name(name);
    return an_added_find(config->ctx, kind, name) != NULL;
}

bool an_option_is_added(const an_config *config, const an_option *option, const char *name) {
    const bool reported = option->added == AN_NAMES_REPORTED && !strncmp(name, "val_", 4);
    if (option->added == AN_NAMES_NONE) return false;
    if (option->added == AN_NAMES_OPTIMIZERS) return has_added(config, AN_ADDED_OPTIMIZER, name);
    return has_added(config, AN_ADDED_METRIC, reported ? name + 4 : name);
}

/* ---- what an option wants ---- */

static const char *const kind_names[AN_OPTION_KINDS] = {
    [AN_OPTION_STRING] = "a text",
    [AN_OPTION_INPUT] = "the path of a file",
    [AN_OPTION_INPUTS] = "the path of a file, or a list of paths",
    [AN_OPTION_OUTPUT] = "a path",
    [AN_OPTION_COUNT] = "a whole number",
    [AN_OPTION_REAL] = "a number",
    [AN_OPTION_SHARE] = "a share such as 5% or 0.05",
    [AN_OPTION_BOOL] = "on or off",
    [AN_OPTION_FIRST_SAMPLES] = "a number of samples such as 'first 10000 samples'",
    [AN_OPTION_BYTES] = "a size such as 6GiB or 500MB",
    [AN_OPTION_DURATION] = "a duration such as 90s, 15m or 3h50m",
    [AN_OPTION_RANGE] = "a range such as 0%..90%",
    [AN_OPTION_COUNTS] = "a list of whole numbers",
    [AN_OPTION_REALS] = "a list of numbers",
    [AN_OPTION_NAMED_REALS] = "a list of numbers, or a table that maps names to numbers",
    [AN_OPTION_STRINGS] = "a list of texts",
    [AN_OPTION_COUNT_MAP] = "a whole number, or a table that maps finished epochs to whole numbers",
    [AN_OPTION_REAL_MAP] = "a table that maps steps to numbers",
    [AN_OPTION_STRING_MAP] = "a table that maps texts to texts",
    [AN_OPTION_TABLE] = "a table",
    [AN_OPTION_TABLES] = "a list of tables",
};

static void add_units(char *text, size_t capacity, const char *units) {
    static const struct {
        const char *unit, *example;
    } examples[] = {{"steps", "250 steps"},     {"epochs", "2 epochs"}, {"tokens", "300M tokens"},
                    {"samples", "50k samples"}, {"share", "3%"},        {"time", "30m"}};
    char words[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (an_words_have(units, examples[i].unit))
            used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", used ? "|" : "", examples[i].example);
    snprintf(text, capacity, "a length such as %s", AN_WORDS(words));
}

static void add_limits(const an_option *o, char *text, size_t capacity) {
    char minimum[32], maximum[32];
    const size_t used = strlen(text);
    an_text_number(minimum, sizeof minimum, o->minimum);
    an_text_number(maximum, sizeof maximum, o->maximum);
    if ((isinf(o->minimum) && isinf(o->maximum)) || o->kind == AN_OPTION_BYTES || o->kind == AN_OPTION_FIRST_SAMPLES)
        return;
    if (o->units) { /* examples come before it */
        if (o->above) snprintf(text + used, capacity - used, ", above %s", minimum);
        return;
    }
    if (isinf(o->maximum))
        snprintf(text + used, capacity - used, " %s %s", o->above ? "above" : "of at least", minimum);
    else
        snprintf(text + used, capacity - used, " %s %s %s %s",
                 o->above   ? "above"
                 : o->below ? "of at least"
                            : "from",
                 minimum,
                 o->below   ? "and below"
                 : o->above ? "and at most"
                            : "to",
                 maximum);
}

an_wants_text an_option_wants(const an_option *option) {
    an_wants_text out = {""};
    if (option->kind == AN_OPTION_CHOICE) {
        snprintf(out.text, sizeof out.text, "%s", AN_WORDS(an_option_words(option).text));
        return out;
    }
    if (option->kind == AN_OPTION_STRINGS && strchr(option->words, '|')) { /* the first stands alone, for all */
        const size_t first = strcspn(option->words, "|");
        snprintf(out.text, sizeof out.text, "%.*s, or a list of %s", (int)first, option->words,
                 an_words_describe(option->words + first + 1, " and ").text);
        return out;
    }
    if (option->minimum == option->maximum) {
        an_text_number(out.text, sizeof out.text, option->minimum);
        return out;
    }
    const an_words_text words = an_option_words(option);
    if (*words.text) snprintf(out.text, sizeof out.text, "%s, or ", AN_WORDS(words.text));
    const size_t used = strlen(out.text);
    if (option->kind == AN_OPTION_LENGTH || option->kind == AN_OPTION_LENGTHS)
        add_units(out.text + used, sizeof out.text - used, option->units);
    else
        snprintf(out.text + used, sizeof out.text - used, "%s", kind_names[option->kind]);
    add_limits(option, out.text, sizeof out.text);
    return out;
}
