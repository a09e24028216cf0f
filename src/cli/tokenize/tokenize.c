#include "cli/tokenize/tokenize.h"

#include <stdlib.h>
#include <string.h>

enum { OUTPUT, KEY, END, THREADS, TRAIN, VOCABULARY, TO, SPECIAL, PRE, LEAST };
static const cli_option options[] = {
    [OUTPUT] = {.name = "output",
                .letter = 'o',
                .argument = "FILE",
                .help = "the file of tokens; required without --train"},
    [KEY] = {.name = "key", .argument = "NAME", .help = "the member of JSON lines that is the text; default: text"},
    [END] = {.name = "end",
             .argument = "TOKEN",
             .help = "the token behind each document, or none; default: the tokenizer's end-of-text token"},
    [THREADS] = {.name = "threads",
                 .letter = 't',
                 .argument = "N",
                 .help = "number of threads; default: all processors"},
    [TRAIN] = {.name = "train", .help = "make a tokenizer from the files, which all arguments then are"},
    [VOCABULARY] = {.name = "vocabulary",
                    .argument = "N",
                    .help = "with --train: number of tokens, with those of 256 bytes and the special ones; required"},
    [TO] = {.name = "to", .argument = "FILE", .help = "with --train: the tokenizer.json to write; required"},
    [SPECIAL] = {.name = "special",
                 .argument = "TOKEN",
                 .repeats = true,
                 .help = "with --train: a token that plain text never becomes, as '<|endoftext|>'; can be repeated"},
    [PRE] = {.name = "pre",
             .argument = "gpt-2|smollm|llama-bpe|qwen2",
             .help = "with --train: whose rule cuts text into words; default: gpt-2"},
    [LEAST] = {.name = "least",
               .argument = "N",
               .help = "with --train: a pair of tokens that appears less often becomes no token; default: 2"},
    {0},
};

static int run_parts(const cli_call *call, const encoding *c, input *in, output *o, place *at) {
    part *parts = calloc(TOKENIZE_BATCH, sizeof *parts);
    char error[TOKENIZE_MESSAGE] = "";
    bool good = parts != NULL;
    if (!good) snprintf(error, sizeof error, "out of memory");
    while (good) {
        int count = 0;
        while (count < TOKENIZE_BATCH && tokenize_read(in, &parts[count], error)) count++;
        good = !error[0];
        if (count == 0 || !good) break;
        good = tokenize_encode(c, parts, count);
        if (!good) snprintf(error, sizeof error, "out of memory");
        for (int i = 0; i < count && good; i++) {
            snprintf(error, sizeof error, "%s", parts[i].error);
            good = !error[0] && tokenize_write(o, &parts[i], error);
            at->tokens += (int64_t)parts[i].count;
            at->documents += parts[i].documents;
        }
        at->file = in->at.file;
        at->offset = in->at.offset;
        good = good && tokenize_keep(o, at, error);
    }
    good = good && tokenize_end(o, at, error);
    for (int i = 0; i < TOKENIZE_BATCH && parts; i++) free(parts[i].bytes), free(parts[i].tokens);
    free(parts);
    return good ? CLI_DONE : cli_fail(call, "%s", error);
}

/* Names by which tokenizers without a tokenizer_config.json call the token that ends a text; -1: it has none of
 * them. */
static int32_t find_usual_end(const an_tokenizer *tokenizer) {
    static const char *const names[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int32_t id = an_tokenizer_id(tokenizer, names[i], strlen(names[i]));
        if (id >= 0 && an_tokenizer_is_special(tokenizer, id)) return id;
    }
    return -1;
}

static int find_end(const cli_call *call, const an_tokenizer *tokenizer, const an_tokenizer_info *info, int32_t *end) {
    const char *wanted = call->values[END];
    *end = info->eos >= 0 ? info->eos : find_usual_end(tokenizer);
    if (!wanted && *end < 0)
        return cli_misuse(
            call, "the tokenizer does not say which token ends a text: name it with --end TOKEN, or say --end none");
    if (!wanted) return CLI_DONE;
    *end = strcmp(wanted, "none") != 0 ? an_tokenizer_id(tokenizer, wanted, strlen(wanted)) : -1;
    if (*end < 0 && strcmp(wanted, "none") != 0)
        return cli_misuse(call, "--end: the tokenizer has no token '%s'", wanted);
    return CLI_DONE;
}

