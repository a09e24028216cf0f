/* The config, with a comment for every choice. */
#include <string.h>

#include "cli/init/init.h"

/* ---- texts ---- */

/* Whether YAML reads it as this text without quotes. */
static bool is_plain(const char *text) {
    static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "null", "auto", NULL};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (!*text || !strchr(letters, *text)) return *text && strspn(text, "0123456789") == strlen(text);
    for (int i = 0; words[i]; i++)
        if (!strcmp(text, words[i])) return false;
    return strspn(text + 1, letters) + 1 == strlen(text) ||
           strlen(text) == 1 + strspn(text + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-./");
}

void init_put_text(FILE *file, const char *text) {
    if (is_plain(text)) {
        fputs(text, file);
        return;
    }
    putc('"', file);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\') putc('\\', file);
        if (*at < ' ' || *at == 0x7f)
            fprintf(file, "\\x%02x", *at);
        else
            putc(*at, file);
    }
    putc('"', file);
}

/* ---- sizes that depend on the data ---- */

/* More samples allow more steps from fewer passes, and larger batches and models. The numbers for small tables were
 * tried on those of scikit-learn: tests/tables/compare.py. */
typedef struct {
    int64_t samples; /* below this */
    int batch, epochs, width;
    double dropout, decay;
} sizes;

static const sizes *sizes_of(const init_found *f) {
    static const sizes tables[] = {{3000, 16, 100, 128, 0.3, 0.1},
                                   {30000, 32, 40, 128, 0.2, 0.1},
                                   {300000, 64, 15, 256, 0.1, 0.01},
                                   {3000000, 256, 8, 256, 0, 0.01},
                                   {INT64_MAX, 1024, 4, 512, 0, 0.01}};
    static const sizes images[] = {{3000, 16, 30, 128, 0.3, 0.05},
                                   {30000, 64, 10, 128, 0.2, 0.05},
                                   {300000, 128, 8, 256, 0.1, 0.05},
                                   {INT64_MAX, 256, 5, 256, 0.1, 0.05}};
    const sizes *s = f->is_image ? images : tables;
    while (f->samples >= s->samples) s++;
    return s;
}

enum { EVALUATED = 5 }; /* one sample in so many */

static int64_t training_samples(const init_found *f) {
    return f->has_evaluation ? f->samples : f->samples - f->samples / EVALUATED;
}

/* ---- sections ---- */

static void write_begin(FILE *out, const init_found *f) {
    fprintf(out,
            "# Made by 'anneal init' from %s samples. Every number here is a starting point; change what you like.\n"
            "#\n"
            "#     anneal train THIS-FILE       trains; the results are in runs/\n"
            "#     anneal config show THIS-FILE shows all other settings with their defaults\n"
            "version: 1\n\n",
            cli_count(f->samples).text);
}

static void write_run(FILE *out, const init_found *f, const sizes *s) {
    const int64_t samples = training_samples(f), steps = (samples + s->batch - 1) / s->batch;
    fprintf(out, "run:\n  epochs: %d  # passes over %s training samples, %s steps each\n  seed: 1\n\n", s->epochs,
            cli_count(samples).text, cli_count(steps).text);
}

static void write_mlp(FILE *out, const init_found *f, const sizes *s) {
    fprintf(out,
            "model:\n"
            "  type: mlp  # %lld inputs, %s; both are taken from the data\n"
            "  hidden: [%d, %d]\n",
            (long long)f->inputs,
            f->classes      ? "one output for each class"
            : f->has_labels ? "one output for each label"
                            : "outputs that are numbers",
            s->width, s->width);
    if (f->has_labels) fprintf(out, "  loss: binary_cross_entropy  # a probability for each label\n");
    if (s->dropout > 0) fprintf(out, "  dropout: %g  # against overfitting; less for more samples\n", s->dropout);
    putc('\n', out);
}

