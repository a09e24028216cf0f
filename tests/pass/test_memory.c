/* The memory pass: no two values that live at once share a byte, and the plan is close to what no plan can beat. */
#include "anneal/models.h"
#include "anneal/plan.h"
#include "exec/plan.h"
#include "pass/largest_first.h"
#include "pass/offsets.h"
#include "support/support.h"

/* An independent check of a plan: a sweep over instructions with all pairs that live. */
static void check_lives(const an_memory_plan *m, const char *what) {
    for (size_t i = 0; i < m->life_count; i++) {
        const an_life *a = &m->lives[i];
        assert_true(a->offset >= 0 && a->offset % 64 == 0 && a->offset + a->bytes <= m->arena_bytes);
        for (size_t k = i + 1; k < m->life_count && m->lives[k].begin <= a->end; k++) {
            const an_life *b = &m->lives[k];
            bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
            bool in_place = m->in_place && b->begin == a->end && a->offset == b->offset && a->bytes == b->bytes &&
                            b->node->op->in_place && !b->scratch;
            if (!apart && !in_place)
                fail_msg("%s: %s at '%s' [%lld, %lld) and %s at '%s' [%lld, %lld) live at once", what,
                         a->node->op->name, a->node->path, (long long)a->offset, (long long)(a->offset + a->bytes),
                         b->node->op->name, b->node->path, (long long)b->offset, (long long)(b->offset + b->bytes));
        }
    }
    assert_true(m->most_alive <= m->arena_bytes);
    print_message("%s: %lld instructions, arena %lld, at once %lld (%.3f), in place %s\n", what,
                  (long long)m->instructions, (long long)m->arena_bytes, (long long)m->most_alive,
                  (double)m->arena_bytes / (double)m->most_alive, m->in_place ? "yes" : "no");
}

static void check_plan(an_context *ctx, an_graph *g, int count, const char *const *symbols, const int64_t *maxima) {
    an_plan *plan = NULL;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.symbol_count = count;
    options.symbols = symbols;
    options.maxima = maxima;
    options.programs = 7;
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_plan_create(&plan, ctx, g, &options));
    const an_memory_plan *largest = plan->forms[0]->memory; /* one arena serves all forms, so this one decides */
    for (int f = 0; f < AN_FORMS; f++) {
        const an_memory_plan *m = plan->forms[f]->memory;
        check_lives(m, g->name);
        if (m->arena_bytes > largest->arena_bytes) largest = m;
    }
    assert_true((double)largest->arena_bytes <= 1.25 * (double)largest->most_alive);
    an_plan_destroy(&plan);
}

static void test_nothing_overlaps(void **state) {
    (void)state;
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_context_options two;
    an_context_options_init(&two, sizeof two);
    two.threads = 2; /* kernels have room for each of them, so plans depend on how many there are */
    assert_int_equal(an_context_create(&ctx, &two), AN_OK);
    OK(ctx, small_mlp(&g, ctx));
    check_plan(ctx, g, 1, (const char *const[]){"batch"}, (const int64_t[]){64});
    an_graph_destroy(&g);

    an_cnn_options cnn;
    an_cnn_options_init(&cnn, sizeof cnn);
    cnn.channels = 1;
    cnn.height = cnn.width = 28;
    cnn.classes = 10;
    cnn.filter_count = 2;
    cnn.filters = (const int64_t[]){16, 32};
    cnn.hidden = 128;
    cnn.batch_norm = true;
    OK(ctx, an_model_cnn(&g, ctx, &cnn));
    check_plan(ctx, g, 1, (const char *const[]){"batch"}, (const int64_t[]){32});
    an_graph_destroy(&g);

    for (int layers = 1; layers <= 12; layers += 11) {
        an_gpt2_options gpt;
        an_gpt2_options_init(&gpt, sizeof gpt);
        gpt.layers = layers;
        gpt.heads = 12;
        gpt.width = 768;
        gpt.context = 1024;
        gpt.vocabulary = 50257;
        gpt.dropout = layers == 1 ? 0.1 : 0;
        OK(ctx, an_model_gpt2(&g, ctx, &gpt));
        check_plan(ctx, g, 2, (const char *const[]){"batch", "tokens"}, (const int64_t[]){4, 256});
        an_graph_destroy(&g);
    }
    an_llama_options llama;
    an_llama_options_init(&llama, sizeof llama);
    llama.layers = 3;
    llama.heads = 8;
    llama.kv_heads = 2;
    llama.width = 64;
    llama.hidden = 172;
    llama.context = 64;
    llama.vocabulary = 500;
    OK(ctx, an_model_llama(&g, ctx, &llama));
    check_plan(ctx, g, 2, (const char *const[]){"batch", "tokens"}, (const int64_t[]){2, 64});
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

/* The allocator of offsets against a plain map of taken bytes. */
static void test_offsets(void **state) {
    (void)state;
    enum { SPACE = 1 << 16, MOST = 200, ROUNDS = 20000 };
    an_context *ctx = NULL;
    an_offsets offsets;
    static unsigned char taken[SPACE];
    struct {
        an_offset_block *block;
        int64_t bytes;
    } held[MOST] = {0};
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_offsets_create(&offsets, ctx, MOST));
    for (uint64_t i = 0; i < ROUNDS; i++) {
        int slot = (int)((noise(i) + 1) / 2 * MOST);
        if (held[slot].block) {
            memset(taken + an_offset_of(held[slot].block), 0, (size_t)held[slot].bytes);
            an_offsets_give(&offsets, held[slot].block);
            held[slot].block = NULL;
        } else {
            int64_t bytes = 1 + (int64_t)((noise(i + ROUNDS) + 1) / 2 * 200);
            an_offset_block *b = an_offsets_take(&offsets, bytes);
            int64_t at = an_offset_of(b);
            assert_true(at >= 0 && at + bytes <= offsets.end && at + bytes <= SPACE);
            for (int64_t k = at; k < at + bytes; k++) {
                assert_int_equal(taken[k], 0);
                taken[k] = 1;
            }
            held[slot].block = b;
            held[slot].bytes = bytes;
        }
    }
    an_offsets_destroy(&offsets);
    an_context_destroy(&ctx);
}

