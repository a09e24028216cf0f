/* Converts YAML to nodes. libyaml produces events, which are counted before anything is kept, so memory and time stay
 * within the limits of config.h for any input. */
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#include "config/config.h"

/* ---- nodes ---- */

an_status an_config_node_create(an_config *config, an_config_node **node, an_config_node_type type,
                                an_config_origin origin, an_spot place) {
    AN_TRY_RETURN(an_arena_alloc(&config->arena, (void **)node, 1, sizeof **node));
    (*node)->type = type;
    (*node)->origin = origin;
    (*node)->place = (*node)->key_place = place;
    return AN_OK;
}

void an_config_node_add(an_config_node *parent, an_config_node *child) {
    child->next = NULL;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->count++;
}

an_config_node *an_config_node_find(const an_config_node *table, const char *key) {
    if (!table || table->type != AN_CONFIG_TABLE) return NULL;
    for (an_config_node *n = table->first; n; n = n->next)
        if (!strcmp(n->key, key)) return n;
    return NULL;
}

bool an_config_node_is(const an_config_node *node, const char *word) {
    return node && node->type == AN_CONFIG_SCALAR && !node->quoted && !strcmp(node->text, word);
}

an_status an_config_node_copy(an_config *config, an_config_node **copy, const an_config_node *node) {
    AN_TRY_RETURN(an_arena_alloc(&config->arena, (void **)copy, 1, sizeof **copy));
    **copy = *node;
    (*copy)->first = (*copy)->last = (*copy)->next = NULL;
    (*copy)->count = 0;
    for (const an_config_node *child = node->first; child; child = child->next) {
        an_config_node *inner = NULL;
        AN_TRY_RETURN(an_config_node_copy(config, &inner, child));
        an_config_node_add(*copy, inner);
    }
    return AN_OK;
}

/* ---- places and texts of messages ---- */

an_spot_text an_spot_describe(an_spot place) {
    an_spot_text out;
    enum { NAME = 200 }; /* a longer path is cut at its beginning: its end says more */
    const size_t length = strlen(place.name);
    const char *name = length > NAME ? place.name + length - NAME : place.name;
    if (place.line > 0)
        snprintf(out.text, sizeof out.text, "%s:%d:%d", name, place.line, place.column);
    else
        snprintf(out.text, sizeof out.text, "%s", name);
    return out;
}

/* ---- parsing ---- */

typedef struct reader {
    an_config *config;
    an_config_origin origin;
    const char *name, *text;
    size_t length;
    yaml_parser_t parser;
    int nodes;
    an_config_node *open[AN_CONFIG_MOST_DEPTH]; /* lists and tables that have begun */
    int depth;
    const char *key; /* of the value that comes next in the innermost table */
    an_spot key_place;
    an_config_node *root;
    bool ended; /* a document has */
} reader;

static an_spot spot_of(const reader *r, yaml_mark_t mark) {
    /* a --set has no lines to count */
    if (r->origin == AN_ORIGIN_SET) return (an_spot){r->name, 0, 0};
    return (an_spot){r->name, (int)mark.line + 1, (int)mark.column + 1};
}

/* Whether a tab stands there, the mistake that nobody sees. */
static bool is_tab(const reader *r, yaml_mark_t mark) {
    size_t line = 0, at = 0;
    for (; at < r->length && line < mark.line; at++) line += r->text[at] == '\n';
    for (size_t column = 0; at < r->length && column < mark.column; column++)
        if (r->text[at++] != ' ') return false;
    return at < r->length && r->text[at] == '\t';
}

static yaml_mark_t mark_of(const reader *r, size_t offset) {
    yaml_mark_t mark = {0};
    for (size_t i = 0; i < offset && i < r->length; i++) {
        mark.column = r->text[i] == '\n' ? 0 : mark.column + (((unsigned char)r->text[i] & 0xc0) != 0x80);
        mark.line += r->text[i] == '\n';
    }
    return mark;
}

static an_status scanner_error(reader *r) {
    const yaml_parser_t *p = &r->parser;
    an_context *ctx = r->config->ctx;
    if (p->error == YAML_MEMORY_ERROR) return AN_ERROR(ctx, AN_ERR_MEMORY, "out of memory while reading YAML");
    if (p->error == YAML_READER_ERROR) /* it reads ahead: the place is found from the byte */
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: byte %zu of the text is not valid (%s); a config must be UTF-8",
                        AN_SPOT(spot_of(r, mark_of(r, p->problem_offset))), p->problem_offset,
                        p->problem ? p->problem : "unreadable");
    if (is_tab(r, p->problem_mark))
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: found a tab; YAML must be indented with spaces",
                        AN_SPOT(spot_of(r, p->problem_mark)));
    return AN_ERROR(ctx, AN_ERR_PARSE, "%s: this is not valid YAML: %s%s%s; check brackets, quotes and indentation",
                    AN_SPOT(spot_of(r, p->problem_mark)), p->problem ? p->problem : "unreadable",
                    p->context ? ", " : "", p->context ? p->context : "");
}

/* Puts a node where it belongs. */
static an_status take_node(reader *r, an_config_node *node) {
    an_context *ctx = r->config->ctx;
    if (r->depth == 0) {
        r->root = node;
        return AN_OK;
    }
    an_config_node *parent = r->open[r->depth - 1];
    if (parent->type == AN_CONFIG_TABLE) {
        const an_config_node *twice = an_config_node_find(parent, r->key);
        if (twice)
            return AN_ERROR(ctx, AN_ERR_PARSE,
                            "%s: '%s' appears twice in one table, first at %d:%d; remove one of them",
                            AN_SPOT(r->key_place), AN_QUOTE(r->key), twice->key_place.line, twice->key_place.column);
        node->key = r->key;
        node->key_place = r->key_place;
        r->key = NULL;
    }
    an_config_node_add(parent, node);
    return AN_OK;
}

