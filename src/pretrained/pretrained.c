/* A published model: what it is, and its graph. */
#include "anneal/pretrained.h"

#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/guard.h"
#include "formats/gguf.h"
#include "ir/published.h"
#include "pretrained/description.h"
#include "pretrained/structs.h"

struct an_pretrained {
    an_context *ctx;
    char *path;
    bool is_gguf;
    int64_t tensors, elements;
    an_description description;
};

enum { MOST_LAYERS = 4096 }; /* far over any; a graph has memory for each */

static an_status count_elements(an_pretrained *p, const an_weights *w) {
    p->tensors = w->count;
    for (int64_t i = 0; i < w->count; i++) {
        an_safetensor tensor;
        AN_TRY_RETURN(w->get(w, i, &tensor));
        p->elements += tensor.bytes / (int64_t)tensor.type->size;
    }
    return AN_OK;
}

static an_status open_gguf(an_pretrained *p) {
    an_context *ctx = p->ctx;
    an_weights weights;
    AN_TRY_RETURN(an_weights_open_gguf(&weights, ctx, p->path));
    an_status status = an_description_read_gguf(&p->description, ctx, p->path, &weights);
    if (status == AN_OK) status = count_elements(p, &weights);
    an_weights_close(&weights);
    return status;
}

static bool has(const char *folder, const char *file, char path[AN_FILE_PATH]) {
    return an_path_join(path, folder, file) && access(path, F_OK) == 0;
}

static an_status count_files(an_pretrained *p) {
    an_context *ctx = p->ctx;
    an_weights weights;
    AN_TRY_RETURN(an_weights_open_files(&weights, ctx, p->path));
    const an_status status = count_elements(p, &weights);
    an_weights_close(&weights);
    return status;
}

static an_status open_folder(an_pretrained *p) {
    an_context *ctx = p->ctx;
    char path[AN_FILE_PATH];
    if (!has(p->path, "config.json", path))
        return AN_ERROR(ctx, AN_ERR_FILE,
                        "%s: is neither a folder with config.json nor a GGUF file, so it does not say what model it is",
                        p->path);
    AN_TRY_RETURN(an_description_read(&p->description, ctx, path, ""));
    if (p->description.family->look) AN_TRY_RETURN(p->description.family->look(&p->description, p->path));
    if (has(p->path, "model.safetensors", path) || has(p->path, "model.safetensors.index.json", path))
        AN_TRY_RETURN(count_files(p));
    return AN_OK;
}

static int64_t count_of(const an_description *d, an_fact fact) {
    const double value = an_description_fact(d, fact);
    return value >= 0 && value < 1e15 ? (int64_t)value : 0;
}

/* What every family has. Sizes that contradict each other are found when the graph is built. */
static an_status check_sizes(const an_description *d) {
    static const struct {
        an_fact fact;
        const char *name;
    } sizes[] = {{AN_FACT_LAYERS, "number of layers"},
                 {AN_FACT_HEADS, "number of heads"},
                 {AN_FACT_WIDTH, "width"},
                 {AN_FACT_HIDDEN, "width of the feed-forward layers"},
                 {AN_FACT_VOCABULARY, "size of the vocabulary"}};
    an_context *ctx = d->ctx;
    int64_t count = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        AN_TRY_RETURN(an_description_count(d, sizes[i].fact, sizes[i].name, &count));
        if (count < 1) return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: the %s is 0", d->path, sizes[i].name);
    }
    if (count_of(d, AN_FACT_LAYERS) > MOST_LAYERS)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: the number of layers is %g, but at most %d are possible", d->path,
                        an_description_fact(d, AN_FACT_LAYERS), MOST_LAYERS);
    return AN_OK;
}

an_status an_pretrained_open(an_pretrained **pretrained, an_context *ctx, const char *path) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, pretrained, path);
    an_status status;
    an_pretrained *p = NULL;
    *pretrained = NULL;
    AN_TRY(an_alloc(ctx, (void **)&p, 1, sizeof *p));
    p->ctx = ctx;
    AN_TRY(an_alloc(ctx, (void **)&p->path, strlen(path) + 1, 1));
    memcpy(p->path, path, strlen(path) + 1);
    p->is_gguf = an_gguf_is(path);
    AN_TRY(p->is_gguf ? open_gguf(p) : open_folder(p));
    AN_TRY(an_description_check(&p->description));
    AN_TRY(check_sizes(&p->description));
    *pretrained = p;
    return AN_OK;
fail:
    an_pretrained_close(&p);
    return status;
}

void an_pretrained_close(an_pretrained **pretrained) {
    an_pretrained *p = pretrained ? *pretrained : NULL;
    if (!p) return;
    an_context *ctx = p->ctx;
    an_description_destroy(&p->description);
    an_string_release(ctx, &p->path);
    an_release(ctx, (void **)pretrained, 1, sizeof *p);
}

