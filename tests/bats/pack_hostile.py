"""Archives that nobody packed: pack_hostile.py WFS SCRATCH [sanitized]

Each must be refused with a message, within seconds, and within 64 MB above what its lists may take: an entry of an honest list takes 16
times its compressed bytes. SCRATCH is a new folder. Of a sanitized WFS, memory is not measured, and archives that would take much are left out.
"""
import ctypes
import ctypes.util
import hashlib
import json
import multiprocessing
import os
import struct
import subprocess
import sys
import time

WFS, SCRATCH = sys.argv[1:3]
IS_SANITIZED = sys.argv[3:] == ["sanitized"]
LARGE = ("many", "one line", "empty lines", "bomb")
ABOVE = 64 << 20  # bytes of memory
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}  # which fills memory that nothing uses
SECONDS = 30
NAME = "org.opencontainers.image.ref.name"
TYPE = "application/vnd.wfs.archive"
zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
ENTRY = {"mode": 420, "mtime": [1, 2]}
ROOT = {"path": "", "kind": "folder", **ENTRY}
HASH = "a" * 64


def frame(data):
    bound = ctypes.c_size_t(len(data) + (len(data) >> 8) + 1024)
    out = ctypes.create_string_buffer(bound.value)
    length = zstd.ZSTD_compress(out, bound, data, ctypes.c_size_t(len(data)), 3)
    return out.raw[:length]


def lines(*values):
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def pack(tensors, chunks, n_chunks=None, length=None, body=b""):
    """A pack whose list is `tensors`, or the bytes of a list, and whose table of chunks is `chunks`."""
    text = frame(tensors if isinstance(tensors, bytes) else lines(*tensors))
    content = text + b"".join(struct.pack("<I", size) for size in chunks)
    content += struct.pack("<QQ8s", len(text) if length is None else length, len(chunks) if n_chunks is None else n_chunks, b"wfs-pack")
    return body + struct.pack("<II", 0x184D2A57, len(content)) + content


class Archive:
    def __init__(self, name):
        self.path = name
        os.makedirs(f"{name}/blobs/sha256")
        self.index = []
        with open(f"{name}/oci-layout", "w") as file:
            file.write('{"imageLayoutVersion":"1.0.0"}')

    def blob(self, data):
        digest = hashlib.sha256(data).hexdigest()
        with open(f"{self.path}/blobs/sha256/{digest}", "wb") as file:
            file.write(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}

    def manifest(self, layers, **more):
        empty = {"mediaType": "application/vnd.oci.empty.v1+json", **self.blob(b"{}")}
        text = {"schemaVersion": 2, "artifactType": TYPE + ".v1", "config": empty, "layers": layers, **more}
        return self.blob(json.dumps(text).encode())

    def add(self, manifest, name="x"):
        self.index.append({**manifest, "annotations": {NAME: name}})

    def member(self, list_of_files, *packs, name="x"):
        """Adds a source; `list_of_files` is a frame."""
        layers = [{"mediaType": TYPE + ".files.v1+zstd", **self.blob(list_of_files)}]
        self.add(self.manifest(layers + [{"mediaType": TYPE + ".pack.v1+zstd", **self.blob(data)} for data in packs]), name)
        return self

    def write(self, text=None):
        with open(f"{self.path}/index.json", "w") as file:
            file.write(text if text is not None else json.dumps({"schemaVersion": 2, "manifests": self.index}))


def file_of(size, *segments, name="a", more=b""):
    return frame(lines(ROOT, {"path": name, "kind": "file", **ENTRY, "size": size, "sha256": HASH}, *segments) + more)


def tensor(length, coding="raw", **more):
    return {"length": length, "sha256": HASH, "coding": coding, **more}


