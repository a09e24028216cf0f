/* anneal init of JSON lines with language: conversations, pairs of answers, sentences with labels. They train a
 * published model. */
#include <stdlib.h>
#include <string.h>

#include "anneal/pretrained.h"
#include "base/files/regular.h"
#include "cli/init/init.h"

/* ---- which kind it is ---- */

typedef struct {
    const char *members[3]; /* which the first record has */
    const char *type;       /* of data.train */
    const char *what;
    bool alone; /* it has no others */
} kind;

static const kind kinds[] = {{{"prompt", "chosen", "rejected"}, "preferences", "pairs of answers", false},
                             {{"messages"}, "chat", "conversations", false},
                             {{"prompt", "completion"}, "chat", "prompts with completions", false},
                             {{"text", "label"}, "sentences", "sentences with labels", false},
                             {{"text"}, "chat", "texts", true}};

static bool has_member(const char *name, const char *const *names, const char *firsts, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return strcmp(name, "text") != 0 || firsts[i] == '"';
    return false;
}

static const kind *find_kind(const char *const *names, const char *firsts, int64_t count) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t k = 0;
        while (k < 3 && kinds[i].members[k] && has_member(kinds[i].members[k], names, firsts, count)) k++;
        if ((k == 3 || !kinds[i].members[k]) && (!kinds[i].alone || count == (int64_t)k)) return &kinds[i];
    }
    return NULL;
}

bool init_is_language(const init_found *f, const char *const *names, const char *firsts, int64_t count) {
    return !f->target && f->task == INIT_AUTO && find_kind(names, firsts, count);
}

/* ---- the records ---- */

typedef struct {
    int64_t count;
    size_t longest; /* in bytes */
} records;

static records count_records(const char *path) {
    records r = {0, 0};
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = an_regular_read(path);
    for (ssize_t length; file && (length = getline(&line, &capacity, file)) > 0;) {
        if (length == 1) continue;
        r.count++;
        if ((size_t)length > r.longest) r.longest = (size_t)length;
    }
    free(line);
    if (file) fclose(file);
    return r;
}

/* Tokens for the longest record, in steps of 64: about four bytes each, and JSON's own characters for those of the
 * template. A pair has two answers. */
static int64_t choose_context(const kind *k, const records *r, int64_t maximum) {
    enum { BYTES = 4, STEP = 64, MOST = 1024 };
    const int64_t tokens = (int64_t)(r->longest / BYTES) * (!strcmp(k->type, "preferences") ? 2 : 1);
    const int64_t context = (tokens / STEP + 1) * STEP, limit = maximum > 0 && maximum < MOST ? maximum : MOST;
    return context < limit ? context : limit;
}

/* ---- the config ---- */

static void put_begin(const init_found *f, const kind *k, const records *r) {
    fprintf(f->source_stream,
            "# Made by 'anneal init' from %s records. Every number here is a starting point; change what you like.\n"
            "#\n"
            "#     anneal train THIS-FILE       trains; the results are in runs/\n"
            "#     anneal config show THIS-FILE shows all other settings with their defaults\n"
            "version: 1\n\n"
            "run:\n  epochs: %d  # passes over the training records\n  seed: 1\n\n"
            "model:\n  from: ",
            cli_count(r->count).text, !strcmp(k->type, "preferences") ? 1 : 3);
    init_put_path(f, f->from);
    putc('\n', f->source_stream);
}

static void put_data(const init_found *f, const kind *k, const char *share) {
    fprintf(f->source_stream, "\ndata:\n  train:\n    type: %s  # %s\n    path: ", k->type, k->what);
    init_put_path(f, f->data);
    fprintf(f->source_stream,
            "\n  split:\n    eval: %s  # held out: they are not trained on, and show how good the model is\n", share);
}

/* As examples/minilm. */
static void put_sentences(const init_found *f, const kind *k) {
    put_data(f, k, "20%");
    fputs("    by: stratify  # the same share of every label\n\n"
          "batch:\n  global: 16  # records of a step\n\n"
          "optimizer:\n  type: adamw\n  lr: 2e-4  # 2e-5 for models of 12 layers and more\n\n"
          "schedule:\n  type: linear\n  warmup: 10%\n\n"
          "eval:\n  every: 1 epoch\n  best: val_accuracy  # the link 'best' in the run folder points to that "
          "checkpoint\n",
          f->source_stream);
}

