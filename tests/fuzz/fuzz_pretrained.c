/* Fuzzes what published models say about themselves. The first byte of an input chooses by its lowest two bits: 0, the
 * rest is a config.json; 1 or 3, a GGUF file; 2, a generation_config.json. A refusal names the file and leaves no
 * memory; what is taken can be built, or is refused by the builder. Settings that are taken are in their ranges. */
#include "fuzz_data.h"

#include "base/context.h"
#include "formats/gguf.h"
#include "pretrained/description.h"
#include "pretrained/sampling.h"

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

static void try_sampling(const char *path, bool is_gguf) {
    enum { VOCABULARY = 24 };
    an_pretrained_sampling s;
    an_pretrained_sampling_init(&s, sizeof s);
    const an_status status = is_gguf ? an_sampling_read_gguf(&s, context, path, VOCABULARY)
                                     : an_sampling_read(&s, context, path, VOCABULARY);
    if (status != AN_OK) {
        check_message(status, path);
        return;
    }
    const double values[] = {s.temperature, s.top_p, s.min_p, s.repetition_penalty, (double)s.top_k};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (!(values[i] >= 0 || values[i] == -1)) broken("a setting out of its range");
    if (s.top_p > 1 || s.min_p > 1 || s.stop_count < 0 || s.stop_count > AN_PRETRAINED_STOPS)
        broken("a setting out of its range");
    for (int i = 0; i < s.stop_count; i++)
        if (s.stop_tokens[i] < 0 || s.stop_tokens[i] >= VOCABULARY) broken("an end that is no token");
    if (strlen(s.ignored) >= sizeof s.ignored) broken("a list without an end");
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
    if (data[0] & 3) try_sampling(file.path, data[0] & 1);
    if ((data[0] & 3) == 2) {
        if (an_context_bytes(context) != held) broken("memory was not given back");
        return 0;
    }
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
