/* Writes the JSON Schema of a config from the table of options. Every table is a definition with its path, so that
 * tables that share options, or contain themselves, are references. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/added.h"
#include "base/guard.h"
#include "config/config.h"

static void add_string(an_text *t, const char *string) {
    an_json_writer json = an_text_json(t, AN_JSON_FLAT);
    an_json_write_string(&json, NULL, string);
}

/* "auto", "off"; an editor may take on and off for true and false. */
static void add_words(an_text *t, const char *words) {
    for (const char *at = words; *at;) {
        const size_t here = strcspn(at, "|");
        an_text_add(t, "%s\"%.*s\"", at == words ? "" : ", ", (int)here, at);
        at += here + (at[here] == '|');
    }
    if (an_words_have(words, "off")) an_text_add(t, ", false");
}

/* Names that the program has added to the context, behind the words. */
static void add_added(an_text *t, const an_option *o) {
    const an_added *item;
    const an_added_kind kind = o->added == AN_NAMES_OPTIMIZERS ? AN_ADDED_OPTIMIZER : AN_ADDED_METRIC;
    for (int i = 0; o->added && (item = an_added_at(t->ctx, kind, i)); i++) {
        an_text_add(t, ", \"%s\"", item->name);
        if (o->added == AN_NAMES_REPORTED) an_text_add(t, ", \"val_%s\"", item->name);
    }
}

static void add_number(an_text *t, const an_option *o, const char *type) {
    char number[32];
    an_text_add(t, "{\"type\": \"%s\"", type);
    if (isfinite(o->minimum)) {
        an_text_number(number, sizeof number, o->minimum);
        an_text_add(t, ", \"%s\": %s", o->above ? "exclusiveMinimum" : "minimum", number);
    }
    if (isfinite(o->maximum)) {
        an_text_number(number, sizeof number, o->maximum);
        an_text_add(t, ", \"%s\": %s", o->below ? "exclusiveMaximum" : "maximum", number);
    }
    an_text_add(t, "}");
}

/* Numbers as JSON has them, and texts with units. */
static const struct {
    const char *number;  /* NULL: a bare number is no value */
    const char *pattern; /* NULL: no text is one; "": any is */
} forms[AN_OPTION_KINDS] = {
    [AN_OPTION_STRING] = {"number", ""},
    [AN_OPTION_INPUT] = {NULL, ""},
    [AN_OPTION_INPUTS] = {NULL, ""},
    [AN_OPTION_OUTPUT] = {NULL, ""},
    [AN_OPTION_STRINGS] = {"integer", ""},
    [AN_OPTION_STRING_MAP] = {"number", ""},
    [AN_OPTION_COUNT] = {"integer", "^[0-9.]+[kMGBT]$"},
    [AN_OPTION_COUNTS] = {"integer", "^[0-9.]+[kMGBT]$"},
    [AN_OPTION_COUNT_MAP] = {"integer", "^[0-9.]+[kMGBT]$"},
    [AN_OPTION_REAL] = {"number", NULL},
    [AN_OPTION_REALS] = {"number", NULL},
    [AN_OPTION_NAMED_REALS] = {"number", NULL},
    [AN_OPTION_REAL_MAP] = {"number", NULL},
    [AN_OPTION_SHARE] = {"number", "^[0-9.]+ *%$"},
    [AN_OPTION_LENGTH] = {"number",
                          "^[0-9.]+[kMGBT]? *(steps?|epochs?|tokens?|samples?|%)?$|^([0-9.]+ *(ms|s|min|m|h|d) *)+$"},
    [AN_OPTION_LENGTHS] = {"number", "^[0-9.]+[kMGBT]? *(steps?|epochs?|tokens?|samples?|%)?$"},
    [AN_OPTION_FIRST_SAMPLES] = {"integer", "^(first +)?[0-9.]+[kMGBT]? *(samples?)?$"},
    [AN_OPTION_BYTES] = {"number", "^[0-9.]+ *([kMGT]?B|[KMGT]iB)$"},
    [AN_OPTION_DURATION] = {NULL, "^([0-9.]+ *(ms|s|min|m|h|d) *)+$"},
    [AN_OPTION_RANGE] = {NULL, "^[0-9.]+ *% *\\.\\. *[0-9.]+ *%$"},
};

