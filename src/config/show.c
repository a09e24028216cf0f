/* Writes a config as text: complete, in the order of the options, with or without comments. */
#include <string.h>

#include "base/guard.h"
#include "config/config.h"

typedef struct writer {
    const an_config *config;
    an_text text;
    bool remarks;
    size_t line; /* where it begins */
} writer;

enum { INDENT = 2, REMARKS_AT = 44 }; /* columns */

static const char *const origin_names[] = {[AN_ORIGIN_NONE] = "",
                                           [AN_ORIGIN_DEFAULT] = "default",
                                           [AN_ORIGIN_FILE] = "file",
                                           [AN_ORIGIN_SET] = "--set",
                                           [AN_ORIGIN_CHECKPOINT] = "checkpoint"};

/* ---- scalars ---- */

/* Whether YAML reads it back as it is: letters, digits and what stands in numbers, units and paths. */
static bool is_plain(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-%";
    const size_t length = strlen(text);
    if (length == 0 || text[0] == '%' || !strcmp(text, "-") || !strcmp(text, "null")) return false;
    if (text[0] == ' ' || text[length - 1] == ' ' || !strncmp(text, "- ", 2)) return false;
    for (const char *c = text; *c; c++)
        if (*c != ' ' && !strchr(letters, *c)) return false;
    return true;
}

/* Length and value of the character at `c`, of valid UTF-8. */
static int decode(const unsigned char *c, unsigned *value) {
    const int more = *c < 0x80 ? 0 : *c < 0xe0 ? 1 : *c < 0xf0 ? 2 : 3;
    *value = more == 0 ? *c : *c & (0x3fu >> more);
    for (int i = 1; i <= more; i++) *value = *value << 6 | (c[i] & 0x3fu);
    return more + 1;
}

/* What may stand in a file as itself: no control characters, no line breaks of YAML 1.1, no byte order mark. */
static bool is_visible(unsigned c) {
    return (c >= ' ' && c <= '~') || (c >= 0xa0 && c <= 0xd7ff && c != 0x2028 && c != 0x2029) ||
           (c >= 0xe000 && c <= 0xfffd && c != 0xfeff) || c >= 0x10000;
}

static void add_quoted(an_text *text, const char *string) {
    an_text_bytes(text, "\"", 1);
    for (const unsigned char *c = (const unsigned char *)string; *c;) {
        unsigned value;
        const int length = decode(c, &value);
        if (value == '"' || value == '\\') an_text_bytes(text, "\\", 1);
        if (is_visible(value))
            an_text_bytes(text, (const char *)c, (size_t)length);
        else
            an_text_add(text, "\\u%04x", value);
        c += length;
    }
    an_text_bytes(text, "\"", 1);
}

static void add_scalar(writer *w, const an_config_node *node) {
    const bool is_input = an_config_node_is_path(node) && an_option_is_input(node->option) && node->text[0] != '/';
    if (is_input && !w->remarks) { /* the text will lie elsewhere than the file did */
        an_text whole;
        const bool from_file = node->origin != AN_ORIGIN_SET;
        an_text_init(&whole, w->text.ctx);
        an_text_add(&whole, "%s%s%s", from_file && w->config->folder[0] == '/' ? "" : w->config->working,
                    from_file ? w->config->folder : "", node->text);
        if (whole.status == AN_OK)
            add_quoted(&w->text, whole.bytes);
        else
            w->text.status = whole.status;
        an_text_destroy(&whole);
    } else if (node->quoted || !is_plain(node->text)) {
        add_quoted(&w->text, node->text);
    } else {
        an_text_bytes(&w->text, node->text, strlen(node->text));
    }
}

/* ---- lines ---- */

static void begin_line(writer *w, int depth, const char *dash) {
    w->line = w->text.length;
    an_text_add(&w->text, "%*s%s", depth * INDENT, "", dash);
}

