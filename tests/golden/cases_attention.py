"""Attention, against scaled_dot_product_attention with the keys that a query sees written out as a mask."""

import torch
import torch.nn.functional as F

from case import Case


def visible(batch, queries, keys, causal=False, window=0, offset=0, documents=None):
    """Which keys a query sees, (batch, 1, queries, keys). Query i is at place offset + i among the keys."""
    i = offset + torch.arange(queries).view(-1, 1)
    j = torch.arange(keys)
    sees = torch.ones(batch, 1, queries, keys, dtype=torch.bool)
    if causal:
        sees &= j <= i
    if window:
        sees &= j > i - window
    if documents is not None:
        sees &= (documents[:, offset : offset + queries, None] == documents[:, None, :keys]).unsqueeze(1)
    return sees


def attend(q, k, v, sees, mask, scale):
    bias = torch.zeros(sees.shape, dtype=torch.float64).masked_fill(~sees, -torch.inf)
    if mask is not None:
        bias = bias + mask
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, bias, scale=scale)


def case(name, batch, heads, kv_heads, queries, keys, size, causal=False, window=0, offset=None, documents=None,
         mask=None, scale=None, merged=False):
    c = Case(f"attention.{name}")
    inputs = [
        c.param("q", c.normal(batch, heads, queries, size)),
        c.param("k", c.normal(batch, kv_heads, keys, size)),
        c.param("v", c.normal(batch, kv_heads, keys, size)),
        c.scalar("query_offset", offset) if offset is not None else None,
        c.input("documents", documents) if documents is not None else None,
        c.input("mask", c.normal(*mask)) if mask is not None else None,
    ]
    while inputs[-1] is None:
        inputs.pop()
    sees = visible(batch, queries, keys, causal, window, offset or 0, documents)
    bias = inputs[5].tensor if mask is not None else None
    scale = scale or size**-0.5
    y = c.op("attention", inputs, lambda q, k, v, *_: attend(q, k, v, sees, bias, scale), unread=1, causal=causal,
             scale=scale, window=window)
    if merged:  # heads back into one row, as models do: views of attention's output
        y = c.op("transpose", [y], lambda y: y.transpose(1, 2), axes=[0, 2, 1, 3])
        y = c.op("reshape", [y], lambda y: y.flatten(2), dims=[batch, queries, heads * size])
    return c.weigh(y)


def attention():
    rows = lambda *lengths: sum(([number] * length for number, length in enumerate(lengths)), [])
    packed = torch.tensor([rows(11, 1, 21), rows(30, 2, 1)], dtype=torch.int32)
    yield case("plain", 2, 3, 3, 9, 9, 8)
    yield case("causal", 1, 2, 2, 70, 70, 24, causal=True)
    yield case("cross", 2, 2, 2, 5, 19, 16)
    yield case("grouped", 2, 6, 2, 13, 13, 8, causal=True)
    yield case("one_kv_head", 1, 4, 1, 21, 21, 10, causal=True)
    yield case("scale", 1, 2, 2, 17, 17, 12, causal=True, scale=0.3)
    yield case("mask", 2, 3, 3, 11, 14, 8, mask=(2, 3, 11, 14))
    yield case("mask_broadcast", 2, 3, 3, 11, 14, 8, mask=(3, 1, 14))
    yield case("mask_causal", 1, 2, 1, 25, 25, 8, causal=True, mask=(1, 1, 25, 25))
    yield case("window", 1, 2, 2, 70, 70, 8, causal=True, window=13)
    yield case("window_of_two", 1, 2, 2, 7, 7, 4, causal=True, window=2)
    yield case("documents", 2, 2, 2, 33, 33, 8, causal=True, documents=packed)
    yield case("documents_both_ways", 2, 2, 1, 33, 33, 8, documents=packed)
    yield case("offset", 2, 2, 1, 6, 20, 8, causal=True, offset=14)
    yield case("offset_inside", 1, 2, 2, 5, 20, 8, causal=True, offset=3)  # the last keys are seen by no query
    yield case("offset_window", 1, 2, 2, 9, 40, 8, causal=True, offset=31, window=12)
    yield case("wide", 1, 1, 1, 6, 9, 256)
    yield case("narrow", 1, 3, 3, 12, 12, 1, causal=True)
    yield case("merged", 2, 3, 3, 7, 7, 4, causal=True, merged=True)
    yield case("one_query", 2, 2, 2, 1, 5, 8, causal=True, offset=4)


FAMILIES = (attention,)
