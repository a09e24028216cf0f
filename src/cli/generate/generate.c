/* anneal generate: continues prompts with the tokens that a model finds likely. */
#include "cli/generate/generate.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/integer.h"
#include "base/system/clock.h"

enum {
    PROMPT,
    INPUT,
    TOKENS,
    CHAT,
    SYSTEM,
    TEMPLATE,
    MAX_TOKENS,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    MIN_P,
    PENALTY,
    SEED,
    STOP,
    BATCH,
    CONTEXT,
    PRECISION,
    STORAGE,
    THREADS,
    WEIGHTS,
    CHECKPOINT
};
enum { DEFAULT_TOKENS = 200, DEFAULT_ANSWER = 1000, DEFAULT_BATCH = 16, GROUP = 1 };
enum {
    TALK_CONTEXT = 4096
}; /* tokens of a conversation with a published model, whose own context may take gigabytes */

static const cli_option options[] = {
    [PROMPT] = {.name = "prompt", .argument = "TEXT", .group = GROUP, .help = "text to continue"},
    [INPUT] = {.name = "input",
               .argument = "FILE",
               .group = GROUP,
               .help = "file with one prompt per line; the result of each is a line of JSON with prompt, text and end"},
    [TOKENS] = {.name = "tokens",
                .argument = "N,N,...",
                .group = GROUP,
                .help = "prompt as token numbers; the result is token numbers too"},
    [CHAT] = {.name = "chat",
              .help =
                  "hold a conversation: on a terminal with you, otherwise each line of standard input is a message; "
                  "with --input, each line of FILE is a conversation as JSON with messages, and is answered"},
    [SYSTEM] = {.name = "system",
                .argument = "TEXT",
                .help = "system message of conversations that have none (default: that of the template, if any)"},
    [TEMPLATE] = {.name = "template",
                  .argument = "NAME",
                  .help = "how conversations are written: chatml, llama3, mistral, zephyr, qwen, llama3.1 or qwen3 "
                          "(default: as the model's own template says)"},
    [MAX_TOKENS] = {.name = "max-tokens",
                    .argument = "N",
                    .help = "tokens to generate (default: 200, for an answer of --chat 1000)"},
    [TEMPERATURE] = {.name = "temperature",
                     .argument = "X",
                     .help = "divides the logits: above 1 makes unlikely tokens more likely; 0, the default, always "
                             "takes the most likely token"},
    [TOP_K] = {.name = "top-k", .argument = "N", .help = "choose only among the N most likely tokens (default: all)"},
    [TOP_P] = {.name = "top-p",
               .argument = "X",
               .help =
                   "choose only among the most likely tokens that together have this probability (default: 1, all)"},
    [MIN_P] = {.name = "min-p",
               .argument = "X",
               .help = "choose only among tokens with at least this part of the highest probability (default: 0, all)"},
    [PENALTY] = {.name = "repetition-penalty",
                 .argument = "X",
                 .help = "makes tokens less likely that the sequence already has (default: 1, no penalty)"},
    [SEED] = {.name = "seed", .argument = "N", .help = "random seed; the same seed gives the same text (default: 0)"},
    [STOP] = {.name = "stop",
              .argument = "TEXT",
              .repeats = true,
              .help = "end a text before this string; can be repeated"},
    [BATCH] = {.name = "batch",
               .argument = "N",
               .help = "prompts of --input to work on at a time (default: 16); changes the speed and no text"},
    [CONTEXT] =
        {.name = "context",
         .argument = "N",
         .help = "tokens of a sequence, with its prompt, at most (default: as many as the model was trained with; a "
                 "conversation with a published model: at most 4096)"},
    [PRECISION] = {.name = "precision",
                   .argument = "f32|bf16",
                   .help = "precision to compute in (default: the one that the model was trained in)"},
    [STORAGE] = {.name = "storage",
                 .argument = "bf16|q8_0",
                 .help =
                     "type to store the matrices of the model in: q8_0 takes half the memory of bf16, and is faster "
                     "where memory limits the speed; bf16 needs --precision bf16 (default: as the model has them)"},
    [THREADS] = {.name = "threads",
                 .argument = "N",
                 .help = "threads to compute with (default: those of the run, or one for each core); changes the speed "
                         "and no text"},
    [WEIGHTS] = {.name = "weights", .argument = "raw|ema", .help = CLI_WEIGHTS_HELP},
    [CHECKPOINT] = {.name = "checkpoint", .argument = CLI_CHECKPOINT_ARGUMENT, .help = CLI_CHECKPOINT_HELP},
    {0},
};