/* One value of the option, or one element of its list or map. */
static void add_value(an_text *t, const an_option *o) {
    if (o->unsupported && !*o->unsupported && an_option_default(o)) {
        an_text_add(t, "{\"enum\": [");
        add_words(t, an_option_default(o));
        an_text_add(t, "]}");
        return;
    }
    if (o->kind == AN_OPTION_CHOICE || (o->kind == AN_OPTION_STRINGS && strchr(o->words, '|'))) {
        an_text_add(t, "{\"enum\": [");
        add_words(t, an_option_words(o).text);
        add_added(t, o);
        an_text_add(t, "]}");
        return;
    }
    const char *separator = "";
    an_text_add(t, "{\"anyOf\": [");
    if (o->kind == AN_OPTION_BOOL) {
        an_text_add(t, "{\"type\": \"boolean\"}, {\"enum\": [\"on\", \"off\"]}");
        separator = ", ";
    }
    if (o->kind == AN_OPTION_STRING_MAP) {
        an_text_add(t, "{\"type\": \"null\"}");
        separator = ", ";
    }
    if (forms[o->kind].number) {
        an_text_add(t, "%s", separator);
        add_number(t, o, forms[o->kind].number);
        separator = ", ";
    }
    if (forms[o->kind].pattern) {
        an_text_add(t, "%s{\"type\": \"string\"", separator);
        if (*forms[o->kind].pattern) {
            an_text_add(t, ", \"pattern\": ");
            add_string(t, forms[o->kind].pattern);
        }
        an_text_add(t, "}");
        separator = ", ";
    }
    const an_words_text words = an_option_words(o);
    if (*words.text) {
        an_text_add(t, "%s{\"enum\": [", separator);
        add_words(t, words.text);
        an_text_add(t, "]}");
    }
    an_text_add(t, "]}");
}

static void add_description(an_text *t, const an_option *o) {
    char text[1024];
    const bool whole = o->unsupported && !*o->unsupported, words = o->unsupported && *o->unsupported;
    snprintf(text, sizeof text, "%s%s%s%s", whole ? "not supported yet: " : "", o->help,
             words ? "; not supported yet: " : "", words ? an_words_describe(o->unsupported, " and ").text : "");
    add_string(t, text);
}

static void add_option(an_text *t, const an_option *o) {
    const char *fallback = an_option_default(o);
    an_text_add(t, "{\"description\": ");
    add_description(t, o);
    if (fallback && *fallback != '[' && *fallback != '"') {
        an_text_add(t, ", \"default\": ");
        add_string(t, fallback);
    }
    switch (o->kind) {
    case AN_OPTION_TABLE: an_text_add(t, ", \"$ref\": \"#/$defs/%s\"", an_option_table(o)); break;
    case AN_OPTION_TABLES:
        an_text_add(t, ", \"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/%s\"}", an_option_table(o));
        break;
    case AN_OPTION_COUNTS:
    case AN_OPTION_REALS:
    case AN_OPTION_LENGTHS:
    case AN_OPTION_STRINGS:
    case AN_OPTION_INPUTS:
    case AN_OPTION_NAMED_REALS:
        an_text_add(t, ", \"anyOf\": [{\"type\": \"array\", \"items\": ");
        add_value(t, o);
        an_text_add(t, "}, ");
        if (o->kind == AN_OPTION_NAMED_REALS) {
            an_text_add(t, "{\"type\": \"object\", \"additionalProperties\": ");
            add_value(t, o);
            an_text_add(t, "}, ");
        }
        add_value(t, o);
        an_text_add(t, "]");
        break;
    case AN_OPTION_COUNT_MAP:
    case AN_OPTION_REAL_MAP:
    case AN_OPTION_STRING_MAP:
        an_text_add(t, ", \"anyOf\": [{\"type\": \"object\", \"additionalProperties\": ");
        add_value(t, o);
        an_text_add(t, "}");
        if (o->kind == AN_OPTION_COUNT_MAP) {
            an_text_add(t, ", ");
            add_value(t, o);
        }
        an_text_add(t, "]");
        break;
    default:
        an_text_add(t, ", \"allOf\": [");
        add_value(t, o);
        an_text_add(t, "]");
        break;
    }
    an_text_add(t, "}");
}

