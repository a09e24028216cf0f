/* Writing a manifest. */
#include <string.h>

#include <xxhash.h>

#include "base/memory.h"
#include "store/manifest.h"

static const char no_hash[] = "00000000000000000000000000000000";

void an_manifest_begin(an_manifest_text *m, an_context *ctx, const an_manifest *head) {
    char digits[AN_HASH_DIGITS + 1] = "";
    *m = (an_manifest_text){0};
    an_text_init(&m->text, ctx);
    an_hash_write(digits, head->data);
    an_text_add(&m->text,
                "{\n\"format\": \"anneal checkpoint\",\n\"version\": %d,\n\"step\": %lld,\n\"generation\": "
                "%lld,\n\"kept\": %s,\n",
                AN_MANIFEST_VERSION, (long long)head->step, (long long)head->generation, head->kept ? "true" : "false");
    an_text_add(&m->text, "\"data\": \"%s\",\n\"bits\": {\"isa\": ", digits);
    an_text_json(&m->text, head->bits.isa);
    an_text_add(&m->text, ", \"onednn\": ");
    an_text_json(&m->text, head->bits.onednn);
    an_text_add(&m->text, ", \"anneal\": ");
    an_text_json(&m->text, head->bits.anneal);
    an_text_add(&m->text, ", \"precision\": ");
    an_text_json(&m->text, head->bits.precision);
    an_text_add(&m->text, ", \"leaves\": %lld", (long long)head->bits.leaves);
    if (*head->bits.kernels) {
        an_text_add(&m->text, ", \"kernels\": ");
        an_text_json(&m->text, head->bits.kernels);
    }
    if (head->bits.since > 0) an_text_add(&m->text, ", \"since\": %lld", (long long)head->bits.since);
    an_text_add(&m->text, "},\n\"state\": ");
    an_progress_write(&m->text, &head->progress);
    an_text_add(&m->text, ",\n\"files\": [");
}

void an_manifest_add_file(an_manifest_text *m, const char *name, int64_t bytes, const uint64_t *hash) {
    if (m->text.status != AN_OK) return;
    m->text.status = an_grow(m->text.ctx, (void **)&m->hashes, &m->file_capacity, m->file_count + 1, sizeof *m->hashes);
    an_text_add(&m->text, "%s{\"name\": ", m->file_count ? ",\n" : "\n");
    an_text_json(&m->text, name);
    an_text_add(&m->text, ", \"bytes\": %lld, \"xxh3\": \"", (long long)bytes);
    if (m->text.status != AN_OK) return;
    m->hashes[m->file_count++] = m->text.length;
    an_text_add(&m->text, "%s\"}", no_hash);
    if (hash && m->text.status == AN_OK) an_manifest_set_hash(m, m->file_count - 1, hash);
}

/* The list that is open when a tensor comes is closed by it: that of the files, or of the slices of the tensor before. */
void an_manifest_add_tensor(an_manifest_text *m, const char *name, an_dtype dtype, int ndims, const int64_t *dims) {
    an_text_add(&m->text, m->tensor_count++ ? "]},\n{\"name\": " : "\n],\n\"tensors\": [\n{\"name\": ");
    m->slice_count = 0;
    an_text_json(&m->text, name);
    an_text_add(&m->text, ", \"dtype\": \"%s\", \"shape\": [", an_dtype_name(dtype));
    for (int d = 0; d < ndims; d++) an_text_add(&m->text, "%s%lld", d ? ", " : "", (long long)dims[d]);
    an_text_add(&m->text, "], \"slices\": [");
}

void an_manifest_add_slice(an_manifest_text *m, const an_manifest_slice *s) {
    an_text_add(&m->text, "%s[%lld, %lld, %lld, %lld]", m->slice_count++ ? ", " : "", (long long)s->file,
                (long long)s->begin, (long long)s->end, (long long)s->offset);
}

an_status an_manifest_end(an_manifest_text *m) {
    an_text_add(&m->text, "]}\n],\n\"hash\": \"%s\"\n}\n", no_hash);
    return m->text.status;
}

void an_manifest_text_destroy(an_manifest_text *m) {
    an_release(m->text.ctx, (void **)&m->hashes, m->file_capacity, sizeof *m->hashes);
    an_text_destroy(&m->text);
}

void an_manifest_set_hash(an_manifest_text *m, size_t file, const uint64_t hash[2]) {
    an_hash_write(m->text.bytes + m->hashes[file], hash);
}

void an_manifest_seal(an_manifest_text *m) {
    enum { TAIL = sizeof "\"\n}\n" - 1 };
    const size_t at = m->text.length - TAIL - AN_HASH_DIGITS;
    const XXH128_hash_t hash = XXH3_128bits(m->text.bytes, at);
    an_hash_write(m->text.bytes + at, (const uint64_t[]){hash.low64, hash.high64});
}
