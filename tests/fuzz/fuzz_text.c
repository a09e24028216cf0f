/* Fuzzes text by bytes and by characters. What was read as characters and is written again is the same text. */
#include "fuzz_data.h"

/* The text of all tokens, which must be the file. */
static void check_text(const an_dataset *d, const uint8_t *text, size_t size) {
    int64_t count, again;
    int32_t *tokens = malloc((size + 1) * sizeof *tokens);
    size_t at = 0;
    if (!tokens) abort();
    if (an_dataset_encode(d, (const char *)text, size, tokens, (int64_t)size, &count))
        broken("a text that lacks its own characters");
    if (an_dataset_vocabulary(d, &again) || again < 1 || count > (int64_t)size) broken("a vocabulary of nothing");
    for (int64_t i = 0; i < count; i++) {
        char bytes[AN_TOKEN_BYTES];
        int length;
        if (tokens[i] >= again || an_dataset_token_text(d, tokens[i], bytes, &length)) broken("a token without a text");
        if (at + (size_t)length > size || memcmp(bytes, text + at, (size_t)length)) broken("another text");
        at += (size_t)length;
    }
    if (at != size) broken("a shorter text");
    free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static memory_file file;
    an_text_source source;
    an_text_source_init(&source, sizeof source);
    an_dataset *d = NULL;
    if (size < 1 || size > 1 << 15) return 0;
    need_context();
    const size_t bytes = an_context_bytes(context);
    const int options = data[0];
    const bool compressed = fill_either(&file, options, data + 1, size - 1);
    source.path = file.path;
    source.tokens = options & 2 ? AN_TEXT_CHARACTERS : AN_TEXT_BYTES;
    source.context = options >> 4;
    source.end = options & 4 ? 0.5 : 0;
    const an_status status = an_dataset_create_text(&d, context, &source);
    const bool whole = compressed || size < 3 || data[1] != 0x1f || data[2] != 0x8b; /* not what gzip made of it */
    if (status == AN_OK && whole) check_text(d, data + 1, size - 1);
    finish(status, &d, bytes);
    return 0;
}
