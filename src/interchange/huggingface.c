#include "interchange/huggingface.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pretrained/description.h"

enum { MOST_LISTED = 512, WORD = AN_WORD }; /* a list, a word: in bytes */

typedef struct {
    an_context *ctx;
    const char *model_type; /* NULL: the graph comes from a file or a program */
    an_description folder;
    an_model_facts model;
    an_text contradictions;     /* a line each */
    size_t room;                /* for these lines; what no longer fits is named in `others` */
    an_text others, uncompared; /* lists of keys */
} reading;

static void list(an_text *keys, const char *parent, const char *key) {
    if (keys->length < MOST_LISTED) an_text_add(keys, "%s%s%s", keys->length ? ", " : "", parent, AN_QUOTE(key));
}

/* ---- comparing ---- */

static void contradict(reading *r, const an_stated *v, const char *key, const char *model, const char *remedy) {
    an_text *t = &r->contradictions;
    char line[AN_MESSAGE_BYTES];
    const int length = snprintf(line, sizeof line, "\n  %s%s: %s in the folder%s, %s in the model: %s", v->parent, key,
                                AN_QUOTE(v->word), v->assumed ? " (the default)" : "", model, remedy);
    if (t->length + (size_t)length <= r->room)
        an_text_add(t, "%s", line);
    else
        list(&r->others, v->parent, key);
}

static const char *without_option(const reading *r, char remedy[WORD]) {
    if (!r->model_type) return "change the graph";
    snprintf(remedy, WORD, "model.type %s has no setting for it", r->folder.family->name);
    return remedy;
}

static bool agrees(an_key_kind kind, double folder, double model) {
    const double rounding = 1e-6, difference = folder > model ? folder - model : model - folder; /* f32 in some files */
    if (kind == AN_KEY_MOST) return model <= folder;
    return kind == AN_KEY_REAL ? difference <= rounding * model : difference == 0;
}

static void describe_fact(const reading *r, const an_key_row *row, char text[WORD]) {
    const double number = r->model.facts[row->fact].value;
    if (r->model.facts[row->fact].varies)
        snprintf(text, WORD, "several");
    else if (row->kind == AN_KEY_BOOL)
        snprintf(text, WORD, "%s", number != 0 ? "true" : "false");
    else if (row->kind == AN_KEY_ACTIVATION)
        snprintf(text, WORD, "%s", an_activation_op((int)number));
    else
        an_text_number(text, WORD, number);
}

static void compare(reading *r, int index) {
    const an_key_row *row = &an_key_rows[index];
    const an_stated *v = &r->folder.values[index];
    char model[WORD], remedy[2 * WORD];
    if ((!v->given && !v->assumed) || row->kind == AN_KEY_WORD) return;
    if (row->kind == AN_KEY_OFF) {
        if (v->number != 0) contradict(r, v, row->key, "off", "anneal does not support it");
        return;
    }
    if (row->fact == AN_FACTS) return;
    if (!r->model.facts[row->fact].known) {
        if (v->given && v->number != 0) list(&r->uncompared, v->parent, row->key);
        return;
    }
    if (!r->model.facts[row->fact].varies && agrees(row->kind, v->number, r->model.facts[row->fact].value)) return;
    describe_fact(r, row, model);
    const an_family_key *key = an_family_key_of(r->folder.family, index);
    const char *option = key ? key->option : NULL;
    if (!option || !r->model_type)
        contradict(r, v, row->key, model, without_option(r, remedy));
    else {
        const char *word = row->kind != AN_KEY_BOOL ? v->word : v->number != 0 ? "on" : "off";
        snprintf(remedy, sizeof remedy, "set %s: %s%s", option, word, row->kind == AN_KEY_MOST ? " or less" : "");
        contradict(r, v, row->key, model, remedy);
    }
}

