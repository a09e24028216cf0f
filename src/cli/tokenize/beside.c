/* The tokenizer beside a file of tokens: NAME.tokenizer, a folder as published models have it. A run on the file finds
 * it, so it knows its vocabulary, and prompts can be texts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/regular.h"
#include "base/text/json_write.h"
#include "cli/tokenize/tokenize.h"

static const char config_name[] = "tokenizer_config.json";

static bool fails(char error[TOKENIZE_MESSAGE], const char *path) {
    snprintf(error, TOKENIZE_MESSAGE, "%.800s: cannot be written: %.100s", path, strerror(errno));
    return false;
}

static bool copy_bytes(FILE *from, FILE *to) {
    char bytes[1 << 14];
    size_t count;
    while ((count = fread(bytes, 1, sizeof bytes, from)) > 0)
        if (fwrite(bytes, 1, count, to) != count) return false;
    return !ferror(from);
}

static FILE *create(const char *folder, const char *name, char path[TOKENIZE_PATH]) {
    if (snprintf(path, TOKENIZE_PATH, "%s/%s", folder, name) >= TOKENIZE_PATH) return NULL;
    const int descriptor = an_regular_open(path, O_WRONLY | O_CREAT | O_TRUNC);
    return descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
}

/* A file that is not there is not copied; *copied, which may be NULL, tells. */
static bool copy(const char *from, const char *folder, const char *name, bool *copied, char error[TOKENIZE_MESSAGE]) {
    char path[TOKENIZE_PATH];
    FILE *source = an_regular_read(from);
    if (!source) return true;
    FILE *file = create(folder, name, path);
    const bool good = file && copy_bytes(source, file);
    fclose(source);
    if (!file || fclose(file) != 0 || !good) return fails(error, path);
    if (copied) *copied = true;
    return true;
}

static bool write_end(const char *folder, const char *end, char error[TOKENIZE_MESSAGE]) {
    char path[TOKENIZE_PATH];
    FILE *file = create(folder, config_name, path);
    if (!file) return fails(error, path);
    an_json_writer json = an_json_to_file(file, AN_JSON_LINES);
    an_json_write_object(&json, NULL);
    an_json_write_string(&json, "eos_token", end);
    an_json_write_finish(&json);
    return fclose(file) == 0 || fails(error, path);
}

bool tokenize_put_beside(const char *tokenizer, const char *tokens, const char *end, char error[TOKENIZE_MESSAGE]) {
    static const char *const others[] = {config_name, "special_tokens_map.json", "chat_template.jinja"};
    char folder[TOKENIZE_PATH], from[TOKENIZE_PATH], base[TOKENIZE_PATH];
    struct stat what;
    bool has_config = false;
    const bool is_folder = stat(tokenizer, &what) == 0 && S_ISDIR(what.st_mode);
    const char *slash = strrchr(tokenizer, '/'), *dot = strrchr(tokenizer, '.');
    if (!is_folder && (!dot || strcmp(dot, ".json") != 0)) return true; /* a GGUF file has no such files */
    if (snprintf(folder, sizeof folder, "%s.tokenizer", tokens) >= TOKENIZE_PATH) return true;
    snprintf(base, sizeof base, "%.*s",
             is_folder ? TOKENIZE_PATH - 1
             : slash   ? (int)(slash - tokenizer)
                       : 1,
             is_folder || slash ? tokenizer : ".");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return fails(error, folder);
    snprintf(from, sizeof from, is_folder ? "%.4000s/tokenizer.json" : "%.4000s", tokenizer);
    if (!copy(from, folder, "tokenizer.json", NULL, error)) return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(from, sizeof from, "%.4000s/%s", base, others[i]);
        if (!copy(from, folder, others[i], i == 0 ? &has_config : NULL, error)) return false;
    }
    return has_config || !end || write_end(folder, end, error);
}
