/* Fuzzes tokenizers: the bytes before the first NUL are a tokenizer.json, and those behind it a text for it. A refusal
 * names the file and leaves no memory. What is taken encodes any text, twice with the same result, to ids of its
 * vocabulary, and decodes them as a whole and as a stream. Normalizers make of a text at most 32 times as much and
 * 4,096 bytes, of which a template has 64 copies. */
#include "fuzz_data.h"
#include "fuzz_peak.h"

#include "anneal/text.h"
#include "base/context.h"
#include "base/text/utf8.h"

static void decode(const an_tokenizer *t, const int32_t *tokens, int64_t count) {
    an_decoder *decoder = NULL;
    const char *text;
    size_t length, whole;
    if (an_decoder_create(&decoder, t, true)) broken("no decoder");
    for (int64_t i = 0; i < count; i++)
        if (an_decoder_push(decoder, tokens[i], &text, &length) || strlen(text) > length || !an_utf8_is_valid(text))
            broken("a stream that is not UTF-8");
    if (an_decoder_end(decoder, &text, &length) || !an_utf8_is_valid(text)) broken("an end that is not UTF-8");
    an_decoder_destroy(&decoder);
    if (an_tokenizer_decode(t, tokens, count, true, NULL, 0, &whole)) broken("tokens that cannot be decoded");
}

static void encode(const an_tokenizer *t, const char *text, size_t length) {
    an_tokenizer_info info;
    an_tokenizer_info_init(&info, sizeof info);
    an_encode_options options;
    an_encode_options_init(&options, sizeof options);
    an_encoder *one = NULL, *two = NULL;
    const int32_t *a, *b;
    int64_t n, m;
    if (an_tokenizer_info_get(t, &info) || an_encoder_create(&one, t) || an_encoder_create(&two, t))
        broken("no encoder");
    peak_begin();
    const an_status status = an_encoder_run(one, text, length, NULL, &a, &n);
    peak_check(1 << 20, 64, 4096 + 32 * length);
    if (status == AN_OK) {
        if (n > (int64_t)(64 * (4096 + 1 + 32 * 3 * length))) broken("more tokens than a text can have");
        if (an_encoder_run(two, text, length, &options, &b, &m) || n != m ||
            (n && memcmp(a, b, (size_t)n * sizeof *a) != 0))
            broken("two encoders differ");
        for (int64_t i = 0; i < n; i++)
            if (a[i] < 0 || a[i] >= info.count || !an_tokenizer_token(t, a[i], NULL)) broken("an id that is no token");
        decode(t, a, n);
        options.pair = text;
        options.pair_length = length;
        options.special = options.parse = false;
        const an_status of_pair = an_encoder_run(two, text, length, &options, &b, &m);
        if (of_pair != AN_OK && of_pair != AN_ERR_UNSUPPORTED) broken("a pair that cannot be encoded");
    } else if (status != AN_ERR_UNSUPPORTED || !*an_last_error(NULL)) {
        /* A pattern may take too many steps, and a text may become too long. */
        broken("an error of a strange kind");
    }
    an_encoder_destroy(&one);
    an_encoder_destroy(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    an_tokenizer *t = NULL;
    if (size > 1 << 16) return 0;
    need_context();
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const size_t length = end ? (size_t)(end - data) : size, held = an_context_bytes(context);
    const an_status status =
        an_tokenizer_create(&t, context, (const char *)(size ? data : (const uint8_t *)""), length, NULL, 0);
    if (status == AN_OK) {
        if (end)
            encode(t, (const char *)end + 1, size - length - 1);
        else
            encode(t, (const char *)data, size);
        an_tokenizer_destroy(&t);
    } else if (status != AN_ERR_DAMAGED && status != AN_ERR_UNSUPPORTED && status != AN_ERR_PARSE) {
        broken("a refusal of a strange kind");
    } else if (strncmp(an_last_error(context), "tokenizer.json: ", 16) != 0) {
        broken("a refusal without the file");
    }
    if (t || an_context_bytes(context) != held) broken("memory was not given back");
    return 0;
}
