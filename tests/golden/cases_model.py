"""The ready-made models, written out with PyTorch's functions. The graph is not in the golden files: test_golden builds
it with the library's own function, from the options given here. Names of parameters are the library's, which for GPT-2
and Llama are those of the published weights; weights are [out, in]. BERT is computed by transformers.
"""

import torch
import torch.nn.functional as F

from case import Case
from cases_layer import rotate

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "tanh": torch.tanh, "silu": F.silu}  # in the order of an_activation
LOSSES = ("cross_entropy", "squared")  # in the order of an_loss_kind
IGNORED = -100


class Model(Case):
    """A case without a graph: parameters are made where they are first used."""

    def __init__(self, name, **options):
        super().__init__(name)
        self.options = options
        self.training = True
        for key, value in options.items():
            if key == "activation":
                value = list(ACTIVATIONS).index(value)
            elif key == "loss":
                value = LOSSES.index(value)
            self.option(key, value)

    def option(self, key, value):
        self.array("option", key, torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64))

    def weight(self, name, *dims, scale):
        if name not in self.params:
            self.param(name, self.normal(*dims, scale=scale))
        return self.params[name]

    def vector(self, name, size, around=0.0):
        if name not in self.params:
            self.param(name, around + self.normal(size, scale=0.2))
        return self.params[name]

    def linear(self, x, name, features, bias=True, scale=1.0):
        weight = self.weight(f"{name}.weight", features, x.shape[-1], scale=scale * x.shape[-1] ** -0.5)
        return F.linear(x, weight, self.vector(f"{name}.bias", features) if bias else None)

    def batch_norm(self, x, name):
        channels = x.shape[1]
        weight, bias = self.vector(f"{name}.weight", channels, 1.0), self.vector(f"{name}.bias", channels)
        names = f"{name}.running_mean", f"{name}.running_var"
        if self.training:  # with momentum 1 the running statistics become the batch's
            statistics = [torch.zeros(channels).double() for _ in names]
            y = F.batch_norm(x, *statistics, weight, bias, training=True, momentum=1.0)
            for state, tensor in zip(names, statistics):
                self.array("statistic", state, tensor)
            self.states[names[0]] = self.state(names[0], self.normal(channels, scale=0.3)).tensor
            self.states[names[1]] = self.state(names[1], self.uniform(0.5, 1.5, channels)).tensor
            return y
        return F.batch_norm(x, *(self.states[state] for state in names), weight, bias)

    def finish(self, forward, targets, output, **sizes):
        """`forward` gives logits or predictions; `sizes` are the symbols: size in this run, and maximum."""
        for name, (size, maximum) in sizes.items():
            self.symbol(name, size, maximum)
        self.states = {}
        squared = self.options.get("loss") == "squared"

        def loss_of(y):
            if squared:
                return F.mse_loss(y, targets)
            return F.cross_entropy(y.view(-1, y.shape[-1]), targets.view(-1).long(), ignore_index=IGNORED)

        self.loss = loss_of(forward())
        self.array("targets", "count", torch.tensor(targets.numel() if squared else int((targets != IGNORED).sum())))
        self.training = False
        with torch.no_grad():
            y = forward()
            self.array("evaluation_loss", "loss", loss_of(y))
        self.outputs[output] = y
        self.lines.clear()
        return self


# ---- mlp and cnn ----


def mlp():
    for name, loss, activation, batch_norm, batch, inputs, hidden, outputs in (
        ("batch_norm", "cross_entropy", "relu", True, 19, 13, [24, 17], 7),
        ("regression", "squared", "gelu", False, 11, 5, [16, 9, 12], 3),
        ("without_hidden", "squared", "tanh", False, 6, 4, [], 2),
    ):
        c = Model(f"mlp.{name}", inputs=inputs, outputs=outputs, hidden=hidden, activation=activation,
                  batch_norm=batch_norm, loss=loss)
        x = c.input("x", c.normal(batch, inputs)).tensor
        targets = c.normal(batch, outputs) if loss == "squared" else c.integers(0, outputs, batch, dtype=torch.int32)
        targets = c.input("targets", targets).tensor

        def forward():
            y = x
            for i, width in enumerate(hidden):
                y = c.linear(y, f"hidden.{i}", width, bias=not batch_norm)  # batch norm takes a bias out again
                if batch_norm:
                    y = c.batch_norm(y, f"hidden.{i}.norm")
                y = ACTIVATIONS[activation](y)
            return c.linear(y, "output", outputs)

        yield c.finish(forward, targets, "y", batch=(batch, batch + 4))


