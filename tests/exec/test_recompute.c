/* Recompute changes memory and time and nothing else: in every mode losses, gradients and run states have the bits of
 * `none`, what is allocated is what was planned, and a budget holds. */
#include "exec/recompute_models.h"
#include "ir/graph.h"

/* ---- a run and its bits ---- */

typedef struct {
    unsigned char *bytes;
    size_t count;
} bits;

static void note(bits *b, const void *bytes, size_t count) {
    b->bytes = realloc(b->bytes, b->count + count);
    assert_non_null(b->bytes);
    memcpy(b->bytes + b->count, bytes, count);
    b->count += count;
}

static int64_t elements_of(const an_array *a) {
    int64_t elements = 1;
    for (int i = 0; i < a->ndims; i++) elements *= a->dims[i];
    return elements;
}

/* The loss and the statistics of a run. */
static void note_outputs(an_context *ctx, const an_graph *g, const an_program *program, bits *b) {
    enum { MOST = 256 };
    double loss, data[MOST];
    OK(ctx, an_program_loss(program, &loss));
    note(b, &loss, sizeof loss);
    for (size_t i = 0; i < g->source_count; i++) {
        if (g->sources[i]->outputs[0].storage != AN_STORAGE_STATE) continue;
        an_array a = {0};
        a.data = data;
        OK(ctx, an_program_get_output(
                    program, *(const char **)an_node_attribute(g->sources[i], "name", AN_ATTRIBUTE_STRING), &a));
        note(b, data, (size_t)elements_of(&a) * an_dtype_size(a.dtype));
    }
}

static void note_gradients(an_context *ctx, const an_params *params, bits *b) {
    enum { MOST = 1 << 16 };
    static float data[MOST];
    for (int64_t i = 0; i < an_params_count(params); i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        OK(ctx, an_params_info(params, i, &info));
        an_array a = array_of(data, info.dtype, info.ndims, info.dims);
        assert_true(elements_of(&a) <= MOST);
        OK(ctx, an_params_get(params, info.name, AN_PART_GRADIENT, &a));
        note(b, data, (size_t)elements_of(&a) * sizeof *data);
    }
}

/* Two micro-batches, the second one short. */
static bits run(an_context *ctx, ledger *l, const an_graph *g, an_plan *plan) {
    bits b = {0};
    an_params *params = NULL;
    an_program *program = NULL;
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    size_t before = l->held;
    OK(ctx, an_plan_memory_get(plan, &memory));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_program_create(&program, plan, params));
    assert_int_equal(l->held - before, memory.peak);
    OK(ctx, an_params_reset(params, 3));
    for (int i = 0; i < 2; i++) {
        OK(ctx, an_program_bind(program, "batch", BATCH - i));
        feed(ctx, program, (uint64_t)i);
        if (an_program_set_scalar_i64(program, "seed", 42) == AN_OK)
            OK(ctx, an_program_set_scalar_i64(program, "step", i)); /* where there is dropout */
        OK(ctx, an_program_run(program, i ? AN_FORM_TRAIN_NEXT : AN_FORM_TRAIN_FIRST));
        note_outputs(ctx, g, program, &b);
        note_gradients(ctx, params, &b);
        OK(ctx, an_program_run(program, AN_FORM_EVALUATE)); /* shares the arena */
    }
    an_program_destroy(&program);
    an_params_destroy(&params);
    return b;
}

/* ---- every model, every mode ---- */

typedef struct {
    const char *name;
    an_status (*build)(an_graph **g, an_context *ctx);
    int blocks;
    double block_share; /* of the activations that `none` has, at most */
} model;

static const model models[] = {
    {"gpt", build_gpt, 5, 0.6}, {"llama", build_llama, 5, 0.7}, {"mlp", build_mlp, 6, 0.9}, {"cnn", build_cnn, 5, 0.9}};

static const char *const mode_names[] = {"none", "block", "full", "segments", "budget"};

