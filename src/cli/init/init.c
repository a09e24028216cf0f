/* anneal init: looks at data, and writes a config that trains on it. */
#include "cli/init/init.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/foreign.h"
#include "base/files/regular.h"

enum { TARGET, TASK, FROM, NUMBERS, DATES, OUTPUT };
static const cli_option options[] = {
    [TARGET] = {.name = "target",
                .argument = "COLUMN",
                .help = "column to predict, by name or by number starting at 1, or several of a table, such as a,b,c; "
                        "for a .npz file, its array; for IDX and "
                        ".npy files, the file with the targets (default: a column called target, label, class, y, ..., "
                        "or the last one)"},
    [TASK] = {.name = "task",
              .argument = "classify|regress",
              .help = "whether whole numbers are classes or measurements (default: classes if there are at most 20 "
                      "different ones)"},
    [FROM] = {.name = "from",
              .argument = "FOLDER",
              .help = "published model to train with conversations, pairs of answers or sentences: a folder of Hugging "
                      "Face, or a "
                      "GGUF file"},
    [NUMBERS] = {.name = "numbers",
                 .argument = "point|comma",
                 .help = "decimal mark of columns whose cells do not tell, such as 1,234 in all rows of a table"},
    [DATES] = {.name = "dates",
               .argument = "day_first|month_first",
               .help = "order of dates whose cells do not tell, such as 03/04/2024 in all rows of a table"},
    [OUTPUT] = {.name = "output",
                .letter = 'o',
                .argument = "FILE",
                .help = "file for the config, which must not exist yet (default: standard output)"},
    {0},
};

/* ---- which kind of data it is ---- */

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), rest = strlen(end);
    return length >= rest && !strcasecmp(text + length - rest, end);
}

/* By name; files may be compressed. */
static int (*find_by_name(const char *path))(init_found *f) {
    static const struct {
        const char *end;
        int (*look)(init_found *f);
    } kinds[] = {{".csv", init_table},    {".tsv", init_table},   {".data", init_table},   {".csv.gz", init_table},
                 {".tsv.gz", init_table}, {".jsonl", init_lines}, {".ndjson", init_lines}, {".npy", init_npy},
                 {".npz", init_npy},      {".txt", init_text},    {"-ubyte", init_idx},    {"-ubyte.gz", init_idx},
                 {".idx", init_idx},      {".md", init_text}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ends_with(path, kinds[i].end)) return kinds[i].look;
    return NULL;
}

/* Whether the first lines are cells between delimiters, as many in each. */
static bool is_table(const char *text) {
    static const char delimiters[] = ",;\t|";
    enum { LINES = 5 };
    for (const char *d = delimiters; *d; d++) {
        int cells = 0, line = 0;
        const char *at = text;
        for (; line < LINES && strchr(at, '\n'); line++) {
            int here = 0;
            for (; *at != '\n'; at++) here += *at == *d;
            at++;
            if (line == 0) cells = here;
            if (here != cells) break;
        }
        if (cells > 0 && line >= 2 && (line == LINES || !strchr(at, '\n'))) return true;
    }
    return false;
}

/* By the first bytes, followed by a NUL. */
static int (*find_by_content(const unsigned char *bytes, size_t length))(init_found *f) {
    const char *text = (const char *)bytes;
    if (length >= 6 && !memcmp(bytes, "\x93NUMPY", 6)) return init_npy;
    if (length >= 4 && !memcmp(bytes, "PK\3\4", 4)) return init_npy;
    if (length >= 4 && bytes[0] == 0 && bytes[1] == 0 && bytes[2] >= 8 && bytes[2] <= 14 && bytes[3] >= 1)
        return init_idx;
    const bool has_mark = length >= 2 && (!memcmp(bytes, "\xff\xfe", 2) || !memcmp(bytes, "\xfe\xff", 2));
    if (has_mark) return init_text; /* of UTF-16, which is then refused as such */
    if (memchr(bytes, 0, length)) return NULL;
    if (text[strspn(text, " \t\r\n")] == '{') return init_lines;
    return is_table(text) ? init_table : init_text;
}

/* The first bytes of a file. */
static int read_begin(const init_found *f, unsigned char *bytes, size_t maximum, size_t *length) {
    FILE *file = an_regular_read(f->data);
    if (!file)
        return cli_fail(f->call, "%s: cannot be read: %s", f->data,
                        errno == EINVAL ? "it is not a regular file" : strerror(errno));
    *length = fread(bytes, 1, maximum, file);
    const bool failed = ferror(file) != 0;
    fclose(file);
    if (failed) return cli_fail(f->call, "%s: cannot be read", f->data);
    return *length > 0 ? CLI_DONE : cli_fail(f->call, "%s: the file is empty", f->data);
}

/* Arrays are no text; all else must be UTF-8. */
static int look_at_text(init_found *f, int (*look)(init_found *f)) {
    const int code = look == init_npy || look == init_idx ? CLI_DONE : init_check_charset(f);
    return code == CLI_DONE ? look(f) : code;
}

