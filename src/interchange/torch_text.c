#include "interchange/torch_text.h"

#include <stdlib.h>
#include <string.h>

#include "interchange/model_nodes.h"
#include "interchange/torch_nodes.h"

static const char window_text[] =
    "\n\ndef window(a, size, stride):\n"
    "    \"\"\"How many places a window of this size has, moved by the stride over a.\"\"\"\n"
    "    return (a - size) // stride + 1\n";

static const char rotary_text[] =
    "\n\ndef rotary(x, base, rotated, position=0, factor=0, low_factor=0, high_factor=0, original_context=0):\n"
    "    \"\"\"Rotary positions: the first half of the turning part is paired with its second half.\"\"\"\n"
    "    frequency = base ** -(torch.arange(0, rotated, 2, dtype=torch.float64, device=x.device) / rotated)\n"
    "    if factor:\n"
    "        length = 2 * math.pi / frequency\n"
    "        share = (original_context / length - low_factor) / (high_factor - low_factor)\n"
    "        between = (1 - share) * frequency / factor + share * frequency\n"
    "        between = torch.where(length > original_context / low_factor, frequency / factor, between)\n"
    "        frequency = torch.where(length < original_context / high_factor, frequency, between)\n"
    "    place = position + torch.arange(x.shape[-2], dtype=torch.float64, device=x.device)\n"
    "    angle = torch.outer(place, frequency)\n"
    "    cosine, sine = (f(angle).repeat(1, 2).to(x.dtype) for f in (torch.cos, torch.sin))\n"
    "    turning, resting = x[..., :rotated], x[..., rotated:]\n"
    "    first, second = turning.chunk(2, -1)\n"
    "    return torch.cat((turning * cosine + torch.cat((-second, first), -1) * sine, resting), -1)\n";

static const char attention_text[] =
    "\n\ndef attention(q, k, v, scale, causal=False, window=0, offset=0, documents=None, mask=None, dropout=0.0):\n"
    "    \"\"\"Query i is at place offset + i among the keys. It sees `window` keys back (0: all), of its document "
    "only.\"\"\"\n"
    "    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))\n"
    "    i = offset + torch.arange(q.shape[2], device=q.device).view(-1, 1)\n"
    "    j = torch.arange(k.shape[2], device=q.device)\n"
    "    sees = (j <= i) if causal else torch.ones_like(j <= i)\n"
    "    if window:\n"
    "        sees = sees & (j > i - window)\n"
    "    if documents is not None:\n"
    "        sees = sees & (documents[:, None, :, None] == documents[:, None, None, :])\n"
    "    bias = torch.zeros(sees.shape, dtype=q.dtype, device=q.device).masked_fill(~sees, -torch.inf)\n"
    "    bias = bias if mask is None else bias + mask\n"
    "    return F.scaled_dot_product_attention(q, k, v, bias, dropout, scale=scale)\n";

/* ---- which nodes are needed ---- */

static bool is_source(const an_node *node) {
    return (node->op->flags & AN_OP_SOURCE) != 0;
}

/* Marks what outputs depend on, from the last node to the first, and counts how often each value is read. */
static an_status mark(an_torch *t) {
    const an_graph *g = t->graph;
    bool any = false;
    for (an_node *n = g->first; n; n = n->next) {
        n->mark = an_node_is_wanted(n);
        any = any || n->mark;
    }
    if (!any) return AN_ERROR(g->ctx, AN_ERR_UNSUPPORTED, "the model has no output: set one with an_graph_set_output");
    for (an_node *n = g->last; n; n = n->previous) {
        if (!n->mark) continue;
        const bool constant = an_node_is_constant(n);
        const bool is_known = an_torch_is_known(n->op);
        if (!is_known && !an_node_is_wanted(n) && !an_node_is_parameter(n) && !an_node_is_input(n))
            return AN_ERROR(g->ctx, AN_ERR_UNSUPPORTED, "the op '%s'%s%s cannot be exported to PyTorch", n->op->name,
                            *n->path ? " in " : "", n->path);
        if (an_node_is_input(n) && !constant && !t->device) t->device = an_node_name(n);
        for (int i = 0; i < n->input_count; i++) {
            const an_result *r = n->inputs[i].result;
            if (!r || (is_known && !an_torch_reads(n->op, i))) continue;
            r->node->mark = 1;
            t->uses[r->number]++;
            if (r->output >= an_torch_outputs(r->node))
                return AN_ERROR(g->ctx, AN_ERR_UNSUPPORTED,
                                "the model reads output %d of the op '%s', which PyTorch does not have", r->output,
                                r->node->op->name);
        }
    }
    return AN_OK;
}

