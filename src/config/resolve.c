/* Completes a config: checks every key and its kind, expands short forms, fills in defaults, and sorts everything in
 * the order of the options. */
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "config/config.h"

enum { MOST_LISTS = 3 };   /* of tables in each other, as mixtures of mixtures */
enum { PATH_BYTES = 256 }; /* of a key in messages; longer ones are cut */

static const char *const type_names[] = {
    [AN_CONFIG_SCALAR] = "a single value", [AN_CONFIG_LIST] = "a list", [AN_CONFIG_TABLE] = "a table"};

static bool is_null(const an_config_node *node) {
    return node->type == AN_CONFIG_SCALAR && !node->quoted &&
           (!*node->text || !strcmp(node->text, "~") || !strcmp(node->text, "null"));
}

static void join(char *out, const char *table, const char *key) {
    snprintf(out, PATH_BYTES, "%s%s%s", table, *table ? "." : "", AN_QUOTE(key));
}

/* ---- nodes that nobody wrote ---- */

static an_status add_scalar(an_config *config, an_config_node *table, const char *key, const char *text,
                            const an_config_node *like, an_config_origin origin) {
    an_config_node *node = NULL;
    AN_TRY_RETURN(an_config_node_create(config, &node, AN_CONFIG_SCALAR, origin, like->place));
    node->key = key;
    node->text = text;
    an_config_node_add(table, node);
    return AN_OK;
}

/* Puts what a scalar, or a table, was into a new table or list of that one entry, in its own place. */
an_status an_config_node_wrap(an_config *config, an_config_node *node, an_config_node_type type, const char *key) {
    an_config_node *inner = NULL;
    AN_TRY_RETURN(an_arena_alloc(&config->arena, (void **)&inner, 1, sizeof *inner));
    *inner = *node;
    inner->key = key;
    inner->key_place = inner->place;
    inner->option = NULL;
    node->type = type;
    node->text = NULL;
    node->quoted = false;
    node->first = node->last = NULL;
    node->count = 0;
    an_config_node_add(node, inner);
    return AN_OK;
}

void an_config_node_take_out(an_config_node *table, const an_config_node *child) {
    an_config_node *before = NULL;
    for (an_config_node *n = table->first; n; before = n, n = n->next) {
        if (n != child) continue;
        if (before)
            before->next = n->next;
        else
            table->first = n->next;
        if (table->last == n) table->last = before;
        table->count--;
        return;
    }
}

/* A table where a single value may stand for its first key, and nothing for none of them. */
an_status an_config_make_table(an_config *config, an_config_node *node, const char *table, const char *path) {
    if (node->type == AN_CONFIG_LIST)
        return AN_ERROR(config->ctx, AN_ERR_PARSE, "%s: %s is a list, but must be a table of keys",
                        AN_SPOT(node->place), path);
    if (is_null(node)) {
        node->type = AN_CONFIG_TABLE;
        node->text = NULL;
        return AN_OK;
    }
    if (node->type == AN_CONFIG_TABLE) return AN_OK;
    return an_config_node_wrap(config, node, AN_CONFIG_TABLE,
                               an_option_key(an_option_next(config->options, table, NULL)));
}

/* ---- keys ---- */

/* "type, lr, betas": the keys of a table, each once. */
static void list_keys(const an_config *config, char *out, size_t capacity, const char *table, const char *type) {
    const an_option_list *all = config->options;
    size_t used = 0;
    out[0] = 0;
    for (const an_option *o = an_option_next(all, table, NULL); o; o = an_option_next(all, table, o)) {
        if ((type && !an_option_is_of(o, type)) || an_option_find(all, table, an_option_key(o), type) != o) continue;
        used += (size_t)snprintf(out + used, capacity - used, "%s%s", used ? ", " : "", an_option_key(o));
        if (used >= capacity) return;
    }
}

