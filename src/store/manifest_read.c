/* Reading a manifest: its own hash first, then every rule of docs/checkpoint-format.md. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

#include "base/files/file.h"
#include "base/memory.h"
#include "ir/graph.h"
#include "store/manifest.h"

/* LEAST_OBJECT: no file and no tensor is written in fewer bytes, so that a table cannot be larger than the
 * text that it is made from. */
enum { MOST_BYTES = 1 << 30, MOST_FILES = 1 << 24, LEAST_OBJECT = 48 };

typedef struct {
    an_manifest *manifest;
    an_json json;
    const char *name; /* for messages */
    int64_t version;
} reading;

static bool refuse(an_json *json, const char *problem) {
    return an_json_refuse(json, json->at, problem);
}

/* ---- members ---- */

/* How many objects the array has that begins at the reader's place: the table of them is made at once, and no
 * larger. */
static size_t count_objects(const an_json *json) {
    size_t count = 0;
    int depth = 0;
    bool quoted = false;
    for (size_t i = json->at; i < json->length; i++) {
        const char c = json->text[i];
        if (quoted) {
            if (c == '\\') i++;
            quoted = c != '"';
            continue;
        }
        quoted = c == '"';
        if (c == '{') count += depth == 1;
        if (c == '[' || c == '{') depth++;
        if ((c == ']' || c == '}') && --depth == 0) break;
    }
    return count;
}

/* A name that a file of the folder can have, and nothing outside of it. */
static bool is_plain(const an_json_string *name) {
    return name->length > 0 && name->length < AN_FILE_NAME && name->bytes[0] != '.' && !strchr(name->bytes, '/') &&
           strcmp(name->bytes, AN_MANIFEST_NAME) != 0;
}

static bool read_text(an_json *json, char text[AN_BITS_TEXT]) {
    an_json_string s;
    if (!an_json_string_value(json, &s)) return false;
    if (s.length >= AN_BITS_TEXT) return refuse(json, "a text is too long");
    memcpy(text, s.bytes, s.length + 1);
    return true;
}

static bool read_bits(an_json *json, an_bits *bits) {
    enum { NEEDED = 1 | 2 | 4 | 8 | 16 }; /* those of 0.1; later ones may be absent */
    an_json_string key, kernels = {.bytes = ""};
    unsigned seen = 0;
    if (!an_json_object(json)) return false;
    while (an_json_member(json, &key)) {
        unsigned bit = 0;
        bool good;
        if (!strcmp(key.bytes, "isa"))
            bit = 1, good = read_text(json, bits->isa);
        else if (!strcmp(key.bytes, "onednn"))
            bit = 2, good = read_text(json, bits->onednn);
        else if (!strcmp(key.bytes, "anneal"))
            bit = 4, good = read_text(json, bits->anneal);
        else if (!strcmp(key.bytes, "precision"))
            bit = 8, good = read_text(json, bits->precision);
        else if (!strcmp(key.bytes, "leaves"))
            bit = 16, good = an_json_count(json, &bits->leaves);
        else if (!strcmp(key.bytes, "since"))
            bit = 32, good = an_json_count(json, &bits->since);
        else if (!strcmp(key.bytes, "kernels"))
            bit = 64, good = an_json_string_value(json, &kernels);
        else if (!strcmp(key.bytes, "fingerprint"))
            bit = 128, good = read_text(json, bits->fingerprint);
        else
            good = an_json_skip(json);
        if (!good || seen & bit) return refuse(json, "a member of the bits appears twice");
        seen |= bit;
    }
    if (json->problem) return false;
    bits->kernels = kernels.bytes;
    return (seen & NEEDED) == NEEDED || refuse(json, "the bits need isa, onednn, anneal, precision and leaves");
}

static bool read_optimizer(an_json *json, an_saved_optimizer *optimizer) {
    an_json_string key, name = {0};
    unsigned seen = 0;
    if (!an_json_object(json)) return false;
    while (an_json_member(json, &key)) {
        unsigned bit = 0;
        bool good;
        if (!strcmp(key.bytes, "name"))
            bit = 1, good = an_json_string_value(json, &name);
        else if (!strcmp(key.bytes, "version"))
            bit = 2, good = an_json_count(json, &optimizer->version);
        else
            good = an_json_skip(json);
        if (!good || seen & bit) return refuse(json, "a member of the optimizer is there twice");
        seen |= bit;
    }
    if (json->problem) return false;
    if (seen != 3U) return refuse(json, "the optimizer needs name and version");
    if (!an_added_is_name(name.bytes) || optimizer->version < 1)
        return refuse(json, "the optimizer has no name of one, or a version below 1");
    memcpy(optimizer->name, name.bytes, strlen(name.bytes) + 1);
    return true;
}