/* ---- variables ---- A value that nobody reads any more gives its variable to the next one, and
 * PyTorch gets its memory back. */

static void let_go(an_torch *t, const an_node *node) {
    for (int i = 0; i < node->input_count; i++) {
        const an_result *r = node->inputs[i].result;
        if (!r || (an_torch_is_known(node->op) && !an_torch_reads(node->op, i))) continue;
        if (--t->uses[r->number] == 0 && t->slots[r->number] >= 0) t->taken[t->slots[r->number]] = false;
    }
}

static void take(an_torch *t, const an_result *r) {
    int slot = 0;
    while (t->taken[slot]) slot++;
    t->taken[slot] = true;
    t->slots[r->number] = slot;
}

static void write_node(an_torch *t, const an_node *node, an_text *line) {
    an_text *text = t->text;
    const int count = an_torch_outputs(node);
    t->text = line; /* the expression has the variables of before */
    an_torch_expression(t, node);
    t->text = text;
    let_go(t, node);
    an_text_add(text, "        ");
    for (int i = 0; i < count; i++) {
        take(t, &node->outputs[i]);
        an_text_add(text, "%sx%d", i ? ", " : "", t->slots[node->outputs[i].number]);
    }
    for (int i = 0; i < count; i++) /* a part that nobody reads */
        if (t->uses[node->outputs[i].number] == 0) t->taken[t->slots[node->outputs[i].number]] = false;
    an_text_add(text, " = %s\n", line->status == AN_OK ? line->bytes : "");
    if (line->status != AN_OK) text->status = line->status;
    line->length = 0;
}

/* ---- the class ---- */

static void write_parameters(an_torch *t) {
    an_text_add(t->text, "\n\nPARAMETERS = {\n");
    for (const an_node *n = t->graph->first; n; n = n->next) {
        if (!an_node_is_parameter(n)) continue;
        const an_result *r = &n->outputs[0];
        const bool *frozen = an_node_attribute(n, "frozen", AN_ATTRIBUTE_BOOL);
        const char *kind = !frozen ? "BUFFER" : *frozen ? "FROZEN" : "TRAINED";
        an_text_add(t->text, "    ");
        an_torch_string(t->text, an_node_name(n));
        an_text_add(t->text, ": (%s, %s, [", kind, an_torch_dtype(r->dtype));
        for (int d = 0; d < r->ndims; d++) {
            if (d > 0) an_text_add(t->text, ", ");
            an_torch_dimension(t, r->dims[d]);
        }
        an_text_add(t->text, "]),\n");
    }
    an_text_add(t->text, "}\n");
}

static const char class_text[] =
    "\n\nclass Model(torch.nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        for name, (kind, dtype, shape) in PARAMETERS.items():\n"
    "            *path, last = name.split(\".\")\n"
    "            module = self\n"
    "            for part in path:\n"
    "                if part not in module._modules:\n"
    "                    module.add_module(part, torch.nn.Module())\n"
    "                module = module._modules[part]\n"
    "            tensor = torch.zeros(shape, dtype=dtype)\n"
    "            if kind == BUFFER:\n"
    "                module.register_buffer(last, tensor)\n"
    "            else:\n"
    "                module.register_parameter(last, torch.nn.Parameter(tensor, requires_grad=kind == TRAINED))\n";

static const char load_text[] = "\n\ndef load(path=pathlib.Path(__file__).parent / \"model.safetensors\"):\n"
                                "    model = Model()\n"
                                "    model.load_state_dict(safetensors.torch.load_file(path))\n"
                                "    return model.eval()\n";

/* For remarks: nothing that could end one. */
static void write_plain(an_text *text, const char *string) {
    for (; *string; string++) {
        const char c = *string;
        an_text_add(text, "%c", c == '"' || c == '\\' || (unsigned char)c < ' ' ? '_' : c);
    }
}

/* n_batch = tokens.shape[0], for each symbol that an input has. */
static an_status write_sizes(an_torch *t) {
    an_graph *g = t->graph;
    for (size_t s = 0; s < g->dimensions.symbol_count; s++) {
        const char *symbol = g->dimensions.symbols[s].name;
        const an_dim dim = an_symbol_dim(g, symbol);
        bool found = false;
        for (const an_node *n = g->first; n && !found; n = n->next) {
            if (!n->mark || !an_node_is_input(n)) continue;
            for (int d = 0; d < n->outputs[0].ndims && !found; d++) {
                if (n->outputs[0].dims[d] != dim) continue;
                found = true;
                an_text_add(t->text, "        n_%s = ", symbol);
                an_torch_argument(t->text, an_node_name(n));
                an_text_add(t->text, ".shape[%d]\n", d);
            }
        }
        if (!found) an_text_add(t->text, "        n_%s = None  # no input has this size\n", symbol);
    }
    return t->text->status;
}

