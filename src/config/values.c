/* Parses values with units: "3h50m", "6GiB", "300M tokens", "0%..90%". Strict, and the same in every locale. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/added.h"
#include "base/text/nearest.h"
#include "base/word.h"
#include "config/config.h"

static const char *skip_digits(const char *at) {
    while (an_is_digit(*at)) at++;
    return at;
}

static const char *skip_spaces(const char *at) {
    while (*at == ' ') at++;
    return at;
}

/* ---- numbers ---- */

enum { LONGEST_NUMBER = 64 };

/* The end of the number [+-]1.5e-3 that the text begins with; NULL: it begins with none. */
static const char *skip_number(const char *text) {
    const char *at = text + (*text == '+' || *text == '-'), *digits = at;
    at = skip_digits(at);
    bool some = at > digits;
    if (*at == '.' && (some || an_is_digit(at[1])) && at[1] != '.') {
        const char *fraction = at + 1;
        at = skip_digits(fraction);
        some |= at > fraction;
    }
    if (!some) return NULL;
    if (*at == 'e' || *at == 'E') {
        const char *exponent = at + 1 + (at[1] == '+' || at[1] == '-');
        if (an_is_digit(*exponent)) at = skip_digits(exponent);
    }
    return at - text > LONGEST_NUMBER ? NULL : at;
}

/* A finite number at *text, which is moved behind it. */
static bool take_number(const char **text, double *value) {
    const char *end = skip_number(*text);
    if (!end) return false;
    *value = an_text_double(*text, (size_t)(end - *text));
    *text = end;
    return isfinite(*value);
}

bool an_read_real(const char *text, double *value) {
    return take_number(&text, value) && *text == 0;
}

typedef struct {
    const char *name;
    double factor;
} unit;

static const unit thousands[] = {{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"B", 1e9}, {"T", 1e12}, {NULL, 0}};

/* The unit that a text begins with, as long as possible; the place behind it. */
static const unit *take_unit(const char **text, const unit *units) {
    const unit *found = NULL;
    size_t longest = 0;
    for (const unit *u = units; u->name; u++) {
        const size_t length = strlen(u->name);
        if (length <= longest || strncmp(*text, u->name, length) != 0) continue;
        found = u;
        longest = length;
    }
    *text += longest;
    return found;
}

/* 12, 50k, 1.5M, 1e6 at *text. Digits alone are exact to the last. */
static bool take_count(const char **text, int64_t *value) {
    const double exact = 0x1p53; /* beyond it not every whole number is a double */
    const char *end = skip_digits(*text);
    double number;
    int64_t whole = 0;
    if (end > *text && *end != '.' && *end != 'e' && *end != 'E') {
        for (const char *c = *text; c < end; c++)
            if (!an_multiply_i64(whole, 10, &whole) || !an_add_i64(whole, *c - '0', &whole)) return false;
        *text = end;
        const unit *u = take_unit(text, thousands);
        *value = whole;
        return !u || an_multiply_i64(whole, (int64_t)u->factor, value);
    }
    if (!take_number(text, &number)) return false;
    const unit *u = take_unit(text, thousands);
    if (u) number *= u->factor;
    if (!(number >= -exact && number <= exact) || number != (double)(int64_t)number) return false;
    *value = (int64_t)number;
    return true;
}

bool an_read_count(const char *text, int64_t *value) {
    if (*text == '-') {
        text++;
        if (!an_is_digit(*text) || !take_count(&text, value) || *text) return false;
        *value = -*value;
        return true;
    }
    return take_count(&text, value) && *text == 0;
}

/* 3% at *text. */
static bool take_percent(const char **text, double *value) {
    const double hundred = 100;
    const char *at = *text;
    if (!take_number(&at, value)) return false;
    at = skip_spaces(at);
    if (*at != '%') return false;
    *value /= hundred;
    *text = at + 1;
    return true;
}

bool an_read_share(const char *text, double *value) {
    const char *at = text;
    return (take_percent(&at, value) && *at == 0) || an_read_real(text, value);
}

bool an_read_range(const char *text, double *begin, double *end) {
    if (!take_percent(&text, begin)) return false;
    text = skip_spaces(text);
    if (strncmp(text, "..", 2) != 0) return false;
    text = skip_spaces(text + 2);
    return take_percent(&text, end) && *text == 0 && *begin >= 0 && *begin < *end && *end <= 1;
}

bool an_read_bool(const char *text, bool *value) {
    *value = !strcmp(text, "on") || !strcmp(text, "true");
    return *value || !strcmp(text, "off") || !strcmp(text, "false");
}