def cnn():
    for name, activation, batch_norm, batch, channels, height, width in (
        ("plain", "relu", False, 5, 2, 13, 14),
        ("batch_norm", "silu", True, 7, 3, 8, 9),
    ):
        filters, hidden, classes = [4, 6], 15, 5
        c = Model(f"cnn.{name}", channels=channels, height=height, width=width, classes=classes, filters=filters,
                  hidden=hidden, activation=activation, batch_norm=batch_norm)
        x = c.input("image", c.normal(batch, channels, height, width)).tensor
        targets = c.input("targets", c.integers(0, classes, batch, dtype=torch.int32)).tensor

        def forward():
            y = x
            for i, count in enumerate(filters):
                scale = (9 * y.shape[1]) ** -0.5
                weight = c.weight(f"convolution.{i}.weight", count, y.shape[1], 3, 3, scale=scale)
                bias = None if batch_norm else c.vector(f"convolution.{i}.bias", count)
                y = F.conv2d(y, weight, bias, padding=1)
                if batch_norm:
                    y = c.batch_norm(y, f"convolution.{i}.norm")
                y = F.max_pool2d(ACTIVATIONS[activation](y), 2)
            y = ACTIVATIONS[activation](c.linear(y.flatten(1), "hidden", hidden))
            return c.linear(y, "output", classes)

        yield c.finish(forward, targets, "logits", batch=(batch, 8))


# ---- language models ----


def heads_of(x, heads):
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def attend(q, k, v):
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


def language_case(c, vocabulary, batch, length, ignored_count):
    """Inputs and targets, the next token each; some are ignored, as in prompts and padding."""
    text = c.integers(0, vocabulary, batch, length + 1, dtype=torch.int32)
    tokens, targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    targets.view(-1)[torch.from_numpy(c.random.permutation(batch * length)[:ignored_count])] = IGNORED
    return c.input("tokens", tokens).tensor.long(), c.input("targets", targets).tensor


def gpt2():
    layers, heads, width, context, vocabulary = 2, 3, 24, 20, 67
    for name, batch, length, ignored_count in (("plain", 3, 17, 0), ("ignored", 2, 20, 23)):
        c = Model(f"gpt2.{name}", layers=layers, heads=heads, width=width, context=context, vocabulary=vocabulary)
        tokens, targets = language_case(c, vocabulary, batch, length, ignored_count)
        norm = lambda x, name: F.layer_norm(x, (width,), c.vector(f"{name}.weight", width, 1.0),
                                            c.vector(f"{name}.bias", width))

        def forward():
            table = c.weight("wte.weight", vocabulary, width, scale=0.4)
            x = F.embedding(tokens, table) + c.weight("wpe.weight", context, width, scale=0.4)[:length]
            for i in range(layers):
                h = f"h.{i}"
                q, k, v = c.linear(norm(x, f"{h}.ln_1"), f"{h}.attn.c_attn", 3 * width).split(width, -1)
                y = attend(heads_of(q, heads), heads_of(k, heads), heads_of(v, heads))
                x = x + c.linear(y, f"{h}.attn.c_proj", width)
                y = F.gelu(c.linear(norm(x, f"{h}.ln_2"), f"{h}.mlp.c_fc", 4 * width), approximate="tanh")
                x = x + c.linear(y, f"{h}.mlp.c_proj", width)
            return F.linear(norm(x, "ln_f"), table)

        yield c.finish(forward, targets, "logits", batch=(batch, 3), tokens=(length, context))


