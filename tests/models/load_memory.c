/* How much memory loading a published model takes, against what it is in the end. For tests/models/measure-loading,
 * which is run by hand.
 *
 *     load_memory PATH
 *
 * Prints the bytes of the weights as a store has them, and how much the resident memory grew at most. The peak
 * includes what is only read while the model is opened: header, index, keys, tokens. Exits with 1 if it is more
 * than 1.05 times the weights. */
#include <stdio.h>
#include <stdlib.h>

#include "anneal/anneal.h"
#include "anneal/plan.h"
#include "anneal/pretrained.h"
#include "interchange/load_model.h"

static an_context *ctx;

static void need(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "load_memory: %s: %s\n", what, ctx ? an_last_error(ctx) : "");
    exit(2);
}
#define OK(call) need((call) == AN_OK, #call)

static long long read_status(const char *format) {
    char line[256];
    long long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    need(file != NULL, "/proc/self/status");
    while (fgets(line, sizeof line, file))
        if (sscanf(line, format, &kilobytes) == 1) break; /* NOLINT(cert-err34-c): 0 if it is none */
    fclose(file);
    return kilobytes * 1024;
}

int main(int argc, char **argv) {
    an_graph *graph = NULL;
    an_params *params = NULL;
    an_pretrained *published = NULL;
    an_params_options stored;
    need(argc == 2, "usage: load_memory PATH");
    OK(an_context_create(&ctx, NULL));
    const long long before = read_status("VmRSS: %lld kB");
    const size_t held = an_context_bytes(ctx);
    OK(an_pretrained_open(&published, ctx, argv[1]));
    OK(an_pretrained_graph(published, &graph, NULL));
    an_pretrained_close(&published);
    an_params_options_init(&stored, sizeof stored);
    stored.gradients = false;
    stored.moments = 0;
    OK(an_params_create(&params, ctx, graph, &stored));
    OK(an_weights_load(params, argv[1], AN_MODEL_WEIGHTS_AUTO));
    const long long peak = read_status("VmHWM: %lld kB") - before, result = (long long)(an_context_bytes(ctx) - held);
    const double ratio = (double)peak / (double)result;
    printf("%s: result %.1f MiB, peak %.1f MiB: %.3f\n", argv[1], (double)result / 1048576, (double)peak / 1048576,
           ratio);
    an_params_destroy(&params);
    an_graph_destroy(&graph);
    an_context_destroy(&ctx);
    return ratio > 1.05;
}
