"""Checks of a mounted tree against numpy, and of what can only be called from a program: check.py WHAT ARGUMENTS...

Each function is one check and says in an assertion what is wrong. Nothing here uses wfs.
"""
import ctypes
import errno
import fcntl
import hashlib
import json
import mmap
import os
import pathlib
import random
import struct
import subprocess
import sys
import threading
import time

import numpy


# What a safetensors file holds.

def f8_e4m3(bits):
    """No infinities; NaN where all bits but the sign are set."""
    sign, exponent, fraction = bits >> 7, bits >> 3 & 15, bits & 7
    value = numpy.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
    value = numpy.where((exponent == 15) & (fraction == 7), numpy.nan, value)
    return numpy.where(sign == 1, -value, value).astype(numpy.float32)


NUMPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "U8": "u1", "I8": "i1", "BOOL": "?", "C64": "<c8"}


def values_f32(dtype, raw):
    """The elements as F32 numbers; None where there are none."""
    if dtype == "BF16":
        return (numpy.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
    if dtype == "F8_E4M3":
        return f8_e4m3(numpy.frombuffer(raw, "u1").astype("i4"))
    if dtype == "C64":
        return None
    return numpy.frombuffer(raw, NUMPY[dtype]).astype("<f4")


def stored_tensors(source):
    """{name: (dtype, shape, bytes, offset in the file)}"""
    content = pathlib.Path(source).read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    start = 8 + length
    return {name: (entry["dtype"], entry["shape"], content[start + entry["data_offsets"][0]:start + entry["data_offsets"][1]],
                   start + entry["data_offsets"][0]) for name, entry in header.items()}


def directory_of(name):
    """The escaping of tensor names, as the README states it."""
    text = "".join(f"%{ord(c):02X}" if ord(c) < 32 or c in "/%\x7f" else c for c in name)
    text = {"": "%", ".": "%2E", "..": "%2E%2E"}.get(text, text)
    if len(text) > 255:  # of the names tested only plain ones are as long
        text = text[:237] + "%~" + hashlib.sha256(name.encode()).hexdigest()[:16]
    return text


# Encodings, by numpy.

def to_bf16(values):
    """Nearest, ties to even; a NaN stays one, with its quiet bit set."""
    bits = values.view("<u4").astype("<u8")
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return numpy.where(numpy.isnan(values), bits >> 16 | 0x40, rounded).astype("<u2")


def nearest_away(values):
    """roundf(): halves away from zero."""
    return numpy.copysign(numpy.floor(numpy.abs(values.astype("f8")) + 0.5), values)


def to_q8_0(values):
    blocks = values.reshape(-1, 32)
    scale = (numpy.abs(blocks).max(1) / numpy.float32(127)).astype("<f4")
    inverse = numpy.divide(numpy.float32(1), scale, out=numpy.zeros_like(scale), where=scale != 0)
    quants = nearest_away(blocks * inverse[:, None]).astype("i1")
    return b"".join(s.tobytes() + q.tobytes() for s, q in zip(scale.astype("<f2"), quants))


def pack_nibbles(scale, quants):
    nibbles = quants[:, :16] | quants[:, 16:] << 4
    return b"".join(s.tobytes() + n.astype("u1").tobytes() for s, n in zip(scale.astype("<f2"), nibbles))


def to_q4_0(values):
    blocks = values.reshape(-1, 32)
    extreme = blocks[numpy.arange(len(blocks)), numpy.abs(blocks).argmax(1)]
    scale = (extreme / numpy.float32(-8)).astype("<f4")
    inverse = numpy.divide(numpy.float32(1), scale, out=numpy.zeros_like(scale), where=scale != 0)
    quants = numpy.minimum((blocks * inverse[:, None] + numpy.float32(8.5)).astype("i4"), 15)
    return pack_nibbles(scale, quants)


def to_q4_0_absmax7(values):
    blocks = values.reshape(-1, 32)
    scale = (numpy.abs(blocks).max(1) / numpy.float32(7)).astype("<f4")
    levels = numpy.divide(blocks, scale[:, None], out=numpy.zeros_like(blocks), where=scale[:, None] != 0)
    return pack_nibbles(scale, (numpy.clip(nearest_away(levels), -8, 7) + 8).astype("i4"))


def same_numbers(found, wanted, what):
    """The same bits, but for NaN, whose bits are nobody's."""
    assert found.shape == wanted.shape, f"{what}: shape {found.shape} instead of {wanted.shape}"
    bits = {2: "<u2", 4: "<u4"}[found.dtype.itemsize]
    both_nan = numpy.isnan(found) & numpy.isnan(wanted)
    wrong = (found.view(bits) != wanted.view(bits)) & ~both_nan
    assert not wrong.any(), f"{what}: {wrong.sum()} values differ, the first at {wrong.argmax()}"


# Checks.

def contents(root, source, q4_0="ggml"):
    """Every tensor's directory: which files there are, their sizes, bytes and metadata."""
    tensors = stored_tensors(source)
    root = pathlib.Path(root)
    assert sorted(os.listdir(root / "tensors")) == sorted(map(directory_of, tensors)), "names below tensors/"
    for name, (dtype, shape, raw, offset) in tensors.items():
        directory = root / "tensors" / directory_of(name)
        row = shape[-1] if shape else 1
        values = values_f32(dtype, raw)
        assert (directory / "raw").read_bytes() == raw, f"{name}/raw"
        if dtype in NUMPY:
            array = numpy.load(directory / "raw.npy", mmap_mode="r" if raw else None)
            assert array.dtype == numpy.dtype(NUMPY[dtype]) and list(array.shape) == shape, f"{name}/raw.npy: {array.dtype}"
            assert array.tobytes() == raw, f"{name}/raw.npy"
            header = (directory / "raw.npy").read_bytes()[:10]
            assert header[:8] == b"\x93NUMPY\x01\x00" and (struct.unpack("<H", header[8:])[0] + 10) % 64 == 0
        assert (directory / "raw.npy").exists() == (dtype in NUMPY), f"{name}/raw.npy is there or not"
        assert (directory / "f32").exists() == (values is not None), f"{name}/f32 is there or not"
        if values is not None:
            same_numbers(numpy.fromfile(directory / "f32", "<f4"), values, f"{name}/f32")
            loaded = numpy.load(directory / "f32.npy")
            assert list(loaded.shape) == shape and loaded.dtype == numpy.dtype("<f4")
            same_numbers(loaded.reshape(-1), values, f"{name}/f32.npy")
            with numpy.errstate(over="ignore"):
                same_numbers(numpy.fromfile(directory / "f16", "<f2"), values.astype("<f2"), f"{name}/f16")
            bf16 = numpy.fromfile(directory / "bf16", "<u2").astype("<u4") << 16
            same_numbers(bf16.view("<f4"), (to_bf16(values).astype("<u4") << 16).view("<f4"), f"{name}/bf16")
        blocks = values is not None and row % 32 == 0
        for block_type, encode in (("q8_0", to_q8_0), ("q4_0", to_q4_0 if q4_0 == "ggml" else to_q4_0_absmax7)):
            assert (directory / block_type).exists() == blocks, f"{name}/{block_type} is there or not"
            if blocks:
                assert (directory / block_type).read_bytes() == encode(values), f"{name}/{block_type}"
        entry = json.loads((directory / "metadata.json").read_text())
        facts = {"name": name, "dtype": dtype, "shape": shape, "elements": int(numpy.prod(shape, dtype="i8")), "bytes": len(raw),
                 "source": os.path.basename(source), "offset": offset, "length": len(raw)}
        for key, value in facts.items():
            assert entry[key] == value, f"{name}: {key} is {entry[key]} instead of {value}"
        strides = [int(numpy.prod(shape[i + 1:], dtype="i8")) for i in range(len(shape))]
        assert entry["strides"] == strides, f"{name}: strides {entry['strides']}"
        for view in entry["views"]:
            assert (root / view["path"]).stat().st_size == view["size"], f"{view['path']}: size"
        listed = {os.path.basename(view["path"]) for view in entry["views"]} | {"metadata.json"}
        assert listed == set(os.listdir(directory)), f"{name}: files {listed ^ set(os.listdir(directory))}"
    whole = json.loads((root / "metadata.json").read_text())
    assert sorted(t["name"] for t in whole["tensors"]) == sorted(tensors), "tensors of metadata.json"
    assert whole["parameters"] == sum(int(numpy.prod(t[1], dtype="i8")) for t in tensors.values())


def files_below(root):
    return [path for path in pathlib.Path(root).rglob("*") if path.is_file()]


def experts(root, source):
    """Each expert's files are those of a tensor with that expert's values alone."""
    root = pathlib.Path(root) / "tensors"
    top = json.loads((root.parent / "metadata.json").read_text())
    counts = {tensor["name"]: tensor.get("experts") for tensor in top["tensors"]}
    for name, (dtype, shape, raw, offset) in stored_tensors(source).items():
        assert counts[name] == (shape[0] if "experts." in name else None), name
        if counts[name] is None:
            assert not (root / name / "experts").exists(), name
            continue
        values = values_f32(dtype, raw).reshape(shape)
        assert sorted(os.listdir(root / name / "experts")) == sorted(map(str, range(shape[0]))), name
        for number, part in enumerate(values):
            directory = root / name / "experts" / str(number)
            length = len(raw) // shape[0]
            assert (directory / "raw").read_bytes() == raw[number * length:(number + 1) * length], directory
            same_numbers(numpy.load(directory / "f32.npy"), part, directory)
            if shape[-1] % 32 == 0:
                assert (directory / "q8_0").read_bytes() == to_q8_0(part), directory
                assert (directory / "q4_0").read_bytes() == to_q4_0(part), directory
            found = json.loads((directory / "metadata.json").read_text())
            assert found["expert"] == number and found["shape"] == shape[1:] and "experts" not in found, found
            assert found["offset"] == offset + number * length and found["length"] == length, found
            for view in found["views"]:
                assert (root.parent / view["path"]).stat().st_size == view["size"], view
                assert pathlib.Path(view["path"]).parent == pathlib.Path("tensors", name, "experts", str(number)), view


def ranges(root):
    """Any range of any file is the slice of the whole: in random order, one byte at a time at the ends, past the end."""
    generator = random.Random(3)
    for path in files_below(root):
        whole = path.read_bytes()
        assert len(whole) == path.stat().st_size, f"{path}: size"
        descriptor = os.open(path, os.O_RDONLY)
        direct = os.open(path, os.O_RDONLY | os.O_DIRECT)
        for _ in range(30):
            offset = generator.randrange(len(whole) + 10)
            length = generator.choice([1, 2, 17, 100, 4096, 5000, 1 << 17, len(whole) + 10])
            assert os.pread(descriptor, length, offset) == whole[offset:offset + length], f"{path}: {length} at {offset}"
            assert os.pread(direct, length, offset) == whole[offset:offset + length], f"{path}: direct, {length} at {offset}"
        for offset in range(min(len(whole), 70), -1, -1):
            assert os.pread(descriptor, 1, offset) == whole[offset:offset + 1], f"{path}: byte {offset}"
        os.lseek(descriptor, len(whole), os.SEEK_SET)
        assert os.read(descriptor, 100) == b"", f"{path}: there is something after the end"
        os.close(descriptor)
        os.close(direct)


def threads(path):
    """Eight readers, on one descriptor and on their own, in random order."""
    shared = os.open(path, os.O_RDONLY)
    whole = pathlib.Path(path).read_bytes()
    wrong = []

    def read(seed):
        generator = random.Random(seed)
        own = os.open(path, os.O_RDONLY | (os.O_DIRECT if seed % 2 else 0))
        for _ in range(100):
            offset, length = generator.randrange(len(whole)), generator.randrange(1, 300_000)
            for descriptor in (shared, own):
                if os.pread(descriptor, length, offset) != whole[offset:offset + length]:
                    wrong.append((seed, offset, length))
        os.close(own)

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert not wrong, f"wrong bytes: {wrong[:3]}"


def mapped(path):
    """Shared and private mappings; writing to a private one is the reader's own affair."""
    whole = pathlib.Path(path).read_bytes()
    with open(path, "rb") as file:
        with mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as shared:
            assert shared[:] == whole, "shared mapping"
            with mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as private:
                private[:4] = b"mine"
                assert private[4:] == whole[4:] and shared[:4] == whole[:4], "private mapping"
        try:
            mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        except PermissionError:
            return
    raise AssertionError("a shared mapping may be written to")


def system_calls(path):
    """sendfile, SEEK_DATA and SEEK_HOLE, locks, fadvise, readv."""
    whole = pathlib.Path(path).read_bytes()
    descriptor = os.open(path, os.O_RDONLY)
    reader, writer = os.pipe()
    fcntl.fcntl(writer, 1031, 1 << 20)  # F_SETPIPE_SZ
    count = os.sendfile(writer, descriptor, 5, 3000)
    assert os.read(reader, count) == whole[5:5 + count] and count > 0, "sendfile"
    assert os.lseek(descriptor, 7, os.SEEK_DATA) == 7, "SEEK_DATA"
    assert os.lseek(descriptor, 7, os.SEEK_HOLE) == len(whole), "SEEK_HOLE"
    try:
        os.lseek(descriptor, len(whole), os.SEEK_DATA)
        raise AssertionError("SEEK_DATA after the end")
    except OSError as error:
        assert error.errno == errno.ENXIO
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    other = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        raise AssertionError("flock: two at once")
    except BlockingIOError:
        pass
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, 10)
    fcntl.lockf(descriptor, fcntl.LOCK_UN, 10)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
    parts = [bytearray(3), bytearray(5)]
    assert os.preadv(descriptor, parts, 1) == 8 and b"".join(parts) == whole[1:9], "preadv"


