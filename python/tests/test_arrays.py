"""Arrays of numpy and torch, safe_open() and fsspec, against numpy and the packages of others."""
import itertools
import json
import os
import subprocess
import sys
import textwrap

import pytest

import wfs
from conftest import TENSORS, write_safetensors


def expected(numpy, name):
    """The values of a tensor as F32, or as stored if they are integers."""
    dtype, shape, data = TENSORS[name]
    if dtype == "BF16":
        return (numpy.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
    return numpy.frombuffer(data, {"F32": "<f4", "F16": "<f2", "I64": "<i8", "U8": "u1"}[dtype]).reshape(shape)


def test_numpy_has_the_values(source, need):
    numpy = need("numpy")
    model = wfs.open(source)
    for name in TENSORS:
        array = model.tensors[name].numpy()
        assert array.dtype == expected(numpy, name).dtype and array.shape == tuple(TENSORS[name][1])
        assert numpy.array_equal(array, expected(numpy, name))
        assert numpy.array_equal(model.tensors[name].numpy("f32"), expected(numpy, name).astype("<f4"))
        assert model.tensors[name].numpy("raw").tobytes() == TENSORS[name][2]


def test_numpy_takes_tensors_as_arrays(source, need):
    numpy = need("numpy")
    model = wfs.open(source)
    for name, tensor in model.tensors.items():
        values = expected(numpy, name)
        array = numpy.asarray(tensor)
        assert array.dtype == values.dtype and numpy.array_equal(array, values)
        assert (tensor.ndim, tensor.size, tensor.nbytes) == (values.ndim, values.size, len(TENSORS[name][2]))
        assert numpy.asarray(tensor, dtype="f8").dtype == numpy.float64
        assert numpy.array(tensor, copy=True).flags.writeable
        if values.size and values.dtype.kind == "f":
            assert numpy.mean(tensor) == numpy.mean(values)
        if values.ndim:
            assert all(numpy.array_equal(row, one) for row, one in zip(tensor, values)) and len(tensor) == len(values)


def test_numpy_never_copies_if_it_must_not(source, tmp_path, need):
    numpy = need("numpy")
    if numpy.lib.NumpyVersion(numpy.__version__) < "2.0.0":
        pytest.skip("copy=False was a wish in numpy 1")
    path, values = tmp_path / "large.safetensors", numpy.arange(1 << 16, dtype="<f4").reshape(256, 256)
    write_safetensors(path, {"large": ("F32", [256, 256], values.tobytes())})
    large = wfs.open(path).tensors["large"]
    assert numpy.array_equal(numpy.array(large, copy=False), values) and numpy.asarray(large, "f8").dtype == "f8"
    for tensor, dtype in ((large, "f8"), (large[:, 1:], None), (wfs.open(source).tensors["cube"], None)):
        with pytest.raises(ValueError, match="copy"):
            numpy.asarray(tensor, dtype, copy=False)


def test_types_of_numpy_and_torch_are_names_too(source, need):
    numpy, torch = need("numpy"), need("torch")
    tensor = wfs.open(source).tensors[next(name for name in TENSORS if TENSORS[name][0] == "BF16")]
    for dtype in ("f16", "float16", numpy.float16, numpy.dtype("float16"), torch.float16):
        assert tensor.numpy(dtype).dtype == numpy.float16 and tensor.torch(dtype).dtype == torch.float16
        assert tensor.tobytes(dtype) == tensor.tobytes("f16")
    assert torch.equal(torch.from_dlpack(tensor), tensor.torch("f32"))


def test_types_that_wfs_does_not_make_are_cast(source, need):
    numpy, torch, ml_dtypes = need("numpy"), need("torch"), need("ml_dtypes")
    for name in ("matrix", "half", "cube", "long", "a/b é"):
        tensor, values = wfs.open(source).tensors[name], expected(numpy, name)
        for dtype in ("float64", numpy.int32, torch.uint8, "bool", "i64", ml_dtypes.float8_e5m2):
            kind = numpy.dtype(str(dtype).removeprefix("torch.").replace("i64", "int64") if not isinstance(dtype, type) else dtype)
            with numpy.errstate(all="ignore"):
                array, wanted = tensor.numpy(dtype), values.astype(kind)
            assert array.dtype == kind and array.tobytes() == wanted.tobytes()
        assert torch.equal(tensor.torch("float64"), torch.from_numpy(values.astype("f8")))
        assert tensor.torch(torch.float8_e5m2).dtype == torch.float8_e5m2 and tensor[...].torch("int64").dtype == torch.int64
    with pytest.raises(ValueError, match="no type has this name"):
        tensor.numpy("float7")


def test_a_missing_name_names_the_nearest(source):
    name = next(iter(TENSORS))
    with pytest.raises(KeyError, match=f"did you mean '{name}'"):
        wfs.open(source).tensors[name + "x"]


def n_mapped(path):
    """How many pieces of a file this process has mapped."""
    with open("/proc/self/maps") as maps:
        return sum(line.rstrip().endswith(str(path)) for line in maps)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_stored_values_are_mapped_and_changes_stay_here(tmp_path, need, framework):
    numpy, _ = need("numpy"), need(framework)
    path = tmp_path / "large.safetensors"
    values = numpy.arange(1 << 16, dtype="<f4").reshape(256, 256)
    write_safetensors(path, {"large": ("F32", [256, 256], values.tobytes())})
    model = wfs.open(path)
    before, tensor = n_mapped(path), model.tensors["large"]
    first, second = getattr(tensor, framework)(), getattr(tensor, framework)()
    rows = getattr(tensor[64:192], framework)()
    assert n_mapped(path) > before
    first[0, 0] = rows[0, 0] = -1
    model.close()
    del model, tensor
    assert (numpy.asarray(second) == values).all() and (numpy.asarray(first)[1:] == values[1:]).all()
    assert rows[0, 0] == -1 and (numpy.asarray(rows)[1:] == values[65:192]).all()
    assert path.read_bytes()[-values.nbytes:] == values.tobytes()
    del first, second, rows
    assert n_mapped(path) == 0
    copy = getattr(wfs.open(path).tensors["large"], framework)(copy=True)
    assert (numpy.asarray(copy) == values).all()
    assert n_mapped(path) == 0


def test_slices_are_those_of_numpy(source, need):
    numpy = need("numpy")
    model = wfs.open(source)
    some = [0, -1, slice(None), slice(1, None), slice(None, None, 2), slice(2, 1), slice(-2, None, 3),
            slice(None, None, -1), slice(-2, 0, -2), slice(0, None, -1)]
    for name, n_axes in (("matrix", 2), ("cube", 3)):
        tensor, values = model.tensors[name], expected(numpy, name)
        for index in itertools.product(some, repeat=n_axes):
            assert numpy.array_equal(tensor[index].numpy("f32"), values[index]), index
            assert tensor[index].tobytes("f32") == values[index].astype("<f4").tobytes(), index
        assert numpy.array_equal(tensor[1:][..., ::2].numpy("f32"), values[1:][..., ::2])
        assert numpy.array_equal(numpy.flip(tensor), numpy.flip(values))
        assert numpy.array_equal(tensor[::-2][1:][::-1].numpy("f32"), values[::-2][1:][::-1])
    matrix = expected(numpy, "matrix")
    assert numpy.array_equal(model.tensors["matrix"][1:5:2][1, 3:9].numpy(), matrix[1:5:2][1, 3:9])


def test_blocks_are_those_of_gguf(source, need):
    numpy, quants = need("numpy"), need("gguf.quants")
    import gguf
    tensor = wfs.open(source).tensors["matrix"]
    for name in ("Q4_0", "Q8_0", "Q5_1"):
        kind = getattr(gguf.GGMLQuantizationType, name)
        blocks = quants.quantize(expected(numpy, "matrix"), kind)
        assert numpy.array_equal(tensor.numpy(name), blocks)
        assert numpy.array_equal(tensor[2:5].numpy(name.lower()), blocks[2:5])
        assert numpy.array_equal(tensor[4:1:-1].numpy(name), blocks[4:1:-1])
        with pytest.raises(ValueError, match="backwards"):
            tensor[:, ::-1].numpy(name)


def test_a_gguf_is_dequantized_and_sliced(source, tmp_path, need):
    numpy, gguf, quants = need("numpy"), need("gguf"), need("gguf.quants")
    path = tmp_path / "model.gguf"
    blocks = quants.quantize(expected(numpy, "matrix"), gguf.GGMLQuantizationType.Q4_0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("token_embd.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tensor, values = wfs.open(path).tensors["token_embd.weight"], quants.dequantize(blocks, gguf.GGMLQuantizationType.Q4_0)
    assert tensor.dtype == "Q4_0" and tensor.shape == (6, 64)
    assert numpy.array_equal(tensor.numpy(), values)
    assert numpy.array_equal(tensor.numpy("q4_0"), blocks)
    for index in ((slice(1, 3), slice(5, 40)), (2, slice(None, None, 9)), (slice(None), 63)):
        assert numpy.array_equal(tensor[index].numpy("f32"), values[index])


def test_operators_are_those_of_numpy(source, need):
    numpy = need("numpy")
    tensors, values = wfs.open(source).tensors, expected(numpy, "matrix")
    tensor, half = tensors["matrix"], tensors["half"]
    assert numpy.array_equal(tensor + 1, values + 1) and numpy.array_equal(2 - tensor, 2 - values)
    assert numpy.array_equal(tensor @ tensor.numpy().T, values @ values.T) and numpy.array_equal(-abs(tensor), -abs(values))
    assert numpy.array_equal(tensor > tensor[0], values > values[0]) and numpy.array_equal(tensor == tensor, values == values)
    assert values[2, 3] in tensor and 1e9 not in tensor and int(tensors["long"]) == -7 and float(half[2]) == 0.5
    assert max(half) == 65504 and list(half) == [1, -2, 0.5, 65504] and len({tensor: 1}) == 1
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tensor)


def test_masks_are_no_slices(source, need):
    numpy = need("numpy")
    with pytest.raises(TypeError, match="not by ndarray; its numpy"):
        wfs.open(source).tensors["matrix"][numpy.ones(6, bool)]
    with pytest.raises(TypeError, match="not by bool; its numpy"):
        wfs.open(source).tensors["matrix"][True]


def test_ml_dtypes(source, need):
    numpy, ml_dtypes = need("numpy"), need("ml_dtypes")
    array = wfs.open(source).tensors["cube"].numpy("bf16")
    assert array.dtype == ml_dtypes.bfloat16 and numpy.array_equal(array.astype("<f4"), expected(numpy, "cube"))


def test_torch_has_the_values(source, need):
    numpy, torch = need("numpy"), need("torch")
    model = wfs.open(source)
    types = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64, "U8": torch.uint8}
    for name, (dtype, shape, _) in TENSORS.items():
        tensor = model.tensors[name].torch()
        assert tensor.dtype == types[dtype] and list(tensor.shape) == shape
        assert numpy.array_equal(tensor.float().numpy(), expected(numpy, name).astype("<f4"))
    back = model.tensors["cube"][::-1, :, ::-2].torch()
    assert numpy.array_equal(back.float().numpy(), expected(numpy, "cube")[::-1, :, ::-2])
    part = model.tensors["cube"][1, :, ::2].torch()
    assert numpy.array_equal(part.float().numpy(), expected(numpy, "cube")[1, :, ::2])
    part += 1
    with pytest.raises(TypeError):
        model.tensors["matrix"].torch("q4_0")


def test_safe_open_is_that_of_safetensors(source, need):
    numpy, safetensors = need("numpy"), need("safetensors")
    with safetensors.safe_open(source, "np") as theirs, wfs.safe_open(source, "np") as ours:
        assert sorted(theirs.keys()) == ours.keys() and theirs.metadata() == ours.metadata()
        for name in ("matrix", "half", "long", "a/b é"):
            assert numpy.array_equal(theirs.get_tensor(name), ours.get_tensor(name))
        their_slice, our_slice = theirs.get_slice("matrix"), ours.get_slice("matrix")
        assert their_slice.get_shape() == our_slice.get_shape() and their_slice.get_dtype() == our_slice.get_dtype()
        assert numpy.array_equal(their_slice[2:4, 1:9], our_slice[2:4, 1:9])
    with pytest.raises(ValueError):
        wfs.safe_open(source, "jax")


def outcome(function):
    """What a call returns or raises, to be compared."""
    try:
        result = function()
    except Exception as error:
        return type(error)
    return result


def is_like(ours, theirs):
    if isinstance(theirs, type):
        return isinstance(ours, type) and issubclass(ours, theirs)
    if hasattr(theirs, "dtype"):
        return ours.dtype == theirs.dtype and ours.shape == theirs.shape and bool((ours == theirs).all())
    return ours == theirs


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_safe_open_takes_any_index_of_torch(source, need, backend):
    torch, numpy, safetensors = need("torch"), need("numpy"), need("safetensors")
    indices = [[0, 2], [-1, 0, -1], [], [False, True] * 3, numpy.array([3, 1]), numpy.arange(6) > 3, torch.tensor([5]), torch.tensor(4), None, True,
               (slice(None), [1, 2, 3]), ([0, 1], [2, 3]), (1, [5, 7]), (..., slice(None, None, 9)), slice(1, 6, 2), -2, 6, [6], [False] * 5, "a", slice(None, None, -1)]
    with safetensors.safe_open(source, "pt") as theirs, wfs.safe_open(source, "pt", backend=backend) as ours:
        for index in indices:
            expected = outcome(lambda: theirs.get_slice("matrix")[index])
            assert is_like(outcome(lambda: ours.get_slice("matrix")[index]), expected), index
        tensors = ours.get_tensors()
        assert list(tensors) == list(theirs.get_tensors()) == theirs.offset_keys()
        assert all(is_like(tensors[name], one) for name, one in theirs.get_tensors().items())


def test_safe_open_reads_or_maps(tmp_path, need):
    need("torch")
    source = tmp_path / "large.safetensors"
    write_safetensors(source, {"large": ("F32", [256, 256], bytes(1 << 18))})
    with wfs.safe_open(source, "pt", backend="pread") as opened:
        before, read = n_mapped(source), opened.get_tensor("large")
        assert n_mapped(source) == before and read.shape == (256, 256)
    with wfs.safe_open(source, "pt") as opened:
        before, mapped = n_mapped(source), opened.get_tensor("large")
        assert n_mapped(source) == before + 1 and mapped.shape == (256, 256)


@pytest.mark.parametrize("framework", ["np", "pt"])
def test_exceptions_of_safe_open_are_those_of_safetensors(source, tmp_path, need, framework):
    safetensors = need("safetensors")
    need("torch")
    cut, text = tmp_path / "cut.safetensors", tmp_path / "text.safetensors"
    cut.write_bytes(source.read_bytes()[:-1])
    text.write_text("not a checkpoint")

    def opened(package, path=source, **options):
        return package.safe_open(path, framework, **options)

    def closed(package):
        with opened(package) as file:
            return file

    calls = [lambda package: opened(package).get_tensor("matri"), lambda package: opened(package).get_slice("matri"), lambda package: opened(package).get_tensor(None),
             lambda package: opened(package).get_slice("matrix")[6], lambda package: opened(package).get_slice("matrix")[0, 0, 0],
             lambda package: opened(package).get_slice("matrix")[1.5], lambda package: opened(package, backend="x"), lambda package: package.safe_open(source, "x"),
             lambda package: closed(package).keys(), lambda package: closed(package).get_tensor("matrix"), lambda package: closed(package).metadata(),
             lambda package: opened(package, cut), lambda package: opened(package, text), lambda package: opened(package, tmp_path / "absent")]
    for number, one in enumerate(calls):
        expected = outcome(lambda: one(safetensors))
        assert isinstance(expected, type) and is_like(outcome(lambda: one(wfs)), expected), number
    with pytest.raises(KeyError, match="File does not contain tensor 'matri'; did you mean 'matrix'"):
        wfs.safe_open(source, framework).get_tensor("matri")


def test_fsspec(source, need):
    fsspec = need("fsspec")
    data = source.read_bytes()
    with fsspec.open(f"wfs://{source}!/model.safetensors") as file:
        assert file.read(7) == data[:7] and file.seek(-3, os.SEEK_END) and file.read() == data[-3:]
    system = fsspec.filesystem("wfs", source=str(source))
    assert system.info("model.safetensors")["size"] == len(data)
    assert system.isdir("tensors") and system.exists("metadata.json") and not system.exists("absent")
    assert system.cat_file("model.safetensors", 3, 8) == data[3:8]
    assert system.cat_file("model.safetensors", -3) == data[-3:]
    assert set(system.glob("tensors/h*/f*.npy")) >= {"tensors/half/f16.npy", "tensors/half/f32.npy"}
    with pytest.raises(OSError):
        system.open("metadata.json", "wb")


def test_offset_keys_are_in_the_order_of_bytes(source, tmp_path, need):
    safetensors = need("safetensors")
    need("numpy")
    with wfs.safe_open(source, "np") as ours, safetensors.safe_open(source, "np") as theirs:
        assert ours.offset_keys() == theirs.offset_keys() != ours.keys()
    index = {}
    for number, names in ((2, "bc"), (1, "za")):
        file = tmp_path / f"model-{number:05}-of-00002.safetensors"
        write_safetensors(file, {name: ("U8", [1], name.encode()) for name in names})
        index |= {name: file.name for name in names}
    source.unlink()
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    with wfs.safe_open(tmp_path, "np") as ours:
        assert ours.offset_keys() == ["z", "a", "b", "c"] and ours.keys() == ["a", "b", "c", "z"]


def test_files_of_fsspec_are_its_buffered_files(source, need):
    fsspec, spec, pickle = need("fsspec"), need("fsspec.spec"), need("pickle")
    data, system = source.read_bytes(), fsspec.filesystem("wfs", source=str(source))
    with system.open("model.safetensors", block_size=64, cache_type="readahead") as file:
        assert isinstance(file, spec.AbstractBufferedFile) and (file.blocksize, file.size) == (64, len(data))
        assert file.read(7) == data[:7] and file.read() == data[7:] and file.seek(300) and file.read(200) == data[300:500]
        again = pickle.loads(pickle.dumps(file))
    assert again.tell() == 500 and again.read() == data[500:]
    with pytest.raises(ValueError, match="closed file"):
        file.read()
    assert system.read_block("model.safetensors", 5, 90) == data[5:95]
    assert fsspec.open(system.unstrip_protocol("model.safetensors")).open().read() == data
    with pytest.raises(ValueError, match="wfs://SOURCE!/PATH"):
        fsspec.open("wfs://model.safetensors")


@pytest.mark.parametrize("cache", ["simplecache", "filecache", "blockcache"])
def test_caches_of_fsspec_tell_models_apart(source, tmp_path, need, cache):
    fsspec = need("fsspec")
    other = tmp_path / "other" / source.name
    other.parent.mkdir()
    write_safetensors(other, {"other": ("U8", [3], b"abc")})
    storage = {cache: {"cache_storage": str(tmp_path / "cache")}}
    for _ in range(2):
        for one in (source, other):
            with fsspec.open(f"{cache}::wfs://{one}!/model.safetensors", **storage) as file:
                assert file.read() == one.read_bytes()
            system = fsspec.filesystem(cache, target_protocol="wfs", target_options={"source": str(one)}, **storage[cache])
            assert system.cat_file("model.safetensors") == system.cat("model.safetensors") == one.read_bytes()
            assert system.cat(["model.safetensors"]).popitem()[1] == one.read_bytes()
            assert "model.safetensors" in system.ls("", detail=False)
    for dtype in ("f16", "f32"):
        with fsspec.open(f"{cache}::wfs://{source}!/model.safetensors", wfs={"dtype": dtype}, **storage) as file:
            assert file.read() == wfs.open(source, dtype=dtype).read("model.safetensors")


def test_a_shortened_file_is_an_error_without_a_mapping(source, need):
    need("numpy")
    model = wfs.open(source)
    os.truncate(source, 100)
    import time
    time.sleep(0.02)
    with pytest.raises(wfs.WfsError):
        model.tensors["matrix"].numpy(copy=True)


def test_types_are_right(tmp_path, need):
    need("mypy")
    code = tmp_path / "use.py"
    code.write_text(textwrap.dedent("""
        import wfs
        model: wfs.Model = wfs.open("m", lora=["a", "b"], threads=2)
        shape: tuple[int, ...] = model.tensors["a"][1:2, ..., 0].shape
        data: bytes = model.read("config.json", 0, 10)
        reason: "str | None" = model.why("x")
        size: int = model.files["x"].size
    """))
    run = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", str(code)],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
