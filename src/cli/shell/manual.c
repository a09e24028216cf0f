/* anneal manual: writes manual pages from the same tables that the parser and the config use. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "anneal/config.h"
#include "anneal/models.h"
#include "base/text/utf8.h"
#include "cli/main/cli.h"

enum { OUTPUT };
static const cli_option options[] = {
    [OUTPUT] = {.name = "output", .argument = "FOLDER", .help = "write all pages to this folder"},
    {0},
};

/* ---- text ---- */

static uint32_t decode(const char *text, size_t length) {
    uint32_t code = (unsigned char)text[0];
    if (length > 1) code &= 0x7fu >> length;
    for (size_t i = 1; i < length; i++) code = code << 6 | ((unsigned char)text[i] & 0x3f);
    return code;
}

/* As it stands, for a reader who may copy it: hyphens and quotes of ASCII, all other characters by number. */
static void write_text(FILE *file, const char *text) {
    static const struct {
        char character;
        const char *form;
    } forms[] = {{'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
    if (*text == '.') fputs("\\&", file); /* no request */
    while (*text) {
        const size_t length = an_utf8_length_in_text(text);
        const char *form = NULL;
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
            if (*text == forms[i].character) form = forms[i].form;
        if (*text == '\n')
            fputs("\n.PP\n", file);
        else if (length > 1)
            fprintf(file, "\\[u%04X]", (unsigned)decode(text, length));
        else if (form)
            fputs(form, file);
        else
            putc(*text, file);
        text += length ? length : 1;
    }
}

/* In one of the fonts: B or I. */
static void write_in(FILE *file, char font, const char *text) {
    fprintf(file, "\\f%c", font);
    write_text(file, text);
    fputs("\\fR", file);
}

/* The name of a command's page: "config show" has anneal-config-show. */
static void page_name(const cli_command *command, char *name, size_t capacity) {
    snprintf(name, capacity, "anneal-%s", command->name);
    for (char *space = name; (space = strchr(space, ' '));) *space = '-';
}

static void write_head(FILE *file, const char *name, int section, const char *summary) {
    fprintf(file, ".\\\" Made by 'anneal manual'.\n.TH \"");
    for (const char *letter = name; *letter; letter++)
        putc(*letter >= 'a' && *letter <= 'z' ? *letter - 'a' + 'A' : *letter, file);
    fprintf(file, "\" %d \"\" \"anneal %s\" \"%s\"\n.SH NAME\n", section, an_version(),
            section == 1 ? "User Commands" : "File Formats");
    write_text(file, name);
    fputs(" \\- ", file);
    write_text(file, summary);
    fputs("\n", file);
}

static void write_paragraphs(FILE *file, const char *head, const char *text) {
    if (head) fprintf(file, ".SH %s\n", head);
    write_text(file, text);
    fputs("\n", file);
}

/* A term, and what it means. */
static void write_option(FILE *file, const cli_option *option) {
    char name[64];
    const char letter[] = {',', ' ', '-', option->letter, 0};
    snprintf(name, sizeof name, "--%s%s", option->name, option->letter ? letter : "");
    fputs(".TP\n", file);
    write_in(file, 'B', name);
    if (option->argument) {
        putc(' ', file);
        write_in(file, 'I', option->argument);
    }
    putc('\n', file);
    write_text(file, option->help);
    putc('\n', file);
}

static void write_codes(FILE *file) {
    static const char *const codes[][2] = {
        {"0", "done"},
        {"1", "failed"},
        {"2", "wrong usage, or a mistake in a config"},
        {"75", "stopped on request with a checkpoint: run the same command again to continue"}};
    fputs(".SH \"EXIT STATUS\"\n", file);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        fprintf(file, ".TP\n.B %s\n%s\n", codes[i][0], codes[i][1]);
}

/* ---- pages ---- */

static void write_command(FILE *file, const cli_command *command) {
    static const cli_option help = {.name = "help", .help = "show the options of the command"},
                            verbose = {.name = "verbose",
                                       .help = "when there is an error, also show where in the library it came from"};
    char name[64];
    page_name(command, name, sizeof name);
    write_head(file, name, 1, command->summary);
    fputs(".SH SYNOPSIS\n", file);
    snprintf(name, sizeof name, "anneal %s", command->name);
    write_in(file, 'B', name);
    if (command->argument) {
        putc(' ', file);
        write_in(file, 'I', command->argument);
    }
    fputs(command->options ? " [\\fIOPTION\\fR...]\n" : "\n", file);
    write_paragraphs(file, "DESCRIPTION", command->text);
    if (command->argument && strstr(command->argument, "PRESET")) {
        fputs(".PP\nPresets:", file);
        for (int i = 0; an_model_preset_name(i); i++) {
            putc(' ', file);
            write_text(file, an_model_preset_name(i));
        }
        fputs(".\n", file);
    }
    fputs(".SH OPTIONS\n", file);
    for (const cli_option *o = command->options; o && o->name; o++) write_option(file, o);
    write_option(file, &verbose);
    write_option(file, &help);
    write_codes(file);
    fputs(".SH \"SEE ALSO\"\n.BR anneal (1),\n.BR anneal\\-config (5)\n", file);
}

static void write_program(FILE *file) {
    char name[64];
    write_head(file, "anneal", 1, "train neural networks");
    fputs(".SH SYNOPSIS\n.B anneal\n\\fICOMMAND\\fR [\\fIARGUMENT\\fR] [\\fIOPTION\\fR...]\n", file);
    write_paragraphs(file, "DESCRIPTION",
                     "Trains neural networks on CPUs. A config describes the model, the data and the training. Results "
                     "go to standard output, everything else to standard error.");
    fputs(".SH COMMANDS\n", file);
    for (int i = 0; cli_commands[i]; i++) {
        page_name(cli_commands[i], name, sizeof name);
        fputs(".TP\n.BR ", file);
        write_text(file, name);
        fputs(" (1)\n", file);
        write_text(file, cli_commands[i]->summary);
        putc('\n', file);
    }
    write_codes(file);
    fputs(
        ".SH ENVIRONMENT\n.TP\n.B OMP_NUM_THREADS\nnumber of threads, if neither an option nor the config sets "
        "it\n.TP\n.B OMP_WAIT_POLICY\nwhat idle threads do:\n.B passive\nsleeps immediately,\n.B active\nspins without "
        "sleeping. By default, threads spin for 0.2 ms and then sleep.\n.SH \"SEE ALSO\"\n.BR anneal\\-config (5)\n",
        file);
}

static void write_key(FILE *file, const an_config_key *key) {
    fputs(".TP\n", file);
    write_in(file, 'B', key->path);
    if (*key->of) {
        fputs(" (of ", file);
        for (const char *at = key->of; *at; at++) {
            if (*at == '|')
                fputs(", ", file);
            else
                putc(*at, file);
        }
        putc(')', file);
    }
    putc('\n', file);
    write_text(file, key->type);
    if (key->required) fputs("; required", file);
    if (key->default_value) {
        fputs("; default ", file);
        write_in(file, 'B', key->default_value);
    }
    fputs(".\n.br\n", file);
    write_text(file, key->help);
    fputs(".\n", file);
}

static void write_config(FILE *file) {
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    char section[64] = "";
    write_head(file, "anneal-config", 5, "the model, the data and the training of a run");
    write_paragraphs(
        file, "DESCRIPTION",
        "A config is a YAML file. Only 'model' and 'data' are required; every other key has a default. A single value "
        "in place of a table sets the first key of the table: 'best: val_loss' means 'best: {metric: val_loss}'. A "
        "relative path is relative to the config's folder; 'run.dir' and paths given by --set are relative to the "
        "working directory. '--set KEY=VALUE' overrides the file, and '--set KEY=' removes a key.\nCounts are written "
        "as 12, 50k or 1.5M; lengths as 250 steps, 2 epochs, 300M tokens, 50k samples or 3%; durations as 10s, 15m or "
        "3h50m; sizes as 500MB or 6GiB; shares as 5% or 0.05.");
    fputs(".SH KEYS\n", file);
    for (int i = 0; cli_key_at(i, &key); i++) {
        const size_t length = strcspn(key.path, ".[");
        if (strlen(section) != length || strncmp(section, key.path, length) != 0) {
            snprintf(section, sizeof section, "%.*s", (int)length, key.path);
            fprintf(file, ".SS %s\n", section);
        }
        write_key(file, &key);
    }
    fputs(".SH \"SEE ALSO\"\n.BR anneal (1),\n.BR anneal\\-config\\-show (1)\n", file);
}

/* ---- the command ---- */

/* Page `index`: 0 is anneal.1, 1 is anneal-config.5, then come the commands; false after the last. */
static bool get_page(int index, char *name, size_t capacity) {
    if (index < 2) {
        snprintf(name, capacity, "%s", index == 0 ? "anneal.1" : "anneal-config.5");
        return true;
    }
    if (!cli_commands[index - 2]) return false;
    page_name(cli_commands[index - 2], name, capacity);
    const size_t length = strlen(name);
    snprintf(name + length, capacity - length, ".1");
    return true;
}

static void write_page(FILE *file, int index) {
    if (index == 0)
        write_program(file);
    else if (index == 1)
        write_config(file);
    else
        write_command(file, cli_commands[index - 2]);
}

static int write_all(const cli_call *call) {
    char name[64], path[1024];
    for (int i = 0; get_page(i, name, sizeof name); i++) {
        if (snprintf(path, sizeof path, "%s/%s", call->values[OUTPUT], name) >= (int)sizeof path)
            return cli_misuse(call, "the folder name is too long");
        FILE *file = cli_file_open(call, path, "w");
        if (!file) return CLI_FAILED;
        write_page(file, i);
        const int code = cli_file_close(call, path, file);
        if (code != CLI_DONE) return code;
    }
    return CLI_DONE;
}

static int run(const cli_call *call) {
    enum { MOST = 40 };
    static char pages[MOST][64];
    const char *names[MOST + 1] = {NULL};
    if (call->argument && call->values[OUTPUT])
        return cli_misuse(call, "--output writes all pages and cannot be combined with a page");
    if (call->values[OUTPUT]) return write_all(call);
    for (int i = 0; i < MOST && get_page(i, pages[i], sizeof pages[i]); i++) {
        names[i] = pages[i];
        if (!call->argument) {
            puts(pages[i]);
        } else if (!strcmp(pages[i], call->argument)) {
            write_page(stdout, i);
            return cli_finish(call);
        }
    }
    if (!call->argument) return cli_finish(call);
    return cli_misuse(call, "unknown page '%s'%s", call->argument, cli_did_you_mean("", call->argument, names).text);
}

const cli_command cli_manual = {
    .name = "manual",
    .argument = "[PAGE]",
    .summary = "write manual pages",
    .text = "Writes a manual page, such as anneal-plan.1, to standard output, for 'man -l -'. Without an argument, "
            "lists all pages. The pages are installed with anneal.",
    .options = options,
    .run = run,
};
