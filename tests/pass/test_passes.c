/* Each pass alone, on graphs written as text. */
#include "ir/verify.h"
#include "ops/sink.h"
#include "ops/source.h"
#include "pass/memory.h"
#include "pass/pass.h"
#include "support/support.h"

typedef struct {
    an_context *ctx;
    an_graph *g;
} text_graph;

static text_graph from_text(const char *text) {
    text_graph t = {0};
    an_flat_sizes sizes;
    assert_int_equal(an_context_create(&t.ctx, NULL), AN_OK);
    OK(t.ctx, an_graph_parse(&t.g, t.ctx, text, strlen(text)));
    OK(t.ctx, an_graph_verify(t.g));
    for (size_t i = 0; i < t.g->dimensions.symbol_count; i++)
        OK(t.ctx, an_graph_bind(t.g, t.g->dimensions.symbols[i].name, 8));
    OK(t.ctx, an_graph_lay_out(t.g, true, &sizes));
    return t;
}

static void done(text_graph *t) {
    an_graph_destroy(&t->g);
    an_context_destroy(&t->ctx);
}

/* Passes up to and with `last`, each followed by the check of the whole graph. */
static an_status passes(text_graph *t, an_form form, const char *last) {
    an_pass_options options = {.form = form, .unfused = true}; /* fuse has its own tests */
    for (const an_pass *p = an_pass_table; p->name; p++) {
        an_status status = p->run(t->g, &options);
        if (status != AN_OK) return status;
        OK(t->ctx, an_graph_check(t->g));
        if (!strcmp(p->name, last)) break;
    }
    return AN_OK;
}

/* The ops of a graph in order, as words. */
static const char *ops(const an_graph *g, bool backward_only) {
    static char words[4096];
    size_t length = 0;
    words[0] = 0;
    for (const an_node *n = g->first; n; n = n->next) {
        if (n->op->flags & AN_OP_SOURCE || (backward_only && n->phase != AN_PHASE_BACKWARD)) continue;
        length += (size_t)snprintf(words + length, sizeof words - length, "%s%s", length ? " " : "", n->op->name);
    }
    return words;
}

#define DROPOUT_MODEL                                \
    "ang 1\ngraph \"m\"\nsymbol batch\n"             \
    "%x = input(name=\"x\") : f32[batch,4]\n"        \
    "%s = input(name=\"samples\") : i64[batch]\n"    \
    "%seed = scalar(name=\"seed\") : i64[]\n"        \
    "%step = scalar(name=\"step\") : i64[]\n"        \
    "%y = input(name=\"y\") : f32[batch,4]\n"        \
    "%w = param(name=\"w\") : f32[4]\n"              \
    "%p = multiply(%x, %w)\n"                        \
    "%d = dropout(%p, %s, %seed, %step, rate=0.5)\n" \
    "output(%d, name=\"out\")\n"                     \
    "%l = squared_error(%d, %y)\n"                   \
    "loss %l targets %y\n"

static void test_program_makes_forms(void **state) {
    (void)state;
    static const struct {
        an_form form;
        const char *ops;
    } expected[] = {
        {AN_FORM_TRAIN_FIRST, "multiply dropout squared_error output"},
        {AN_FORM_EVALUATE, "multiply output squared_error output"},
        {AN_FORM_PREDICT, "multiply output"},
    };
    for (int i = 0; i < 3; i++) {
        text_graph t = from_text(DROPOUT_MODEL);
        OK(t.ctx, passes(&t, expected[i].form, "program"));
        an_pass_options options = {.form = expected[i].form};
        OK(t.ctx, an_pass_prune(t.g, &options));
        assert_string_equal(ops(t.g, false), expected[i].ops);
        done(&t);
    }
}

static void test_no_loss(void **state) {
    (void)state;
    text_graph t =
        from_text("ang 1\ngraph \"m\"\n%x = input(name=\"x\") : f32[4]\n%y = relu(%x)\noutput(%y, name=\"y\")\n");
    FAILS(t.ctx, passes(&t, AN_FORM_TRAIN_FIRST, "program"), AN_ERR_STATE, "has no loss");
    done(&t);
}

