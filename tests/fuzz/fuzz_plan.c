/* Fuzzes what comes behind the text form: inference, passes, plan, program, kernels. A graph that could be read is
 * verified, planned for small symbols (seldom for huge ones) in every form that it has and, if that is little work, run
 * at its largest sizes and at smaller ones, on inputs that are tame or wild. All of it ends in a status. What runs
 * gives the same bits whatever the arena held before, in exactly the bytes that the plan promised. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "exec/program.h"
#include "guarded_device.h"
#include "ir/text_form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is worth running: some milliseconds under sanitizers. A graph may ask for more, and a user who runs it waits. */
enum { MOST_BYTES = 4 << 20, MOST_OUTPUT = 1 << 16, MOST_SYMBOLS = 8 };
static const double most_flops = 3e5, most_traffic = 4e6;

static an_context *context;

/* SplitMix64 from a hash of the text: everything that the text does not say is chosen by it, and the same again. */
static uint64_t state;
static uint64_t next(uint64_t below) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

static void refuse(const char *what) {
    fprintf(stderr, "fuzz_plan: %s\n%s\n", what, an_last_error(context));
    abort();
}

/* Whether a call went well; if not, it left a message. */
static bool went_well(an_status status) {
    if (status != AN_OK && !*an_last_error(context)) refuse("an error without a message");
    return status == AN_OK;
}

/* ---- inputs ---- */

static const double wild_reals[] = {
    0, -0.0, 1, -1, 1e-45, 1e38, -1e38, 1e308, __builtin_inf(), -__builtin_inf(), __builtin_nan("")};
static const int64_t wild_integers[] = {0,    1,         2,         3,          -1,        -100,      7,
                                        1000, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN, INT64_MAX - 1};
static const int64_t large_maxima[] = {1000, INT32_MAX, UINT32_MAX, INT64_C(1) << 40, INT64_C(1) << 62, INT64_MAX};
#define PICK(list) (list)[next(sizeof(list) / sizeof *(list))]

static void fill(an_dtype dtype, size_t count, void *values, bool wild) {
    double *reals = values;
    for (size_t i = 0; i < count; i++) {
        int64_t integer = wild ? PICK(wild_integers) : (int64_t)next(2);
        switch (dtype) {
        case AN_DTYPE_I32: ((int32_t *)values)[i] = (int32_t)integer; break;
        case AN_DTYPE_I64: ((int64_t *)values)[i] = integer; break;
        case AN_DTYPE_U8: ((uint8_t *)values)[i] = (uint8_t)integer; break;
        default: reals[i] = wild ? PICK(wild_reals) : (double)next(9) / 4 - 1; break;
        }
    }
    if (an_dtype_is_float(dtype)) an_convert_from_f64(dtype, (int64_t)count, reals);
}

static void set_inputs(an_program *program, const an_graph *sized, bool wild) {
    for (size_t i = 0; i < sized->source_count; i++) {
        const an_node *source = sized->sources[i];
        an_array array = {0};
        an_tensor t;
        if (source->outputs[0].storage != AN_STORAGE_INPUT || !an_result_tensor(sized, &source->outputs[0], &t))
            continue;
        size_t count = 1;
        for (int d = 0; d < t.ndims; d++) count *= (size_t)t.dims[d];
        array.data = malloc(count * sizeof(double)); /* room for any type */
        array.dtype = t.dtype;
        array.ndims = t.ndims;
        memcpy(array.dims, t.dims, sizeof array.dims);
        fill(t.dtype, count, array.data, wild);
        if (an_program_set_input(program, *(const char **)an_node_attribute(source, "name", AN_ATTRIBUTE_STRING),
                                 &array))
            refuse("an input of the right shape was not taken");
        int64_t targets = 0;
        if (an_graph_value(sized, &source->outputs[0]) == sized->targets)
            went_well(an_program_count_targets(program, &array, &targets));
        free(array.data);
    }
    for (int i = 0; i < program->plan->scalar_count; i++) {
        const char *name = program->plan->scalars[i];
        if (wild && next(2))
            an_program_set_scalar(program, name, PICK(wild_reals));
        else
            an_program_set_scalar_i64(program, name, wild ? PICK(wild_integers) : (int64_t)next(3));
    }
}

/* ---- runs ---- */

/* A hash of all outputs of the last run. */
static uint64_t read_outputs(const an_program *program, an_form form) {
    const an_program_form *f = &program->forms[form];
    uint64_t hash = 0;
    double loss = 0;
    for (size_t i = 0; i < f->tables.outputs; i++) {
        an_array array = {0};
        an_tensor t;
        size_t bytes;
        if (!an_result_tensor(&f->sized, f->outputs[i].result, &t)) refuse("an output without a shape after a run");
        bytes = an_dtype_size(t.dtype);
        for (int d = 0; d < t.ndims; d++) bytes *= (size_t)t.dims[d];
        if (bytes > MOST_OUTPUT) continue; /* one number, seen many times, goes out one by one */
        array.data = malloc(bytes);
        /* of two outputs of one name only the first is found, and it may be larger */
        const an_result *first = f->outputs[i].result;
        for (size_t k = i; k-- > 0;)
            if (!strcmp(f->outputs[k].name, f->outputs[i].name)) first = f->outputs[k].result;
        if (first == f->outputs[i].result) {
            if (an_program_get_output(program, f->outputs[i].name, &array)) refuse("an output could not be read");
            hash = an_hash(array.data, bytes, hash);
        }
        free(array.data);
    }
    if (form != AN_FORM_PREDICT && an_program_loss(program, &loss)) refuse("there is no loss");
    return hash;
}