typedef struct {
    const cli_call *call;
    an_generator *generator;
    cli_vocabulary vocabulary;
    cli_chat chat;
    cli_prompts prompts;
    int64_t added, printed;
    int64_t batch;
    an_sampling_options sampling;
    cli_stops stops;
    cli_published published;
    bool as_json, as_tokens, as_chat;
    bool talks; /* with standard input */
} work;

/* ---- options ---- */

/* A number of at least 0; untouched if not given. */
static int real(const cli_call *call, int option, double *number) {
    const char *value = call->values[option];
    char *end;
    if (!value) return CLI_DONE;
    const double parsed = strtod(value, &end);
    if (end == value || *end || !(parsed >= 0) || !isfinite(parsed))
        return cli_misuse(call, "--%s takes a number of at least 0, as in 0.8, not '%s'",
                          call->command->options[option].name, value);
    *number = parsed;
    return CLI_DONE;
}

static int read_sampling(work *w) {
    const cli_call *call = w->call;
    an_sampling_options *s = &w->sampling;
    int64_t seed = 0;
    an_sampling_options_init(s, sizeof *s);
    s->max_tokens = w->as_chat ? DEFAULT_ANSWER : DEFAULT_TOKENS;
    w->batch = DEFAULT_BATCH;
    int code = cli_number(call, MAX_TOKENS, 1, &s->max_tokens);
    if (code == CLI_DONE) code = real(call, TEMPERATURE, &s->temperature);
    if (code == CLI_DONE) code = cli_number(call, TOP_K, 0, &s->top_k);
    if (code == CLI_DONE) code = real(call, TOP_P, &s->top_p);
    if (code == CLI_DONE) code = real(call, MIN_P, &s->min_p);
    if (code == CLI_DONE) code = real(call, PENALTY, &s->repetition_penalty);
    if (code == CLI_DONE) code = cli_number(call, SEED, 0, &seed);
    if (code == CLI_DONE) code = cli_number(call, BATCH, 1, &w->batch);
    s->seed = (uint64_t)seed;
    for (int i = 0; code == CLI_DONE && i < call->set_count; i++)
        if (!*call->sets[i]) return cli_misuse(call, "--stop takes a text that is not empty");
    if (code == CLI_DONE && w->as_tokens && call->set_count > 0)
        return cli_misuse(call, "--stop has no effect with --tokens: nothing becomes text");
    if (code == CLI_DONE && call->values[BATCH] && !w->as_json)
        return cli_misuse(call, "--batch has no effect without --input: there is one prompt");
    static const int of_chat[] = {SYSTEM, TEMPLATE};
    for (size_t i = 0; code == CLI_DONE && !w->as_chat && i < sizeof of_chat / sizeof *of_chat; i++)
        if (call->values[of_chat[i]])
            return cli_misuse(call, "--%s has no effect without --chat", options[of_chat[i]].name);
    return code;
}

/* With the settings of a published model, which may draw tokens without an option that says so. */
static int settle_sampling(work *w) {
    static const int drawn[] = {TOP_K, TOP_P, MIN_P, SEED};
    if (w->published.call) cli_published_apply(&w->published, &w->sampling);
    for (size_t i = 0; w->sampling.temperature == 0 && i < sizeof drawn / sizeof *drawn; i++)
        if (w->call->values[drawn[i]])
            return cli_misuse(w->call,
                              "--%s has no effect without --temperature above 0: the most likely token is taken",
                              options[drawn[i]].name);
    return CLI_DONE;
}

/* ---- prompts ---- */

