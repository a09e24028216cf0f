/* --mode=grad: every gradient against central differences, in f64, through the real passes and the real executor.
 *
 * The op's floating inputs become parameters; the loss is the sum of its outputs times fixed random weights. Some
 * elements of each input are moved one by one, then all of them at once along a random direction.
 */
#include "checkops/checkops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/experimental.h"
#include "anneal/plan.h"

enum {
    SHAPES = 12,
    DRAWS = 20,    /* as many times the shapes are drawn: some cases cannot be differentiated in f64 */
    ELEMENTS = 24, /* of an input that are moved alone */
    MOST_FAILURES = 3,
    NAME = 24
};

/* The step of the fourth-order formula: its error is step⁴ times a fifth derivative, its rounding error 1e-16 / step.
 * It is well below the distance that CHECK_APART keeps from kinks. */
static const double step = 0x1p-13;

/* Gradients smaller than this are judged as if they were this large: differences have a rounding error of their own. */
static const double smallest = 1e-3, tolerance = 1e-6;

typedef struct {
    check_run *run;
    an_context *ctx;
    an_graph *graph;
    an_params *params;
    an_plan *plan;
    an_program *program;
    an_value values[AN_MAX_INPUTS];
    double *inputs[AN_MAX_INPUTS], *gradients[AN_MAX_INPUTS]; /* of parameters; NULL: the input is none */
    double *weights[AN_MAX_OUTPUTS];                          /* NULL: the output has no gradient */
} grad_job;

static bool is_parameter(const check_run *run, int input) {
    return run->src[input].tensor.dtype == AN_DTYPE_F64 && !run->c.inputs[input].no_gradient;
}

static bool is_weighted(const check_run *run, int output) {
    return run->dst[output].tensor.dtype == AN_DTYPE_F64 && !(run->c.no_gradient_outputs >> output & 1);
}

/* An op that rounds to less than f64 has steps instead of a derivative: another case must be drawn. */
static bool has_derivative(const check_run *run) {
    bool inputs = false, outputs = false;
    for (int i = 0; i < run->dst_count; i++) {
        an_dtype dtype = run->dst[i].tensor.dtype;
        bool counts = !(run->c.no_gradient_outputs >> i & 1);
        if (counts && an_dtype_is_float(dtype) && dtype != AN_DTYPE_F64) return false;
        outputs = outputs || is_weighted(run, i);
    }
    for (int i = 0; i < run->src_count; i++) inputs = inputs || is_parameter(run, i);
    return inputs && outputs;
}

static an_array array_of(const an_tensor *tensor, void *data) {
    an_array array = {0};
    array.data = data;
    array.dtype = tensor->dtype;
    array.ndims = tensor->ndims;
    memcpy(array.dims, tensor->dims, sizeof array.dims);
    return array;
}

/* ---- the graph ---- */

static void add_inputs(grad_job *j) {
    check_run *run = j->run;
    for (int i = 0; i < run->src_count; i++) {
        const an_tensor *t = &run->src[i].tensor;
        char name[NAME];
        snprintf(name, sizeof name, "input%d", i);
        if (t->dtype == AN_DTYPE_NONE)
            j->values[i] = AN_NONE;
        else if (is_parameter(run, i))
            j->values[i] = an_param(j->graph, name, t->dtype, AN_INITIALIZER_CONSTANT, 0, t->ndims, t->dims);
        else
            j->values[i] = an_input(j->graph, name, t->dtype, t->ndims, t->dims);
    }
}

static void add_loss(grad_job *j, an_value outputs) {
    check_run *run = j->run;
    an_graph *g = j->graph;
    an_value loss = 0;
    for (int i = 0; i < run->dst_count; i++) {
        const an_tensor *t = &run->dst[i].tensor;
        char name[NAME];
        if (!is_weighted(run, i)) continue;
        snprintf(name, sizeof name, "weights%d", i);
        an_value term = an_multiply(g, an_value_output(outputs, i), an_input(g, name, t->dtype, t->ndims, t->dims));
        if (t->ndims > 0) term = an_reduce_sum(g, term, AN_ALL_AXES, false);
        loss = loss ? an_add(g, loss, term) : term;
    }
    an_graph_set_loss(g, loss, AN_NONE);
}