static void compare_all(reading *r) {
    static const an_stated top = {.parent = ""};
    const an_stated *type = an_description_rope_type(&r->folder);
    char remedy[WORD];
    for (int i = 0; i < r->folder.architecture_count; i++) {
        an_stated named = top;
        memcpy(named.word, r->folder.architectures[i].word, WORD);
        if (!an_family_has(r->folder.family, named.word))
            contradict(r, &named, "architectures", r->folder.family->name, "anneal does not have this model");
    }
    if (type->given && strcmp(type->word, "default") != 0 && strcmp(type->word, "llama3") != 0)
        contradict(r, type, type == &r->folder.values[AN_ROW_ROPE_TYPE] ? "rope_type" : "type", "none",
                   without_option(r, remedy));
    for (int i = 0; i < AN_KEY_ROWS; i++) compare(r, i);
}

/* ---- all of it ---- */

static an_status check_type(const reading *r) {
    const an_family *family = r->folder.family;
    if (!r->model_type || (family->type && !strcmp(r->model_type, family->type))) return AN_OK;
    if (family->type)
        return AN_ERROR(r->ctx, AN_ERR_ARGUMENT,
                        "%s: model_type is %s, but model.type is different: set model.type to %s", r->folder.path,
                        family->name, family->type);
    return AN_ERROR(r->ctx, AN_ERR_ARGUMENT,
                    "%s: model_type is %s, but model.type is %s: write model: {from: …} with this folder instead",
                    r->folder.path, family->name, r->model_type);
}

static an_status report(const reading *r) {
    an_context *ctx = r->ctx;
    const char *path = r->folder.path;
    if (r->uncompared.length)
        an_log_write(ctx, AN_LOG_WARNING, "%s: not checked, because the model has nothing to compare them with: %s",
                     path, r->uncompared.bytes);
    if (r->folder.unknown.length)
        an_log_write(ctx, AN_LOG_WARNING, "%s: unknown keys, which may change what the original model computes: %s",
                     path, r->folder.unknown.bytes);
    if (!r->contradictions.length && !r->others.length) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s contradicts the model:%s%s%s", path,
                    r->contradictions.length ? r->contradictions.bytes : "", r->others.length ? "\n  also: " : "",
                    r->others.length ? r->others.bytes : "");
}

static an_status check_file(reading *r, const char *path) {
    an_context *ctx = r->ctx;
    AN_TRY_RETURN(an_description_read(&r->folder, ctx, path,
                                      ". To load the weights without this check, give the path of the safetensors "
                                      "file itself"));
    AN_TRY_RETURN(check_type(r));
    compare_all(r);
    AN_TRY_RETURN(r->contradictions.status);
    AN_TRY_RETURN(r->others.status);
    AN_TRY_RETURN(r->uncompared.status);
    return report(r);
}

an_status an_huggingface_check(an_context *ctx, const an_model_facts *model, const char *folder, const char *model_type,
                               size_t taken, bool *gpt2) {
    enum { KEYS_ONLY = 240, AROUND = 64 }; /* bytes for keys whose lines do not fit; for the words around the lines */
    an_status status;
    an_text path;
    reading *r = NULL;
    *gpt2 = false;
    an_text_init(&path, ctx);
    an_text_add(&path, "%s/config.json", folder);
    AN_TRY(path.status);
    if (access(path.bytes, F_OK) != 0) {
        an_log_write(ctx, AN_LOG_WARNING, "%s: has no config.json, so only names and shapes were checked", folder);
        goto fail;
    }
    AN_TRY(an_alloc(ctx, (void **)&r, 1, sizeof *r));
    r->ctx = ctx;
    r->model_type = model_type;
    an_text *texts[] = {&r->contradictions, &r->others, &r->uncompared};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) an_text_init(texts[i], ctx);
    r->model = *model;
    taken += KEYS_ONLY + AROUND + path.length;
    r->room = taken < AN_MESSAGE_BYTES ? AN_MESSAGE_BYTES - taken : 0;
    status = check_file(r, path.bytes);
    *gpt2 = status == AN_OK && r->folder.family == &an_family_gpt2;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) an_text_destroy(texts[i]);
    an_description_destroy(&r->folder);
fail:
    an_release(ctx, (void **)&r, 1, sizeof *r);
    an_text_destroy(&path);
    return status;
}
