/* Decides which differences between two configs a resumed run may have. */
#include "config/compare.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what a change of each option is ---- */

/* Of options with one name, the first, or the one that has options inside. */
static const an_option *find_option(const an_option_list *all, const char *table, const char *key, bool with_inside) {
    const an_option *o = an_option_next(all, table, NULL);
    while (o && (strcmp(an_option_key(o), key) != 0 ||
                 (with_inside && o->kind != AN_OPTION_TABLE && o->kind != AN_OPTION_TABLES)))
        o = an_option_next(all, table, o);
    return o;
}

bool an_config_rule_find(const an_option_list *all, const char *path, an_config_change_kind *kind,
                         const char **reason) {
    const an_option *option = NULL;
    const char *inside = NULL;
    for (const char *at = path; *at;) {
        char key[AN_CHANGE_PATH];
        const size_t length = strcspn(at, ".");
        if (length >= sizeof key) return false;
        memcpy(key, at, length);
        key[length] = 0;
        at += length;
        option = find_option(all, option ? an_option_table(option) : "", key, *at == '.');
        if (!option) return false;
        if (*at == '.') {
            inside = option->why_inside ? option->why_inside : inside;
            at++;
        }
    }
    if (!option || !option->why) return false;
    *kind = option->change;
    *reason = inside && option->change == AN_CHANGE_FIXED ? inside : option->why;
    return true;
}

/* ---- walking ---- */

typedef struct {
    an_config_changes *changes;
    const an_config *before, *after;
    const an_config_auto *autos;
    size_t auto_count;
} walk;

/* Where a walk is: the path in the config, and the option's, by which it is judged: parts of a
 * mixture are judged as sources. */
typedef struct {
    char path[AN_CHANGE_PATH], rule[AN_CHANGE_PATH];
} spot;

static spot spot_inside(const spot *table, const char *key) {
    spot inside;
    const char *dot = *table->path ? "." : "";
    snprintf(inside.path, sizeof inside.path, "%.*s%s%.40s", AN_CHANGE_PATH - 48, table->path, dot, key);
    snprintf(inside.rule, sizeof inside.rule, "%.*s%s%.40s", AN_CHANGE_PATH - 48, table->rule, dot, key);
    return inside;
}

/* ---- what values mean ---- */

/* Takes out what changes nothing in a path: "./" and slashes that stand twice. */
static void tidy_path(char *path) {
    char *to = path;
    for (const char *at = path; *at;) {
        const bool begins = to == path || to[-1] == '/';
        if (begins && at[0] == '.' && at[1] == '/')
            at += 2;
        else if (begins && to > path && *at == '/')
            at++;
        else
            *to++ = *at++;
    }
    *to = 0;
}

static void add_whole_path(an_text *out, const an_config *config, const an_config_node *node) {
    const bool with_file = an_option_is_input(node->option) && node->origin != AN_ORIGIN_SET;
    const char *folder = with_file ? config->folder : "";
    const bool whole = node->text[0] == '/';
    an_text_add(out, "%s%s%s", whole || folder[0] == '/' ? "" : config->working, whole ? "" : folder, node->text);
    if (out->status == AN_OK) tidy_path(out->bytes);
}

