/* Every public function with NULL for each of its pointers in turn. A handle that is NULL, or anything else that a
 * function needs, is an error with a message; a function that returns no status does nothing and returns something
 * harmless. Nothing crashes. The names of all functions are read from the headers: a new one must have a row. */
#define _GNU_SOURCE /* MAP_ANONYMOUS; NOLINT(bugprone-reserved-identifier) */
#define AN_NO_PLACES
#include "anneal/checkpoint.h"
#include "anneal/details.h"
#include "anneal/experimental.h"
#include "anneal/generate.h"
#include "anneal/open.h"
#include "anneal/predict.h"
#include "anneal/pretrained.h"
#include "anneal/run.h"
#include "anneal/stream.h"
#include "train/null_run_calls.h"

static an_groups *groups;
static an_optimizer *optimizer;
static an_schedule *schedule;
static an_stepper *stepper;
static an_trainer *trainer, *stream, *writer;
static an_folder *folder;
static an_checkpoint *checkpoint;

static const an_schedule_options schedule_options = {DEFAULTS(an_schedule_options), .steps = 4};

static void make_trainers(void) {
    OK(ctx, an_groups_create(&groups, model, NULL));
    OK(ctx, an_optimizer_create(&optimizer, params, groups, NULL));
    OK(ctx, an_schedule_create(&schedule, ctx, &schedule_options));
    OK(ctx, an_stepper_create(&stepper, program, optimizer, schedule, NULL));
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, NULL));
    OK(ctx, an_folder_create(&folder, trainer, config, NULL));
    OK(ctx, an_trainer_step(trainer, NULL));
    OK(ctx, an_trainer_save(trainer, 7));
    OK(ctx, an_predictor_create(&predictor, trainer, NULL));
    OK(ctx, an_checkpoint_open(&checkpoint, ctx, "run"));
    stream =
        open_run("model: {type: mlp, inputs: 2, outputs: 1, hidden: [8]}\ndata: {source: stream}\nrun: {steps: 4}\n");
    writer = open_run("model: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8}\n"
                      "data: {train: {type: text, path: poem.txt, tokens: chars}}\nbatch: {global: 4}\n"
                      "run: {dir: written, steps: 2}\n");
    OK(ctx, an_generator_create(&generator, writer, NULL));
    write_text("run.yaml", LISTS);
}

static void make_all(void) {
    make_graphs();
    make_program();
    make_config();
    make_data();
    make_trainers();
}

static void destroy_all(void) {
    an_generator_destroy(&generator);
    an_trainer_destroy(&writer);
    an_trainer_destroy(&stream);
    an_checkpoint_close(&checkpoint);
    an_predictor_destroy(&predictor);
    an_folder_destroy(&folder);
    an_trainer_destroy(&trainer);
    an_stepper_destroy(&stepper);
    an_schedule_destroy(&schedule);
    an_optimizer_destroy(&optimizer);
    an_groups_destroy(&groups);
    an_dataset_destroy(&poem);
    an_dataset_destroy(&table);
    an_config_destroy(&config);
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    an_graph_destroy(&open);
    an_graph_destroy(&model);
}

/* ---- train.h ---- */

