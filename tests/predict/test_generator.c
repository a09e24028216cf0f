/* Generators: what is generated does not depend on batch, threads or cuts, greedy tokens are those of a predictor,
 * and every mistake has its message. */
#include "anneal/generate.h"
#include "anneal/predict.h"
#include "open/support.h"
#include "predict/sampler.h"

#define POEM "data: {train: {type: text, path: poem.txt, tokens: chars}}\n"
#define GPT2 "model: {type: gpt2, layers: 2, heads: 2, width: 32, context: 48}\n" POEM
#define LLAMA "model: {type: llama, layers: 2, heads: 4, kv_heads: 2, width: 32, hidden: 48, context: 48}\n" POEM
#define BLOCKS "model: {type: llama, layers: 2, heads: 4, kv_heads: 2, width: 64, hidden: 96, context: 48}\n" POEM
#define RUN "batch: {global: 8}\noptimizer: {lr: 5e-3}\nrun: {steps: 12, dir: saved}\n"

enum { CONTEXT = 48, SEQUENCES = 7, MOST_TOKENS = CONTEXT };

static const char *const runs[] = {
    GPT2 "train: {precision: f32}\n" RUN,
    GPT2 "train: {precision: bf16}\n" RUN,
    LLAMA "train: {precision: f32}\n" RUN,
    LLAMA "train: {precision: bf16}\n" RUN,
};

static int write_data(void **state) {
    (void)state;
    write_text("poem.txt",
               "a line and a line and one more line, and so it goes on and on, line by line; who said so?\n");
    return 0;
}

static an_trainer *save_run(const char *config) {
    assert_int_equal(system("rm -rf saved"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    an_trainer *trainer = open_run(config);
    train(trainer);
    OK(ctx, an_trainer_save(trainer, 1));
    return trainer;
}

static an_generator_options options_of(int64_t maximum, int64_t chunk, int threads) {
    an_generator_options o;
    an_generator_options_init(&o, sizeof o);
    o.max_sequences = maximum;
    o.chunk = chunk;
    o.threads = threads;
    return o;
}

static an_generator *open_generator(const an_generator_options *options) {
    an_generator *g = NULL;
    OK(ctx, an_generator_open(&g, ctx, "saved", options));
    return g;
}

/* Sequence i has a prompt of its own length, and its own way of sampling. */
static an_sampling_options sampling_of(int i) {
    an_sampling_options o;
    an_sampling_options_init(&o, sizeof o);
    o.seed = 5;
    o.sequence = i;
    o.max_tokens = i == 5 ? 0 : 9 + i;
    if (i % 3 == 1) o.temperature = 1.5;
    if (i % 3 == 2) o.temperature = 0.9, o.top_k = 9, o.top_p = 0.95, o.min_p = 0.02, o.repetition_penalty = 1.2;
    return o;
}

static int64_t prompt_of(int i, int32_t *tokens) {
    const int64_t count = 1 + i * 5 % 17;
    for (int64_t k = 0; k < count; k++) tokens[k] = (int32_t)((k * 7 + i) % 13);
    return count;
}

typedef struct {
    int64_t counts[SEQUENCES];
    int32_t tokens[SEQUENCES][MOST_TOKENS];
    an_generation_end ends[SEQUENCES];
} generated;

/* Adds sequences as soon as there is room. */
static void generate(an_generator *g, generated *all) {
    an_generator_info info;
    an_generated tokens[SEQUENCES];
    int64_t count = 1;
    int next = 0;
    memset(all, 0, sizeof *all);
    while (count > 0 || next < SEQUENCES) {
        an_generator_info_init(&info, sizeof info);
        OK(ctx, an_generator_info_get(g, &info));
        for (; next < SEQUENCES && info.free > 0; next++, info.free--) {
            int32_t prompt[CONTEXT];
            const an_sampling_options o = sampling_of(next);
            assert_int_equal(an_generator_add(g, prompt, prompt_of(next, prompt), &o), AN_OK);
        }
        assert_int_equal(an_generator_step(g, tokens, &count), AN_OK);
        for (int64_t i = 0; i < count; i++) {
            const int64_t at = tokens[i].sequence;
            assert_int_equal(all->ends[at], AN_GENERATION_GOES_ON);
            all->tokens[at][all->counts[at]++] = tokens[i].token;
            all->ends[at] = tokens[i].end;
        }
    }
}

static void test_the_same_in_any_batch(void **state) {
    static const struct {
        int64_t maximum, chunk;
        int threads;
    } ways[] = {{SEQUENCES, 256, 2}, {3, 256, 1}, {3, 1, 2}, {2, 4, 2}};
    (void)state;
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        generated alone, other;
        an_trainer *trainer = save_run(runs[r]);
        an_generator_options o = options_of(1, 256, 1);
        an_generator *g = NULL;
        OK(ctx, an_generator_create(&g, trainer, &o));
        generate(g, &alone);
        an_generator_destroy(&g);
        an_trainer_destroy(&trainer);
        for (int i = 0; i < SEQUENCES; i++) {
            assert_int_equal(alone.counts[i], i == 5 ? CONTEXT - 1 - 5 * 5 % 17 : 9 + i);
            assert_int_equal(alone.ends[i], i == 5 ? AN_GENERATION_CONTEXT : AN_GENERATION_LENGTH);
        }
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            o = options_of(ways[w].maximum, ways[w].chunk, ways[w].threads);
            g = open_generator(&o);
            generate(g, &other);
            assert_memory_equal(&alone, &other, sizeof alone);
            an_generator_destroy(&g);
        }
    }
}

