/* How a published model is meant to generate: what transformers makes of generation_config.json, the keys of GGUF,
 * and values that are refused by the name of their key. */
#include "anneal/pretrained.h"
#include "data/support.h"
#include "pretrained/sampling.h"
#include "store/gguf_made.h"

static const char path[] = "generation_config.json";
enum { VOCABULARY = 24 };

/* ---- what is taken ---- */

static const struct {
    const char *json;
    double temperature, top_p, min_p, penalty;
    int64_t top_k;
    int stops[3], stop_count;
    const char *ignored;
} taken[] = {
    {"{}", -1, -1, -1, -1, -1, {0}, 0, ""},
    {"{\"do_sample\": true}", 1, -1, -1, -1, 50, {0}, 0, ""},
    {"{\"do_sample\": true, \"temperature\": 0.6, \"top_k\": 0}", 0.6, -1, -1, -1, 0, {0}, 0, ""},
    {"{\"temperature\": 0.6, \"top_p\": 0.9, \"do_sample\": true, \"top_k\": 20, \"min_p\": 0.25}",
     0.6,
     0.9,
     0.25,
     -1,
     20,
     {0},
     0,
     ""},
    /* without do_sample, the most likely token is taken, whatever the temperature */
    {"{\"temperature\": 0.6, \"top_p\": 0.9}", -1, 0.9, -1, -1, -1, {0}, 0, ""},
    {"{\"do_sample\": false, \"temperature\": 0.6, \"repetition_penalty\": 1.25}", 0, -1, -1, 1.25, -1, {0}, 0, ""},
    {"{\"do_sample\": null, \"temperature\": null, \"eos_token_id\": null, \"top_k\": null}",
     0,
     -1,
     -1,
     -1,
     -1,
     {0},
     0,
     ""},
    {"{\"eos_token_id\": 2}", -1, -1, -1, -1, -1, {2}, 1, ""},
    {"{\"eos_token_id\": [2, 0, 2, 23]}", -1, -1, -1, -1, -1, {2, 0, 23}, 3, ""},
    {"{\"eos_token_id\": []}", -1, -1, -1, -1, -1, {0}, 0, ""},
    /* harmless, off, and named */
    {"{\"bos_token_id\": 1, \"max_length\": 4096, \"transformers_version\": \"5.22.0\", \"cache_config\": {\"a\": "
     "[1]}}",
     -1,
     -1,
     -1,
     -1,
     -1,
     {0},
     0,
     ""},
    {"{\"num_beams\": 1, \"typical_p\": 1.0, \"bad_words_ids\": null, \"suppress_tokens\": [], \"penalty_alpha\": 0.0, "
     "\"token_healing\": false}",
     -1,
     -1,
     -1,
     -1,
     -1,
     {0},
     0,
     ""},
    {"{\"num_beams\": 4, \"new\\u001b[2J\": \"x\", \"stop_strings\": [\"end\"], \"guidance_scale\": 1.5}",
     -1,
     -1,
     -1,
     -1,
     -1,
     {0},
     0,
     "num_beams, new?[2J, stop_strings, guidance_scale"},
};

static void test_taken(void **state) {
    an_context *ctx = NULL;
    (void)state;
    OK(NULL, an_context_create(&ctx, NULL));
    const size_t held = an_context_bytes(ctx);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        an_pretrained_sampling s;
        an_pretrained_sampling_init(&s, sizeof s);
        write_text(path, taken[i].json);
        OK(ctx, an_sampling_read(&s, ctx, path, VOCABULARY));
        if (s.temperature != taken[i].temperature || s.top_p != taken[i].top_p || s.min_p != taken[i].min_p ||
            s.repetition_penalty != taken[i].penalty || s.top_k != taken[i].top_k ||
            s.stop_count != taken[i].stop_count || strcmp(s.ignored, taken[i].ignored) != 0)
            fail_msg("%s: temperature %g, top_p %g, min_p %g, penalty %g, top_k %d, %d stops, ignored '%s'",
                     taken[i].json, s.temperature, s.top_p, s.min_p, s.repetition_penalty, (int)s.top_k, s.stop_count,
                     s.ignored);
        for (int k = 0; k < s.stop_count; k++) assert_int_equal(s.stop_tokens[k], taken[i].stops[k]);
    }
    assert_int_equal(an_context_bytes(ctx), held);
    an_context_destroy(&ctx);
}

/* The list of keys has an end. */
static void test_many_keys(void **state) {
    static char json[1 << 14];
    an_context *ctx = NULL;
    an_pretrained_sampling s;
    size_t length = 0;
    (void)state;
    OK(NULL, an_context_create(&ctx, NULL));
    for (int i = 0; i < 300; i++)
        length += (size_t)snprintf(json + length, sizeof json - length, "%s\"unknown_%d\": true", i ? ", " : "{", i);
    snprintf(json + length, sizeof json - length, "}");
    write_text(path, json);
    an_pretrained_sampling_init(&s, sizeof s);
    OK(ctx, an_sampling_read(&s, ctx, path, VOCABULARY));
    length = strlen(s.ignored);
    assert_true(length < sizeof s.ignored && length > sizeof s.ignored / 2);
    assert_string_equal(s.ignored + length - 5, ", ...");
    assert_true(strchr(s.ignored, '.') == s.ignored + length - 3);
    an_context_destroy(&ctx);
}

/* ---- what is refused ---- */

