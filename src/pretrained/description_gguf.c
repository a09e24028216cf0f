/* Reads what a GGUF file says about its model: the keys of its architecture, and which tensors there are. */
#include <stdio.h>
#include <string.h>

#include "base/elementary/elementary.h"
#include "base/status.h"
#include "formats/gguf_keys.h"
#include "pretrained/description.h"

/* ---- keys ---- */

enum { NAME = 160 };

static const char *full_name(const an_description *d, const char *key, char name[NAME]) {
    snprintf(name, NAME, "%s.%s", d->family->gguf, key);
    return name;
}

static an_status read_facts(an_description *d, const an_gguf *g) {
    char name[NAME];
    for (const an_gguf_fact *row = an_gguf_facts; row->key; row++) {
        double value = 0;
        if (row->fact == AN_FACTS || !an_gguf_find(g, full_name(d, row->key, name))) continue;
        AN_TRY_RETURN(an_gguf_real(g, name, &value));
        an_description_state(d, row->fact, value);
    }
    return AN_OK;
}

static bool is_known(const char *key) {
    for (const an_gguf_fact *row = an_gguf_facts; row->key; row++)
        if (!strcmp(row->key, key)) return true;
    return false;
}

/* A key that nobody knows may change what the model computes, unless it is off. */
static void find_unknown(an_description *d, const an_gguf *g) {
    const size_t length = strlen(d->family->gguf);
    for (size_t i = 0; i < an_gguf_key_count(g); i++) {
        const an_gguf_key *key = an_gguf_key_at(g, i);
        const char *name = an_gguf_key_name(g, key);
        an_gguf_cursor cursor = an_gguf_values(g, key);
        an_gguf_value v;
        bool on = false;
        if (strncmp(name, d->family->gguf, length) != 0 || name[length] != '.' || is_known(name + length + 1)) continue;
        while (an_gguf_next(&cursor, &v)) on = on || v.real != 0 || v.length > 0;
        if (on) an_description_doubt(d, "", name);
    }
}

/* ---- tensors ---- */

static an_status find_tensor(const an_weights *w, const char *name, int64_t *index, an_safetensor *tensor) {
    for (*index = 0; *index < w->count; ++*index) {
        AN_TRY_RETURN(w->get(w, *index, tensor));
        if (!strcmp(tensor->name, name)) return AN_OK;
    }
    *index = -1;
    return AN_OK;
}

static an_status state_tensor(an_description *d, const an_weights *w, const char *name, an_fact fact) {
    an_safetensor tensor;
    int64_t index;
    AN_TRY_RETURN(find_tensor(w, name, &index, &tensor));
    an_description_state(d, fact, index >= 0);
    return AN_OK;
}

static an_status read_tensors(an_description *d, const an_weights *w) {
    an_safetensor tensor;
    int64_t index;
    AN_TRY_RETURN(find_tensor(w, "token_embd.weight", &index, &tensor));
    if (index >= 0 && tensor.ndims == 2 && !d->facts[AN_FACT_VOCABULARY].known)
        an_description_state(d, AN_FACT_VOCABULARY, (double)tensor.dims[0]);
    AN_TRY_RETURN(state_tensor(d, w, "output.weight", AN_FACT_TIED));
    an_description_state(d, AN_FACT_TIED, d->facts[AN_FACT_TIED].value == 0);
    AN_TRY_RETURN(state_tensor(d, w, "blk.0.attn_q.bias", AN_FACT_ATTENTION_BIAS));
    AN_TRY_RETURN(state_tensor(d, w, "blk.0.attn_output.bias", AN_FACT_OUTPUT_BIAS));
    AN_TRY_RETURN(state_tensor(d, w, "blk.0.ffn_gate.bias", AN_FACT_MLP_BIAS));
    return state_tensor(d, w, "blk.0.attn_q_norm.weight", AN_FACT_QUERY_KEY_NORM);
}

/* ---- rotary positions ---- */

/* Llama 3.1 and later write what each frequency is divided by, not the numbers that this comes from: these are the
 * same in all of them but for the factor. */
