/* anneal plan: shows what a step will need, before anything is allocated. */
#include <stdio.h>

#include "cli/plan/report.h"

enum { JSON = CLI_PLAN_OPTIONS, SVG, POLICY, DUMP, RANKS, RANK, HOSTS };
enum { WHAT = 1, MOST_RANKS = 1 << 20 };
static const cli_option options[] = {
    CLI_PLAN_TABLE,
    [JSON] = {.name = "json", .group = WHAT, .help = "write JSON: bytes are integers, peak_bytes is their sum"},
    [SVG] = {.name = "svg", .group = WHAT, .help = "write an SVG picture of the memory during the step"},
    [POLICY] = {.name = "policy",
                .group = WHAT,
                .help = "list the ops: how mixed precision treats them and how often they run"},
    [DUMP] = {.name = "dump",
              .argument = "PASS",
              .group = WHAT,
              .help = "write the graph after a pass (verify, program, autodiff, …, memory) as text"},
    [RANKS] = {.name = "ranks",
               .argument = "N",
               .help = "plan a run of a config on N ranks: what a rank allocates, and what it sends in a step"},
    [RANK] = {.name = "rank", .argument = "N", .help = "with --ranks: the rank to plan, from 0 (default 0)"},
    [HOSTS] = {.name = "hosts",
               .argument = "N",
               .help = "with --ranks: the hosts that the ranks are on, as many on each (default 1)"},
    {0},
};

static int write_report(const cli_call *call, const cli_report *report) {
    an_status status = AN_OK;
    char *text = NULL;
    if (call->values[JSON])
        cli_write_json(report, stdout);
    else if (call->values[SVG])
        status = cli_write_svg(report);
    else if (call->values[POLICY])
        status = cli_write_policy(report);
    else if (call->values[DUMP])
        status = an_plan_dump(report->plan, report->form, call->values[DUMP], &text);
    else
        cli_write_text(report);
    if (status != AN_OK) return cli_failure(call, report->ctx, status);
    if (text) fputs(text, stdout);
    an_string_release(report->ctx, &text);
    return cli_finish(call);
}

static int run(const cli_call *call) {
    cli_report report = CLI_REPORT;
    int code = cli_number(call, RANKS, 1, &report.ranks);
    if (code == CLI_DONE) code = cli_number(call, RANK, 0, &report.rank);
    if (code == CLI_DONE) code = cli_number(call, HOSTS, 1, &report.hosts);
    if (code == CLI_DONE && report.ranks > MOST_RANKS) code = cli_misuse(call, "--ranks can be %d at most", MOST_RANKS);
    if (code == CLI_DONE && report.hosts > report.ranks)
        code = cli_misuse(call, "--hosts %lld needs --ranks %lld or more", (long long)report.hosts,
                          (long long)report.hosts);
    if (code == CLI_DONE && report.rank > 0 && report.rank >= report.ranks)
        code = cli_misuse(call, "--rank %lld needs --ranks %lld or more", (long long)report.rank,
                          (long long)report.rank + 1);
    if (code != CLI_DONE) return code;
    code = cli_report_begin(call, &report);
    if (code == CLI_DONE) code = write_report(call, &report);
    cli_report_end(&report);
    return code;
}

const cli_command cli_plan = {
    .name = "plan",
    .argument = "CONFIG|PRESET|FILE.ang",
    .summary = "show the memory and arithmetic of a training step before it runs",
    .text = "Shows how much memory a step of a model needs, by kind and to the byte, its peak, and the amount of "
            "arithmetic. No weights are allocated. For a config (a file name that ends in .yaml), it is the plan that "
            "the run will use.",
    .options = options,
    .run = run,
};