bool an_read_bytes(const char *text, int64_t *value) {
    static const unit units[] = {{"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
                                 {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {NULL, 0}};
    double number;
    if (!take_number(&text, &number)) return false;
    text = skip_spaces(text);
    const unit *u = take_unit(&text, units);
    if (u) number *= u->factor;
    if (*text || !(number >= 0 && number < 0x1p62)) return false;
    *value = (int64_t)number;
    return true;
}

bool an_read_seconds(const char *text, double *value) {
    static const unit units[] = {{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"m", 60}, {"h", 3600}, {"d", 86400}, {NULL, 0}};
    const double longest = 1e10; /* some centuries: what is written there is no time */
    double before = (double)INFINITY;
    *value = 0;
    do { /* each unit smaller than the one before: 3h50m, and not 50m3h */
        double number;
        if (!an_is_digit(*text) || !take_number(&text, &number)) return false;
        text = skip_spaces(text);
        const unit *u = take_unit(&text, units);
        if (!u || u->factor >= before) return false;
        before = u->factor;
        *value += number * u->factor;
        text = skip_spaces(text);
    } while (*text);
    return *value <= longest;
}

/* ---- lengths ---- */

static const char *const length_names[] = {
    [AN_LENGTH_STEPS] = "steps",     [AN_LENGTH_EPOCHS] = "epochs", [AN_LENGTH_TOKENS] = "tokens",
    [AN_LENGTH_SAMPLES] = "samples", [AN_LENGTH_SHARE] = "share",   [AN_LENGTH_TIME] = "time",
};

const char *an_length_unit_name(an_length_unit unit_) {
    return length_names[unit_];
}

/* "steps", "step" or, for a bare number, the first of those that are allowed. */
static bool find_unit(const char *word, const char *units, an_length_unit *found) {
    for (int i = AN_LENGTH_STEPS; i <= AN_LENGTH_SAMPLES; i++) {
        const size_t length = strlen(length_names[i]);
        const bool first = !*word && !strncmp(units, length_names[i], length);
        const bool one = !strncmp(word, length_names[i], length - 1) && word[length - 1] == 0;
        *found = (an_length_unit)i;
        if (first || one || !strcmp(word, length_names[i])) return true;
    }
    return false;
}

bool an_read_length(const char *text, const char *units, an_length *length) {
    const char *at = text;
    int64_t count;
    double number;
    *length = (an_length){.unit = AN_LENGTH_SHARE};
    if (take_percent(&at, &length->amount) && *at == 0)
        return an_words_have(units, "share") && length->amount >= 0 && length->amount <= 1;
    length->unit = AN_LENGTH_TIME;
    if (an_read_seconds(text, &length->amount)) return an_words_have(units, "time");
    at = text;
    if (take_count(&at, &count) && find_unit(skip_spaces(at), units, &length->unit)) {
        length->amount = (double)count;
        return count >= 0 && an_words_have(units, length_names[length->unit]);
    }
    /* half an epoch is the only part that means something */
    if (!take_number(&text, &number) || number < 0) return false;
    length->amount = number;
    return find_unit(skip_spaces(text), units, &length->unit) && length->unit == AN_LENGTH_EPOCHS &&
           an_words_have(units, "epochs");
}

bool an_read_first_samples(const char *text, int64_t *value) {
    an_length length;
    if (!strncmp(text, "first ", 6)) text = skip_spaces(text + 6);
    if (!an_read_length(text, "samples", &length)) return false;
    *value = (int64_t)length.amount;
    return true;
}

/* ---- what values mean ---- */

typedef struct {
    int64_t whole;
    double number, end;
} meaning;

/* False: it means its text. */
static bool read_meaning(const an_option *o, const char *text, meaning *m) {
    an_length length;
    bool on;
    switch (o->kind) {
    case AN_OPTION_COUNT:
    case AN_OPTION_COUNTS:
    case AN_OPTION_COUNT_MAP: return an_read_count(text, &m->whole);
    case AN_OPTION_REAL:
    case AN_OPTION_REALS:
    case AN_OPTION_NAMED_REALS:
    case AN_OPTION_REAL_MAP: return an_read_real(text, &m->number);
    case AN_OPTION_SHARE: return an_read_share(text, &m->number);
    case AN_OPTION_BYTES: return an_read_bytes(text, &m->whole);
    case AN_OPTION_DURATION: return an_read_seconds(text, &m->number);
    case AN_OPTION_RANGE: return an_read_range(text, &m->number, &m->end);
    case AN_OPTION_FIRST_SAMPLES: return an_read_first_samples(text, &m->whole);
    case AN_OPTION_BOOL:
        if (!an_read_bool(text, &on)) return false;
        m->whole = on;
        return true;
    case AN_OPTION_LENGTH:
    case AN_OPTION_LENGTHS:
        if (!an_read_length(text, o->units, &length)) return false;
        m->whole = (int64_t)length.unit;
        m->number = length.amount;
        return true;
    default: return false;
    }
}

bool an_option_same(const an_option *option, const char *a, const char *b) {
    meaning m = {0}, n = {0};
    if (!strcmp(a, b)) return true;
    if (an_words_have(option->words, a) || an_words_have(option->words, b)) return false; /* a word is itself */
    return read_meaning(option, a, &m) && read_meaning(option, b, &n) && m.whole == n.whole && m.number == n.number &&
           m.end == n.end;
}

/* ---- a value of an option ---- */

/* The number that limits are held against; false: it is no value of that kind. */
static bool read_value(const an_option *o, const char *text, double *number) {
    int64_t count = 0;
    bool flag;
    double begin, end;
    an_length length;
    *number = o->minimum;
    switch (o->kind) {
    case AN_OPTION_COUNT:
    case AN_OPTION_COUNTS:
    case AN_OPTION_COUNT_MAP:
        if (!an_read_count(text, &count)) return false;
        *number = (double)count;
        return true;
    case AN_OPTION_FIRST_SAMPLES:
        if (!an_read_first_samples(text, &count)) return false;
        *number = (double)count;
        return true;
    case AN_OPTION_BYTES:
        if (!an_read_bytes(text, &count)) return false;
        *number = (double)count;
        return true;
    case AN_OPTION_REAL:
    case AN_OPTION_REALS:
    case AN_OPTION_NAMED_REALS:
    case AN_OPTION_REAL_MAP: return an_read_real(text, number);
    case AN_OPTION_SHARE: return an_read_share(text, number);
    case AN_OPTION_BOOL: return an_read_bool(text, &flag);
    case AN_OPTION_LENGTH:
    case AN_OPTION_LENGTHS:
        if (!an_read_length(text, o->units, &length)) return false;
        *number = length.amount;
        return true;
    case AN_OPTION_DURATION: return an_read_seconds(text, &end);
    case AN_OPTION_RANGE: return an_read_range(text, &begin, &end);
    case AN_OPTION_CHOICE: return false; /* the words were all */
    case AN_OPTION_STRINGS: return !*o->words || !strcmp(o->words, "auto");
    default: return *text != 0;
    }
}

/* ", or 'mine' of this program": the names that it has added. */
typedef struct {
    char text[256];
} added_text;

static added_text list_added(const an_config *config, const an_option *o, an_nearest *nearest) {
    added_text out = {""};
    size_t used = 0;
    const an_added_kind kind = o->added == AN_NAMES_OPTIMIZERS ? AN_ADDED_OPTIMIZER : AN_ADDED_METRIC;
    const an_added *item;
    for (int i = 0; o->added && (item = an_added_at(config->ctx, kind, i)) && used < sizeof out.text; i++) {
        an_nearest_consider(nearest, item->name, strlen(item->name));
        used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%s%s", i ? ", " : ", or of this program ",
                                 o->added == AN_NAMES_REPORTED ? "val_" : "", item->name);
    }
    return out;
}

static an_status refuse(an_config *config, const an_option *o, const an_config_node *node, const char *path) {
    an_nearest nearest;
    an_nearest_init(&nearest, node->text, strlen(node->text));
    const an_words_text words = an_option_words(o);
    for (const char *at = words.text; *at;) {
        const size_t here = strcspn(at, "|");
        an_nearest_consider(&nearest, at, here);
        at += here + (at[here] == '|');
    }
    const added_text added = list_added(config, o, &nearest);
    return AN_ERROR(config->ctx, AN_ERR_PARSE, "%s: %s is '%s'; it takes %s%s%s", AN_SPOT(node->place), path,
                    AN_QUOTE(node->text), an_option_wants(o).text, added.text, AN_NEAREST(&nearest));
}

/* An option that nothing obeys has its default: whoever gives it another value expects something to happen. */
static an_status check_supported(an_config *config, const an_option *o, const an_config_node *node, const char *path) {
    const char *usual = an_option_default(o);
    if (!o->unsupported || node->origin == AN_ORIGIN_DEFAULT) return AN_OK;
    if (*o->unsupported) {
        if (!an_words_have(o->unsupported, node->text)) return AN_OK;
        return AN_ERROR(config->ctx, AN_ERR_UNSUPPORTED, "%s: %s is '%s', which is not supported yet; it takes %s",
                        AN_SPOT(node->place), path, node->text, an_option_wants(o).text);
    }
    if (usual && an_option_same(o, node->text, usual)) return AN_OK;
    return AN_ERROR(config->ctx, AN_ERR_UNSUPPORTED, "%s: %s is not supported yet; remove it", AN_SPOT(node->place),
                    path);
}

an_status an_option_check(an_config *config, const an_option *o, const an_config_node *node, const char *path) {
    an_context *ctx = config->ctx;
    double number = 0;
    if (an_option_is_added(config, o, node->text)) return AN_OK; /* a program may call its own as other tools do */
    AN_TRY_RETURN(an_config_other_value(config, o, node, path));
    AN_TRY_RETURN(check_supported(config, o, node, path));
    const bool is_path = an_option_is_path(o);
    if (is_path && node->text[0] == '~' && !config->stored)
        return AN_ERROR(
            ctx, AN_ERR_PARSE,
            "%s: %s is '%s', but ~ is expanded only by a shell; write the full path (or ./~ for a file of that name)",
            AN_SPOT(node->place), path, AN_QUOTE(node->text));
    if (an_words_have(o->words, node->text) && (o->kind == AN_OPTION_CHOICE || !node->quoted)) return AN_OK;
    if (!read_value(o, node->text, &number)) return refuse(config, o, node, path);
    if (number < o->minimum || number > o->maximum || (o->above && number == o->minimum) ||
        (o->below && number == o->maximum))
        return refuse(config, o, node, path);
    return AN_OK;
}
