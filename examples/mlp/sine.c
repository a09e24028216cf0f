/* A small network learns the sine, with nothing but the graph API: build, plan, run, and an update written by hand.
 *
 *     cmake -B build -DCMAKE_PREFIX_PATH=<where anneal is installed>
 *     cmake --build build && build/sine
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <anneal/anneal.h>
#include <anneal/plan.h>

enum { SAMPLES = 64, HIDDEN = 32, STEPS = 2000, SEED = 1337 };

static const float rate = 0.1f;

/* Every call of the library can fail; the context keeps the message. */
#define TRY(call)                                   \
    do {                                            \
        if ((status = (call)) != AN_OK) goto ended; \
    } while (0)

/* Two layers of tanh, then a linear one. Builder calls return values; if one of them is wrong, an_graph_verify says
 * which, with its line in this file. */
static void build(an_graph *g) {
    an_dim batch = an_symbol_dim(g, "batch"); /* any number, up to what the plan is made for */
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 1));
    an_value targets = an_input(g, "targets", AN_DTYPE_F32, AN_DIMS(batch, 1));

    an_value h = an_tanh(g, an_linear(g, x, "first", HIDDEN));
    h = an_tanh(g, an_linear(g, h, "second", HIDDEN));
    an_value y = an_linear(g, h, "last", 1);

    an_graph_set_output(g, y, "y");
    an_graph_set_loss(g, an_squared_error(g, y, targets), targets); /* a sum over the targets */
}

/* weight ← weight − rate · gradient, for every parameter. */
static an_status update(an_params *params) {
    static float weight[HIDDEN * HIDDEN], gradient[HIDDEN * HIDDEN]; /* room for the largest of them */
    an_status status = AN_OK;
    for (int64_t i = 0; i < an_params_count(params); i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        TRY(an_params_info(params, i, &info));
        an_array array = {.dtype = info.dtype, .ndims = info.ndims};
        for (int d = 0; d < info.ndims; d++) array.dims[d] = info.dims[d];
        array.data = gradient;
        TRY(an_params_get(params, info.name, AN_PART_GRADIENT, &array));
        array.data = weight;
        TRY(an_params_get(params, info.name, AN_PART_WEIGHT, &array));
        for (int64_t k = 0; k < info.elements; k++) weight[k] -= rate * gradient[k];
        TRY(an_params_set(params, info.name, AN_PART_WEIGHT, &array));
    }
ended:
    return status;
}

static an_array column(float *data) {
    return (an_array){.data = data, .dtype = AN_DTYPE_F32, .ndims = 2, .dims = {SAMPLES, 1}};
}

int main(void) {
    an_context *ctx = NULL;
    an_graph *graph = NULL;
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    an_status status;

    float x[SAMPLES], sine[SAMPLES], y[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        x[i] = 6.2831853f * ((float)i + 0.5f) / SAMPLES - 3.1415927f;
        sine[i] = sinf(x[i]);
    }
    an_array inputs = column(x), targets = column(sine), outputs = column(y);

    TRY(an_context_create(&ctx, NULL));
    TRY(an_graph_create(&graph, ctx, "sine"));
    build(graph);
    TRY(an_graph_verify(graph));

    /* The plan knows every byte before anything is allocated. */
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.programs = AN_PROGRAM_TRAINING | AN_PROGRAM_PREDICTION;
    options.symbol_count = 1;
    options.symbols = (const char *[]){"batch"};
    options.maxima = (const int64_t[]){SAMPLES};
    options.moments = 0; /* plain gradient descent has none */
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    TRY(an_plan_create(&plan, ctx, graph, &options));
    TRY(an_plan_memory_get(plan, &memory));
    printf("this takes %lld bytes\n\n", (long long)memory.peak);

    /* Parameters are apart from programs: one set serves them all. The same seed gives the same bits anywhere. */
    an_params_options store;
    an_params_options_init(&store, sizeof store);
    store.moments = 0;
    TRY(an_params_create(&params, ctx, graph, &store));
    TRY(an_params_reset(params, SEED));

    TRY(an_program_create(&program, plan, params));
    TRY(an_program_bind(program, "batch", SAMPLES));
    TRY(an_program_set_input(program, "x", &inputs));
    TRY(an_program_set_input(program, "targets", &targets));
    TRY(an_program_set_scalar(program, "loss_gradient", 1.0 / SAMPLES)); /* turns the sum into a mean */

    for (int step = 1; step <= STEPS; step++) {
        double loss;
        TRY(an_program_run(program, AN_FORM_TRAIN_FIRST)); /* forward and backward */
        TRY(an_program_loss(program, &loss));
        TRY(update(params));
        if (step == 1 || step % 400 == 0) printf("step %4d  loss %.6f\n", step, loss / SAMPLES);
    }

    TRY(an_program_run(program, AN_FORM_PREDICT));
    TRY(an_program_get_output(program, "y", &outputs));
    printf("\n      x   sin(x)        y\n");
    for (int i = 3; i < SAMPLES; i += 8) printf("%7.3f  %7.3f  %7.3f\n", (double)x[i], (double)sine[i], (double)y[i]);

ended:
    if (status != AN_OK) fprintf(stderr, "sine: %s\n", an_last_error(ctx));
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    an_graph_destroy(&graph);
    an_context_destroy(&ctx);
    return status == AN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