/* A table used twice has one grad node for each contribution, last use first; the first of FIRST overwrites. */
static void test_autodiff_chains_contributions(void **state) {
    (void)state;
    for (int next = 0; next < 2; next++) {
        text_graph t = from_text("ang 1\ngraph \"tied\"\nsymbol batch\n"
                                 "%x = input(name=\"x\") : f32[batch,4]\n%y = input(name=\"y\") : f32[batch,4]\n"
                                 "%w = param(name=\"w\") : f32[4,4]\n"
                                 "%a = matmul(%x, %w)\n%b = relu(%a)\n%c = matmul(%b, %w, transpose_b=true)\n"
                                 "%l = squared_error(%c, %y)\nloss %l targets %y\n");
        OK(t.ctx, passes(&t, next ? AN_FORM_TRAIN_NEXT : AN_FORM_TRAIN_FIRST, "autodiff"));
        const an_node *grads[3] = {0};
        int count = 0;
        for (const an_node *n = t.g->first; n; n = n->next)
            if (n->op == &an_op_grad && count < 3) grads[count++] = n;
        assert_int_equal(count, 2);
        assert_int_equal(((const an_grad_attributes *)grads[0]->attributes)->add, next);
        assert_int_equal(((const an_grad_attributes *)grads[1]->attributes)->add, true);
        const bool *tb = an_node_attribute(grads[0]->origin, "transpose_b", AN_ATTRIBUTE_BOOL);
        assert_true(*tb); /* the head, which is used last, comes first */
        done(&t);
    }
}

/* Contributions to a value are added in the reverse order of its uses. */
static void test_autodiff_adds_in_reverse(void **state) {
    (void)state;
    text_graph t = from_text("ang 1\ngraph \"uses\"\n%x = param(name=\"x\") : f32[4]\n%h = relu(%x)\n"
                             "%a = exp(%h)\n%b = tanh(%h)\n%c = multiply(%h, %h)\n"
                             "%s = add(%a, %b)\n%u = add(%s, %c)\n%l = reduce_sum(%u, axes=[0])\nloss %l\n");
    OK(t.ctx, passes(&t, AN_FORM_TRAIN_FIRST, "autodiff"));
    /* multiply gives slot 1 then slot 0, then tanh, then exp */
    const char *origins[8];
    int count = 0;
    for (const an_node *n = t.g->first; n; n = n->next)
        if (n->phase == AN_PHASE_BACKWARD && !strcmp(n->op->name, "add") && count < 8)
            origins[count++] = n->origin->op->name;
    assert_int_equal(count, 3);
    assert_string_equal(origins[0], "multiply");
    assert_string_equal(origins[1], "tanh");
    assert_string_equal(origins[2], "exp");
    done(&t);
}

/* Frozen parameters get no gradient nodes; unused trainable ones get zeros in FIRST and nothing in NEXT. */
static void test_autodiff_frozen_and_unused(void **state) {
    (void)state;
    static const char text[] =
        "ang 1\ngraph \"f\"\n%x = input(name=\"x\") : f32[2,4]\n%w = param(name=\"w\") : f32[3,4]\n"
        "%f = param(name=\"f\", frozen=true) : bf16[3]\n%u = param(name=\"u\") : f32[5]\n"
        "%p = matmul(%x, %w, transpose_b=true)\n%b = bias(%p, %f, axis=1)\n"
        "%l = reduce_sum(%b, axes=[0,1])\nloss %l\n";
    for (int next = 0; next < 2; next++) {
        text_graph t = from_text(text);
        OK(t.ctx, passes(&t, next ? AN_FORM_TRAIN_NEXT : AN_FORM_TRAIN_FIRST, "prune"));
        int64_t seen[3] = {0};
        for (const an_node *n = t.g->first; n; n = n->next)
            if (n->op == &an_op_grad) seen[((const an_grad_attributes *)n->attributes)->parameter]++;
        assert_int_equal(seen[0], 1);
        assert_int_equal(seen[1], 0);
        assert_int_equal(seen[2], next ? 0 : 1);
        done(&t);
    }
}

