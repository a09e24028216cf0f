/* Writing a manifest. */
#include <string.h>

#include <xxhash.h>

#include "base/memory.h"
#include "store/manifest.h"

static const char no_hash[] = "00000000000000000000000000000000";

void an_manifest_begin(an_manifest_text *m, an_context *ctx, const an_manifest *head) {
    char digits[AN_HASH_DIGITS + 1] = "";
    an_json_writer *json = &m->json;
    *m = (an_manifest_text){0};
    an_text_init(&m->text, ctx);
    *json = an_text_json(&m->text, AN_JSON_MARGIN);
    an_hash_write(digits, head->data);
    an_json_write_object(json, NULL);
    an_json_write_string(json, "format", "anneal checkpoint");
    an_json_write_integer(json, "version", head->adapter.adapter.rank ? AN_MANIFEST_VERSION : AN_MANIFEST_WHOLE);
    an_json_write_integer(json, "step", head->step);
    an_json_write_integer(json, "generation", head->generation);
    an_json_write_bool(json, "kept", head->kept);
    an_json_write_string(json, "data", digits);
    an_json_write_object(json, "bits");
    json->layout = AN_JSON_FLAT;
    an_json_write_string(json, "isa", head->bits.isa);
    an_json_write_string(json, "onednn", head->bits.onednn);
    an_json_write_string(json, "anneal", head->bits.anneal);
    an_json_write_string(json, "precision", head->bits.precision);
    an_json_write_integer(json, "leaves", head->bits.leaves);
    if (*head->bits.fingerprint) an_json_write_string(json, "fingerprint", head->bits.fingerprint);
    if (*head->bits.kernels) an_json_write_string(json, "kernels", head->bits.kernels);
    if (head->bits.since > 0) an_json_write_integer(json, "since", head->bits.since);
    an_json_write_end(json);
    json->layout = AN_JSON_MARGIN;
    if (*head->optimizer.name) {
        an_json_write_object(json, "optimizer");
        json->layout = AN_JSON_FLAT;
        an_json_write_string(json, "name", head->optimizer.name);
        an_json_write_integer(json, "version", head->optimizer.version);
        an_json_write_end(json);
        json->layout = AN_JSON_MARGIN;
    }
    if (head->prediction.is_known) {
        an_json_write_object(json, "prediction");
        json->layout = AN_JSON_FLAT;
        an_prediction_write(json, &head->prediction);
        an_json_write_end(json);
        json->layout = AN_JSON_MARGIN;
    }
    if (head->origin.path) {
        an_json_write_object(json, "origin");
        json->layout = AN_JSON_FLAT;
        an_origin_write(json, &head->origin);
        an_json_write_end(json);
        json->layout = AN_JSON_MARGIN;
    }
    if (head->adapter.adapter.rank) {
        an_json_write_object(json, "adapter");
        json->layout = AN_JSON_FLAT;
        an_adapter_write(json, &head->adapter);
        an_json_write_end(json);
        json->layout = AN_JSON_MARGIN;
    }
    an_json_write_object(json, "state");
    json->layout = AN_JSON_FLAT;
    an_progress_write(json, &head->progress);
    an_json_write_end(json);
    json->layout = AN_JSON_MARGIN;
    an_json_write_array(json, "files");
}

void an_manifest_add_file(an_manifest_text *m, const char *name, int64_t bytes, const uint64_t *hash) {
    enum { TAIL = sizeof "\"}" - 1 };
    if (m->text.status != AN_OK) return;
    m->text.status = an_grow(m->text.ctx, (void **)&m->hashes, &m->file_capacity, m->file_count + 1, sizeof *m->hashes);
    an_json_write_object(&m->json, NULL);
    m->json.layout = AN_JSON_FLAT;
    an_json_write_string(&m->json, "name", name);
    an_json_write_integer(&m->json, "bytes", bytes);
    an_json_write_string(&m->json, "xxh3", no_hash);
    an_json_write_end(&m->json);
    m->json.layout = AN_JSON_MARGIN;
    if (m->text.status != AN_OK) return;
    m->hashes[m->file_count++] = m->text.length - TAIL - AN_HASH_DIGITS;
    if (hash) an_manifest_set_hash(m, m->file_count - 1, hash);
}

/* Ends the tensor that is open, with its slices. */
static void end_tensor(an_manifest_text *m) {
    an_json_write_end(&m->json);
    an_json_write_end(&m->json);
    m->json.layout = AN_JSON_MARGIN;
}

void an_manifest_add_tensor(an_manifest_text *m, const char *name, an_dtype dtype, int ndims, const int64_t *dims) {
    if (m->tensor_count++) {
        end_tensor(m);
    } else {
        an_json_write_end(&m->json); /* of the files */
        an_json_write_array(&m->json, "tensors");
    }
    an_json_write_object(&m->json, NULL);
    m->json.layout = AN_JSON_FLAT;
    an_json_write_string(&m->json, "name", name);
    an_json_write_string(&m->json, "dtype", an_dtype_name(dtype));
    an_json_write_array(&m->json, "shape");
    for (int d = 0; d < ndims; d++) an_json_write_integer(&m->json, NULL, dims[d]);
    an_json_write_end(&m->json);
    an_json_write_array(&m->json, "slices");
}

void an_manifest_add_slice(an_manifest_text *m, const an_manifest_slice *s) {
    const int64_t numbers[] = {s->file, s->begin, s->end, s->offset};
    an_json_write_array(&m->json, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) an_json_write_integer(&m->json, NULL, numbers[i]);
    an_json_write_end(&m->json);
}

an_status an_manifest_end(an_manifest_text *m) {
    end_tensor(m);
    an_json_write_end(&m->json); /* of the tensors */
    an_json_write_string(&m->json, "hash", no_hash);
    an_json_write_finish(&m->json);
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
