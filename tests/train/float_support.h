/* Calls made in the floating-point environments that a host may have, with a record of what each of them gave. */
#ifndef TESTS_TRAIN_FLOAT_SUPPORT_H
#define TESTS_TRAIN_FLOAT_SUPPORT_H

#include <fenv.h>

#include "anneal/checkpoint.h"
#include "anneal/details.h"
#include "anneal/experimental.h"
#include "anneal/heartbeat.h"
#include "anneal/models.h"
#include "anneal/open.h"
#include "anneal/predict.h"
#include "anneal/ranks.h"
#include "anneal/run.h"
#include "anneal/stream.h"
#include "support/public_calls.h"
#include "support/support.h"

/* Public functions that touch no floating-point number: they need no guard. All others must be called by the test. */
static const char *const plain_calls[] = {"an_context_create",
                                          "an_context_destroy",
                                          "an_last_error",
                                          "an_last_error_trail",
                                          "an_watch_create",
                                          "an_watch_destroy",
                                          "an_trainer_add_note",
                                          "an_trainer_set_metrics",
                                          "an_trainer_check_metric",
                                          "an_graph_check_data",
                                          "an_dataset_create_stream",
                                          "an_candidates_create",
                                          "an_candidates_destroy",
                                          "an_candidates_path",
                                          "an_resume_leaves",
                                          "an_context_ranks_info",
                                          "an_resume_destroy",
                                          "an_context_threads",
                                          "an_context_add_kernel",
                                          "an_kernel_fail",
                                          "an_context_isa",
                                          "an_isa_name",
                                          "an_context_bytes",
                                          "an_status_name",
                                          "an_status_text",
                                          "an_dtype_name",
                                          "an_dtype_size",
                                          "an_version",
                                          "an_onednn_version",
                                          "an_mpi_version",
                                          "an_context_create_mpi_f",
                                          "an_comm_start",
                                          "an_comm_finish",
                                          "an_context_rank",
                                          "an_context_ranks",
                                          "an_matmul",
                                          "an_convolution",
                                          "an_max_pool",
                                          "an_average_pool",
                                          "an_bias",
                                          "an_relu",
                                          "an_gelu",
                                          "an_gelu_tanh",
                                          "an_silu",
                                          "an_sigmoid",
                                          "an_tanh",
                                          "an_exp",
                                          "an_log",
                                          "an_sqrt",
                                          "an_softplus",
                                          "an_mish",
                                          "an_hard_swish",
                                          "an_sin",
                                          "an_cos",
                                          "an_abs",
                                          "an_negate",
                                          "an_add",
                                          "an_subtract",
                                          "an_multiply",
                                          "an_divide",
                                          "an_maximum",
                                          "an_minimum",
                                          "an_power",
                                          "an_cast",
                                          "an_reduce_sum",
                                          "an_reduce_mean",
                                          "an_reduce_max",
                                          "an_softmax",
                                          "an_log_softmax",
                                          "an_embedding",
                                          "an_reshape",
                                          "an_transpose",
                                          "an_permute",
                                          "an_slice",
                                          "an_split",
                                          "an_expand",
                                          "an_contiguous",
                                          "an_concat",
                                          "an_pad",
                                          "an_gather",
                                          "an_squared_error",
                                          "an_absolute_error",
                                          "an_binary_cross_entropy",
                                          "an_weigh_loss",
                                          "an_context_spin",
                                          "an_trainer_user_step",
                                          "an_trainer_resumed",
                                          "an_trainer_origin",
                                          "an_encoding_category_count",
                                          "an_encoding_category",
                                          "an_trainer_notes",
                                          "an_checkpoint_close",
                                          "an_checkpoint_tensor_get",
                                          "an_checkpoint_find",
                                          "an_config_destroy",
                                          "an_config_warning_count",
                                          "an_config_warning",
                                          "an_config_origin_of",
                                          "an_config_place",
                                          "an_config_is",
                                          "an_config_size",
                                          "an_batches_destroy",
                                          "an_batches_change",
                                          "an_batches_epoch_begin",
                                          "an_batches_epoch_steps",
                                          "an_dataset_destroy",
                                          "an_dataset_count",
                                          "an_dataset_notice",
                                          "an_dataset_class_name",
                                          "an_dataset_field_count",
                                          "an_dataset_column",
                                          "an_cells_create",
                                          "an_cells_name",
                                          "an_cells_get",
                                          "an_cells_destroy",
                                          "an_csv_facts_destroy",
                                          "an_csv_facts_info",
                                          "an_csv_facts_value",
                                          "an_features_count",
                                          "an_features_destroy",
                                          "an_dataset_field",
                                          "an_dataset_set_limit",
                                          "an_dataset_count_classes",
                                          "an_dataset_vocabulary",
                                          "an_dataset_token_text",
                                          "an_dataset_encode",
                                          "an_tokenizer_create_parts",
                                          "an_tokenizer_destroy",
                                          "an_tokenizer_info_get",
                                          "an_tokenizer_token",
                                          "an_tokenizer_id",
                                          "an_tokenizer_is_special",
                                          "an_tokenizer_decode",
                                          "an_encoder_create",
                                          "an_encoder_destroy",
                                          "an_encoder_run",
                                          "an_encoder_types",
                                          "an_decoder_create",
                                          "an_decoder_destroy",
                                          "an_decoder_push",
                                          "an_bpe_trainer_create",
                                          "an_bpe_trainer_destroy",
                                          "an_bpe_trainer_add",
                                          "an_bpe_trainer_run",
                                          "an_decoder_end",
                                          "an_dataset_encoding",
                                          "an_dataset_notice",
                                          "an_encoding_destroy",
                                          "an_encoding_class",
                                          "an_encoding_agrees",
                                          "an_graph_create",
                                          "an_graph_destroy",
                                          "an_graph_context",
                                          "an_graph_at",
                                          "an_graph_set_loss",
                                          "an_graph_set_output",
                                          "an_graph_set_prediction",
                                          "an_string_release",
                                          "an_context_set_span",
                                          "an_graph_symbol_name",
                                          "an_graph_parameter_elements",
                                          "an_graph_info_get",
                                          "an_graph_set_label_smoothing",
                                          "an_graph_set_focal",
                                          "an_graph_add_dpo",
                                          "an_value_ndims",
                                          "an_value_dim",
                                          "an_value_dtype",
                                          "an_value_output",
                                          "an_symbol_dim",
                                          "an_dim_add",
                                          "an_dim_subtract",
                                          "an_dim_multiply",
                                          "an_dim_window",
                                          "an_block_begin",
                                          "an_block_end",
                                          "an_scope_begin",
                                          "an_scope_end",
                                          "an_input",
                                          "an_program_state",
                                          "an_scalar",
                                          "an_param_freeze",
                                          "an_heartbeat_read",
                                          "an_heartbeat_init",
                                          "an_auto",
                                          "an_is_auto",
                                          "an_trainer_save_report",
/* every init function: test_base_structs */
#define AN_STRUCT(type, ...) #type "_init",
#include "support/all_structs.def"
#undef AN_STRUCT
                                          "an_model_preset_options",
                                          "an_model_preset_name",
                                          "an_chat_recognize",
                                          "an_chat_open",
                                          "an_pretrained_chat",
                                          "an_chat_render",
                                          "an_chat_encode",
                                          "an_chat_end",
                                          "an_chat_template_name",
                                          "an_pretrained_family",
                                          "an_pretrained_close",
                                          "an_params_destroy",
                                          "an_params_count",
                                          "an_params_info",
                                          "an_plan_destroy",
                                          "an_plan_op_count",
                                          "an_plan_node_count",
                                          "an_plan_life_count",
                                          "an_plan_one_leaf",
                                          "an_program_destroy",
                                          "an_program_input_count",
                                          "an_program_input",
                                          "an_program_set_hook",
                                          "an_program_profile",
                                          "an_program_profile_count",
                                          "an_groups_destroy",
                                          "an_groups_count",
                                          "an_groups_find",
                                          "an_optimizer_destroy",
                                          "an_optimizer_updates",
                                          "an_optimizer_set_updates",
                                          "an_schedule_destroy",
                                          "an_schedule_type_name",
                                          "an_stepper_destroy",
                                          "an_stepper_leaves",
                                          "an_step_cancel",
                                          "an_trainer_destroy",
                                          "an_trainer_destroy",
                                          "an_trainer_steps",
                                          "an_trainer_next_step",
                                          "an_trainer_metric",
                                          "an_trainer_norm_count",
                                          "an_trainer_class_count",
                                          "an_trainer_label_count",
                                          "an_trainer_output_count",
                                          "an_trainer_confusion",
                                          "an_trainer_params",
                                          "an_trainer_program",
                                          "an_trainer_data",
                                          "an_trainer_plan",
                                          "an_trainer_graph",
                                          "an_trainer_groups",
                                          "an_trainer_schedule",
                                          "an_trainer_request_stop",
                                          "an_folder_destroy",
                                          "an_folder_path",
                                          "an_predictor_destroy",
                                          "an_predictor_input_elements",
                                          "an_predictor_output_elements",
                                          "an_predictor_dtype",
                                          "an_generator_destroy",
                                          "an_generator_stop",
                                          NULL};

