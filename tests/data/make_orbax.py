#!/usr/bin/env python3
"""Writes tests/data/orbax: directories as Orbax has them, and expected.txt with what they hold; and the corpus of their harness.

    make_orbax.py DATA CORPUS       as in: make_orbax.py tests/data/orbax tests/fuzz/corpus/orbax

Needs tensorstore (the files here: 0.1.86), which Orbax writes its arrays with. Each array holds 0, 1, 2 ... in row-major order.
"""
import json
import pathlib
import re
import shutil
import sys

import numpy
import tensorstore

GZIP, ZSTD = {"id": "gzip", "level": 6}, {"id": "zstd", "level": 1}
LITTLE, BIG = {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "bytes", "configuration": {"endian": "big"}}
ZSTD_3, GZIP_3 = {"name": "zstd", "configuration": {"level": 1}}, {"name": "gzip", "configuration": {"level": 6}}
INDEX = [LITTLE, {"name": "crc32c"}]


def zarr_2(dtype, shape, chunks, compressor, **more):
    return "zarr", {"shape": shape, "chunks": chunks, "dtype": dtype, "compressor": compressor, **more}


def zarr_3(dtype, shape, chunks, codecs, **more):
    return "zarr3", {"shape": shape, "data_type": dtype, "codecs": codecs, **more,
                     "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}}}


def sharded(chunks, codecs, location="end"):
    return [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": chunks, "codecs": codecs, "index_codecs": INDEX, "index_location": location}}]


ARRAYS_2 = {
    "plain": zarr_2("<f4", [5, 3], [5, 3], None),
    "zstd": zarr_2("<f4", [5, 7], [2, 3], ZSTD),
    "gzip": zarr_2("<i2", [5, 7], [2, 3], GZIP),
    "columns": zarr_2("<f4", [4, 5, 3], [2, 2, 3], ZSTD, order="F"),
    "big": zarr_2(">f4", [5], [2], ZSTD),
    "bf16": zarr_2("bfloat16", [2, 2], [2, 2], ZSTD),
    "flag": zarr_2("|b1", [3], [3], ZSTD),
    "params.layers.0.scale": zarr_2("<f8", [], [], ZSTD),
    "slashes": zarr_2("<f4", [3, 3], [2, 2], ZSTD, dimension_separator="/"),
    "empty": zarr_2("<f4", [0, 3], [1, 3], ZSTD),
}
ARRAYS_3 = {
    "plain": zarr_3("float32", [5, 3], [2, 3], [LITTLE]),
    "big": zarr_3("int32", [5], [2], [BIG, ZSTD_3]),
    "gzip": zarr_3("uint8", [7, 2], [3, 2], [LITTLE, GZIP_3, {"name": "crc32c"}]),
    "sum": zarr_3("float32", [4], [3], [LITTLE, {"name": "crc32c"}, ZSTD_3]),
    "turned": zarr_3("float32", [4, 5, 3], [2, 2, 3], [{"name": "transpose", "configuration": {"order": [2, 0, 1]}}, LITTLE]),
    "shards": zarr_3("float32", [5, 7], [4, 4], sharded([2, 2], [LITTLE, ZSTD_3])),
    "first": zarr_3("bfloat16", [5, 3], [4, 4], sharded([2, 4], [LITTLE], "start")),
    "scalar": zarr_3("float32", [], [], sharded([], [LITTLE, ZSTD_3])),
    "older": zarr_3("float32", [3, 3], [2, 2], [LITTLE], chunk_key_encoding={"name": "v2", "configuration": {"separator": "."}}),
}


def copy(values, folder, config):
    """Writes values by their keys: into a file each, or in one transaction into a database of that configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    if config is None:
        for key, value in values.items():
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(value)
        (folder / "_METADATA").write_text(json.dumps({"tree_metadata": {}}))
        return
    base = {"driver": "file", "path": f"{folder.resolve()}/"}
    database = tensorstore.KvStore.open({"driver": "ocdbt", "base": base, "config": config}).result()
    with tensorstore.Transaction(atomic=True) as transaction:
        for key, value in values.items():
            database.with_transaction(transaction)[key] = value


def write(folder, arrays, config, skip=()):
    """Writes the arrays, and returns a line for each."""
    context, lines = tensorstore.Context(), []
    for name, (driver, metadata) in sorted(arrays.items()):
        kvstore = {"driver": "memory", "path": f"{name}/"}
        array = tensorstore.open({"driver": driver, "kvstore": kvstore, "metadata": metadata}, create=True, context=context).result()
        values = numpy.arange(numpy.prod(array.shape), dtype="f8").reshape(array.shape).astype(array.dtype.numpy_dtype)
        if name in skip:
            values[2:] = 0  # these chunks are not written
            array[:2].write(values[:2]).result()
        else:
            array.write(values).result()
        kind = {"float": "F", "bfloat": "BF", "int": "I", "uint": "U", "bool": "BOOL"}[re.match("[a-z]+", array.dtype.name)[0]]
        dtype = kind if kind == "BOOL" else kind + str(array.dtype.numpy_dtype.itemsize * 8)
        lines.append(" ".join([name, dtype, str(list(array.shape))] + [f"{float(value):g}" for value in values.ravel()]))
    memory = tensorstore.KvStore.open({"driver": "memory"}, context=context).result()
    copy({key.decode(): memory[key] for key in memory.list().result()}, folder, config)
    (folder / "_CHECKPOINT_METADATA").write_text("{}")
    return lines


def entry(keys, kind="jax.Array"):
    return {"key_metadata": [{"key": key, "key_type": 2} for key in keys], "value_metadata": {"value_type": kind, "skip_deserialize": False}}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return (crc ^ 0xFFFFFFFF).to_bytes(4, "little")


def write_input(path, folder):
    """An input of the harness: the length of the manifest, the manifest, and its only data file, which is called d/x."""
    manifest = (folder / "manifest.ocdbt").read_bytes()
    files = list((folder / "d").iterdir())
    assert len(files) == 1, files
    name = b"d/" + files[0].name.encode()
    place = manifest.index(name)
    body = manifest[12 : place - 2] + b"\x03" + manifest[place - 1 : place] + b"d/x" + manifest[place + len(name) : -4]
    manifest = manifest[:4] + (16 + len(body)).to_bytes(8, "little") + body
    manifest += crc32c(manifest)
    path.write_bytes(len(manifest).to_bytes(4, "little") + manifest + files[0].read_bytes())


def main():
    data, corpus = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for folder in (data, corpus):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    many = {f"a{i:02}": zarr_2("<f4", [2], [2], None) for i in range(40)}
    small_nodes = {"max_decoded_node_bytes": 700, "max_inline_value_bytes": 0}
    expected = {
        "database": write(data / "database", ARRAYS_2, {}, skip=["zstd"]),
        "levels": write(data / "levels", many, small_nodes),
        "shards": write(data / "shards", ARRAYS_3, {}, skip=["shards"]),
        "folders": write(data / "folders", {name: ARRAYS_2[name] for name in ("plain", "gzip", "slashes")}, None),
        "folders3": write(data / "folders3", {name: ARRAYS_3[name] for name in ("plain", "shards")}, None, skip=["plain"]),
        "step": write(data / "step/default", {"w": ARRAYS_2["plain"]}, {}),
    }
    (data / "step/_CHECKPOINT_METADATA").write_text("{}")
    (data / "step/default/_METADATA").write_text(json.dumps({"tree_metadata": {
        "('w',)": entry(["w"]), "('note',)": entry(["note"], "string"), "('none',)": entry(["none"], "None")}}))
    (data / "expected.txt").write_text("".join(f"# {name}\n" + "\n".join(lines) + "\n" for name, lines in expected.items()))
    for name, arrays in {"versions2": ARRAYS_2, "versions3": ARRAYS_3}.items():
        folder = corpus / "made"
        write(folder, {key: arrays[key] for key in list(arrays)[:4]}, {"compression": None})
        write_input(corpus / name, folder)
        shutil.rmtree(folder)


main()
