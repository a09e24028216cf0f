/* IDX files: 0, 0, type, rank, sizes (u32, big-endian), numbers. The bytes are kept as they are and converted when
 * they are read. */
#include <inttypes.h>
#include <string.h>

#include "base/files/reader.h"
#include "base/guard.h"
#include "data/dataset.h"
#include "data/structs.h"

static uint32_t upper_first(const unsigned char *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static double number_u8(const unsigned char *b) {
    return b[0];
}
static double number_i8(const unsigned char *b) {
    return (int8_t)b[0];
}
static double number_i16(const unsigned char *b) {
    return (int16_t)(b[0] << 8 | b[1]);
}
static double number_i32(const unsigned char *b) {
    return (int32_t)upper_first(b);
}
static double number_f32(const unsigned char *b) {
    const uint32_t bits = upper_first(b);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}
static double number_f64(const unsigned char *b) {
    const uint64_t bits = (uint64_t)upper_first(b) << 32 | upper_first(b + 4);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

typedef struct {
    int code;
    size_t width;
    bool integer;
    double (*number)(const unsigned char *bytes); /* every type fits in a double */
} number_type;

static const number_type types[] = {{8, 1, true, number_u8},   {9, 1, true, number_i8},    {11, 2, true, number_i16},
                                    {12, 4, true, number_i32}, {13, 4, false, number_f32}, {14, 8, false, number_f64}};
enum { TYPES = sizeof types / sizeof *types, U8 = 0, LONGEST_HEADER = 4 + 4 * AN_MAX_DIMS };

typedef struct {
    const char *path; /* in the arena */
    unsigned char *numbers;
    size_t bytes;  /* of all */
    int64_t begin; /* of the numbers in the file */
    const number_type *type;
    int rank;
    int64_t dims[AN_MAX_DIMS];
    size_t each; /* numbers of a sample */
    float divisor;
} idx_file;

typedef struct {
    an_context *ctx;
    int count;
    idx_file files[2]; /* inputs, targets */
    int64_t first;
    an_arena arena;
} idx;

/* ---- reading ---- */

static const unsigned char *sample_at(const idx_file *file, int64_t index) {
    return file->numbers + (size_t)index * file->each * file->type->width;
}

static void read_reals(const idx_file *file, int64_t index, float *to) {
    const unsigned char *from = sample_at(file, index);
    if (file->type == &types[U8]) /* images: the usual case */
        for (size_t i = 0; i < file->each; i++) to[i] = (float)from[i] / file->divisor;
    else
        for (size_t i = 0; i < file->each; i++) to[i] = (float)file->type->number(from + i * file->type->width);
}

static void read_integers(const idx_file *file, int64_t index, int32_t *to) {
    const unsigned char *from = sample_at(file, index);
    for (size_t i = 0; i < file->each; i++) to[i] = (int32_t)file->type->number(from + i * file->type->width);
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const idx *x = user;
    (void)message, (void)message_capacity;
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = x->first + indices[i];
        read_reals(&x->files[0], index, (float *)fields[0] + (size_t)i * x->files[0].each);
        if (x->count < 2) continue;
        const idx_file *targets = &x->files[1];
        if (targets->type->integer)
            read_integers(targets, index, (int32_t *)fields[1] + (size_t)i * targets->each);
        else
            read_reals(targets, index, (float *)fields[1] + (size_t)i * targets->each);
    }
    return AN_OK;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    const idx *x = user;
    const idx_file *file = &x->files[field];
    const int64_t number = (x->first + index) * (int64_t)file->each + element;
    an_note_write((an_note){place, place_capacity}, "%s: byte %" PRId64, file->path,
                  file->begin + number * (int64_t)file->type->width);
}

static void close_idx(void *user) {
    idx *x = user;
    an_context *ctx = x->ctx;
    for (int i = 0; i < 2; i++) an_release(ctx, (void **)&x->files[i].numbers, x->files[i].bytes, 1);
    an_arena_destroy(&x->arena);
    an_release(ctx, (void **)&x, 1, sizeof *x);
}

/* ---- loading ---- */

static an_status read_exactly(an_reader_stream *stream, const char *path, int64_t offset, void *to, size_t bytes,
                              an_note note) {
    size_t got;
    const an_status status = an_reader_stream_read(stream, to, bytes, &got, note);
    if (status != AN_OK || got == bytes) return status;
    return AN_NOTE(note, AN_ERR_PARSE, "%s: byte %" PRId64 ": the file ends here; %zu bytes are needed at %" PRId64,
                   path, offset + (int64_t)got, bytes, offset);
}

/* The sizes, whose product must be what the file can have before memory is asked for. */
static an_status read_header(idx_file *file, an_reader_stream *stream, an_note note) {
    unsigned char header[LONGEST_HEADER];
    int64_t bytes;
    an_status status = read_exactly(stream, file->path, 0, header, 4, note);
    if (status != AN_OK) return status;
    for (int i = 0; i < TYPES; i++)
        if (types[i].code == header[2]) file->type = &types[i];
    if (header[0] != 0 || header[1] != 0 || !file->type)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: byte 0: this is not an IDX file: it begins with %02x %02x %02x %02x",
                       file->path, header[0], header[1], header[2], header[3]);
    file->rank = header[3];
    if (file->rank < 1 || file->rank > AN_MAX_DIMS - 1)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: byte 3: the file has %d dimensions; 1 to %d are supported", file->path,
                       file->rank, AN_MAX_DIMS - 1);
    file->begin = 4 + 4 * file->rank;
    status = read_exactly(stream, file->path, 4, header + 4, (size_t)file->begin - 4, note);
    if (status != AN_OK) return status;
    bytes = (int64_t)file->type->width;
    file->each = 1;
    for (int i = 0; i < file->rank; i++) {
        file->dims[i] = upper_first(header + 4 + 4 * i);
        if (file->dims[i] == 0 || !an_multiply_i64(bytes, file->dims[i], &bytes))
            return AN_NOTE(note, AN_ERR_PARSE, "%s: byte %d: the size %" PRId64 " is not possible", file->path,
                           4 + 4 * i, file->dims[i]);
        if (i > 0) file->each *= (size_t)file->dims[i];
    }
    if (bytes > an_reader_stream_most(stream))
        return AN_NOTE(
            note, AN_ERR_PARSE,
            "%s: byte %" PRId64 ": the file ends here, but its header announces %" PRIu64 " bytes: download it again",
            file->path, stream->file.size, (uint64_t)file->begin + (uint64_t)bytes); /* need not fit in an int64_t */
    file->bytes = (size_t)bytes;
    return AN_OK;
}