def run(*words):
    """Returns the status, what is said, and the memory that was taken."""
    start = time.monotonic()
    child = subprocess.Popen(["timeout", str(SECONDS), WFS, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=ENVIRONMENT)
    said = child.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    assert time.monotonic() - start < SECONDS, (words, time.monotonic() - start)
    return os.waitstatus_to_exitcode(status), said, usage.ru_maxrss << 10


def names(archive):
    for name, reason in (("..", "not the name of a folder"), ("a/b", "not the name of a folder"), ("", "not the name of a folder"),
                         ("n" * 300, "not the name of a folder"), (7, "not the name of a folder")):
        yield from archive(f"name {str(name)[:5]}".replace("/", "_"), lambda a: a.member(file_of(0), name=name), reason)
    yield from archive("same name", lambda a: a.member(file_of(0)).member(file_of(0)), "two manifests are named 'x'")
    yield from archive("digest", lambda a: a.add({"digest": "sha256:" + "../" * 21 + "x", "size": 4}), "no size and digest")
    yield from archive("no blob", lambda a: a.add({"digest": "sha256:" + HASH, "size": 4}), "o such file")
    yield from archive("not JSON", lambda a: a.add(a.blob(b"{")), "invalid JSON")
    yield from archive("deep", lambda a: a.add(a.blob(b"[" * 2000000)), "JSON")


def manifests(archive):
    def layers(*types):
        return lambda a: a.add(a.manifest([{"mediaType": TYPE + kind, **a.blob(file_of(0))} for kind in types]))

    yield from archive("no list", layers(), "no layer is a list of files")
    yield from archive("two lists", layers(".files.v1+zstd", ".files.v1+zstd"), "which this wfs cannot read")
    yield from archive("newer", layers(".files.v1+zstd", ".pack.v2+zstd"), "a layer of type 'application/vnd.wfs.archive.pack.v2+zstd', which this wfs cannot read")
    yield from archive("another artifact", lambda a: a.add(a.manifest([], artifactType="image")), "its manifest is not of " + TYPE)
    many = {"mediaType": TYPE + ".pack.v1+zstd", "digest": "sha256:" + HASH, "size": 9}

    def layers_of_many(a):
        """A manifest of 4 MB that a thousand sources share: each would hold its layers."""
        manifest = a.manifest([{"mediaType": TYPE + ".files.v1+zstd", **a.blob(file_of(0))}] + [many] * 25000)
        for i in range(1000):
            a.add(manifest, f"{i}")

    yield from archive("many layers", layers_of_many, "more than 524288 layers")

    def bytes_of_many(a):
        manifest = a.manifest([{"mediaType": TYPE + ".files.v1+zstd", **a.blob(file_of(0))}], annotations={"x": "y" * 4000000})
        for i in range(1000):
            a.add(manifest, f"{i}")

    yield from archive("many bytes", bytes_of_many, "its manifests have more than 128 MB")


def lists(archive):
    def list_of(make):
        return lambda a: a.member(make())

    yield from archive("parent", list_of(lambda: file_of(0, name="../a")), "leads out of its folder")
    yield from archive("large", list_of(lambda: file_of(1 << 63)), "no valid size")
    yield from archive("short", list_of(lambda: file_of(1 << 60)), "the segments of 'a' have 0 bytes, and the file 1152921504606846976")
    yield from archive("one line", list_of(lambda: frame(b" " * (128 << 20))), "longer than 65536 bytes")
    yield from archive("empty lines", list_of(lambda: frame(b"\n" * (128 << 20))), "line 1 of its list")
    folder = b'{"path":"%07d","kind":"folder","mode":0,"mtime":[0,0]}\n'
    yield from archive("many folders", list_of(lambda: frame(lines(ROOT) + b"".join(folder % i for i in range(300000)))), "more than a list of its size may")
    yield from archive("many segments", list_of(lambda: file_of(2 << 20, more=b"[1]\n" * (2 << 20))), "more than a list of its size may")
    yield from archive("cut off", list_of(lambda: file_of(0)[:-4]), "ends within a line")
    window = struct.pack("<IBB", 0xFD2FB528, 0, 0xA8) + b"\x01\x00\x00"
    yield from archive("window of 2 GB", list_of(lambda: window), "requires too much memory")


def packs(archive):
    def pack_of(make, size=65536, segment=None):
        return lambda a: a.member(file_of(size, segment or [0, 0, 0, size]), make())

    sound = frame(b"x" * 65536)
    yield from archive("no pack", pack_of(lambda: b"x" * 100), "no pack")
    yield from archive("list of 2^60", pack_of(lambda: pack([tensor(65536)], [9], length=1 << 60)), "its index would have a list of 1152921504606846976 bytes")
    yield from archive("2^62 chunks", pack_of(lambda: pack([tensor(65536)], [9], n_chunks=1 << 62)), "and 4611686018427387904 chunks")
    yield from archive("tensor of 2^60", pack_of(lambda: pack([tensor(1 << 60)], [9])), "more chunks than the index, 1")
    yield from archive("tensor of nothing", pack_of(lambda: pack([tensor(0)], [])), "no positive length")
    yield from archive("two of 2^63", pack_of(lambda: pack([tensor(1 << 63), tensor(1 << 63)], [9])), "more chunks than the index")
    yield from archive("many chunks", pack_of(lambda: pack([tensor(65536)], [0] * 1000000)), "chunks belong to no tensor")
    yield from archive("overlapping chunks", pack_of(lambda: pack([tensor(131072)], [len(sound), len(sound)], body=sound)), "its chunks have")
    yield from archive("a gap", pack_of(lambda: pack([tensor(65536)], [len(sound) - 1], body=sound)), "its chunks have")
    yield from archive("large chunk", pack_of(lambda: pack([tensor(65536)], [300000], body=bytes(300000))), "a chunk of 65536 bytes would take 300000")

    def bomb():
        chunk = frame(bytes(128 << 20))
        return pack([tensor(65536)], [len(chunk)], body=chunk)

    yield from archive("bomb", pack_of(bomb), "a frame does not contain the 65536 bytes that belong there")
    yield from archive("other pack", pack_of(lambda: pack([tensor(65536)], [len(sound)], body=sound), segment=[1, 0, 0, 65536]), "a segment of pack 1 of 1")
    yield from archive("other tensor", pack_of(lambda: pack([tensor(65536)], [len(sound)], body=sound), segment=[0, 1, 0, 65536]), "a segment of tensor 1")
    yield from archive("outside", pack_of(lambda: pack([tensor(65536)], [len(sound)], body=sound), segment=[0, 0, 1, 65536]), "a segment of bytes [1, +65536)")
    yield from archive("far outside", pack_of(lambda: pack([tensor(65536)], [len(sound)], body=sound), segment=[0, 0, 1 << 61, 65536]), "a segment of bytes [2305843009213693952, ")
    yield from archive("unknown coding", pack_of(lambda: pack([tensor(65536, "future-8")], [len(sound)], body=sound)), "coding 'future-8' is unknown")
    for chunk in 0, 2048, 40000, 131072, -4096, "4096", [4096], 1 << 64:
        yield from archive(f"chunk {chunk!r}", pack_of(lambda chunk=chunk: pack([tensor(65536, chunk=chunk)], [len(sound)], body=sound)), "its chunk is no power of two from 4096 to 65536")
    yield from archive("small chunks", pack_of(lambda: pack([tensor(65536, chunk=4096)], [len(sound)], body=sound)), "more chunks than the index, 1")
    yield from archive("chunks of other sizes", pack_of(lambda: pack([tensor(65536, chunk=32768)], [len(sound), 0], body=sound)), "a frame does not contain the 32768 bytes that belong there")
    cast = tensor(65536, "cast-F32", input=[HASH, 0, "F32"])
    yield from archive("no input", pack_of(lambda: pack([cast], [12], body=sound[:12])), "a pack that no manifest lists")
    yield from archive("many tensors", pack_of(lambda: pack(lines(tensor(1)) * 300000, [9])), "more")


def links(archive):
    """Blobs that are no files: what lies outside is not read, and nothing is waited for."""
    def replace(make):
        def change(a):
            a.member(file_of(0))
            path = f"{a.path}/blobs/sha256/{a.index[0]['digest'][7:]}"
            os.rename(path, "outside.json")
            make(path)
        return change

    yield from archive("link", replace(lambda path: os.symlink("../../../outside.json", path)), "")
    yield from archive("FIFO", replace(os.mkfifo), "not a regular file")
    yield from archive("folder", replace(os.mkdir), "not a regular file")


def make(name, change):
    """For a process of its own, whose memory commands do not inherit."""
    made = Archive(name)
    change(made)
    made.write()


def cases():
    def archive(name, change, reason):
        if IS_SANITIZED and name.startswith(LARGE):
            return
        made = multiprocessing.Process(target=make, args=(name, change))
        made.start()
        made.join()
        assert made.exitcode == 0, name
        yield name, reason

    for kind in (names, manifests, lists, packs, links):
        yield from kind(archive)


multiprocessing.set_start_method("fork")
os.makedirs(SCRATCH)
os.chdir(SCRATCH)
good = Archive("good")
good.member(frame(lines(ROOT)))
good.write()
status, said, least = run("verify", "good")
assert status == 0, said
n = 0
for path, reason in cases():
    blobs = sum(os.lstat(f"{path}/blobs/sha256/{name}").st_size for name in os.listdir(f"{path}/blobs/sha256"))
    for command in (["verify", path], ["ls", "-R", path], ["cp", "-r", path, "files/x", "copy"], ["pack", "--prune", path]):
        status, said, memory = run(*command)
        assert command[0] != "verify" or status in (1, 2) and reason in said and "wfs: " in said, (path, command, status, said[:2000])
        assert status >= 0, (path, command, status, said)
        assert IS_SANITIZED or memory < least + 16 * blobs + ABOVE, (path, command, f"{memory >> 20} MB, of which {least >> 20} always")
        assert not os.path.exists("a")
        subprocess.run(["rm", "-rf", "copy"], check=True)
    subprocess.run(["rm", "-r", path], check=True)
    n += 1
print(n, "archives")
