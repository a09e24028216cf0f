/* Makes the table of options of a context: the fixed ones, with those of the context's kinds where they belong. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"

struct an_option_memory {
    an_option_list list;
    an_option *items;
    size_t capacity; /* what kinds have in common counts once for each */
    an_arena arena;  /* holds what was put together for them */
};

typedef struct {
    an_context *ctx;
    an_arena *arena;
    an_option *items;
    int count;
    int listed[AN_KIND_SORTS]; /* places up to which options of the kinds are there */
} collection;

/* An option of a kind. */
typedef struct {
    const an_option *option;
    const an_kind *kind;
} entry;

static int place_of(const an_option *option) {
    return option->place ? option->place : INT_MAX;
}

/* ---- counting ---- */

static int count_options(const an_option *options) {
    int count = 0;
    while (options && options[count].path) count++;
    return count;
}

static int count_of_kinds(const an_context *ctx, an_kind_sort sort) {
    int count = 0;
    for (const an_kind *const *k = ctx->kinds[sort]; k && *k; k++) count += count_options((*k)->options);
    return count;
}

/* ---- texts and members of several kinds ---- */

static an_status add_word(const collection *c, const char **words, const char *word) {
    const size_t length = strlen(*words), bytes = length + strlen(word) + 2;
    char *text;
    AN_TRY_RETURN(an_arena_alloc(c->arena, (void **)&text, bytes, 1));
    snprintf(text, bytes, "%s%s%s", *words, length > 0 ? "|" : "", word);
    *words = text;
    return AN_OK;
}

static int count_members(const an_option_member *members) {
    int count = 0;
    while (members && members[count].in) count++;
    return count;
}

/* Gives a word the number of its kind, as there are kinds between that have no word. */
static an_status number_words(const collection *c, an_option *option, const int *numbers) {
    an_option_member *members;
    const int count = count_members(option->members);
    AN_TRY_RETURN(an_arena_alloc(c->arena, (void **)&members, (size_t)count + 1, sizeof *members));
    for (int i = 0; i < count; i++) {
        members[i] = option->members[i];
        if (!members[i].values) members[i].values = numbers;
    }
    option->members = members;
    return AN_OK;
}

/* The names of kinds, as the words of the option that chooses one. */
static an_status name_kinds(const collection *c, an_option *option) {
    an_context *ctx = c->ctx;
    const char *unsupported = "";
    int *numbers, words = 0, count = 0;
    while (ctx->kinds[option->names] && ctx->kinds[option->names][count]) count++;
    AN_TRY_RETURN(an_arena_alloc(c->arena, (void **)&numbers, (size_t)count + 1, sizeof *numbers));
    for (int i = 0; i < count; i++) {
        const an_kind *kind = ctx->kinds[option->names][i];
        if (kind->flags & (AN_KIND_UNNAMED | AN_KIND_OF_CALLS)) continue;
        AN_TRY_RETURN(add_word(c, &option->words, kind->name));
        if (kind->flags & AN_KIND_UNSUPPORTED) AN_TRY_RETURN(add_word(c, &unsupported, kind->name));
        numbers[words++] = i;
    }
    if (*unsupported) option->unsupported = unsupported;
    return number_words(c, option, numbers);
}

static bool has_struct(const an_option *option, const char *in) {
    for (const an_option_member *m = option->members; m && m->in; m++)
        if (!strcmp(m->in, in)) return true;
    return false;
}

/* Gives an option that several kinds have the members of one more. */
static an_status add_members(const collection *c, an_option *option, const an_option_member *more) {
    an_option_member *members;
    const int count = count_members(option->members), maximum = count + count_members(more) + 1;
    if (!more || more == option->members) return AN_OK;
    AN_TRY_RETURN(an_arena_alloc(c->arena, (void **)&members, (size_t)maximum, sizeof *members));
    if (count > 0) memcpy(members, option->members, (size_t)count * sizeof *members);
    for (int n = count; more->in; more++)
        if (!has_struct(option, more->in)) members[n++] = *more;
    option->members = members;
    return AN_OK;
}