static int take_prompts(work *w) {
    const cli_call *call = w->call;
    w->prompts = (cli_prompts){.call = call, .vocabulary = &w->vocabulary, .chat = w->as_chat ? &w->chat : NULL};
    if (w->as_tokens) return cli_prompts_tokens(&w->prompts, call->values[TOKENS]);
    if (!cli_vocabulary_knows_text(&w->vocabulary))
        return cli_fail(
            call,
            "%s: was trained on token numbers, and nothing says which texts they stand for; give the prompt "
            "with --tokens",
            call->argument);
    if (w->as_json) return cli_prompts_file(&w->prompts, call->values[INPUT]);
    return w->talks ? CLI_DONE
                    : cli_prompts_text(&w->prompts, "--prompt", call->values[PROMPT], strlen(call->values[PROMPT]));
}

/* ---- generating ---- */

static void write_messages(an_json_writer *json, const cli_sequence *s) {
    an_json_write_array(json, "messages");
    for (int64_t i = 0; i < s->message_count; i++) {
        an_json_write_object(json, NULL);
        an_json_write_string(json, "role", s->messages[i].role);
        an_json_write_string(json, "content", s->messages[i].content);
        an_json_write_end(json);
    }
    an_json_write_end(json);
}

static void print_json(const cli_sequence *s) {
    static const char *const ends[] = {"stop", "stop", "length", "context"};
    an_json_writer json = an_json_to_file(stdout, AN_JSON_FLAT);
    an_json_write_object(&json, NULL);
    if (s->messages)
        write_messages(&json, s);
    else
        an_json_write_string(&json, "prompt", s->prompt);
    an_json_write_string(&json, "text", s->written.text ? s->written.text : "");
    an_json_write_string(&json, "end", s->written.stopped ? "stop" : ends[s->end]);
    an_json_write_finish(&json);
    fflush(stdout);
}

/* In the order of the prompts. */
static void print_ended(work *w) {
    for (; w->printed < w->prompts.count && w->prompts.sequences[w->printed].has_ended; w->printed++)
        if (w->as_json) print_json(&w->prompts.sequences[w->printed]);
}

static int add_prompts(work *w, an_generator_info *info) {
    an_status status = an_generator_info_get(w->generator, info);
    while (status == AN_OK && w->added < w->prompts.count && info->free > 0) {
        cli_sequence *s = &w->prompts.sequences[w->added];
        w->sampling.sequence = w->added;
        status = an_generator_add(w->generator, s->tokens, s->count, &w->sampling);
        if (status != AN_OK) break;
        w->added++;
        info->free--;
    }
    if (status == AN_OK) return CLI_DONE;
    return w->prompts.count == 1 ? cli_fail(w->call, "%s", an_last_error(NULL))
                                 : cli_fail(w->call, "prompt %lld: %s", (long long)w->added + 1, an_last_error(NULL));
}

static int take_token(work *w, const an_generated *token) {
    const cli_call *call = w->call;
    cli_sequence *s = &w->prompts.sequences[token->sequence];
    s->end = token->end;
    s->has_ended = token->end != AN_GENERATION_GOES_ON;
    if (w->as_tokens) {
        printf(s->generated++ ? " %d" : "%d", token->token);
        fflush(stdout);
        return CLI_DONE;
    }
    int length;
    const char *bytes = cli_vocabulary_decode(&w->vocabulary, token->token, &length);
    if (bytes) cli_written_add(&s->written, bytes, length);
    if (!bytes || !s->written.has_room) return cli_fail(call, "not enough memory for the text");
    cli_written_stop(&s->written, call->sets, call->set_count);
    if (s->written.stopped && !s->has_ended) {
        an_generator_stop(w->generator, token->sequence);
        s->has_ended = true;
    }
    if (!w->as_json) cli_written_show(&s->written, call->sets, call->set_count, s->has_ended);
    return CLI_DONE;
}

/* For people who watch: nothing of it is in a file or a pipe. */
static void tell_speed(const an_generator_info *info, int64_t tokens, double seconds) {
    if (tokens == 0 || !isatty(STDERR_FILENO)) return;
    cli_tell("%s token%s, %.1f a second, with the prompt; memory %s: weights %s, cache %s, other %s",
             cli_count(tokens).text, tokens == 1 ? "" : "s", (double)tokens / seconds,
             cli_bytes((double)info->peak).text, cli_bytes((double)info->weights).text,
             cli_bytes((double)info->cache).text, cli_bytes((double)(info->peak - info->weights - info->cache)).text);
}