static bool read_file(an_json *json, an_manifest_file *file) {
    an_json_string key, name = {0};
    unsigned seen = 0;
    if (!an_json_object(json)) return false;
    while (an_json_member(json, &key)) {
        unsigned bit = 0;
        bool good;
        if (!strcmp(key.bytes, "name"))
            bit = 1, good = an_json_string_value(json, &name);
        else if (!strcmp(key.bytes, "bytes"))
            bit = 2, good = an_json_count(json, &file->bytes);
        else if (!strcmp(key.bytes, "xxh3"))
            bit = 4, good = an_json_hash(json, file->hash);
        else
            good = an_json_skip(json);
        if (!good || seen & bit) return refuse(json, "a member of a file appears twice");
        seen |= bit;
    }
    if (json->problem) return false;
    if (seen != 7U) return refuse(json, "a file needs name, bytes and xxh3");
    if (!is_plain(&name)) return refuse(json, "a file name is not valid");
    file->name = name.bytes;
    return true;
}

static bool read_shape(an_json *json, an_manifest_tensor *tensor) {
    int64_t dim, elements = 1;
    if (!an_json_array(json)) return false;
    while (an_json_element(json)) {
        if (!an_json_count(json, &dim)) return false;
        if (tensor->ndims == AN_MAX_DIMS) return refuse(json, "a tensor has more than 8 dimensions");
        if (__builtin_mul_overflow(elements, dim, &elements)) return refuse(json, "a shape has too many elements");
        tensor->ndims++;
    }
    return !json->problem;
}

static bool read_dtype(an_json *json, an_manifest_tensor *tensor) {
    an_json_string name;
    if (!an_json_string_value(json, &name)) return false;
    for (int dtype = AN_DTYPE_NONE + 1; dtype <= AN_DTYPE_U8; dtype++)
        if (!strcmp(an_dtype_name((an_dtype)dtype), name.bytes)) {
            tensor->dtype = (uint8_t)dtype;
            return true;
        }
    return refuse(json, "a tensor has a type that this version does not know");
}

static bool read_slice(an_json *json, an_manifest_slice *slice) {
    int64_t *const numbers[] = {&slice->file, &slice->begin, &slice->end, &slice->offset};
    if (!an_json_array(json)) return false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!an_json_element(json) || !an_json_count(json, numbers[i]))
            return refuse(json, "a slice must be [file, begin, end, offset]");
    if (an_json_element(json)) return refuse(json, "a slice must be [file, begin, end, offset]");
    return !json->problem;
}

/* Slices follow each other without a gap, from the first element to the last, each inside its file. */
static bool check_slices(an_json *json, an_manifest *m, const an_manifest_tensor *tensor, int64_t elements) {
    const int64_t size = (int64_t)an_dtype_size((an_dtype)tensor->dtype);
    an_json again = *json;
    an_manifest_slice slice;
    int64_t next = 0, bytes, end;
    again.at = tensor->slices_at;
    if (!an_json_array(&again)) return refuse(json, again.problem);
    while (an_json_element(&again)) {
        if (!read_slice(&again, &slice)) return refuse(json, again.problem);
        if (slice.begin != next || slice.end < slice.begin || slice.end > elements)
            return refuse(json, "the slices of a tensor leave a gap or overlap");
        if (slice.end == slice.begin && elements > 0) return refuse(json, "a slice is empty");
        if (m->slice_count++ >= m->tensor_count + m->file_count)
            return refuse(json, "there are more slices than tensors and files together");
        if ((uint64_t)slice.file >= m->file_count) return refuse(json, "a slice is in a file that does not exist");
        if (__builtin_mul_overflow(slice.end - slice.begin, size, &bytes) ||
            __builtin_add_overflow(slice.offset, bytes, &end) || end > m->files[slice.file].bytes)
            return refuse(json, "a slice is outside its file");
        next = slice.end;
    }
    if (again.problem) return refuse(json, again.problem);
    return next == elements || refuse(json, "the slices of a tensor do not reach its end");
}

