/* anneal find-lr: a learning-rate range test. Trains for a few steps while the rate grows from tiny to far too large,
 * and proposes a rate.
 *
 * The steps are those of the run: its data, model, batch, optimizer and clipping. Only the schedule and the length are
 * replaced, on a copy of the config that is in memory. No folder is made, so nothing is left of the test.
 */
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options/settings.h"
#include "base/text/json_write.h"
#include "cli/find_lr/test.h"
#include "cli/train/open.h"

enum { FROM, TO, STEPS, JSON, SVG, SET };
static const cli_option options[] = {
    [FROM] = {.name = "from", .argument = "RATE", .help = "first learning rate (default 1e-7)"},
    [TO] = {.name = "to", .argument = "RATE", .help = "last learning rate (default 1)"},
    [STEPS] = {.name = "steps",
               .argument = "N",
               .help = "number of steps (default 100); more steps give a smoother curve"},
    [JSON] = {.name = "json", .help = "write JSON, with all points of the curve"},
    [SVG] = {.name = "svg", .argument = "FILE", .help = "draw the curve as an SVG picture"},
    [SET] = {.name = "set",
             .argument = "KEY=VALUE",
             .repeats = true,
             .help = "override a key of the config, as in batch.global=64; can be repeated"},
    {0},
};

/* As texts and JSON have them. */
static const struct {
    const char *name, *text;
} ends[] = {
    [FIND_LR_DONE] = {"done", "all rates were tried"},
    [FIND_LR_ROSE] = {"diverged", "the smoothed loss exceeded 4 times its lowest value"},
    [FIND_LR_NOT_FINITE] = {"not_finite", "the loss or a gradient was not finite"},
};

/* ---- options ---- */

static int read_options(const cli_call *call, find_lr_test *test) {
    int code = cli_positive(call, FROM, &test->from);
    if (code == CLI_DONE) code = cli_positive(call, TO, &test->to);
    if (code == CLI_DONE) code = cli_number(call, STEPS, FIND_LR_LEAST, &test->steps);
    if (code != CLI_DONE) return code;
    if (test->steps > FIND_LR_MOST) return cli_misuse(call, "--steps takes at most %d", FIND_LR_MOST);
    if (!(test->to > test->from) || !isfinite(test->to / test->from))
        return cli_misuse(call, "--to (%g) must be larger than --from (%g)", test->to, test->from);
    return CLI_DONE;
}

/* Nobody wants the config to become a picture. */
static int check_picture(const cli_call *call) {
    struct stat config, picture;
    const char *path = call->values[SVG];
    if (!path || stat(path, &picture) != 0 || stat(call->argument, &config) != 0) return CLI_DONE;
    if (!S_ISREG(picture.st_mode) || picture.st_dev != config.st_dev || picture.st_ino != config.st_ino)
        return CLI_DONE;
    return cli_misuse(call, "'%s' is the config; choose another file for --svg", path);
}

/* ---- steps ---- */

