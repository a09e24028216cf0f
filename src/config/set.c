/* Applies a setting such as "optimizer.lr=1e-3" to what was given. */
#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"
#include "config/config.h"

enum { SHOWN_BYTES = 128 }; /* of the setting in messages */

static an_status bad_path(an_config *config, an_spot place, const char *path, const char *why) {
    return AN_ERROR(config->ctx, AN_ERR_PARSE, "%s: '%s' %s", AN_SPOT(place), AN_QUOTE(path), why);
}

/* The text behind '=' as a node: YAML if it begins like a list, a table or a text in quotes, else as it is. */
static an_status set_value(an_config *config, an_spot place, const char *text, an_config_node **node) {
    if (strchr("[{\"'", *text)) {
        AN_TRY_RETURN(an_config_parse(config, place.name, text, strlen(text), AN_ORIGIN_SET, node));
        if (*node) return AN_OK;
    }
    AN_TRY_RETURN(an_config_node_create(config, node, AN_CONFIG_SCALAR, AN_ORIGIN_SET, place));
    return an_arena_string(&config->arena, &(*node)->text, text, strlen(text));
}

/* Puts the value (NULL: nothing) in the place of a key. */
static void put(an_config_node *table, const char *key, an_config_node *value, an_spot place) {
    an_config_node *old = an_config_node_find(table, key);
    if (value) {
        value->key = key;
        value->key_place = place;
    }
    if (old && value) {
        an_config_node *next = old->next;
        *old = *value;
        old->next = next;
    } else if (old) {
        an_config_node_take_out(table, old);
    } else if (value) {
        an_config_node_add(table, value);
    }
}

/* Element [3] of a list, for which *rest is moved behind it. */
static an_status pick_element(an_config *config, an_spot place, const char *key, const char **rest,
                              an_config_node **node) {
    int index = 0, digits = 0;
    const char *at = *rest + 1;
    const an_config_node *list = *node;
    for (; *at >= '0' && *at <= '9' && digits < 6; digits++) index = index * 10 + (*at++ - '0');
    if (digits == 0 || *at != ']') return bad_path(config, place, key, "needs a number in brackets, as in groups[0]");
    if (!list || list->type != AN_CONFIG_LIST || index >= list->count)
        return AN_ERROR(config->ctx, AN_ERR_PARSE,
                        "%s: '%s' has %d elements, counted from 0, so element %d does not exist", AN_SPOT(place),
                        AN_QUOTE(key), list && list->type == AN_CONFIG_LIST ? list->count : 0, index);
    *node = list->first;
    while (index-- > 0) *node = (*node)->next;
    *rest = at + 1;
    return AN_OK;
}

/* The table that a key of the path names, made if it was not given; *rest stands behind the key. */
static an_status enter(an_config *config, an_spot place, const an_option *option, const char **rest,
                       an_config_node **table) {
    const char *key = an_option_key(option);
    an_config_node *node = an_config_node_find(*table, key);
    if (**rest == '[') {
        if (option->kind != AN_OPTION_TABLES) return bad_path(config, place, option->path, "is not a list of tables");
        AN_TRY_RETURN(pick_element(config, place, option->path, rest, &node));
    } else if (option->kind == AN_OPTION_TABLES) {
        return bad_path(config, place, option->path, "is a list; choose an element, as in [0]");
    }
    if (!node) {
        AN_TRY_RETURN(an_config_node_create(config, &node, AN_CONFIG_TABLE, AN_ORIGIN_SET, place));
        put(*table, key, node, place);
    }
    if (option->kind == AN_OPTION_TABLE || option->kind == AN_OPTION_TABLES)
        AN_TRY_RETURN(an_config_make_table(config, node, an_option_table(option), option->path));
    else if (node->type == AN_CONFIG_SCALAR && option->kind == AN_OPTION_COUNT_MAP)
        AN_TRY_RETURN(an_config_node_wrap(config, node, AN_CONFIG_TABLE, "0"));
    *table = node;
    return AN_OK;
}

static bool is_map(const an_option *option) {
    return option->kind == AN_OPTION_COUNT_MAP || option->kind == AN_OPTION_REAL_MAP ||
           option->kind == AN_OPTION_STRING_MAP;
}

an_status an_config_merge(an_config *config, an_config_node *given, const char *setting) {
    an_context *ctx = config->ctx;
    const char *equals = strchr(setting, '='), *at = setting, *table = "", *name = NULL, *key = NULL;
    char shown[SHOWN_BYTES];
    an_config_node *value = NULL, *node = given;
    snprintf(shown, sizeof shown, "--set %s", AN_QUOTE(setting));
    AN_TRY_RETURN(an_arena_string(&config->arena, &name, shown, strlen(shown)));
    const an_spot place = {name, 0, 0};
    if (!equals || equals == setting)
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: this is not a setting; write KEY=VALUE, as in optimizer.lr=1e-3", name);
    if (!an_utf8_is_valid(setting)) return AN_ERROR(ctx, AN_ERR_PARSE, "%s: this is not UTF-8; use UTF-8", name);
    if (strlen(setting) > AN_CONFIG_MOST_BYTES) return AN_ERROR(ctx, AN_ERR_PARSE, "%s: this is too long", name);
    if (equals[1]) AN_TRY_RETURN(set_value(config, place, equals + 1, &value));
    if (given->type != AN_CONFIG_TABLE) return AN_OK; /* which is then refused as a whole */
    for (;;) {
        AN_TRY_RETURN(an_arena_string(&config->arena, &key, at, strcspn(at, ".[=")));
        at += strlen(key);
        const an_rename *renamed = an_config_find_rename(config, table, key);
        const an_option *option = an_option_find(config->options, table, renamed ? renamed->new_key : key, NULL);
        if (!option) return an_config_unknown_key(config, place, table, table, key);
        /* an old name stays in the tree, where a warning is made of it */
        if (!renamed || an_config_node_find(node, renamed->new_key)) key = an_option_key(option);
        if (*at == '=') break;
        if (option->kind != AN_OPTION_TABLE && option->kind != AN_OPTION_TABLES && !is_map(option))
            return bad_path(config, place, option->path, "is a single value and has no keys");
        AN_TRY_RETURN(enter(config, place, option, &at, &node));
        if (*at == '=') { /* a whole element of a list */
            if (!value)
                return bad_path(config, place, option->path,
                                "has elements that cannot be removed one by one; set the whole list");
            key = node->key;
            an_config_node *next = node->next;
            *node = *value;
            node->key = key;
            node->next = next;
            return AN_OK;
        }
        if (*at != '.') return bad_path(config, place, setting, "is not a path of keys; write it as in optimizer.lr");
        at++;
        if (is_map(option)) { /* the rest is the key, dots and all */
            AN_TRY_RETURN(an_arena_string(&config->arena, &key, at, (size_t)(equals - at)));
            if (node->type != AN_CONFIG_TABLE)
                return bad_path(config, place, option->path, "is not a table in the file");
            break;
        }
        table = an_option_table(option);
    }
    put(node, key, value, place);
    return AN_OK;
}