static const struct {
    const char *json, *words;
} refused[] = {
    {"", "byte 0"},
    {"[]", "byte 0"},
    {"{\"temperature\": 1} x", "byte 19"},
    {"{\"temperature\": \"hot\"}", "the value of 'temperature'"},
    {"{\"temperature\": -0.5}", "temperature is -0.5, but it must be from 0 to 1e6"},
    {"{\"temperature\": 1e300}", "temperature is 1e+300"},
    {"{\"temperature\": 1e999}", "the value of 'temperature'"},
    {"{\"temperature\": NaN}", "byte 16"},
    {"{\"temperature\": 1, \"temperature\": 1}", "the value of 'temperature': this key appears twice"},
    {"{\"top_p\": 0}", "top_p is 0, but it must be above 0 and at most 1"},
    {"{\"top_p\": 1.5}", "top_p is 1.5"},
    {"{\"min_p\": 2}", "min_p is 2, but it must be from 0 to 1"},
    {"{\"repetition_penalty\": 0}", "repetition_penalty is 0, but it must be above 0"},
    {"{\"repetition_penalty\": [1]}", "the value of 'repetition_penalty'"},
    {"{\"top_k\": -1}", "top_k is -1, but it must be a number of tokens, or 0 for all"},
    {"{\"top_k\": 2.5}", "the value of 'top_k'"},
    {"{\"top_k\": 1000000000000000000000}", "the value of 'top_k'"},
    {"{\"do_sample\": 1}", "the value of 'do_sample'"},
    {"{\"eos_token_id\": -1}", "eos_token_id names token -1, but there are 24 tokens"},
    {"{\"eos_token_id\": 24}", "eos_token_id names token 24, but there are 24 tokens"},
    {"{\"eos_token_id\": [1, 4294967296]}", "eos_token_id names token 4294967296"},
    {"{\"eos_token_id\": \"</s>\"}", "the value of 'eos_token_id'"},
    {"{\"eos_token_id\": [[1]]}", "the value of 'eos_token_id'"},
    {"{\"eos_token_id\": [1, 2}", "the value of 'eos_token_id'"},
    {"{\"other\": {\"a\": 1}", "byte"},
};

static void test_refused(void **state) {
    an_context *ctx = NULL;
    an_pretrained_sampling s;
    (void)state;
    OK(NULL, an_context_create(&ctx, NULL));
    const size_t held = an_context_bytes(ctx);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        an_pretrained_sampling_init(&s, sizeof s);
        write_text(path, refused[i].json);
        FAILS(ctx, an_sampling_read(&s, ctx, path, VOCABULARY), AN_ERR_DAMAGED, refused[i].words);
        if (strncmp(an_last_error(ctx), path, strlen(path)) != 0) fail_msg("no file: %s", an_last_error(ctx));
        assert_int_equal(an_context_bytes(ctx), held);
    }
    char many[512] = "{\"eos_token_id\": [0";
    for (int i = 1; i <= AN_PRETRAINED_STOPS; i++) snprintf(many + strlen(many), sizeof many - strlen(many), ", %d", i);
    strcat(many, "]}");
    write_text(path, many);
    an_pretrained_sampling_init(&s, sizeof s);
    FAILS(ctx, an_sampling_read(&s, ctx, path, 100), AN_ERR_UNSUPPORTED, "eos_token_id names more than 32 tokens");
    FAILS(ctx, an_sampling_read(&s, ctx, "nowhere", 100), AN_ERR_FILE, "nowhere: ");
    an_context_destroy(&ctx);
}

/* ---- GGUF ---- */

enum { U32 = 4, I32 = 5, F32 = 6, HALF = 0x3f000000, TWO = 0x40000000 };

static void test_gguf(void **state) {
    an_context *ctx = NULL;
    an_pretrained_sampling s;
    made m;
    (void)state;
    OK(NULL, an_context_create(&ctx, NULL));
    add_head(&m, 7);
    add_key(&m, "general.sampling.temp", F32, 4, HALF);
    add_key(&m, "general.sampling.top_k", I32, 4, 7);
    add_key(&m, "general.sampling.top_p", F32, 4, HALF);
    add_key(&m, "general.sampling.min_p", F32, 4, 0);
    add_key(&m, "general.sampling.penalty_repeat", F32, 4, TWO);
    add_key(&m, "tokenizer.ggml.eos_token_id", U32, 4, 5);
    add_key(&m, "tokenizer.ggml.eot_token_id", U32, 4, 6);
    write_file("s.gguf", m.bytes, m.size);
    an_pretrained_sampling_init(&s, sizeof s);
    OK(ctx, an_sampling_read_gguf(&s, ctx, "s.gguf", VOCABULARY));
    assert_true(s.temperature == 0.5 && s.top_k == 7 && s.top_p == 0.5 && s.min_p == 0 && s.repetition_penalty == 2);
    assert_true(s.stop_count == 2 && s.stop_tokens[0] == 5 && s.stop_tokens[1] == 6);
    FAILS(ctx, an_sampling_read_gguf(&s, ctx, "s.gguf", 6), AN_ERR_DAMAGED,
          "s.gguf: tokenizer.ggml.eot_token_id names token 6, but there are 6 tokens");
    add_head(&m, 1);
    add_key(&m, "general.sampling.top_p", F32, 4, TWO);
    write_file("s.gguf", m.bytes, m.size);
    FAILS(ctx, an_sampling_read_gguf(&s, ctx, "s.gguf", VOCABULARY), AN_ERR_DAMAGED,
          "s.gguf: general.sampling.top_p is 2, but it must be above 0 and at most 1");
    add_head(&m, 0);
    write_file("s.gguf", m.bytes, m.size);
    an_pretrained_sampling_init(&s, sizeof s);
    OK(ctx, an_sampling_read_gguf(&s, ctx, "s.gguf", VOCABULARY));
    assert_true(s.temperature == -1 && s.top_k == -1 && s.stop_count == 0);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_taken), cmocka_unit_test(test_many_keys),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_gguf)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
