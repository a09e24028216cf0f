/* Fuzzes what published models say about themselves. The first byte of an input chooses: even, the rest is a config.json; odd, a GGUF file. A refusal names the file and leaves no memory; what is
 * taken can be built, or is refused by the builder. */
#include "fuzz_data.h"

#include "base/context.h"
#include "pretrained/description.h"
#include "store/gguf.h"

enum { MOST_LAYERS = 8, MOST_BYTES = 1 << 15 };

static an_status describe(an_description *d, const char *path, bool is_gguf) {
    an_weights weights;
    if (!is_gguf) return an_description_read(d, context, path, "");
    an_status status = an_weights_open_gguf(&weights, context, path);
    if (status != AN_OK) return status;
    status = an_description_read_gguf(d, context, path, &weights);
    an_weights_close(&weights);
    return status;
}

static void check_message(an_status status, const char *path) {
    if (status != AN_ERR_DAMAGED && status != AN_ERR_UNSUPPORTED && status != AN_ERR_ARGUMENT)
        broken("a refusal of a strange kind");
    if (strncmp(an_last_error(context), path, strlen(path)) != 0) broken("a refusal without the file");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static memory_file file;
    static an_description d;
    an_pretrained_options options;
    an_graph *g = NULL;
    if (size < 1 || size > MOST_BYTES) return 0;
    need_context();
    an_pretrained_options_init(&options, sizeof options);
    const size_t held = an_context_bytes(context);
    fill_file(&file, data + 1, size - 1);
    memset(&d, 0, sizeof d);
    an_status status = describe(&d, file.path, data[0] & 1);
    if (status == AN_OK) status = an_description_check(&d);
    if (status == AN_OK && an_description_fact(&d, AN_FACT_LAYERS) <= MOST_LAYERS)
        status = d.family->build(&g, &d, &options);
    if (status != AN_OK) check_message(status, file.path);
    if (status != AN_OK && g) broken("a graph in spite of an error");
    an_graph_destroy(&g);
    an_description_destroy(&d);
    if (an_context_bytes(context) != held) broken("memory was not given back");
    return 0;
}
