/* Reads safetensors. Everything in a file is checked before it is used, and costs no more than its bytes. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/safetensors_file.h"

/* ---- sorting ---- */

/* A heap sort: no hostile order makes it slow, and it needs no memory, which the C library's may take uncounted. */
typedef bool before_function(const an_safetensors *s, size_t a, size_t b);
typedef void swap_function(an_safetensors *s, size_t a, size_t b);

static void sift(an_safetensors *s, size_t root, size_t count, before_function *before, swap_function *swap) {
    for (size_t child = 2 * root + 1; child < count; root = child, child = 2 * root + 1) {
        if (child + 1 < count && before(s, child, child + 1)) child++;
        if (!before(s, root, child)) return;
        swap(s, root, child);
    }
}

static void sort(an_safetensors *s, size_t count, before_function *before, swap_function *swap) {
    size_t sorted = 1; /* most files are already */
    while (sorted < count && !before(s, sorted, sorted - 1)) sorted++;
    if (sorted >= count) return;
    for (size_t i = count / 2; i-- > 0;) sift(s, i, count, before, swap);
    for (size_t end = count; end-- > 1;) {
        swap(s, 0, end);
        sift(s, 0, end, before, swap);
    }
}

/* By begin; of those that begin together, empty ones first. */
static bool entry_before(const an_safetensors *s, size_t a, size_t b) {
    const an_safetensors_entry *x = &s->entries[a], *y = &s->entries[b];
    return x->begin != y->begin ? x->begin < y->begin : x->end < y->end;
}

static void swap_entries(an_safetensors *s, size_t a, size_t b) {
    const an_safetensors_entry kept = s->entries[a];
    s->entries[a] = s->entries[b];
    s->entries[b] = kept;
}

static const char *name_of(const an_safetensors *s, size_t number) {
    return s->header + s->entries[s->numbers[number]].name;
}

static bool name_before(const an_safetensors *s, size_t a, size_t b) {
    return strcmp(name_of(s, a), name_of(s, b)) < 0;
}

static void swap_numbers(an_safetensors *s, size_t a, size_t b) {
    const uint32_t kept = s->numbers[a];
    s->numbers[a] = s->numbers[b];
    s->numbers[b] = kept;
}

static bool key_before(const an_safetensors *s, size_t a, size_t b) {
    return strcmp(s->header + s->keys[a], s->header + s->keys[b]) < 0;
}

static void swap_keys(an_safetensors *s, size_t a, size_t b) {
    const uint32_t kept = s->keys[a];
    s->keys[a] = s->keys[b];
    s->keys[b] = kept;
}

/* Sorted by their bytes, tensors cover the data exactly. */
static an_status check_cover(an_safetensors *s) {
    an_status status;
    an_context *ctx = s->ctx;
    an_safetensors_shown name;
    int64_t at = 0;
    const int64_t data = an_safetensors_data_offset(s);
    sort(s, s->count, entry_before, swap_entries);
    for (size_t i = 0; i < s->count; i++) {
        const an_safetensors_entry *e = &s->entries[i];
        AN_CHECK(ctx, e->begin == at, AN_ERR_DAMAGED,
                 "%s: byte %" PRId64 ": tensor '%s' begins at byte %" PRId64
                 " of the data, but the one before ends at %" PRId64 ": %s",
                 s->path, data + at, an_safetensors_show(&name, s->header + e->name), e->begin, at,
                 e->begin > at ? "there is a gap" : "they overlap");
        at = e->end;
    }
    AN_CHECK(ctx, at == s->file.size - data, AN_ERR_DAMAGED,
             "%s: byte %" PRId64 ": the last tensor ends here, but %" PRId64 " more bytes follow", s->path, data + at,
             s->file.size - data - at);
    return AN_OK;
fail:
    return status;
}