/* ---- environments ---- */

typedef struct {
    const char *name;
    unsigned mxcsr, x87; /* as the registers have them */
    int rounding;        /* where there are no such registers */
} environment;

static const environment environments[] = {
    {"the default", 0x1f80, 0x037f, FE_TONEAREST},
    {"rounding down", 0x3f80, 0x077f, FE_DOWNWARD},
    {"rounding up", 0x5f80, 0x0b7f, FE_UPWARD},
    {"rounding to zero", 0x7f80, 0x0f7f, FE_TOWARDZERO},
    {"flush to zero, denormals are zero", 0x9fc0, 0x037f, FE_TONEAREST},
    {"x87 with 24 bits, and a flag that is raised", 0x1f84, 0x007f, FE_TONEAREST},
    {"every exception traps", 0x0000, 0x0340, FE_TONEAREST},
    {"all of it, rounding up", 0xc040, 0x0840, FE_UPWARD},
};
enum { ENVIRONMENTS = sizeof environments / sizeof *environments };

static const environment *host = &environments[0]; /* what the host has now */

#if defined(__x86_64__)
static inline void set_environment(const environment *e) {
    const unsigned short x87 = (unsigned short)e->x87;
    __asm__ volatile("fldcw %0" : : "m"(x87));
    __asm__ volatile("ldmxcsr %0" : : "m"(e->mxcsr));
}