an_status an_config_unknown_key(an_config *config, an_spot place, const char *table, const char *path,
                                const char *key) {
    an_context *ctx = config->ctx;
    const an_option_list *all = config->options;
    an_nearest nearest;
    char whole[PATH_BYTES], keys[512];
    join(whole, path, key);
    AN_TRY_RETURN(an_config_other_key(config, place, whole, key));
    const an_option *type = an_option_find(all, table, "type", NULL);
    if (type && an_words_have(type->words, key))
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: unknown key '%s'; write type: %s", AN_SPOT(place), whole, key);
    if (key[0] >= '0' && key[0] <= '9')
        return AN_ERROR(ctx, AN_ERR_UNKNOWN,
                        "%s: unknown key '%s'; write numbers with a decimal point, and lists in brackets: [4, 8]",
                        AN_SPOT(place), whole);
    an_nearest_init(&nearest, key, strlen(key));
    for (const an_option *o = an_option_next(all, table, NULL); o; o = an_option_next(all, table, o))
        an_nearest_consider(&nearest, an_option_key(o), strlen(an_option_key(o)));
    if (nearest.best)
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: unknown key '%s'%s", AN_SPOT(place), whole, AN_NEAREST(&nearest));
    for (int i = 0; i < all->count; i++) /* a right key in the wrong table */
        if (!strcmp(an_option_key(&all->items[i]), key) && strcmp(all->items[i].path, key) != 0)
            return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: unknown key '%s'; did you mean %s?", AN_SPOT(place), whole,
                            all->items[i].path);
    list_keys(config, keys, sizeof keys, table, NULL);
    return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: unknown key '%s'; the keys of %s are %s", AN_SPOT(place), whole,
                    *path ? path : "a config", keys);
}

/* "model of type 'mlp' has no key 'heads'" */
static an_status foreign_key(an_config *config, const an_config_node *node, const an_config_node *child,
                             const char *table, const char *path, const char *type) {
    const an_config_node *given = an_config_node_find(node, "type");
    char keys[512], types[256] = "";
    size_t used = 0;
    list_keys(config, keys, sizeof keys, table, type);
    for (const an_option *o = an_option_next(config->options, table, NULL); o && used < sizeof types;
         o = an_option_next(config->options, table, o))
        if (!strcmp(an_option_key(o), child->key))
            used += (size_t)snprintf(types + used, sizeof types - used, "%s%s", used ? "|" : "", o->of);
    return AN_ERROR(config->ctx, AN_ERR_UNKNOWN,
                    "%s: %s of type '%s' has no key '%s', which is for type %s; its keys are %s",
                    AN_SPOT(child->key_place), path, AN_QUOTE(given ? given->text : type), AN_QUOTE(child->key),
                    AN_WORDS(types), keys);
}

/* What became of an old name; NULL: the key is none. */
const an_rename *an_config_find_rename(const an_config *config, const char *table, const char *key) {
    char whole[PATH_BYTES];
    snprintf(whole, sizeof whole, "%s%s%s", table, *table ? "." : "", key);
    for (const an_rename *r = config->renames; r->old_path; r++)
        if (!strcmp(r->old_path, whole)) return r;
    return NULL;
}

static an_status rename_key(an_config *config, an_config_node *table, const char *path, an_config_node *child) {
    const an_rename *r = an_config_find_rename(config, path, child->key);
    if (!r) return AN_OK;
    if (an_config_node_find(table, r->new_key))
        return AN_ERROR(config->ctx, AN_ERR_ARGUMENT,
                        "%s: '%s' is the old name of '%s', which is also set; remove the old one",
                        AN_SPOT(child->key_place), r->old_path, r->new_key);
    child->key = r->new_key;
    return an_config_warn(config, child->key_place, "'%s' is deprecated: it is called '%s' since %s", r->old_path,
                          r->new_key, r->version);
}

/* ---- values by kind ---- */

static an_status resolve_table(an_config *config, an_config_node *node, const char *table, const char *path);

static an_status wrong_node(an_config *config, const an_option *option, const an_config_node *node, const char *path) {
    if (is_null(node))
        return AN_ERROR(config->ctx, AN_ERR_PARSE, "%s: %s has no value; it takes %s, or remove the key",
                        AN_SPOT(node->place), path, an_option_wants(option).text);
    return AN_ERROR(config->ctx, AN_ERR_PARSE, "%s: %s is %s; it takes %s", AN_SPOT(node->place), path,
                    type_names[node->type], an_option_wants(option).text);
}

static bool takes_quotes(const an_option *o) {
    return o->kind == AN_OPTION_STRING || an_option_is_path(o) || o->kind == AN_OPTION_CHOICE ||
           o->kind == AN_OPTION_STRINGS || o->kind == AN_OPTION_STRING_MAP;
}