/* Runs a form twice on the same inputs over different old bytes of the arena. */
static void run(an_program *program, an_form form) {
    uint64_t hash = 0;
    for (int i = 0; i < 2; i++) {
        if (program->arena)
            guarded_device.fill(&guarded_device, context, program->arena, i ? 0xff : 0,
                                (size_t)program->plan->arena_bytes);
        if (!went_well(an_program_run(program, form))) return;
        uint64_t again = read_outputs(program, form);
        if (i > 0 && again != hash) refuse("outputs depend on what the arena held before");
        hash = again;
    }
}

static void run_forms(an_program *program) {
    const an_graph *sized = NULL;
    for (int f = 0; f < AN_FORMS; f++)
        if (program->forms[f].graph) sized = &program->forms[f].sized;
    for (int sizes = 0; sizes < 2; sizes++) {
        for (size_t i = 0; sizes > 0 && i < sized->dimensions.symbol_count; i++) {
            const an_symbol *s = &sized->dimensions.symbols[i];
            if (an_program_bind(program, s->name, 1 + (int64_t)next((uint64_t)s->maximum)))
                refuse("a symbol could not be bound");
        }
        set_inputs(program, sized, next(3) == 0);
        for (int f = 0; f < AN_FORMS; f++)
            if (program->forms[f].graph) run(program, (an_form)f);
        if (sized->dimensions.symbol_count == 0) return;
    }
}

/* ---- plans ---- */

/* Everything that a plan can be asked. Returns whether running it is little work. */
static bool ask(an_plan *plan) {
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    bool little = true;
    an_plan_memory_get(plan, &memory);
    if (memory.weights < 0 || memory.activations < 0 || memory.scratch < 0 || memory.inputs < 0 ||
        memory.peak < memory.activations)
        refuse("a count of bytes has overflowed");
    little = memory.peak <= MOST_BYTES;
    for (int f = 0; f < AN_FORMS; f++) {
        an_plan_cost cost;
        an_plan_cost_init(&cost, sizeof cost);
        if (!plan->forms[f]) continue;
        if (an_plan_cost_get(plan, (an_form)f, &cost)) refuse("a form has no cost");
        little = little && cost.flops <= most_flops && cost.bytes <= most_traffic; /* NaN is not little */
        for (int64_t i = 0; i < an_plan_life_count(plan, (an_form)f); i++) {
            an_plan_life life;
            an_plan_life_init(&life, sizeof life);
            if (an_plan_life_get(plan, (an_form)f, i, &life) || life.offset < 0 || life.bytes < 1 ||
                life.offset > plan->arena_bytes - life.bytes)
                refuse("a value does not lie in the arena");
        }
        if (next(16)) continue; /* slow, and seldom news */
        char *text = NULL;
        for (int i = 0; i < an_plan_op_count(); i++) {
            an_plan_op op;
            an_plan_op_init(&op, sizeof op);
            if (an_plan_op_get(plan, (an_form)f, i, &op)) refuse("an op cannot be asked for");
        }
        if (an_plan_dump(plan, (an_form)f, NULL, &text)) refuse("a form cannot be dumped");
        an_string_release(context, &text);
        if (an_plan_dot(plan, (an_form)f, &text)) refuse("a form cannot be drawn");
        an_string_release(context, &text);
    }
    return little;
}

static void try_plan(const an_graph *graph, unsigned programs) {
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    an_params_options params_options;
    an_params_options_init(&params_options, sizeof params_options);
    const char *symbols[MOST_SYMBOLS];
    int64_t maxima[MOST_SYMBOLS];
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    options.programs = programs;
    options.symbols = symbols;
    options.maxima = maxima;
    for (int i = 0; i < MOST_SYMBOLS && an_graph_symbol_name(graph, i); i++) {
        symbols[i] = an_graph_symbol_name(graph, i);
        maxima[i] = next(16) ? 1 + (int64_t)next(4) : PICK(large_maxima);
        options.symbol_count++;
    }
    params_options.gradients = programs != AN_PROGRAM_PREDICTION;
    if (!went_well(an_plan_create(&plan, context, graph, &options)) || !ask(plan)) goto done;
    size_t before = an_context_bytes(context);
    if (!went_well(an_params_create(&params, context, graph, &params_options)))
        refuse("parameters of a plan cannot be made");
    if (!went_well(an_program_create(&program, plan, params))) refuse("a program of a plan cannot be made");
    if (an_context_bytes(context) - before != (size_t)plan->memory.peak)
        refuse("the plan promised another number of bytes");
    an_params_reset(params, next(4));
    run_forms(program);
done:
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_graph *graph = NULL;
    options.threads = 1;
    options.device = &guarded_device;
    if (!context && an_context_create(&context, &options)) abort();
    size_t bytes = an_context_bytes(context);
    const void *engine = context->engine; /* the first convolution leaves one to the context */
    state = an_hash(data, size, 0);
    if (went_well(an_graph_parse(&graph, context, (const char *)data, size)) && went_well(an_graph_verify(graph))) {
        try_plan(graph, AN_PROGRAM_PREDICTION);
        if (graph->loss) try_plan(graph, AN_PROGRAM_TRAINING | AN_PROGRAM_EVALUATION);
    }
    an_graph_destroy(&graph);
    if (context->engine == engine && an_context_bytes(context) != bytes) refuse("memory was not given back");
    return 0;
}
