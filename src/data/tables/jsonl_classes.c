/* The classes of the targets, by number or by name. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/tables/jsonl_table.h"

enum { MOST_NAMES = 1 << 16 };

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b); /* compares unsigned bytes */
}

/* The place of a name among the sorted ones. */
static size_t find_name(const an_jsonl_table *t, const char *name, bool *found) {
    size_t low = 0, high = t->name_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(t->names[middle], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < t->name_count && strcmp(t->names[low], name) == 0;
    return low;
}

/* One pass over the targets: the first collects names, the second numbers them. */
typedef struct {
    an_jsonl_table *table;
    int64_t record;
    bool collects;
    an_status status; /* of memory */
} class_pass;

static bool collect_name(class_pass *p, an_json *json, const char *name, size_t length) {
    an_jsonl_table *t = p->table;
    bool found;
    const size_t at = find_name(t, name, &found);
    if (found) return true;
    if (t->name_count == MOST_NAMES) return an_json_refuse(json, json->at, "there are more than 65536 classes");
    p->status = an_grow(t->ctx, (void **)&t->names, &t->name_capacity, t->name_count + 1, sizeof *t->names);
    const char *copy = NULL;
    if (p->status == AN_OK) p->status = an_arena_string(&t->arena, &copy, name, length);
    if (p->status != AN_OK) return an_json_refuse(json, json->at, "out of memory");
    memmove(t->names + at + 1, t->names + at, (t->name_count - at) * sizeof *t->names);
    t->names[at] = copy;
    t->name_count++;
    return true;
}

static bool take_class(void *user, an_json *json, int column, int64_t index, double number,
                       const an_json_string *text) {
    class_pass *p = user;
    an_jsonl_table *t = p->table;
    (void)index;
    if (t->uses[column].kind != AN_JSONL_TARGETS) return true;
    if (text && p->collects) return collect_name(p, json, text->bytes, text->length);
    if (text) {
        bool found;
        t->labels[p->record] = (int32_t)find_name(t, text->bytes, &found);
        return found || an_json_refuse(json, json->at, "the training data has no class of this name");
    }
    if (number != AN_TARGET_IGNORED && !(number >= 0 && number < INT32_MAX && number == (double)(int32_t)number))
        return an_json_refuse(json, json->at, "this is not a class: classes are 0, 1, 2, …");
    t->labels[p->record] = (int32_t)number;
    if (t->labels[p->record] >= t->classes) t->classes = (int64_t)t->labels[p->record] + 1;
    return true;
}

static an_status pass_records(an_jsonl_table *t, an_jsonl_workspace *w, bool collects) {
    an_context *ctx = t->ctx;
    class_pass pass = {.table = t, .collects = collects};
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_jsonl_reader reader = {
        .columns = t->columns, .count = t->column_count, .seen = w->seen, .take = take_class, .user = &pass};
    for (; pass.record < (int64_t)t->count; pass.record++) {
        const an_status status = an_jsonl_read_at(t, pass.record, w, &reader, note);
        if (pass.status != AN_OK) return pass.status;
        AN_TRY_RETURN(an_note_raise(ctx, status, note));
    }
    return AN_OK;
}

static an_status take_names(an_jsonl_table *t) {
    an_context *ctx = t->ctx;
    const size_t count = (size_t)t->like->class_count;
    AN_TRY_RETURN(an_grow(ctx, (void **)&t->names, &t->name_capacity, count, sizeof *t->names));
    memcpy(t->names, t->like->class_names, count * sizeof *t->names);
    t->name_count = count;
    qsort(t->names, count, sizeof *t->names,
          compare_names); /* they are sorted already, if they are a dataset's of ours */
    return AN_OK;
}

static const char *target_name(const an_jsonl_table *t) {
    int i = 0;
    while (i < t->column_count - 1 && t->uses[i].kind != AN_JSONL_TARGETS) i++;
    return t->columns[i].name;
}

an_status an_jsonl_classes(an_jsonl_table *t, const an_jsonl_source *source) {
    an_status status;
    an_context *ctx = t->ctx;
    an_jsonl_workspace w = {.text = NULL};
    bool named = false;
    for (int i = 0; i < t->column_count; i++)
        named = named || (t->uses[i].kind == AN_JSONL_TARGETS && t->columns[i].text);
    if (t->kinds < AN_JSONL_KINDS || (!named && !source->classes)) return AN_OK;
    AN_CHECK(ctx, t->widths[AN_JSONL_TARGETS] == 1, AN_ERR_ARGUMENT,
             "%s: targets have %" PRId64 " columns; a class is one of them", t->path, t->widths[AN_JSONL_TARGETS]);
    AN_TRY(an_alloc(ctx, (void **)&t->labels, t->count, sizeof *t->labels));
    AN_CHECK(ctx, an_jsonl_workspace_make(&w, t), AN_ERR_MEMORY, "%s: not enough memory for a record", t->path);
    if (named && t->like)
        AN_TRY(take_names(t));
    else if (named)
        AN_TRY(pass_records(t, &w, true));
    AN_TRY(pass_records(t, &w, false));
    if (named) t->classes = (int64_t)t->name_count;
    if (named && !t->like)
        AN_TRY(an_encoding_of_classes(&t->encoding, ctx, target_name(t), t->names, (int64_t)t->name_count));
    t->dtypes[AN_JSONL_TARGETS] = AN_DTYPE_I32;
    status = AN_OK;
fail:
    an_jsonl_workspace_release(&w);
    return status;
}