static void test_autodiff_names_what_has_no_gradient(void **state) {
    (void)state;
    text_graph t = from_text("ang 1\ngraph \"n\"\n%x = param(name=\"x\") : f32[4]\n%d = input(name=\"d\") : f32[4]\n"
                             "%y = relu_diff(%d, %x)\n%l = reduce_sum(%y, axes=[0])\nloss %l\n");
    FAILS(t.ctx, passes(&t, AN_FORM_TRAIN_FIRST, "autodiff"), AN_ERR_UNSUPPORTED, "relu_diff has no gradient");
    done(&t);
}

static void test_prune(void **state) {
    (void)state;
    text_graph t =
        from_text("ang 1\ngraph \"p\"\n%x = input(name=\"x\") : f32[4]\n%dead = exp(%x)\n%more = log(%dead)\n"
                  "%y = relu(%x)\noutput(%y, name=\"y\")\n");
    OK(t.ctx, passes(&t, AN_FORM_PREDICT, "prune"));
    assert_string_equal(ops(t.g, false), "relu output");
    done(&t);
}

/* Nodes land just before what needs them first, in the order of the sinks. */
static void test_order_by_demand(void **state) {
    (void)state;
    text_graph t =
        from_text("ang 1\ngraph \"o\"\n%x = input(name=\"x\") : f32[4]\n%a = exp(%x)\n%b = tanh(%x)\n%c = relu(%b)\n"
                  "output(%c, name=\"c\")\n%d = sqrt(%a)\noutput(%d, name=\"d\")\n");
    OK(t.ctx, passes(&t, AN_FORM_PREDICT, "order"));
    assert_string_equal(ops(t.g, false), "tanh relu output exp sqrt output");
    done(&t);
}

static void test_select_by_name(void **state) {
    (void)state;
    text_graph t =
        from_text("ang 1\ngraph \"s\"\n%x = input(name=\"x\") : f32[4]\n%a = exp(%x)\noutput(%a, name=\"a\")\n");
    an_pass_options options = {.form = AN_FORM_PREDICT, .kernels = "relu=fast,exp=portable"};
    OK(t.ctx, an_pass_select(t.g, &options));
    options.kernels = "exp=reference"; /* the portable kernel's old name */
    OK(t.ctx, an_pass_select(t.g, &options));
    options.kernels = "exp=referenc";
    FAILS(t.ctx, an_pass_select(t.g, &options), AN_ERR_UNKNOWN, "no kernel 'referenc'");
    options.kernels = "exq=portable";
    FAILS(t.ctx, an_pass_select(t.g, &options), AN_ERR_UNKNOWN, "no op 'exq'");
    options.kernels = "exp";
    FAILS(t.ctx, an_pass_select(t.g, &options), AN_ERR_ARGUMENT, "OP=KERNEL");
    options.kernels = "exp=nonsense";
    FAILS(t.ctx, an_pass_select(t.g, &options), AN_ERR_UNKNOWN, "no kernel 'nonsense'");
    done(&t);
}

/* A kernel that is chosen for an op is that of its gradient ops too, unless these are chosen by their own names. */
static void test_select_gradient_by_name(void **state) {
    (void)state;
    text_graph t = from_text("ang 1\ngraph \"s\"\n%x = input(name=\"x\") : f32[4]\n%d = relu_diff(%x, %x)\n"
                             "output(%d, name=\"d\")\n");
    an_pass_options options = {.form = AN_FORM_PREDICT, .kernels = "relu=fast"};
    FAILS(t.ctx, an_pass_select(t.g, &options), AN_ERR_UNKNOWN,
          "relu=fast also chooses the kernel of relu_diff, the gradient of relu, which has no kernel 'fast'");
    FAILS(t.ctx, an_pass_select(t.g, &options), AN_ERR_UNKNOWN,
          "it has portable: add relu_diff=KERNEL to choose another one");
    options.kernels = "relu=portable";
    OK(t.ctx, an_pass_select(t.g, &options));
    options.kernels = "relu=fast,relu_diff=portable";
    OK(t.ctx, an_pass_select(t.g, &options));
    done(&t);
}