def refused(what, *arguments, **options):
    """The call fails with EROFS."""
    try:
        what(*arguments, **options)
    except OSError as error:
        assert error.errno == errno.EROFS, f"{what.__name__}{arguments}: {error}"
        return
    raise AssertionError(f"{what.__name__}{arguments} worked")


def open_and_write(path, flags):
    descriptor = os.open(path, flags)
    try:
        os.write(descriptor, b"x")
    finally:
        os.close(descriptor)


def writers(root):
    """Everything that would write fails with EROFS; where the mount itself is not `ro`, a file may be opened all the same."""
    file, directory, new = f"{root}/metadata.json", f"{root}/tensors", f"{root}/new"
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
        refused(open_and_write, file, flags)
    refused(os.open, new, os.O_CREAT | os.O_WRONLY)
    refused(os.truncate, file, 0)
    refused(os.unlink, file)
    refused(os.rmdir, directory)
    refused(os.mkdir, new)
    refused(os.mkfifo, new)
    refused(os.symlink, "metadata.json", new)
    refused(os.link, file, new)
    refused(os.rename, file, new)
    refused(os.rename, directory, new)
    refused(os.chmod, file, 0o777)
    refused(os.chown, file, os.getuid(), os.getgid())
    refused(os.utime, file)
    refused(os.setxattr, file, "user.x", b"x")
    refused(os.setxattr, file, "user.wfs.dtype", b"x")
    refused(os.removexattr, f"{root}/tensors/f32/raw", "user.wfs.dtype")
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.write(descriptor, b"x")
        raise AssertionError("writing to a descriptor that is open for reading works")
    except OSError as error:
        assert error.errno == errno.EBADF, error


