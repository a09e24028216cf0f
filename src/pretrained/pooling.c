#include "pretrained/pooling.h"

#include <string.h>

#include "base/files/file.h"
#include "base/files/reader.h"
#include "base/status.h"

enum { MOST_BYTES = 1 << 20 }; /* of either file */
static const char modules_file[] = "modules.json", pooling_file[] = "1_Pooling/config.json";

/* ---- 1_Pooling/config.json ---- */

/* The older files have a key for each kind, the newer ones a word. */
static const struct {
    const char *key, *word;
    int pooling; /* -1: no model here has it */
} kinds[] = {{"pooling_mode_mean_tokens", "mean", AN_BERT_POOLING_MEAN},
             {"pooling_mode_cls_token", "cls", AN_BERT_POOLING_FIRST},
             {"pooling_mode_max_tokens", "max", -1},
             {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", -1},
             {"pooling_mode_weightedmean_tokens", "weightedmean", -1},
             {"pooling_mode_lasttoken", "lasttoken", -1}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void take_kind(an_description *d, const char *key, const char *word, int pooling) {
    const double known = an_description_fact(d, AN_FACT_POOLING);
    if (pooling < 0)
        an_description_refuse(d, "1_Pooling: ", key, word, "only mean and cls are supported");
    else if (known != 0 && known != pooling + 1)
        an_description_refuse(d, "1_Pooling: ", key, word, "only one kind of pooling is supported");
    else
        an_description_state(d, AN_FACT_POOLING, pooling + 1);
}

static void take_word(an_description *d, an_json *j) {
    an_json_string word;
    int kind = 0;
    if (!an_json_string_value(j, &word)) return;
    while (kind < KINDS && strcmp(kinds[kind].word, word.bytes) != 0) kind++;
    take_kind(d, "pooling_mode", word.bytes, kind < KINDS ? kinds[kind].pooling : -1);
}

static void take_pooling(an_description *d, an_json *j) {
    an_json_string key;
    bool on;
    an_json_object(j);
    while (an_json_member(j, &key)) {
        int kind = 0;
        while (kind < KINDS && strcmp(kinds[kind].key, key.bytes) != 0) kind++;
        if (kind < KINDS) {
            if (an_json_bool(j, &on) && on) take_kind(d, key.bytes, "true", kinds[kind].pooling);
        } else if (!strcmp(key.bytes, "pooling_mode")) {
            take_word(d, j);
        } else { /* the width, and whether a prompt counts, of which there is none */
            an_json_skip(j);
        }
    }
}

/* ---- modules.json ---- */

static void take_module(an_description *d, an_json *j) {
    static const char *const known[] = {"Transformer", "Pooling", "Normalize"};
    an_json_string key, type, path = {"", 0};
    bool is_pooling = false, elsewhere = false;
    an_json_object(j);
    while (an_json_member(j, &key)) {
        if (!strcmp(key.bytes, "type") && an_json_string_value(j, &type)) {
            const char *dot = strrchr(type.bytes, '.'), *name = dot ? dot + 1 : type.bytes;
            bool is_known = false;
            for (size_t i = 0; i < sizeof known / sizeof *known; i++) is_known = is_known || !strcmp(name, known[i]);
            if (!is_known)
                an_description_refuse(d, "modules.json: ", "type", type.bytes,
                                      "only Transformer, Pooling and Normalize are supported");
            is_pooling = !strcmp(name, "Pooling");
        } else if (!strcmp(key.bytes, "path") && an_json_string_value(j, &path)) {
            elsewhere = strcmp(path.bytes, "1_Pooling") != 0;
        } else if (!j->problem) {
            an_json_skip(j);
        }
    }
    if (is_pooling && elsewhere && !j->problem)
        an_description_refuse(d, "modules.json: ", "path", path.bytes, "the pooling must be in 1_Pooling");
}

static void take_modules(an_description *d, an_json *j) {
    an_json_array(j);
    while (an_json_element(j)) take_module(d, j);
}

/* ---- both ---- */

static an_status read_text(an_description *d, const char *path, void (*take)(an_description *d, an_json *j), char *text,
                           size_t bytes) {
    an_json j;
    an_json_init(&j, text, bytes);
    take(d, &j);
    if (an_json_end(&j)) return AN_OK;
    return AN_ERROR(d->ctx, AN_ERR_DAMAGED, "%s: byte %zu: %s", path, j.at, j.problem);
}

static an_status read_file(an_description *d, const char *folder, const char *name,
                           void (*take)(an_description *d, an_json *j)) {
    an_context *ctx = d->ctx;
    char path[AN_FILE_PATH], message[AN_MESSAGE_BYTES], *text = NULL;
    const an_note note = {message, sizeof message};
    an_reader file;
    if (!an_path_join(path, folder, name) || !an_file_exists(path)) return AN_OK;
    AN_TRY_RETURN(an_note_raise(ctx, an_reader_open(&file, path, note), note));
    an_status status = file.size <= MOST_BYTES
                           ? AN_OK
                           : AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: has %lld bytes, but such a file has at most %d",
                                      path, (long long)file.size, MOST_BYTES);
    const size_t bytes = (size_t)file.size;
    if (status == AN_OK) status = an_alloc_raw(ctx, (void **)&text, bytes + 1);
    if (status == AN_OK) status = an_note_raise(ctx, an_reader_read(&file, 0, text, bytes, note), note);
    if (status == AN_OK) status = read_text(d, path, take, text, bytes);
    an_release(ctx, (void **)&text, bytes + 1, 1);
    an_reader_close(&file);
    return status;
}

an_status an_pooling_read(an_description *d, const char *folder) {
    AN_TRY_RETURN(read_file(d, folder, modules_file, take_modules));
    AN_TRY_RETURN(read_file(d, folder, pooling_file, take_pooling));
    return d->problems.status;
}