/* In place: exp may be written over tanh's output, which ends there; not over what is still read. */
static void test_memory_in_place(void **state) {
    (void)state;
    text_graph t =
        from_text("ang 1\ngraph \"i\"\n%x = input(name=\"x\") : f32[100]\n%a = tanh(%x)\n%b = exp(%a)\n%c = relu(%b)\n"
                  "output(%c, name=\"c\")\n");
    OK(t.ctx, passes(&t, AN_FORM_PREDICT, "memory"));
    assert_true(t.g->memory->in_place);
    assert_int_equal(t.g->memory->arena_bytes, 448); /* 400 rounded to 64 */
    done(&t);
    t = from_text(
        "ang 1\ngraph \"j\"\n%x = input(name=\"x\") : f32[100]\n%a = tanh(%x)\n%b = exp(%a)\n%c = add(%a, %b)\n"
        "output(%c, name=\"c\")\n");
    OK(t.ctx, passes(&t, AN_FORM_PREDICT, "memory"));
    assert_int_equal(t.g->memory->arena_bytes, 896);
    done(&t);
    /* read twice, once across: an element would be overwritten before its mirror is read */
    t = from_text("ang 1\ngraph \"k\"\n%x = input(name=\"x\") : f32[8,8]\n%a = exp(%x)\n"
                  "%m = transpose(%a, axes=[1,0])\n%c = add(%a, %m)\noutput(%c, name=\"c\")\n");
    OK(t.ctx, passes(&t, AN_FORM_PREDICT, "memory"));
    assert_int_equal(t.g->memory->arena_bytes, 512);
    done(&t);
}

/* A contribution that only an overwriting grad reads is made in the gradient buffer. */
static void test_memory_places_contributions(void **state) {
    (void)state;
    static const char text[] = "ang 1\ngraph \"g\"\nsymbol batch\n%x = input(name=\"x\") : f32[batch,4]\n"
                               "%w = param(name=\"w\") : f32[3,4]\n%p = matmul(%x, %w, transpose_b=true)\n"
                               "%l = reduce_sum(%p, axes=[0,1])\nloss %l\n";
    for (int next = 0; next < 2; next++) {
        text_graph t = from_text(text);
        OK(t.ctx, passes(&t, next ? AN_FORM_TRAIN_NEXT : AN_FORM_TRAIN_FIRST, "memory"));
        for (const an_node *n = t.g->first; n; n = n->next) {
            if (n->op != &an_op_grad) continue;
            assert_int_equal(n->elided, !next);
            assert_int_equal(n->inputs[0].result->storage, next ? AN_STORAGE_ARENA : AN_STORAGE_GRADIENT);
        }
        done(&t);
    }
}

/* A value that the host reads stays to the end, also if others read it after the output was named. */
static void test_memory_keeps_outputs(void **state) {
    (void)state;
    text_graph t =
        from_text("ang 1\ngraph \"k\"\n%x = input(name=\"x\") : f32[100]\n%a = tanh(%x)\noutput(%a, name=\"a\")\n"
                  "%b = exp(%a)\n%c = relu(%b)\n%d = sqrt(%c)\noutput(%d, name=\"d\")\n");
    OK(t.ctx, passes(&t, AN_FORM_PREDICT, "memory"));
    for (size_t i = 0; i < t.g->memory->life_count; i++) {
        const an_life *l = &t.g->memory->lives[i];
        bool kept = !strcmp(l->node->op->name, "tanh") || !strcmp(l->node->op->name, "sqrt");
        assert_int_equal(l->end == t.g->memory->instructions, kept);
    }
    done(&t);
}