static int look_at_file(init_found *f) {
    enum { LOOKED_AT = 1 << 16 };
    const an_foreign *foreign = an_foreign_find(f->data);
    if (foreign) return cli_misuse(f->call, "%s: %s", f->data, an_foreign_describe(foreign, f->data).text);
    int (*look)(init_found * f) = find_by_name(f->data);
    if (look) return look_at_text(f, look);
    unsigned char *bytes = malloc(LOOKED_AT + 1);
    if (!bytes) return cli_fail(f->call, "out of memory");
    size_t length = 0;
    const int code = read_begin(f, bytes, LOOKED_AT, &length);
    bytes[length] = 0;
    look = code == CLI_DONE ? find_by_content(bytes, length) : NULL;
    free(bytes);
    if (code != CLI_DONE) return code;
    if (look) return look_at_text(f, look);
    return cli_misuse(f->call,
                      "%s: this is no kind of data that init knows: CSV, JSON lines, .npy, .npz, IDX, plain text, or a "
                      "folder with one folder of images for each class",
                      f->data);
}

/* A folder of images, or the folder of MNIST. */
static int look_at_folder(init_found *f) {
    static const char *const names[] = {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"};
    static char path[INIT_PATH];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", f->data, names[i]);
        if (access(path, R_OK) != 0) continue;
        f->data = path;
        return init_idx(f);
    }
    return init_images(f);
}

/* ---- the config ---- */

static int write_config(const init_found *f, const char *output) {
    if (!output) {
        init_write(stdout, f);
        if (*f->config && ferror(stdout) == 0) cli_tell("next: anneal train %s", f->config);
        return cli_finish(f->call);
    }
    FILE *file = cli_file_open(f->call, output, "wx"); /* a config that someone has changed is not overwritten */
    if (!file) return CLI_FAILED;
    init_write(file, f);
    const int code = cli_file_close(f->call, output, file);
    if (code == CLI_DONE) cli_tell("next: anneal train %s", output);
    return code;
}

static int look(init_found *f) {
    struct stat about;
    const bool there = stat(f->data, &about) == 0;
    if (there && S_ISDIR(about.st_mode)) return look_at_folder(f);
    if (there) return look_at_file(f);
    if (strpbrk(f->data, "*?[")) return look_at_text(f, init_table); /* a pattern of several tables */
    return cli_fail(f->call, "%s: cannot be read: %s", f->data, strerror(errno));
}

static int run(const cli_call *call) {
    static const char *const tasks[] = {
        [INIT_AUTO] = "auto", [INIT_CLASSIFY] = "classify", [INIT_REGRESS] = "regress", NULL};
    static const char *const marks[] = {"auto", "point", "comma", NULL};
    static const char *const orders[] = {"auto", "day_first", "month_first", NULL};
    static init_found f;
    int task = INIT_AUTO, mark = 0, order = 0;
    size_t length;
    int code = cli_choice(call, TASK, tasks, &task);
    if (code == CLI_DONE) code = cli_choice(call, NUMBERS, marks, &mark);
    if (code == CLI_DONE) code = cli_choice(call, DATES, orders, &order);
    if (code != CLI_DONE) return code;
    f = (init_found){.call = call, .data = call->argument, .target = call->values[TARGET], .task = (init_task)task};
    f.from = call->values[FROM];
    f.numbers = mark ? marks[mark] : NULL;
    f.dates = order ? orders[order] : NULL;
    if (!init_find_folder(&f, call->values[OUTPUT]))
        return cli_fail(call, "the folder of the config is not there: %s", strerror(errno));
    if (an_context_create(&f.ctx, NULL) != AN_OK) return cli_failure(call, NULL, AN_ERR_MEMORY);
    f.source_stream = open_memstream(&f.source, &length);
    code = f.source_stream ? look(&f) : cli_fail(call, "out of memory");
    if (f.source_stream && fclose(f.source_stream) != 0 && code == CLI_DONE) code = cli_fail(call, "out of memory");
    if (code == CLI_DONE) init_tell_balance(&f);
    if (code == CLI_DONE) code = write_config(&f, call->values[OUTPUT]);
    free(f.source);
    an_context_destroy(&f.ctx);
    return code;
}

const cli_command cli_init = {
    .name = "init",
    .argument = "DATA",
    .summary = "look at data and write a config that trains on it",
    .text = "Looks at a file or folder, says what it contains, and writes a config with comments that trains at once: "
            "model, scaling, held-out samples, batch, learning rate and length are chosen from the data. DATA is a "
            "table (CSV, also a pattern in quotes such as 'rows-*.csv'), JSON lines (with numbers, or with "
            "conversations, pairs of "
            "answers or sentences for a published model), a .npy or .npz file, an IDX file, "
            "a plain text, or a folder with one folder of images for each class. What was found goes to standard "
            "error, the config to standard output: anneal init DATA > run.yaml. Paths in the config are relative to "
            "its own folder.",
    .options = options,
    .run = run,
};