static an_status build(grad_job *j) {
    an_context *ctx = j->ctx;
    const check_run *run = j->run;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    char forced[128];
    AN_TRY_RETURN(an_graph_create(&j->graph, ctx, "gradient"));
    add_inputs(j);
    add_loss(j, an_graph_add_outputs(j->graph, run->op, run->src_count, j->values, run->c.attributes, run->dst_count));
    AN_TRY_RETURN(an_graph_verify(j->graph));
    AN_TRY_RETURN(an_params_create(&j->params, ctx, j->graph, NULL));
    options.programs = AN_PROGRAM_TRAINING;
    if (run->options->kernel) {
        snprintf(forced, sizeof forced, "%s=%s", run->op->name, run->options->kernel);
        options.kernels = forced;
    }
    AN_TRY_RETURN(an_plan_create(&j->plan, ctx, j->graph, &options));
    return an_program_create(&j->program, j->plan, j->params);
}

/* ---- values ---- */

static double *doubles_of(const check_array *array) {
    double *copy = check_allocate((size_t)array->count, sizeof *copy);
    for (int64_t i = 0; array->data && i < array->count; i++) copy[i] = (double)array->data[i];
    return copy;
}

static an_status set_parameter(grad_job *j, int input) {
    char name[NAME];
    an_array array = array_of(&j->run->src[input].tensor, j->inputs[input]);
    snprintf(name, sizeof name, "input%d", input);
    return an_params_set(j->params, name, AN_PART_WEIGHT, &array);
}

static an_status set_values(grad_job *j) {
    check_run *run = j->run;
    check_random r = check_random_of(run->options->seed, run->family->op, run->number, CHECK_STREAM_WEIGHTS);
    char name[NAME];
    check_run_place(run, CHECK_DENSE, false); /* for the inputs that are no parameters */
    for (int i = 0; i < run->src_count; i++) {
        if (is_parameter(run, i)) {
            j->inputs[i] = doubles_of(&run->src[i].array);
            j->gradients[i] = check_allocate((size_t)run->src[i].array.count, sizeof *j->gradients[i]);
            AN_TRY_RETURN(set_parameter(j, i));
        } else if (run->src[i].tensor.data) {
            an_array array = array_of(&run->src[i].tensor, run->src[i].tensor.data);
            snprintf(name, sizeof name, "input%d", i);
            AN_TRY_RETURN(an_program_set_input(j->program, name, &array));
        }
    }
    for (int i = 0; i < run->dst_count; i++) {
        if (!is_weighted(run, i)) continue;
        j->weights[i] = check_allocate((size_t)run->dst[i].array.count, sizeof *j->weights[i]);
        for (int64_t k = 0; k < run->dst[i].array.count; k++) j->weights[i][k] = check_normal(&r);
        an_array array = array_of(&run->dst[i].tensor, j->weights[i]);
        snprintf(name, sizeof name, "weights%d", i);
        AN_TRY_RETURN(an_program_set_input(j->program, name, &array));
    }
    return AN_OK;
}

static an_status get_gradients(grad_job *j) {
    AN_TRY_RETURN(an_program_run(j->program, AN_FORM_TRAIN_FIRST));
    for (int i = 0; i < j->run->src_count; i++) {
        char name[NAME];
        if (!j->gradients[i]) continue;
        an_array array = array_of(&j->run->src[i].tensor, j->gradients[i]);
        snprintf(name, sizeof name, "input%d", i);
        AN_TRY_RETURN(an_params_get(j->params, name, AN_PART_GRADIENT, &array));
    }
    return AN_OK;
}

/* ---- differences ---- */

/* The derivative of the loss when input `input` moves along `direction`. */
static an_status difference(grad_job *j, int input, const double *direction, double *derivative) {
    static const struct { double steps, factor; } formula[] = {{-2, 1}, {-1, -8}, {1, 8}, {2, -1}};
    const check_array *array = &j->run->src[input].array;
    double sum = 0, loss;
    for (size_t f = 0; f < sizeof formula / sizeof formula[0]; f++) {
        for (int64_t k = 0; k < array->count; k++)
            j->inputs[input][k] = (double)array->data[k] + formula[f].steps * step * direction[k];
        AN_TRY_RETURN(set_parameter(j, input));
        AN_TRY_RETURN(an_program_run(j->program, AN_FORM_TRAIN_FIRST));
        AN_TRY_RETURN(an_program_loss(j->program, &loss));
        sum += formula[f].factor * loss;
    }
    for (int64_t k = 0; k < array->count; k++) j->inputs[input][k] = (double)array->data[k];
    *derivative = sum / (12 * step);
    return set_parameter(j, input);
}