an_status an_pretrained_info_get(const an_pretrained *pretrained, an_pretrained_info *info) {
    AN_GUARD;
    AN_NEED(pretrained, info);
    const an_pretrained *p = pretrained;
    const an_description *d = &p->description;
    const bool rotates = !d->facts[AN_FACT_POSITIONS].known || p->description.family != &an_family_gpt2;
    const int64_t heads = count_of(d, AN_FACT_HEADS), width = count_of(d, AN_FACT_WIDTH);
    an_pretrained_info own = {
        .path = p->path,
        .family = d->family->name,
        .layers = count_of(d, AN_FACT_LAYERS),
        .heads = heads,
        .kv_heads = d->facts[AN_FACT_KV_HEADS].known ? count_of(d, AN_FACT_KV_HEADS) : heads,
        .head_size = d->facts[AN_FACT_HEAD_SIZE].known ? count_of(d, AN_FACT_HEAD_SIZE)
                     : heads                           ? width / heads
                                                       : 0,
        .width = width,
        .hidden = count_of(d, AN_FACT_HIDDEN),
        .vocabulary = count_of(d, AN_FACT_VOCABULARY),
        .context = rotates ? count_of(d, AN_FACT_CONTEXT) : count_of(d, AN_FACT_POSITIONS),
        .window = count_of(d, AN_FACT_WINDOW),
        .tensors = p->tensors,
        .elements = p->elements,
        .rotary_base = rotates ? an_description_fact(d, AN_FACT_ROTARY_BASE) : 0,
        .rotary_factor = an_description_fact(d, AN_FACT_ROTARY_FACTOR),
        .is_gguf = p->is_gguf,
        .tied = an_description_fact(d, AN_FACT_TIED) != 0,
        .classes = count_of(d, AN_FACT_CLASSES),
        .dropout = an_description_fact(d, AN_FACT_DROPOUT),
    };
    return an_pretrained_info_write(p->ctx, info, &own);
}

/* A description costs nothing to write, so one that promises more than the files have is refused
 * before memory is asked for. */
static an_status check_elements(const an_pretrained *p, const an_graph *g, int64_t classes) {
    const int64_t wanted = an_graph_parameter_elements(g), width = count_of(&p->description, AN_FACT_WIDTH);
    const int64_t heads = p->description.family->body ? (width + 1) * (width + classes) : 0; /* they may be new */
    if (p->tensors == 0 || wanted <= p->elements + heads) return AN_OK;
    return AN_ERROR(p->ctx, AN_ERR_DAMAGED,
                    "%s: describes a model of %lld parameters, but its files have only %lld numbers", p->path,
                    (long long)wanted, (long long)p->elements);
}

static bool has_shape(const an_safetensor *tensor, const an_result *parameter) {
    bool same = tensor->ndims == parameter->ndims;
    for (int i = 0; i < tensor->ndims && same; i++) same = tensor->dims[i] == parameter->dims[i];
    return same;
}

static an_status find_tensor(const an_weights *w, const an_parameter *p, bool *found) {
    *found = false;
    for (int64_t i = 0; i < w->count && !*found; i++) {
        an_safetensor tensor;
        AN_TRY_RETURN(w->get(w, i, &tensor));
        const bool named = !strcmp(tensor.name, p->name) || !strcmp(an_published_bare(tensor.name), p->name);
        *found = named && has_shape(&tensor, an_node_output(p->node, 0));
    }
    return AN_OK;
}

/* A head that the files do not have begins with random values, so it must be trained, beside an adapter too. */
static an_status mark_new_heads(const an_pretrained *p, an_graph *g) {
    an_status status = AN_OK;
    an_context *ctx = p->ctx;
    an_weights weights;
    if (!p->description.family->body || p->tensors == 0) return AN_OK;
    AN_TRY_RETURN(an_weights_open_files(&weights, ctx, p->path));
    for (size_t i = 0; i < g->parameter_count && status == AN_OK; i++) {
        bool found = true;
        if (an_family_is_head(p->description.family, g->parameters[i].name))
            status = find_tensor(&weights, &g->parameters[i], &found);
        g->parameters[i].trained = !found;
    }
    an_weights_close(&weights);
    return status;
}

an_status an_pretrained_graph(const an_pretrained *pretrained, an_graph **graph, const an_pretrained_options *options) {
    AN_GUARD;
    AN_NEED(pretrained, graph);
    const an_pretrained *p = pretrained;
    an_context *ctx = p->ctx;
    an_pretrained_options own;
    *graph = NULL;
    AN_TRY_RETURN(an_pretrained_options_read(ctx, &own, options));
    AN_TRY_RETURN(p->description.family->build(graph, &p->description, &own));
    an_status status = check_elements(p, *graph, own.classes);
    if (status == AN_OK) status = mark_new_heads(p, *graph);
    if (status != AN_OK) an_graph_destroy(graph);
    return status;
}

const an_description *an_pretrained_description(const an_pretrained *pretrained) {
    return &pretrained->description;
}

an_description *an_pretrained_description_changed(an_pretrained *pretrained) {
    return &pretrained->description;
}

const char *an_pretrained_family(int index) {
    const an_family *family = an_family_at(index);
    return family ? family->name : NULL;
}
