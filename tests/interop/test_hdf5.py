"""HDF5 files of h5py, in every layout that it writes, compared with the arrays that were written."""
import itertools
import json
import pathlib
import tempfile

import numpy

from interop import cat, check, done, skip, wfs

try:
    import h5py
except ImportError:
    h5py = None

RANDOM = numpy.random.default_rng(7)
DTYPES = ["<f4", ">f4", "<f2", "<f8", "<i8", ">u2", "i1", "?", "<c8", ">c16"]
FILTERS = [
    {},
    {"compression": "gzip"},
    {"compression": "gzip", "shuffle": True},
    {"shuffle": True, "fletcher32": True},
    {"compression": "lzf", "fletcher32": True},
    {"compression": "gzip", "shuffle": True, "fletcher32": True},
]
GROWING = [  # shape, chunks, maxshape; by these libhdf5 chooses the index of the chunks
    ((7,), (3,), None),
    ((7,), (7,), None),
    ((40, 30), (7, 11), None),
    ((40, 30), (7, 11), (40, 30)),
    ((40, 30), (7, 11), (100, 90)),
    ((40, 30), (7, 11), (None, 30)),
    ((40, 30), (7, 11), (40, None)),
    ((40, 30), (7, 11), (64, None)),
    ((40, 30), (7, 11), (None, None)),
    ((5, 6, 7), (2, 3, 4), (None, 6, None)),
    ((5, 6, 7), (2, 3, 4), (9, None, 8)),
    ((3000,), (1,), (None,)),
    ((60000,), (1,), (None,)),
    ((60000,), (1,), (70000,)),
    ((300, 50), (1, 1), (None, None)),
    ((5,), (9,), (None,)),
]


def values(shape, dtype):
    dtype = numpy.dtype(dtype)
    if dtype == bool:
        return RANDOM.integers(0, 2, shape).astype(bool)
    made = RANDOM.standard_normal(shape) * 100
    if dtype.kind == "c":
        made = made + 1j * RANDOM.standard_normal(shape)
    return (abs(made) if dtype.kind == "u" else made).astype(dtype)


def write_growing(file, arrays):
    rows = itertools.product(enumerate(GROWING), enumerate(FILTERS))
    for (i, (shape, chunks, most)), (j, filters) in rows:
        if numpy.prod(shape) > 10000 and j not in (0, 1):
            continue
        name = f"grow{i}/filters{j}"
        arrays[name] = values(shape, DTYPES[(i + j) % len(DTYPES)])
        file.create_dataset(name, data=arrays[name], chunks=chunks, maxshape=most, **filters)


def write_sparse(file, arrays):
    """Chunks that were never written, in each kind of index."""
    for i, (shape, chunks, most) in enumerate(GROWING):
        name = f"sparse{i}"
        array = numpy.full(shape, -2.5, "f4")
        dataset = file.create_dataset(name, shape, "f4", chunks=chunks, maxshape=most, fillvalue=-2.5)
        for _ in range(3):
            place = tuple(int(RANDOM.integers(0, n)) for n in shape)
            dataset[place] = array[place] = RANDOM.standard_normal()
        arrays[name] = array


def write_resized(file, arrays):
    dataset = file.create_dataset("shrunk", (90, 20), "f4", chunks=(7, 6), maxshape=(None, None), compression="gzip")
    array = values((90, 20), "f4")
    dataset[...] = array
    dataset.resize((33, 13))
    arrays["shrunk"] = array[:33, :13]
    dataset = file.create_dataset("grown", (9, 20), "f4", chunks=(7, 6), maxshape=(None, 20))
    dataset[...] = array[:9]
    dataset.resize((50, 20))
    arrays["grown"] = numpy.concatenate([array[:9], numpy.zeros((41, 20), "f4")])


def write_groups(file, arrays):
    for i in range(300):
        name = f"many/{'x' * (i % 90)}{i}/w"
        arrays[name] = values((2, 1), "f4")
        file[name] = arrays[name]
    for dtype in DTYPES:
        name = f"dtypes/{dtype}"
        arrays[name] = values((3, 4), dtype)
        file[name] = arrays[name]


def shown_dtype(array):
    kind = array.dtype.kind
    return "BOOL" if kind == "b" else kind.upper() + str(8 * array.dtype.itemsize)


def compare(path, arrays):
    result = wfs("cat", path, "metadata.json")
    if not check(result.returncode == 0, f"{path.name}: {result.stderr.decode()}"):
        return
    tensors = {tensor["name"]: tensor for tensor in json.loads(result.stdout)["tensors"]}
    check(set(tensors) == set(arrays), f"{path.name}: {set(tensors) ^ set(arrays)}")
    for name, array in arrays.items():
        tensor = tensors.get(name)
        if tensor is None:
            continue
        check((tensor["dtype"], tensor["shape"]) == (shown_dtype(array), list(array.shape)), f"{path.name}: {name}: {tensor}")
        wanted = array.astype(array.dtype.newbyteorder("<")).tobytes()
        check(cat(path, f"tensors/{tensor['directory']}/raw") == wanted, f"{path.name}: {name}: other values")


def check_versions(folder):
    for libver in ("earliest", ("v108", "v108"), ("v110", "v110"), "latest"):
        name = libver if isinstance(libver, str) else libver[0]
        for userblock in (0, 1024):
            path = pathlib.Path(folder, f"{name}-{userblock}.h5")
            arrays = {}
            with h5py.File(path, "w", libver=libver, userblock_size=userblock) as file:
                write_groups(file, arrays)
                if userblock == 0:
                    write_growing(file, arrays)
                write_sparse(file, arrays)
                write_resized(file, arrays)
            compare(path, arrays)


def main():
    if h5py is None:
        skip("h5py is missing")
    with tempfile.TemporaryDirectory() as folder:
        check_versions(folder)
    done()


if __name__ == "__main__":
    main()