static an_status read_numbers(idx_file *file, an_reader_stream *stream, an_note note) {
    unsigned char beyond;
    size_t got;
    an_status status;
    if (an_alloc_raw(stream->ctx, (void **)&file->numbers, file->bytes) != AN_OK)
        return AN_NOTE(note, AN_ERR_MEMORY, "%s: not enough memory for its %zu bytes", file->path, file->bytes);
    status = read_exactly(stream, file->path, file->begin, file->numbers, file->bytes, note);
    if (status == AN_OK) status = an_reader_stream_read(stream, &beyond, 1, &got, note);
    if (status != AN_OK || got == 0) return status;
    return AN_NOTE(note, AN_ERR_PARSE, "%s: byte %" PRId64 ": there is more data after the last number", file->path,
                   file->begin + (int64_t)file->bytes);
}

static an_status load(idx *x, idx_file *file, const char *path) {
    an_context *ctx = x->ctx;
    an_reader_stream stream;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_status status;
    if (!path || !*path) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "a file of the data has no name");
    AN_TRY_RETURN(an_arena_string(&x->arena, &file->path, path, strlen(path)));
    AN_TRY_RETURN(an_note_raise(ctx, an_reader_stream_open(&stream, ctx, file->path, note), note));
    status = read_header(file, &stream, note);
    if (status == AN_OK) status = read_numbers(file, &stream, note);
    an_reader_stream_close(&stream);
    return an_note_raise(ctx, status, note);
}