static an_status resolve_scalar(an_config *config, const an_option *option, an_config_node *node, const char *path) {
    if (node->type != AN_CONFIG_SCALAR || is_null(node)) return wrong_node(config, option, node, path);
    if (node->quoted && !takes_quotes(option))
        return AN_ERROR(config->ctx, AN_ERR_PARSE, "%s: %s is a text in quotes; it takes %s, so remove the quotes",
                        AN_SPOT(node->place), path, an_option_wants(option).text);
    /* Versions that did not refuse what they did not obey have left such values in checkpoints: they had no effect. */
    const bool whole = option->unsupported && !*option->unsupported;
    if (config->stored && whole && node->origin == AN_ORIGIN_FILE) node->text = an_option_default(option);
    return an_option_check(config, option, node, path);
}

static an_status resolve_list(an_config *config, const an_option *option, an_config_node *node, const char *path) {
    const bool is_word = node->type == AN_CONFIG_SCALAR && !node->quoted && an_words_have(option->words, node->text) &&
                         (option->kind != AN_OPTION_STRINGS || !strcmp(node->text, "auto"));
    if (is_word) return AN_OK;
    if (node->type == AN_CONFIG_TABLE || is_null(node)) return wrong_node(config, option, node, path);
    if (node->type == AN_CONFIG_SCALAR) AN_TRY_RETURN(an_config_node_wrap(config, node, AN_CONFIG_LIST, NULL));
    int index = 0;
    for (an_config_node *n = node->first; n; n = n->next) {
        char element[PATH_BYTES];
        snprintf(element, sizeof element, "%s[%d]", path, index++);
        if (an_config_node_is(n, "auto")) return wrong_node(config, option, node, path);
        AN_TRY_RETURN(resolve_scalar(config, option, n, element));
        n->option = option;
    }
    return AN_OK;
}

/* A path, or several. */
static an_status resolve_inputs(an_config *config, const an_option *option, an_config_node *node, const char *path) {
    if (node->type != AN_CONFIG_LIST) return resolve_scalar(config, option, node, path);
    if (node->count > 0) return resolve_list(config, option, node, path);
    return AN_ERROR(config->ctx, AN_ERR_PARSE, "%s: %s is empty; it takes %s", AN_SPOT(node->place), path,
                    an_option_wants(option).text);
}

/* Sorted by number: insertion, as maps are short and mostly in order. A number that stands twice, as 1 and 01, is
 * refused. */
static an_status sort_map(an_config *config, an_config_node *node, const char *path) {
    an_config_node *n = node->first;
    node->first = node->last = NULL;
    node->count = 0;
    while (n) {
        an_config_node *next = n->next, **at = &node->first;
        int64_t key = 0, other = -1;
        an_read_count(n->key, &key);
        if (node->last && an_read_count(node->last->key, &other) && other < key) at = &node->last->next;
        for (; *at && an_read_count((*at)->key, &other) && other < key; at = &(*at)->next) {
        }
        if (*at && other == key)
            return AN_ERROR(config->ctx, AN_ERR_PARSE, "%s: %s has %lld twice; remove one", AN_SPOT(n->key_place), path,
                            (long long)key);
        n->next = *at;
        *at = n;
        if (!n->next) node->last = n;
        node->count++;
        n = next;
    }
    return AN_OK;
}

/* As keys; others are numbers. */
static bool has_names(const an_option *option) {
    return option->kind == AN_OPTION_STRING_MAP || option->kind == AN_OPTION_NAMED_REALS;
}

static an_status resolve_map(an_config *config, const an_option *option, an_config_node *node, const char *path) {
    an_context *ctx = config->ctx;
    if (node->type == AN_CONFIG_SCALAR && option->kind == AN_OPTION_COUNT_MAP && !is_null(node))
        AN_TRY_RETURN(an_config_node_wrap(config, node, AN_CONFIG_TABLE, "0"));
    if (node->type != AN_CONFIG_TABLE) return wrong_node(config, option, node, path);
    for (an_config_node *n = node->first; n; n = n->next) {
        char entry[PATH_BYTES];
        int64_t number;
        join(entry, path, n->key);
        if (!has_names(option) && (!an_read_count(n->key, &number) || number < 0))
            return AN_ERROR(ctx, AN_ERR_PARSE, "%s: '%s' is not a whole number; %s takes %s", AN_SPOT(n->key_place),
                            AN_QUOTE(n->key), path, an_option_wants(option).text);
        if (option->kind == AN_OPTION_STRING_MAP && n->type == AN_CONFIG_SCALAR) { /* nothing is a text too */
            if (is_null(n)) n->text = "";
            n->quoted = true;
        } else {
            AN_TRY_RETURN(resolve_scalar(config, option, n, entry));
        }
        if (n->type != AN_CONFIG_SCALAR) return wrong_node(config, option, n, entry);
        n->option = option;
    }
    return has_names(option) ? AN_OK : sort_map(config, node, path);
}