/* By their paths, or, if these lead there by other ways, by what lies there. */
static an_status same_file(const walk *w, const an_config_node *a, const an_config_node *b, bool *same) {
    an_context *ctx = w->changes->ctx;
    an_status status;
    an_text before, after;
    struct stat x, y;
    an_text_init(&before, ctx);
    an_text_init(&after, ctx);
    add_whole_path(&before, w->before, a);
    add_whole_path(&after, w->after, b);
    AN_TRY(before.status);
    AN_TRY(after.status);
    *same = !strcmp(before.bytes, after.bytes) ||
            (stat(before.bytes, &x) == 0 && stat(after.bytes, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
fail:
    an_text_destroy(&before);
    an_text_destroy(&after);
    return status;
}

/* The text of a scalar; of `auto` what it stood for. */
static const char *text_of(const walk *w, const an_config_node *node, const char *path) {
    for (size_t i = 0; i < w->auto_count && an_config_node_is(node, "auto"); i++)
        if (!strcmp(w->autos[i].path, path)) return w->autos[i].text;
    return node->text;
}

static an_status same_scalar(const walk *w, const an_config_node *a, const an_config_node *b, const spot *at,
                             bool *same) {
    const an_option *o = b->option;
    const char *x = text_of(w, a, at->path), *y = text_of(w, b, at->path);
    if (an_config_node_is_path(a) && an_config_node_is_path(b)) return same_file(w, a, b, same);
    *same = a->option->kind == o->kind ? an_option_same(o, x, y) : !strcmp(x, y);
    return AN_OK;
}

/* Keys of maps are numbers, but for those of texts. */
static bool same_key(const an_config_node *a, const an_config_node *b) {
    int64_t x, y;
    if (!a->key || !b->key) return true; /* elements of lists */
    if (a->option->kind == AN_OPTION_STRING_MAP || a->option->kind == AN_OPTION_NAMED_REALS)
        return !strcmp(a->key, b->key);
    return an_read_count(a->key, &x) && an_read_count(b->key, &y) && x == y;
}

static an_status same_value(const walk *w, const an_config_node *a, const an_config_node *b, const spot *at,
                            bool *same) {
    *same = a->type == b->type && (a->type == AN_CONFIG_SCALAR || a->option->kind == b->option->kind);
    if (*same && a->type == AN_CONFIG_SCALAR) return same_scalar(w, a, b, at, same);
    *same = *same && a->count == b->count;
    for (a = a->first, b = b->first; *same && a; a = a->next, b = b->next) {
        *same = same_key(a, b);
        if (*same) AN_TRY_RETURN(same_scalar(w, a, b, at, same));
    }
    return AN_OK;
}

/* ---- values for messages ---- */

typedef struct {
    char text[256];
    size_t used;
} flow;

static void flow_add(flow *f, const char *text) {
    const int added = snprintf(f->text + f->used, sizeof f->text - f->used, "%s", text);
    f->used = f->used + (size_t)added < sizeof f->text ? f->used + (size_t)added : sizeof f->text - 1;
}

/* [0.9, 0.99], {match: bias, freeze: on}; values that are the default are left out of tables. */
static void flow_node(flow *f, const an_config_node *node) {
    const char *before = "", *brackets = node->type == AN_CONFIG_LIST ? "[" : "{";
    if (node->type == AN_CONFIG_SCALAR) {
        flow_add(f, node->text);
        return;
    }
    flow_add(f, brackets);
    for (const an_config_node *n = node->first; n; n = n->next) {
        const bool own = n->option != node->option && n->type == AN_CONFIG_SCALAR; /* not an entry of a list or map */
        const char *usual = own && n->option ? an_option_default(n->option) : NULL;
        if (usual && !strcmp(usual, n->text)) continue;
        flow_add(f, before);
        if (n->key) {
            flow_add(f, n->key);
            flow_add(f, ": ");
        }
        flow_node(f, n);
        before = ", ";
    }
    flow_add(f, *brackets == '[' ? "]" : "}");
}

static void describe(char *out, const an_config_node *node) {
    enum { MOST = 60 }; /* bytes, as of other values */
    flow f = {"", 0};
    const char *begin;
    if (node && node->type == AN_CONFIG_SCALAR && node->option && an_option_is_path(node->option) &&
        strlen(node->text) > MOST) {
        for (begin = node->text + strlen(node->text) - MOST; ((unsigned char)*begin & 0xc0) == 0x80; begin++) {
        }
        snprintf(out, AN_CHANGE_VALUE, "...%.64s", AN_QUOTE(begin)); /* the end of a path says more */
        return;
    }
    if (node) flow_node(&f, node);
    snprintf(out, AN_CHANGE_VALUE, "%s", !node ? "not given" : f.used ? AN_QUOTE(f.text) : "''");
}

static an_status add_change(const walk *w, const an_config_node *a, const an_config_node *b, const spot *at) {
    an_config_changes *c = w->changes;
    an_context *ctx = c->ctx;
    AN_TRY_RETURN(an_grow(ctx, (void **)&c->items, &c->capacity, c->count + 1, sizeof *c->items));
    an_config_change *change = &c->items[c->count++];
    snprintf(change->path, sizeof change->path, "%s", at->path);
    describe(change->before, a);
    describe(change->after, b);
    if (!an_config_rule_find(w->after->options, at->rule, &change->kind, &change->reason)) {
        change->kind = AN_CHANGE_FIXED;
        change->reason = "it is not known to be safe to change";
    }
    /* The model that an adapter changes is read in every launch, and its hash is compared. */
    if (!strcmp(at->rule, "model.init.from") && a && b && an_config_find(w->after, "lora.targets")) {
        change->kind = AN_CHANGE_DATA_PATH;
        change->reason = AN_SAME_FILE;
    }
    return AN_OK;
}

/* ---- tables ---- */

static an_status compare_tables(const walk *w, const an_config_node *a, const an_config_node *b, const char *table,
                                const spot *at);

static an_status compare_lists(const walk *w, const an_config_node *a, const an_config_node *b, const spot *at,
                               const spot *parent) {
    const an_config_node *x = a->first, *y = b->first;
    for (int i = 0; x || y; i++, x = x ? x->next : NULL, y = y ? y->next : NULL) {
        spot element = *at;
        snprintf(element.path, sizeof element.path, "%.*s[%d]", AN_CHANGE_PATH - 16, at->path, i);
        if (!x || !y) {
            AN_TRY_RETURN(add_change(w, x, y, &element));
            continue;
        }
        /* elements that have the options of another table are judged as that */
        if (b->option->table) memcpy(element.rule, parent->rule, sizeof element.rule);
        AN_TRY_RETURN(compare_tables(w, x, y, an_option_table(b->option), &element));
    }
    return AN_OK;
}

static an_status compare_nodes(const walk *w, const an_config_node *a, const an_config_node *b, const spot *at,
                               const spot *parent) {
    bool same;
    if (!a || !b) return add_change(w, a, b, at);
    if (a->option->kind == AN_OPTION_TABLE && b->option->kind == AN_OPTION_TABLE)
        return compare_tables(w, a, b, an_option_table(b->option), at);
    if (a->option->kind == AN_OPTION_TABLES && b->option->kind == AN_OPTION_TABLES)
        return compare_lists(w, a, b, at, parent);
    AN_TRY_RETURN(same_value(w, a, b, at, &same));
    return same ? AN_OK : add_change(w, a, b, at);
}

static an_status compare_tables(const walk *w, const an_config_node *a, const an_config_node *b, const char *table,
                                const spot *at) {
    const an_option_list *all = w->after->options;
    const an_config_node *old_type = an_config_node_find(a, "type"), *new_type = an_config_node_find(b, "type");
    const bool one_type = !old_type || !new_type || !strcmp(old_type->text, new_type->text);
    for (const an_option *o = an_option_next(all, table, NULL); o; o = an_option_next(all, table, o)) {
        const char *key = an_option_key(o);
        if (an_option_find(all, table, key, NULL) != o) continue; /* another type's option of the same name */
        const an_config_node *x = an_config_node_find(a, key), *y = an_config_node_find(b, key);
        if ((!x && !y) || ((!x || !y) && *o->of && !one_type)) continue; /* it follows from the type */
        const spot inside = spot_inside(at, key);
        AN_TRY_RETURN(compare_nodes(w, x, y, &inside, at));
    }
    return AN_OK;
}

an_status an_config_compare(an_config_changes *changes, const an_config *before, const an_config *after,
                            const an_config_auto *autos, size_t auto_count) {
    an_context *ctx = after->ctx;
    const walk w = {changes, before, after, autos, auto_count};
    const spot whole = {"", ""};
    *changes = (an_config_changes){.ctx = ctx};
    return compare_tables(&w, before->root, after->root, "", &whole);
}

void an_config_changes_destroy(an_config_changes *changes) {
    if (!changes->ctx) return;
    an_release(changes->ctx, (void **)&changes->items, changes->capacity, sizeof *changes->items);
    *changes = (an_config_changes){0};
}

/* ---- a new run with the state of another ---- */

/* Initial weights are not read, as the checkpoint has others. */
static bool is_of_model(const an_config_change *change) {
    static const char model[] = "model.", init[] = "model.init", normalize[] = "data.normalize";
    if (!strncmp(change->path, normalize, sizeof normalize - 1)) return true;
    return !strncmp(change->path, model, sizeof model - 1) && strncmp(change->path, init, sizeof init - 1) != 0;
}

void an_config_changes_restart(an_config_changes *changes, an_text *notes) {
    size_t kept = 0;
    for (size_t i = 0; i < changes->count; i++) {
        const an_config_change *c = &changes->items[i];
        if (is_of_model(c))
            changes->items[kept++] = *c;
        else
            an_text_add(notes, "%s: %s now, %s before\n", c->path, c->after, c->before);
    }
    changes->count = kept;
    changes->restarts = true;
}

/* ---- refusing ---- */

static bool is_refused(const an_config_change *change, unsigned allowed) {
    return change->kind != AN_CHANGE_FREE && !(allowed >> change->kind & 1U);
}

/* With at most so many lines of changes; *text is NULL before. */
static an_status write_refusal(const an_config_changes *changes, an_config *after, unsigned allowed, size_t maximum,
                               char **text) {
    an_context *ctx = after->ctx;
    an_status status;
    an_text out;
    size_t said = 0, more = 0;
    an_text_init(&out, ctx);
    an_text_add(&out,
                changes->restarts ? "%s: this model cannot begin with the state of the checkpoint, as it differs:"
                                  : "%s: this run cannot be resumed with these changes since its checkpoint:",
                after->name);
    for (size_t i = 0; i < changes->count; i++) {
        const an_config_change *c = &changes->items[i];
        if (!is_refused(c, allowed)) continue;
        if (said < maximum)
            an_text_add(&out, "\n  %s: %s is %s, was %s: %s", an_config_place(after, c->path), c->path, c->after,
                        c->before, c->reason);
        *(said < maximum ? &said : &more) += 1;
    }
    if (more > 0) an_text_add(&out, "\n  and %zu more", more);
    an_text_add(&out, "\nundo the changes, or %s",
                changes->restarts ? "start a new run with the weights alone (model.init.from)"
                                  : "start a new run with --fresh or another run.dir");
    AN_TRY(an_text_take(&out, text));
    return AN_OK;
fail:
    an_text_destroy(&out);
    return status;
}

an_status an_config_changes_refusal(const an_config_changes *changes, an_config *after, unsigned allowed, char **text) {
    bool any = false;
    *text = NULL;
    for (size_t i = 0; i < changes->count; i++) any |= is_refused(&changes->items[i], allowed);
    return any ? write_refusal(changes, after, allowed, changes->count, text) : AN_OK;
}

an_status an_config_changes_check(const an_config_changes *changes, an_config *after, unsigned allowed) {
    an_context *ctx = after->ctx;
    an_status status;
    char *text = NULL;
    AN_TRY(an_config_changes_refusal(changes, after, allowed, &text));
    if (!text) return AN_OK;
    for (size_t maximum = changes->count; strlen(text) >= AN_MESSAGE_BYTES && maximum-- > 1;) {
        an_string_release(ctx, &text);
        AN_TRY(write_refusal(changes, after, allowed, maximum, &text));
    }
    status = AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s", text);
fail:
    an_string_release(ctx, &text);
    return status;
}