/* Opens the run as the config describes it, with the schedule and length of the test. */
static int open_run(const cli_call *call, find_lr_test *test, cli_training *training) {
    char rate[64], steps[64], schedule[128];
    /* The rate of step i, from 0, is from · (to ÷ from)^(i ÷ (steps - 1)). */
    const double growth = pow(test->to / test->from, 1 / (double)(test->steps - 1));
    snprintf(rate, sizeof rate, "%s=%.17g", AN_SETTING(optimizer.lr), test->from);
    snprintf(steps, sizeof steps, "%s=%lld", AN_SETTING(run.steps), (long long)test->steps);
    snprintf(schedule, sizeof schedule, "schedule={type: exponential, gamma: %.17g}", growth);
    /* The test neither evaluates nor saves nor logs; intervals longer than it would be warned of. */
    const char *const own[] = {AN_SETTING_TO(run.epochs, ""),
                               AN_SETTING_TO(run.tokens, ""),
                               AN_SETTING_TO(run.samples, ""),
                               steps,
                               rate,
                               schedule,
                               AN_SETTING_TO(eval.every, ""),
                               AN_SETTING_TO(save.every, ""),
                               AN_SETTING_TO(save.keep_every, ""),
                               AN_SETTING_TO(log.every, "")};
    const cli_opening opening = {.file = call->argument, .fresh = true};
    cli_call with_settings = *call;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (with_settings.set_count == CLI_MOST_SETS) return cli_misuse(call, "--set was given too many times");
        with_settings.sets[with_settings.set_count++] = own[i];
    }
    const int code = cli_training_open(&with_settings, &opening, training);
    training->call = call;
    if (code != CLI_DONE) return code;
    an_config *config = NULL;
    an_status status = cli_config_read(call, &opening, training->ctx, &config);
    if (status == AN_OK) status = an_config_real(config, AN_SETTING(optimizer.lr), &test->config_rate);
    an_config_destroy(&config);
    return status == AN_OK ? CLI_DONE : cli_refuse(call, training->ctx, call->argument, status);
}

static int take_steps(const cli_call *call, cli_training *training, find_lr_test *test) {
    const bool shows = isatty(STDERR_FILENO);
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_status status = AN_OK;
    for (int64_t i = 0; i < test->steps && test->end == FIND_LR_DONE; i++) {
        status = an_trainer_step(training->trainer, &metrics);
        if (status != AN_OK) break;
        if (shows)
            fprintf(stderr, "\rstep %lld/%lld  lr %.2e  loss %-12.4g", (long long)i + 1, (long long)test->steps,
                    metrics.rate, metrics.loss);
        /* A skipped step changes no weight. In f16 the first ones find the loss scale; if the loss
         * diverges, too many follow. */
        if (metrics.skipped || !isfinite(metrics.loss)) continue;
        if (!find_lr_curve_add(&test->curve, metrics.rate, metrics.loss)) test->end = FIND_LR_ROSE;
    }
    if (shows) fputs("\r\033[K", stderr);
    if (status == AN_ERR_NONFINITE && test->curve.count > 0)
        test->end = FIND_LR_NOT_FINITE;
    else if (status != AN_OK)
        return cli_refuse(call, training->ctx, call->argument, status);
    if (test->curve.count == 0)
        return cli_fail(call, "every step was skipped, so there is no curve; see train.on_nonfinite");
    test->proposal = find_lr_curve_propose(&test->curve);
    return CLI_DONE;
}

/* ---- as text ---- */

static void show_table(const find_lr_test *test) {
    enum { ROWS = 20 };
    const find_lr_curve *c = &test->curve;
    const int every = (c->count + ROWS - 1) / ROWS;
    printf("%12s%14s%14s\n", "lr", "loss", "smoothed");
    for (int i = 0; i < c->count; i++) {
        const find_lr_point *p = &c->points[i];
        const char *mark = i == test->proposal ? "  proposal" : i == c->lowest ? "  lowest" : "";
        if (i % every == 0 || *mark) printf("%12.2e%14.5g%14.5g%s\n", p->rate, p->loss, p->smoothed, mark);
    }
}

/* What would make the test, or the rate, better. */
static void show_advice(const find_lr_test *test) {
    const find_lr_curve *c = &test->curve;
    if (c->count < test->steps / 2)
        printf("The test ended early: try a lower --from and --to.\n");
    else if (test->end == FIND_LR_DONE && c->lowest == c->count - 1)
        printf("The loss was still falling at the last rate: try a higher --to.\n");
    else if (test->proposal < 0)
        printf("Try more --steps, a larger batch, or other rates.\n");
}

