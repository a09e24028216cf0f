/* Fuzzes data for fine-tuning: texts, prompts with completions, conversations in each template, and (if the file begins
 * with a space) pairs of answers, as lines of JSON. The whole input is a chat template too, which is recognized or
 * refused, and a message, whose tokens never have a special token but those of the template. */
#include "fuzz_data.h"

#include "anneal/chat.h"
#include "anneal/text.h"
#include "base/context.h"

static an_tokenizer *tokenizer;
static an_encoder *encoder;

/* Bytes, a few merges, and the special tokens of all templates. */
static void need_tokenizer(void) {
    static const char *const special[] = {"<|im_start|>",      "<|im_end|>", "<|start_header_id|>",
                                          "<|end_header_id|>", "<|eot_id|>", "[INST]",
                                          "[/INST]",           "</s>"};
    static const char *const texts[] = {"user assistant system the user and the assistant"};
    const size_t lengths[] = {strlen(texts[0])};
    an_bpe_trainer *trainer = NULL;
    an_bpe_options options;
    char *json = NULL;
    if (tokenizer) return;
    an_bpe_options_init(&options, sizeof options);
    options.vocabulary = 280;
    options.special = special;
    options.special_count = sizeof special / sizeof *special;
    if (an_bpe_trainer_create(&trainer, context, &options) || an_bpe_trainer_add(trainer, texts, lengths, 1) ||
        an_bpe_trainer_run(trainer, &json, NULL) ||
        an_tokenizer_create(&tokenizer, context, json, strlen(json), NULL, 0) || an_encoder_create(&encoder, tokenizer))
        broken("no tokenizer");
    an_string_release(context, &json);
    an_bpe_trainer_destroy(&trainer);
}

static int64_t special_tokens(const int32_t *tokens, int64_t count) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) found += an_tokenizer_is_special(tokenizer, tokens[i]);
    return found;
}

static void try_message(const an_chat_format *format, const char *text) {
    const an_chat_message plain = {"user", "x"}, message = {"user", text};
    const int32_t *tokens;
    int64_t count;
    if (an_chat_encode(context, encoder, format, &plain, 1, true, &tokens, &count)) broken("no tokens");
    const int64_t expected = special_tokens(tokens, count);
    if (an_chat_encode(context, encoder, format, &message, 1, true, &tokens, &count)) broken("no tokens of a message");
    if (special_tokens(tokens, count) != expected) broken("a message has special tokens");
}

static void try_template(const char *text) {
    char memory[AN_CHAT_SYSTEM_BYTES];
    an_chat_format format;
    an_chat_format_init(&format, sizeof format);
    const an_status status = an_chat_recognize(&format, context, text, memory);
    if (status != AN_OK && (status != AN_ERR_UNSUPPORTED || !strstr(an_last_error(context), "choose one of")))
        broken("a template that is refused without a way out");
    if (status == AN_OK && format.system && strlen(format.system) >= sizeof memory) broken("a long system message");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static memory_file file;
    static char text[1 << 15];
    an_chat_source source;
    an_chat_format format;
    an_dataset *d = NULL;
    if (size < 1 || size >= sizeof text) return 0;
    need_context();
    need_tokenizer();
    const size_t bytes = an_context_bytes(context);
    const int options = data[0];
    an_chat_source_init(&source, sizeof source);
    an_chat_format_init(&format, sizeof format);
    format.type = (an_chat_template)((options & 7) % 7);
    format.eos = "</s>";
    if (options & 8) format.system = "system";
    source.tokenizer = tokenizer;
    source.format = (options & 7) == 7 ? NULL : &format;
    source.context = options & 16 ? 8 : 64;
    source.packed = options & 32;
    source.prompts = options & 64;
    if (options & 128) source.begin = 0.5;
    source.pairs = size > 1 && data[1] == ' ';
    if (source.pairs) source.packed = true, source.prompts = false;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    try_template(text);
    try_message(&format, text);
    fill_file(&file, data + 1, size - 1);
    source.path = file.path;
    const an_status status = an_dataset_create_chat(&d, context, &source);
    finish(status, &d, bytes);
    return 0;
}