static void write_cnn(FILE *out, const init_found *f, const sizes *s) {
    enum { LARGE = 32 };
    const int64_t side = f->height < f->width ? f->height : f->width;
    fprintf(out,
            "model:\n"
            "  type: cnn  # images of %lld x %lld pixels, %lld classes\n"
            "  filters: %s  # of each convolution; the image is halved after each\n"
            "  hidden: %d\n",
            (long long)f->height, (long long)f->width, (long long)f->classes,
            side >= LARGE ? "[16, 32, 64]" : "[16, 32]", s->width);
    if (s->dropout > 0) fprintf(out, "  dropout: %g  # against overfitting; less for more samples\n", s->dropout);
    putc('\n', out);
}

static void write_split(FILE *out, const init_found *f) {
    fprintf(out, "  split:\n    eval: 20%%  # held out: they are not trained on, and show how good the model is\n");
    if (*f->group) {
        char by[sizeof f->group + 8];
        snprintf(by, sizeof by, "group %s", f->group);
        fprintf(out, "    by: ");
        init_put_text(out, by);
        fprintf(out, "  # no group is on both sides\n");
    } else if (f->classes && f->samples > f->classes) /* a class has two samples */
        fprintf(out, "    by: stratify  # the same share of every class\n");
}

/* Moves suit any images; mirror images of letters, and turned ones of buildings, do not. */
static void write_augment(FILE *out, const init_found *f) {
    enum { MANY = 30000, PART = 14 /* of a side: 2 of the 28 pixels of MNIST */ };
    const int64_t side = f->height < f->width ? f->height : f->width, shift = side >= 2 * PART ? side / PART : 1;
    fprintf(out,
            "  %saugment:\n  %s  shift: %lld  # pixels, in every epoch others%s\n"
            "  #   rotate: 10  # where it makes sense: turns, also brightness: 20%%, flip: horizontal, mixup: 0.2\n",
            f->samples < MANY ? "" : "# ", f->samples < MANY ? "" : "# ", (long long)shift,
            f->samples < MANY ? "; against overfitting" : "");
}

static void write_data(FILE *out, const init_found *f) {
    enum { DEFAULT_FIT = 10000 };
    fprintf(out, "data:\n  train:\n    type: %s\n%s", f->type, f->source);
    if (!f->has_evaluation) write_split(out, f);
    if (f->missing)
        fprintf(out, "  missing: %s  # %s\n", f->missing,
                !strcmp(f->missing, "drop") ? "rows with missing cells are left out"
                                            : "missing numbers become the mean of their column");
    if (init_is_unbalanced(f)) /* a proposal: with weights, the probabilities are no longer those of the data */
        fprintf(out, "  # class_weights: balanced  # rare classes count more, which finds more of them, and mistakes "
                     "more others for them\n");
    if (!f->is_scaled) {
        fprintf(out, "  normalize:\n    inputs: standard  # mean 0, deviation 1; kept with the model\n");
        if (!f->classes && !f->has_labels)
            fprintf(out, "    targets: standard  # predictions come in the units of the data\n");
        if (training_samples(f) > DEFAULT_FIT)
            fprintf(out, "    fit: first %lld samples  # all of them, as files are often sorted\n",
                    (long long)training_samples(f));
    }
    if (f->is_image) write_augment(out, f);
    putc('\n', out);
}

/* Which checkpoint counts, and when more steps are of no use. */
static void write_best(FILE *out, int patience) {
    fprintf(
        out,
        "  best: val_loss  # the checkpoint that eval, predict, generate and export use\n"
        "  early_stop:\n    metric: val_loss\n    patience: %d  # evaluations without improvement that end the run\n",
        patience);
}

/* About 20 evaluations: each that is better than all before it saves a checkpoint. */
static void write_rest(FILE *out, const sizes *s) {
    enum { EVALUATIONS = 20, PATIENCE = 8 };
    const int every = s->epochs < EVALUATIONS ? 1 : (s->epochs + EVALUATIONS - 1) / EVALUATIONS;
    fprintf(out,
            "batch:\n  global: %d  # samples of a step\n\n"
            "optimizer:\n  type: adamw\n  lr: 1e-3\n  weight_decay: %g  # against overfitting\n\n"
            "schedule:\n  type: cosine  # the learning rate falls to 0\n  warmup: 5%%\n\n"
            "eval:\n  every: %d epoch%s\n",
            s->batch, s->decay, every, every == 1 ? "" : "s");
    write_best(out, PATIENCE);
}