static an_status resolve_tables(an_config *config, const an_option *option, an_config_node *node, const char *path) {
    an_context *ctx = config->ctx;
    int index = 0, lists = 0;
    if (node->type != AN_CONFIG_LIST) return wrong_node(config, option, node, path);
    for (const char *c = path; *c; c++) lists += *c == '[';
    if (lists == MOST_LISTS) /* what is made whole must not be deeper than what is read */
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: %s is nested in %d lists of the same kind; use fewer levels",
                        AN_SPOT(node->place), path, MOST_LISTS);
    if (node->count == 0 && an_option_is_required(option))
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: %s is empty; it takes %s", AN_SPOT(node->place), path,
                        an_option_wants(option).text);
    for (an_config_node *n = node->first; n; n = n->next) {
        char element[PATH_BYTES];
        snprintf(element, sizeof element, "%s[%d]", path, index++);
        AN_TRY_RETURN(resolve_table(config, n, an_option_table(option), element));
    }
    return AN_OK;
}

static an_status resolve_value(an_config *config, const an_option *option, an_config_node *node, const char *path) {
    node->option = option;
    switch (option->kind) {
    case AN_OPTION_TABLE: return resolve_table(config, node, an_option_table(option), path);
    case AN_OPTION_TABLES: return resolve_tables(config, option, node, path);
    case AN_OPTION_COUNTS:
    case AN_OPTION_REALS:
    case AN_OPTION_LENGTHS:
    case AN_OPTION_STRINGS: return resolve_list(config, option, node, path);
    case AN_OPTION_INPUTS: return resolve_inputs(config, option, node, path);
    case AN_OPTION_NAMED_REALS:
        return node->type == AN_CONFIG_TABLE ? resolve_map(config, option, node, path)
                                             : resolve_list(config, option, node, path);
    case AN_OPTION_COUNT_MAP:
    case AN_OPTION_REAL_MAP:
    case AN_OPTION_STRING_MAP: return resolve_map(config, option, node, path);
    default: return resolve_scalar(config, option, node, path);
    }
}

/* ---- short forms of whole tables ---- */

/* Whether one type alone has such a key, and needs it. */
static bool names_type(const an_config *config, const char *table, const an_option *option) {
    const char *key = an_option_key(option);
    if (!an_option_is_required(option) || !*option->of || strchr(option->of, '|')) return false;
    for (const an_option *o = an_option_next(config->options, table, NULL); o;
         o = an_option_next(config->options, table, o))
        if (o != option && !strcmp(an_option_key(o), key)) return false;
    return true;
}

/* The type can be left out where a key says which it is, as from does. */
static an_status derive_model(an_config *config, an_config_node *model) {
    static const char table[] = "model";
    if (an_config_node_find(model, "type")) return AN_OK;
    for (const an_option *o = an_option_next(config->options, table, NULL); o;
         o = an_option_next(config->options, table, o)) {
        const an_config_node *given = an_config_node_find(model, an_option_key(o));
        if (given && names_type(config, table, o))
            return add_scalar(config, model, "type", o->of, given, AN_ORIGIN_DEFAULT);
    }
    return AN_OK;
}

static bool is_stream(const an_config_node *source) {
    return source &&
           (an_config_node_is(source, "stream") || an_config_node_is(an_config_node_find(source, "type"), "stream"));
}