static int generate(work *w) {
    const double begin = an_clock_seconds();
    int64_t total = 0;
    an_generator_info info;
    an_generated *tokens = malloc((size_t)w->batch * sizeof *tokens);
    int64_t count = 1;
    int code = CLI_DONE;
    if (!tokens) return cli_fail(w->call, "not enough memory for %lld prompts", (long long)w->batch);
    an_generator_info_init(&info, sizeof info);
    while (code == CLI_DONE && (count > 0 || w->added < w->prompts.count)) {
        code = add_prompts(w, &info);
        if (code != CLI_DONE) break;
        const an_status status = an_generator_step(w->generator, tokens, &count);
        if (status != AN_OK) code = cli_fail(w->call, "%s", an_last_error(NULL));
        for (int64_t i = 0; code == CLI_DONE && i < count; i++) code = take_token(w, &tokens[i]);
        total += count;
        print_ended(w);
        if (ferror(stdout)) break; /* cli_finish says so */
    }
    free(tokens);
    if (code == CLI_DONE && !w->as_json) putchar('\n');
    if (code == CLI_DONE && !w->as_json && w->prompts.sequences[0].end == AN_GENERATION_CONTEXT)
        cli_tell("The text ends here because the context of %s tokens is full.", cli_count(info.context).text);
    if (code == CLI_DONE) tell_speed(&info, total, an_clock_seconds() - begin);
    return code;
}

/* ---- the command ---- */

static int64_t longest(const work *w) {
    int64_t maximum = 0;
    for (int64_t i = 0; i < w->prompts.count; i++) maximum = an_larger(maximum, w->prompts.sequences[i].count);
    return maximum;
}

/* Published models have long contexts: of those, the cache has room for what is asked for. */
static int open_generator(work *w, const cli_checkpoint *from, an_context *ctx) {
    static const char *const precisions[] = {"f32", "bf16", NULL}, *const storages[] = {"bf16", "q8_0", NULL};
    an_generator_options o;
    int precision = -1, storage = -1;
    int64_t threads = 0;
    an_generator_options_init(&o, sizeof o);
    w->batch = w->talks ? 1 : an_smaller(w->batch, w->prompts.count);
    o.max_sequences = w->batch;
    int code = cli_number(w->call, CONTEXT, 2, &o.context);
    if (code == CLI_DONE) code = cli_choice(w->call, PRECISION, precisions, &precision);
    if (code == CLI_DONE) code = cli_choice(w->call, STORAGE, storages, &storage);
    if (code == CLI_DONE) code = cli_number(w->call, THREADS, 1, &threads);
    if (code == CLI_DONE) code = cli_weights_choose(w->call, w->call->values[WEIGHTS], &o.weights);
    if (code != CLI_DONE) return code;
    if (w->published.context > 0 && o.context == 0)
        o.context = an_smaller(w->published.context, w->talks ? TALK_CONTEXT : longest(w) + w->sampling.max_tokens);
    o.threads = (int)an_smaller(threads, INT_MAX);
    if (precision >= 0) o.precision = precision == 0 ? AN_DTYPE_F32 : AN_DTYPE_BF16;
    if (storage >= 0) o.storage = storage == 0 ? AN_DTYPE_BF16 : AN_DTYPE_Q8_0;
    const an_status status =
        an_generator_open(&w->generator, ctx, from->info.is_run ? from->info.path : w->call->argument, &o);
    return status == AN_OK ? CLI_DONE : cli_refuse(w->call, ctx, NULL, status);
}

