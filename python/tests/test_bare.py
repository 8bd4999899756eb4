"""What works without numpy: files, bytes, names, errors, the program."""
import copy
import errno
import gc
import http.server
import importlib.metadata
import json
import multiprocessing
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time

import pytest

import wfs
from conftest import TENSORS, write_safetensors


def test_import_needs_no_other_package():
    code = "import sys, wfs; print(sorted({'numpy', 'torch', 'fsspec', 'ml_dtypes'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_tensors_have_names_types_and_shapes(source):
    tensors = wfs.open(source).tensors
    assert {name: (t.dtype, list(t.shape)) for name, t in tensors.items()} == {
        name: (dtype, shape) for name, (dtype, shape, _) in TENSORS.items()}
    assert sorted(tensors) == sorted(TENSORS) and len(tensors) == len(TENSORS)
    assert "matrix" in tensors and "matri" not in tensors and 3 not in tensors
    with pytest.raises(KeyError):
        tensors["absent"]


def test_bytes_are_those_of_the_source(source):
    model = wfs.open(source)
    for name, (_, _, data) in TENSORS.items():
        assert model.tensors[name].tobytes() == data
    assert model.tensors["matrix"][2:4].tobytes() == TENSORS["matrix"][2][2 * 256:4 * 256]
    assert model.tensors["matrix"][1, 3].tobytes() == TENSORS["matrix"][2][256 + 12:256 + 16]
    rows = [TENSORS["matrix"][2][i * 256:(i + 1) * 256] for i in range(6)]
    assert model.tensors["matrix"][::-1].tobytes() == b"".join(rows[::-1])
    assert model.tensors["matrix"][4::-2, ::-1][::-1].tobytes() == b"".join(
        row[i:i + 4] for row in rows[:5:2] for i in range(252, -1, -4))
    assert model.tensors["matrix"].tobytes("Q8_0")[:2] == model.read("tensors/matrix/q8_0", 0, 2)


def test_files(source):
    model = wfs.open(source)
    assert model.files["model.safetensors"].size == source.stat().st_size
    assert model.read("model.safetensors") == source.read_bytes()
    assert model.read("model.safetensors", 5, 9) == source.read_bytes()[5:14]
    assert model.read("model.safetensors", 1 << 40) == b""
    assert "metadata.json" in list(model.files) and "tensors/matrix/f32" in model.files
    assert not any(path.startswith("tensors/") for path in model.files)
    assert "tensors" not in model.files and "absent" not in model.files
    assert {"matrix", "a%2Fb é"} <= {info.path.split("/")[1] for info in model.files.list("tensors")}
    assert model.metadata["metadata"] == {"format": "pt"}


