/* The keys of a config as members of a struct, for code that names one: AN_SETTING(run.epochs) is "run.epochs", and
 * does not compile where there is no such key. Structs of a run that have members for options are filled from the same
 * rows (config/options.def); what none of them has, is here with its value.
 *
 * Only keys that code names are listed. A test walks the struct (tests/config/test_settings.c): every member is a key,
 * and has a row that fills it unless it is an an_key_only.
 */
#ifndef AN_BASE_OPTIONS_SETTINGS_H
#define AN_BASE_OPTIONS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "anneal/data.h"

/* A key that has its value elsewhere: in another struct, or with the code that reads it by its kind. */
typedef struct an_key_only {
    char none;
} an_key_only;

typedef enum an_matmul_precision { AN_MATMUL_HIGHEST, AN_MATMUL_MEDIUM } an_matmul_precision;
typedef enum an_loss_reduction { AN_REDUCTION_MEAN, AN_REDUCTION_SAMPLE_MEAN } an_loss_reduction;

/* 0, NULL and a length of 0 stand for what is not set, and for words such as auto and off. */
typedef struct an_settings {
    struct {
        an_key_only dir, seed, max_time, isa;
        an_length steps, epochs, tokens, samples;
        bool allow_new_bits;
    } run;
    struct {
        const char *type;
        an_key_only from, graph, loss;
        an_key_only layers, heads, kv_heads, width, hidden, context, vocabulary, token_types;
        an_key_only dropout, epsilon, tied, rotary_base;
        struct {
            const char *from;
            an_key_only rename;
        } init;
    } model;
    struct {
        an_key_only targets, rank, dora, base;
        const char *from;
    } lora;
    struct {
        struct {
            an_key_only type, dtype, path, labels, part, inputs, targets, tokens, tokenizer, template, system;
            an_key_only parts[1]; /* AN_SETTING(data.train.parts[0]) is the first of a mixture */
        } train, eval;
        struct {
            an_key_only eval;
            const char *by;
        } split;
        struct {
            an_key_only mixup;
        } augment;
        struct {
            an_key_only inputs, targets, fit;
        } normalize;
        an_key_only class_weights;
        const char *weights;
    } data;
    struct {
        an_key_only global, micro, accumulate;
    } batch;
    struct {
        an_key_only type, lr, betas, eps, momentum, dampening, nesterov, weight_decay, layer_decay, groups;
    } optimizer;
    struct {
        an_key_only type, max_lr, min_lr, min_ratio, per;
        struct {
            an_key_only steps;
        } warmup;
    } schedule;
    struct {
        an_dtype precision;
        an_matmul_precision matmul_precision;
        an_key_only clip_norm, clip_value;
        struct {
            an_key_only mode;
        } recompute;
        struct {
            an_loss_reduction reduction;
            double label_smoothing, focal, beta;
        } loss;
        struct {
            an_key_only decay;
        } ema;
    } train;
    struct {
        an_length every;
        const char *const *metrics;
        int metrics_count;
        an_key_only generate;
        struct {
            const char *metric;
        } best, early_stop;
    } eval;
    struct {
        an_length every, keep_every;
        an_key_only keep_last, stage;
    } save;
    struct {
        an_length every;
        an_key_only profile;
    } log;
    struct {
        struct {
            an_dtype params;
            an_key_only reduce;
        } precision;
        an_key_only shard, threads, shared_memory, report_after, timeout;
    } ranks;
} an_settings;

/* The key of a member, or of a table: AN_SETTING(data.train) is "data.train". */
#define AN_SETTING(member) (&#member[0 * offsetof(an_settings, member)])
/* … with a value, as an_config_set takes it: AN_SETTING_TO(eval.every, "off") is "eval.every=off". */
#define AN_SETTING_TO(member, value) (&#member "=" value[0 * offsetof(an_settings, member)])

#endif
