/* Fuzzes manifests of checkpoints. The first byte of an input chooses: 0, the rest is a manifest as it is; else the
 * rest is one up to its hash, and the hash is put behind it, so that the fuzzer gets past it. A refusal names the file,
 * takes no memory beyond twice the text and leaves none; what is accepted keeps every rule of
 * docs/checkpoint-format.md, and written again it says the same. */
#include "fuzz_data.h"

#include <xxhash.h>

#include "base/context.h"
#include "base/memory.h"
#include "store/manifest.h"

enum { SMALL_CONSTANT = 4096 }; /* the struct, and messages */

static const char name[] = "folder/manifest.json";

/* As the reader wants it: memory of the context, with a NUL behind it. */
static char *make_text(const uint8_t *data, size_t size, size_t *bytes) {
    static const char head[] = "\n\"hash\": \"", tail[] = "\"\n}\n";
    const bool sealed = data[0] != 0;
    const size_t body = size - 1;
    char *text = NULL;
    *bytes = sealed ? body + sizeof head - 1 + AN_HASH_DIGITS + sizeof tail - 1 : body;
    if (an_alloc(context, (void **)&text, *bytes + 1, 1)) abort();
    memcpy(text, data + 1, body);
    if (!sealed) return text;
    char *at = text + body;
    memcpy(at, head, sizeof head - 1);
    at += sizeof head - 1;
    const XXH128_hash_t hash = XXH3_128bits(text, (size_t)(at - text));
    an_hash_write(at, (const uint64_t[]){hash.low64, hash.high64});
    memcpy(at + AN_HASH_DIGITS, tail, sizeof tail - 1);
    return text;
}

/* ---- what must hold ---- */

typedef struct {
    const an_manifest *manifest;
    int64_t next, size, count;
    an_manifest_text *again;
} covering;

static an_status see(void *user, const an_manifest_slice *s) {
    covering *c = user;
    if (s->begin != c->next || s->end < s->begin) broken("slices with a gap");
    if (s->file < 0 || (size_t)s->file >= c->manifest->file_count) broken("a slice of no file");
    const an_manifest_file *file = &c->manifest->files[s->file];
    if (s->offset < 0 || s->offset > file->bytes || (s->end - s->begin) > (file->bytes - s->offset) / c->size)
        broken("a slice outside of its file");
    c->next = s->end;
    c->count++;
    an_manifest_add_slice(c->again, s);
    return AN_OK;
}

static void check_file(const an_manifest *m, size_t i) {
    const an_manifest_file *f = &m->files[i];
    if (f->bytes < 0 || !*f->name || *f->name == '.' || strchr(f->name, '/') || strlen(f->name) >= AN_FILE_NAME)
        broken("a file with a strange name");
    if (an_manifest_find_file(m, f->name) != (int64_t)i) broken("a file that is there twice");
}

static void check_tensor(const an_manifest *m, size_t i, an_manifest_text *again) {
    const an_manifest_tensor *t = &m->tensors[i];
    int64_t dims[AN_MAX_DIMS] = {0}, elements = 1;
    if (an_manifest_find(m, t->name) != (int64_t)i) broken("a tensor that is not found");
    if (t->ndims > AN_MAX_DIMS) broken("a tensor of too many dimensions");
    const int64_t said = an_manifest_shape(m, i, dims);
    for (int d = 0; d < t->ndims; d++)
        if (dims[d] < 0 || __builtin_mul_overflow(elements, dims[d], &elements)) broken("a shape that wraps");
    if (said != elements) broken("a shape of other elements");
    an_manifest_add_tensor(again, t->name, (an_dtype)t->dtype, t->ndims, dims);
    covering c = {.manifest = m, .size = (int64_t)an_dtype_size((an_dtype)t->dtype), .again = again};
    if (an_manifest_slices(m, i, see, &c) || c.next != elements) broken("slices that are not the whole tensor");
    if (an_manifest_slice_count(m, i) != c.count) broken("another number of slices");
}

