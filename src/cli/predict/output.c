/* Writes predictions as a CSV table or a NumPy array. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/options/settings.h"
#include "cli/predict/predict.h"

static double number_at(const cli_predictions *p, const void *outputs, int64_t i) {
    return p->dtype == AN_DTYPE_F64 ? ((const double *)outputs)[i] : (double)((const float *)outputs)[i];
}

/* ---- the head ---- */

/* A cell of text, in quotes if it needs them. */
static void write_text(FILE *file, const char *prefix, const char *text) {
    const bool plain = !strpbrk(text, ",\"\r\n") && *text && *text != ' ' && text[strlen(text) - 1] != ' ';
    if (!plain) putc('"', file);
    fputs(prefix, file);
    for (; *text; text++) {
        if (*text == '"') putc('"', file);
        putc(*text, file);
    }
    if (!plain) putc('"', file);
}

/* The name of a class, or else its number. */
static void write_class(const cli_predictions *p, const char *prefix, int64_t number) {
    const char *name = p->encoding ? an_encoding_class(p->encoding, number) : NULL;
    if (name)
        write_text(p->file, prefix, name);
    else
        fprintf(p->file, "%s%lld", prefix, (long long)number);
}

/* A column of predictions. If the file has one of this name that is kept, that one has it. */
static void begin_column(const cli_predictions *p, const cli_samples *s, const char *prefix, const char *name) {
    int i = 0;
    while (i < s->column_count && strcmp(an_cells_name(s->cells, i), name) != 0) i++;
    if (i < s->column_count && !*prefix) prefix = "predicted_";
    fprintf(p->file, "%s%s", prefix, name);
}

/* Names that the config has for targets are those of its columns. */
static void write_names(const cli_predictions *p, const cli_samples *s) {
    for (int64_t i = 0; i < p->elements; i++) {
        char path[64], number[32] = "y";
        const char *name = NULL, *prefix = p->kind == CLI_LABELS ? "probability_" : "";
        snprintf(path, sizeof path, "%s[%d]", AN_SETTING(data.train.targets), (int)i);
        const bool named = an_config_size(p->config, AN_SETTING(data.train.targets)) == p->elements &&
                           an_config_string(p->config, path, &name) == AN_OK && strcspn(name, ",\"\n") == strlen(name);
        if (p->elements > 1) snprintf(number, sizeof number, "y%lld", (long long)i + 1);
        if (i > 0) putc(',', p->file);
        begin_column(p, s, prefix, named ? name : number);
    }
    putc('\n', p->file);
}

/* What is kept of the file, before what is predicted; each with a comma behind it. */
static void write_kept_names(const cli_predictions *p, const cli_samples *s) {
    for (int i = 0; i < s->column_count; i++) {
        write_text(p->file, "", an_cells_name(s->cells, i));
        putc(',', p->file);
    }
    if (s->has_classes) fputs("target,", p->file);
}

void cli_predictions_begin(const cli_predictions *predictions, const cli_samples *samples) {
    const cli_predictions *p = predictions;
    const int64_t dims[] = {samples->count, p->elements / p->classes, p->classes};
    const int64_t flat[] = {samples->count, p->elements};
    if (p->numpy) {
        cli_npy_begin(p->file, p->dtype, p->kind == CLI_TOKENS ? 3 : 2, p->kind == CLI_TOKENS ? dims : flat);
        return;
    }
    write_kept_names(p, samples);
    if (p->kind == CLI_NUMBERS || p->kind == CLI_LABELS) {
        write_names(p, samples);
    } else if (p->kind == CLI_TOKENS) {
        fprintf(p->file, "sample,position,token,next,probability,predicted,predicted_probability\n");
    } else {
        begin_column(p, samples, "", "class");
        for (int64_t i = 0; i < p->classes; i++) {
            putc(',', p->file);
            write_class(p, "probability_", i);
        }
        putc('\n', p->file);
    }
}

/* ---- lines ---- */

/* The largest of the logits and the sum of their exponentials, relative to that of the largest. */
typedef struct {
    int64_t best;
    double top, sum;
} distribution;

static distribution distribution_of(const cli_predictions *p, const void *outputs, int64_t begin) {
    distribution d = {.top = -INFINITY};
    for (int64_t i = 0; i < p->classes; i++) {
        const double x = number_at(p, outputs, begin + i);
        if (!(x > d.top)) continue;
        d.top = x;
        d.best = i;
    }
    for (int64_t i = 0; i < p->classes; i++) d.sum += exp(number_at(p, outputs, begin + i) - d.top);
    return d;
}

static double probability(const cli_predictions *p, const distribution *d, const void *outputs, int64_t index) {
    return exp(number_at(p, outputs, index) - d->top) / d->sum;
}

