/* A plan as a table, as JSON, and its ops. */
#include "cli/plan/report.h"

#include <stdio.h>
#include <string.h>

#include "anneal/checkpoint.h"
#include "anneal/plan.h"
#include "base/system/limits.h"
#include "base/text/json_write.h"

const char *cli_precision_name(const cli_report *report) {
    const an_dtype dtype = report->precision != AN_DTYPE_NONE ? report->precision : report->dtype;
    return dtype != AN_DTYPE_NONE ? an_dtype_name(dtype) : NULL;
}

void cli_describe_sizes(const cli_report *report, char *text, size_t capacity) {
    size_t length = 0;
    text[0] = 0;
    for (int i = 0; i < report->symbol_count && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%s %lld", i ? ", " : "", report->symbols[i],
                                   (long long)report->maxima[i]);
    const char *precision = cli_precision_name(report);
    if (precision && length < capacity)
        snprintf(text + length, capacity - length, "%s%s", length ? ", " : "", precision);
}

/* ---- text ---- */

enum { NAME = 14, SHORT = 12, LONG = 20 }; /* columns */

static void print_bytes(const char *name, int64_t bytes) {
    printf("  %-*s%*s%*s\n", NAME, name, SHORT, cli_bytes((double)bytes).text, LONG, cli_count(bytes).text);
}

static void print_count(const char *name, int64_t count) {
    printf("  %-*s%*s\n", NAME, name, SHORT + LONG, cli_count(count).text);
}

/* The strategy that the plan is of; false: there is one process. */
static bool find_taken(const cli_report *report, an_strategy *taken) {
    cli_strategy strategies[CLI_MOST_STRATEGIES];
    const int count = cli_strategies(report, strategies);
    for (int i = 0; i < count; i++) {
        *taken = strategies[i].strategy;
        if (taken->taken) return true;
    }
    return false;
}

/* The same for several ranks: those of a host need its memory together. */
static bool print_ranks_fit(const cli_report *report) {
    an_strategy taken;
    if (!find_taken(report, &taken)) return false;
    if (*an_trainer_notes(report->training.trainer))
        printf("\n%s", an_trainer_notes(report->training.trainer));
    else
        printf("\n%s: %s\n", taken.fits ? "fits" : "may not fit", taken.room);
    return true;
}

/* Whether this machine has the memory; for a config, with what would fit where it has not. */
static void print_fit(const cli_report *report) {
    an_limits limits;
    char text[AN_LIMITS_TEXT];
    if (print_ranks_fit(report)) return;
    an_limits_read("", &limits);
    const an_limits_fit fit =
        an_limits_compare(&limits, report->memory.peak, (int64_t)an_context_bytes(report->ctx), text);
    if (report->training.trainer && *an_trainer_notes(report->training.trainer))
        printf("\n%s", an_trainer_notes(report->training.trainer));
    else if (fit == AN_LIMITS_EXCEEDED)
        printf("\ndoes not fit: %s\n", text);
    else
        printf("\n%s: %s\n", fit == AN_LIMITS_FITS ? "fits" : "may not fit", text);
}

/* What ranks send each other, and how their leaves were chosen. */
static void print_exchange(const cli_report *report) {
    const an_plan_traffic *e = &report->exchange;
    const an_plan_life root = cli_gradient_root(report);
    an_strategy taken;
    if (e->ranks < 2) return;
    const bool known = find_taken(report, &taken);
    printf("\n  rank %d of %d, %lld lea%s of each step%s%s\n", e->rank, e->ranks, (long long)e->leaves,
           e->leaves == 1 ? "f" : "ves", known ? ", ranks.shard " : "", known ? taken.name : "");
    print_bytes("sent", e->sent);
    print_bytes("received", e->received);
    print_count("messages", e->messages);
    if (root.bytes > 0)
        printf("  of the activations, %s are the gradients of %s until they leave the rank\n",
               cli_bytes((double)root.bytes).text, root.path);
    if (e->host_ranks > 1) {
        printf("  %d ranks of a host share the memory of their gradients\n", e->host_ranks);
        print_bytes("read there", e->read);
        print_bytes("written", e->written);
    }
    if (e->subtree_leaves == 0) return; /* they run in rounds */
    printf(
        "  leaves along subtrees: at most %lld on a rank, %s between ranks; even: at most %lld, %s; the plan uses %s\n",
        (long long)e->subtree_leaves, cli_bytes((double)e->subtree_bytes).text, (long long)e->even_leaves,
        cli_bytes((double)e->even_bytes).text, e->subtrees ? "subtrees" : "even ones");
}