static void call_parts(void) {
    an_group_options group_options;
    an_group_options_init(&group_options, sizeof group_options);
    an_optimizer_options optimizer_options;
    an_optimizer_options_init(&optimizer_options, sizeof optimizer_options);
    const an_optimizer_record nameless = {.version = 1};
    const an_metric_options unmeasured = {.size = sizeof unmeasured};
    const an_lora_options lora = {.size = sizeof lora};
    an_groups *fresh_groups = NULL;
    an_optimizer *fresh_optimizer = NULL;
    an_schedule *fresh_schedule = NULL;
    an_group_info info;
    an_group_info_init(&info, sizeof info);
    an_update update = {DEFAULTS(an_update), .rate = 1e-3};
    an_scaler scaler;
    an_scaler_init(&scaler, sizeof scaler);
    int index;
    double norm;
    STATUS(an_groups_create, N(&fresh_groups), N(model), O(&group_options));
    REFUSED(an_graph_add_lora, N(model), N(&lora));
    REFUSED(an_graph_add_dpo, N(model), 0.1);
    NOTHING(an_groups_destroy, O(&groups));
    VALUE(an_groups_count, 0, N(groups));
    STATUS(an_groups_get, N(groups), 0, N(&info));
    STATUS(an_groups_find, N(groups), N("fc1.weight"), N(&index));
    VALUE(an_optimizer_moments, 2, O(&optimizer_options));
    STATUS(an_optimizer_moments_in, N(ctx), O(&optimizer_options), N(&index));
    REFUSED(an_context_add_optimizer, N(ctx), N(&nameless));
    REFUSED(an_context_add_metric, N(ctx), N(&unmeasured));
    STATUS(an_optimizer_create, N(&fresh_optimizer), N(params), N(groups), O(&optimizer_options));
    NOTHING(an_optimizer_destroy, O(&optimizer));
    STATUS(an_optimizer_norm, N(optimizer), 1, N(&norm));
    REFUSED(an_optimizer_parameter_norm, N(optimizer), N("fc1.weight"), N(&norm));
    STATUS(an_optimizer_update, N(optimizer), N(&update));
    VALUE(an_optimizer_updates, 0, N(optimizer));
    NOTHING(an_optimizer_set_updates, N(optimizer), 3);
    STATUS(an_schedule_create, N(&fresh_schedule), N(ctx), N(&schedule_options));
    NOTHING(an_schedule_destroy, O(&schedule));
    VALUE(an_schedule_factor, 0, N(schedule), 1);
    VALUE(an_schedule_momentum, 0, N(schedule), 1);
    PLAIN(an_schedule_type_name);
    VALUE(an_scaler_update, false, N(&scaler), true);
}

static void call_steps(void) {
    an_stepper_options options;
    an_stepper_options_init(&options, sizeof options);
    an_stepper *fresh = NULL;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    STATUS(an_stepper_create, N(&fresh), N(program), N(optimizer), O(schedule), O(&options));
    NOTHING(an_stepper_destroy, O(&stepper));
    STATUS(an_step_begin, N(stepper), 2);
    REFUSED(an_step_micro_batch, N(stepper), 0, 1);
    REFUSED(an_step_reduce, N(stepper));
    REFUSED(an_step_unscale, N(stepper));
    REFUSED(an_step_clip, N(stepper));
    REFUSED(an_step_update, N(stepper));
    REFUSED(an_step_schedule, N(stepper));
    REFUSED(an_step_end, N(stepper), O(&metrics));
    NOTHING(an_step_cancel, N(stepper));
    VALUE(an_stepper_rate, 0, N(stepper));
    int64_t first, end;
    NOTHING(an_stepper_leaves, N(stepper), N(&first), N(&end));
}

static void try_details(void) {
    an_class_metrics metrics;
    an_class_metrics_init(&metrics, sizeof metrics);
    an_output_metrics output;
    an_output_metrics_init(&output, sizeof output);
    an_label_metrics label;
    an_label_metrics_init(&label, sizeof label);
    an_roc_point points[2];
    int64_t count;
    VALUE(an_trainer_class_count, 0, N(trainer));
    VALUE(an_trainer_label_count, 0, N(trainer));
    REFUSED(an_trainer_label_metrics, N(trainer), 0, N(&label));
    VALUE(an_trainer_output_count, 0, N(trainer));
    REFUSED(an_trainer_class_metrics, N(trainer), 0, N(&metrics));
    REFUSED(an_trainer_confusion, N(trainer), 0, 0, N(&count));
    REFUSED(an_trainer_roc, N(trainer), 2, N(points), N(&count));
    REFUSED(an_trainer_output_metrics, N(trainer), 0, N(&output));
}