static an_status check_plain(reader *r, const yaml_event_t *event, const yaml_char_t *anchor, const yaml_char_t *tag) {
    an_context *ctx = r->config->ctx;
    const an_spot place = spot_of(r, event->start_mark);
    if (anchor)
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: anchors (&name) are not supported in a config; write the value itself",
                        AN_SPOT(place));
    if (tag)
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: tags (!name) are not supported in a config; remove the tag",
                        AN_SPOT(place));
    if (r->ended)
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: a second document begins here, but a config is a single document",
                        AN_SPOT(place));
    if (++r->nodes > AN_CONFIG_MOST_NODES)
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: this config has more than %d values; check that it is the right file",
                        AN_SPOT(place), (int)AN_CONFIG_MOST_NODES);
    return AN_OK;
}

static an_status take_scalar(reader *r, const yaml_event_t *event) {
    an_context *ctx = r->config->ctx;
    const char *text = (const char *)event->data.scalar.value;
    const size_t length = event->data.scalar.length;
    const an_spot place = spot_of(r, event->start_mark);
    const char *copy = NULL;
    an_config_node *node = NULL;
    AN_TRY_RETURN(check_plain(r, event, event->data.scalar.anchor, event->data.scalar.tag));
    if (memchr(text, 0, length))
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: this text contains a NUL character; remove it", AN_SPOT(place));
    AN_TRY_RETURN(an_arena_string(&r->config->arena, &copy, text, length));
    if (r->depth > 0 && r->open[r->depth - 1]->type == AN_CONFIG_TABLE && !r->key) {
        r->key = copy;
        r->key_place = place;
        return AN_OK;
    }
    AN_TRY_RETURN(an_config_node_create(r->config, &node, AN_CONFIG_SCALAR, r->origin, place));
    node->text = copy;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return take_node(r, node);
}

static an_status open_node(reader *r, const yaml_event_t *event, an_config_node_type type) {
    an_context *ctx = r->config->ctx;
    const an_spot place = spot_of(r, event->start_mark);
    an_config_node *node = NULL;
    const bool is_list = type == AN_CONFIG_LIST;
    AN_TRY_RETURN(check_plain(r, event, is_list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor,
                              is_list ? event->data.sequence_start.tag : event->data.mapping_start.tag));
    if (r->depth > 0 && r->open[r->depth - 1]->type == AN_CONFIG_TABLE && !r->key)
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: found a %s where a key is expected; keys are names", AN_SPOT(place),
                        is_list ? "list" : "table");
    if (r->depth == AN_CONFIG_MOST_DEPTH)
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: lists and tables are nested more than %d levels deep; use fewer levels",
                        AN_SPOT(place), (int)AN_CONFIG_MOST_DEPTH);
    AN_TRY_RETURN(an_config_node_create(r->config, &node, type, r->origin, place));
    AN_TRY_RETURN(take_node(r, node));
    r->open[r->depth++] = node;
    return AN_OK;
}

static an_status take_event(reader *r, const yaml_event_t *event) {
    an_context *ctx = r->config->ctx;
    switch (event->type) {
    case YAML_SCALAR_EVENT: return take_scalar(r, event);
    case YAML_SEQUENCE_START_EVENT: return open_node(r, event, AN_CONFIG_LIST);
    case YAML_MAPPING_START_EVENT: return open_node(r, event, AN_CONFIG_TABLE);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: r->depth--; return AN_OK;
    case YAML_DOCUMENT_END_EVENT: r->ended = true; return AN_OK;
    case YAML_DOCUMENT_START_EVENT:
        if (event->data.document_start.version_directive ||
            event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
            return AN_ERROR(ctx, AN_ERR_PARSE, "%s: directives (%%NAME) are not supported in a config; remove the line",
                            AN_SPOT(spot_of(r, event->start_mark)));
        return AN_OK;
    case YAML_ALIAS_EVENT:
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: aliases (*name) are not supported in a config; write the value itself",
                        AN_SPOT(spot_of(r, event->start_mark)));
    default: return AN_OK;
    }
}

an_status an_config_parse(an_config *config, const char *name, const char *text, size_t length, an_config_origin origin,
                          an_config_node **root) {
    an_context *ctx = config->ctx;
    an_status status = AN_OK;
    static const char byte_order_mark[] = "\xef\xbb\xbf"; /* some editors begin a file with it */
    bool more = true;
    *root = NULL;
    if (length >= 3 && !memcmp(text, byte_order_mark, 3)) {
        text += 3;
        length -= 3;
    }
    reader r = {.config = config, .origin = origin, .name = name, .text = text, .length = length};
    if (length > AN_CONFIG_MOST_BYTES)
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s:1:1: a config has at most %d bytes; check that it is the right file",
                        name, (int)AN_CONFIG_MOST_BYTES);
    if (!yaml_parser_initialize(&r.parser)) return AN_ERROR(ctx, AN_ERR_MEMORY, "out of memory while reading YAML");
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, length);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    while (more && status == AN_OK) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r.parser, &event)) {
            status = scanner_error(&r);
            break;
        }
        more = event.type != YAML_STREAM_END_EVENT;
        status = take_event(&r, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&r.parser);
    if (status == AN_OK) *root = r.root; /* NULL: nothing but remarks */
    return status;
}
