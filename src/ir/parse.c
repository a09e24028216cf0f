/* Reading the text form: statements, line by line. docs/ang-format.md has the grammar.
 *
 * Every byte may be hostile. A text of n bytes costs O(n) time and memory, whatever is in it, and a mistake in it gives
 * a message that begins with its line and column.
 */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "ir/parser.h"
#include "ir/registry.h"

enum { MOST_BYTES = 1 << 28 }; /* lines and columns are ints; the largest dumps have some megabytes */

an_status an_parser_mistake(an_parser *p, const an_token *at) {
    const an_graph *g = p->graph;
    const char *message = g->message;
    char place[sizeof AN_TEXT_FILE + 16];
    int length = snprintf(place, sizeof place, AN_TEXT_FILE ":%d: ", at->line);
    if (!strncmp(message, place, (size_t)length)) message += length;
    return an_scan_locate(&p->scan, at, g->status, message);
}

an_status an_parser_only_dump(const an_parser *p, const an_token *t) {
    return an_scan_error(&p->scan, t,
                         "'%.*s' is written by the library: it is allowed in dumps ('ang %d dump'), not in models",
                         (int)t->length, t->start, AN_TEXT_VERSION);
}

an_status an_parser_define(an_parser *p, an_names *names, const an_token *t, const char *prefix, uint64_t meaning) {
    an_context *ctx = p->scan.ctx;
    const an_name *known = an_names_find(names, t->start, t->length);
    if (known)
        return an_scan_error(&p->scan, t, "%s%.*s is defined twice, first on line %d", prefix, (int)t->length, t->start,
                             known->line);
    an_status status = an_names_add(
        names, ctx, &(an_name){.text = t->start, .length = t->length, .line = t->line, .meaning = meaning});
    return status == AN_OK ? AN_OK : an_scan_locate(&p->scan, t, status, ctx->error.message);
}

void an_parser_enter(an_graph *g, int block) {
    const char *path = g->blocks[block].path;
    g->block = block;
    g->path_length = strlen(path);
    memcpy(g->path, path, g->path_length + 1);
}

/* ---- statements ---- Each function begins behind the keyword. */

/* name=integer, if the current token is that name; else the number stays as it is. */
static an_status parse_key(an_parser *p, const char *name, int64_t minimum, int64_t maximum, int64_t *number) {
    if (!an_token_is(&p->scan.token, name)) return AN_OK;
    AN_TRY_RETURN(an_scan_next(&p->scan));
    AN_TRY_RETURN(an_scan_expect(&p->scan, '=', "after the name"));
    const an_token at = p->scan.token;
    AN_TRY_RETURN(an_scan_int(&p->scan, number));
    if (*number >= minimum && *number <= maximum) return AN_OK;
    return an_scan_error(&p->scan, &at, "%s is %lld; it must be %lld to %lld", name, (long long)*number,
                         (long long)minimum, (long long)maximum);
}

/* symbol batch maximum=64 value=32 */
static an_status parse_symbol(an_parser *p) {
    an_context *ctx = p->scan.ctx;
    an_graph *g = p->graph;
    const an_token name = p->scan.token;
    int64_t maximum = 0, value = 0;
    an_dim dim = 0;
    if (name.kind != AN_TOKEN_NAME || *name.start == '_')
        return an_scan_unexpected(&p->scan, "a name that begins with a letter");
    AN_TRY_RETURN(an_scan_next(&p->scan));
    if (!p->dump && (an_token_is(&p->scan.token, "maximum") || an_token_is(&p->scan.token, "value")))
        return an_parser_only_dump(p, &p->scan.token);
    AN_TRY_RETURN(parse_key(p, "maximum", 1, INT64_MAX, &maximum));
    value = maximum;
    AN_TRY_RETURN(parse_key(p, "value", 1, maximum, &value));
    AN_TRY_RETURN(an_scan_expect_line(&p->scan));
    an_status status = an_dimensions_symbol(&g->dimensions, &g->arena, name.start, name.length, &dim);
    if (status != AN_OK) return an_scan_locate(&p->scan, &name, status, ctx->error.message);
    AN_TRY_RETURN(an_parser_define(p, &p->symbols, &name, "symbol ", (uint64_t)dim));
    an_symbol *symbol = &g->dimensions.symbols[g->dimensions.symbol_count - 1];
    symbol->maximum = maximum;
    symbol->value = value;
    return AN_OK;
}