/* ---- options ---- */

static an_status add_kinds(collection *c, const an_option *rows);

static an_status add_option(collection *c, const an_option *option, const char *of) {
    if (option->rows) return add_kinds(c, option);
    an_option *own = &c->items[c->count++];
    *own = *option;
    own->of = of;
    if (own->names) AN_TRY_RETURN(name_kinds(c, own));
    return AN_OK;
}

/* Whether an option stands in a table itself, and not in one inside of it: then it is of the kind alone. */
static bool is_in(const an_option *option, const char *table) {
    const size_t length = strlen(table);
    return !strncmp(option->path, table, length) && option->path[length] == '.' &&
           !strchr(option->path + length + 1, '.');
}

static an_status add_entry(collection *c, const entry *e, const char *table) {
    const char *name = !e->option->rows && is_in(e->option, table) ? e->kind->name : "";
    if (c->count == 0) return add_option(c, e->option, name);
    an_option *last = &c->items[c->count - 1];
    if (e->option->place == 0 || last->place != e->option->place || strcmp(last->path, e->option->path) != 0)
        return add_option(c, e->option, name);
    AN_TRY_RETURN(add_word(c, &last->of, name));
    return add_members(c, last, e->option->members);
}

/* The options of all kinds of a sort, by their places; insertion, as those of one kind are sorted. */
static an_status add_kinds(collection *c, const an_option *rows) {
    an_context *ctx = c->ctx;
    entry *entries;
    const int first = c->listed[rows->rows], last = rows->last_place ? rows->last_place : INT_MAX;
    int count = 0;
    c->listed[rows->rows] = last;
    AN_TRY_RETURN(
        an_arena_alloc(c->arena, (void **)&entries, (size_t)count_of_kinds(ctx, rows->rows), sizeof *entries));
    for (const an_kind *const *k = ctx->kinds[rows->rows]; k && *k; k++)
        for (const an_option *o = (*k)->options; o && o->path; o++) {
            if (place_of(o) <= first || place_of(o) > last) continue;
            int at = count++;
            for (; at > 0 && place_of(entries[at - 1].option) > place_of(o); at--) entries[at] = entries[at - 1];
            entries[at] = (entry){o, *k};
        }
    for (int i = 0; i < count; i++) AN_TRY_RETURN(add_entry(c, &entries[i], rows->path));
    return AN_OK;
}

static an_status collect(an_context *ctx, struct an_option_memory *memory) {
    int maximum = count_options(an_fixed_options);
    for (int sort = 0; sort < AN_KIND_SORTS; sort++) maximum += count_of_kinds(ctx, (an_kind_sort)sort);
    AN_TRY_RETURN(an_alloc(ctx, (void **)&memory->items, (size_t)maximum, sizeof *memory->items));
    memory->capacity = (size_t)maximum;
    collection c = {.ctx = ctx, .arena = &memory->arena, .items = memory->items};
    for (const an_option *o = an_fixed_options; o->path; o++) AN_TRY_RETURN(add_option(&c, o, o->of));
    memory->list = (an_option_list){c.items, c.count};
    return AN_OK;
}

/* ---- the options of a context ---- */

static void release(an_context *ctx) {
    struct an_option_memory *memory = ctx->options;
    if (!memory) return;
    an_release(ctx, (void **)&memory->items, memory->capacity, sizeof *memory->items);
    an_arena_destroy(&memory->arena);
    an_release(ctx, (void **)&ctx->options, 1, sizeof *ctx->options);
}

an_status an_option_list_get(an_context *ctx, const an_option_list **all) {
    an_status status;
    *all = NULL;
    ctx->options_release = release;
    if (!ctx->options) {
        AN_TRY(an_alloc(ctx, (void **)&ctx->options, 1, sizeof *ctx->options));
        an_arena_init(&ctx->options->arena, ctx);
        AN_TRY(collect(ctx, ctx->options));
    }
    *all = &ctx->options->list;
    return AN_OK;
fail:
    release(ctx);
    return status;
}
