#!/usr/bin/env python3
"""Makes tests/data/gguf/imatrix.gguf and imatrix.dat: small importance matrices in both forms.

    python3 tests/data/make_imatrix.py

Needs numpy, and gguf from PyPI.
"""
import pathlib
import struct

import gguf
import numpy as np

FOLDER = pathlib.Path(__file__).parent / "gguf"
SUMS = {"blk.0.attn_v.weight": [[2, 4, 6, 9]], "blk.0.ffn_up_exps.weight": [[4, 8], [5, 7]], "blk.10.attn_v.weight": [[1, 1, 1]]}
COUNTS = {"blk.0.attn_v.weight": [2], "blk.0.ffn_up_exps.weight": [4, 0], "blk.10.attn_v.weight": [3.4]}


def write_gguf():
    writer = gguf.GGUFWriter(FOLDER / "imatrix.gguf", "")
    writer.kv_data[0].clear()
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["some.txt", "more.txt"])
    writer.add_uint32("imatrix.chunk_count", 5)
    writer.add_uint32("imatrix.chunk_size", 512)
    for name, sums in SUMS.items():
        sums, counts = np.array(sums, "<f4"), np.array(COUNTS[name], "<f4")
        writer.add_tensor(name + ".in_sum2", sums if len(sums) > 1 else sums[0])
        writer.add_tensor(name + ".counts", counts.reshape(-1, 1) if len(counts) > 1 else counts)
    writer.add_tensor("something else", np.zeros(3, "<f4"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def text(value):
    return struct.pack("<i", len(value)) + value


def write_older():
    entries = [(b"b.weight", 2, [1, 2, 3]), (b"a.weight\0ignored", 0, [5, 6]), (b"b.weight", 4, [4, 8, 12])]
    data = struct.pack("<i", len(entries))
    for name, calls, values in entries:
        data += text(name) + struct.pack("<ii", calls, len(values)) + np.array(values, "<f4").tobytes()
    (FOLDER / "imatrix.dat").write_bytes(data + struct.pack("<i", 9) + text(b"old.txt"))


write_gguf()
write_older()
