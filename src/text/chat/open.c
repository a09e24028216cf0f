/* Finds the chat template of a folder: the file chat_template.jinja, or the member chat_template of
 * tokenizer_config.json. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/guard.h"
#include "base/text/json.h"
#include "text/chat/chat.h"
#include "text/chat/template.h"

enum { MOST_FILE = 1 << 24 }; /* bytes */

/* The path of a file in a folder, or beside a file. */
static bool find_beside(char file[AN_FILE_PATH], const char *path, const char *name) {
    struct stat what;
    const bool folder = stat(path, &what) == 0 && S_ISDIR(what.st_mode);
    const char *slash = folder ? NULL : strrchr(path, '/');
    if (folder) return an_path_join(file, path, name);
    return snprintf(file, AN_FILE_PATH, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name) < AN_FILE_PATH;
}

/* A list of templates with names: the one called default. */
static bool read_list(an_json *json, an_json_string *text) {
    an_json_string key;
    if (!an_json_array(json)) return false;
    while (an_json_element(json)) {
        an_json_string name = {NULL, 0}, template = {NULL, 0};
        if (!an_json_object(json)) return false;
        while (an_json_member(json, &key))
            if (!strcmp(key.bytes, "name") && an_json_peek(json) == '"')
                an_json_string_value(json, &name);
            else if (!strcmp(key.bytes, "template") && an_json_peek(json) == '"')
                an_json_string_value(json, &template);
            else
                an_json_skip(json);
        if (name.bytes && template.bytes && !strcmp(name.bytes, "default")) *text = template;
    }
    return !json->problem;
}

static void find_template(an_json *json, an_json_string *text) {
    an_json_string key;
    if (!an_json_object(json)) return;
    while (an_json_member(json, &key)) {
        const int first = strcmp(key.bytes, "chat_template") ? 0 : an_json_peek(json);
        if (first == '"')
            an_json_string_value(json, text);
        else if (first == '[')
            read_list(json, text);
        else
            an_json_skip(json);
    }
}

static an_status recognize(an_chat_format *format, an_context *ctx, const char *file, const char *text, char *memory) {
    char message[AN_MESSAGE_BYTES];
    const an_status status = an_chat_recognize(format, ctx, text, memory);
    if (status == AN_OK) return AN_OK;
    snprintf(message, sizeof message, "%s", an_last_error(ctx));
    return AN_ERROR(ctx, status, "%s: %s", file, message);
}

an_status an_chat_template_read(an_context *ctx, const char *path, char file[AN_FILE_PATH], an_text *template) {
    an_status status;
    char *text = NULL;
    size_t length = 0;
    an_json json;
    an_json_string found = {NULL, 0};
    AN_CHECK(ctx, find_beside(file, path, "chat_template.jinja"), AN_ERR_ARGUMENT, "%s: the path is too long", path);
    const bool alone = an_file_exists(file);
    if (!alone)
        AN_CHECK(ctx, find_beside(file, path, "tokenizer_config.json"), AN_ERR_ARGUMENT, "%s: the path is too long",
                 path);
    if (an_file_exists(file)) AN_TRY(an_file_read(ctx, file, MOST_FILE, &text, &length));
    if (alone)
        found = (an_json_string){text, length};
    else if (text) {
        an_json_init(&json, text, length);
        find_template(&json, &found);
        AN_CHECK(ctx, !json.problem, AN_ERR_DAMAGED, "%s: byte %zu: %s", file, json.at, json.problem);
    }
    if (found.bytes) an_text_bytes(template, found.bytes, found.length);
    AN_TRY(template->status);
    status = AN_OK;
fail:
    if (text) an_release(ctx, (void **)&text, length + 1, 1);
    return status;
}

an_status an_chat_open(an_chat_format *format, an_context *ctx, const char *path, char memory[AN_CHAT_SYSTEM_BYTES]) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, format, path, memory);
    an_status status;
    char file[AN_FILE_PATH];
    an_text template;
    an_text_init(&template, ctx);
    AN_TRY(an_chat_template_read(ctx, path, file, &template));
    AN_CHECK(ctx, template.bytes, AN_ERR_UNSUPPORTED, "%s: there is no chat template; choose one by its name", path);
    AN_TRY(recognize(format, ctx, file, template.bytes, memory));
    status = AN_OK;
fail:
    an_text_destroy(&template);
    return status;
}