static void call_trainers(void) {
    an_trainer_options options = {DEFAULTS(an_trainer_options), .steps = 2};
    an_open_options opening = {.size = sizeof opening, .purpose = AN_OPEN_PLAN};
    an_trainer *fresh = NULL;
    an_trainer_info info;
    an_trainer_info_init(&info, sizeof info);
    an_strategy strategy;
    an_strategy_init(&strategy, sizeof strategy);
    an_plan_memory needed;
    an_plan_memory_init(&needed, sizeof needed);
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    an_save_report report;
    an_save_report_init(&report, sizeof report);
    an_array one = array_of(numbers, AN_DTYPE_F32, 2, (int64_t[]){1, 2}),
             sum = array_of(numbers, AN_DTYPE_F32, 2, (int64_t[]){1, 1});
    double doubles[4] = {0}, norm;
    const char *name;
    char hash[AN_HASH_TEXT];
    REFUSED(an_trainer_create, N(&fresh), N(model), O(table), O(table), N(&options));
    NOTHING(an_trainer_destroy, O(&trainer));
    REFUSED(an_trainer_open, N(&fresh), N(ctx), N("run.yaml"), O(&opening));
    STATUS(an_trainer_open_config, N(&fresh), N(ctx), N(config), O(&opening));
    STATUS(an_trainer_info_get, N(trainer), N(&info));
    STATUS(an_trainer_strategy, N(trainer), AN_SHARD_NONE, N(&strategy));
    STATUS(an_trainer_strategy_memory, N(trainer), AN_SHARD_NONE, N(&needed));
    STATUS(an_trainer_step, N(trainer), O(&metrics));
    STATUS(an_trainer_step_on, N(stream), 1, N(&one), N(&sum), O(&metrics));
    STATUS(an_trainer_step_on_f32, N(stream), 1, N(numbers), N(numbers), O(&metrics));
    STATUS(an_trainer_step_on_f64, N(stream), 1, N(doubles), N(doubles), O(&metrics));
    VALUE(an_trainer_steps, 0, N(trainer));
    VALUE(an_trainer_next_step, 0, N(trainer));
    STATUS(an_trainer_evaluate, N(trainer), N(&evaluation));
    REFUSED(an_trainer_evaluation, N(trainer), N(&evaluation));
    REFUSED(an_trainer_step_metrics, N(trainer), N(&metrics));
    REFUSED(an_trainer_save_report, N(trainer), N(&report));
    VALUE(an_trainer_metric, NULL, N(trainer), 0);
    VALUE(an_trainer_norm_count, 0, N(trainer));
    REFUSED(an_trainer_norm, N(trainer), 0, N(&name), N(&norm));
    try_details();
    STATUS(an_trainer_weights_hash, N(trainer), N(hash));
    STATUS(an_trainer_state_hash, N(trainer), N(hash));
    VALUE(an_trainer_params, NULL, N(trainer));
    VALUE(an_trainer_program, NULL, N(trainer));
    VALUE(an_trainer_data, NULL, N(trainer));
    VALUE(an_trainer_plan, NULL, N(trainer));
    VALUE(an_trainer_graph, NULL, N(trainer));
    VALUE(an_trainer_groups, NULL, N(trainer));
    VALUE(an_trainer_schedule, NULL, N(trainer));
    VALUE(an_trainer_metric_value, false, N(trainer), N("val_loss"), N(&norm));
    VALUE(an_evaluation_metric, false, N(&evaluation), N("val_loss"), N(&norm));
}

static an_status make_no_schedule(void *user, int64_t steps, an_schedule **made, double *rate) {
    (void)user, (void)steps, (void)made, (void)rate;
    return AN_ERR_STATE;
}

