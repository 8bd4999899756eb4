#!/usr/bin/env python3
"""Writes tests/data/hdf5 and the corpus of its harness; needs h5py (the files here: 3.16.0 with HDF5 2.0.0).

    make_hdf5.py DATA CORPUS       as in: make_hdf5.py tests/data/hdf5 tests/fuzz/corpus/hdf5

Each dataset holds 0, 1, 2 ... in row-major order, so that tests know its values; where chunks are missing, -1.
"""
import pathlib
import sys

import h5py
import numpy

# Shape, chunks, and how far the dataset may grow: by these, libhdf5 chooses the index of the chunks.
CHUNKED = {
    "single": ((5, 3), (5, 3), None),
    "fixed": ((5, 7), (2, 3), (9, 7)),
    "extensible": ((5, 7), (2, 3), (5, None)),
    "tree": ((5, 7), (2, 3), (None, None)),
}
FILTERS = {
    "plain": {},
    "gzip": {"compression": "gzip", "shuffle": True},
    "sums": {"fletcher32": True, "shuffle": True},
    "lzf": {"compression": "lzf"},
}
DTYPES = {"f2": "<f2", "f4": ">f4", "f8": ">f8", "i1": "i1", "i8": ">i8", "u2": "<u2", "c8": ">c8", "bool": "?"}


def count(shape, dtype="f4"):
    return (numpy.arange(numpy.prod(shape)) % (2 if dtype == "?" else 1 << 30)).astype(dtype).reshape(shape)


def write_chunked(file, filters):
    for name, (shape, chunks, most) in CHUNKED.items():
        for how in filters:
            file.create_dataset(f"{name}/{how}", data=count(shape), chunks=chunks, maxshape=most, **FILTERS[how])
        sparse = file.create_dataset(f"{name}/sparse", shape, "f4", chunks=chunks, maxshape=most, fillvalue=-1)
        sparse[:2, :3] = count(shape)[:2, :3]


def write_all(path, libver):
    with h5py.File(path, "w", libver=libver, userblock_size=512 if libver == "latest" else 0) as file:
        for name, dtype in DTYPES.items():
            file[f"dtypes/{name}"] = count((2, 2), dtype)
        file["dtypes/text"] = "a text"
        file["dtypes/null"] = h5py.Empty("f4")
        file["dtypes/bfloat16"] = numpy.array([0, 0x3F80, 0x4000], "<u2").view("V2")
        file["dtypes/bfloat16"].attrs["dtype"] = "bfloat16"
        file["dtypes/void"] = numpy.zeros(2, "V2")
        write_chunked(file, FILTERS)
        for i in range(20):
            file[f"many/w{i:02}"] = count((i % 3,))
        file["links/again"] = file["dtypes/f2"]
        file["links/group"] = file["links"]
        file["links/soft"] = h5py.SoftLink("/dtypes/f2")
        file["links/outside"] = h5py.ExternalLink("other.h5", "/w")
        file.create_dataset("filled", (2, 3), "f4", fillvalue=2.5)
        file.create_dataset("external", (2,), "u1", external=[("/etc/hostname", 0, 2)])
        file.attrs["keras_version"] = "3.0"
        file.attrs["backend"] = numpy.bytes_(b"tensorflow")
        file.attrs["names"] = ["a", "b"]


def write_small(path, libver):
    """For the corpus: as little as reaches each structure."""
    with h5py.File(path, "w", libver=libver) as file:
        file["a/w"] = count((2, 2))
        file["a/b"] = h5py.SoftLink("/a/w")
        file.create_dataset("c", data=count((5, 7)), chunks=(2, 3), maxshape=(5, None), compression="gzip", shuffle=True)
        file.create_dataset("d", data=count((4, 4)), chunks=(2, 2), fletcher32=True)
        file.create_dataset("e", data=count((4, 4)), chunks=(2, 2), maxshape=(None, None), compression="lzf")
        for i in range(9):
            file[f"f/{i}"] = numpy.int8(i)


def main():
    data, corpus = map(pathlib.Path, sys.argv[1:])
    for libver in ("earliest", "latest"):
        write_all(data / f"{libver}.h5", libver)
        write_small(corpus / f"{libver}.h5", libver)


if __name__ == "__main__":
    main()