/* A small text is learned by heart by a large model, or by too many steps. On two cores, each takes one minute or two.
 * The numbers were tried on parts of examples/shakespeare. */
typedef struct {
    int64_t tokens; /* below this */
    int layers, heads, width, steps;
    double dropout;
    const char *rate;
} text_sizes;

static const text_sizes *text_sizes_of(const init_found *f) {
    static const text_sizes all[] = {{30000, 2, 2, 64, 1000, 0.2, "3e-3"},
                                     {300000, 3, 4, 128, 1000, 0.2, "2e-3"},
                                     {INT64_MAX, 4, 4, 128, 2000, 0, "2e-3"}};
    const text_sizes *s = all;
    while (f->tokens >= s->tokens) s++;
    return s;
}

static void write_text(FILE *out, const init_found *f) {
    enum { BATCH = 16, EVALUATIONS = 8, PATIENCE = 3, WARMUP = 20 /* one step in so many */ };
    const bool evaluates = f->context * 40 <= f->tokens; /* a tenth holds some samples */
    const text_sizes *s = text_sizes_of(f);
    const char *unit = f->vocabulary == 256 ? "bytes" : "characters";
    const double passes = (double)s->steps * BATCH * (double)f->context / (0.9 * (double)f->tokens);
    fprintf(out,
            "# Made by 'anneal init' from %s %s. Every number here is a starting point; change what you like.\n"
            "#\n"
            "#     anneal train THIS-FILE       trains; the results are in runs/\n"
            "#     anneal config show THIS-FILE shows all other settings with their defaults\n"
            "version: 1\n\n"
            "run:\n  steps: %d  # about %.2g passes over the text; more steps learn more\n  seed: 1\n\n"
            "model:\n"
            "  type: gpt2  # a small one; its vocabulary of %lld is taken from the text\n"
            "  layers: %d\n  heads: %d\n  width: %d\n  context: %lld  # %s that it sees at once\n",
            cli_count(f->tokens).text, unit, s->steps, passes, (long long)f->vocabulary, s->layers, s->heads, s->width,
            (long long)f->context, unit);
    if (s->dropout > 0) fprintf(out, "  dropout: %g  # against overfitting; less for longer texts\n", s->dropout);
    fprintf(out, "\ndata:\n  train:\n    type: text\n%s    part: %s  # %s\n", f->source,
            evaluates ? "0%..90%" : "0%..100%",
            evaluates ? "the last tenth is not trained on" : "too little text to keep some for evaluation");
    if (evaluates) fprintf(out, "  eval:\n    type: text\n%s    part: 90%%..100%%\n", f->source);
    fprintf(out,
            "\nbatch:\n  global: %d  # samples of a step, each of %lld %s\n\n"
            "optimizer:\n  type: adamw\n  lr: %s\n  betas: [0.9, 0.99]\n  weight_decay: 0.1  # against overfitting\n\n"
            "schedule:\n  type: cosine  # the learning rate falls to a tenth\n  warmup: %d steps\n  min_ratio: 0.1\n",
            BATCH, (long long)f->context, unit, s->rate, s->steps / WARMUP);
    if (evaluates) fprintf(out, "\neval:\n  every: %d steps\n", s->steps / EVALUATIONS);
    if (evaluates) write_best(out, PATIENCE);
}

void init_write(FILE *out, const init_found *f) {
    if (f->is_whole) {
        fputs(f->source, out);
        return;
    }
    if (f->vocabulary) {
        write_text(out, f);
        return;
    }
    const sizes *s = sizes_of(f);
    write_begin(out, f);
    write_run(out, f, s);
    if (f->is_image)
        write_cnn(out, f, s);
    else
        write_mlp(out, f, s);
    write_data(out, f);
    write_rest(out, s);
}