/* block 1 "h.0" depth=1 parent=0; scope 2 "mlp" parent=1 */
static an_status parse_block(an_parser *p, bool is_scope) {
    an_graph *g = p->graph;
    const an_token at = p->scan.token;
    int64_t number = 0, depth = 0, parent = 0;
    const char *name = NULL;
    AN_TRY_RETURN(an_scan_int(&p->scan, &number));
    if (number < 0 || (uint64_t)number != g->block_count)
        return an_scan_error(&p->scan, &at, "blocks and scopes must be numbered in order; this one is %zu",
                             g->block_count);
    AN_TRY_RETURN(an_scan_string(&p->scan, &g->arena, &name));
    if (!is_scope) AN_TRY_RETURN(parse_key(p, "depth", INT32_MIN, INT32_MAX, &depth));
    AN_TRY_RETURN(parse_key(p, "parent", 0, number - 1, &parent));
    AN_TRY_RETURN(an_scan_expect_line(&p->scan));
    an_parser_enter(g, (int)parent);
    g->calls.place = (an_place){.file = AN_TEXT_FILE, .line = at.line};
    if (is_scope)
        an_scope_begin(g, name);
    else
        an_block_begin(g, name, (int)depth);
    an_parser_enter(g, 0);
    return g->status == AN_OK ? AN_OK : an_parser_mistake(p, &at);
}

/* loss %9 targets %y */
static an_status parse_loss(an_parser *p) {
    an_graph *g = p->graph;
    const an_token at = p->scan.token;
    an_value loss = 0, targets = AN_NONE;
    if (g->loss) return an_scan_error(&p->scan, &at, "the loss is given twice");
    AN_TRY_RETURN(an_parse_value(p, &loss));
    if (an_token_is(&p->scan.token, "targets")) {
        AN_TRY_RETURN(an_scan_next(&p->scan));
        AN_TRY_RETURN(an_parse_value(p, &targets));
    }
    AN_TRY_RETURN(an_scan_expect_line(&p->scan));
    an_graph_at(g, AN_TEXT_FILE, at.line);
    an_graph_set_loss(g, loss, targets);
    return g->status == AN_OK ? AN_OK : an_parser_mistake(p, &at);
}

enum { GRAPH, SYMBOL, BLOCK, SCOPE, LOSS, KEYWORDS };
static const char *const keywords[] = {"graph", "symbol", "block", "scope", "loss"};

/* The keyword that the current token is; KEYWORDS: it begins a node; -1: neither. An op may be called like a keyword,
 * but a ( stands behind it. */
static an_status find_keyword(const an_parser *p, int *keyword) {
    an_scanner ahead = p->scan;
    *keyword = KEYWORDS;
    if (ahead.token.kind != AN_TOKEN_NAME || an_token_is(&ahead.token, "_")) return AN_OK;
    AN_TRY_RETURN(an_scan_next(&ahead));
    if (an_scan_is(&ahead, '(')) return AN_OK;
    for (*keyword = KEYWORDS - 1; *keyword >= 0; --*keyword)
        if (an_token_is(&p->scan.token, keywords[*keyword])) return AN_OK;
    return AN_OK;
}

static an_status parse_statement(an_parser *p) {
    const an_token t = p->scan.token;
    an_nearest nearest;
    int keyword = 0;
    if (t.kind == AN_TOKEN_NEWLINE) return an_scan_next(&p->scan);
    AN_TRY_RETURN(find_keyword(p, &keyword));
    if (keyword == KEYWORDS) return an_parse_node(p);
    if (keyword < 0) {
        an_nearest_init(&nearest, t.start, t.length);
        for (int i = 0; i < KEYWORDS; i++) an_nearest_consider(&nearest, keywords[i], strlen(keywords[i]));
        return an_scan_error(&p->scan, &t,
                             "expected a node such as %%y = relu(%%x), or symbol, block, scope or loss, not '%.*s'%s",
                             (int)t.length, t.start, AN_NEAREST(&nearest));
    }
    AN_TRY_RETURN(an_scan_next(&p->scan));
    switch (keyword) {
    case SYMBOL: return parse_symbol(p);
    case BLOCK: return parse_block(p, false);
    case SCOPE: return parse_block(p, true);
    case LOSS: return parse_loss(p);
    default: return an_scan_error(&p->scan, &t, "the graph's name must appear once, right after the first line");
    }
}