/* What an_trainer_open is made of. */
static void call_opening(void) {
    const an_load_options init = {.size = sizeof init, .path = "nowhere"};
    const an_run_options run = {DEFAULTS(an_run_options)};
    const an_save_options saving = {.size = sizeof saving};
    const an_log_options logging = {.size = sizeof logging};
    const an_open_options opening = {.size = sizeof opening};
    an_normalize_options normalize;
    an_normalize_options_init(&normalize, sizeof normalize);
    const char *const names[] = {"val_loss"};
    an_candidates *candidates = NULL, *fresh = NULL;
    an_resume *resume = NULL, *fresh_resume = NULL;
    an_dataset *dataset = NULL;
    double number;
    int64_t steps;
    OK(ctx, an_candidates_create(&candidates, ctx, config, &opening));
    const char *path = an_candidates_path(candidates, 0);
    assert_non_null(path);
    OK(ctx, an_resume_create(&resume, ctx, config, path, &opening));
    REFUSED(an_graph_check_data, N(model), N(table));
    STATUS(an_dataset_create_stream, N(&dataset), N(model), 0);
    REFUSED(an_trainer_load_weights, N(stream), N(&init));
    REFUSED(an_trainer_normalize, N(trainer), N(&normalize));
    STATUS(an_trainer_set_metrics, N(trainer), 1, N(names));
    STATUS(an_trainer_check_metric, N(trainer), N("val_loss"));
    STATUS(an_trainer_set_run_options, N(stream), N(&run));
    STATUS(an_trainer_set_saving, N(stream), N(&saving));
    STATUS(an_trainer_set_logging, N(stream), N(&logging));
    REFUSED(an_job_seconds, N(ctx), N(&number));
    STATUS(an_candidates_create, N(&fresh), N(ctx), N(config), N(&opening));
    VALUE(an_candidates_path, NULL, N(candidates), 0);
    STATUS(an_resume_create, N(&fresh_resume), N(ctx), N(config), N(path), N(&opening));
    REFUSED(an_resume_schedule_steps, N(resume), N(make_no_schedule), O(NULL), 100, N(&steps));
    VALUE(an_resume_leaves, 0, N(resume));
    REFUSED(an_resume_apply, N(resume), N(trainer));
    NOTHING(an_resume_destroy, O(&resume));
    NOTHING(an_candidates_destroy, O(&candidates));
    STATUS(an_trainer_add_note, N(trainer), N("a line\n"));
    an_resume_destroy(&resume);
    an_candidates_destroy(&candidates);
}

static void call_runs(void) {
    an_run_options options;
    an_run_options_init(&options, sizeof options);
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    an_folder_options where = {.size = sizeof where, .path = "other"};
    an_folder *fresh = NULL;
    an_folder_state state;
    char *changes = NULL;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    bool logged;
    assert_int_equal(system("rm -rf other"), 0);
    STATUS(an_trainer_run_options, N(trainer), N(&options));
    REFUSED(an_trainer_run, N(trainer), O(&options), O(&outcome));
    NOTHING(an_trainer_request_stop, N(trainer));
    STATUS(an_folder_look, N(ctx), N("run"), N(&state));
    STATUS(an_folder_check_free, N(ctx), N("nowhere")); /* "run" is this process's */
    STATUS(an_folder_compare, N("run"), N(config), N(&changes));
    REFUSED(an_folder_create, N(&fresh), N(trainer), N(config), O(&where));
    NOTHING(an_folder_destroy, O(&folder));
    TEXT(an_folder_path, N(folder));
    STATUS(an_folder_step, N(folder), N(&metrics), O(&logged));
    STATUS(an_folder_evaluation, N(folder), 1, N(&evaluation));
    STATUS(an_folder_log, N(folder), N("line"));
    STATUS(an_folder_finish, N(folder), N(&outcome), NULL);
    VALUE(an_folder_speed, 0, N(folder));
}

static void call_predictors(void) {
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    an_predictor *fresh = NULL;
    an_range_info ranges;
    an_range_info_init(&ranges, sizeof ranges);
    const double doubles[4] = {0};
    double predicted[4];
    const int32_t tokens[4] = {0};
    STATUS(an_predictor_create, N(&fresh), N(trainer), O(&options));
    STATUS(an_predictor_open, N(&fresh), N(ctx), N("run"), O(&options));
    NOTHING(an_predictor_destroy, O(&predictor));
    STATUS(an_predictor_refresh, N(predictor), N(trainer));
    VALUE(an_predictor_input_elements, 0, N(predictor));
    VALUE(an_predictor_output_elements, 0, N(predictor));
    VALUE(an_predictor_dtype, AN_DTYPE_NONE, N(predictor));
    STATUS(an_predictor_range, N(predictor), N(&ranges));
    STATUS(an_predictor_run_f32, N(predictor), 1, N(numbers), N(numbers));
    REFUSED(an_predictor_run_f64, N(predictor), 1, N(doubles), N(predicted));
    REFUSED(an_predictor_run_tokens, N(predictor), 1, N(tokens), N(numbers));
    REFUSED(an_predictor_run_sentences, N(predictor), 1, N(tokens), N(tokens), N(tokens), N(numbers));
}

/* ---- generate.h ---- */

