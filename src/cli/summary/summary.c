/* anneal summary: the layers of a model, with their shapes, parameters and shares of memory and work. */
#include <stdio.h>
#include <string.h>

#include "base/text/json_write.h"
#include "cli/summary/layers.h"

enum { JSON = CLI_PLAN_OPTIONS };
static const cli_option options[] = {
    CLI_PLAN_TABLE,
    [JSON] = {.name = "json", .help = "write JSON, with every layer of every block"},
    {0},
};

static double share(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

/* ---- as a table ---- */

enum { NAME = 22, OUTPUT = 18, PARAMETERS = 13, SHARE = 7 }; /* columns */

static void describe_output(const summary_layer *layer, char *text, size_t capacity) {
    size_t length = 0;
    text[0] = 0;
    for (int d = 0; d < layer->ndims && length < capacity; d++)
        length +=
            (size_t)snprintf(text + length, capacity - length, "%s%lld", d ? " x " : "", (long long)layer->dims[d]);
}

static void print_layer(const summary *s, const char *name, int indent, const summary_layer *layer) {
    char output[128];
    describe_output(layer, output, sizeof output);
    printf("%*s%-*s %-*s%*s%*.1f%%%*.1f%%%*.1f%%\n", indent, "", NAME - indent, name, OUTPUT, output, PARAMETERS,
           cli_count(layer->parameters).text, SHARE,
           100 * share((double)layer->parameters, (double)s->total.parameters), SHARE,
           100 * share((double)layer->bytes, (double)s->total.bytes), SHARE, 100 * share(layer->flops, s->total.flops));
}

static void add(summary_layer *sum, const summary_layer *layer) {
    sum->parameters += layer->parameters;
    sum->bytes += layer->bytes;
    sum->flops += layer->flops;
}

/* Blocks that are alike, as a head and the layers of one of them, with the sums over all. How many
 * layers they have together. */
static int print_blocks(const summary *s, int first) {
    int count;
    const int repeats = summary_repeats(s, first, &count);
    const summary_layer *begin = &s->layers[first], *last = &s->layers[first + count * repeats - 1];
    char name[256];
    summary_layer head = {.ndims = -1};
    for (int i = 0; i < count * repeats; i++) add(&head, &begin[i]);
    if (count == 1) { /* a block that is one layer is a row of its own */
        head.ndims = begin->ndims;
        memcpy(head.dims, begin->dims, sizeof head.dims);
    }
    if (repeats > 1)
        snprintf(name, sizeof name, "%s to %s", begin->block, last->block);
    else
        snprintf(name, sizeof name, "%s", count == 1 ? begin->path : begin->block);
    print_layer(s, name, 0, &head);
    for (int i = 0; count > 1 && i < count; i++) {
        const char *inside = begin[i].path + strlen(begin[i].block);
        summary_layer sum = begin[i];
        for (int of = 1; of < repeats; of++) add(&sum, &begin[of * count + i]);
        print_layer(s, *inside ? inside + 1 : "(itself)", 2, &sum);
    }
    return count * repeats;
}

static void show(const summary *s) {
    const cli_report *r = s->report;
    char sizes[256];
    cli_describe_sizes(r, sizes, sizeof sizes);
    printf("%s, %s%s%s\n\n", r->model, r->program, *sizes ? ": " : "", sizes);
    printf("%-*s %-*s%*s%*s%*s%*s\n", NAME, "layer", OUTPUT, "output", PARAMETERS, "parameters", SHARE + 1, "share",
           SHARE + 1, "memory", SHARE + 1, "work");
    for (int i = 0; i < s->count;) i += print_blocks(s, i);
    print_layer(s, "everything else", 0, &s->other);
    printf("\nEverything else: loss, inputs, loaded samples, tables, heads with tied weights.\n");
    printf("\nparameters  %s", cli_count(s->total.parameters).text);
    if (s->total.trainable < s->total.parameters) printf(", %s of them trainable", cli_count(s->total.trainable).text);
    printf("\nmemory      %s at the peak, %s of it for everything else\n", cli_bytes((double)s->total.bytes).text,
           cli_bytes((double)s->other.bytes).text);
    printf("work        %s in a micro-batch%s\n", cli_amount(s->total.flops, "FLOP").text,
           r->form == AN_FORM_TRAIN_FIRST ? ", forward and backward" : "");
}

/* ---- as JSON ---- */

static void write_layer(an_json_writer *j, const char *key, const summary *s, const summary_layer *layer) {
    an_json_write_object(j, key);
    if (layer->path && *layer->path) {
        an_json_write_string(j, "path", layer->path);
        an_json_write_string(j, "block", *layer->block ? layer->block : NULL);
    }
    if (layer->ndims >= 0) {
        an_json_write_array(j, "output");
        for (int d = 0; d < layer->ndims; d++) an_json_write_integer(j, NULL, layer->dims[d]);
        an_json_write_end(j);
        an_json_write_string(j, "dtype", an_dtype_name(layer->dtype));
    }
    an_json_write_integer(j, "parameters", layer->parameters);
    an_json_write_integer(j, "trainable", layer->trainable);
    an_json_write_integer(j, "bytes", layer->bytes);
    an_json_write_whole(j, "flops", layer->flops);
    an_json_write_rounded(j, "parameter_share", share((double)layer->parameters, (double)s->total.parameters));
    an_json_write_rounded(j, "memory_share", share((double)layer->bytes, (double)s->total.bytes));
    an_json_write_rounded(j, "work_share", share(layer->flops, s->total.flops));
    an_json_write_end(j);
}

static void write_json(const summary *s) {
    const cli_report *r = s->report;
    an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
    an_json_write_object(&j, NULL);
    an_json_write_string(&j, "model", r->model);
    an_json_write_string(&j, "program", r->program);
    an_json_write_object(&j, "symbols");
    for (int i = 0; i < r->symbol_count; i++) an_json_write_integer(&j, r->symbols[i], r->maxima[i]);
    an_json_write_end(&j);
    an_json_write_array(&j, "layers");
    for (int i = 0; i < s->count; i++) write_layer(&j, NULL, s, &s->layers[i]);
    an_json_write_end(&j);
    write_layer(&j, "other", s, &s->other);
    write_layer(&j, "total", s, &s->total);
    an_json_write_finish(&j);
}

/* ---- the command ---- */

static int run(const cli_call *call) {
    cli_report report = CLI_REPORT;
    summary s = {0};
    int code = cli_report_begin(call, &report);
    if (code == CLI_DONE) {
        const an_status status = summary_make(&s, &report);
        if (status == AN_ERR_MEMORY)
            code = cli_fail(call, "out of memory");
        else if (status != AN_OK)
            code = cli_failure(call, report.ctx, status);
    }
    if (code == CLI_DONE) {
        if (call->values[JSON])
            write_json(&s);
        else
            show(&s);
        code = cli_finish(call);
    }
    summary_free(&s);
    cli_report_end(&report);
    return code;
}

const cli_command cli_summary = {
    .name = "summary",
    .argument = "CONFIG|PRESET|FILE.ang",
    .summary = "list the layers of a model: shapes, parameters, shares of memory and work",
    .text =
        "Lists the layers of a model with the shapes of their outputs, their parameters, and their shares of all "
        "parameters, of the memory of a step and of its arithmetic. Blocks that are alike, as in a transformer, are "
        "shown together, with their sums. The memory of a layer is that of its parameters, with gradients and "
        "moments, and of its values at the fullest moment of a step. No weights are allocated. 'anneal plan' "
        "shows the memory by kind.",
    .options = options,
    .run = run,
};