static an_status check_names(an_safetensors *s) {
    an_context *ctx = s->ctx;
    an_safetensors_shown name;
    s->numbers = (uint32_t *)(void *)(s->entries + s->count);
    for (size_t i = 0; i < s->count; i++) s->numbers[i] = (uint32_t)i;
    sort(s, s->count, name_before, swap_numbers);
    for (size_t i = 1; i < s->count; i++)
        if (!name_before(s, i - 1, i))
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu: tensor '%s' appears twice", s->path,
                            AN_SAFETENSORS_LENGTH + (size_t)s->entries[s->numbers[i]].name,
                            an_safetensors_show(&name, name_of(s, i)));
    sort(s, s->key_count, key_before, swap_keys);
    for (size_t i = 1; i < s->key_count; i++)
        if (!key_before(s, i - 1, i))
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu: key '%s' of the metadata appears twice", s->path,
                            AN_SAFETENSORS_LENGTH + (size_t)s->keys[i],
                            an_safetensors_show(&name, s->header + s->keys[i]));
    return AN_OK;
}

static an_status read_bytes(an_safetensors *s, int64_t offset, void *to, size_t bytes) {
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    return an_note_raise(s->ctx, an_reader_read(&s->file, offset, to, bytes, note), note);
}

static an_status read_header(an_safetensors *s) {
    an_status status;
    an_context *ctx = s->ctx;
    unsigned char length_bytes[AN_SAFETENSORS_LENGTH];
    char first;
    uint64_t length = 0;
    const int64_t left = s->file.size - AN_SAFETENSORS_LENGTH;
    AN_CHECK(ctx, left >= 0, AN_ERR_DAMAGED,
             "%s: byte 0: the file has only %" PRId64
             " bytes, but a safetensors file begins with %d bytes that hold the length of its header",
             s->path, s->file.size, AN_SAFETENSORS_LENGTH);
    AN_TRY(read_bytes(s, 0, length_bytes, sizeof length_bytes));
    for (int i = AN_SAFETENSORS_LENGTH; i-- > 0;) length = length << 8 | length_bytes[i];
    AN_CHECK(ctx, length > 0, AN_ERR_DAMAGED, "%s: byte 0: the header has a length of 0", s->path);
    AN_CHECK(ctx, length <= AN_SAFETENSORS_MOST_HEADER, AN_ERR_DAMAGED,
             "%s: byte 0: the header has a length of %" PRIu64
             ", but the format allows at most %d: check that it is a safetensors file",
             s->path, length, AN_SAFETENSORS_MOST_HEADER);
    AN_CHECK(ctx, length <= (uint64_t)left, AN_ERR_DAMAGED,
             "%s: byte 0: the header has a length of %" PRIu64 ", but only %" PRId64 " bytes follow", s->path, length,
             left);
    AN_TRY(read_bytes(s, AN_SAFETENSORS_LENGTH, &first, 1));
    AN_CHECK(ctx, first == '{', AN_ERR_DAMAGED, "%s: byte %d: the header does not begin with {", s->path,
             AN_SAFETENSORS_LENGTH);
    s->header_bytes = (size_t)length;
    s->table_bytes = an_round_up(s->header_bytes, sizeof *s->keys);
    AN_TRY(an_alloc_raw(ctx, (void **)&s->header, s->header_bytes));
    AN_TRY(an_alloc_raw(ctx, (void **)&s->entries, s->table_bytes));
    s->keys = (uint32_t *)(void *)((char *)s->entries + s->table_bytes);
    AN_TRY(read_bytes(s, AN_SAFETENSORS_LENGTH, s->header, s->header_bytes));
    AN_TRY(an_safetensors_parse(s));
    AN_TRY(check_cover(s));
    AN_TRY(check_names(s));
    return AN_OK;
fail:
    return status;
}

/* ---- opening ---- */

