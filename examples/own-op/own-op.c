/* A program with an op of its own, which its model uses like any other.
 *
 *     cmake -B build -DCMAKE_PREFIX_PATH=<where anneal is installed>
 *     cmake --build build && build/own-op own-op.yaml
 *
 * The op is soft_sign(x) = s·x / (1 + |s·x|), where s is the attribute `sharpness`. Its gradient, diff · s / (1 +
 * |s·x|)², is a second op. Both are added to the context before the config is opened; then its model, own-op.ang, may
 * have them. The run is saved as it goes: kill the program, start it again, and it carries on.
 *
 * experimental.h may change at any release.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <anneal/checkpoint.h>
#include <anneal/experimental.h>
#include <anneal/run.h>

/* Every call of the library can fail; the context keeps the message. */
#define TRY(call)                                   \
    do {                                            \
        if ((status = (call)) != AN_OK) goto ended; \
    } while (0)

typedef struct {
    double sharpness;
} soft_sign_attributes;

static const an_attribute attributes[] = {
    {.name = "sharpness", .type = AN_ATTRIBUTE_FLOAT, .offset = offsetof(soft_sign_attributes, sharpness)}, {0}};

/* ---- kernels ---- */

/* Plans ask this before there is data: the kernels below are for f32. */
static bool is_f32(const an_call *call) {
    return call->dst[0].dtype == AN_DTYPE_F32;
}

static int64_t elements_of(const an_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->ndims; i++) n *= t->dims[i];
    return n;
}

/* The records ask for dense inputs, and outputs are dense, so elements lie one after the other. */
static an_status run_soft_sign(const an_call *call) {
    const soft_sign_attributes *a = call->attributes;
    const float *src = call->src[0].data, sharpness = (float)a->sharpness;
    float *dst = call->dst[0].data;
    for (int64_t i = 0; i < elements_of(&call->dst[0]); i++) {
        const float x = sharpness * src[i];
        dst[i] = x / (1 + (x < 0 ? -x : x));
    }
    return AN_OK;
}

static an_status run_soft_sign_diff(const an_call *call) {
    const soft_sign_attributes *a = call->attributes;
    const float *diff_dst = call->src[0].data, *src = call->src[1].data, sharpness = (float)a->sharpness;
    float *diff_src = call->dst[0].data;
    for (int64_t i = 0; i < elements_of(&call->dst[0]); i++) {
        const float x = sharpness * src[i], divisor = 1 + (x < 0 ? -x : x);
        diff_src[i] = diff_dst[i] * sharpness / (divisor * divisor);
    }
    return AN_OK;
}

/* ---- the two records ---- */

static const char *infer(const an_own_node *node, an_own_output *outputs) {
    const soft_sign_attributes *a = node->attributes;
    const an_value src = node->inputs[0];
    if (!(a->sharpness > 0)) return "sharpness is a number above 0: write soft_sign(%x, sharpness=1)";
    outputs[0].dtype = an_value_dtype(node->graph, src);
    outputs[0].ndims = an_value_ndims(node->graph, src);
    for (int i = 0; i < outputs[0].ndims; i++) outputs[0].dims[i] = an_value_dim(node->graph, src, i);
    return NULL;
}

static void gradient(const an_own_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    const an_value inputs[] = {diff_dst[0], node->inputs[0]};
    (void)want; /* there is one input, or we would not be asked */
    diff_src[0] = an_own(node->graph, "soft_sign_diff", 2, inputs, node->attributes);
}

static an_status add_ops(an_context *ctx) {
    static const an_kernel kernels[] = {{.name = "plain", .applies = is_f32, .run = run_soft_sign}, {0}};
    static const an_kernel diff_kernels[] = {{.name = "plain", .applies = is_f32, .run = run_soft_sign_diff}, {0}};
    an_own_op op = {.size = sizeof op};
    op.name = "soft_sign";
    op.inputs_min = op.inputs_max = 1;
    op.outputs = 1;
    op.attribute_bytes = sizeof(soft_sign_attributes);
    op.attributes = attributes;
    op.infer = infer;
    op.gradient = gradient;
    op.kernels = kernels;
    op.flops = 4;
    /* So a step may have several leaves, and the bits are those of any number of ranks. */
    op.reach = AN_REACH_ELEMENT;
    op.autocast = AN_AUTOCAST_F32; /* the kernels read and write nothing else */
    op.dense = 1;
    op.in_place = 1;
    const an_status status = an_context_add_op(ctx, &op);
    if (status != AN_OK) return status;
    op.name = "soft_sign_diff"; /* (diff_dst, src) → diff_src */
    op.inputs_min = op.inputs_max = 2;
    op.gradient = NULL;
    op.kernels = diff_kernels;
    op.dense = op.in_place = 3;
    return an_context_add_op(ctx, &op);
}

/* ---- the program ---- */

int main(int count, char **arguments) {
    an_context *ctx = NULL;
    an_trainer *trainer = NULL;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    char hash[AN_HASH_TEXT];
    an_status status;
    if (count != 2) {
        fprintf(stderr, "usage: own-op CONFIG\n");
        return EXIT_FAILURE;
    }
    TRY(an_context_create(&ctx, NULL));
    TRY(add_ops(ctx));
    TRY(an_trainer_open(&trainer, ctx, arguments[1], NULL));
    if (an_trainer_resumed(trainer)) printf("carries on from %s\n", an_trainer_resumed(trainer));
    TRY(an_trainer_run(trainer, NULL, NULL));
    TRY(an_trainer_state_hash(trainer, hash));
    TRY(an_trainer_step_metrics(trainer, &metrics));
    printf("step %lld  loss %.6f\n", (long long)metrics.step, metrics.loss);
    printf("state_hash %s\n", hash);

ended:
    if (status != AN_OK) fprintf(stderr, "own-op: %s\n", an_last_error(ctx));
    an_trainer_destroy(&trainer);
    an_context_destroy(&ctx);
    return status == AN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
