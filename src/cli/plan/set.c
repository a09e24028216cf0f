/* --set KEY=VALUE for presets and graphs: the keys of a config that affect their plan. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/settings.h"
#include "cli/plan/report.h"

typedef struct setting {
    const char *key;
    size_t offset;     /* of its member in cli_settings */
    bool of_model;     /* for presets only: a graph in a file has its sizes */
    const char *wants; /* what a value is, for the message */
    bool (*take)(const struct setting *setting, const char *value, cli_settings *settings);
} setting;

static bool parse_count(const char *text, int64_t *number) {
    char *end;
    errno = 0;
    const long long parsed = strtoll(text, &end, 10);
    if (end == text || *end || errno || parsed < 1) return false;
    *number = parsed;
    return true;
}

/* "6GiB", "500MB", "1000" */
static bool parse_size(const char *text, int64_t *bytes) {
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1},      {"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                 {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    char *end;
    const double number = strtod(text, &end);
    if (end == text || !(number > 0)) return false;
    while (*end == ' ') end++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(units[i].name, end) != 0 || number * units[i].factor >= 0x1p62) continue;
        *bytes = (int64_t)(number * units[i].factor);
        return *bytes > 0;
    }
    return false;
}

static bool take_count(const setting *s, const char *value, cli_settings *settings) {
    return parse_count(value, (int64_t *)(void *)((char *)settings + s->offset));
}

static bool take_share(const setting *s, const char *value, cli_settings *settings) {
    char *end;
    const double share = strtod(value, &end);
    if (end == value || *end || !(share >= 0 && share < 1)) return false;
    *(double *)(void *)((char *)settings + s->offset) = share;
    return true;
}

/* What an option has too is checked where the option is. */
static bool take_option(const setting *s, const char *value, cli_settings *settings) {
    *(const char **)(void *)((char *)settings + s->offset) = value;
    return true;
}

/* A name, or {segments: N} or {budget: SIZE} as YAML writes them; the braces may be left out. */
static bool take_recompute(const setting *s, const char *value, cli_settings *settings) {
    static const char *const names[] = {"none", "block", "full"};
    char text[64];
    (void)s;
    for (int i = 0; i < 3; i++)
        if (!strcmp(value, names[i])) {
            settings->recompute = (an_recompute)(AN_RECOMPUTE_NONE + i);
            return true;
        }
    if (snprintf(text, sizeof text, "%s", *value == '{' ? value + 1 : value) >= (int)sizeof text) return false;
    if (*value == '{') {
        if (text[strlen(text) - 1] != '}') return false;
        text[strlen(text) - 1] = 0;
    }
    char *argument = strchr(text, ':');
    if (!argument) return false;
    *argument++ = 0;
    argument += strspn(argument, " ");
    const char *name = text + strspn(text, " ");
    if (!strcmp(name, "segments") && parse_count(argument, &settings->segments)) {
        settings->recompute = AN_RECOMPUTE_SEGMENTS;
        return settings->segments <= INT32_MAX;
    }
    settings->recompute = AN_RECOMPUTE_BUDGET;
    return !strcmp(name, "budget") && parse_size(argument, &settings->budget);
}

#define MODEL(name) offsetof(cli_settings, model.name), true
static const setting settings_table[] = {
    {AN_SETTING(train.recompute), 0, false, "none, block, full, {segments: N} or {budget: SIZE}", take_recompute},
    {AN_SETTING(train.precision), offsetof(cli_settings, precision), false, "f32, f64, bf16 or f16", take_option},
    {AN_SETTING(batch.micro), offsetof(cli_settings, batch), false, "a whole number of at least 1", take_option},
    {AN_SETTING(model.layers), MODEL(layers), "a whole number of at least 1", take_count},
    {AN_SETTING(model.heads), MODEL(heads), "a whole number of at least 1", take_count},
    {AN_SETTING(model.width), MODEL(width), "a whole number of at least 1", take_count},
    {AN_SETTING(model.context), MODEL(context), "a whole number of at least 1", take_count},
    {AN_SETTING(model.vocabulary), MODEL(vocabulary), "a whole number of at least 1", take_count},
    {AN_SETTING(model.dropout), MODEL(dropout), "a number of at least 0 and less than 1", take_share},
};
enum { SETTINGS = sizeof settings_table / sizeof *settings_table };

static int take(const cli_call *call, const char *given, bool is_preset, cli_settings *settings) {
    const char *names[SETTINGS + 1] = {NULL}, *value = strchr(given, '=');
    char key[64];
    if (!value) return cli_misuse(call, "--set takes KEY=VALUE, not '%s'", given);
    snprintf(key, sizeof key, "%.*s", (int)(value - given), given);
    for (int i = 0; i < SETTINGS; i++) {
        const setting *s = &settings_table[i];
        names[i] = s->key;
        if (strcmp(s->key, key) != 0) continue;
        if (s->of_model && !is_preset)
            return cli_misuse(call, "--set %s: the sizes of a graph in a file are fixed; only presets can be changed",
                              key);
        if (s->take(s, value + 1, settings)) return CLI_DONE;
        return cli_misuse(call, "--set %s takes %s, not '%s'", key, s->wants, value + 1);
    }
    return cli_misuse(call, "--set: unknown key '%s'%s", key, cli_did_you_mean("", key, names).text);
}

int cli_set(const cli_call *call, bool is_preset, cli_settings *settings) {
    for (int i = 0; i < call->set_count; i++)
        if (take(call, call->sets[i], is_preset, settings) != CLI_DONE) return CLI_MISUSED;
    return CLI_DONE;
}
