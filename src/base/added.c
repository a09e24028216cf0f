#include "base/added.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/word.h"

static bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}

bool an_added_is_name(const char *name) {
    if (!is_lower(*name)) return false;
    size_t length = 1;
    while (is_lower(name[length]) || an_is_digit(name[length]) || name[length] == '_')
        if (++length == AN_ADDED_NAME) return false;
    return name[length] == 0;
}

an_status an_added_add(an_context *ctx, an_added_kind kind, const char *name, const void *record, size_t bytes,
                       an_added **added) {
    an_added *item = NULL, **end = &ctx->added[kind];
    AN_TRY_RETURN(an_alloc(ctx, (void **)&item, 1, sizeof *item + bytes));
    item->bytes = bytes;
    snprintf(item->name, sizeof item->name, "%s", name);
    memcpy(item->record, record, bytes);
    while (*end) end = &(*end)->next;
    *end = *added = item;
    return AN_OK;
}

const an_added *an_added_find(const an_context *ctx, an_added_kind kind, const char *name) {
    const an_added *item = ctx->added[kind];
    while (item && strcmp(item->name, name) != 0) item = item->next;
    return item;
}

const an_added *an_added_at(const an_context *ctx, an_added_kind kind, int index) {
    const an_added *item = ctx->added[kind];
    while (item && index-- > 0) item = item->next;
    return item;
}

void an_added_release(an_context *ctx) {
    for (int kind = 0; kind < AN_ADDED_KINDS; kind++)
        while (ctx->added[kind]) {
            an_added *item = ctx->added[kind];
            ctx->added[kind] = item->next;
            an_release(ctx, (void **)&item, 1, sizeof *item + item->bytes);
        }
}
