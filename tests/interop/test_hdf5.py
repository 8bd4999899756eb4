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


def write_named_types(file, arrays):
    """Datatypes that are objects of their own."""
    for i, dtype in enumerate(("<f4", ">i2", "<f2")):
        file[f"types/{i}"] = numpy.dtype(dtype)
        arrays[f"named/{i}"] = values((3, 4), dtype)
        file.create_dataset(f"named/{i}", data=arrays[f"named/{i}"], dtype=file[f"types/{i}"])


def age_layouts(path):
    """Rewrites layouts of version 3 as version 1 or 2 has them; h5py reads the file after that."""
    data, n_changed = bytearray(path.read_bytes()), 0
    with h5py.File(path) as file:
        found = {}
        file.visititems(lambda name, item: found.setdefault(name, item) and None)
        places = [(item.id.get_offset(), item.nbytes, item.shape, item.chunks, item.dtype.itemsize) for item in found.values()
                  if isinstance(item, h5py.Dataset)]
    for offset, size, shape, chunks, itemsize in places:
        if chunks is None and offset is not None and len(shape) == 2:
            old = b"\3\1" + offset.to_bytes(8, "little") + size.to_bytes(8, "little")
            new = bytes([1 + n_changed % 2, 2, 1]) + bytes(5) + offset.to_bytes(8, "little") + b"".join(n.to_bytes(4, "little") for n in shape)
            at = data.find(old)
        elif chunks is not None and len(shape) == 1:
            tail = chunks[0].to_bytes(4, "little") + itemsize.to_bytes(4, "little")
            at = next((i for i in range(len(data) - 19) if data[i:i + 3] == b"\3\2\2" and data[i + 11:i + 19] == tail), -1)
            new = bytes([1, 2, 2]) + bytes(5) + bytes(data[at + 3:at + 11]) + tail
        else:
            continue
        assert at >= 0 and len(new) == 24
        data[at:at + 24] = new
        n_changed += 1
    path.write_bytes(data)
    return n_changed


def check_old_layouts(folder):
    path, arrays = pathlib.Path(folder, "aged.h5"), {}
    with h5py.File(path, "w", libver="earliest") as file:
        for i, shape in enumerate([(3, 4), (1, 5), (40, 30)]):
            arrays[f"contiguous/{i}"] = file[f"contiguous/{i}"] = values(shape, "<f4")
        for i, size in enumerate((7, 100)):
            arrays[f"chunked/{i}"] = values((size,), "<i4")
            file.create_dataset(f"chunked/{i}", data=arrays[f"chunked/{i}"], chunks=(3 + i,), compression="gzip")
    check(age_layouts(path) == 5, "five layouts are old")
    with h5py.File(path) as file:
        check(all(numpy.array_equal(file[name][()], array) for name, array in arrays.items()), "h5py reads old layouts")
    compare(path, arrays)


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
                write_named_types(file, arrays)
            compare(path, arrays)


def check_hard_links(folder):
    """Objects with several hard links, shown under each as h5py gets them; loops and files that would explode."""
    for libver in ("earliest", "latest"):
        path, arrays = pathlib.Path(folder, f"linked-{libver}.h5"), {}
        with h5py.File(path, "w", libver=libver) as file:
            file["b/plain"] = values((3, 4), "<f4")
            file.create_dataset("b/deep/gzip", data=values((9, 4), ">f2"), chunks=(2, 3), compression="gzip")
            file["a/gzip"], file["c"], file["z/deep"] = file["b/deep/gzip"], file["b"], file["b/deep"]
            file["b/deep/top"], file["b/self"] = file["/"], file["b"]
            for name in ("b/plain", "b/deep/gzip", "a/gzip", "c/plain", "c/deep/gzip", "z/deep/gzip"):
                arrays[name] = file[name][()]
        compare(path, arrays)
    path = pathlib.Path(folder, "explodes.h5")
    with h5py.File(path, "w", libver="latest") as file:
        file["g0/w"] = values((4,), "<f4")
        for i in range(1, 30):
            file[f"g{i}/x"], file[f"g{i}/y"] = file[f"g{i - 1}"], file[f"g{i - 1}"]
    check(b"hard links" in wfs("info", path).stderr, "groups that would be shown 2^30 times")
    path = pathlib.Path(folder, "large.h5")
    with h5py.File(path, "w", libver="latest") as file:
        file["w"] = values((1000000,), "<f4")
        for i in range(20):
            file[f"w{i}"] = file["w"]
    check(b"hard links show its datasets more than 8 times" in wfs("info", path).stderr, "a dataset of 21 names")


def main():
    if h5py is None:
        skip("h5py is missing")
    with tempfile.TemporaryDirectory() as folder:
        check_versions(folder)
        check_old_layouts(folder)
        check_hard_links(folder)
    done()


if __name__ == "__main__":
    main()