static inline bool has_environment(const environment *e) {
    unsigned mxcsr;
    unsigned short x87;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return mxcsr == e->mxcsr && x87 == e->x87;
}
#else
static inline void set_environment(const environment *e) {
    fesetround(e->rounding);
}

static inline bool has_environment(const environment *e) {
    return fegetround() == e->rounding;
}
#endif

/* ---- the record ---- */

typedef struct {
    const char *name;
    uint64_t bits; /* a hash of all that it gave */
} called;

enum { MOST_CALLED = 4096 };
static called first_record[MOST_CALLED], record[MOST_CALLED];
static int first_count, record_count;

static inline void note(const void *bytes, size_t size) {
    uint64_t hash = record[record_count - 1].bits;
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    record[record_count - 1].bits = hash;
}

#define NOTE(x) note(&(x), sizeof(x))

static inline void note_text(const char *text) {
    note(text, strlen(text));
}

static inline void begin_call(const char *name) {
    assert_true(record_count < MOST_CALLED);
    record[record_count++] = (called){name, 0xcbf29ce484222325u};
    set_environment(host);
}

static inline void end_call(void) {
    const bool same = has_environment(host);
    set_environment(&environments[0]);
    if (!same) fail_msg("%s did not put the host's environment back (%s)", record[record_count - 1].name, host->name);
}

/* A call with the host's environment around it. */
#define CALL(f, ...)                                              \
    __extension__({                                               \
        begin_call(#f);                                           \
        const __typeof__(f(__VA_ARGS__)) given_ = f(__VA_ARGS__); \
        end_call();                                               \
        given_;                                                   \
    })

/* One that must be AN_OK. */
#define DO(f, ...)                                                                         \
    do {                                                                                   \
        const an_status status_ = CALL(f, __VA_ARGS__);                                    \
        if (status_ != AN_OK) fail_msg("%s (%s): %s", #f, host->name, an_last_error(ctx)); \
    } while (0)

/* One that gives a number. */
#define NUMBER(f, ...)                                                   \
    do {                                                                 \
        const __typeof__(f(__VA_ARGS__)) number_ = CALL(f, __VA_ARGS__); \
        NOTE(number_);                                                   \
    } while (0)

/* What the environment changed, if anything, is named by its call. */
static inline void compare_records(void) {
    if (host == &environments[0]) {
        memcpy(first_record, record, sizeof record);
        first_count = record_count;
    }
    assert_int_equal(record_count, first_count);
    for (int i = 0; i < record_count; i++)
        if (record[i].bits != first_record[i].bits)
            fail_msg("%s (call %d) gives other bits with %s", record[i].name, i, host->name);
}

#endif
