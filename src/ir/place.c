/* Where a builder call comes from: places, paths, blocks; and mistakes, which carry them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/graph.h"

enum { MOST_BLOCKS = 1 << 20 };

/* ---- mistakes and places ---- */

void an_place_describe(const an_place *place, const char *path, const char *op, char *text, size_t capacity) {
    int length = 0;
    if (place->file) {
        const char *slash = strrchr(place->file, '/');
        length = snprintf(text, capacity, "%s:%d: ", slash ? slash + 1 : place->file, place->line);
    }
    char call[32] = "";
    if (!place->file && place->call > 0) snprintf(call, sizeof call, "builder call %d", place->call);
    bool both = *path && (*op || *call);
    if (length < 0 || (size_t)length >= capacity) return;
    int more = snprintf(text + length, capacity - (size_t)length, "%s%s%s%s%s%s%s", path, both ? " (" : "", op,
                        *op && *call ? ", " : "", call, both ? ")" : "", *path || *op || *call ? ": " : "");
    if (more < 0) text[length] = 0; /* a long path may be cut: the place is in front of it */
}

static an_status mistake(an_graph *g, const an_place *place, const char *path, const char *op, an_status status,
                         const char *format, va_list arguments) {
    if (g->status != AN_OK) return status;
    char prefix[AN_MESSAGE_BYTES / 2], message[AN_MESSAGE_BYTES / 2];
    an_place_describe(place, path, op, prefix, sizeof prefix);
    vsnprintf(message, sizeof message, format, arguments);
    snprintf(g->message, sizeof g->message, "%s%s", prefix, message);
    g->status = status;
    return AN_ERROR(g->ctx, status, "%s", g->message);
}

an_status an_graph_mistake(an_graph *g, an_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    status = mistake(g, &g->calls.place, g->path, "", status, format, arguments);
    va_end(arguments);
    return status;
}

an_status an_node_mistake(an_graph *g, const an_node *node, an_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    status = mistake(g, &node->place, node->path, node->op->name, status, format, arguments);
    va_end(arguments);
    return status;
}

an_graph *an_graph_at(an_graph *graph, const char *file, int line) {
    /* A stack, since an argument of a builder may be another builder and compilers evaluate them in either order. */
    if (graph && graph->calls.depth == 0) {
        if (graph->calls.waiting_count == AN_PLACE_STACK) { /* places that nobody took: forget the oldest */
            memmove(graph->calls.waiting, graph->calls.waiting + 1,
                    (AN_PLACE_STACK - 1) * sizeof *graph->calls.waiting);
            graph->calls.waiting_count--;
        }
        graph->calls.waiting[graph->calls.waiting_count++] = (an_place){.file = file, .line = line};
    }
    return graph;
}

void an_builder_begin(an_graph *g) {
    if (g->calls.depth++ > 0 || g->added.origin) return;
    g->calls.place = g->calls.waiting_count > 0 ? g->calls.waiting[--g->calls.waiting_count] : (an_place){0};
    g->calls.place.call = ++g->calls.count;
}

an_value an_builder_end(an_graph *g, an_value value) {
    g->calls.depth--;
    return value;
}

bool an_builder_took(an_graph *g, an_status status) {
    if (status != AN_OK) an_graph_mistake(g, status, "%s", an_last_error(g->ctx));
    return status == AN_OK;
}

/* ---- blocks and scopes ---- */

static bool push_path(an_graph *g, const char *name) {
    size_t length = strlen(name), dot = g->path_length > 0;
    if (g->path_length + dot + length + 1 > sizeof g->path) {
        an_graph_mistake(g, AN_ERR_OVERFLOW, "the path '%s.%.40s…' is longer than %d bytes", g->path, name,
                         AN_PATH_BYTES);
        return false;
    }
    if (dot) g->path[g->path_length++] = '.';
    memcpy(g->path + g->path_length, name, length + 1);
    g->path_length += length;
    return true;
}

static void begin_name(an_graph *g, const char *name, bool block, int depth) {
    if (g->status != AN_OK) return;
    if (!name || !*name) {
        an_graph_mistake(g, AN_ERR_ARGUMENT, "a %s needs a name", block ? "block" : "scope");
        return;
    }
    if (g->block_count >= MOST_BLOCKS) {
        an_graph_mistake(g, AN_ERR_OVERFLOW, "a graph may have at most %d blocks and scopes", MOST_BLOCKS);
        return;
    }
    const char *copy = NULL, *path = NULL;
    if (!push_path(g, name)) return;
    if (an_grow(g->ctx, (void **)&g->blocks, &g->block_capacity, g->block_count + 1, sizeof *g->blocks) ||
        an_arena_string(&g->arena, &copy, name, strlen(name)) ||
        an_arena_string(&g->arena, &path, g->path, g->path_length)) {
        g->status = AN_ERR_MEMORY;
        snprintf(g->message, sizeof g->message, "%s", g->ctx->error.message);
        return;
    }
    g->blocks[g->block_count] =
        (an_block){.name = copy, .path = path, .depth = depth, .parent = g->block, .is_scope = !block};
    g->block = (int)g->block_count++;
}

static void end_name(an_graph *g, bool block) {
    if (g->status != AN_OK) return;
    const an_block *open = &g->blocks[g->block];
    if (g->block == 0 || open->is_scope == block) {
        an_graph_mistake(g, AN_ERR_ORDER, "an_%s_end without an_%s_begin%s%s%s", block ? "block" : "scope",
                         block ? "block" : "scope", g->block ? ": '" : "", open->path, g->block ? "' is open" : "");
        return;
    }
    g->block = open->parent;
    const char *path = g->blocks[g->block].path;
    g->path_length = strlen(path);
    memcpy(g->path, path, g->path_length + 1);
}

void(an_block_begin)(an_graph *graph, const char *name, int depth) {
    AN_NEED_OR(, graph);
    begin_name(graph, name, true, depth);
}
void an_block_end(an_graph *graph) {
    AN_NEED_OR(, graph);
    end_name(graph, true);
}
void(an_scope_begin)(an_graph *graph, const char *name) {
    AN_NEED_OR(, graph);
    begin_name(graph, name, false, 0);
}
void an_scope_end(an_graph *graph) {
    AN_NEED_OR(, graph);
    end_name(graph, false);
}

/* The block proper that `block` lies in: scopes are only names. */
int an_graph_block_of(const an_graph *g, int block) {
    while (block > 0 && g->blocks[block].is_scope) block = g->blocks[block].parent;
    return block;
}
