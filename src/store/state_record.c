#include "store/state_record.h"

#include <string.h>

/* COUNT: 0 … MOST_COUNT, so that going on counting never wraps; INTEGER: any. */
typedef enum { COUNT, INTEGER, REAL, BOOL, HASH } kind;
#define MOST_COUNT ((int64_t)1 << 62)

#define ROW(kind, member, name) \
    { kind, offsetof(an_progress, member), name }

/* Everything that is written, once: writer and reader cannot drift. */
static const struct {
    kind kind;
    size_t offset;
    const char *name;
} rows[] = {
    ROW(INTEGER, steps, "steps"),
    ROW(INTEGER, schedule_steps, "schedule_steps"),
    ROW(COUNT, step, "step"),
    ROW(COUNT, updates, "updates"),
    ROW(COUNT, schedule_step, "schedule_step"),
    ROW(COUNT, taken, "taken"),
    ROW(COUNT, skips, "skips"),
    ROW(REAL, scale, "scale"),
    ROW(COUNT, good_steps, "good_steps"),
    ROW(HASH, chain, "chain"),
    ROW(INTEGER, evaluated, "evaluated"),
    ROW(BOOL, has_best, "has_best"),
    ROW(COUNT, best_step, "best_step"),
    ROW(REAL, best_value, "best_value"),
    ROW(BOOL, has_patient, "has_patient"),
    ROW(REAL, patient_value, "patient_value"),
    ROW(COUNT, without, "without"),
    ROW(COUNT, last.step, "last_step"),
    ROW(REAL, last.loss, "loss"),
    ROW(REAL, last.rate, "lr"),
    ROW(REAL, last.norm, "grad_norm"),
    ROW(REAL, last.scale, "last_scale"),
    ROW(COUNT, last.targets, "targets"),
    ROW(COUNT, last.samples, "samples"),
    ROW(BOOL, last.skipped, "skipped"),
    ROW(COUNT, evaluation.samples, "val_samples"),
    ROW(COUNT, evaluation.targets, "val_targets"),
    ROW(REAL, evaluation.loss, "val_loss"),
    ROW(REAL, evaluation.perplexity, "val_perplexity"),
    ROW(BOOL, evaluation.classifies, "val_classifies"),
    ROW(REAL, evaluation.accuracy, "val_accuracy"),
    ROW(REAL, evaluation.top5, "val_top5"),
    ROW(BOOL, evaluation.measures, "val_measures"),
    ROW(REAL, evaluation.mean_absolute_error, "val_mae"),
    ROW(REAL, evaluation.r2, "val_r2"),
    ROW(REAL, evaluation.seconds, "val_seconds"),
    ROW(BOOL, has_user_step, "has_user_step"),
    ROW(INTEGER, user_step, "user_step"),
    ROW(REAL, seconds, "seconds"),
    /* those of later versions: absent, where they are 0 */
    ROW(COUNT, skips_in_row, "skips_in_row"),
    ROW(BOOL, evaluation.counts_classes, "val_counts_classes"),
    ROW(REAL, evaluation.precision, "val_precision"),
    ROW(REAL, evaluation.recall, "val_recall"),
    ROW(REAL, evaluation.f1, "val_f1"),
    ROW(BOOL, evaluation.scores_classes, "val_scores_classes"),
    ROW(REAL, evaluation.auc, "val_auc"),
    ROW(REAL, epoch_loss, "epoch_loss_sum"),
    ROW(COUNT, epoch_targets, "epoch_targets"),
    ROW(REAL, line_loss, "line_loss_sum"),
    ROW(COUNT, line_targets, "line_targets"),
    ROW(COUNT, last.epoch, "epoch"),
    ROW(REAL, last.epoch_loss, "epoch_loss"),
    ROW(BOOL, last.ends_epoch, "ends_epoch"),
    ROW(BOOL, evaluation.counts_right, "val_counts_right"),
    ROW(BOOL, chains_right, "chains_right"),
    ROW(BOOL, evaluation.prefers, "val_prefers"),
    ROW(REAL, evaluation.margin, "val_margin"),
};
enum { ROWS = sizeof rows / sizeof *rows, LATER = 18, NEEDED = ROWS - LATER };

/* The one member that is no single value: an object of the program's own metrics, absent where there are none. */
static const char own_name[] = "own_metrics";

an_progress an_progress_start(void) {
    return (an_progress){
        .evaluated = -1, .last = {.size = sizeof(an_step_metrics)}, .evaluation = {.size = sizeof(an_evaluation)}};
}

/* ---- hashes ---- */

void an_hash_write(char digits[AN_HASH_DIGITS], const uint64_t hash[2]) {
    for (int i = 0; i < AN_HASH_DIGITS; i++) digits[i] = "0123456789abcdef"[hash[i < 16] >> (60 - i % 16 * 4) & 15U];
}