/* Products round what they multiply blocks by, each row by itself. */
static void test_the_same_with_blocks(void **state) {
    static const an_dtype precisions[] = {AN_DTYPE_F32, AN_DTYPE_BF16};
    static const struct {
        int64_t maximum, chunk;
        int threads;
    } ways[] = {{SEQUENCES, 256, 2}, {3, 1, 1}, {2, 4, 2}};
    (void)state;
    an_trainer *trainer = save_run(BLOCKS RUN);
    an_trainer_destroy(&trainer);
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
        generated alone, other;
        an_generator_options o = options_of(1, 256, 1);
        o.precision = precisions[p];
        o.storage = AN_DTYPE_Q8_0;
        an_generator *g = open_generator(&o);
        generate(g, &alone);
        an_generator_destroy(&g);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            o.max_sequences = ways[w].maximum, o.chunk = ways[w].chunk, o.threads = ways[w].threads;
            g = open_generator(&o);
            generate(g, &other);
            assert_memory_equal(&alone, &other, sizeof alone);
            an_generator_destroy(&g);
        }
    }
}

/* Greedy tokens are the best ones of a predictor that is asked for the whole sequence each time. */
static void test_greedy_is_what_a_predictor_says(void **state) {
    (void)state;
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        an_trainer *trainer = save_run(runs[r]);
        const an_generator_options o = options_of(1, 256, 2);
        an_generator *g = NULL;
        an_predictor *p = NULL;
        OK(ctx, an_generator_create(&g, trainer, &o));
        OK(ctx, an_predictor_create(&p, trainer, NULL));
        const int64_t vocabulary = an_predictor_output_elements(p) / CONTEXT;
        float *logits = calloc((size_t)(vocabulary * CONTEXT), sizeof *logits);
        int32_t sequence[CONTEXT] = {3, 1, 4};
        OK(ctx, an_generator_add(g, sequence, 3, NULL));
        for (int64_t known = 3; known < CONTEXT; known++) {
            an_generated token;
            int64_t count, best = 0;
            assert_int_equal(an_predictor_run_tokens(p, 1, sequence, logits), AN_OK);
            const float *row = logits + (known - 1) * vocabulary;
            for (int64_t i = 0; i < vocabulary; i++)
                if (row[i] > row[best]) best = i;
            assert_int_equal(an_generator_step(g, &token, &count), AN_OK);
            assert_int_equal(count, 1);
            assert_int_equal(token.token, best);
            assert_int_equal(token.end, known + 1 < CONTEXT ? AN_GENERATION_GOES_ON : AN_GENERATION_CONTEXT);
            sequence[known] = token.token;
        }
        free(logits);
        an_predictor_destroy(&p);
        an_generator_destroy(&g);
        an_trainer_destroy(&trainer);
    }
}

