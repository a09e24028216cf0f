/* Fuzzes configs: a text, and after each of the first MOST_SETTINGS bytes 0xff a setting. What is wrong is refused
 * with a place and without a leak; what is right is written, read and written again to the same text, also with
 * remarks. That costs many times what reading does, so that one input in SHARE has it, chosen by its bytes, and those
 * with which a process begins: seeds, and an input that is tried alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SHARE = 16, FIRST = 64, MOST_SETTINGS = 4 };

static an_context *context;

static void refuse(const char *what, const char *text) {
    fprintf(stderr, "fuzz_config: %s\n%s\n%s\n", what, an_last_error(context), text);
    abort();
}

/* A refusal begins with the place in the file, or with the setting. */
static void check_place(void) {
    const char *message = an_last_error(context);
    char *end;
    if (!strncmp(message, "--set ", 6)) return;
    if (strncmp(message, "f.yaml:", 7) != 0) refuse("an error without a place", "");
    const long line = strtol(message + 7, &end, 10), column = *end == ':' ? strtol(end + 1, &end, 10) : 0;
    if (line < 1 || column < 1 || strncmp(end, ": ", 2) != 0) refuse("an error without a line", "");
}

static an_config *read_again(const char *text) {
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_config *config = NULL;
    options.file = "f.yaml";
    options.text = text;
    options.length = strlen(text);
    if (an_config_create(&config, context, &options)) refuse("what was written cannot be read", text);
    return config;
}

static void round_trip(const an_config *config) {
    char *first = NULL, *shown = NULL, *second = NULL;
    if (an_config_write(config, &first) || an_config_show(config, &shown)) refuse("a config cannot be written", "");
    const char *const texts[] = {first, shown};
    for (int i = 0; i < 2; i++) {
        an_config *again = read_again(texts[i]);
        if (an_config_write(again, &second)) refuse("a config cannot be written again", "");
        if (strcmp(first, second) != 0) refuse(first, second);
        an_string_release(context, &second);
        an_config_destroy(&again);
    }
    an_string_release(context, &first);
    an_string_release(context, &shown);
}

static bool is_chosen(const uint8_t *data, size_t size) {
    static int count;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 16777619u;
    if (count < FIRST) return ++count;
    return (hash ^ hash >> 16) % SHARE == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    an_context_options context_options;
    an_context_options_init(&context_options, sizeof context_options);
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_config *config = NULL;
    context_options.threads = 1;
    an_config_key key; /* the context keeps the table of options from the first look at it on */
    an_config_key_init(&key, sizeof key);
    if (!context && (an_context_create(&context, &context_options) || an_config_key_get(context, 0, &key))) abort();
    const size_t bytes = an_context_bytes(context);
    const bool chosen = is_chosen(data, size);
    const uint8_t *mark = size ? memchr(data, 0xff, size) : NULL;
    options.file = "f.yaml";
    options.text = size ? (const char *)data : "";
    options.length = mark ? (size_t)(mark - data) : size;
    if (an_config_create(&config, context, &options) == AN_OK) {
        for (int i = 0; mark && i < MOST_SETTINGS; i++) {
            const uint8_t *begin = mark + 1;
            const size_t left = (size_t)(data + size - begin);
            mark = left ? memchr(begin, 0xff, left) : NULL;
            const size_t length = mark ? (size_t)(mark - begin) : left;
            char *setting = calloc(length + 1, 1);
            if (!setting) abort();
            if (length) memcpy(setting, begin, length);
            if (an_config_set(config, setting)) check_place();
            free(setting);
        }
        if (chosen) round_trip(config);
    } else {
        check_place();
    }
    an_config_destroy(&config);
    if (an_context_bytes(context) != bytes) refuse("memory was not given back", "");
    return 0;
}
