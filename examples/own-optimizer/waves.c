/* A program with an optimizer and a metric of its own.
 *
 *     cmake -B build -DCMAKE_PREFIX_PATH=<where anneal is installed>
 *     cmake --build build && build/waves waves.yaml
 *
 * The optimizer is AdaMax (Kingma and Ba, 2015): Adam with the largest recent gradient in the place of the root of the
 * second moment. The metric is the largest error of the model on a grid, which finds places where the model is wrong
 * although the mean error is small. The config names both. Kill the program and start it again: it resumes, and ends
 * bit-identical to an uninterrupted run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <anneal/checkpoint.h>
#include <anneal/experimental.h>
#include <anneal/open.h>
#include <anneal/predict.h>
#include <anneal/run.h>

/* ---- the optimizer ---- One function for models of f32 and one for those of f64. Moment 1 is the
 * mean, moment 2 the largest. */

static void adamax_f32(void *user, const an_optimizer_numbers *n, int64_t count, const float *g, float *w, float *mean,
                       float *largest) {
    const float kept = (float)(1 - n->rate * n->weight_decay), rate = (float)(n->rate / n->correction_1);
    const float beta_1 = (float)n->beta_1, rest_1 = (float)(1 - n->beta_1);
    const float beta_2 = (float)n->beta_2, epsilon = (float)n->epsilon;
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        const float size = g[i] < 0 ? -g[i] : g[i], before = beta_2 * largest[i];
        mean[i] = beta_1 * mean[i] + rest_1 * g[i];
        largest[i] = size > before ? size : before;
        w[i] = w[i] * kept - rate * mean[i] / (largest[i] + epsilon);
    }
}

static void adamax_f64(void *user, const an_optimizer_numbers *n, int64_t count, const double *g, double *w,
                       double *mean, double *largest) {
    const double kept = 1 - n->rate * n->weight_decay, rate = n->rate / n->correction_1;
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        const double size = g[i] < 0 ? -g[i] : g[i], before = n->beta_2 * largest[i];
        mean[i] = n->beta_1 * mean[i] + (1 - n->beta_1) * g[i];
        largest[i] = size > before ? size : before;
        w[i] = w[i] * kept - rate * mean[i] / (largest[i] + n->epsilon);
    }
}

static const an_optimizer_record adamax = {.name = "adamax",
                                           .version = 1,
                                           .moments = 2,
                                           .beta_1 = 0.9,
                                           .beta_2 = 0.999,
                                           .update_f32 = adamax_f32,
                                           .update_f64 = adamax_f64};

/* ---- the metric ---- */

enum { SIDE = 21, POINTS = SIDE * SIDE };

static float height(float x, float y) {
    return sinf(3 * x) * cosf(2 * y);
}

static an_status measure_worst(void *user, an_trainer *trainer, double *worst) {
    static float points[POINTS][2], heights[POINTS];
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    an_predictor *predictor = NULL;
    (void)user;
    options.max_samples = POINTS;
    for (int i = 0; i < POINTS; i++) {
        points[i][0] = (float)(i % SIDE) / (SIDE - 1);
        points[i][1] = (float)(i / SIDE) / (SIDE - 1); /* NOLINT(bugprone-integer-division): the row */
    }
    an_status status = an_predictor_create(&predictor, trainer, &options);
    if (status == AN_OK) status = an_predictor_run_f32(predictor, POINTS, points[0], heights);
    an_predictor_destroy(&predictor);
    *worst = 0;
    for (int i = 0; status == AN_OK && i < POINTS; i++)
        *worst = fmax(*worst, (double)fabsf(heights[i] - height(points[i][0], points[i][1])));
    return status;
}

/* ---- the run ---- */

typedef struct {
    an_trainer *trainer;
    an_folder *folder;
} run;

static an_status after_step(void *user, an_trainer *trainer) {
    const run *r = user;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    const an_status status = an_trainer_step_metrics(trainer, &metrics);
    return status == AN_OK ? an_folder_step(r->folder, &metrics, NULL) : status;
}

static an_status after_evaluation(void *user, an_trainer *trainer, int64_t step, bool best) {
    const run *r = user;
    double worst = 0;
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    const an_status status = an_trainer_evaluation(trainer, &evaluation);
    an_trainer_metric_value(trainer, "val_worst", &worst);
    printf("step %4lld  val_loss %.2e  val_worst %.4f%s\n", (long long)step, evaluation.loss, worst,
           best ? "  best" : "");
    fflush(stdout);
    return status == AN_OK ? an_folder_evaluation(r->folder, step, &evaluation) : status;
}

/* Opens the run, or resumes it, and takes the steps that are left. */
static an_status train(run *r, an_context *ctx, an_config *config) {
    char hash[AN_HASH_TEXT];
    an_run_options options;
    an_run_options_init(&options, sizeof options);
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    an_status status = an_trainer_open_config(&r->trainer, ctx, config, NULL);
    if (status == AN_OK && an_trainer_resumed(r->trainer)) printf("resumes from %s\n", an_trainer_resumed(r->trainer));
    if (status == AN_OK) status = an_folder_create(&r->folder, r->trainer, config, NULL);
    if (status == AN_OK) status = an_trainer_run_options(r->trainer, &options);
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.after_step = after_step;
    callbacks.after_evaluation = after_evaluation;
    callbacks.user = r;
    options.callbacks = &callbacks;
    if (status == AN_OK) status = an_trainer_run(r->trainer, &options, &outcome);
    if (status == AN_OK) status = an_folder_finish(r->folder, &outcome, NULL);
    if (status == AN_OK) status = an_trainer_state_hash(r->trainer, hash);
    if (status == AN_OK) printf("best at step %lld\nstate %s\n", (long long)outcome.best_step, hash);
    return status;
}

int main(int argc, char **argv) {
    an_metric_options worst;
    an_metric_options_init(&worst, sizeof worst);
    worst.name = "worst";
    worst.better = AN_METRIC_BETTER_LOWER;
    worst.measure = measure_worst;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_context *ctx = NULL;
    an_config *config = NULL;
    run r = {NULL, NULL};
    if (argc != 2) {
        fprintf(stderr, "usage: waves CONFIG\n");
        return EXIT_FAILURE;
    }
    options.file = argv[1];
    an_status status = an_context_create(&ctx, NULL);
    if (status == AN_OK) status = an_context_add_optimizer(ctx, &adamax); /* before the config that names it */
    if (status == AN_OK) status = an_context_add_metric(ctx, &worst);
    if (status == AN_OK) status = an_config_create(&config, ctx, &options);
    if (status == AN_OK) status = train(&r, ctx, config);
    if (status != AN_OK) fprintf(stderr, "waves: %s\n", an_last_error(ctx));
    an_folder_destroy(&r.folder);
    an_trainer_destroy(&r.trainer);
    an_config_destroy(&config);
    an_context_destroy(&ctx);
    return status == AN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
