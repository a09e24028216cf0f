/* Fuzzes the text form. A text is refused with a place and without a leak, or it is a graph: then what is printed, read
 * and printed again is the same text, as a model and as a dump. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text_form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static an_context *context;

static void refuse(const char *what) {
    fprintf(stderr, "fuzz_parse: %s\n%s\n", what, an_last_error(context));
    abort();
}

/* A refusal says where, "3:14: ", unless it is of the text as a whole. */
static void check_place(void) {
    char *end;
    const char *message = an_last_error(context);
    long line = strtol(message, &end, 10), column = *end == ':' ? strtol(end + 1, &end, 10) : 0;
    if (line < 1 || column < 1 || strncmp(end, ": ", 2) != 0) refuse("an error without a place");
}

static void compare(const char *what, const char *first, const char *second) {
    if (!strcmp(first, second)) return;
    fprintf(stderr, "fuzz_parse: the %s differs when it was read back:\n%s\n---\n%s\n", what, first, second);
    abort();
}

/* Prints, reads and prints again. */
static void round_trip(const an_graph *graph) {
    an_graph *again = NULL;
    char *first = NULL, *second = NULL;
    if (an_graph_print(graph, &first)) refuse("a graph that was read cannot be printed");
    if (an_graph_parse(&again, context, first, strlen(first))) refuse("what was printed cannot be read");
    if (an_graph_print(again, &second)) refuse("a graph that was read back cannot be printed");
    compare("model", first, second);
    an_string_release(context, &first);
    an_string_release(context, &second);
    an_graph_destroy(&again);
}

static void round_trip_dump(const an_graph *graph) {
    an_graph *again = NULL;
    an_text first, second;
    an_text_init(&first, context);
    an_text_init(&second, context);
    if (an_graph_dump(graph, &first)) refuse("a graph that was read cannot be dumped");
    if (an_graph_parse_dump(&again, context, first.bytes, first.length)) refuse("what was dumped cannot be read");
    if (an_graph_dump(again, &second)) refuse("a graph that was read back cannot be dumped");
    compare("dump", first.bytes, second.bytes);
    an_text_destroy(&first);
    an_text_destroy(&second);
    an_graph_destroy(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_graph *graph = NULL;
    options.threads = 1;
    if (!context && an_context_create(&context, &options)) abort();
    size_t bytes = an_context_bytes(context);
    if (an_graph_parse_dump(&graph, context, (const char *)data, size) == AN_OK) {
        round_trip_dump(graph);
        an_graph_destroy(&graph);
        if (an_graph_parse(&graph, context, (const char *)data, size) == AN_OK)
            round_trip(graph);
        else
            check_place(); /* a dump, which is refused as a model */
        an_graph_destroy(&graph);
    } else {
        check_place();
    }
    if (an_context_bytes(context) != bytes) refuse("memory was not given back");
    return 0;
}