def allow_rdwr(root, path, source):
    """Opened for reading and writing, a file is read and mapped; no byte of it changes for anybody else."""
    file, wanted = f"{root}/{path}", pathlib.Path(source).read_bytes()
    with open(file, "r+b", buffering=0) as opened:
        assert opened.read(len(wanted) + 1) == wanted
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
            assert mapping[:] == wanted
        other = mmap.mmap(os.open(file, os.O_RDONLY), 0, access=mmap.ACCESS_READ)
        opened.seek(4096)
        refused(opened.write, b"written")
        await_bytes(lambda: other[:], wanted)
    # As gguflib, which MLX reads GGUF with.
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND)
    mapping = mmap.mmap(descriptor, 0)
    assert mapping[:] == wanted
    mapping[0:4] = b"oops"
    try:
        mapping.flush()
        raise AssertionError("what was stored into a mapping is written")
    except OSError:
        pass
    for read in lambda: other[:], lambda: mapping[:], lambda: pathlib.Path(file).read_bytes():
        await_bytes(read, wanted)


def await_bytes(read, wanted):
    """The kernel is told to forget pages as soon as the write is refused."""
    for _ in range(200):
        if read() == wanted:
            return
        time.sleep(0.05)
    raise AssertionError("the bytes of the file have changed")