/* ---- samplers ---- */

enum { WORDS = 5, DRAWS = 20000 };
static const double probabilities[WORDS] = {0.4, 0.3, 0.15, 0.1, 0.05};

/* How often each token is drawn: at one place of many sequences, or at many places of one. */
static void draw(const an_sampling_options *given, bool in_one, double *shares) {
    static int32_t history[DRAWS + 3] = {1, 4, 1};
    an_sampling_options o = *given;
    an_candidate candidates[WORDS];
    for (int i = 0; i < WORDS; i++) shares[i] = 0;
    for (int i = 3; i < DRAWS + 3; i++) history[i] = 1;
    for (int d = 0; d < DRAWS; d++) {
        float logits[WORDS];
        for (int i = 0; i < WORDS; i++) logits[i] = (float)log(probabilities[i]);
        o.sequence = in_one ? 9 : d;
        shares[an_sample(&o, history, in_one ? 3 + d : 3, WORDS, logits, candidates)] += 1.0 / DRAWS;
    }
}

static void assert_shares(const an_sampling_options *o, const double *expected) {
    for (int in_one = 0; in_one < 2; in_one++) {
        double shares[WORDS], sum = 0;
        draw(o, in_one && o->repetition_penalty == 1, shares);
        for (int i = 0; i < WORDS; i++) sum += expected[i];
        for (int i = 0; i < WORDS; i++)
            if (fabs(shares[i] - expected[i] / sum) > 0.015 || (expected[i] == 0 && shares[i] > 0))
                fail_msg("token %d: %g, not %g", i, shares[i], expected[i] / sum);
    }
}

static void test_samplers(void **state) {
    an_sampling_options usual, o;
    (void)state;
    an_sampling_options_init(&usual, sizeof usual);
    assert_shares(&usual, (const double[]){1, 0, 0, 0, 0});
    usual.temperature = 1;
    assert_shares(&usual, probabilities);
    o = usual, o.temperature = 0.5;
    assert_shares(&o, (const double[]){0.16, 0.09, 0.0225, 0.01, 0.0025});
    o = usual, o.top_k = 2;
    assert_shares(&o, (const double[]){0.4, 0.3, 0, 0, 0});
    o = usual, o.top_p = 0.75; /* the first three have 0.85, the first two 0.7 */
    assert_shares(&o, (const double[]){0.4, 0.3, 0.15, 0, 0});
    o = usual, o.min_p = 0.3;
    assert_shares(&o, (const double[]){0.4, 0.3, 0.15, 0, 0});
    o = usual, o.repetition_penalty = 2; /* tokens 1 and 4, once each; logits are negative */
    assert_shares(&o, (const double[]){0.4, 0.09, 0.15, 0.1, 0.0025});
    o = usual, o.top_k = 3, o.top_p = 0.8; /* of the first three, 0.4/0.85 and 0.3/0.85 are more than 0.8 */
    assert_shares(&o, (const double[]){0.4, 0.3, 0, 0, 0});
}

/* ---- the rest ---- */