/* Sample `i` of those that were read last, which began with number `begin`. */
static void write_kept(const cli_predictions *p, const cli_samples *s, int64_t begin, int64_t i) {
    for (int c = 0; c < s->column_count; c++) {
        const char *text = an_cells_get(s->cells, begin + i, c);
        if (text && *text) write_text(p->file, "", text);
        putc(',', p->file);
    }
    if (!s->has_classes) return;
    write_text(p->file, "", cli_samples_class(s, i));
    putc(',', p->file);
}

static void write_numbers(const cli_predictions *p, const void *outputs, int64_t sample) {
    const int digits = p->dtype == AN_DTYPE_F64 ? 17 : 9; /* they read back to the same bits */
    for (int64_t i = 0; i < p->elements; i++)
        fprintf(p->file, "%s%.*g", i ? "," : "", digits, number_at(p, outputs, sample * p->elements + i));
    putc('\n', p->file);
}

static void write_labels(const cli_predictions *p, const void *outputs, int64_t sample) {
    for (int64_t i = 0; i < p->elements; i++)
        fprintf(p->file, "%s%.6g", i ? "," : "", 1 / (1 + exp(-number_at(p, outputs, sample * p->elements + i))));
    putc('\n', p->file);
}

/* More than one class for a sample is a line for each of them. */
static void write_classes(const cli_predictions *p, const cli_samples *s, const void *outputs, int64_t first,
                          int64_t sample) {
    for (int64_t begin = sample * p->elements; begin < (sample + 1) * p->elements; begin += p->classes) {
        const distribution d = distribution_of(p, outputs, begin);
        write_kept(p, s, first, sample);
        write_class(p, "", d.best);
        for (int64_t i = 0; i < p->classes; i++) fprintf(p->file, ",%.6g", probability(p, &d, outputs, begin + i));
        putc('\n', p->file);
    }
}

/* The token that follows number i of a sample; -1: not known. */
static int32_t next_token(const cli_samples *s, const int32_t *tokens, int64_t sample, int64_t i) {
    const int64_t context = s->elements;
    if (an_dataset_field_count(s->dataset) > 1) return ((const int32_t *)s->fields[1])[sample * context + i];
    return i + 1 < context ? tokens[sample * context + i + 1] : -1;
}

static void write_tokens(const cli_predictions *p, const cli_samples *s, const int32_t *tokens, const void *outputs,
                         int64_t begin, int64_t sample) {
    const int64_t context = s->elements;
    for (int64_t i = 0; i < context; i++) {
        const int64_t number = (begin + sample) * context + i, at = sample * p->elements + i * p->classes;
        if (s->token_count && number >= s->token_count) return; /* what the last sample was filled up with */
        const distribution d = distribution_of(p, outputs, at);
        fprintf(p->file, "%lld,%lld,%d,", (long long)begin + sample, (long long)i, (int)tokens[sample * context + i]);
        const int32_t next = next_token(s, tokens, sample, i);
        if (next >= 0 && next < p->classes)
            fprintf(p->file, "%d,%.6g", (int)next, probability(p, &d, outputs, at + next));
        else
            putc(',', p->file);
        fprintf(p->file, ",%lld,%.6g\n", (long long)d.best, 1 / d.sum);
    }
}

void cli_predictions_write(const cli_predictions *predictions, const cli_samples *samples, int64_t begin, int64_t n,
                           const void *inputs, const void *outputs) {
    const cli_predictions *p = predictions;
    if (p->numpy) {
        fwrite(outputs, an_dtype_size(p->dtype), (size_t)(n * p->elements), p->file);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (p->kind == CLI_NUMBERS || p->kind == CLI_LABELS) write_kept(p, samples, begin, i);
        if (p->kind == CLI_NUMBERS)
            write_numbers(p, outputs, i);
        else if (p->kind == CLI_LABELS)
            write_labels(p, outputs, i);
        else if (p->kind == CLI_CLASSES)
            write_classes(p, samples, outputs, begin, i);
        else
            write_tokens(p, samples, inputs, outputs, begin, i);
    }
}

/* ---- known classes ---- */

static bool has_class(const cli_predictions *p, const char *name) {
    int64_t i = 0;
    while (i < p->classes && strcmp(an_encoding_class(p->encoding, i), name) != 0) i++;
    return i < p->classes;
}

void cli_predictions_compare(cli_predictions *predictions, const cli_samples *samples, int64_t n, const void *outputs) {
    cli_predictions *p = predictions;
    const bool named = p->encoding && an_encoding_class(p->encoding, p->classes - 1);
    if (!samples->has_classes || p->kind != CLI_CLASSES || p->elements != p->classes || !named) return;
    for (int64_t i = 0; i < n; i++) {
        const char *known = cli_samples_class(samples, i);
        const int64_t best = distribution_of(p, outputs, i * p->classes).best;
        const bool is_class = has_class(p, known);
        p->known += is_class;
        p->unknown += !is_class;
        p->right += is_class && !strcmp(an_encoding_class(p->encoding, best), known);
    }
}