static an_status adopt(an_safetensors **file, an_context *ctx, const char *path, an_reader *opened) {
    an_status status;
    an_safetensors *s = NULL;
    AN_TRY(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    s->ctx = ctx;
    s->file = *opened;
    opened->open = false;
    s->path_bytes = strlen(path) + 1;
    AN_TRY(an_alloc_raw(ctx, (void **)&s->path, s->path_bytes));
    memcpy(s->path, path, s->path_bytes);
    s->file.path = s->path;
    AN_TRY(read_header(s));
    *file = s;
    return AN_OK;
fail:
    an_reader_close(opened);
    an_safetensors_close(&s);
    return status;
}

an_status an_safetensors_open(an_safetensors **file, an_context *ctx, const char *path) {
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_reader opened;
    *file = NULL;
    AN_TRY_RETURN(an_note_raise(ctx, an_reader_open(&opened, path, note), note));
    return adopt(file, ctx, path, &opened);
}

an_status an_safetensors_open_file(an_safetensors **file, an_context *ctx, const char *path, int descriptor) {
    an_reader opened = {.open = true, .descriptor = descriptor};
    struct stat about;
    *file = NULL;
    if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
        an_reader_close(&opened);
        return AN_ERROR(ctx, AN_ERR_FILE, "%s: is not a file", path);
    }
    opened.size = about.st_size;
    return adopt(file, ctx, path, &opened);
}

void an_safetensors_close(an_safetensors **file) {
    an_safetensors *s = file ? *file : NULL;
    if (!s) return;
    an_context *ctx = s->ctx;
    an_reader_close(&s->file);
    an_release(ctx, (void **)&s->entries, s->table_bytes, 1);
    an_release(ctx, (void **)&s->header, s->header_bytes, 1);
    an_release(ctx, (void **)&s->path, s->path_bytes, 1);
    an_release(ctx, (void **)file, 1, sizeof *s);
}

/* ---- what is in it ---- */

int an_safetensors_count(const an_safetensors *file) {
    return (int)file->count;
}

int64_t an_safetensors_bytes(const an_safetensors *file) {
    return file->file.size;
}

an_status an_safetensors_get(const an_safetensors *file, int index, an_safetensor *tensor) {
    const an_safetensors *s = file;
    an_status status;
    an_context *ctx = s->ctx;
    an_json json;
    AN_CHECK(ctx, index >= 0 && (size_t)index < s->count, AN_ERR_ARGUMENT,
             "%s: tensor %d does not exist; there are %zu", s->path, index, s->count);
    const an_safetensors_entry *e = &s->entries[index];
    *tensor =
        (an_safetensor){.name = s->header + e->name, .type = e->type, .begin = e->begin, .bytes = e->end - e->begin};
    an_json_init(&json, s->header + e->shape, s->header_bytes - e->shape);
    tensor->ndims = an_safetensors_dims(&json, tensor->dims);
    return AN_OK;
fail:
    return status;
}

int an_safetensors_find(const an_safetensors *file, const char *name) {
    size_t low = 0, high = file->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name, name_of(file, middle));
        if (order == 0) return (int)file->numbers[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

an_status an_safetensors_fetch(const an_safetensors *file, const an_safetensor *tensor, int64_t offset, size_t bytes,
                               void *to, an_note note) {
    an_safetensors_shown name;
    if (offset < 0 || offset > tensor->bytes || bytes > (uint64_t)(tensor->bytes - offset))
        return AN_NOTE(note, AN_ERR_ARGUMENT,
                       "%s: tensor '%s' has %" PRId64 " bytes, so %zu bytes from byte %" PRId64 " on do not exist",
                       file->path, an_safetensors_show(&name, tensor->name), tensor->bytes, bytes, offset);
    return an_reader_read(&file->file, an_safetensors_data_offset(file) + tensor->begin + offset, to, bytes, note);
}

an_status an_safetensors_read(const an_safetensors *file, const an_safetensor *tensor, int64_t offset, size_t bytes,
                              void *to) {
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    return an_note_raise(file->ctx, an_safetensors_fetch(file, tensor, offset, bytes, to, note), note);
}
