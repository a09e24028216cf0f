/* JSON lines. The file is looked through once, to find where its records begin and, if the target is a class, which
 * classes there are; a record is parsed when its sample is read. */
#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "data/structs.h"
#include "data/tables/cells.h"
#include "data/tables/jsonl_table.h"

/* ---- reading ---- */

static bool store(void *user, an_json *json, int column, int64_t index, double number, const an_json_string *text) {
    const an_jsonl_workspace *w = user;
    const an_jsonl_table *t = w->table;
    const an_jsonl_use *use = &t->uses[column];
    const int64_t at = use->offset + index;
    if (use->kind == AN_JSONL_TARGETS && t->labels) return true; /* the class is known */
    if (text) return an_json_refuse(json, json->at, "a string is not a number");
    if (use->kind == AN_JSONL_WEIGHTS && !(number >= 0 && __builtin_isfinite(number)))
        return an_json_refuse(json, json->at, "this is not a weight: weights are finite numbers that are 0 or more");
    if (t->dtypes[use->kind] == AN_DTYPE_F64) {
        ((double *)(void *)w->fields[use->kind])[at] = number;
        return true;
    }
    if (!(number > -0x1.ffffffp127 && number < 0x1.ffffffp127)) /* from there on it rounds to infinity */
        return an_json_refuse(json, json->at, "the number does not fit in f32");
    ((float *)(void *)w->fields[use->kind])[at] = (float)number;
    return true;
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const an_jsonl_table *t = user;
    const an_note note = {message, message_capacity};
    an_status status = AN_OK;
    an_jsonl_workspace w;
    if (!an_jsonl_workspace_make(&w, t))
        status = AN_NOTE(note, AN_ERR_MEMORY, "%s: not enough memory for a record", t->path);
    an_jsonl_reader reader = {
        .columns = t->columns, .count = t->column_count, .seen = w.seen, .take = store, .user = &w};
    for (int64_t i = 0; i < n && status == AN_OK; i++) {
        const int64_t record = t->first + indices[i];
        for (int f = 0; f < t->kinds; f++)
            w.fields[f] = (char *)fields[f] + (size_t)(i * t->widths[f]) * an_dtype_size(t->dtypes[f]);
        if (t->has_weights) w.fields[AN_JSONL_WEIGHTS] = (char *)fields[t->kinds] + (size_t)i * sizeof(double);
        if (t->labels) *(int32_t *)(void *)w.fields[AN_JSONL_TARGETS] = t->labels[record];
        status = an_jsonl_read_at(t, record, &w, &reader, note);
    }
    an_jsonl_workspace_release(&w);
    return status;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    const an_jsonl_table *t = user;
    (void)field, (void)element;
    an_note_write((an_note){place, place_capacity}, "%s: byte %" PRId64 ", record %" PRId64, t->path,
                  t->begins[t->first + index], t->first + index + 1);
}

static an_status read_cells(void *user, an_cells *cells) {
    const an_jsonl_table *t = user;
    return an_jsonl_read_cells(cells, t->path, t->first);
}

static void close_table(void *user) {
    an_jsonl_table *t = user;
    an_context *ctx = t->ctx;
    an_reader_close(&t->file);
    an_release(ctx, (void **)&t->begins, t->capacity, sizeof *t->begins);
    an_release(ctx, (void **)&t->labels, t->count, sizeof *t->labels);
    an_release(ctx, (void **)&t->names, t->name_capacity, sizeof *t->names);
    an_encoding_destroy(&t->encoding);
    an_arena_destroy(&t->arena);
    an_release(ctx, (void **)&t, 1, sizeof *t);
}

/* ---- making one ---- */

