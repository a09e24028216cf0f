/* A program of a later release on this library: every option struct has one more member. Left at 0 it changes nothing;
 * set, it is refused, since the library does not have it. Compiled with the headers that grow.py writes. */
#include <stdio.h>
#include <string.h>

#include <anneal/checkpoint.h>
#include <anneal/models.h>
#include <anneal/open.h>
#include <anneal/predict.h>
#include <anneal/run.h>

static an_context *ctx;
static int failures, tries;

static void expect(const char *name, an_status status, const char *message) {
    const int refused = status == AN_ERR_ARGUMENT && strstr(message, name) && strstr(message, "does not have");
    tries++;
    if (refused) return;
    failures++;
    printf("%s with a later option: %s: %s\n", name, an_status_name(status), message);
}

/* A call that takes &o of this type, whose appended member is set. */
#define REFUSED(type, call)                      \
    do {                                         \
        type o;                                  \
        type##_init(&o, sizeof o);               \
        o.appended = 1;                          \
        expect(#type, call, an_last_error(ctx)); \
    } while (0)

/* The same for a builder: the graph keeps the mistake until it is verified. */
#define REFUSED_BUILDER(type, call)                            \
    do {                                                       \
        type o;                                                \
        an_graph *g = NULL;                                    \
        type##_init(&o, sizeof o);                             \
        o.appended = 1;                                        \
        if (an_graph_create(&g, ctx, "g") != AN_OK) return 1;  \
        (void)(call);                                          \
        expect(#type, an_graph_verify(g), an_last_error(ctx)); \
        an_graph_destroy(&g);                                  \
    } while (0)

int main(void) {
    static float x[8][2], y[8][1];
    an_context *other = NULL;
    an_context_options late;
    an_context_options_init(&late, sizeof late);
    late.appended = 1;
    expect("an_context_options", an_context_create(&other, &late), an_last_error(NULL));
    if (an_context_create(&ctx, NULL) != AN_OK) return 1;

    an_graph *graph = NULL;
    an_dataset *data = NULL, *none = NULL;
    an_batches *batches = NULL;
    an_config *config = NULL;
    an_params *params = NULL;
    an_plan *plan = NULL;
    an_groups *groups = NULL;
    an_optimizer *optimizer = NULL;
    an_schedule *schedule = NULL;
    an_trainer *trainer = NULL, *nothing = NULL;
    an_predictor *predictor = NULL;
    an_candidates *candidates = NULL;

    /* Models, data and plans. */
    REFUSED(an_mlp_options, an_model_mlp(&graph, ctx, &o));
    REFUSED(an_cnn_options, an_model_cnn(&graph, ctx, &o));
    REFUSED(an_gpt2_options, an_model_gpt2(&graph, ctx, &o));
    REFUSED(an_llama_options, an_model_llama(&graph, ctx, &o));
    REFUSED(an_bert_options, an_model_bert(&graph, ctx, &o));
    REFUSED(an_sequential_options, an_model_sequential(&graph, ctx, &o));
    const an_dim image[] = {1, 2, 8, 8};
#define IMAGE an_input(g, "x", AN_DTYPE_F32, 4, image)
    REFUSED_BUILDER(an_convolution_options, an_convolution_layer(g, IMAGE, "c", 4, 3, &o));
    REFUSED_BUILDER(an_pool_options, an_max_pool(g, IMAGE, &o));
    REFUSED_BUILDER(an_rotary_options, an_rotary(g, IMAGE, &o));
    REFUSED_BUILDER(an_attention_options, an_attention(g, IMAGE, AN_NONE, AN_NONE, &o));
    REFUSED_BUILDER(an_cross_entropy_options, an_cross_entropy(g, IMAGE, AN_NONE, &o));
    REFUSED(an_dataset_record, an_dataset_create(&none, ctx, &o));
    REFUSED(an_array_source, an_dataset_create_arrays(&none, ctx, &o));
    REFUSED(an_idx_source, an_dataset_create_idx(&none, ctx, &o));
    REFUSED(an_images_source, an_dataset_create_images(&none, ctx, &o));
    REFUSED(an_csv_source, an_dataset_create_csv(&none, ctx, &o));
    REFUSED(an_npy_source, an_dataset_create_npy(&none, ctx, &o));
    REFUSED(an_hdf5_source, an_dataset_create_hdf5(&none, ctx, &o));
    REFUSED(an_jsonl_source, an_dataset_create_jsonl(&none, ctx, &o));
    REFUSED(an_chat_source, an_dataset_create_chat(&none, ctx, &o));
    REFUSED(an_sentence_source, an_dataset_create_sentences(&none, ctx, &o));
    REFUSED(an_text_source, an_dataset_create_text(&none, ctx, &o));
    REFUSED(an_token_source, an_dataset_create_tokens(&none, ctx, &o));
    REFUSED(an_megatron_source, an_dataset_create_megatron(&none, ctx, &o));
    REFUSED(an_mixture_source, an_dataset_create_mixture(&none, ctx, &o));
    REFUSED(an_batch_options, an_batches_create(&batches, ctx, 8, &o));
    REFUSED(an_config_options, an_config_create(&config, ctx, &o));
    REFUSED(an_schedule_options, an_schedule_create(&schedule, ctx, &o));

    /* A run, whose structs are all larger than the library's and at their defaults. */
    const int64_t hidden[] = {4};
    an_mlp_options model;
    an_mlp_options_init(&model, sizeof model);
    model.inputs = 2;
    model.outputs = 1;
    model.hidden = hidden;
    model.hidden_count = 1;
    model.loss = AN_LOSS_SQUARED;
    an_array arrays[2];
    memset(arrays, 0, sizeof arrays);
    arrays[0].data = x;
    arrays[1].data = y;
    arrays[0].dtype = arrays[1].dtype = AN_DTYPE_F32;
    arrays[0].ndims = arrays[1].ndims = 2;
    arrays[0].dims[0] = arrays[1].dims[0] = 8;
    arrays[0].dims[1] = 2;
    arrays[1].dims[1] = 1;
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.arrays = arrays;
    source.array_count = 2;
    an_batch_options batch;
    an_batch_options_init(&batch, sizeof batch);
    batch.global = 4;
    an_trainer_options options;
    an_trainer_options_init(&options, sizeof options);
    options.batch = &batch;
    options.epochs = 2;
    if (an_model_mlp(&graph, ctx, &model) != AN_OK || an_dataset_create_arrays(&data, ctx, &source) != AN_OK) return 1;
    REFUSED(an_trainer_options, an_trainer_create(&nothing, graph, data, NULL, &o));
    REFUSED(an_group_options, an_groups_create(&groups, graph, &o));
    if (an_trainer_create(&trainer, graph, data, NULL, &options) != AN_OK) {
        printf("%s\n", an_last_error(ctx));
        return 1;
    }
    an_params *store = an_trainer_params(trainer);
    REFUSED(an_params_options, an_params_create(&params, ctx, graph, &o));
    REFUSED(an_plan_options, an_plan_create(&plan, ctx, graph, &o));
    REFUSED(an_optimizer_options, an_optimizer_create(&optimizer, store, an_trainer_groups(trainer), &o));
    REFUSED(an_load_options, an_trainer_load_weights(trainer, &o));
    REFUSED(an_run_options, an_trainer_run(trainer, &o, NULL));
    REFUSED(an_save_options, an_trainer_set_saving(trainer, &o));
    REFUSED(an_log_options, an_trainer_set_logging(trainer, &o));
    REFUSED(an_predictor_options, an_predictor_create(&predictor, trainer, &o));
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.appended = 1;
    an_run_options run;
    an_run_options_init(&run, sizeof run);
    run.callbacks = &callbacks;
    expect("an_run_callbacks", an_trainer_run(trainer, &run, NULL), an_last_error(ctx));
    run.callbacks = NULL;
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_trainer_info info;
    an_trainer_info_init(&info, sizeof info);
    if (an_trainer_run(trainer, &run, &outcome) != AN_OK || an_trainer_step_metrics(trainer, &metrics) != AN_OK ||
        an_trainer_info_get(trainer, &info) != AN_OK || outcome.steps != 4 || metrics.step != 4 || info.steps != 4 ||
        outcome.appended || metrics.appended || info.appended || metrics.size != sizeof metrics) {
        printf("a run with larger structs: %s\n", an_last_error(ctx));
        failures++;
    }
    an_candidates_destroy(&candidates);
    an_trainer_destroy(&trainer);
    an_dataset_destroy(&data);
    an_graph_destroy(&graph);
    an_context_destroy(&ctx);
    printf("%d later options, %d not refused\n", tries, failures);
    return failures != 0 || tries < 30;
}