static bool compare(const grad_job *j, int input, const char *what, double got, double want, double size) {
    check_count();
    if (fabs(got - want) <= tolerance * fmax(fmax(fabs(want), size), smallest)) return true; /* false for NaN */
    check_fail(j->run, j->run->options->kernel, "the gradient of input %d%s is %.12g, central differences give %.12g",
               input, what, got, want);
    return false;
}

static an_status check_input_gradient(grad_job *j, int input, check_random *r, bool *good) {
    int64_t count = j->run->src[input].array.count;
    const double *gradient = j->gradients[input];
    double *direction = check_allocate((size_t)count, sizeof *direction), squares = 0, along = 0, want = 0;
    an_status status = AN_OK;
    for (int64_t k = 0; k < count; k++) squares += gradient[k] * gradient[k];
    for (int64_t i = 0; i < ELEMENTS && i < count && *good && status == AN_OK; i++) {
        int64_t element = count <= ELEMENTS ? i : check_between(r, 0, count - 1);
        char what[64];
        snprintf(what, sizeof what, " at element %lld", (long long)element);
        direction[element] = 1;
        status = difference(j, input, direction, &want);
        direction[element] = 0;
        if (status == AN_OK) *good = compare(j, input, what, gradient[element], want, sqrt(squares / (double)count));
    }
    for (int64_t k = 0; k < count; k++) {
        direction[k] = check_uniform(r) - 0.5;
        along += gradient[k] * direction[k];
    }
    if (*good && status == AN_OK) status = difference(j, input, direction, &want);
    if (*good && status == AN_OK) *good = compare(j, input, " along a random direction", along, want, sqrt(squares));
    free(direction);
    if (status != AN_OK) an_error_frame(__func__, __FILE__, __LINE__);
    return status;
}

static an_status check_case_gradients(grad_job *j, bool *good) {
    check_random r = check_random_of(j->run->options->seed, j->run->family->op, j->run->number, CHECK_STREAM_MOVES);
    AN_TRY_RETURN(build(j));
    AN_TRY_RETURN(set_values(j));
    AN_TRY_RETURN(get_gradients(j));
    for (int i = 0; i < j->run->src_count && *good; i++)
        if (j->gradients[i]) AN_TRY_RETURN(check_input_gradient(j, i, &r, good));
    return AN_OK;
}

static bool grad_case(check_run *run) {
    grad_job j = {.run = run, .ctx = run->ctx};
    bool good = true;
    if (check_case_gradients(&j, &good) != AN_OK) {
        check_fail(run, run->options->kernel, "%s", an_last_error(j.ctx));
        good = false;
    }
    for (int i = 0; i < AN_MAX_INPUTS; i++) {
        free(j.inputs[i]);
        free(j.gradients[i]);
    }
    for (int i = 0; i < AN_MAX_OUTPUTS; i++) free(j.weights[i]);
    an_program_destroy(&j.program);
    an_plan_destroy(&j.plan);
    an_params_destroy(&j.params);
    an_graph_destroy(&j.graph);
    return good;
}

void check_grad(const check_options *options, const check_family *family, const an_op *op) {
    int64_t shapes = options->only >= 0 ? 1 : options->shapes ? options->shapes : SHAPES, done = 0;
    int failures = 0;
    if (family->no_grad_mode == (op->grad != NULL))
        check_fail_plain("%s %s, but its cases say otherwise", op->name,
                         op->grad ? "has a gradient" : "has no gradient");
    if (family->no_grad_mode || !op->grad || !check_wants_dtype(options, family, AN_DTYPE_F64)) return;
    check_run *run = check_allocate(1, sizeof *run);
    for (int64_t n = 0; n < shapes * DRAWS && done < shapes && failures < MOST_FAILURES; n++) {
        const char *why;
        int64_t number = options->only >= 0 ? options->only : n;
        bool made = check_run_create(run, options, family, AN_DTYPE_F64, number, 0, &why);
        if (!made) check_fail(run, NULL, "the op refuses the case: %s", why);
        if (made && has_derivative(run)) {
            failures += !grad_case(run);
            done++;
        }
        check_run_destroy(run);
        if (!made || options->only >= 0) break;
    }
    if (!done && options->only < 0 && !failures)
        check_fail_plain("%s: none of its cases has a gradient in f64", op->name);
    free(run);
}