static int tokenize(const cli_call *call, const an_tokenizer *tokenizer, int threads) {
    input in = {.paths = call->arguments + 1, .count = call->argument_count - 1, .descriptor = -1};
    encoding c = {.tokenizer = tokenizer, .key = call->values[KEY] ? call->values[KEY] : "text", .threads = threads};
    char error[TOKENIZE_MESSAGE] = "";
    an_tokenizer_info info;
    an_tokenizer_info_init(&info, sizeof info);
    output o = {.descriptor = -1};
    place at = {0, 0, 0, 0};
    uint64_t job = 0;
    an_tokenizer_info_get(tokenizer, &info);
    int code = find_end(call, tokenizer, &info, &c.end);
    if (code != CLI_DONE) return code;
    if (!tokenize_job(&c, &in, call->argument, &job, error) ||
        !tokenize_begin(&o, call->values[OUTPUT], info.count <= 65536 ? 2 : 4, job, &at, error)) {
        tokenize_release(&o);
        return cli_fail(call, "%s", error);
    }
    in.at = at;
    if (o.continued) cli_tell("continuing %s after %s tokens", o.partial, cli_count(at.tokens).text);
    code = run_parts(call, &c, &in, &o, &at);
    tokenize_close(&in);
    tokenize_release(&o);
    if (code != CLI_DONE) return code;
    const char *end = c.end >= 0 ? an_tokenizer_token(tokenizer, c.end, NULL) : NULL;
    if (!tokenize_put_beside(call->argument, o.path, end, error)) return cli_fail(call, "%s", error);
    printf("%s: %s tokens of %d bytes, %s documents\n", o.path, cli_count(at.tokens).text, o.width,
           cli_count(at.documents).text);
    return cli_finish(call);
}

/* Options that the other kind of call would not obey. */
static int check_kind(const cli_call *call) {
    static const int of_training[] = {VOCABULARY, TO, PRE, LEAST}, of_tokens[] = {OUTPUT, END};
    const bool trains = call->values[TRAIN] != NULL;
    for (size_t i = 0; !trains && i < sizeof of_training / sizeof *of_training; i++)
        if (call->values[of_training[i]])
            return cli_misuse(call, "--%s has no effect without --train", options[of_training[i]].name);
    for (size_t i = 0; trains && i < sizeof of_tokens / sizeof *of_tokens; i++)
        if (call->values[of_tokens[i]])
            return cli_misuse(call, "--%s has no effect with --train", options[of_tokens[i]].name);
    if (!trains && call->set_count > 0) return cli_misuse(call, "--special has no effect without --train");
    if (trains && !call->values[VOCABULARY]) return cli_misuse(call, "--vocabulary N is missing");
    if (trains && !call->values[TO]) return cli_misuse(call, "--to FILE is missing");
    if (!trains && !call->values[OUTPUT]) return cli_misuse(call, "--output FILE is missing");
    if (!trains && call->argument_count < 2) return cli_misuse(call, "the files of text are missing");
    return CLI_DONE;
}

static int train(const cli_call *call, an_context *ctx) {
    tokenize_training o = {
        .to = call->values[TO], .key = call->values[KEY] ? call->values[KEY] : "text", .pre = call->values[PRE]};
    int code = cli_number(call, VOCABULARY, 1, &o.vocabulary);
    if (code == CLI_DONE) code = cli_number(call, LEAST, 1, &o.minimum);
    return code == CLI_DONE ? tokenize_train(call, ctx, &o) : code;
}

static int run(const cli_call *call) {
    an_context_options chosen;
    an_context_options_init(&chosen, sizeof chosen);
    an_context *ctx = NULL;
    an_tokenizer *tokenizer = NULL;
    int64_t threads = 0;
    int code = cli_number(call, THREADS, 1, &threads);
    if (code == CLI_DONE) code = check_kind(call);
    if (code != CLI_DONE) return code;
    chosen.threads = threads > 1024 ? 1024 : (int)threads;
    an_status status = an_context_create(&ctx, &chosen);
    if (status != AN_OK) return cli_failure(call, NULL, status);
    if (call->values[TRAIN]) {
        code = train(call, ctx);
        an_context_destroy(&ctx);
        return code;
    }
    status = an_pretrained_tokenizer(&tokenizer, ctx, call->argument);
    code = status == AN_OK ? tokenize(call, tokenizer, an_context_threads(ctx)) : cli_failure(call, ctx, status);
    an_tokenizer_destroy(&tokenizer);
    an_context_destroy(&ctx);
    return code;
}

const cli_command cli_tokenize = {
    .name = "tokenize",
    .argument = "TOKENIZER|FILE [FILE]...",
    .summary = "make a file of tokens from text, or a tokenizer",
    .text =
        "Encodes files with a tokenizer: a tokenizer.json, a folder that contains one, or a GGUF file. A file "
        "NAME.jsonl "
        "has a document on each line, any other file is one document. The tokens of all files, in the order of the "
        "command line, are written to one file in llm.c's format, which data of 'type: tokens' is read from. Special "
        "tokens that are written in the text are text. The file has the same bytes for any number of threads. A call "
        "that was interrupted goes on where it was when it is repeated; until the file is complete it is called "
        "FILE.partial. The tokenizer's files are copied to the folder "
        "FILE.tokenizer, where a run on the tokens finds them. With --train, a tokenizer of byte-level BPE is made "
        "from the files, and written as a "
        "tokenizer.json: the pair of adjacent tokens that appears most often becomes a token, again and again.",
    .options = options,
    .run = run,
};
