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
#include "base/guard.h"
#include "base/structs.h"
#include "config/config.h"

/* ---- the table ---- What options.def says in its own words. */

#define METRICS                                                                                                        \
    "val_loss|val_perplexity|val_accuracy|val_top5|val_mae|val_r2|val_precision|val_recall|val_f1|val_auc|val_margin|" \
    "loss|perplexity|accuracy|top5|mae|r2|precision|recall|f1|auc|margin"
#define NONE NULL
#define REQUIRED AN_OPTION_REQUIRED

#define ANY .least = -(double)INFINITY, .most = (double)INFINITY
#define FROM(a) .least = (a), .most = (double)INFINITY
#define ABOVE(a) .least = (a), .above = true, .most = (double)INFINITY
#define BETWEEN(a, b) .least = (a), .most = (b)
#define BELOW(a, b) .least = (a), .most = (b), .below = true
#define BELOW_ABOVE(a, b) .least = (a), .above = true, .most = (b), .below = true
#define UNITS(names) ABOVE(0), .units = (names)
#define UNITS_OR_NONE(names) FROM(0), .units = (names)
#define TABLE_OF(name) ANY, .table = (name)
#define ADDED(names, ...) __VA_ARGS__, .added = AN_NAMES_##names
#define UNSUPPORTED(...) __VA_ARGS__, .unsupported = ""
#define UNSUPPORTED_WORDS(names, ...) __VA_ARGS__, .unsupported = (names)

/* Reasons that several options have. They end a line "batch.global is 64, was 32: ". */
#define MODEL "it would be a different model"
#define INITIAL "initial weights are loaded at step 0; only a new run can use others"
#define ADAPTER "the adapter that the run has trained depends on it"
#define SAMPLES "the samples would be different"
#define ORDER "the order of the data depends on it"
#define CUT "it fixes the order of sums, so results would no longer be bit-identical"
#define PARTS \
    "micro-batches that are parts of a leaf fix the order of sums, so results would no longer be bit-identical"
#define LOSS "a different loss would be minimised"
#define RATE "it determines the learning rate of every step"
#define UPDATE "the weights and moments so far depend on it"
#define STORE "it decided which samples are stored"
#define NORMAL "it determines how the model's numbers are scaled"
#define COMPARE "earlier evaluations, and the best one, could not be compared with new ones"
#define BEST "the best value so far was chosen by it"
#define WRITTEN "it only changes what is written"
#define SAME_BITS "results do not depend on it"
#define LATER "it only affects the rest of the run"

#define FREE(why_) .change = AN_CHANGE_FREE, .why = (why_)
#define FIXED(why_) .change = AN_CHANGE_FIXED, .why = (why_)
#define NEW_BITS                                                                                               \
    .change = AN_CHANGE_BITS, .why = "the weights would no longer be bit-identical; add --allow-new-bits, or " \
                                     "set run.allow_new_bits to on, to accept that"
#define MOVES_THE_END                                                                                             \
    .change = AN_CHANGE_LENGTH, .why = "the end of the run would move; choose what happens to the schedule with " \
                                       "--extend=keep or --extend=stretch"
#define SAME_FILE .change = AN_CHANGE_DATA_PATH, .why = AN_SAME_FILE
#define GIVEN_OR_NOT(why_, inside_) FREE(why_), .why_inside = (inside_)
#define BY_KEY .why = NULL

#define DERIVED .members = NULL
#define NO_MEMBER .members = NULL

#define STORED_AS(type, member) \
    _Generic(((type *)0)->member,                                                  \
        bool: AN_MEMBER_BOOL,                                                      \
        char: AN_MEMBER_CHARACTER,                                                 \
        int: AN_MEMBER_INT,                                                        \
        unsigned: AN_MEMBER_INT, /* what an enum is */                             \
        int64_t: AN_MEMBER_INT64,                                                  \
        double: AN_MEMBER_REAL,                                                    \
        const char *: AN_MEMBER_TEXT,                                              \
        const int64_t *: AN_MEMBER_COUNTS,                                         \
        const char *const *: AN_MEMBER_TEXTS)
#define MEMBER(type, member) .in = #type, .offset = offsetof(type, member), .kind = STORED_AS(type, member)
#define IN(type, member) \
    { MEMBER(type, member) }
#define AS(type, member, ...)                           \
    {                                                   \
        MEMBER(type, member), .values = (const int[]) { \
            __VA_ARGS__                                 \
        }                                               \
    }
#define LIST(type, member, count) \
    { MEMBER(type, member), .second = offsetof(type, count), .second_kind = STORED_AS(type, count) }
#define RANGE(type, begin, end) \
    { MEMBER(type, begin), .second = offsetof(type, end), .second_kind = STORED_AS(type, end) }