static void call_generators(void) {
    an_generator_options options;
    an_sampling_options sampling;
    an_generator_info info;
    an_generator *fresh = NULL;
    an_generated token;
    int64_t count;
    const int32_t tokens[] = {1, 2};
    an_generator_options_init(&options, sizeof options);
    an_sampling_options_init(&sampling, sizeof sampling);
    an_generator_info_init(&info, sizeof info);
    NOTHING(an_generator_options_init, O(&options), sizeof options);
    NOTHING(an_sampling_options_init, O(&sampling), sizeof sampling);
    NOTHING(an_generator_info_init, O(&info), sizeof info);
    STATUS(an_generator_create, N(&fresh), N(writer), O(&options));
    REFUSED(an_generator_open, N(&fresh), N(ctx), N("run"), O(&options)); /* not a model of tokens */
    NOTHING(an_generator_destroy, O(&fresh));
    STATUS(an_generator_refresh, N(generator), N(writer));
    STATUS(an_generator_info_get, N(generator), N(&info));
    STATUS(an_generator_add, N(generator), N(tokens), 2, O(&sampling));
    STATUS(an_generator_step, N(generator), N(&token), N(&count));
    REFUSED(an_generator_stop, N(generator), 0);
}

/* ---- checkpoint.h ---- */

static void call_checkpoints(void) {
    an_checkpoint *fresh = NULL;
    char key[AN_KEY_TEXT], value[AN_KEY_TEXT];
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    an_checkpoint_tensor tensor;
    an_checkpoint_tensor_init(&tensor, sizeof tensor);
    char *text = NULL;
    STATUS(an_trainer_save, N(trainer), 8);
    REFUSED(an_trainer_save_over, N(trainer), 7);
    VALUE(an_trainer_user_step, 0, N(trainer));
    STATUS(an_trainer_set_folder, N(stream), O("elsewhere"));
    REFUSED(an_trainer_load, N(stream), N("run"));
    REFUSED(an_trainer_restart, N(stream), N("run"));
    VALUE(an_trainer_origin, NULL, N(trainer));
    VALUE(an_trainer_resumed, NULL, N(trainer));
    TEXT(an_trainer_notes, N(trainer));
    STATUS(an_checkpoint_open, N(&fresh), N(ctx), N("run"));
    NOTHING(an_checkpoint_close, O(&checkpoint));
    STATUS(an_checkpoint_info_get, N(checkpoint), N(&info));
    STATUS(an_checkpoint_key, N(checkpoint), 0, N(key), N(value));
    STATUS(an_checkpoint_tensor_get, N(checkpoint), 0, N(&tensor));
    VALUE(an_checkpoint_find, -1, N(checkpoint), N("fc1.weight"));
    STATUS(an_checkpoint_read, N(checkpoint), 0, 0, 1, N(numbers));
    STATUS(an_checkpoint_text, N(checkpoint), N("config.yaml"), N(&text));
    STATUS(an_checkpoint_verify, N(ctx), N("run"));
    an_export_options export;
    an_export_options_init(&export, sizeof export);
    STATUS(an_checkpoint_export, N(checkpoint), N("exported.safetensors"), O(&export));
}

/* Public functions without a row. */
static int count_missing(void) {
    static public_calls all;
    int missing = 0;
    read_public_calls(&all);
    assert_true(all.count > 0);
    for (int i = 0; i < all.count; i++) {
        int k = 0;
        while (k < rowed.count && strcmp(rowed.names[k], all.names[i]) != 0) k++;
        if (k < rowed.count) continue;
        missing++;
        fprintf(stderr, "%s has no row\n", all.names[i]);
    }
    return missing;
}

static void test_null_for_each_pointer(void **state) {
    (void)state;
    make_all();
    call_contexts();
    call_ranks();
    call_own();
    call_graphs();
    call_elementwise();
    call_builders();
    call_models();
    call_plans();
    call_programs();
    call_configs();
    call_data();
    call_text();
    call_parts();
    call_steps();
    call_trainers();
    call_opening();
    call_runs();
    call_predictors();
    call_generators();
    call_checkpoints();
    destroy_all();
    const int missing = count_missing();
    if (row->failures || missing) fail_msg("%d calls were wrong, %d functions have no row", row->failures, missing);
}

static int setup_alone(void **state) {
    (void)state;
    return context_with_ledger(&ctx, &counted, 1) != AN_OK; /* one thread: children that are forked can compute */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_null_for_each_pointer)};
    return cmocka_run_group_tests(tests, setup_alone, teardown);
}