/* Labels must be classes, from 0 on. They are in memory, so how many there are is known, and reals must fit in f32. */
static an_status check_integers(an_context *ctx, const idx_file *file, int64_t *limit) {
    const size_t count = file->bytes / file->type->width;
    for (size_t i = 0; i < count; i++) {
        const int64_t value = (int64_t)file->type->number(file->numbers + i * file->type->width);
        if (value < 0 && value != AN_TARGET_IGNORED)
            return AN_ERROR(ctx, AN_ERR_PARSE,
                            "%s: byte %" PRId64 ": the label is %" PRId64 ", but labels cannot be negative", file->path,
                            file->begin + (int64_t)(i * file->type->width), value);
        if (value >= *limit) *limit = value + 1;
    }
    return AN_OK;
}

static an_status check_reals(an_context *ctx, const idx_file *file) {
    const size_t count = file->type->integer ? 0 : file->bytes / file->type->width;
    for (size_t i = 0; i < count; i++) {
        const double value = file->type->number(file->numbers + i * file->type->width);
        if (!(value >= -0x1.fffffep127 && value <= 0x1.fffffep127))
            return AN_ERROR(ctx, AN_ERR_PARSE, "%s: byte %" PRId64 ": %g is not a finite f32 number", file->path,
                            file->begin + (int64_t)(i * file->type->width), value);
    }
    return AN_OK;
}

/* ---- the fields ---- */

static an_field input_field(const idx_file *file, bool flat) {
    an_field field;
    an_field_init(&field, sizeof field);
    const bool channel = file->rank == 3;
    field.name = "inputs";
    field.dtype = AN_DTYPE_F32;
    if (flat || file->rank == 1) {
        field.ndims = 1;
        field.dims[0] = (int64_t)file->each;
        return field;
    }
    field.dims[0] = 1;
    field.ndims = file->rank - 1 + channel;
    memcpy(field.dims + channel, file->dims + 1, (size_t)(file->rank - 1) * sizeof *field.dims);
    return field;
}

/* One sample is a matrix, or channels of them. */
static void tell_image(const idx_file *file, int64_t image[3]) {
    const int last = file->rank - 1;
    image[1] = file->dims[last - 1];
    image[2] = file->dims[last];
    image[0] = (int64_t)file->each / (image[1] * image[2]);
}

static an_status target_field(an_context *ctx, const idx_file *file, an_field *field) {
    an_field_init(field, sizeof *field);
    field->name = "targets";
    field->target = true;
    field->ndims = file->rank - 1;
    memcpy(field->dims, file->dims + 1, (size_t)field->ndims * sizeof *field->dims);
    field->dtype = file->type->integer ? AN_DTYPE_I32 : AN_DTYPE_F32;
    return file->type->integer ? check_integers(ctx, file, &field->limit) : check_reals(ctx, file);
}

an_status an_dataset_create_idx(an_dataset **dataset, an_context *ctx, const an_idx_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_idx_source own;
    const an_idx_source *const source = &own;
    an_status status;
    idx *x = NULL;
    an_field fields[2];
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    int64_t last;
    *dataset = NULL;
    AN_TRY(an_idx_source_read(ctx, &own, given));
    AN_TRY(an_alloc(ctx, (void **)&x, 1, sizeof *x));
    x->ctx = ctx;
    x->count = source->targets ? 2 : 1;
    an_arena_init(&x->arena, ctx);
    AN_TRY(load(x, &x->files[0], source->inputs));
    x->files[0].divisor = source->scaled ? 255.0f : 1.0f;
    AN_TRY(check_reals(ctx, &x->files[0]));
    fields[0] = input_field(&x->files[0], source->flat);
    if (source->targets) {
        AN_TRY(load(x, &x->files[1], source->targets));
        AN_TRY(target_field(ctx, &x->files[1], &fields[1]));
        AN_CHECK(ctx, x->files[1].dims[0] == x->files[0].dims[0], AN_ERR_SHAPE,
                 "%s: byte 4: the file has %" PRId64 " targets, but %s has %" PRId64 " inputs", source->targets,
                 x->files[1].dims[0], source->inputs, x->files[0].dims[0]);
    }
    AN_TRY(an_data_part(ctx, source->begin, source->end, x->files[0].dims[0], &x->first, &last));
    record.count = last - x->first;
    record.field_count = x->count;
    record.fields = fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_idx;
    record.user = x;
    AN_TRY(an_dataset_create(dataset, ctx, &record));
    if (x->files[0].rank >= 3) tell_image(&x->files[0], (*dataset)->image);
    return AN_OK;
fail:
    if (x) close_idx(x);
    return status;
}
