/* What a run that carries on takes from its checkpoint, and what it must find as it was. */
#include <stdlib.h>

#include <xxhash.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "anneal/version.h"
#include "base/context.h"
#include "open/support.h"

#define DATA "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n"
#define MLP "model: {type: mlp, hidden: [5]}\n" DATA
enum { STEPS = 12, MIDDLE = 6, MOST_TEXT = 1 << 16 };

/* ---- runs ---- */

static const char *kernels; /* that runs are opened with; NULL: the usual ones */

static an_status open_settings(an_trainer **trainer, an_config **config, const char *text, bool new_bits) {
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    write_text("run.yaml", text);
    options.file = "run.yaml";
    open.new_bits = new_bits;
    open.kernels = kernels;
    OK(ctx, an_config_create(config, ctx, &options));
    return an_trainer_open_config(trainer, ctx, *config, &open);
}

/* A run of which half was done, with one checkpoint there. */
static void begin(const char *folder, const char *text) {
    char command[128];
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folder */
    write_sums();
    OK(ctx, open_settings(&trainer, &config, text, false));
    assert_null(an_trainer_resumed(trainer));
    for (int i = 0; i < MIDDLE; i++) OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save(trainer, MIDDLE));
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
}

/* What the rest of the run ends with. */
typedef struct {
    char hash[AN_HASH_TEXT];
} end;

static end carry_on(const char *text, bool new_bits, const char *note) {
    end e;
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    OK(ctx, open_settings(&trainer, &config, text, new_bits));
    assert_non_null(an_trainer_resumed(trainer));
    assert_int_equal(an_trainer_next_step(trainer), MIDDLE);
    if (!strstr(an_trainer_notes(trainer), note)) fail_msg("'%s' is not in:\n%s", note, an_trainer_notes(trainer));
    train(trainer);
    OK(ctx, an_trainer_state_hash(trainer, e.hash));
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    return e;
}

static void refuses(const char *text, an_status status, const char *words) {
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    assert_int_equal(open_settings(&trainer, &config, text, false), status);
    assert_null(trainer);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
    an_config_destroy(&config);
}

/* ---- manifests ---- */