/* What stands for an op in evaluation carries the views of what it replaces, whatever its own layout. */
static void test_program_moves_views(void **state) {
    (void)state;
    text_graph t = from_text("ang 1\ngraph \"v\"\nsymbol batch\n%x = input(name=\"x\") : f32[batch,3,4]\n"
                             "%s = input(name=\"samples\") : i64[batch]\n%seed = scalar(name=\"seed\") : i64[]\n"
                             "%step = scalar(name=\"step\") : i64[]\n%e = exp(%x)\n%t = transpose(%e, axes=[0,2,1])\n"
                             "%d = dropout(%t, %s, %seed, %step, rate=0.5)\n%r = reshape(%d, dims=[batch,12])\n"
                             "%y = relu(%r)\noutput(%y, name=\"y\")\n");
    OK(t.ctx, passes(&t, AN_FORM_PREDICT, "prune"));
    assert_string_equal(ops(t.g, false), "exp transpose contiguous reshape relu output");
    done(&t);
    t = from_text("ang 1\ngraph \"w\"\nsymbol batch\n%x = input(name=\"x\") : f32[batch,3,4]\n"
                  "%s = input(name=\"samples\") : i64[batch]\n%seed = scalar(name=\"seed\") : i64[]\n"
                  "%step = scalar(name=\"step\") : i64[]\n%e = exp(%x)\n"
                  "%d = dropout(%e, %s, %seed, %step, rate=0.5)\n%r = reshape(%d, dims=[batch,12])\n"
                  "%y = relu(%r)\noutput(%y, name=\"y\")\n");
    OK(t.ctx, passes(&t, AN_FORM_PREDICT, "prune"));
    assert_string_equal(ops(t.g, false), "exp reshape relu output");
    done(&t);
}

static void test_mean_on_the_way_to_the_loss(void **state) {
    (void)state;
    an_context *ctx = NULL;
    an_graph *g = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_graph_create(&g, ctx, "mean"));
    an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 4)), y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch));
    an_value pooled = an_reduce_mean(g, x, AN_AXES(1), false); /* over a constant: fine */
    an_value d = an_subtract(g, pooled, y);
    an_graph_set_loss(g, an_reduce_mean(g, an_multiply(g, d, d), AN_ALL_AXES, false), y);
    FAILS(ctx, an_graph_verify(g), AN_ERR_ARGUMENT, "mean of means");
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

/* `nodes` lie between %a, which is in the arena, and %z. */
#define BETWEEN(nodes)                                                                                \
    "ang 1\ngraph \"m\"\nsymbol batch\n%x = input(name=\"x\") : f32[batch,4,6]\n%a = exp(%x)\n" nodes \
    "%y = tanh(%z)\noutput(%y, name=\"y\")\n"