static void check_same_prediction(const an_saved_prediction *a, const an_saved_prediction *b) {
    if (a->is_known != b->is_known || a->f32_storage != b->f32_storage || a->size_count != b->size_count)
        broken("a prediction that has changed");
    for (int i = 0; i < a->size_count; i++)
        if (strcmp(a->sizes[i].symbol, b->sizes[i].symbol) || a->sizes[i].value != b->sizes[i].value)
            broken("a size that has changed");
}

/* Everything but what this version does not know. */
static void check_same(const an_manifest *a, const an_manifest *b) {
    an_text one, two;
    if (a->file_count != b->file_count || a->tensor_count != b->tensor_count || a->step != b->step ||
        a->generation != b->generation || a->kept != b->kept || memcmp(&a->bits, &b->bits, sizeof a->bits) ||
        memcmp(a->data, b->data, sizeof a->data) || strcmp(a->optimizer.name, b->optimizer.name) ||
        a->optimizer.version != b->optimizer.version)
        broken("a manifest that has changed");
    check_same_prediction(&a->prediction, &b->prediction);
    for (size_t i = 0; i < a->file_count; i++)
        if (strcmp(a->files[i].name, b->files[i].name) || a->files[i].bytes != b->files[i].bytes ||
            memcmp(a->files[i].hash, b->files[i].hash, sizeof a->files[i].hash))
            broken("a file that has changed");
    for (size_t i = 0; i < a->tensor_count; i++)
        if (strcmp(a->tensors[i].name, b->tensors[i].name) || a->tensors[i].dtype != b->tensors[i].dtype)
            broken("a tensor that has changed");
    an_text_init(&one, context);
    an_text_init(&two, context);
    an_json_writer to_one = an_text_json(&one, AN_JSON_FLAT), to_two = an_text_json(&two, AN_JSON_FLAT);
    an_progress_write(&to_one, &a->progress);
    an_progress_write(&to_two, &b->progress);
    if (one.length != two.length || memcmp(one.bytes, two.bytes, one.length)) broken("a state that has changed");
    an_text_destroy(&one);
    an_text_destroy(&two);
}

static void check_manifest(const an_manifest *m) {
    an_manifest_text text;
    an_manifest *again = NULL;
    an_manifest_begin(&text, context, m);
    for (size_t i = 0; i < m->file_count; i++) {
        check_file(m, i);
        an_manifest_add_file(&text, m->files[i].name, m->files[i].bytes, m->files[i].hash);
    }
    for (size_t i = 0; i < m->tensor_count; i++) check_tensor(m, i, &text);
    if (m->tensor_count > 0) { /* no writer has none */
        if (an_manifest_end(&text)) abort();
        an_manifest_seal(&text);
        char *copy = NULL;
        if (an_alloc(context, (void **)&copy, text.text.length + 1, 1)) abort();
        memcpy(copy, text.text.bytes, text.text.length);
        if (an_manifest_parse(&again, context, name, copy, text.text.length)) broken("what was written cannot be read");
        check_same(m, again);
        an_manifest_destroy(&again);
    }
    an_manifest_text_destroy(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    an_manifest *m = NULL;
    if (size < 1 || size > 1 << 15) return 0;
    need_context();
    const size_t before = an_context_bytes(context);
    size_t bytes;
    char *text = make_text(data, size, &bytes);
    context->peak_bytes = an_context_bytes(context);
    const an_status status = an_manifest_parse(&m, context, name, text, bytes);
    if (context->peak_bytes - before > 2 * bytes + SMALL_CONSTANT) broken("memory beyond twice the text");
    if (status != AN_OK) {
        if (status != AN_ERR_DAMAGED || m) broken("a refusal of a strange kind");
        if (strncmp(an_last_error(context), name, strlen(name)) != 0) broken("a refusal without a file");
    } else {
        check_manifest(m);
        an_manifest_destroy(&m);
    }
    if (an_context_bytes(context) != before) broken("memory was not given back");
    return 0;
}