static void write_return(an_torch *t) {
    int count = 0;
    for (const an_node *n = t->graph->first; n; n = n->next) count += an_node_is_wanted(n);
    an_text_add(t->text, count > 1 ? "        return {" : "        return ");
    const char *separator = "";
    for (const an_node *n = t->graph->first; n; n = n->next) {
        if (!an_node_is_wanted(n)) continue;
        an_text_add(t->text, "%s", separator);
        separator = ", ";
        if (count > 1) {
            an_torch_string(t->text, an_node_name(n));
            an_text_add(t->text, ": ");
        }
        an_torch_value(t, n->inputs[0].result);
    }
    an_text_add(t->text, count > 1 ? "}\n" : "\n");
}

static an_status write_forward(an_torch *t) {
    an_context *ctx = t->graph->ctx;
    an_text line;
    int block = 0;
    an_text_add(t->text, "\n    def forward(self");
    for (const an_node *n = t->graph->first; n; n = n->next) {
        if (!n->mark || !an_node_is_input(n)) continue;
        an_text_add(t->text, ", ");
        an_torch_argument(t->text, an_node_name(n));
    }
    an_text_add(t->text, "):\n        p = dict(self.named_parameters()) | dict(self.named_buffers())\n");
    AN_TRY_RETURN(write_sizes(t));
    an_text_init(&line, ctx);
    for (const an_node *n = t->graph->first; n && t->text->status == AN_OK; n = n->next) {
        const bool constant = an_node_is_constant(n);
        if (!n->mark || an_node_is_wanted(n) || (is_source(n) && !constant)) continue;
        const int own = an_graph_block_of(t->graph, n->block);
        if (own != block && own > 0) {
            an_text_add(t->text, "        # ");
            write_plain(t->text, t->graph->blocks[own].path);
            an_text_add(t->text, "\n");
        }
        block = own;
        write_node(t, n, &line);
    }
    an_text_destroy(&line);
    if (t->text->status == AN_OK) write_return(t);
    return t->text->status;
}

/* ---- all of it ---- */

static void write_title(an_text *text, const char *title) {
    an_text_add(text, "\"\"\"");
    write_plain(text, title);
    an_text_add(text,
                "\n\nIt needs torch and safetensors. The parameters are in model.safetensors beside this file:\n\n"
                "    import model\n\n    net = model.load()\n    y = net(x)\n\"\"\"\n");
}

static an_status write_module(an_torch *t, const char *title) {
    an_context *ctx = t->graph->ctx;
    an_text *whole = t->text;
    an_text body;
    an_text_init(&body, ctx);
    t->text = &body;
    an_status status = write_forward(t);
    t->text = whole;
    if (status == AN_OK) {
        write_title(whole, title);
        an_text_add(whole,
                    "%simport pathlib\n\nimport safetensors.torch\nimport torch\nimport torch.nn.functional as F\n\n"
                    "TRAINED, FROZEN, BUFFER = range(3)\n",
                    strstr(body.bytes, "= rotary(") ? "import math\n" : "");
        write_parameters(t);
        if (strstr(body.bytes, "window(")) an_text_add(whole, "%s", window_text);
        if (strstr(body.bytes, "= rotary(")) an_text_add(whole, "%s", rotary_text);
        if (strstr(body.bytes, "= attention(")) an_text_add(whole, "%s", attention_text);
        an_text_add(whole, "%s", class_text);
        an_text_bytes(whole, body.bytes, body.length);
        an_text_add(whole, "%s", load_text);
        status = whole->status;
    }
    an_text_destroy(&body);
    return status;
}

an_status an_torch_write(an_text *text, an_graph *graph, const char *title) {
    an_status status;
    an_context *ctx = graph->ctx;
    an_torch t = {.graph = graph, .text = text, .count = graph->result_count};
    AN_TRY(an_alloc(ctx, (void **)&t.slots, t.count, sizeof *t.slots));
    AN_TRY(an_alloc(ctx, (void **)&t.uses, t.count, sizeof *t.uses));
    AN_TRY(an_alloc(ctx, (void **)&t.taken, t.count, sizeof *t.taken));
    for (size_t i = 0; i < t.count; i++) t.slots[i] = -1;
    AN_TRY(mark(&t));
    AN_TRY(write_module(&t, title));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&t.taken, t.count, sizeof *t.taken);
    an_release(ctx, (void **)&t.uses, t.count, sizeof *t.uses);
    an_release(ctx, (void **)&t.slots, t.count, sizeof *t.slots);
    return status;
}