void cli_write_text(const cli_report *report) {
    cli_kind kinds[CLI_KINDS];
    char sizes[256];
    cli_kinds(&report->memory, kinds);
    cli_describe_sizes(report, sizes, sizeof sizes);
    printf("%s, %s%s%s; %d thread%s\n\n", report->model, report->program, *sizes ? ": " : "", sizes, report->threads,
           report->threads == 1 ? "" : "s");
    printf("  %-*s%*s%*s\n", NAME, "memory", SHORT, "", LONG, "bytes");
    for (int i = 0; i < CLI_KINDS; i++) print_bytes(kinds[i].name, kinds[i].bytes);
    print_bytes("peak", report->memory.peak);
    printf("\n");
    print_count("parameters", report->parameters);
    print_count("nodes", report->cost.nodes);
    print_count("instructions", report->cost.instructions);
    printf("  %-*s%*s\n", NAME, "arithmetic", SHORT + LONG, cli_amount(report->cost.flops, "FLOP").text);
    printf("  %-*s%*s\n", NAME, "traffic", SHORT + LONG, cli_amount(report->cost.bytes, "B").text);
    print_exchange(report);
    cli_write_strategies(report);
    print_fit(report);
}

/* ---- JSON ---- */

void cli_write_json(const cli_report *report, FILE *file) {
    cli_kind kinds[CLI_KINDS];
    an_json_writer j = an_json_to_file(file, AN_JSON_LINES);
    an_json_write_object(&j, NULL);
    cli_kinds(&report->memory, kinds);
    an_json_write_string(&j, "model", report->model);
    an_json_write_string(&j, "program", report->program);
    if (cli_precision_name(report)) an_json_write_string(&j, "precision", cli_precision_name(report));
    an_json_write_object(&j, "symbols");
    for (int i = 0; i < report->symbol_count; i++) an_json_write_integer(&j, report->symbols[i], report->maxima[i]);
    an_json_write_end(&j);
    an_json_write_integer(&j, "threads", report->threads);
    an_json_write_integer(&j, "peak_bytes", report->memory.peak);
    for (int i = 0; i < CLI_KINDS; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s_bytes", kinds[i].name);
        an_json_write_integer(&j, key, kinds[i].bytes);
    }
    an_json_write_integer(&j, "parameters", report->parameters);
    an_json_write_integer(&j, "nodes", report->cost.nodes);
    an_json_write_integer(&j, "instructions", report->cost.instructions);
    an_json_write_whole(&j, "flops", report->cost.flops);
    an_json_write_whole(&j, "traffic_bytes", report->cost.bytes);
    if (report->exchange.ranks > 1) {
        const an_plan_traffic *e = &report->exchange;
        an_json_write_object(&j, "exchange");
        an_json_write_integer(&j, "rank", e->rank);
        an_json_write_integer(&j, "ranks", e->ranks);
        an_json_write_integer(&j, "leaves", e->leaves);
        an_json_write_integer(&j, "sent_bytes", e->sent);
        an_json_write_integer(&j, "received_bytes", e->received);
        an_json_write_integer(&j, "messages", e->messages);
        an_json_write_integer(&j, "host_ranks", e->host_ranks);
        an_json_write_integer(&j, "read_bytes", e->read);
        an_json_write_integer(&j, "written_bytes", e->written);
        an_json_write_end(&j);
        cli_write_strategies_json(report, &j);
    }
    an_json_write_finish(&j);
}

/* ---- policy ---- */

/* The operands of a mask, as "0 1". */
static cli_text describe_mask(uint32_t mask) {
    enum { BITS = 32 };
    cli_text out = {""};
    int length = 0;
    for (int i = 0; i < BITS && length < (int)sizeof out.text - 4; i++)
        if (mask >> i & 1)
            length += snprintf(out.text + length, sizeof out.text - (size_t)length, length ? " %d" : "%d", i);
    return out;
}

an_status cli_write_policy(const cli_report *report) {
    an_plan_op op;
    an_plan_op_init(&op, sizeof op);
    printf("%-26s%-8s%-12s%-13s%12s%16s%10s\n", "op", "policy", "low inputs", "low outputs", "instructions",
           "arithmetic", "share");
    for (int i = 0; i < an_plan_op_count(); i++) {
        an_status status = an_plan_op_get(report->plan, report->form, i, &op);
        if (status != AN_OK) return status;
        if (op.instructions == 0) continue;
        printf("%-26s%-8s%-12s%-13s%12lld%16s%8.2f %%\n", op.name, op.policy, describe_mask(op.low_inputs).text,
               describe_mask(op.low_outputs).text, (long long)op.instructions, cli_amount(op.flops, "FLOP").text,
               report->cost.flops > 0 ? 100 * op.flops / report->cost.flops : 0);
    }
    printf("\nlow   reads and writes low precision if the run uses it, and sums in f32\nkeep  reads any precision and "
           "computes in f32\nf32   always f32\n");
    return AN_OK;
}