static void show(const find_lr_test *test) {
    const find_lr_curve *c = &test->curve;
    printf("%s: learning-rate range test, %lld steps from %g to %g\n\n", test->config, (long long)test->steps,
           test->from, test->to);
    show_table(test);
    printf("\nended after %d steps: %s\n", c->count, ends[test->end].text);
    if (test->proposal < 0)
        printf("no proposal: the loss did not fall by more than its noise\n");
    else
        printf("proposal: %.2g, where the smoothed loss falls fastest (optimizer.lr is %g)\n",
               c->points[test->proposal].rate, test->config_rate);
    show_advice(test);
    if (test->proposal >= 0)
        printf("\nto use it: anneal train %s --set optimizer.lr=%.2g\n", test->config, c->points[test->proposal].rate);
}

/* ---- as JSON ---- */

static void write_json(const find_lr_test *test) {
    const find_lr_curve *c = &test->curve;
    an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
    an_json_write_object(&j, NULL);
    an_json_write_string(&j, "config", test->config);
    an_json_write_real(&j, "config_lr", test->config_rate);
    an_json_write_real(&j, "from", test->from);
    an_json_write_real(&j, "to", test->to);
    an_json_write_integer(&j, "steps", test->steps);
    an_json_write_real(&j, "smoothing", c->smoothing);
    an_json_write_string(&j, "end", ends[test->end].name);
    if (test->proposal >= 0)
        an_json_write_real(&j, "proposal", c->points[test->proposal].rate);
    else
        an_json_write_null(&j, "proposal");
    an_json_write_real(&j, "lowest_lr", c->points[c->lowest].rate);
    an_json_write_array(&j, "points");
    for (int i = 0; i < c->count; i++) {
        an_json_write_object(&j, NULL);
        j.layout = AN_JSON_FLAT;
        an_json_write_real(&j, "lr", c->points[i].rate);
        an_json_write_real(&j, "loss", c->points[i].loss);
        an_json_write_real(&j, "smoothed", c->points[i].smoothed);
        an_json_write_end(&j);
        j.layout = AN_JSON_LINES;
    }
    an_json_write_end(&j);
    an_json_write_finish(&j);
}

/* ---- the command ---- */

static int write_picture(const cli_call *call, const find_lr_test *test) {
    const char *path = call->values[SVG];
    FILE *file = cli_file_open(call, path, "w");
    if (!file) return CLI_FAILED;
    find_lr_draw(file, test);
    return cli_file_close(call, path, file);
}

static int run(const cli_call *call) {
    find_lr_test test = {.config = call->argument, .from = 1e-7, .to = 1, .steps = 100, .proposal = -1};
    cli_training training = {0};
    int code = read_options(call, &test);
    if (code == CLI_DONE) code = check_picture(call);
    if (code != CLI_DONE) return code;
    if (!find_lr_curve_create(&test.curve, test.steps)) return cli_fail(call, "out of memory");
    code = open_run(call, &test, &training);
    if (code == CLI_DONE) code = take_steps(call, &training, &test);
    if (code == CLI_DONE && call->values[SVG]) code = write_picture(call, &test);
    if (code == CLI_DONE) {
        if (call->values[JSON])
            write_json(&test);
        else
            show(&test);
        code = cli_finish(call);
    }
    cli_training_close(&training);
    find_lr_curve_destroy(&test.curve);
    return code;
}

const cli_command cli_find_lr = {
    .name = "find-lr",
    .argument = "CONFIG",
    .summary = "find a learning rate: train a few steps with a growing one",
    .text = "Runs a learning-rate range test. Trains a new model of the config for a few steps while the learning rate "
            "grows exponentially from one step to the next, and shows the loss at each rate. The loss is smoothed "
            "with an exponential average over about a 20th of the steps, corrected for its start. The test ends early "
            "when the smoothed loss exceeds 4 times its lowest value. The proposal is the rate at which the smoothed "
            "loss falls fastest, by the logarithm of the rate and over a tenth of the range. There is none if the loss "
            "falls "
            "by no more than its noise explains.\n"
            "Everything but the schedule and the length of the run is as in the config. Nothing is written: there is "
            "no run folder, and a run in run.dir stays as it is.",
    .options = options,
    .run = run,
};
