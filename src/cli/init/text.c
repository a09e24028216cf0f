/* anneal init of plain text. */
#include "cli/init/init.h"

#include <string.h>

#include "base/files/regular.h"

/* Characters where there are few different ones, or else bytes. */
enum { MOST_CHARACTERS = 1000, LEAST_TOKENS = 200 };

static an_status open_text(const init_found *f, an_text_tokens tokens, an_dataset **dataset) {
    an_text_source source;
    an_text_source_init(&source, sizeof source);
    source.path = f->data;
    source.context = 1; /* then there is one sample less than tokens */
    source.tokens = tokens;
    return an_dataset_create_text(dataset, f->ctx, &source);
}

/* Ends of lines; 0: the file is compressed, or cannot be read. */
static int64_t count_lines(const char *path) {
    static const unsigned char gzip[] = {0x1f, 0x8b};
    enum { READ = 1 << 16 };
    static char bytes[READ];
    int64_t lines = 0, all = 0;
    FILE *file = an_regular_read(path);
    for (size_t length; file && (length = fread(bytes, 1, sizeof bytes, file)) > 0; all += (int64_t)length) {
        if (all == 0 && length >= sizeof gzip && !memcmp(bytes, gzip, sizeof gzip)) break;
        for (const char *at = bytes; (at = memchr(at, '\n', (size_t)(bytes + length - at))); at++) lines++;
    }
    if (file) fclose(file);
    return lines;
}

static void tell_text(const init_found *f, bool characters) {
    const int64_t lines = count_lines(f->data);
    cli_tell("%s: plain text, %s %s%s%s%s, %lld different %s%s", f->data, cli_count(f->tokens).text,
             characters ? "characters" : "bytes", lines > 0 ? " in " : "", lines > 0 ? cli_count(lines).text : "",
             lines == 1  ? " line"
             : lines > 0 ? " lines"
                         : "",
             (long long)f->vocabulary, characters ? "characters" : "bytes",
             characters ? "" : "; it is not UTF-8, or has too many different characters");
}

int init_text(init_found *f) {
    an_dataset *dataset = NULL;
    int64_t count = 0;
    bool characters = open_text(f, AN_TEXT_CHARACTERS, &dataset) == AN_OK &&
                      an_dataset_vocabulary(dataset, &count) == AN_OK && count <= MOST_CHARACTERS;
    an_status status = AN_OK;
    if (!characters) {
        an_dataset_destroy(&dataset);
        status = open_text(f, AN_TEXT_BYTES, &dataset);
        if (status == AN_OK) status = an_dataset_vocabulary(dataset, &count);
    }
    if (status != AN_OK) return cli_failure(f->call, f->ctx, status);
    f->type = "text";
    f->vocabulary = count;
    f->tokens = f->samples = an_dataset_count(dataset) + 1;
    an_dataset_destroy(&dataset);
    tell_text(f, characters);
    if (f->tokens < LEAST_TOKENS)
        return cli_fail(f->call, "%s: this is too short to train on; give a text of at least %d characters", f->data,
                        (int)LEAST_TOKENS);
    for (f->context = 64; f->context > 8 && f->context * 40 > f->tokens;) f->context /= 2;
    fprintf(f->source_stream, "    path: ");
    init_put_path(f, f->data);
    fprintf(f->source_stream, "\n    tokens: %s\n", characters ? "chars" : "bytes");
    cli_tell("task: a small GPT that predicts the next %s from up to %lld before it", characters ? "character" : "byte",
             (long long)f->context);
    return CLI_DONE;
}