static int open_vocabulary(work *w, an_context *ctx, const cli_checkpoint *from, an_config *config) {
    const cli_call *call = w->call;
    int code = w->as_tokens ? CLI_DONE : cli_vocabulary_open(&w->vocabulary, call, ctx, from, config);
    if (code == CLI_DONE && w->as_chat)
        code = cli_chat_open(&w->chat, &w->vocabulary, config, call->values[TEMPLATE], call->values[SYSTEM]);
    if (code != CLI_DONE || w->as_tokens) return code;
    /* What a publisher says counts instead of the tokenizer's end token, but both end an answer. */
    for (int i = 0; i < w->published.sampling.stop_count; i++)
        cli_stops_add(&w->stops, w->published.sampling.stop_tokens[i]);
    if (w->as_chat || w->stops.count == 0) cli_stops_add(&w->stops, w->vocabulary.end);
    if (w->as_chat) cli_stops_add(&w->stops, w->chat.end);
    w->sampling.stop_tokens = w->stops.tokens;
    w->sampling.stop_count = w->stops.count;
    return CLI_DONE;
}

static int run_with(work *w, const cli_checkpoint *from, an_config *config) {
    an_context *ctx = NULL;
    int code = CLI_DONE;
    if (config)
        code = cli_checkpoint_context(from, config, AN_ISA_AUTO, &ctx);
    else if (an_context_create(&ctx, NULL) != AN_OK)
        code = cli_fail(w->call, "%s", an_last_error(NULL));
    if (code == CLI_DONE) code = open_vocabulary(w, ctx, from, config);
    if (code == CLI_DONE) code = take_prompts(w);
    if (code == CLI_DONE) code = open_generator(w, from, ctx);
    if (code == CLI_DONE)
        code = w->talks ? cli_talk(&w->chat, &w->vocabulary, w->generator, &w->sampling) : generate(w);
    cli_prompts_destroy(&w->prompts);
    an_generator_destroy(&w->generator);
    cli_vocabulary_close(&w->vocabulary);
    an_context_destroy(&ctx);
    return code;
}

static int run(const cli_call *call) {
    work w = {.call = call,
              .as_json = call->values[INPUT] != NULL,
              .as_tokens = call->values[TOKENS] != NULL,
              .as_chat = call->values[CHAT] != NULL};
    w.talks = w.as_chat && !w.as_json;
    cli_checkpoint from;
    an_config *config = NULL;
    if (w.as_chat && (call->values[PROMPT] || w.as_tokens))
        return cli_misuse(call,
                          "--chat and --%s cannot be combined: a conversation comes from standard input or --input",
                          w.as_tokens ? "tokens" : "prompt");
    if (!call->values[PROMPT] && !w.as_json && !w.as_tokens && !w.as_chat)
        return cli_misuse(call, "the prompt is missing: give --prompt TEXT, --input FILE, --tokens N,N,... or --chat");
    int code = read_sampling(&w);
    if (code != CLI_DONE) return code;
    code = cli_checkpoint_open_model(call, call->argument, call->values[CHECKPOINT], &from);
    if (code == CLI_DONE && !from.info.is_run) {
        code = cli_published_open(&w.published, call, from.ctx);
    } else if (code == CLI_DONE) {
        const an_status status = cli_checkpoint_config(&from, from.ctx, 0, NULL, &config);
        if (status != AN_OK) code = cli_refuse(call, from.ctx, NULL, status);
    }
    if (code == CLI_DONE) code = settle_sampling(&w);
    if (code == CLI_DONE) code = run_with(&w, &from, config);
    an_config_destroy(&config);
    cli_checkpoint_close(&from);
    return code == CLI_DONE ? cli_finish(call) : code;
}

const cli_command cli_generate = {
    .name = "generate",
    .argument = "RUN|CHECKPOINT|MODEL",
    .summary = "continue a text with a language model",
    .text =
        "Continues prompts with the tokens that a model finds likely, and prints them as they are generated. For a "
        "run, its best checkpoint is used if it has one, otherwise the newest. MODEL is a published model: a folder as "
        "Hugging Face has it, or a GGUF "
        "file; the settings that its generation_config.json or its keys have are the defaults of the options. A text "
        "is the same for the same weights, prompt and options, whatever "
        "else is generated beside it and on any number of threads. A prompt that was trained by characters needs "
        "the training text, whose characters define the tokens. With --chat, messages are written as the model's chat "
        "template says, and the model answers; what looks like a special token in a message is text.",
    .options = options,
    .run = run,
};