static bool read_tensor(an_json *json, an_manifest *m, an_manifest_tensor *tensor) {
    an_json_string key, name = {0};
    unsigned seen = 0;
    if (!an_json_object(json)) return false;
    while (an_json_member(json, &key)) {
        unsigned bit = 0;
        bool good;
        if (!strcmp(key.bytes, "name"))
            bit = 1, good = an_json_string_value(json, &name);
        else if (!strcmp(key.bytes, "dtype"))
            bit = 2, good = read_dtype(json, tensor);
        else if (!strcmp(key.bytes, "shape"))
            bit = 4, tensor->shape_at = (uint32_t)json->at, good = !(seen & 4U) && read_shape(json, tensor);
        else if (!strcmp(key.bytes, "slices"))
            bit = 8, tensor->slices_at = (uint32_t)json->at, good = an_json_skip(json);
        else
            good = an_json_skip(json);
        if (!good || seen & bit) return refuse(json, "a member of a tensor appears twice");
        seen |= bit;
    }
    if (json->problem) return false;
    if (seen != 15U) return refuse(json, "a tensor needs name, dtype, shape and slices");
    if (name.length == 0) return refuse(json, "a tensor has no name");
    tensor->name = name.bytes;
    return check_slices(json, m, tensor, an_manifest_shape(m, (size_t)(tensor - m->tensors), NULL));
}

/* ---- lists ---- */

static size_t rest_of(const an_json *json) {
    return json->length - json->at;
}

static an_status read_files(reading *r) {
    an_manifest *m = r->manifest;
    an_context *ctx = m->ctx;
    const size_t count = count_objects(&r->json);
    if (m->files || count == 0 || count > MOST_FILES || count > rest_of(&r->json) / LEAST_OBJECT) {
        refuse(&r->json, "there are no files, too many, or two lists of them");
        return AN_OK;
    }
    AN_TRY_RETURN(an_alloc(ctx, (void **)&m->files, count, sizeof *m->files));
    m->file_count = count;
    size_t done = 0;
    if (!an_json_array(&r->json)) return AN_OK;
    while (an_json_element(&r->json) && done < count && read_file(&r->json, &m->files[done])) done++;
    if (done != count) refuse(&r->json, "the list of files has an unexpected element");
    for (size_t i = 1; !r->json.problem && i < count; i++) /* so that none can be there twice */
        if (strcmp(m->files[i - 1].name, m->files[i].name) >= 0) refuse(&r->json, "the files are not sorted by name");
    return AN_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const an_manifest_tensor *)a)->name, ((const an_manifest_tensor *)b)->name);
}

static an_status read_tensors(reading *r) {
    an_manifest *m = r->manifest;
    an_context *ctx = m->ctx;
    const size_t count = count_objects(&r->json);
    if (m->tensors || !m->files || count > rest_of(&r->json) / LEAST_OBJECT) {
        refuse(&r->json, "tensors must appear once, after the files, and each must be an object");
        return AN_OK;
    }
    AN_TRY_RETURN(an_alloc(ctx, (void **)&m->tensors, count, sizeof *m->tensors));
    m->tensor_count = count;
    size_t done = 0;
    if (!an_json_array(&r->json)) return AN_OK;
    while (an_json_element(&r->json) && done < count && read_tensor(&r->json, m, &m->tensors[done])) done++;
    if (done != count) refuse(&r->json, "the list of tensors has an unexpected element");
    if (r->json.problem || count == 0) return AN_OK;
    qsort(m->tensors, count, sizeof *m->tensors, compare_names);
    for (size_t i = 1; i < count; i++)
        if (!compare_names(&m->tensors[i - 1], &m->tensors[i])) refuse(&r->json, "a tensor appears twice");
    return AN_OK;
}

/* ---- the whole ---- */

typedef enum {
    FORMAT,
    VERSION,
    STEP,
    GENERATION,
    KEPT,
    DATA,
    BITS,
    STATE,
    FILES,
    TENSORS,
    HASH,
    OPTIMIZER,
    PREDICTION,
    ORIGIN,
    ADAPTER,
    MEMBERS
} member;

static const char *const members[MEMBERS] = {"format", "version",   "step",       "generation", "kept",
                                             "data",   "bits",      "state",      "files",      "tensors",
                                             "hash",   "optimizer", "prediction", "origin",     "adapter"};
static const unsigned optional =
    1U << OPTIMIZER | 1U << PREDICTION | 1U << ORIGIN | 1U << ADAPTER; /* 0.1 had none of them */

