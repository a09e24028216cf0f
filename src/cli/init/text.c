/* anneal init of plain text. */
#include "cli/init/init.h"

/* Characters where there are few different ones, or else bytes. */
enum { MOST_CHARACTERS = 1000, LEAST_TOKENS = 200 };

static an_status open_text(const init_found *f, an_text_tokens tokens, an_dataset **dataset) {
    an_text_source source;
    an_text_source_init(&source, sizeof source);
    source.path = f->data;
    source.context = 2;
    source.tokens = tokens;
    return an_dataset_create_text(dataset, f->ctx, &source);
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
    f->tokens = f->samples = 2 * an_dataset_count(dataset);
    an_dataset_destroy(&dataset);
    cli_tell("%s: plain text, %s %s, %lld different ones%s", f->data, cli_count(f->tokens).text,
             characters ? "characters" : "bytes", (long long)f->vocabulary,
             characters ? "" : "; it is not UTF-8, or has too many different characters");
    if (f->tokens < LEAST_TOKENS)
        return cli_fail(f->call, "%s: this is too short to train on; give a text of at least %d characters", f->data,
                        (int)LEAST_TOKENS);
    for (f->context = 64; f->context > 8 && f->context * 40 > f->tokens;) f->context /= 2;
    fprintf(f->source_stream, "    path: ");
    init_put_path(f, f->data);
    fprintf(f->source_stream, "\n    tokens: %s\n", characters ? "chars" : "bytes");
    cli_tell("task: a small GPT that continues the text");
    return CLI_DONE;
}