/* Plans, runs, compares. */
static an_plan_memory check_choice(an_context *ctx, ledger *l, const an_graph *g, const model *m, choice c,
                                   bits *expected) {
    an_plan *plan = NULL;
    an_plan_cost cost;
    an_plan_cost_init(&cost, sizeof cost);
    OK(ctx, plan_choice(&plan, ctx, g, c));
    const an_plan_memory memory = memory_of(plan);
    const int64_t arena = memory.activations + memory.scratch;
    OK(ctx, an_plan_cost_get(plan, AN_FORM_TRAIN_FIRST, &cost));
    bits b = run(ctx, l, g, plan);
    if (!expected->bytes) {
        *expected = b;
    } else {
        assert_int_equal(b.count, expected->count);
        if (memcmp(b.bytes, expected->bytes, b.count) != 0)
            fail_msg("%s: %s changes bits", m->name, mode_names[c.mode]);
        free(b.bytes);
    }
    if (c.mode == AN_RECOMPUTE_BUDGET) assert_true(arena <= c.budget);
    print_message("%-6s %s %-9s%2d  arena %8lld  instructions %4lld  predicted time %.3f\n", m->name,
                  c.precision == AN_DTYPE_BF16 ? "bf16" : "f32 ", mode_names[c.mode], c.segments, (long long)arena,
                  (long long)cost.instructions, cost.recompute_ratio);
    an_plan_destroy(&plan);
    return memory;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void check_model(const model *m, an_dtype precision) {
    ledger l = {0};
    an_context *ctx = NULL;
    an_graph *g = NULL;
    bits expected = {0};
    assert_int_equal(context_with_ledger(&ctx, &l, 2), AN_OK);
    OK(ctx, m->build(&g, ctx));
    choice c = {.precision = precision};
    const an_plan_memory none = check_choice(ctx, &l, g, m, c, &expected);
    c.mode = AN_RECOMPUTE_BLOCK;
    const an_plan_memory block = check_choice(ctx, &l, g, m, c, &expected);
    /* Scratch of convolutions is larger than these images. Which kernels have it depends on the build; it may lie where
     * activations would, and then hides what is saved in one of the two counts. */
    const double activations = (double)block.activations / (double)none.activations;
    const double arena = (double)(block.activations + block.scratch) / (double)(none.activations + none.scratch);
    if (activations > m->block_share && arena > m->block_share)
        fail_msg("%s: block has %.2f of the activations of none, %.2f of its arena", m->name, activations, arena);
    c.mode = AN_RECOMPUTE_FULL;
    const an_plan_memory full = check_choice(ctx, &l, g, m, c, &expected);
    for (c.mode = AN_RECOMPUTE_SEGMENTS, c.segments = 1; c.segments <= m->blocks; c.segments++)
        check_choice(ctx, &l, g, m, c, &expected);
    c = (choice){.mode = AN_RECOMPUTE_BUDGET, .precision = precision};
    const int64_t maximum = none.activations + none.scratch;
    const int64_t minimum =
        smaller(maximum, smaller(block.activations + block.scratch, full.activations + full.scratch));
    for (int part = 0; part <= 4; part++) { /* from none to the least, in quarters */
        c.budget = maximum - (maximum - minimum) * part / 4;
        check_choice(ctx, &l, g, m, c, &expected);
    }
    free(expected.bytes);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
    assert_int_equal(l.held, 0);
    assert_false(l.mismatch);
}

static void test_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) check_model(&models[i], AN_DTYPE_NONE);
    check_model(&models[0], AN_DTYPE_BF16);
    check_model(&models[1], AN_DTYPE_BF16);
}

/* ---- mistakes ---- */