def llama():
    layers, heads, kv_heads, width, hidden, context, vocabulary = 2, 4, 2, 24, 40, 32, 61
    base, epsilon = 5000.0, 1e-6
    for name, tied, batch, length in (("plain", False, 3, 19), ("tied", True, 2, 32)):
        c = Model(f"llama.{name}", layers=layers, heads=heads, kv_heads=kv_heads, width=width, hidden=hidden,
                  context=context, vocabulary=vocabulary, rotary_base=base, epsilon=epsilon, tied=tied)
        tokens, targets = language_case(c, vocabulary, batch, length, 0)
        norm = lambda x, name: F.rms_norm(x, (width,), c.vector(f"{name}.weight", width, 1.0), epsilon)
        size = width // heads

        def forward():
            table = c.weight("model.embed_tokens.weight", vocabulary, width, scale=0.5)
            x = F.embedding(tokens, table)
            for i in range(layers):
                part = f"model.layers.{i}"
                y = norm(x, f"{part}.input_layernorm")
                q, k, v = (heads_of(c.linear(y, f"{part}.self_attn.{letter}_proj", count * size, False), count)
                           for letter, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
                y = attend(rotate(q, base), rotate(k, base), v)
                x = x + c.linear(y, f"{part}.self_attn.o_proj", width, False)
                y = norm(x, f"{part}.post_attention_layernorm")
                gate = F.silu(c.linear(y, f"{part}.mlp.gate_proj", hidden, False))
                y = gate * c.linear(y, f"{part}.mlp.up_proj", hidden, False)
                x = x + c.linear(y, f"{part}.mlp.down_proj", width, False)
            x = norm(x, "model.norm")
            return F.linear(x, table) if tied else c.linear(x, "lm_head", vocabulary, False)

        yield c.finish(forward, targets, "logits", batch=(batch, 3), tokens=(length, context))


# ---- BERT, by transformers ----

POOLINGS = ("pooler", "mean", "first")  # in the order of an_bert_pooling


def bert_parameters(reference):
    """Names and shapes of transformers' parameters, with the library's names."""
    return {name.removeprefix("bert."): p.shape for name, p in reference.named_parameters()}


def bert():
    from transformers import BertConfig, BertForSequenceClassification

    layers, heads, width, hidden, context, vocabulary, token_types, classes = 2, 3, 24, 36, 20, 53, 2, 5
    settings = BertConfig(vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                          intermediate_size=hidden, max_position_embeddings=context, type_vocab_size=token_types,
                          num_labels=classes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    for name, pooling, batch, length in (("pooler", "pooler", 4, 17), ("mean", "mean", 3, 20), ("first", "first", 5, 9)):
        c = Model(f"bert.{name}", layers=layers, heads=heads, width=width, hidden=hidden, context=context,
                  vocabulary=vocabulary, token_types=token_types, classes=classes, pooling=POOLINGS.index(pooling))
        reference = BertForSequenceClassification._from_config(settings, attn_implementation="eager").double().eval()
        lengths = c.integers(3, length + 1, batch)
        lengths[0] = length
        place = torch.arange(length)
        mask = (place < lengths[:, None]).int()
        tokens = c.integers(1, vocabulary, batch, length, dtype=torch.int32) * mask
        types = (place >= lengths[:, None] // 2).int() * mask
        c.input("tokens", tokens), c.input("token_types", types), c.input("mask", mask)
        targets = c.input("targets", c.integers(0, classes, batch, dtype=torch.int32)).tensor
        for parameter, shape in bert_parameters(reference).items():
            if parameter.startswith("pooler.") and pooling != "pooler":
                continue
            if len(shape) == 1:
                c.vector(parameter, *shape, 1.0 if "LayerNorm.weight" in parameter else 0.0)
            else:
                c.weight(parameter, *shape, scale=0.4 if "embeddings" in parameter else shape[1] ** -0.5)

        def forward():
            inputs = {"input_ids": tokens.long(), "token_type_ids": types.long(), "attention_mask": mask.long()}
            head = {n: p for n, p in c.params.items() if n.startswith("classifier.")}
            body = {f"bert.{n}": p for n, p in c.params.items() if n not in head}
            if pooling == "pooler":
                return torch.func.functional_call(reference, {**body, **head}, (), inputs).logits
            body = {n.removeprefix("bert."): p for n, p in body.items()}
            x = torch.func.functional_call(reference.bert, body, (), inputs).last_hidden_state
            if pooling == "mean":
                x = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            else:
                x = x[:, 0]
            return F.linear(x, head["classifier.weight"], head["classifier.bias"])

        yield c.finish(forward, targets, "logits", batch=(batch, 6), tokens=(length, context))


FAMILIES = (mlp, cnn, gpt2, llama, bert)