static an_status read_scaling(an_description *d, const an_weights *w) {
    enum { MOST_PAIRS = 512 };
    static const double low = 1, high = 4, original = 8192, two_pi = 6.28318530717958647693, rounding = 1e-4;
    an_context *ctx = d->ctx;
    float divisors[MOST_PAIRS];
    an_safetensor tensor;
    int64_t index;
    const double base = an_description_fact(d, AN_FACT_ROTARY_BASE), size = an_description_fact(d, AN_FACT_HEAD_SIZE);
    AN_TRY_RETURN(find_tensor(w, "rope_freqs.weight", &index, &tensor));
    if (index < 0) return AN_OK;
    const int64_t pairs = tensor.ndims == 1 ? tensor.dims[0] : 0;
    if (tensor.type->dtype != AN_DTYPE_F32 || pairs < 1 || pairs > MOST_PAIRS || (double)pairs * 2 != size)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: rope_freqs.weight does not have half as many numbers as a head",
                        d->path);
    AN_TRY_RETURN(w->read(w, index, &tensor, 0, pairs, divisors));
    const double factor = (double)divisors[pairs - 1];
    bool fits = factor >= 1;
    for (int64_t i = 0; i < pairs && fits; i++) {
        const double wave = two_pi * an_pow_f64(base, 2 * (double)i / size);
        const double share = (original / wave - low) / (high - low);
        const double expected = wave < original / high  ? 1
                                : wave > original / low ? factor
                                                        : 1 / ((1 - share) / factor + share);
        const double difference = (double)divisors[i] - expected;
        fits = difference <= rounding * expected && difference >= -rounding * expected;
    }
    if (!fits)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: rope_freqs.weight scales rotary positions in another way than Llama 3.1 does", d->path);
    if (factor == 1) return AN_OK;
    an_description_state(d, AN_FACT_ROTARY_FACTOR, factor);
    an_description_state(d, AN_FACT_ROTARY_LOW, low);
    an_description_state(d, AN_FACT_ROTARY_HIGH, high);
    an_description_state(d, AN_FACT_ROTARY_ORIGINAL, original);
    return AN_OK;
}

static an_status check_rotary(an_description *d, const an_gguf *g) {
    char name[NAME], word[AN_WORD] = "";
    const char *type = "none";
    size_t length = strlen(type);
    const double size = an_description_fact(d, AN_FACT_HEAD_SIZE);
    double factor = 0, turned = size, values = size;
    AN_TRY_RETURN(an_gguf_string(g, full_name(d, "rope.scaling.type", name), &type, &length));
    AN_TRY_RETURN(an_gguf_real(g, full_name(d, "rope.scaling.factor", name), &factor));
    AN_TRY_RETURN(an_gguf_real(g, full_name(d, "rope.dimension_count", name), &turned));
    AN_TRY_RETURN(an_gguf_real(g, full_name(d, "attention.value_length", name), &values));
    const bool none = length == 4 && !memcmp(type, "none", length);
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), none ? "linear" : type);
    if (!none || (factor != 0 && factor != 1))
        an_description_refuse(d, d->family->gguf, ".rope.scaling.type", word, "only rope_freqs.weight is supported");
    if (values != size) {
        an_text_number(word, sizeof word, values);
        an_description_refuse(d, d->family->gguf, ".attention.value_length", word,
                              "values must have the head size of keys");
    }
    if (size > 0) an_description_state(d, AN_FACT_ROTARY_SHARE, turned / size);
    return AN_OK;
}

/* ---- all of it ---- */

static an_status find_family(an_description *d, const an_gguf *g) {
    an_context *ctx = d->ctx;
    char names[256], word[AN_WORD] = "";
    const char *name = NULL;
    size_t length = 0;
    int64_t parts = 1;
    AN_TRY_RETURN(an_gguf_string(g, "general.architecture", &name, &length));
    if (!name)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: has no general.architecture, which says what kind of model it is",
                        d->path);
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), name);
    d->family = an_family_find_gguf(name, length);
    if (!d->family)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: general.architecture is '%s', but only %s are supported", d->path,
                        AN_QUOTE(word), an_family_list(names, sizeof names, true));
    AN_TRY_RETURN(an_gguf_integer(g, "split.count", &parts));
    if (parts > 1)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: is one of %lld files that a model was split into; merge them first", d->path,
                        (long long)parts);
    return AN_OK;
}

static void state_usual(an_description *d, an_fact fact, double value) {
    if (!d->facts[fact].known) an_description_state(d, fact, value);
}

an_status an_description_read_gguf(an_description *d, an_context *ctx, const char *path, const an_weights *weights) {
    const an_gguf *g = an_weights_gguf(weights);
    AN_TRY_RETURN(an_description_begin(d, ctx, path));
    AN_TRY_RETURN(find_family(d, g));
    AN_TRY_RETURN(read_facts(d, g));
    find_unknown(d, g);
    const double heads = an_description_fact(d, AN_FACT_HEADS), width = an_description_fact(d, AN_FACT_WIDTH);
    state_usual(d, AN_FACT_KV_HEADS, heads);
    state_usual(d, AN_FACT_HEAD_SIZE, heads > 0 ? width / heads : 0);
    state_usual(d, AN_FACT_ROTARY_BASE, 10000);
    state_usual(d, AN_FACT_WINDOW, 0);
    state_usual(d, AN_FACT_POSITIONS, an_description_fact(d, AN_FACT_CONTEXT));
    AN_TRY_RETURN(read_tensors(d, weights));
    if (d->family == &an_family_gpt2) {
        an_description_state(d, AN_FACT_TIED, 1);
    } else {
        AN_TRY_RETURN(check_rotary(d, g));
        AN_TRY_RETURN(read_scaling(d, weights));
    }
    AN_TRY_RETURN(d->problems.status);
    return d->unknown.status;
}