static void test_mistakes(void **state) {
    (void)state;
    an_context *ctx = NULL;
    an_graph *g = NULL, *plain = NULL;
    an_plan *plan = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, build_gpt(&g, ctx));
    OK(ctx, small_mlp(&plain, ctx));
    FAILS(ctx, plan_choice(&plan, ctx, g, (choice){.mode = (an_recompute)9}), AN_ERR_ARGUMENT, "recompute is 9");
    FAILS(ctx, plan_choice(&plan, ctx, g, (choice){.mode = AN_RECOMPUTE_SEGMENTS}), AN_ERR_ARGUMENT, "segments is 0");
    FAILS(ctx, plan_choice(&plan, ctx, g, (choice){.mode = AN_RECOMPUTE_SEGMENTS, .segments = 6}), AN_ERR_ARGUMENT,
          "'gpt2' has only 5 blocks");
    FAILS(ctx, plan_choice(&plan, ctx, g, (choice){.mode = AN_RECOMPUTE_BLOCK, .segments = 2}), AN_ERR_ARGUMENT,
          "segments is 2");
    FAILS(ctx, plan_choice(&plan, ctx, g, (choice){.mode = AN_RECOMPUTE_BUDGET}), AN_ERR_ARGUMENT, "budget is 0");
    FAILS(ctx, plan_choice(&plan, ctx, g, (choice){.budget = 1000}), AN_ERR_ARGUMENT, "budget is 1000");
    FAILS(ctx, plan_choice(&plan, ctx, plain, (choice){.mode = AN_RECOMPUTE_BLOCK}), AN_ERR_ARGUMENT, "has no blocks");
    /* what is least fits, one byte less does not, and the message has the number */
    FAILS(ctx, plan_choice(&plan, ctx, g, (choice){.mode = AN_RECOMPUTE_BUDGET, .budget = 1}), AN_ERR_MEMORY, "needs ");
    const int64_t minimum = strtoll(strstr(an_last_error(ctx), "needs ") + strlen("needs "), NULL, 10);
    OK(ctx, plan_choice(&plan, ctx, g, (choice){.mode = AN_RECOMPUTE_BUDGET, .budget = minimum}));
    assert_true(arena_of(plan) <= minimum);
    an_plan_destroy(&plan);
    FAILS(ctx, plan_choice(&plan, ctx, g, (choice){.mode = AN_RECOMPUTE_BUDGET, .budget = minimum - 1}), AN_ERR_MEMORY,
          "the budget is");
    /* evaluation recomputes nothing: an output that only it has makes any training too large */
    an_graph_set_output(plain, an_linear(plain, an_graph_value(plain, plain->first->outputs), "wide", 5000), "wide");
    OK(ctx, an_graph_verify(plain));
    FAILS(ctx, plan_choice(&plan, ctx, plain, (choice){.mode = AN_RECOMPUTE_BUDGET, .budget = 50000}), AN_ERR_MEMORY,
          "for evaluation or prediction");
    an_graph_destroy(&plain);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

/* ---- faults ---- */

/* One plan of a small model, while the allocation of this number fails; 0: none does. True if all went well. */
static bool plan_with_fault(choice c, long fail_at, int64_t *arena) {
    ledger l = {.fail_at = fail_at, .once = true};
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_plan *plan = NULL;
    an_status status = context_with_ledger(&ctx, &l, 1);
    if (status == AN_OK) status = build_mlp(&g, ctx);
    if (status == AN_OK) status = plan_choice(&plan, ctx, g, c);
    if (status == AN_OK) *arena = arena_of(plan);
    if (status != AN_OK && (status != AN_ERR_MEMORY || !strstr(an_last_error(ctx), "out of memory")))
        fail_msg("allocation %ld failed and gave %s: %s", fail_at, an_status_name(status), an_last_error(ctx));
    an_plan_destroy(&plan);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
    if (l.held || l.mismatch) fail_msg("allocation %ld failed and left %zu bytes", fail_at, l.held);
    return status == AN_OK && (fail_at == 0 || l.calls < fail_at);
}

/* Whichever allocation of a search for a budget fails, it says so and leaves nothing behind. */
static void test_every_allocation(void **state) {
    (void)state;
    int64_t none = 0, full = 0, arena;
    assert_true(plan_with_fault((choice){0}, 0, &none));
    assert_true(plan_with_fault((choice){.mode = AN_RECOMPUTE_FULL}, 0, &full));
    const int64_t budgets[] = {(none + full) / 2, full}; /* values are dropped; inputs of blocks are */
    for (int i = 0; i < 2; i++) {
        long n = 1;
        while (!plan_with_fault((choice){.mode = AN_RECOMPUTE_BUDGET, .budget = budgets[i]}, n, &arena)) n++;
        print_message("budget %lld, arena %lld: %ld allocations, each failed once\n", (long long)budgets[i],
                      (long long)arena, n - 1);
        assert_true(n > 300); /* a search, not the first try */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_mistakes),
                                       cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