/* data.mixtures and data.source: stream are short for data.train. */
static an_status derive_data(an_config *config, an_config_node *data) {
    an_context *ctx = config->ctx;
    an_config_node *mixtures = an_config_node_find(data, "mixtures"), *source = an_config_node_find(data, "source"),
                   *train = an_config_node_find(data, "train");
    if (mixtures && train)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: data.mixtures and data.train are both set; mixtures is short for train: {type: mixture, "
                        "parts: [...]}, so remove one of them",
                        AN_SPOT(mixtures->key_place));
    if (source && train && an_config_node_is(source, "stream") != is_stream(train))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: data.source is '%s', but data.train is different; source: stream is short for train: "
                        "{type: stream}, so remove one of them",
                        AN_SPOT(source->place),
                        source->type == AN_CONFIG_SCALAR ? AN_QUOTE(source->text) : type_names[source->type]);
    if (mixtures) {
        an_config_node_take_out(data, mixtures);
        AN_TRY_RETURN(an_config_node_create(config, &train, AN_CONFIG_TABLE, mixtures->origin, mixtures->place));
        train->key = "train";
        AN_TRY_RETURN(add_scalar(config, train, "type", "mixture", mixtures, mixtures->origin));
        mixtures->key = "parts";
        an_config_node_add(train, mixtures);
        an_config_node_add(data, train);
    } else if (!train && source && an_config_node_is(source, "stream")) {
        AN_TRY_RETURN(an_config_node_create(config, &train, AN_CONFIG_TABLE, source->origin, source->place));
        train->key = "train";
        AN_TRY_RETURN(add_scalar(config, train, "type", "stream", source, source->origin));
        an_config_node_add(data, train);
    } else if (!source && is_stream(train)) {
        AN_TRY_RETURN(add_scalar(config, data, "source", "stream", train, AN_ORIGIN_DEFAULT));
    }
    return AN_OK;
}

static an_status derive_early_stop(an_config *config, an_config_node *stop) {
    if (stop->count == 0 || an_config_node_find(stop, "metric")) return AN_OK;
    return add_scalar(config, stop, "metric", "val_loss", stop, AN_ORIGIN_DEFAULT);
}

static const struct {
    const char *table;
    an_status (*derive)(an_config *config, an_config_node *table);
} derivations[] = {{"model", derive_model}, {"data", derive_data}, {"eval.early_stop", derive_early_stop}};

/* ---- defaults ---- */

/* Keys whose default holds only while others are not given. */
static bool is_replaced(const char *table, const char *key, const an_config_node *node) {
    if (!strcmp(table, "run") && !strcmp(key, "epochs"))
        return an_config_node_find(node, "steps") || an_config_node_find(node, "tokens") ||
               an_config_node_find(node, "samples");
    if (!strcmp(table, "batch") && !strcmp(key, "global")) return an_config_node_find(node, "accumulate") != NULL;
    return false;
}

/* A table without which a config is right: one that would need a key. */
static bool may_be_absent(const an_option_list *all, const an_option *option) {
    const char *table = an_option_table(option);
    for (const an_option *o = an_option_next(all, table, NULL); o; o = an_option_next(all, table, o))
        if (an_option_is_required(o) && !*o->of) return true;
    return false;
}

/* The default's node; *node stays NULL if there is none. */
static an_status make_default(an_config *config, const an_option *option, an_spot place, const char *path,
                              an_config_node **node) {
    const char *text = an_option_default(option);
    if (option->kind == AN_OPTION_TABLE && !may_be_absent(config->options, option)) {
        AN_TRY_RETURN(an_config_node_create(config, node, AN_CONFIG_TABLE, AN_ORIGIN_DEFAULT, place));
    } else if (text && (*text == '[' || *text == '"')) {
        AN_TRY_RETURN(an_config_parse(config, "options.def", text, strlen(text), AN_ORIGIN_DEFAULT, node));
    } else if (text) {
        AN_TRY_RETURN(an_config_node_create(config, node, AN_CONFIG_SCALAR, AN_ORIGIN_DEFAULT, place));
        (*node)->text = text;
    } else {
        return AN_OK;
    }
    (*node)->key = an_option_key(option);
    (*node)->place = (*node)->key_place = place;
    return resolve_value(config, option, *node, path);
}