static an_status read_member(reading *r, int which) {
    an_manifest *m = r->manifest;
    an_json *json = &r->json;
    an_json_string text;
    switch (which) {
    case FORMAT:
        if (an_json_string_value(json, &text) && strcmp(text.bytes, "anneal checkpoint") != 0)
            refuse(json, "this is not the manifest of a checkpoint");
        return AN_OK;
    case VERSION:
        if (an_json_count(json, &r->version) && (r->version < 1 || r->version > AN_MANIFEST_VERSION))
            refuse(json, r->version < 1 ? "this version does not exist" : "a newer version of anneal wrote it");
        return AN_OK;
    case STEP: an_json_count(json, &m->step); return AN_OK;
    case GENERATION: an_json_count(json, &m->generation); return AN_OK;
    case KEPT: an_json_bool(json, &m->kept); return AN_OK;
    case DATA: an_json_hash(json, m->data); return AN_OK;
    case BITS: read_bits(json, &m->bits); return AN_OK;
    case STATE: an_progress_read(json, &m->progress); return AN_OK;
    case FILES: return read_files(r);
    case TENSORS: return read_tensors(r);
    case OPTIMIZER: read_optimizer(json, &m->optimizer); return AN_OK;
    case PREDICTION: an_prediction_read(json, &m->prediction); return AN_OK;
    case ORIGIN: an_origin_read(json, &m->origin); return AN_OK;
    case ADAPTER: an_adapter_read(json, &m->adapter); return AN_OK;
    case HASH: /* it was checked before anything else */
        if (an_json_string_value(json, &text)) an_hash_read(text.bytes, text.length, m->hash);
        return AN_OK;
    default: an_json_skip(json); return AN_OK;
    }
}

static an_status read_members(reading *r) {
    an_json *json = &r->json;
    an_json_string key;
    unsigned seen = 0;
    if (!an_json_object(json)) return AN_OK;
    while (an_json_member(json, &key)) {
        int which = 0;
        while (which < MEMBERS && strcmp(members[which], key.bytes) != 0) which++;
        if (which < MEMBERS && seen >> which & 1U) refuse(json, "a member appears twice");
        if (which < MEMBERS) seen |= 1U << which;
        if (!json->problem) AN_TRY_RETURN(read_member(r, which));
        if (json->problem) return AN_OK;
    }
    if (!json->problem && (seen | optional) != (1U << MEMBERS) - 1) refuse(json, "a member is missing");
    if (!json->problem && (r->version > AN_MANIFEST_WHOLE) != (seen >> ADAPTER & 1U))
        refuse(json, "version 2 is that of a checkpoint with an adapter, and of no other");
    if (!json->problem) an_json_end(json);
    if (!json->problem && r->manifest->progress.step != r->manifest->step) refuse(json, "its two steps differ");
    return AN_OK;
}

/* The last thing in a manifest is the hash of all that comes before it. */
static bool has_its_hash(const char *text, size_t bytes) {
    static const char head[] = "\n\"hash\": \"", tail[] = "\"\n}\n";
    enum { HEAD = sizeof head - 1, TAIL = sizeof tail - 1 };
    uint64_t written[2];
    if (bytes < HEAD + AN_HASH_DIGITS + TAIL || memcmp(text + bytes - TAIL, tail, TAIL) != 0) return false;
    const size_t at = bytes - TAIL - AN_HASH_DIGITS;
    const XXH128_hash_t hash = XXH3_128bits(text, at);
    return !memcmp(text + at - HEAD, head, HEAD) && an_hash_read(text + at, AN_HASH_DIGITS, written) &&
           written[0] == hash.low64 && written[1] == hash.high64;
}

an_status an_manifest_parse(an_manifest **manifest, an_context *ctx, const char *name, char *text, size_t bytes) {
    an_status status;
    an_manifest *m = NULL;
    void *taken = text;
    *manifest = NULL;
    AN_TRY(an_alloc(ctx, (void **)&m, 1, sizeof *m));
    *m = (an_manifest){.ctx = ctx, .text = text, .bytes = bytes};
    taken = NULL;
    reading r = {.manifest = m, .name = name};
    AN_CHECK(ctx, has_its_hash(text, bytes), AN_ERR_DAMAGED,
             "%s: is damaged: its hash does not match its contents, or it is not a manifest of a checkpoint", name);
    an_json_init(&r.json, text, bytes);
    AN_TRY(read_members(&r));
    AN_CHECK(ctx, !r.json.problem, AN_ERR_DAMAGED, "%s: byte %zu: %s", name, r.json.at, r.json.problem);
    *manifest = m;
    return AN_OK;
fail:
    an_manifest_destroy(&m);
    an_release(ctx, &taken, bytes + 1, 1);
    return status;
}

