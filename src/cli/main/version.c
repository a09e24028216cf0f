/* anneal version: what this build has in it. */
#include <stdio.h>
#include <string.h>

#include "cli/main/cli.h"
#include "cli/main/json.h"

enum { JSON };
static const cli_option options[] = {
    [JSON] = {.name = "json", .help = "for programs"},
    {0},
};

static int run(const cli_call *call) {
    const char *onednn = an_onednn_version();
    if (call->values[JSON]) {
        json j = json_begin(stdout);
        json_string(&j, "anneal", an_version());
        if (*onednn)
            json_string(&j, "onednn", onednn);
        else
            json_null(&j, "onednn");
        json_null(&j, "mpi");
        json_end(&j);
    } else {
        printf("anneal  %s\n", an_version());
        printf("oneDNN  %s\n", *onednn ? onednn : "none: reference kernels only");
        printf("MPI     none: one rank\n");
    }
    return cli_finish(call);
}

const cli_command cli_version = {
    .name = "version",
    .summary = "show what this build has in it",
    .text = "Shows the version of anneal and of the libraries it was built with.",
    .options = options,
    .run = run,
};