static an_status missing_key(an_config *config, const an_config_node *node, const char *path, const an_option *option,
                             const char *type) {
    const char *key = an_option_key(option);
    if (!*path)
        return AN_ERROR(config->ctx, AN_ERR_PARSE, "%s: '%s' is missing; a config needs at least model and data",
                        AN_SPOT(node->place), key);
    if (*option->of)
        return AN_ERROR(config->ctx, AN_ERR_PARSE, "%s: %s of type '%s' needs '%s'; set it to %s", AN_SPOT(node->place),
                        path, AN_QUOTE(type), key, an_option_wants(option).text);
    return AN_ERROR(config->ctx, AN_ERR_PARSE, "%s: %s needs '%s'; set it to %s", AN_SPOT(node->place), path, key,
                    an_option_wants(option).text);
}

/* Every option of the table in its order, given or default. */
static an_status fill(an_config *config, an_config_node *node, const char *table, const char *path, const char *type) {
    const an_config_node before = *node;
    node->first = node->last = NULL;
    node->count = 0;
    for (const an_option *o = an_option_next(config->options, table, NULL); o;
         o = an_option_next(config->options, table, o)) {
        const char *key = an_option_key(o);
        char whole[PATH_BYTES];
        if (!an_option_is_of(o, type)) continue;
        join(whole, path, key);
        an_config_node *child = an_config_node_find(&before, key);
        if (!child && an_option_is_required(o)) return missing_key(config, node, path, o, type);
        if (!child && !is_replaced(table, key, &before))
            AN_TRY_RETURN(make_default(config, o, node->place, whole, &child));
        if (!child) continue;
        /* the list of what was there is read on: a copy goes into the new one */
        an_config_node *copy = NULL;
        AN_TRY_RETURN(an_arena_alloc(&config->arena, (void **)&copy, 1, sizeof *copy));
        *copy = *child;
        an_config_node_add(node, copy);
    }
    return AN_OK;
}

/* ---- a table ---- */

static an_status resolve_type(an_config *config, an_config_node *node, const char *table, const char *path,
                              const char **type) {
    const an_option *option = an_option_find(config->options, table, "type", NULL);
    *type = NULL;
    if (!option) return AN_OK;
    an_config_node *given = an_config_node_find(node, "type");
    if (!given && an_option_is_required(option)) return missing_key(config, node, path, option, NULL);
    *type = an_option_default(option);
    if (given) {
        char whole[PATH_BYTES];
        join(whole, path, "type");
        AN_TRY_RETURN(resolve_value(config, option, given, whole));
        *type = an_words_have(option->words, given->text) ? given->text : AN_OWN_TYPE;
    }
    return AN_OK;
}

static an_status resolve_table(an_config *config, an_config_node *node, const char *table, const char *path) {
    const char *type = NULL;
    AN_TRY_RETURN(an_config_make_table(config, node, table, path));
    for (an_config_node *n = node->first; n; n = n->next) {
        AN_TRY_RETURN(rename_key(config, node, table, n));
        if (!an_option_find(config->options, table, n->key, NULL))
            return an_config_unknown_key(config, n->key_place, table, path, n->key);
    }
    for (size_t i = 0; i < sizeof derivations / sizeof *derivations; i++)
        if (!strcmp(derivations[i].table, table)) AN_TRY_RETURN(derivations[i].derive(config, node));
    AN_TRY_RETURN(resolve_type(config, node, table, path, &type));
    for (an_config_node *n = node->first; n; n = n->next) {
        char whole[PATH_BYTES];
        const an_option *option = an_option_find(config->options, table, n->key, type);
        if (!option) return foreign_key(config, node, n, table, path, type);
        join(whole, path, n->key);
        AN_TRY_RETURN(resolve_value(config, option, n, whole));
    }
    return fill(config, node, table, path, type);
}

an_status an_config_resolve(an_config *config, an_config_node *root) {
    an_context *ctx = config->ctx;
    int64_t number;
    const an_config_node *version = an_config_node_find(root, "version");
    if (root->type != AN_CONFIG_TABLE)
        return AN_ERROR(ctx, AN_ERR_PARSE,
                        "%s: this is %s; a config is a table of keys and needs at least model and data",
                        AN_SPOT(root->place), type_names[root->type]);
    if (version && version->type == AN_CONFIG_SCALAR && an_read_count(version->text, &number) && number > 1)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: this config has version %lld, but this anneal reads only version 1; use a newer anneal",
                        AN_SPOT(version->place), (long long)number);
    return resolve_table(config, root, "", "");
}