#define INTO(...)                           \
    .members = (const an_option_member[]) { \
        __VA_ARGS__, {                      \
            .in = NULL                      \
        }                                   \
    }

const an_option an_options[] = {
#define OPTION(path_, kind_, of_, default_, words_, limits_, resume_, members_, help_) \
    {.path = path_,                                                                    \
     .kind = AN_OPTION_##kind_,                                                        \
     .of = of_,                                                                        \
     .default_value = default_,                                                        \
     .words = words_,                                                                  \
     .help = help_,                                                                    \
     limits_,                                                                          \
     resume_,                                                                          \
     members_},
#include "config/options.def"
#undef OPTION
};
const int an_option_count = sizeof an_options / sizeof *an_options;

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

/* All that is in a table stands together in options.def, so looking ends where that does. */
const an_option *an_option_next(const char *table, const an_option *after) {
    for (int i = after ? (int)(after - an_options) + 1 : 0; i < an_option_count; i++) {
        const char *path = inside(an_options[i].path, table);
        if (path && is_key(path)) return &an_options[i];
        if (!path && after) return NULL;
    }
    return NULL;
}

bool an_option_is_of(const an_option *option, const char *type) {
    return !*option->of || (type && an_words_have(option->of, type));
}

/* Without an_option_next: each key of each config is looked up, so paths are compared once and not measured first. */
const an_option *an_option_find(const char *table, const char *key, const char *type) {
    bool begun = false;
    if (strchr(key, '.')) return NULL; /* or it would name what is in a table inside */
    for (int i = 0; i < an_option_count; i++) {
        const char *path = inside(an_options[i].path, table);
        if (!path && begun) return NULL;
        begun = path != NULL;
        if (path && *path == *key && !strcmp(path, key) && (!type || an_option_is_of(&an_options[i], type)))
            return &an_options[i];
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
    [AN_OPTION_COUNT_MAP] = "a whole number, or a table that maps epochs to whole numbers",
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
    char least[32], most[32];
    const size_t used = strlen(text);
    an_text_number(least, sizeof least, o->least);
    an_text_number(most, sizeof most, o->most);
    if ((isinf(o->least) && isinf(o->most)) || o->kind == AN_OPTION_BYTES || o->kind == AN_OPTION_FIRST_SAMPLES) return;
    if (o->units) { /* examples come before it */
        if (o->above) snprintf(text + used, capacity - used, ", above %s", least);
        return;
    }
    if (isinf(o->most))
        snprintf(text + used, capacity - used, " %s %s", o->above ? "above" : "of at least", least);
    else
        snprintf(text + used, capacity - used, " %s %s %s %s",
                 o->above   ? "above"
                 : o->below ? "of at least"
                            : "from",
                 least,
                 o->below   ? "and below"
                 : o->above ? "and at most"
                            : "to",
                 most);
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
    if (option->least == option->most) {
        an_text_number(out.text, sizeof out.text, option->least);
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

an_status an_config_key_get(an_context *ctx, int index, an_config_key *given) {
    AN_GUARD;
    AN_TRY_RETURN(an_config_key_check(ctx, given));
    if (index < 0 || index >= an_option_count)
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "there are %d options, and none has number %d", an_option_count, index);
    const an_option *o = &an_options[index];
    size_t used = 0;
    an_config_key own = {.default_value = an_option_default(o),
                         .of = o->of,
                         .help = o->help,
                         .required = an_option_is_required(o),
                         .unsupported = o->unsupported};
    an_config_key *const key = &own;
    /* Elements of a list get their brackets: the path of the list is a part of the option's. */
    for (const char *at = o->path; *at;) {
        const size_t here = strcspn(at, ".");
        char table[64];
        snprintf(table, sizeof table, "%.*s", (int)(at + here - o->path), o->path);
        bool is_list = false;
        for (int i = 0; at[here] && i < an_option_count; i++)
            is_list |= an_options[i].kind == AN_OPTION_TABLES && !strcmp(an_options[i].path, table);
        used += (size_t)snprintf(key->path + used, sizeof key->path - used, "%.*s%s%s", (int)here, at,
                                 is_list ? "[]" : "", at[here] ? "." : "");
        at += here + (at[here] == '.');
    }
    snprintf(key->type, sizeof key->type, "%s", an_option_wants(o).text);
    if (o->table && o->kind == AN_OPTION_TABLE) snprintf(key->type, sizeof key->type, "a table like %s", o->table);
    if (o->table && o->kind == AN_OPTION_TABLES)
        snprintf(key->type, sizeof key->type, "a list of tables like %s", o->table);
    return an_config_key_write(ctx, given, &own);
}
