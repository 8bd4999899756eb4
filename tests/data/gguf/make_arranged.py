#!/usr/bin/env python3
"""Prints the rows of tests/unit/models/arrange.c: what each arrangement makes of numbers counted up from 0.

The formulas are those of modify_tensors() in llama.cpp's conversion/, spelled with numpy.
"""
import numpy as np


def permute(x, heads):
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def qkv_of_heads(x, heads):
    parts = x.reshape(heads, 3, x.shape[0] // heads // 3, *x.shape[1:])
    return np.concatenate([parts[:, i].reshape(-1, *x.shape[1:]) for i in range(3)])


def qkv_of_groups(x, heads, groups):
    parts = x.reshape(groups, heads // groups + 2, -1, x.shape[1])
    rows = [parts[:, :-2], parts[:, [-2]], parts[:, [-1]]]
    return np.concatenate([r.reshape(-1, x.shape[1]) for r in rows])


def mla(x, heads, nope, value):
    parts = x.reshape(heads, nope + value, x.shape[1])
    return parts[:, :nope].transpose(0, 2, 1), parts[:, nope:]


def count(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def show(name, source, result, **dimensions):
    fields = "".join(f", .{k} = {v}" for k, v in dimensions.items())
    text = lambda x: "{" + ", ".join(str(int(v)) for v in x) + "}"
    print(f"    {{{name}, {source.ndim}, {text(source.shape)}, {result.ndim}, {text(result.shape)},"
          f" {text(result.ravel())}, {{{fields[2:] or '0'}}}}},")


show("AS_IS", count(2, 3), count(2, 3))
show("ROTARY_Q", count(8, 2), permute(count(8, 2), 2), n_heads=2)
show("ROTARY_Q", count(12), permute(count(12), 3), n_heads=3)
show("ROTARY_K", count(4, 1), permute(count(4, 1), 1), n_heads=4, n_kv_heads=1)
show("PLUS_ONE", count(5), count(5) + 1)
show("TRANSPOSED", count(2, 3), count(2, 3).T)
show("TRANSPOSED", count(3), count(3))
show("SQUEEZED", count(3, 1, 2), count(3, 2))
show("QKV_OF_HEADS", count(12, 2), qkv_of_heads(count(12, 2), 2), n_heads=2)
show("QKV_OF_HEADS", count(6), qkv_of_heads(count(6), 2), n_heads=2)
show("QKV_OF_GROUPS", count(8, 2), qkv_of_groups(count(8, 2), 4, 2), n_heads=4, n_kv_heads=2)
show("QKV_OF_GROUPS", count(6, 2), qkv_of_groups(count(6, 2), 4, 1), n_heads=4, shared_kv="true")
show("FIRST_HALF", count(2, 4, 1), count(2, 4, 1)[:, :2])
show("SECOND_HALF", count(4, 2), count(4, 2)[2:])
show("EVEN_MEMBERS", count(2, 4), count(2, 4)[:, ::2])
show("ODD_MEMBERS", count(2, 4), count(2, 4)[:, 1::2])
show("TRANSPOSED_EVEN", count(1, 2, 4), count(1, 2, 4).swapaxes(1, 2)[:, ::2])
show("TRANSPOSED_ODD", count(1, 2, 4), count(1, 2, 4).swapaxes(1, 2)[:, 1::2])
show("MLA_KEYS", count(10, 2), mla(count(10, 2), 2, 3, 2)[0], n_kv_heads=2, nope=3, v_head=2)
show("MLA_VALUES", count(10, 2), mla(count(10, 2), 2, 3, 2)[1], n_kv_heads=2, nope=3, v_head=2)
show("WITHOUT_PADDING", count(4, 2), count(4, 2)[2:], n_padding=2)
show("WITHIN_VOCABULARY", count(4, 2), count(4, 2)[:3], n_tokens=3)
show("WITHIN_VOCABULARY", count(4, 2), count(4, 2)[:9], n_tokens=9)
show("ROWS_OF_EXPERTS", count(4, 3), count(4, 3).reshape(2, 2, 3), n_experts=2)
show("COLUMNS_OF_EXPERTS", count(4, 3), count(4, 3).reshape(2, 2, 3).swapaxes(1, 2), n_experts=2)
