#include "interchange/model_facts.h"

#include <string.h>

#include "base/word.h"
#include "kernels/attention/attention.h"
#include "kernels/norm/norm.h"
#include "kernels/rotary/rotary.h"
#include "ops/ops.h"

static void note(an_model_facts *f, an_fact fact, double value) {
    if (f->facts[fact].known && f->facts[fact].value != value) f->facts[fact].varies = true;
    f->facts[fact].known = true;
    f->facts[fact].value = value;
}

/* Whether a layer's attention stands a second time, for the reference of preferences (pass/dpo.c): right after
 * itself, at the same place of the model. */
static bool is_repeated(const an_node *node, const an_node *before) {
    return before && *node->path && node->block == before->block && !strcmp(node->path, before->path);
}

static void note_attention(an_model_facts *f, const an_node *node, const an_node *before) {
    const an_attention_attributes *a = node->attributes;
    const an_result *q = an_node_input(node, AN_ATTENTION_Q), *k = an_node_input(node, AN_ATTENTION_K);
    if (!q || !k) return;
    const double size = (double)q->dims[3];
    const double square = a->scale * a->scale * size, rounding = 1e-6;
    f->facts[AN_FACT_LAYERS].known = true;
    f->facts[AN_FACT_LAYERS].value += !is_repeated(node, before);
    note(f, AN_FACT_HEAD_SIZE, size);
    note(f, AN_FACT_WINDOW, (double)a->window);
    note(f, AN_FACT_SCALED, square > 1 - rounding && square < 1 + rounding);
    if (q->dims[1] > 0) note(f, AN_FACT_HEADS, (double)q->dims[1]); /* below 0: a symbol */
    if (k->dims[1] > 0) note(f, AN_FACT_KV_HEADS, (double)k->dims[1]);
}

static void note_rotary(an_model_facts *f, const an_node *node) {
    const an_rotary_attributes *a = node->attributes;
    const an_result *src = an_node_input(node, 0);
    const bool scaled = a->factor != 0;
    if (!src) return;
    note(f, AN_FACT_ROTARY_BASE, a->base);
    note(f, AN_FACT_ROTARY_SHARE, (double)a->rotated / (double)src->dims[src->ndims - 1]);
    note(f, AN_FACT_ROTARY_FACTOR, a->factor);
    note(f, AN_FACT_ROTARY_LOW, scaled ? a->low_factor : 0);
    note(f, AN_FACT_ROTARY_HIGH, scaled ? a->high_factor : 0);
    note(f, AN_FACT_ROTARY_ORIGINAL, scaled ? (double)a->original_context : 0);
}

static void note_node(an_model_facts *f, const an_graph *g, const an_node *node) {
    if (node->op == &an_op_rotary) note_rotary(f, node);
    if (node->op == &an_op_layer_norm || node->op == &an_op_rms_norm)
        note(f, AN_FACT_EPSILON, ((const an_norm_attributes *)node->attributes)->epsilon);
    const bool pools = !strcmp(g->blocks[node->block].name, "pooler"); /* its tanh is of BERT's head */
    for (int i = 0; an_activation_op(i) && !pools; i++)
        if (!strcmp(node->op->name, an_activation_op(i))) note(f, AN_FACT_ACTIVATION, i);
}

/* Sizes that the names of published models tell. */
static void note_parameter(an_model_facts *f, const char *name, const an_result *e) {
    static const struct {
        const char *layer;
        an_fact fact;
    } biased[] = {{".self_attn.q_proj.", AN_FACT_ATTENTION_BIAS},
                  {".self_attn.o_proj.", AN_FACT_OUTPUT_BIAS},
                  {".mlp.gate_proj.", AN_FACT_MLP_BIAS}};
    const double width = f->facts[AN_FACT_WIDTH].known ? f->facts[AN_FACT_WIDTH].value : 0;
    if (e->ndims == 2 && (an_ends_in(name, "wte.weight") || an_ends_in(name, "embed_tokens.weight") ||
                          an_ends_in(name, "word_embeddings.weight"))) {
        note(f, AN_FACT_VOCABULARY, (double)e->dims[0]);
        note(f, AN_FACT_WIDTH, (double)e->dims[1]);
    }
    if (e->ndims == 2 && an_ends_in(name, "wpe.weight")) note(f, AN_FACT_POSITIONS, (double)e->dims[0]);
    if (e->ndims == 2 && an_ends_in(name, "token_type_embeddings.weight"))
        note(f, AN_FACT_TOKEN_TYPES, (double)e->dims[0]);
    if (e->ndims == 2 && width > 0 &&
        (an_ends_in(name, ".mlp.c_fc.weight") || an_ends_in(name, ".mlp.gate_proj.weight") ||
         an_ends_in(name, ".intermediate.dense.weight")))
        note(f, AN_FACT_HIDDEN, (double)e->dims[0] * (double)e->dims[1] / width); /* [in, out] or [out, in] */
    if (an_ends_in(name, ".self_attn.q_norm.weight")) note(f, AN_FACT_QUERY_KEY_NORM, 1);
    for (size_t i = 0; i < sizeof biased / sizeof *biased; i++) {
        if (!strstr(name, biased[i].layer)) continue;
        f->facts[biased[i].fact].known = true;
        if (an_ends_in(name, ".bias")) f->facts[biased[i].fact].value = 1;
    }
}

void an_model_facts_of(an_model_facts *facts, const an_graph *graph) {
    bool head = false;
    *facts = (an_model_facts){0};
    const an_node *attention = NULL;
    for (const an_node *node = graph->first; node; node = node->next) {
        note_node(facts, graph, node);
        if (node->op != &an_op_attention) continue;
        note_attention(facts, node, attention);
        attention = node;
    }
    for (size_t i = 0; i < graph->parameter_count; i++) {
        note_parameter(facts, graph->parameters[i].name, an_node_output(graph->parameters[i].node, 0));
        head = head || !strcmp(graph->parameters[i].name, "lm_head.weight");
    }
    facts->facts[AN_FACT_TIED].known = facts->facts[AN_FACT_VOCABULARY].known;
    facts->facts[AN_FACT_TIED].value = !head;
}