bool an_hash_read(const char *digits, size_t length, uint64_t hash[2]) {
    if (length != AN_HASH_DIGITS) return false;
    hash[0] = hash[1] = 0;
    for (int i = 0; i < AN_HASH_DIGITS; i++) {
        const char c = digits[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
        hash[i < 16] = hash[i < 16] << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

/* ---- writing ---- */

/* JSON has no numbers that are not finite; as texts they come back as what they were. */
static void write_real(an_json_writer *json, const char *key, double value) {
    char digits[32];
    an_text_number(digits, sizeof digits, value);
    if (__builtin_isfinite(value))
        an_json_write_real(json, key, value);
    else
        an_json_write_string(json, key, digits);
}

static void write_own(an_json_writer *json, const an_own_metrics *own) {
    if (own->count == 0) return;
    an_json_write_object(json, own_name);
    for (int64_t i = 0; i < own->count; i++) write_real(json, own->items[i].name, own->items[i].value);
    an_json_write_end(json);
}

/* Whether a member of a later version is as it is without that version. */
static bool is_absent(int row, const char *at) {
    if (row < NEEDED) return false;
    return rows[row].kind == BOOL ? !*(const bool *)at : *(const int64_t *)at == 0;
}

void an_progress_write(an_json_writer *json, const an_progress *progress) {
    for (int i = 0; i < ROWS; i++) {
        const char *at = (const char *)progress + rows[i].offset, *name = rows[i].name;
        char digits[AN_HASH_DIGITS + 1] = "";
        if (is_absent(i, at)) continue;
        switch (rows[i].kind) {
        case COUNT:
        case INTEGER: an_json_write_integer(json, name, *(const int64_t *)at); break;
        case REAL: write_real(json, name, *(const double *)at); break;
        case BOOL: an_json_write_bool(json, name, *(const bool *)at); break;
        case HASH:
            an_hash_write(digits, (const uint64_t *)at);
            an_json_write_string(json, name, digits);
            break;
        }
    }
    write_own(json, &progress->own);
}

/* ---- reading ---- */

static bool refuse(an_json *json, const char *problem) {
    return an_json_refuse(json, json->at, problem);
}

static bool is_text(const an_json *json) {
    size_t at = json->at;
    while (at < json->length && json->text[at] && strchr(" \t\r\n", json->text[at])) at++;
    return at < json->length && json->text[at] == '"';
}

static bool read_real(an_json *json, double *value) {
    an_json_string word;
    if (!is_text(json)) return an_json_real(json, value);
    if (!an_json_string_value(json, &word)) return false;
    if (!strcmp(word.bytes, "nan"))
        *value = __builtin_nan("");
    else if (!strcmp(word.bytes, "inf"))
        *value = __builtin_inf();
    else if (!strcmp(word.bytes, "-inf"))
        *value = -__builtin_inf();
    else
        return refuse(json, "a number was expected");
    return true;
}

bool an_json_hash(an_json *json, uint64_t hash[2]) {
    an_json_string digits;
    if (!an_json_string_value(json, &digits)) return false;
    return an_hash_read(digits.bytes, digits.length, hash) || refuse(json, "a hash of 32 digits was expected");
}

static bool read_row(an_json *json, int row, an_progress *progress) {
    char *at = (char *)progress + rows[row].offset;
    switch (rows[row].kind) {
    case COUNT:
        return an_json_count(json, (int64_t *)at) &&
               (*(int64_t *)at <= MOST_COUNT || refuse(json, "a number of the state is out of range"));
    case INTEGER: return an_json_integer(json, (int64_t *)at);
    case REAL: return read_real(json, (double *)at);
    case BOOL: return an_json_bool(json, (bool *)at);
    case HASH: return an_json_hash(json, (uint64_t *)at);
    }
    return false;
}

static bool read_own(an_json *json, an_own_metrics *own) {
    enum { PREFIX = sizeof AN_METRIC_PREFIX - 1 };
    an_json_string key;
    if (!an_json_object(json)) return false;
    while (an_json_member(json, &key)) {
        double value = 0;
        if (strncmp(key.bytes, AN_METRIC_PREFIX, PREFIX) != 0 || !an_added_is_name(key.bytes + PREFIX))
            return refuse(json, "a metric of the program has no name of one");
        for (int64_t i = 0; i < own->count; i++)
            if (!strcmp(own->items[i].name, key.bytes)) return refuse(json, "a metric is there twice");
        if (own->count == AN_MOST_OWN_METRICS) return refuse(json, "there are too many metrics of the program");
        if (!read_real(json, &value)) return false;
        an_own_metric *metric = &own->items[own->count++];
        memcpy(metric->name, key.bytes, strlen(key.bytes) + 1);
        metric->value = value;
    }
    return !json->problem;
}

bool an_progress_read(an_json *json, an_progress *progress) {
    bool has_own = false;
    uint64_t seen = 0;
    an_json_string key;
    *progress = an_progress_start();
    if (!an_json_object(json)) return false;
    while (an_json_member(json, &key)) {
        int row = 0;
        while (row < ROWS && strcmp(rows[row].name, key.bytes) != 0) row++;
        if (row == ROWS && !strcmp(key.bytes, own_name)) {
            if (has_own) return refuse(json, "a member of the state is there twice");
            has_own = true;
            if (!read_own(json, &progress->own)) return false;
            continue;
        }
        if (row == ROWS) {
            if (!an_json_skip(json)) return false;
            continue;
        }
        if (seen >> row & 1U) return refuse(json, "a member of the state appears twice");
        seen |= UINT64_C(1) << row;
        if (!read_row(json, row, progress)) return false;
    }
    if (json->problem) return false;
    const uint64_t needed = (UINT64_C(1) << NEEDED) - 1;
    if ((seen & needed) != needed) return refuse(json, "a member of the state is missing");
    if (progress->steps < progress->step) return refuse(json, "a number of the state is out of range");
    return true;
}
