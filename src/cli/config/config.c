/* anneal config: shows a config with its defaults, the JSON Schema for editors, and the list of keys. */
#include <stdio.h>
#include <string.h>

#include "anneal/config.h"
#include "base/text/json_write.h"
#include "cli/main/cli.h"
#include "cli/train/open.h"

/* ---- show ---- */

enum { WRITE, SET };
static const cli_option show_options[] = {
    [WRITE] = {.name = "write", .help = "print it as it is stored in a run folder: no comments, absolute paths"},
    [SET] = {.name = "set",
             .argument = "KEY=VALUE",
             .repeats = true,
             .help = "override a key, as in optimizer.lr=1e-3; KEY= removes it; can be repeated"},
    {0},
};

static int show(const cli_call *call) {
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_context *ctx = NULL;
    an_config *config = NULL;
    char *text = NULL;
    an_status status = an_context_create(&ctx, NULL);
    if (status != AN_OK) return cli_failure(call, NULL, status);
    options.file = call->argument;
    options.set_count = call->set_count;
    options.sets = call->sets;
    status = an_config_create(&config, ctx, &options);
    if (status == AN_OK) status = call->values[WRITE] ? an_config_write(config, &text) : an_config_show(config, &text);
    int code = status == AN_OK ? CLI_DONE : cli_refuse(call, ctx, call->argument, status);
    for (int i = 0; code == CLI_DONE && i < an_config_warning_count(config); i++)
        fprintf(stderr, "warning: %s\n", an_config_warning(config, i));
    if (text) fputs(text, stdout);
    an_string_release(ctx, &text);
    an_config_destroy(&config);
    an_context_destroy(&ctx);
    return code == CLI_DONE ? cli_finish(call) : code;
}

const cli_command cli_config_show = {
    .name = "config show",
    .argument = "CONFIG",
    .summary = "show a complete config, with defaults",
    .text = "Checks a config and writes every key to standard output, with its value and where the value comes from: "
            "default, file or --set.",
    .options = show_options,
    .run = show,
};

/* ---- schema ---- */

static int schema(const cli_call *call) {
    an_context *ctx = NULL;
    char *text = NULL;
    an_status status = an_context_create(&ctx, NULL);
    if (status != AN_OK) return cli_failure(call, NULL, status);
    status = an_config_schema(ctx, &text);
    const int code = status == AN_OK ? CLI_DONE : cli_failure(call, ctx, status);
    if (text) fputs(text, stdout);
    an_string_release(ctx, &text);
    an_context_destroy(&ctx);
    return code == CLI_DONE ? cli_finish(call) : code;
}

const cli_command cli_config_schema = {
    .name = "config schema",
    .summary = "write the JSON Schema of configs, for editors",
    .text = "Writes the JSON Schema of configs to standard output. An editor can use it to complete keys and mark "
            "mistakes: put '# yaml-language-server: $schema=anneal.schema.json' in the first line of a config.",
    .run = schema,
};

/* ---- keys ---- */

enum { JSON };
static const cli_option keys_options[] = {
    [JSON] = {.name = "json", .help = "write JSON"},
    {0},
};

/* ": optimizer, gradients, full" of choices; nothing of a whole option. */
static void print_words(const char *words) {
    for (const char *at = words; at && *at;) {
        const size_t here = strcspn(at, "|");
        printf("%s%.*s", at == words ? ": " : ", ", (int)here, at);
        at += here + (at[here] == '|');
    }
}

static void print_key(const an_config_key *key) {
    printf("%s%s%s%s\n    %s", key->path, *key->of ? " (" : "", key->of, *key->of ? ")" : "", key->type);
    if (key->required) printf("; required");
    if (key->default_value) printf("; default %s", key->default_value);
    if (key->unsupported) printf("; not supported yet");
    print_words(key->unsupported);
    printf("\n    %s\n", key->help);
}

static void write_key(an_json_writer *j, const an_config_key *key) {
    an_json_write_object(j, NULL);
    an_json_write_string(j, "path", key->path);
    an_json_write_string(j, "of", key->of);
    an_json_write_string(j, "type", key->type);
    if (key->default_value)
        an_json_write_string(j, "default", key->default_value);
    else
        an_json_write_null(j, "default");
    an_json_write_integer(j, "required", key->required);
    if (key->unsupported)
        an_json_write_string(j, "unsupported", *key->unsupported ? key->unsupported : "all");
    else
        an_json_write_null(j, "unsupported");
    an_json_write_string(j, "help", key->help);
    an_json_write_end(j);
}

static int keys(const cli_call *call) {
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    if (!call->values[JSON]) {
        for (int i = 0; cli_key_at(i, &key); i++) print_key(&key);
        return cli_finish(call);
    }
    an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
    an_json_write_object(&j, NULL);
    an_json_write_array(&j, "keys");
    for (int i = 0; cli_key_at(i, &key); i++) write_key(&j, &key);
    an_json_write_end(&j);
    an_json_write_finish(&j);
    return cli_finish(call);
}

const cli_command cli_config_keys = {
    .name = "config keys",
    .summary = "list the keys of configs",
    .text = "Lists every key of a config, with the types it applies to, the values it takes, its default and the "
            "reason for the default.",
    .options = keys_options,
    .run = keys,
};
