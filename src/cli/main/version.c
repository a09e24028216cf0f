/* anneal version: shows the version and how it was built. */
#include <stdio.h>
#include <string.h>

#include "base/text/json_write.h"
#include "cli/main/cli.h"

enum { JSON };
static const cli_option options[] = {
    [JSON] = {.name = "json", .help = "write JSON"},
    {0},
};

static int run(const cli_call *call) {
    const char *onednn = an_onednn_version(), *mpi = an_mpi_version();
    if (call->values[JSON]) {
        an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
        an_json_write_object(&j, NULL);
        an_json_write_string(&j, "anneal", an_version());
        if (*onednn)
            an_json_write_string(&j, "onednn", onednn);
        else
            an_json_write_null(&j, "onednn");
        if (*mpi)
            an_json_write_string(&j, "mpi", mpi);
        else
            an_json_write_null(&j, "mpi");
        an_json_write_finish(&j);
    } else {
        printf("anneal  %s\n", an_version());
        printf("oneDNN  %s\n", *onednn ? onednn : "none: portable kernels only");
        printf("MPI     %s\n", *mpi ? mpi : "none: one rank");
    }
    return cli_finish(call);
}

const cli_command cli_version = {
    .name = "version",
    .summary = "show the version and how it was built",
    .text = "Shows the version of anneal and of the libraries it was built with.",
    .options = options,
    .run = run,
};