static void test_stops_and_memory(void **state) {
    an_trainer *trainer = save_run(runs[0]);
    const an_generator_options o = options_of(2, 16, 1);
    an_generator *g = NULL;
    an_generated tokens[2];
    an_generator_info info;
    int64_t count;
    int32_t stop;
    (void)state;
    OK(ctx, an_generator_create(&g, trainer, &o));
    OK(ctx, an_generator_add(g, (const int32_t[]){2, 3}, 2, NULL));
    assert_int_equal(an_generator_step(g, tokens, &count), AN_OK);
    stop = tokens[0].token;
    an_sampling_options s = sampling_of(3); /* greedy */
    s.stop_tokens = &stop;
    s.stop_count = 1;
    s.sequence = 77;
    OK(ctx, an_generator_add(g, (const int32_t[]){2, 3}, 2, &s));
    assert_int_equal(an_generator_step(g, tokens, &count), AN_OK);
    assert_int_equal(count, 2);
    assert_int_equal(tokens[1].sequence, 77);
    assert_int_equal(tokens[1].token, stop);
    assert_int_equal(tokens[1].end, AN_GENERATION_STOP);
    assert_int_equal(an_generator_stop(g, 77), AN_ERR_UNKNOWN);
    assert_int_equal(an_generator_stop(g, 0), AN_OK);
    assert_int_equal(an_generator_step(g, tokens, &count), AN_OK);
    assert_int_equal(count, 0);
    an_generator_info_init(&info, sizeof info);
    OK(ctx, an_generator_info_get(g, &info));
    assert_int_equal(info.free, 2);
    assert_int_equal(info.cache,
                     2 * 2 * 2 * CONTEXT * 32 * 4); /* layers, keys and values, slots, positions, width, f32 */
    assert_int_equal(info.peak, info.weights + info.cache + info.work + info.tables);
    an_generator_destroy(&g);
    an_trainer_destroy(&trainer);
}

static void mistake(an_generator *g, const int32_t *tokens, int64_t count, const an_sampling_options *o,
                    an_status status, const char *words) {
    assert_int_equal(an_generator_add(g, tokens, count, o), status);
    if (!strstr(an_last_error(NULL), words)) fail_msg("'%s' is not in: %s", words, an_last_error(NULL));
}

static void test_mistakes(void **state) {
    an_trainer *trainer = save_run(runs[0]);
    an_generator_options o = options_of(1, 16, 1);
    an_generator *g = NULL;
    an_sampling_options usual, s;
    const int32_t many[CONTEXT] = {0}, wrong[] = {1, 99};
    (void)state;
    an_sampling_options_init(&usual, sizeof usual);
    OK(ctx, an_generator_create(&g, trainer, &o));
    mistake(g, many, 0, NULL, AN_ERR_ARGUMENT, "1 token or more");
    mistake(g, many, CONTEXT, NULL, AN_ERR_ARGUMENT, "at most 48");
    mistake(g, wrong, 2, NULL, AN_ERR_ARGUMENT, "token 1 of the prompt is 99");
    s = usual, s.temperature = -1;
    mistake(g, many, 1, &s, AN_ERR_ARGUMENT, "temperature is -1");
    s = usual, s.top_p = 0;
    mistake(g, many, 1, &s, AN_ERR_ARGUMENT, "top_p is 0");
    s = usual, s.min_p = 2;
    mistake(g, many, 1, &s, AN_ERR_ARGUMENT, "min_p is 2");
    s = usual, s.top_k = -1;
    mistake(g, many, 1, &s, AN_ERR_ARGUMENT, "top_k is -1");
    s = usual, s.repetition_penalty = 0;
    mistake(g, many, 1, &s, AN_ERR_ARGUMENT, "repetition_penalty is 0");
    s = usual, s.max_tokens = -1;
    mistake(g, many, 1, &s, AN_ERR_ARGUMENT, "max_tokens is -1");
    OK(ctx, an_generator_add(g, many, 1, &usual));
    mistake(g, many, 1, &usual, AN_ERR_ARGUMENT, "sequence 0 is already being generated");
    s = usual, s.sequence = 1;
    mistake(g, many, 1, &s, AN_ERR_STATE, "made for no more");
    an_generator_destroy(&g);
    o.context = CONTEXT + 1;
    FAILS(ctx, an_generator_create(&g, trainer, &o), AN_ERR_ARGUMENT, "the model has 48 positions");
    o = options_of(0, 16, 1);
    FAILS(ctx, an_generator_create(&g, trainer, &o), AN_ERR_ARGUMENT, "max_sequences is 0");
    an_trainer_destroy(&trainer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_same_in_any_batch, write_data),
        cmocka_unit_test_setup(test_the_same_with_blocks, write_data),
        cmocka_unit_test_setup(test_greedy_is_what_a_predictor_says, write_data),
        cmocka_unit_test_setup(test_samplers, write_data),
        cmocka_unit_test_setup(test_stops_and_memory, write_data),
        cmocka_unit_test_setup(test_mistakes, write_data),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