/* As examples/smollm2. */
static void put_adapter(const init_found *f, const kind *k, bool is_gpt2, int64_t context) {
    const bool pairs = !strcmp(k->type, "preferences");
    fprintf(f->source_stream,
            "  context: %lld  # tokens of a sample; longer records are cut, and a warning says how many\n\n"
            "lora:  # a small adapter is trained, and the model itself stays as it is\n"
            "  targets: %s\n  rank: 8\n  alpha: 16\n",
            (long long)context,
            is_gpt2 ? "[c_attn, c_proj, c_fc]" : "[q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]");
    put_data(f, k, "10%");
    fprintf(f->source_stream,
            "\nbatch:\n  global: %d  # samples of a step\n\n"
            "optimizer:\n  type: adamw\n  lr: %s\n  weight_decay: 0\n\n"
            "schedule:\n  type: cosine\n  warmup: 10%%\n\n",
            pairs ? 4 : 8, pairs ? "1e-4" : "5e-4");
    if (pairs)
        fputs("train:\n  loss:\n    beta: 0.1  # lower values let the model move further from what it was\n\n",
              f->source_stream);
    fputs("eval:\n  every: 1 epoch\n  best: val_loss  # the link 'best' in the run folder points to that checkpoint\n",
          f->source_stream);
}

/* ---- the model ---- */

static int check_model(const init_found *f, const kind *k, const an_pretrained_info *info) {
    const bool is_bert = !strcmp(info->family, "bert"), wants_bert = !strcmp(k->type, "sentences");
    if (is_bert != wants_bert)
        return cli_misuse(f->call, "%s: %s train %s, and %s is of the family %s", f->data, k->what,
                          wants_bert ? "a BERT" : "a language model such as Llama", f->from, info->family);
    if (!strcmp(k->type, "preferences") && info->rotary_base == 0)
        return cli_misuse(f->call, "%s: %s need a model with rotary positions, which %s (%s) does not have", f->data,
                          k->what, f->from, info->family);
    return CLI_DONE;
}

static int write_config(const init_found *f, const kind *k, const records *r, an_pretrained *model) {
    an_pretrained_info info;
    an_pretrained_info_init(&info, sizeof info);
    const an_status status = an_pretrained_info_get(model, &info);
    const int code = status == AN_OK ? check_model(f, k, &info) : cli_failure(f->call, f->ctx, status);
    if (code != CLI_DONE) return code;
    cli_tell("model: %s, of the family %s, %s parameters", f->from, info.family, cli_count(info.elements).text);
    put_begin(f, k, r);
    if (!strcmp(k->type, "sentences"))
        put_sentences(f, k);
    else
        put_adapter(f, k, !strcmp(info.family, "gpt2"), choose_context(k, r, info.context));
    return CLI_DONE;
}

int init_language(init_found *f, const char *const *names, const char *firsts, int64_t count) {
    enum { LEAST = 10 }; /* of which one evaluates */
    const kind *k = find_kind(names, firsts, count);
    const records r = count_records(f->data);
    an_pretrained *model = NULL;
    cli_tell("%s: JSON lines, %s records: %s", f->data, cli_count(r.count).text, k->what);
    if (!f->from)
        return cli_misuse(f->call,
                          "%s: %s train a published model; name its folder, or a GGUF file, with --from FOLDER%s",
                          f->data, k->what, !strcmp(k->type, "sentences") ? ", such as that of a BERT" : "");
    if (r.count < LEAST)
        return cli_fail(f->call, "%s: %lld records are too few to train on; give at least %d", f->data,
                        (long long)r.count, (int)LEAST);
    const an_status status = an_pretrained_open(&model, f->ctx, f->from);
    const int code = status == AN_OK ? write_config(f, k, &r, model) : cli_failure(f->call, f->ctx, status);
    an_pretrained_close(&model);
    f->is_whole = true;
    return code;
}