/* Lengths are looked at here, as it costs next to nothing: what was cut off or is missing is found
 * before anything is read. */
an_status an_manifest_check_files(const an_manifest *m, const char *folder) {
    an_context *ctx = m->ctx;
    char path[AN_FILE_PATH];
    struct stat found;
    for (size_t i = 0; i < m->file_count; i++) {
        if (!an_path_join(path, folder, m->files[i].name))
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %s", folder);
        if (lstat(path, &found) != 0) return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: is missing: %s", path, strerror(errno));
        if (!S_ISREG(found.st_mode)) return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: is not a regular file", path);
        if (found.st_size != m->files[i].bytes)
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: has %lld bytes, but %lld were written", path,
                            (long long)found.st_size, (long long)m->files[i].bytes);
    }
    return AN_OK;
}

an_status an_manifest_read_text(an_context *ctx, const char *path, char **text, size_t *bytes) {
    struct stat found;
    if (lstat(path, &found) != 0 || !S_ISREG(found.st_mode))
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: is missing, or is not a regular file", path);
    const an_status status = an_file_read(ctx, path, MOST_BYTES, text, bytes);
    return status == AN_ERR_FILE ? AN_ERR_DAMAGED : status; /* a sector that cannot be read is damage too */
}

an_status an_manifest_read(an_manifest **manifest, an_context *ctx, const char *folder) {
    an_status status;
    char path[AN_FILE_PATH], *text = NULL;
    size_t bytes;
    *manifest = NULL;
    AN_CHECK(ctx, an_path_join(path, folder, AN_MANIFEST_NAME), AN_ERR_ARGUMENT, "the path is too long: %s", folder);
    AN_TRY(an_manifest_read_text(ctx, path, &text, &bytes));
    AN_TRY(an_manifest_parse(manifest, ctx, path, text, bytes));
    AN_TRY(an_manifest_check_files(*manifest, folder));
    return AN_OK;
fail:
    an_manifest_destroy(manifest);
    return status;
}

void an_manifest_destroy(an_manifest **manifest) {
    an_manifest *m = manifest ? *manifest : NULL;
    if (!m) return;
    an_context *ctx = m->ctx;
    an_release(ctx, (void **)&m->files, m->file_count, sizeof *m->files);
    an_release(ctx, (void **)&m->tensors, m->tensor_count, sizeof *m->tensors);
    an_release(ctx, (void **)&m->text, m->bytes + 1, 1);
    an_release(ctx, (void **)manifest, 1, sizeof *m);
}

/* ---- asking it ---- */

int64_t an_manifest_find(const an_manifest *m, const char *tensor) {
    const an_manifest_tensor key = {.name = tensor};
    const an_manifest_tensor *found =
        m->tensor_count ? bsearch(&key, m->tensors, m->tensor_count, sizeof key, compare_names) : NULL;
    return found ? found - m->tensors : -1;
}

/* O(files): there are as many as writers. */
int64_t an_manifest_find_file(const an_manifest *m, const char *file) {
    for (size_t i = 0; i < m->file_count; i++)
        if (!strcmp(m->files[i].name, file)) return (int64_t)i;
    return -1;
}

int64_t an_manifest_shape(const an_manifest *m, size_t tensor, int64_t *dims) {
    an_json json;
    int64_t dim, elements = 1;
    an_json_init(&json, m->text, m->bytes);
    json.at = m->tensors[tensor].shape_at;
    if (!an_json_array(&json)) return 0;
    for (int d = 0; an_json_element(&json) && an_json_count(&json, &dim); d++) {
        elements *= dim; /* looked at when it was read */
        if (dims) dims[d] = dim;
    }
    return elements;
}

an_status an_manifest_slices(const an_manifest *m, size_t tensor,
                             an_status (*see)(void *user, const an_manifest_slice *slice), void *user) {
    an_json json;
    an_manifest_slice slice;
    an_json_init(&json, m->text, m->bytes);
    json.at = m->tensors[tensor].slices_at;
    if (!an_json_array(&json)) return AN_OK;
    while (an_json_element(&json) && read_slice(&json, &slice)) AN_TRY_RETURN(see(user, &slice));
    return AN_OK;
}

static an_status count_slice(void *user, const an_manifest_slice *slice) {
    (void)slice;
    ++*(int64_t *)user;
    return AN_OK;
}

int64_t an_manifest_slice_count(const an_manifest *m, size_t tensor) {
    int64_t count = 0;
    an_manifest_slices(m, tensor, count_slice, &count);
    return count;
}