/* Weights and gradients in pieces are few values that are much larger than the rest, and they must leave no gaps. */
static void test_pieces_leave_no_gaps(void **state) {
    (void)state;
    an_context *ctx = NULL;
    an_graph *g = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_model_preset(&g, ctx, "gpt2-124m", AN_DTYPE_F32));
    OK(ctx, an_graph_verify(g));
    for (int i = 0; i < 8; i++) {
        char name[64];
        an_plan *plan = NULL;
        an_plan_options options;
        an_plan_options_init(&options, sizeof options);
        options.symbol_count = 2;
        options.symbols = (const char *const[]){"batch", "tokens"};
        options.maxima = (const int64_t[]){1, 64};
        options.precision = i & 1 ? AN_DTYPE_BF16 : AN_DTYPE_NONE;
        options.recompute = i & 2 ? AN_RECOMPUTE_BLOCK : AN_RECOMPUTE_NONE;
        options.shard = i & 4 ? AN_SHARD_FULL : AN_SHARD_GRADIENTS;
        OK(ctx, an_plan_create(&plan, ctx, g, &options));
        const an_memory_plan *m = plan->forms[AN_FORM_TRAIN_FIRST]->memory;
        snprintf(name, sizeof name, "%s, %s, recompute %s", i & 4 ? "full" : "gradients", i & 1 ? "bf16" : "f32",
                 i & 2 ? "block" : "none");
        check_lives(m, name);
        if ((double)m->arena_bytes > 1.02 * (double)m->most_alive) fail_msg("%s has gaps", name);
        an_plan_destroy(&plan);
    }
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

/* Random lives, all pairs compared; and as any order of equal values gives the same plan, it is given twice. */
static void test_largest_first(void **state) {
    (void)state;
    enum { MOST = 300, TIME = 100 };
    an_context *ctx = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    for (uint64_t round = 0; round < 40; round++) {
        an_lasting values[MOST], again[MOST];
        const size_t count = 1 + (size_t)((noise(round) + 1) / 2 * (MOST - 1));
        int64_t bytes, same, end = 0;
        for (size_t i = 0; i < count; i++) {
            const uint64_t at = (round * MOST + i) * 3 + 1000;
            const int64_t begin = (int64_t)((noise(at) + 1) / 2 * TIME), life = (int64_t)((noise(at + 1) + 1) * 10);
            values[i] = again[i] = (an_lasting){
                .begin = begin, .end = begin + life, .bytes = 64 * (1 + (int64_t)((noise(at + 2) + 1) * 8))};
        }
        OK(ctx, an_place_largest_first(ctx, values, count, &bytes));
        OK(ctx, an_place_largest_first(ctx, again, count, &same));
        assert_int_equal(bytes, same);
        for (size_t i = 0; i < count; i++) {
            const an_lasting *a = &values[i];
            assert_int_equal(a->offset, again[i].offset);
            assert_true(a->offset >= 0 && a->offset % 64 == 0);
            if (a->offset + a->bytes > end) end = a->offset + a->bytes;
            for (size_t k = i + 1; k < count; k++) {
                const an_lasting *b = &values[k];
                const bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
                assert_true(apart || a->end < b->begin || b->end < a->begin);
            }
        }
        assert_int_equal(bytes, end);
    }
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_offsets), cmocka_unit_test(test_largest_first),
                                       cmocka_unit_test(test_nothing_overlaps),
                                       cmocka_unit_test(test_pieces_leave_no_gaps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