static an_status check_source(an_context *ctx, const an_jsonl_source *s) {
    an_status status;
    AN_CHECK(ctx, s->path && *s->path, AN_ERR_ARGUMENT, "a file of the data has no name");
    AN_CHECK(ctx, s->dtype == AN_DTYPE_NONE || s->dtype == AN_DTYPE_F32 || s->dtype == AN_DTYPE_F64, AN_ERR_DTYPE,
             "%s: the numbers of samples are f32 or f64, not %s", s->path, an_dtype_name(s->dtype));
    AN_CHECK(ctx,
             s->input_count >= 0 && s->target_count >= 0 && (s->input_count == 0 || s->inputs) &&
                 (s->target_count == 0 || s->targets) && (s->has_targets || s->target_count == 0),
             AN_ERR_ARGUMENT, "%s: input_count, target_count or has_targets does not match the lists of columns",
             s->path);
    AN_CHECK(ctx, !s->like || s->like->class_count > 0, AN_ERR_ARGUMENT,
             "%s: the dataset that this one is to be like has no names of classes", s->path);
    return AN_OK;
fail:
    return status;
}

static an_status make_dataset(an_dataset **dataset, an_jsonl_table *t, const an_jsonl_source *source) {
    an_context *ctx = t->ctx;
    an_field fields[AN_JSONL_FIELDS];
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    int64_t last;
    AN_TRY_RETURN(an_data_part(ctx, source->begin, source->end, (int64_t)t->count, &t->first, &last));
    for (int i = 0; i < AN_JSONL_KINDS; i++) {
        an_field_init(&fields[i], sizeof fields[i]);
        fields[i].name = i == AN_JSONL_INPUTS ? "inputs" : "targets";
        fields[i].dtype = t->dtypes[i];
        fields[i].ndims = i == AN_JSONL_TARGETS && t->labels ? 0 : 1;
        fields[i].dims[0] = t->widths[i];
    }
    fields[AN_JSONL_TARGETS].limit = t->classes;
    fields[AN_JSONL_TARGETS].target = true;
    if (t->has_weights) {
        an_field *const weights = &fields[t->kinds];
        an_field_init(weights, sizeof *weights);
        weights->name = "weights";
        weights->dtype = AN_DTYPE_F64;
    }
    record.count = last - t->first;
    record.field_count = t->kinds + t->has_weights;
    record.fields = fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_table;
    record.user = t;
    AN_TRY_RETURN(an_dataset_create(dataset, ctx, &record));
    (*dataset)->read_cells = read_cells;
    (*dataset)->class_names = t->names;
    (*dataset)->class_count = (int64_t)t->name_count;
    (*dataset)->encoding = t->like && t->name_count > 0 ? t->like->encoding : t->encoding;
    return AN_OK;
}

an_status an_dataset_create_jsonl(an_dataset **dataset, an_context *ctx, const an_jsonl_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_jsonl_source own;
    an_status status;
    an_jsonl_table *t = NULL;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    *dataset = NULL;
    AN_TRY(an_jsonl_source_read(ctx, &own, given));
    AN_TRY(check_source(ctx, &own));
    AN_TRY(an_alloc(ctx, (void **)&t, 1, sizeof *t));
    t->ctx = ctx;
    t->like = own.like;
    t->kinds = own.has_targets ? AN_JSONL_KINDS : 1;
    t->dtypes[AN_JSONL_WEIGHTS] = AN_DTYPE_F64;
    t->dtypes[AN_JSONL_INPUTS] = t->dtypes[AN_JSONL_TARGETS] = own.dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
    an_arena_init(&t->arena, ctx);
    AN_TRY(an_arena_string(&t->arena, &t->path, own.path, strlen(own.path)));
    AN_TRY(an_note_raise(ctx, an_reader_open(&t->file, t->path, note), note));
    AN_TRY(an_jsonl_index(t));
    AN_TRY(an_jsonl_columns(t, &own));
    AN_TRY(an_jsonl_classes(t, &own));
    AN_TRY(make_dataset(dataset, t, &own));
    return AN_OK;
fail:
    if (t) close_table(t);
    return status;
}