/* A key that several types have, each in its way, is any of them. */
static void add_key(an_text *t, const an_option_list *all, const char *table, const an_option *first) {
    const char *key = an_option_key(first), *separator = "";
    int count = 0;
    for (const an_option *o = first; o; o = an_option_next(all, table, o)) count += !strcmp(an_option_key(o), key);
    if (count > 1) an_text_add(t, "{\"anyOf\": [");
    for (const an_option *o = first; o; o = an_option_next(all, table, o)) {
        if (strcmp(an_option_key(o), key) != 0) continue;
        an_text_add(t, "%s", separator);
        add_option(t, o);
        separator = ", ";
    }
    if (count > 1) an_text_add(t, "]}");
}

static void add_object(an_text *t, const an_option_list *all, const char *table, const char *indent) {
    const char *separator = "";
    an_text_add(t, "\"type\": \"object\", \"additionalProperties\": false, \"required\": [");
    for (const an_option *o = an_option_next(all, table, NULL); o; o = an_option_next(all, table, o)) {
        if (!an_option_is_required(o) || *o->of || !strcmp(o->path, "model.type")) continue; /* a graph needs no type */
        an_text_add(t, "%s\"%s\"", separator, an_option_key(o));
        separator = ", ";
    }
    an_text_add(t, "], \"properties\": {");
    separator = "";
    for (const an_option *o = an_option_next(all, table, NULL); o; o = an_option_next(all, table, o)) {
        if (an_option_find(all, table, an_option_key(o), NULL) != o) continue;
        an_text_add(t, "%s\n%s\"%s\": ", separator, indent, an_option_key(o));
        add_key(t, all, table, o);
        separator = ",";
    }
    an_text_add(t, "}");
}

an_status an_config_schema(an_context *ctx, char **text) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, text);
    an_status status;
    an_text t;
    const char *separator = "";
    const an_option_list *all;
    AN_TRY_RETURN(an_option_list_get(ctx, &all));
    an_text_init(&t, ctx);
    an_text_add(&t, "{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"title\": \"anneal config\",\n");
    add_object(&t, all, "", "  ");
    an_text_add(&t, ",\n \"$defs\": {");
    for (int i = 0; i < all->count; i++) {
        const an_option *o = &all->items[i];
        if ((o->kind != AN_OPTION_TABLE && o->kind != AN_OPTION_TABLES) || o->table) continue;
        an_text_add(&t, "%s\n  \"%s\": {\"anyOf\": [{", separator, o->path);
        add_object(&t, all, o->path, "    ");
        /* a single value stands for the first key; a key with nothing behind it is an empty table */
        an_text_add(&t, "}, {\"type\": \"null\"}");
        const an_option *first = an_option_next(all, o->path, NULL);
        if (first->kind != AN_OPTION_TABLE) {
            an_text_add(&t, ", ");
            add_value(&t, first);
        }
        an_text_add(&t, "]}");
        separator = ",";
    }
    an_text_add(&t, "}}\n");
    AN_TRY(an_text_take(&t, text));
    return AN_OK;
fail:
    an_text_destroy(&t);
    return status;
}