/* Puts another text into a manifest, and its right hash behind that. */
static void edit(const char *path, const char *from, const char *to) {
    static char text[MOST_TEXT], made[MOST_TEXT];
    enum { DIGITS = 32, TAIL = sizeof "\"\n}\n" - 1 };
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *at = strstr(text, from);
    if (!at) fail_msg("'%s' is not in %s", from, text);
    snprintf(made, sizeof made, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    const size_t digits = strlen(made) - TAIL - DIGITS;
    const XXH128_hash_t hash = XXH3_128bits(made, digits);
    char written[DIGITS + 1];
    snprintf(written, sizeof written, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    memcpy(made + digits, written, DIGITS);
    write_text(path, made);
}

#define MANIFEST(folder) folder "/checkpoints/step-00000006-1-at-6/manifest.json"
#define TEXT(macro) TEXT_OF(macro)
#define TEXT_OF(text) #text
#define MINOR TEXT(AN_VERSION_MAJOR) "." TEXT(AN_VERSION_MINOR)
#define VERSION(text) "\"anneal\": \"" text "\""

/* ---- the version ---- */

/* Another minor version may have other bits, a patch has not. */
static void test_version(void **state) {
    static const char text[] = "run: {dir: version, steps: 12}\n" MLP;
    (void)state;
    begin("version", text);
    const end same = carry_on(text, false, "");
    edit(MANIFEST("version"), VERSION(AN_VERSION_STRING), VERSION(MINOR ".99"));
    assert_string_equal(carry_on(text, false, "").hash, same.hash);
    static const char *const others[] = {VERSION(MINOR ".99"), VERSION("0.1.0"), VERSION(MINOR "0.0"),
                                         VERSION("9" MINOR ".0"), VERSION("")};
    for (size_t i = 1; i < sizeof others / sizeof *others; i++) {
        edit(MANIFEST("version"), others[i - 1], others[i]);
        refuses(text, AN_ERR_UNSUPPORTED,
                "but here it would be " MINOR ", so results would no longer be bit-identical; to resume anyway, add "
                "--allow-new-bits or set run.allow_new_bits to on");
        assert_string_equal(carry_on(text, true, "anneal: " MINOR " now, ").hash, same.hash);
    }
}

/* As --allow-new-bits. */
static void test_the_config_allows_new_bits(void **state) {
    static const char text[] = "run: {dir: version, steps: 12}\n" MLP;
    static const char allowing[] = "run: {dir: version, steps: 12, allow_new_bits: on}\n" MLP;
    (void)state;
    begin("version", text);
    edit(MANIFEST("version"), VERSION(AN_VERSION_STRING), VERSION("0.1.0"));
    refuses(text, AN_ERR_UNSUPPORTED,
            ", so results would no longer be bit-identical; to resume anyway, add --allow-new-bits or set "
            "run.allow_new_bits to on");
    carry_on(allowing, false, "anneal: " MINOR " now, 0.1 before");
}

/* ---- the fingerprint of the kernels ---- */

/* Kernels that compute something else are seen, whatever they are called; a checkpoint of a version that did not
 * store this says nothing. */
static void test_fingerprint(void **state) {
    static const char text[] = "run: {dir: print, steps: 12}\n" MLP;
    char now[64];
    (void)state;
    begin("print", text);
    const end same = carry_on(text, false, "");
    snprintf(now, sizeof now, "\"fingerprint\": \"%016llx%016llx\"", (unsigned long long)ctx->kernel_fingerprint[1],
             (unsigned long long)ctx->kernel_fingerprint[0]);
    edit(MANIFEST("print"), now, "\"fingerprint\": \"0123456789abcdef0123456789abcdef\"");
    refuses(text, AN_ERR_UNSUPPORTED,
            "the run has used kernels with the fingerprint 0123456789abcdef0123456789abcdef until now, but here it");
    assert_string_equal(carry_on(text, true, "0123456789abcdef0123456789abcdef before").hash, same.hash);
    edit(MANIFEST("print"), "\"fingerprint\": \"0123456789abcdef0123456789abcdef\"", "\"later\": \"x\"");
    assert_string_equal(carry_on(text, false, "").hash, same.hash);
}

/* ---- kernels and leaves ---- */

#define GPT                                                                       \
    "model: {type: gpt2, layers: 1, heads: 2, width: 8, context: 8}\n"            \
    "data: {train: {type: text, path: letters.txt, tokens: chars}, threads: 0}\n" \
    "batch: {global: 4}\ntrain: {precision: f32}\n"
#define PLAIN "attention=portable,attention_diff=portable"
#define OLD_PLAIN "attention=reference,attention_diff=reference"

/* Other kernels have other bits, in whichever launch they were asked for; one that would have been
 * taken anyway is no other. */
static void test_kernels(void **state) {
    static const char text[] = "run: {dir: kernels, steps: 12}\n" GPT;
    an_checkpoint *c = NULL;
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    (void)state;
    if (an_context_isa(ctx) == AN_ISA_BASE) {
        print_message("no op of this model has two kernels on this machine\n");
        skip();
    }
    write_text("letters.txt",
               "the letters of a text that is read again and again, and of which no one letter is new\n");
    begin("kernels", text);
    const end usual = carry_on(text, false, "");
    kernels = "softmax=portable"; /* it has no other */
    assert_string_equal(carry_on(text, false, "").hash, usual.hash);
    kernels = PLAIN;
    refuses(text, AN_ERR_UNSUPPORTED,
            "the run has used kernels chosen by default until now, but here it would be " PLAIN);
    const end other = carry_on(text, true, "kernels: " PLAIN " now, chosen by default before");
    assert_string_not_equal(other.hash, usual.hash);

    begin("kernels", text);
    OK(ctx, an_checkpoint_open(&c, ctx, "kernels"));
    OK(ctx, an_checkpoint_info_get(c, &info));
    assert_string_equal(info.kernels, PLAIN);
    an_checkpoint_close(&c);
    carry_on(text, false, "");

    /* Portable kernels were once called "reference", in checkpoints and on command lines. */
    begin("kernels", text);
    edit(MANIFEST("kernels"), PLAIN, OLD_PLAIN);
    carry_on(text, false, "");
    kernels = OLD_PLAIN;
    begin("kernels", text);
    carry_on(text, false, "");
    edit(MANIFEST("kernels"), PLAIN, "attention=reference,attention_diff=tiled");
    refuses(text, AN_ERR_UNSUPPORTED, "the run has used kernels attention=reference,attention_diff=tiled until now");
    begin("kernels", text);
    kernels = NULL;
    refuses(text, AN_ERR_UNSUPPORTED,
            "the run has used kernels " PLAIN " until now, but here it would be chosen by default");
    carry_on(text, true, "kernels: chosen by default now, " PLAIN " before");
}

/* No option allows another number of leaves. */
static void test_leaves(void **state) {
    static const char text[] = "run: {dir: leaves, steps: 12}\nbatch: {global: 8, leaves: 2}\n" MLP;
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    (void)state;
    begin("leaves", text);
    carry_on(text, false, "");
    edit(MANIFEST("leaves"), "\"leaves\": 2", "\"leaves\": 4");
    refuses(text, AN_ERR_UNSUPPORTED, "the run divides each step into 4 leaves, but here it would be 2");
    assert_int_equal(open_settings(&trainer, &config, text, true), AN_ERR_UNSUPPORTED);
    an_config_destroy(&config);
}

/* Micro-batches of whole leaves may have other sizes after each start; parts of leaves may not. */
static void test_micro(void **state) {
#define OF(micro) "run: {dir: micro, steps: 12}\nbatch: {global: 9, leaves: 3" micro "}\n" MLP
#define REFUSED "micro-batches that are parts of a leaf fix the order of sums"
    static const char *const whole[] = {OF(""), OF(", micro: 3"), OF(", micro: 5"), OF(", micro: 6"), OF(", micro: 9")};
    end first = {""};
    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        begin("micro", whole[i]);
        for (size_t k = 0; k < sizeof whole / sizeof *whole; k++) {
            const bool inherits = k == 0 && i > 0;
            const end e = carry_on(whole[k], false, inherits ? "batch.micro: stays" : i != k ? "batch.micro: " : "");
            if (!*first.hash) first = e;
            assert_string_equal(e.hash, first.hash);
        }
        refuses(OF(", micro: 2"), AN_ERR_ARGUMENT, REFUSED);
    }
    begin("micro", OF(", micro: 2"));
    refuses(OF(", micro: 3"), AN_ERR_ARGUMENT, REFUSED);
    refuses(OF(", micro: 1"), AN_ERR_ARGUMENT, REFUSED);
    begin("micro", "run: {dir: micro, steps: 12}\nbatch: {micro: 3, accumulate: 3, leaves: 3}\n" MLP);
    refuses("run: {dir: micro, steps: 12}\nbatch: {micro: 4, accumulate: 3, leaves: 3}\n" MLP, AN_ERR_ARGUMENT,
            REFUSED);
}

/* ---- defaults ---- */

#define RUN "run: {dir: defaults, steps: 12}\n" MLP
#define SGD "optimizer: {type: sgd, lr: 0.05, momentum: 0.9"

/* A key that the config no longer gives, or whose default was another one, stays what it was. */
static void test_defaults_are_the_checkpoints(void **state) {
    static const struct {
        const char *before, *after, *note;
    } cases[] = {
        {RUN SGD ", weight_decay: 0.02}\n", RUN SGD "}\n", "optimizer.weight_decay: stays 0.02, as in the checkpoint"},
        {RUN "optimizer: {betas: [0.8, 0.99]}\n", RUN "optimizer: {lr: 1e-4}\n", "optimizer.betas: stays [0.8, 0.99]"},
        {RUN "optimizer: {groups: [{match: bias, lr_scale: 3}]}\n", RUN "optimizer: {groups: [{match: bias}]}\n",
         "optimizer.groups[0].lr_scale: stays 3"},
        {RUN "batch: {global: 8, micro: 4}\n", RUN, "batch.micro: stays 4"},
        {RUN "train: {clip_norm: 0.01}\n", RUN, "train.clip_norm: stays 0.01"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin("defaults", cases[i].before);
        const end same = carry_on(cases[i].before, false, "");
        assert_string_equal(carry_on(cases[i].after, false, cases[i].note).hash, same.hash);
    }
}

/* The config that the caller has is what the run has: banners and folders are written from it. */
static void test_the_config_says_so(void **state) {
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    double decay = 0;
    (void)state;
    begin("defaults", RUN SGD ", weight_decay: 0.02}\n");
    OK(ctx, open_settings(&trainer, &config, RUN SGD "}\n", false));
    OK(ctx, an_config_real(config, "optimizer.weight_decay", &decay));
    assert_true(decay == 0.02);
    assert_int_equal(an_config_origin_of(config, "optimizer.weight_decay"), AN_ORIGIN_CHECKPOINT);
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
}

/* Where the run is refused the config is as it was given. */
static void test_a_refusal_changes_nothing(void **state) {
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    (void)state;
    begin("defaults", RUN SGD ", weight_decay: 0.02}\n");
    assert_int_equal(open_settings(&trainer, &config, RUN "optimizer: {type: sgd, lr: 0.06, momentum: 0.9}\n", false),
                     AN_ERR_ARGUMENT);
    assert_non_null(strstr(an_last_error(ctx), "optimizer.lr is 0.06, was 0.05"));
    assert_null(strstr(an_last_error(ctx), "weight_decay"));
    assert_int_equal(an_config_origin_of(config, "optimizer.weight_decay"), AN_ORIGIN_DEFAULT);
    an_config_destroy(&config);
}

/* What was given counts, a type is never taken over, and free keys follow the config. */
static void test_what_is_given_counts(void **state) {
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    (void)state;
    begin("defaults", RUN SGD "}\nlog: {every: 3 steps}\n");
    refuses(RUN SGD ", weight_decay: 0.5}\n", AN_ERR_ARGUMENT, "optimizer.weight_decay is 0.5, was ");
    refuses(RUN, AN_ERR_ARGUMENT, "optimizer.type is adamw, was sgd");
    OK(ctx, open_settings(&trainer, &config, RUN SGD "}\n", false));
    assert_int_equal(an_config_origin_of(config, "log.every"), AN_ORIGIN_DEFAULT);
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
}

/* ---- a new run with the state of another ---- */

static const char *resume_path;
static an_open_options restart_options(void) {
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    open.resume = resume_path;
    open.restart = AN_RESTART_SCHEDULE;
    return open;
}

static an_status restart(an_trainer **trainer, an_config **config, const char *text, const an_open_options *open) {
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    write_text("restart.yaml", text);
    options.file = "restart.yaml";
    OK(ctx, an_config_create(config, ctx, &options));
    return an_trainer_open_config(trainer, ctx, *config, open);
}

static void refuses_restart(const char *text, const an_open_options *open, an_status status, const char *words) {
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    assert_int_equal(restart(&trainer, &config, text, open), status);
    assert_null(trainer);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
    an_config_destroy(&config);
}

/* Weights and moments, from step 0 on; what it saves knows where it comes from, and the same call goes on with that. */
static void test_restart(void **state) {
    static const char text[] = "run: {dir: restarted, steps: 9}\noptimizer: {lr: 0.5}\n" MLP;
    char then[AN_HASH_TEXT], now[AN_HASH_TEXT];
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    an_checkpoint *checkpoint = NULL;
    (void)state;
    assert_int_equal(system("rm -rf restarted"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    begin("origin", "run: {dir: origin, steps: 12}\n" MLP);
    OK(ctx, open_settings(&trainer, &config, "run: {dir: origin, steps: 12}\n" MLP, false));
    OK(ctx, an_trainer_weights_hash(trainer, then));
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);

    resume_path = "origin";
    const an_open_options open = restart_options();
    OK(ctx, restart(&trainer, &config, text, &open));
    assert_null(an_trainer_resumed(trainer));
    assert_non_null(
        strstr(an_trainer_origin(trainer), "/origin/checkpoints/step-00000006-1-at-6, after step 6, hash "));
    assert_int_equal(an_trainer_next_step(trainer), 0);
    assert_int_equal(an_trainer_steps(trainer), 9);
    OK(ctx, an_trainer_weights_hash(trainer, now));
    assert_string_equal(now, then);
    OK(ctx, an_trainer_step(trainer, &metrics));
    assert_int_equal(metrics.step, 1);
    assert_true(metrics.rate == 0.5);
    OK(ctx, an_trainer_save(trainer, 1));
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);

    OK(ctx, an_checkpoint_open(&checkpoint, ctx, "restarted"));
    OK(ctx, an_checkpoint_info_get(checkpoint, &info));
    assert_int_equal(info.origin_step, MIDDLE);
    assert_int_equal(strlen(info.origin_hash), 32);
    assert_non_null(strstr(info.origin, "/origin/checkpoints/step-00000006-1-at-6"));
    an_checkpoint_close(&checkpoint);
    OK(ctx, restart(&trainer, &config, text, &open));
    assert_non_null(an_trainer_resumed(trainer));
    assert_non_null(an_trainer_origin(trainer));
    assert_int_equal(an_trainer_next_step(trainer), 1);
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
}

static void test_what_a_restart_refuses(void **state) {
    static const char text[] = "run: {dir: refused, steps: 9}\n" MLP;
    (void)state;
    begin("origin", "run: {dir: origin, steps: 12}\n" MLP);
    resume_path = "origin";
    an_open_options open = restart_options();
    open.resume = NULL;
    refuses_restart(text, &open, AN_ERR_ARGUMENT, "restart needs resume");
    open = restart_options();
    open.fresh = true;
    refuses_restart(text, &open, AN_ERR_ARGUMENT, "restart needs resume");
    open = restart_options();
    open.restart = (an_restart)7;
    refuses_restart(text, &open, AN_ERR_ARGUMENT, "restart is 7, which is not a value of an_restart");
    open = restart_options();
    refuses_restart("run: {dir: refused, steps: 9}\nmodel: {type: mlp, hidden: [6]}\n" DATA, &open, AN_ERR_ARGUMENT,
                    "model.hidden is [6], was [5]: it would be a different model");
    refuses_restart("run: {dir: origin, steps: 9}\n" MLP, &open, AN_ERR_ARGUMENT, "set run.dir to another name");
    refuses_restart("run: {dir: refused, steps: 9}\noptimizer: {type: sgd}\n" MLP, &open, AN_ERR_UNSUPPORTED,
                    "this trainer has 'sgd'");
    refuses_restart("run: {dir: refused, steps: 9}\ntrain: {ema: 0.9}\n" MLP, &open, AN_ERR_UNSUPPORTED,
                    "without a moving average");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_the_config_allows_new_bits),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_micro),
        cmocka_unit_test(test_defaults_are_the_checkpoints),
        cmocka_unit_test(test_the_config_says_so),
        cmocka_unit_test(test_a_refusal_changes_nothing),
        cmocka_unit_test(test_what_is_given_counts),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_what_a_restart_refuses),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
