#!/usr/bin/env python3
"""Makes tests/data/contracted: weights in F16, and the blocks that ggml makes of them on ARM where those on x86-64 differ.

    python3 tests/data/make_contracted.py GGML

GGML is ggml's source, with include/ and src/ (made with d99724f2). Needs gcc for this machine and for aarch64, and
qemu-aarch64-static. gcc contracts a * b + c into one rounding on aarch64, and not on x86-64.
"""
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

TYPES = {  # ggml's type number, elements and bytes of a block
    "q4_0": (2, 32, 18), "q4_k": (12, 256, 144), "q5_k": (13, 256, 176), "q6_k": (14, 256, 210), "iq4_nl": (20, 32, 18),
    "iq3_s": (21, 256, 110), "iq4_xs": (23, 256, 136),
}
FOLDER = pathlib.Path(__file__).parent / "contracted"
ELEMENTS, KEPT = 1 << 18, 1024  # elements tried, and kept of each type: whole blocks that differ

DRIVER = r"""
#include "ggml.h"
#include <stdlib.h>
#include <stdio.h>
void ggml_critical_section_start(void) {}
void ggml_critical_section_end(void) {}
int main(int argc, char **argv)
{
    static float values[%d];
    int64_t columns = 1024, rows = sizeof values / sizeof *values / columns;
    enum ggml_type type = (enum ggml_type)atoi(argv[1]);
    size_t length = (size_t)rows * ggml_row_size(type, columns);
    void *blocks = malloc(length);
    if (fread(values, sizeof values, 1, stdin) != 1)
        return 1;
    ggml_quantize_chunk(type, values, blocks, 0, rows, columns, NULL);
    return fwrite(blocks, length, 1, stdout) != 1;
}
""" % ELEMENTS


def build(ggml, folder, prefix):
    """Links what quantizes; what it does not call may be missing."""
    name = pathlib.Path(folder) / f"quantize{prefix or '-native'}"
    (pathlib.Path(folder) / "driver.c").write_text(DRIVER)
    sources = [ggml / "src" / "ggml.c", ggml / "src" / "ggml-quants.c", pathlib.Path(folder) / "driver.c"]
    subprocess.run([f"{prefix}gcc", "-O3", "-std=gnu11", "-static", "-D_GNU_SOURCE", '-DGGML_VERSION=""', '-DGGML_COMMIT=""',
                    f"-I{ggml / 'include'}", f"-I{ggml / 'src'}", *sources, "-Wl,--unresolved-symbols=ignore-all", "-lm",
                    "-o", name], check=True)
    return name


def main():
    ggml = pathlib.Path(sys.argv[1])
    generator = random.Random(5)
    half = struct.pack(f"<{ELEMENTS}e", *(generator.gauss(0, 0.02) for _ in range(ELEMENTS)))
    values = struct.pack(f"<{ELEMENTS}f", *struct.unpack(f"<{ELEMENTS}e", half))
    with tempfile.TemporaryDirectory() as folder:
        native, arm = build(ggml, folder, ""), build(ggml, folder, "aarch64-linux-gnu-")
        for name, (number, elements, size) in TYPES.items():
            here = subprocess.run([native, str(number)], input=values, stdout=subprocess.PIPE, check=True).stdout
            there = subprocess.run(["qemu-aarch64-static", arm, str(number)], input=values, stdout=subprocess.PIPE, check=True).stdout
            differ = [i for i in range(ELEMENTS // elements) if here[i * size:][:size] != there[i * size:][:size]]
            print(f"{name}: {len(differ)} of {ELEMENTS // elements} blocks differ")
            kept = differ[:KEPT // elements]
            (FOLDER / f"{name}.f16").write_bytes(b"".join(half[2 * i * elements:][:2 * elements] for i in kept))
            (FOLDER / f"{name}.blocks").write_bytes(b"".join(there[i * size:][:size] for i in kept))


if __name__ == "__main__":
    main()
