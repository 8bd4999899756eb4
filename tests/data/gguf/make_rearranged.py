#!/usr/bin/env python3
"""Prints the rows of tests/unit/models/relation/rearrangement.c: what numpy makes of numbers counted up from 0.

The formulas are those of modify_tensors() in llama.cpp's conversion/, and of tensor parallelism, spelled with numpy. `backs` is
what the way back gives where that is not the source itself, `cut` says that it does not know the sizes.
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


def show(notation, sources, results, backs=None, *, cut=False, **sizes):
    text = lambda x: "{" + ", ".join(str(int(v)) for v in x) + "}"
    tensor = lambda x: f"{{{x.ndim}, {text(x.shape) if x.ndim else '{0}'}, {text(x.ravel())}}}"
    tensors = lambda xs: "{" + ", ".join(tensor(x) for x in (xs if isinstance(xs, (list, tuple)) else [xs])) + "}"
    given = ", ".join('{"%s", %d%s}' % (k, *((v, "") if isinstance(v, int) else (v[0], ", " + v[1]))) for k, v in sizes.items())
    back = tensors(sources if backs is None else backs)
    print(f'    {{"{notation}",\n     {{{given or "{0}"}}},\n     {str(cut).lower()},')
    print(f'     {tensors(sources)},\n     {tensors(results)},\n     {back}}},')


x = count(2, 3)
show("i o -> o i", x, x.T)
show("a b c -> c a b", count(2, 3, 2), count(2, 3, 2).transpose(2, 0, 1))
show("... f c -> ... c f", count(2, 2, 3), count(2, 2, 3).swapaxes(1, 2))
show("c 1 k -> c k", count(3, 1, 2), count(3, 2))
show("a b -> (a b)", x, count(6), a=2)
show("(head half pair) ... -> (head pair half) ...", count(8, 2), permute(count(8, 2), 2), head=2, half=2)
show("(head half pair) ... -> (head pair half) ...", count(12), permute(count(12), 3), head=3, half=2)
show("(head part d) ... -> (part head d) ...", count(12, 2), qkv_of_heads(count(12, 2), 2), head=2, part=3)
falcon = "(group (q + k + v) d) c -> (group q d + group k d + group v d) c"
show(falcon, count(8, 2), qkv_of_groups(count(8, 2), 4, 2), group=2, q=2, k=1, v=1)
show(falcon, count(6, 2), qkv_of_groups(count(6, 2), 4, 1), group=1, q=4, k=1, v=1)
show("(head (nope + value)) c -> head c nope, head value c", count(10, 2), mla(count(10, 2), 2, 3, 2), head=2, nope=3, value=2)
halves = "... (gate + up) c -> ... gate c, ... up c"
show(halves, count(2, 4, 1), [count(2, 4, 1)[:, :2], count(2, 4, 1)[:, 2:]])
show(halves, count(4, 2), [count(4, 2)[:2], count(4, 2)[2:]])
mixed = "e c (f (gate + up)) -> e (f gate) c, e (f up) c"
y = count(1, 2, 4).swapaxes(1, 2)
show(mixed, count(1, 2, 4), [y[:, ::2], y[:, 1::2]], gate=1, up=1)
show("q c, k c, v c -> (q + k + v) c", [count(2, 2), count(1, 2), 7 * count(1, 2)],
     np.concatenate([count(2, 2), count(1, 2), 7 * count(1, 2)]), q=2, k=1, v=1)
show("(padding + row) c -> row c", count(4, 2), count(4, 2)[2:],
     np.concatenate([np.zeros((2, 2)), count(4, 2)[2:]]), padding=2)
show("(token + unused) c -> token c", count(4, 2), count(4, 2)[:3], count(4, 2)[:3], cut=True, token=3)
show("(token + unused) c -> token c", count(4, 2), count(4, 2), count(4, 2), cut=True, token=(9, "0, true"))
show("(expert f) c -> expert c f", count(4, 3), count(4, 3).reshape(2, 2, 3).swapaxes(1, 2), expert=2)
show("expert f c -> f c", count(3, 2, 2), count(3, 2, 2)[1],
     np.stack([count(3, 2, 2)[1]] * 3), expert=(3, "1"))
show("c (rank column) -> c column", count(2, 6), count(2, 6)[:, 4:], np.tile(count(2, 6)[:, 4:], (1, 3)), rank=(3, "2"))
show("(head d) c -> (head copy d) c", count(4, 1), count(4, 1).reshape(2, 1, 2).repeat(3, 1).reshape(12, 1), head=2, copy=3)
show("row c -> (row + pad) c", count(2, 2), np.concatenate([count(2, 2), np.zeros((1, 2))]), pad=1)
show("(a + b) (c + d) -> (c + d) (b + a)", count(3, 3),
     np.block([[count(3, 3)[1:, :2].T, count(3, 3)[:1, :2].T], [count(3, 3)[1:, 2:].T, count(3, 3)[:1, 2:].T]]), a=1, c=2)
show("((a + b) c + d) -> (d + b c + a c)", count(8), np.array([6, 7, 2, 3, 4, 5, 0, 1], np.float32), a=1, b=2, d=2)
show("1 -> ", count(1), count(1).reshape(()))