static void test_simplify(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {BETWEEN("%z = cast(%a, dtype=f32)\n"), "exp tanh output"},
        {BETWEEN("%z = cast(%a, dtype=f64)\n"), "exp cast tanh output"},
        {BETWEEN("%z = scale(%a, factor=1)\n"), "exp tanh output"},
        {BETWEEN("%z = scale(%a, factor=-1)\n"), "exp scale tanh output"},
        {BETWEEN("%z = contiguous(%a)\n"), "exp tanh output"},
        {BETWEEN("%t = transpose(%a, axes=[0,2,1])\n%z = contiguous(%t)\n"), "exp transpose contiguous tanh output"},
        /* what lies otherwise in memory cannot stand for it: kernels after it would be given other strides */
        {BETWEEN("%t = transpose(%a, axes=[0,2,1])\n%z = scale(%t, factor=1)\n"), "exp transpose scale tanh output"},
        /* a copy of a part lets go of the rest */
        {BETWEEN("%s = slice(%a, axis=0, end=1)\n%z = contiguous(%s)\n"), "exp slice contiguous tanh output"},
        /* a copy of what the host may change after the run */
        {BETWEEN("%z = contiguous(%x)\n"), "contiguous tanh output"},
        {BETWEEN("%z = pad(%a, axis=0)\n"), "exp tanh output"},
        {BETWEEN("%z = pad(%a, axis=0, after=1)\n"), "exp pad tanh output"},
        {BETWEEN("%z = expand(%a, dims=[batch,4,6])\n"), "exp tanh output"},
        {BETWEEN("%z = expand(%a, dims=[2,batch,4,6])\n"), "exp expand tanh output"},
        {BETWEEN("%z = reshape(%a, dims=[batch,4,6])\n"), "exp tanh output"},
        {BETWEEN("%r = reshape(%a, dims=[batch,24])\n%z = reshape(%r, dims=[batch,4,6])\n"), "exp tanh output"},
        {BETWEEN("%r = reshape(%a, dims=[batch,24])\n%z = reshape(%r, dims=[batch,3,8])\n"), "exp reshape tanh output"},
        {BETWEEN("%z = transpose(%a, axes=[0,1,2])\n"), "exp tanh output"},
        {BETWEEN("%t = transpose(%a, axes=[1,2,0])\n%z = transpose(%t, axes=[2,0,1])\n"), "exp tanh output"},
        {BETWEEN("%t = transpose(%a, axes=[1,2,0])\n%z = transpose(%t, axes=[1,2,0])\n"), "exp transpose tanh output"},
        /* one makes way for the next */
        {BETWEEN("%b = contiguous(%a)\n%c = reshape(%b, dims=[batch,24])\n%d = scale(%c, factor=1)\n"
                 "%e = reshape(%d, dims=[batch,4,6])\n%z = cast(%e, dtype=f32)\n"),
         "exp tanh output"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        text_graph t = from_text(cases[i][0]);
        OK(t.ctx, passes(&t, AN_FORM_PREDICT, "prune"));
        if (strcmp(ops(t.g, false), cases[i][1]) != 0) fail_msg("%s gave %s", cases[i][0], ops(t.g, false));
        done(&t);
    }
}

/* What a pass adds to a gradient is of the gradient; the loss stays the loss; views follow what they are of. */
static void test_simplify_keeps_what_is_known(void **state) {
    (void)state;
    text_graph t = from_text("ang 1\ngraph \"k\"\n%x = param(name=\"x\") : f32[2,3,4]\n%a = exp(%x)\n"
                             "%b = reshape(%a, dims=[6,4])\n%c = reshape(%b, dims=[3,8])\n%d = contiguous(%c)\n"
                             "%e = slice(%d, axis=1, begin=2, end=5)\n%s = reduce_sum(%e, axes=[0,1])\n"
                             "%l = scale(%s, factor=1)\nloss %l\n");
    OK(t.ctx, passes(&t, AN_FORM_TRAIN_FIRST, "prune"));
    int reshapes[2] = {0};
    for (const an_node *n = t.g->first; n; n = n->next) {
        if (!strcmp(n->op->name, "reshape")) reshapes[n->phase == AN_PHASE_BACKWARD]++;
        if (!strcmp(n->op->name, "slice")) assert_string_equal(n->outputs[0].root->node->op->name, "exp");
    }
    assert_int_equal(reshapes[0], 1);
    assert_int_equal(reshapes[1], 2); /* the other is reduce_sum's */
    assert_string_equal(an_graph_result(t.g, t.g->loss)->node->op->name, "reduce_sum");
    done(&t);
}

/* A parameter outside of blocks, and two blocks with one each. */
#define BLOCKS_MODEL                                                                                                 \
    "ang 1\ngraph \"m\"\nsymbol batch\nblock 1 \"one\" depth=1\nblock 2 \"two\" depth=1\n"                           \
    "%x = input(name=\"x\") : f32[batch,4]\n%y = input(name=\"y\") : f32[batch,4]\n"                                 \
    "%w = param(name=\"w\") : f32[4]\n%a = multiply(%x, %w)\n"                                                       \
    "%u = param(name=\"u\") : f32[4] {block=1}\n%b = multiply(%a, %u)\n"                                             \
    "%v = param(name=\"v\") : f32[4] {block=2}\n%c = multiply(%b, %v)\n%l = squared_error(%c, %y)\nloss %l targets " \
    "%y\n"