static an_status skip_empty_lines(an_parser *p) {
    while (p->scan.token.kind == AN_TOKEN_NEWLINE) AN_TRY_RETURN(an_scan_next(&p->scan));
    return AN_OK;
}

/* ang 1 or ang 1 dump, then perhaps graph "name" */
static an_status parse_header(an_parser *p) {
    int64_t version = 0;
    int keyword = 0;
    AN_TRY_RETURN(skip_empty_lines(p));
    if (!an_token_is(&p->scan.token, "ang"))
        return an_scan_unexpected(&p->scan, "'ang 1' at the beginning of the text");
    AN_TRY_RETURN(an_scan_next(&p->scan));
    const an_token at = p->scan.token;
    AN_TRY_RETURN(an_scan_int(&p->scan, &version));
    if (version != AN_TEXT_VERSION)
        return an_scan_error(&p->scan, &at, "the text has version %lld, but this library reads version %d",
                             (long long)version, AN_TEXT_VERSION);
    if (an_token_is(&p->scan.token, "dump")) {
        if (!p->reads_dumps)
            return an_scan_error(&p->scan, &p->scan.token, "this is a dump of a model after some passes, not a model");
        p->dump = true;
        AN_TRY_RETURN(an_scan_next(&p->scan));
    }
    AN_TRY_RETURN(an_scan_expect_line(&p->scan));
    AN_TRY_RETURN(skip_empty_lines(p));
    AN_TRY_RETURN(find_keyword(p, &keyword));
    if (keyword != GRAPH) return AN_OK;
    AN_TRY_RETURN(an_scan_next(&p->scan));
    AN_TRY_RETURN(an_scan_string(&p->scan, &p->graph->arena, &p->graph->name));
    return an_scan_expect_line(&p->scan);
}

static an_status parse_text(an_graph **graph, an_context *ctx, const char *text, size_t length, bool reads_dumps) {
    an_status status;
    an_parser p = {.reads_dumps = reads_dumps};
    *graph = NULL;
    AN_CHECK(ctx, length <= MOST_BYTES, AN_ERR_PARSE, "the text has %zu bytes, but at most %d can be read", length,
             MOST_BYTES);
    const an_op *op;
    for (size_t i = 0; (op = an_op_at(ctx, i)); i++)
        if (op->attribute_bytes > p.attribute_bytes) p.attribute_bytes = op->attribute_bytes;
    AN_TRY(an_alloc(ctx, &p.attributes, p.attribute_bytes, 1));
    AN_TRY(an_graph_create(&p.graph, ctx, ""));
    AN_TRY(an_scan_begin(&p.scan, ctx, text ? text : "", text ? length : 0));
    AN_TRY(parse_header(&p));
    while (p.scan.token.kind != AN_TOKEN_END) AN_TRY(parse_statement(&p));
    *graph = p.graph;
    p.graph = NULL;
fail:
    an_graph_destroy(&p.graph);
    an_names_destroy(&p.values, ctx);
    an_names_destroy(&p.symbols, ctx);
    an_release(ctx, &p.attributes, p.attribute_bytes, 1);
    return status;
}

an_status an_graph_parse(an_graph **graph, an_context *ctx, const char *text, size_t length) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, graph);
    if (length > 0) AN_NEED_IN(ctx, text); /* NULL is a text without bytes */
    return parse_text(graph, ctx, text, length, false);
}

an_status an_graph_parse_dump(an_graph **graph, an_context *ctx, const char *text, size_t length) {
    return parse_text(graph, ctx, text, length, true);
}