def writers_of_read_only_mount(root):
    writers(root)
    for flags in (os.O_WRONLY, os.O_RDWR):
        refused(os.open, f"{root}/metadata.json", flags)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.access(f"{root}/metadata.json".encode(), os.W_OK) == -1 and ctypes.get_errno() == errno.EROFS, "access"


def is_deferred(path):
    """Whether a directory is filled by the first look into it; its attributes then cannot count what is there."""
    return path in ("compressed-tensors", "fp8", "modelopt", "mlx", "bitsandbytes") or os.path.dirname(path) == "mlx"


def attributes(root):
    """Listing, stat, fstat and another process agree, and all of it is as it should be."""
    listed = {}
    for directory, _, _ in os.walk(root):
        for entry in os.scandir(directory):
            status = entry.stat(follow_symlinks=False)
            assert entry.inode() == status.st_ino, entry.path
            listed[entry.path] = status
    assert len({status.st_ino for status in listed.values()}) == len(listed), "inode numbers are shared"
    script = "import os, sys; print([tuple(os.lstat(p)) + (os.lstat(p).st_blocks,) for p in sys.stdin.read().splitlines()])"
    other = subprocess.run([sys.executable, "-c", script], input="\n".join(listed), capture_output=True, text=True, check=True)
    for (path, status), seen in zip(listed.items(), eval(other.stdout)):
        assert tuple(status) == seen[:-1], path
        assert seen[-1] == -(-status.st_size // 512) and status.st_blksize == 4096, path
        assert status.st_uid == os.getuid() and status.st_gid == os.getgid(), path
        if os.path.isdir(path):
            links = 1 if is_deferred(os.path.relpath(path, root)) else 2 + sum(entry.is_dir() for entry in os.scandir(path))
            assert status.st_mode == 0o040755 and status.st_nlink == links, path
        else:
            assert status.st_mode == 0o100444 and status.st_nlink == 1, path
            assert status.st_size == len(pathlib.Path(path).read_bytes()), path


def same_times(root, source):
    wanted = os.stat(source).st_mtime_ns
    for path in [root] + [os.path.join(root, name) for name in os.listdir(root)]:
        status = os.stat(path)
        assert status.st_mtime_ns == status.st_ctime_ns == wanted, f"{path}: {status.st_mtime_ns} instead of {wanted}"


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