static void end_line(writer *w, const char *remark) {
    const size_t column = w->text.length - w->line;
    if (w->remarks && remark)
        an_text_add(&w->text, "%*s# %s", column < REMARKS_AT ? (int)(REMARKS_AT - column) : 1, "", remark);
    an_text_bytes(&w->text, "\n", 1);
}

/* [0.9, 0.99], {0: 8, 4: 4} */
static void add_flow(writer *w, const an_config_node *node) {
    const bool is_list = node->type == AN_CONFIG_LIST;
    an_text_bytes(&w->text, is_list ? "[" : "{", 1);
    for (const an_config_node *n = node->first; n; n = n->next) {
        if (n != node->first) an_text_bytes(&w->text, ", ", 2);
        if (!is_list && is_plain(n->key))
            an_text_add(&w->text, "%s: ", n->key);
        else if (!is_list) {
            add_quoted(&w->text, n->key);
            an_text_bytes(&w->text, ": ", 2);
        }
        add_scalar(w, n);
    }
    an_text_bytes(&w->text, is_list ? "]" : "}", 1);
}

static bool has_tables(const an_config_node *node) {
    return node->option && (node->option->kind == AN_OPTION_TABLE || node->option->kind == AN_OPTION_TABLES);
}

static void write_table(writer *w, const an_config_node *table, const char *options, int depth, const char *dash);

static void write_tables(writer *w, const an_config_node *list, int depth) {
    for (const an_config_node *n = list->first; n; n = n->next)
        write_table(w, n, an_option_table(list->option), depth, "- ");
}

static void write_key(writer *w, const an_config_node *node, int depth, const char *dash) {
    begin_line(w, depth, dash);
    an_text_add(&w->text, "%s:", node->key);
    if (has_tables(node) && node->count > 0) {
        end_line(w, NULL);
        const int inner = depth + 1 + (*dash != 0);
        if (node->option->kind == AN_OPTION_TABLE)
            write_table(w, node, an_option_table(node->option), inner, "");
        else
            write_tables(w, node, inner);
        return;
    }
    an_text_bytes(&w->text, " ", 1);
    if (node->type == AN_CONFIG_SCALAR)
        add_scalar(w, node);
    else
        add_flow(w, node);
    end_line(w, origin_names[node->origin]);
}

/* Keys without a value are remarks themselves. `dash` begins an element of a list; its other keys stand below the
 * first. */
static void write_table(writer *w, const an_config_node *table, const char *options, int depth, const char *dash) {
    const an_config_node *type = an_config_node_find(table, "type");
    for (const an_option *o = an_option_next(w->config->options, options, NULL); o;
         o = an_option_next(w->config->options, options, o)) {
        const an_config_node *node = an_config_node_find(table, an_option_key(o));
        if (!an_option_is_of(o, type ? type->text : NULL)) continue;
        if (node) {
            write_key(w, node, depth, dash);
            if (*dash) depth++;
            dash = "";
        } else if (w->remarks && o->kind != AN_OPTION_TABLE && o->kind != AN_OPTION_TABLES && !*dash) {
            begin_line(w, depth, "# ");
            an_text_add(&w->text, "%s:", an_option_key(o));
            end_line(w, "not set");
        }
    }
}

static an_status write_config(const an_config *config, bool remarks, char **text) {
    an_context *ctx = config->ctx;
    writer w = {.config = config, .remarks = remarks};
    an_status status;
    an_text_init(&w.text, ctx);
    write_table(&w, config->root, "", 0, "");
    AN_TRY(an_text_take(&w.text, text));
    return AN_OK;
fail:
    an_text_destroy(&w.text);
    return status;
}

an_status an_config_show(const an_config *config, char **text) {
    AN_GUARD;
    AN_NEED(config, text);
    return write_config(config, true, text);
}

an_status an_config_write(const an_config *config, char **text) {
    AN_GUARD;
    AN_NEED(config, text);
    return write_config(config, false, text);
}