/* "grad 2, exchange 2, …": parameters and units in the order in which they come. */
static const char *exchanges(const char *text, an_form form, bool exchanges) {
    static char words[512];
    size_t length = 0;
    text_graph t = from_text(text);
    an_pass_options options = {.form = form, .unfused = true, .exchanges = exchanges};
    for (const an_pass *p = an_pass_table; p->name; p++) {
        OK(t.ctx, p->run(t.g, &options));
        OK(t.ctx, an_graph_check(t.g));
    }
    words[0] = 0;
    for (const an_node *n = t.g->first; n; n = n->next)
        if (n->op == &an_op_grad || n->op == &an_op_exchange) {
            length += (size_t)snprintf(words + length, sizeof words - length, "%s%s %lld", length ? ", " : "",
                                       n->op->name, (long long)*(const int64_t *)n->attributes);
            assert_non_null(n->kernel);
        }
    done(&t);
    return words;
}

static void test_shard_exchanges_units_early(void **state) {
    (void)state;
    const char expected[] = "grad 2, exchange 2, grad 1, exchange 1, grad 0, exchange 0";
    assert_string_equal(exchanges(BLOCKS_MODEL, AN_FORM_TRAIN_FIRST, true), expected);
    assert_string_equal(exchanges(BLOCKS_MODEL, AN_FORM_TRAIN_NEXT, true), expected);
    assert_string_equal(exchanges(BLOCKS_MODEL, AN_FORM_TRAIN_FIRST, false), "grad 2, grad 1, grad 0");
    assert_string_equal(exchanges(BLOCKS_MODEL, AN_FORM_EVALUATE, true), "");
}

/* The zeros of a parameter without gradient are written in one form only, but both exchange in one order. */
static void test_shard_order_is_the_same_in_both_forms(void **state) {
    (void)state;
    static const char text[] =
        "ang 1\ngraph \"m\"\nsymbol batch\nblock 1 \"one\" depth=1\nblock 2 \"two\" depth=1\n"
        "%x = input(name=\"x\") : f32[batch,4]\n%y = input(name=\"y\") : f32[batch,4]\n"
        "%u = param(name=\"u\") : f32[4] {block=1}\n%b = multiply(%x, %u)\n%v = param(name=\"v\") : f32[4] {block=2}\n"
        "%unused = param(name=\"unused\") : f32[4] {block=2}\n%c = multiply(%b, %v)\n"
        "%l = squared_error(%c, %y)\nloss %l targets %y\n";
    assert_string_equal(exchanges(text, AN_FORM_TRAIN_FIRST, true), "grad 1, grad 0, exchange 0, grad 2, exchange 1");
    assert_string_equal(exchanges(text, AN_FORM_TRAIN_NEXT, true), "grad 1, grad 0, exchange 0, exchange 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_makes_forms),
        cmocka_unit_test(test_no_loss),
        cmocka_unit_test(test_autodiff_chains_contributions),
        cmocka_unit_test(test_autodiff_adds_in_reverse),
        cmocka_unit_test(test_autodiff_frozen_and_unused),
        cmocka_unit_test(test_autodiff_names_what_has_no_gradient),
        cmocka_unit_test(test_prune),
        cmocka_unit_test(test_order_by_demand),
        cmocka_unit_test(test_select_by_name),
        cmocka_unit_test(test_select_gradient_by_name),
        cmocka_unit_test(test_memory_in_place),
        cmocka_unit_test(test_memory_places_contributions),
        cmocka_unit_test(test_memory_keeps_outputs),
        cmocka_unit_test(test_program_moves_views),
        cmocka_unit_test(test_mean_on_the_way_to_the_loss),
        cmocka_unit_test(test_simplify),
        cmocka_unit_test(test_simplify_keeps_what_is_known),
        cmocka_unit_test(test_shard_exchanges_units_early),
        cmocka_unit_test(test_shard_order_is_the_same_in_both_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
