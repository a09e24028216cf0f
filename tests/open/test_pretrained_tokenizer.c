/* The tokenizer in a GGUF file: the tokens of a text, the template of conversations, and keys that contradict each
 * other. */
#include "anneal/pretrained.h"
#include "data/support.h"
#include "store/gguf_made.h"

static const char path[] = "t.gguf";
enum { STRING = 8, INTEGERS = 5, U32 = 4, BOOL = 7 };

static void add_string(made *m, const char *name, const char *text) {
    add_text(m, name);
    add_number(m, 4, STRING);
    add_text(m, text);
}

static void add_strings(made *m, const char *name, int count, const char *const *texts) {
    add_array(m, name, STRING, (uint64_t)count);
    for (int i = 0; i < count; i++) add_text(m, texts[i]);
}

#define SPACE "\xc4\xa0" /* Ġ */
static const char *const tokens[] = {"<end>", "a", "b", "ab", SPACE, (SPACE "ab")};
static const char *const merges[] = {"a b", (SPACE " ab")};
enum { TOKENS = sizeof tokens / sizeof *tokens, MERGES = sizeof merges / sizeof *merges };

/* A file with all keys; one of them may be another, or be left out. */
typedef struct {
    const char *model, *pre, *chat;
    int64_t end;
    int types;
    bool has_nul;
} content;
static const content usual = {"gpt2", "gpt-2", "<|im_start|>", 0, TOKENS, false};

static void make(const content *c) {
    made m;
    const uint64_t keys = (uint64_t)(c->model != NULL) + (uint64_t)(c->chat != NULL) + 7;
    add_head(&m, keys);
    if (c->model) add_string(&m, "tokenizer.ggml.model", c->model);
    if (c->chat) add_string(&m, "tokenizer.chat_template", c->chat);
    add_string(&m, "tokenizer.ggml.pre", c->pre);
    add_strings(&m, "tokenizer.ggml.tokens", TOKENS, tokens);
    if (c->has_nul) m.bytes[m.size - 1] = 0;
    add_strings(&m, "tokenizer.ggml.merges", MERGES, merges);
    add_array(&m, "tokenizer.ggml.token_type", INTEGERS, (uint64_t)c->types);
    for (int i = 0; i < c->types; i++) add_number(&m, 4, i == 0 ? AN_TOKEN_CONTROL : AN_TOKEN_NORMAL);
    add_key(&m, "tokenizer.ggml.eos_token_id", U32, 4, (uint64_t)c->end);
    add_key(&m, "tokenizer.ggml.padding_token_id", U32, 4, 0);
    add_key(&m, "tokenizer.ggml.add_eos_token", BOOL, 1, 1);
    write_file(path, m.bytes, m.size);
}

static void test_tokens(void **state) {
    static const int32_t expected[] = {3, 5, 1, 0};
    an_context *ctx = NULL;
    an_tokenizer *t = NULL;
    an_encoder *e = NULL;
    an_tokenizer_info info;
    const int32_t *found;
    int64_t count;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    make(&usual);
    OK(ctx, an_pretrained_tokenizer(&t, ctx, path));
    an_tokenizer_info_init(&info, sizeof info);
    OK(ctx, an_tokenizer_info_get(t, &info));
    assert_int_equal(info.count, TOKENS);
    assert_int_equal(info.eos, 0);
    assert_int_equal(info.pad, 0);
    assert_int_equal(info.bos, -1);
    assert_true(an_tokenizer_is_special(t, 0));
    OK(ctx, an_encoder_create(&e, t));
    OK(ctx, an_encoder_run(e, "ab aba", 6, NULL, &found, &count));
    assert_int_equal(count, sizeof expected / sizeof *expected);
    assert_memory_equal(found, expected, sizeof expected);
    an_encoder_destroy(&e);
    an_tokenizer_destroy(&t);
    an_context_destroy(&ctx);
}

/* The same tokens as from its own parts, with a folder too: a path that is no GGUF file is read as an_tokenizer_open
 * does. */
static void test_folder(void **state) {
    an_context *ctx = NULL;
    an_tokenizer *t = NULL;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_pretrained_tokenizer(&t, ctx, ANNEAL_SOURCE_DIR "/tests/golden/finetune/bpe"));
    an_tokenizer_destroy(&t);
    FAILS(ctx, an_pretrained_tokenizer(&t, ctx, "nowhere"), AN_ERR_FILE, "nowhere");
    assert_null(t);
    an_context_destroy(&ctx);
}

static void test_chat(void **state) {
    char memory[AN_CHAT_SYSTEM_BYTES];
    an_chat_format format;
    an_context *ctx = NULL;
    content c = usual;
    (void)state;
    an_chat_format_init(&format, sizeof format);
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    c.chat = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
             "'<|im_end|>' + '\n'}}"
             "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
    make(&c);
    OK(ctx, an_pretrained_chat(&format, ctx, path, memory));
    assert_int_equal(format.type, AN_CHAT_CHATML);
    c.chat = NULL;
    make(&c);
    FAILS(ctx, an_pretrained_chat(&format, ctx, path, memory), AN_ERR_UNSUPPORTED, "t.gguf: there is no chat template");
    c.chat = "{{ messages }}";
    make(&c);
    FAILS(ctx, an_pretrained_chat(&format, ctx, path, memory), AN_ERR_UNSUPPORTED, "t.gguf: ");
    an_context_destroy(&ctx);
}

static void test_refused(void **state) {
    an_context *ctx = NULL;
    an_tokenizer *t = NULL;
    content c;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    c = usual, c.model = NULL, make(&c);
    FAILS(ctx, an_pretrained_tokenizer(&t, ctx, path), AN_ERR_UNSUPPORTED, "t.gguf: has no tokenizer");
    c = usual, c.model = "t5", make(&c);
    FAILS(ctx, an_pretrained_tokenizer(&t, ctx, path), AN_ERR_UNSUPPORTED, "t5");
    c = usual, c.pre = "other", make(&c);
    FAILS(ctx, an_pretrained_tokenizer(&t, ctx, path), AN_ERR_UNSUPPORTED, "other");
    c = usual, c.end = TOKENS, make(&c);
    FAILS(ctx, an_pretrained_tokenizer(&t, ctx, path), AN_ERR_DAMAGED,
          "the key 'tokenizer.ggml.eos_token_id' names token 6, but there are 6 tokens");
    c = usual, c.types = TOKENS - 1, make(&c);
    FAILS(ctx, an_pretrained_tokenizer(&t, ctx, path), AN_ERR_DAMAGED, "there are 6 tokens, but the key");
    c = usual, c.has_nul = true, make(&c);
    FAILS(ctx, an_pretrained_tokenizer(&t, ctx, path), AN_ERR_DAMAGED,
          "element 5 of the key 'tokenizer.ggml.tokens' has a NUL");
    assert_null(t);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_chat),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