def test_parts_cover_a_file(tmp_path):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"matrix": ("F32", [256, 1024], bytes(range(256)) * 4096)})
    model, data = wfs.open(path), path.read_bytes()
    for n in 1, 2, 3, 16, 97:
        parts = model.parts("model.safetensors", n)
        assert len(parts) == n and all(offset % 65536 == 0 or offset == len(data) for offset, _ in parts)
        assert b"".join(model.read("model.safetensors", offset, length) for offset, length in parts) == data
    assert model.parts("tensors/matrix/q8_0", 1) == [(0, 256 * 1024 // 32 * 34)]
    for n in 0, -1, 100_001:
        with pytest.raises(ValueError):
            model.parts("model.safetensors", n)
    with pytest.raises(FileNotFoundError):
        model.parts("absent", 2)


def test_read_into_fills_a_buffer(source):
    model, data = wfs.open(source), source.read_bytes()
    buffer = bytearray(b"?" * 20)
    assert model.read_into("model.safetensors", 7, memoryview(buffer)[3:12]) == 9
    assert buffer == b"???" + data[7:16] + b"?" * 8
    assert model.read_into("model.safetensors", len(data) - 4, buffer) == 4 and buffer[:4] == data[-4:]
    assert model.read_into("model.safetensors", len(data), buffer) == 0
    assert model.read_into("model.safetensors", 0, bytearray()) == 0
    with pytest.raises(ValueError):
        model.read_into("model.safetensors", -1, buffer)
    with pytest.raises((TypeError, BufferError)):
        model.read_into("model.safetensors", 0, b"read-only")


def test_a_range_is_written_to_a_descriptor(source, tmp_path):
    data = source.read_bytes()
    with wfs.open(source).raw("model.safetensors") as file, open(tmp_path / "out", "wb") as out:
        file.write_to(out.fileno(), 5, 9)
        file.write_to(out.fileno(), len(data) - 2, 100)
        file.write_to(out.fileno())
    assert (tmp_path / "out").read_bytes() == data[5:14] + data[-2:] + data


def test_an_open_file_seeks(source):
    data = source.read_bytes()
    with wfs.open(source).open("model.safetensors") as file:
        assert file.read(3) == data[:3] and file.tell() == 3
        assert file.seek(-4, os.SEEK_END) == len(data) - 4 and file.read() == data[-4:] and file.read() == b""
        assert file.seek(10) == 10 and file.read(4) == data[10:14]
        with pytest.raises(ValueError):
            file.seek(-1)
    with pytest.raises(ValueError):
        file.read()


def test_copy_replaces_the_destination_when_it_is_complete(source, tmp_path):
    model, to = wfs.open(source), tmp_path / "copy"
    to.write_bytes(b"old")
    with pytest.raises(FileNotFoundError):
        model.copy("absent", to)
    assert to.read_bytes() == b"old"
    model.copy("model.safetensors", to)
    assert to.read_bytes() == source.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "model.safetensors"]


def test_a_directory_gets_the_copy(source, tmp_path):
    model, to = wfs.open(source), tmp_path / "to"
    to.mkdir()
    for destination in (to, os.fsencode(to), f"{to}/"):
        model.copy("tensors/half/raw", destination)
        assert [path.read_bytes() for path in to.iterdir()] == [TENSORS["half"][2]] and (to / "raw").exists()
        (to / "raw").unlink()
    with pytest.raises(FileNotFoundError):
        model.copy("tensors/half/raw", tmp_path / "absent" / "raw")


def test_a_copy_that_cannot_be_written_has_errno_and_filename(source, tmp_path):
    model, links = wfs.open(source), tmp_path / "links"
    links.mkdir()
    (links / "dangling").symlink_to("absent")
    (links / "loop").symlink_to("loop")
    for destination, expected in (("/dev/full", errno.ENOSPC), (links / "dangling", errno.ENOENT), (links / "loop", errno.ELOOP)):
        with pytest.raises(OSError) as failure:
            model.copy("model.safetensors", destination)
        assert (failure.value.errno, failure.value.filename) == (expected, str(destination))
    assert sorted(os.listdir(links)) == ["dangling", "loop"]


def test_errors(source, tmp_path):
    model = wfs.open(source)
    with pytest.raises(FileNotFoundError, match="there is no 'absent'"):
        model.open("absent")
    with pytest.raises(IsADirectoryError):
        model.open("tensors")
    with pytest.raises(NotADirectoryError):
        model.files.list("metadata.json")
    with pytest.raises(ValueError, match="unknown option 'no-such'"):
        wfs.open(source, **{"no-such": True})
    with pytest.raises(wfs.WfsError, match="absent.safetensors"):
        wfs.open(tmp_path / "absent.safetensors")
    with pytest.raises(ValueError, match="null byte"):
        model.open("a\0b")
    with pytest.raises(ValueError, match="no type has this name"):
        model.tensors["matrix"].tobytes("q9")
    with pytest.raises(ValueError, match="whole blocks"):
        model.tensors["matrix"][:, 1:33].tobytes("q4_0")
    assert model.why("metadata.json") is None
    assert "there is no 'absent'" in model.why("absent")
    assert "multiple of 32" in model.why("tensors/cube/q4_0")


def test_an_error_about_one_of_several_paths_names_it(source, tmp_path):
    absent, model = tmp_path / "absent.safetensors", wfs.open(source)
    for call in (lambda: wfs.diff(source, absent), lambda: wfs.diff(absent, source), lambda: wfs.compare(absent, source)):
        with pytest.raises(FileNotFoundError) as failure:
            call()
        assert failure.value.filename == str(absent)
    with pytest.raises(FileNotFoundError) as failure:
        model.attest("metadata.json", "tensors/absent")
    assert failure.value.filename == "tensors/absent"


def test_slices_that_make_no_sense(source):
    matrix = wfs.open(source).tensors["matrix"]
    assert matrix[3].shape == (64,) and matrix[..., 0].shape == (6,) and matrix[1:1].shape == (0, 64)
    assert matrix[4:1].shape == (0, 64) and matrix[-2:, ::7].shape == (2, 10) and matrix[1:5][1:3].shape == (2, 64)
    for wrong in (6, -7, (0, 0, 0), (..., ...)):
        with pytest.raises(IndexError):
            matrix[wrong]
    with pytest.raises(TypeError):
        matrix["a"]


def test_options(source):
    with wfs.open(source, names="hf", dtype=None, follow_links=True, threads=1) as model:
        assert model.tensors["half"].tobytes("f16") == TENSORS["half"][2]
    with pytest.raises(ValueError, match="closed"):
        model.tensors


def test_a_changed_source_is_an_error(source):
    model = wfs.open(source)
    file = model.raw("tensors/matrix/f32")
    write_safetensors(source, {"other": ("U8", [1], b"\1")})
    os.utime(source, ns=(1, 1))
    import time
    time.sleep(0.02)
    with pytest.raises(wfs.WfsError, match="changed"):
        file.read()
    with pytest.raises(wfs.WfsError, match="changed"):
        model.tensors["matrix"].tobytes()


def test_many_threads(source):
    model, wrong = wfs.open(source), []

    def read():
        for _ in range(50):
            if model.tensors["matrix"].tobytes("f32") != TENSORS["matrix"][2]:
                wrong.append("matrix")
            if model.read("tensors/half/raw") != TENSORS["half"][2]:
                wrong.append("half")
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_child_of_a_fork_reads(source):
    model = wfs.open(source)
    before = model.tensors["matrix"].tobytes("q4_0")
    child = os.fork()
    if child == 0:
        same = model.tensors["matrix"].tobytes("q4_0") == before
        same = same and wfs.open(source).tensors["matrix"].tobytes("q4_0") == before
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_descriptors_are_closed(source):
    def n_open():
        return len(os.listdir("/proc/self/fd"))
    gc.collect()
    before = n_open()
    for _ in range(5):
        model = wfs.open(source)
        file = model.open("model.safetensors")
        model.close()
        assert file.read(1) == source.read_bytes()[:1]
        del model, file
    gc.collect()
    assert n_open() == before


def test_the_process_stays_as_it_is_unless_it_is_told(tmp_path):
    source = tmp_path / "tall.safetensors"
    write_safetensors(source, {"tall": ("F32", [4096, 256], bytes(4096 * 1024))})
    code = """if True:
        import resource, sys, wfs
        def caught():
            line = next(line for line in open("/proc/self/status") if line.startswith("SigCgt"))
            return int(line.split()[1], 16) >> 6 & 1
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        if sys.argv[2:]:
            wfs.allow(sigbus=True)
        wfs.open(sys.argv[1]).tensors["tall"][:, 3].tobytes("f32")
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == limit
        print(caught())"""
    def run(*arguments):
        return subprocess.run([sys.executable, "-c", code, str(source), *arguments], check=True, capture_output=True)
    assert (run().stdout, run().stderr) == (b"0\n", b"")
    assert run("allowed").stdout == b"1\n"


def test_the_distribution_has_a_name_of_its_own():
    """PyPI's wfs is another project."""
    found = importlib.metadata.distribution("wfs-weights")
    assert any(str(file) == "wfs/__init__.py" for file in found.files)


def test_the_program(source):
    def run(*command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wrong = subprocess.run([wfs.program(), "ls", "-o", "layout=absent", str(source)], capture_output=True, text=True)
    assert "known: " in wrong.stderr and "vllm" in wrong.stderr
    version = f"wfs {wfs.__version__} (build "
    assert run(wfs.program(), "--version").startswith(version)
    assert run(sys.executable, "-m", "wfs", "ls", str(source)) == run(wfs.program(), "ls", str(source))
    assert run(os.path.join(os.path.dirname(sys.executable), "wfs"), "--version").startswith(version)


def test_errors_are_pythons_own_with_errno_and_filename(source, tmp_path):
    for path, kind, code in ((tmp_path / "absent", FileNotFoundError, errno.ENOENT), (source / "below", NotADirectoryError, errno.ENOTDIR)):
        with pytest.raises(kind) as told:
            wfs.open(path)
        assert (told.value.errno, told.value.filename) == (code, str(path))
    with pytest.raises(FileNotFoundError) as told:
        wfs.open(source).read("absent")
    assert told.value.filename == "absent" and str(told.value).count("absent") == 1
    with pytest.raises(KeyError, match="did you mean 'metadata.json'"):
        wfs.open(source).files["metadata.jsn"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all files")
def test_an_unreadable_source_is_a_permission_error(source):
    source.chmod(0)
    with pytest.raises(PermissionError):
        wfs.open(source)


def test_pickled_objects_open_the_source_again(source):
    model = wfs.open(source, dtype="f16")
    again = pickle.loads(pickle.dumps([model, model.tensors["matrix"][2:4, ::2], model.files, model.tensors]))
    assert again[1].tobytes() == model.tensors["matrix"][2:4, ::2].tobytes() and again[1].shape == (2, 32)
    assert again[0].read("model.gguf") == model.read("model.gguf") and list(again[2]) == list(model.files)
    assert copy.deepcopy(model).tensors["half"].tobytes() == TENSORS["half"][2]
    text = pickle.dumps(model.tensors["matrix"])
    write_safetensors(source, TENSORS | {"matrix": ("F32", [64, 6], TENSORS["matrix"][2])})
    with pytest.raises(ValueError, match="another type or shape"):
        pickle.loads(text)


def test_a_copy_of_an_open_file_is_a_file_of_its_own(source):
    data, file = source.read_bytes(), wfs.open(source).raw("model.safetensors")
    file.seek(9)
    again = [copy.copy(file), pickle.loads(pickle.dumps(file))]
    file.close()
    assert [one.read(5) for one in again] == [data[9:14]] * 2
    with pytest.raises(ValueError, match="closed file"):
        pickle.dumps(file)


def test_a_file_can_be_closed_while_threads_read(source):
    model = wfs.open(source)
    for _ in range(20):
        file, failures = model.raw("model.safetensors"), []

        def read():
            try:
                while True:
                    file.pread(1000, 0)
            except ValueError as error:
                failures.append(str(error))

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        file.close()
        for thread in threads:
            thread.join()
        assert failures == ["I/O operation on closed file"] * 3


def test_a_file_that_is_open_at_the_end_closes_before_its_model(source):
    script = """if True:
        import sys, wfs, wfs._library as library
        def traced(name):
            function = getattr(library.lib, name)
            setattr(library.lib, name, lambda pointer: (print(name), function(pointer)))
        traced("wfs_file_close"), traced("wfs_close")
        file = wfs.open(sys.argv[1]).raw("model.safetensors")"""
    run = subprocess.run([sys.executable, "-c", script, source], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["wfs_file_close", "wfs_close"]


def test_spawned_workers_read(source):
    model = wfs.open(source)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(wfs.Tensor.tobytes, [model.tensors["half"]]) == [TENSORS["half"][2]]


def test_tables(source):
    model = wfs.open(source)
    assert "matrix  F32   [6, 64]" in repr(model.tensors) and f"<wfs.Tensors: {len(TENSORS)}>" in repr(model.tensors)
    assert "<td>a/b é</td><td>U8</td><td>[3]</td>" in model._repr_html_() and "<th>bytes</th>" in model.files._repr_html_()
    many = {f"<{i}>": ("U8", [1], b"x") for i in range(25)}
    write_safetensors(source, many)
    assert "... 5 more" in repr(wfs.open(source).tensors) and "&lt;3&gt;" in wfs.open(source).tensors._repr_html_()


@pytest.fixture
def large(tmp_path):
    """A model whose tensor takes a minute to quantize, in a file with a hole."""
    path, n_bytes = tmp_path / "large.safetensors", 4 << 30
    head = json.dumps({"large": {"dtype": "F32", "shape": [1 << 20, 1 << 10], "data_offsets": [0, n_bytes]}}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head)
    os.truncate(path, 8 + len(head) + n_bytes)
    return wfs.open(path)


def test_copies_tell_their_progress(source, tmp_path):
    model, told = wfs.open(source), []
    model.copy("model.safetensors", tmp_path / "copy", progress=lambda *one: told.append(one))
    assert told[-1] == (source.stat().st_size, source.stat().st_size)
    told.clear()
    with open(tmp_path / "copy", "wb") as file:
        model.raw("model.safetensors").write_to(file.fileno(), 5, 9, progress=lambda *one: told.append(one))
    assert told == [(9, 9)] and (tmp_path / "copy").read_bytes() == source.read_bytes()[5:14]


def test_a_copy_that_ends_at_once_tells_its_progress(source, tmp_path, monkeypatch):
    def start_and_end(thread, start=threading.Thread.start):
        start(thread)
        thread.join()

    told = []
    monkeypatch.setattr(threading.Thread, "start", start_and_end)
    wfs.open(source).copy("model.safetensors", tmp_path / "copy", progress=lambda *one: told.append(one))
    assert told == [(source.stat().st_size, source.stat().st_size)]


LONG_CALLS = {
    "copy": lambda model, path: model.copy("tensors/large/iq4_nl", path),
    "write_to": lambda model, path: model.raw("tensors/large/iq4_nl").write_to(os.open(os.devnull, os.O_WRONLY)),
    "read": lambda model, path: model.read("tensors/large/iq4_nl"),
    "tobytes": lambda model, path: model.tensors["large"].tobytes("iq4_nl"),
}


@pytest.mark.parametrize("name", LONG_CALLS)
def test_an_interrupt_stops_a_long_call(large, tmp_path, name):
    (tmp_path / "out").mkdir()
    begun = time.monotonic()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a script starts in the background ignores it
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        LONG_CALLS[name](large, tmp_path / "out" / "copy")
    assert time.monotonic() - begun < 3 and os.listdir(tmp_path / "out") == []


def interrupted(call):
    """Makes a call, interrupts it, and returns how long it took until nothing of it was left: no thread, no computing."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        call()
    timer.join()
    while [thread for thread in threading.enumerate() if not thread.daemon] != [threading.main_thread()]:
        time.sleep(0.01)
    took, computed = time.monotonic() - begun - 0.3, time.process_time()
    time.sleep(0.2)
    assert time.process_time() - computed < 0.1
    return took


@pytest.mark.parametrize("name", ["diff", "attest"])
def test_an_interrupt_ends_a_comparison(large, name):
    calls = {"diff": lambda: wfs.diff(large.source, large.source), "attest": lambda: large.attest("model.safetensors")}
    assert interrupted(calls[name]) < 2
    assert large.tensors["large"][5].tobytes() == bytes(4096)


class Trickle(http.server.BaseHTTPRequestHandler):
    """Answers with ranges of server.data: up to server.quick at once, then a few bytes at a time."""

    def log_message(self, *unused):
        pass

    def do_GET(self):
        if not self.path.endswith(".safetensors"):
            return self.send_error(404)
        data, first, end = self.server.data, 0, len(self.server.data)
        if "Range" in self.headers:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            first, end = int(first), min(int(last) + 1, end)
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Content-Length", end - first)
        self.send_header("Content-Range", f"bytes {first}-{end - 1}/{len(data)}")
        self.send_header("ETag", '"1"')
        self.end_headers()
        try:
            while first < end:
                length = min(end - first, self.server.quick - first if first < self.server.quick else 500)
                self.wfile.write(data[first:first + length])
                first += length
                time.sleep(0.1 if first > self.server.quick else 0)
        except OSError:
            pass  # the test has ended

    do_HEAD = do_GET


REMOTE_CALLS = {
    "tobytes": lambda model: model.tensors["matrix"].tobytes(),
    "attest": lambda model: json.loads(model.attest("model.safetensors"))["subject"],
    "diff": lambda model: wfs.diff(model.source, model.source)["counts"],
    "open": lambda model: len(wfs.open(model.source).tensors),
}


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")  # one for the process


@pytest.mark.parametrize("name", REMOTE_CALLS)
def test_an_interrupt_ends_what_waits_for_a_server(tmp_path, cache, name):
    path, call = tmp_path / "model.safetensors", REMOTE_CALLS[name]
    write_safetensors(path, {"matrix": ("F32", [4096, 1024], bytes(16 << 20))})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Trickle) as server:
        server.daemon_threads, server.data, server.quick = True, path.read_bytes(), 1 << 30
        threading.Thread(target=server.serve_forever, daemon=True).start()
        model = wfs.open(f"http://127.0.0.1:{server.server_port}/{name}/model.safetensors", cache=cache)
        server.quick = 0
        if name == "open":
            model.source = model.source.replace("open", "again")
        assert interrupted(lambda: call(model)) < 2
        server.quick = 1 << 30
        assert call(model) == call(wfs.open(path))
        server.shutdown()


def test_an_exception_of_progress_stops_a_copy(large, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(ZeroDivisionError):
        large.copy("tensors/large/iq4_nl", tmp_path / "out" / "copy", progress=lambda done, size: 1 / 0)
    assert os.listdir(tmp_path / "out") == []
