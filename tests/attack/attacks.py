"""The attacks of scripts/attack on what is between the parts: JSON, lists, two hubs and one cache, requests, sources that change."""
import collections
import hashlib
import http.server
import itertools
import json
import os
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import structure

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMIT = "a" * 40
TIMEOUT = 60
SANITIZERS = (b"AddressSanitizer", b"runtime error:", b"Assertion")


class Model:
    """A small model in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder / "sample"
        subprocess.run([sys.executable, ROOT / "tests/data/make.py", "sample", self.folder], check=True)
        self.files = {path.name: path.read_bytes() for path in self.folder.iterdir()}


def run(arguments, folder, **variables):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "AWS_"))}
    environment.update(XDG_CACHE_HOME=str(folder / "cache"), no_proxy="*", **variables)
    try:
        return subprocess.run([os.environ["WFS"], *map(str, arguments)], capture_output=True, env=environment, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired as error:
        return subprocess.CompletedProcess(error.cmd, "none after a minute", b"", b"")


def fault(result):
    """What is wrong with how a command ended: it must end with 0, or with 1 and a reason, which commands no terminal."""
    if result.returncode not in (0, 1):
        return f"status {result.returncode}"
    if any(word in result.stderr for word in SANITIZERS):
        return "a report of a sanitizer"
    if result.returncode == 1 and not result.stderr.startswith(b"wfs: "):
        return "no reason"
    if any(byte < 32 and byte != 10 or byte == 127 for byte in result.stderr):
        return "control characters"
    return None


def loop(arguments, name, once):
    """Calls once(rng) for each mutant: it returns what was found, or None, and what to count."""
    counts, findings = collections.Counter(), []
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        found, what = once(random.Random(seed))
        counts[what] += 1
        if found:
            findings.append(seed)
            print(f"{name} {seed}: {found}")
    print(f"{name}: {arguments.count} from {arguments.seed} on: " + ", ".join(f"{n:,} {what}" for what, n in counts.most_common()))
    return not findings


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def content(self, data):
        asked = self.headers.get("Range", "")
        first, _, last = asked.removeprefix("bytes=").partition("-")
        if not asked or not data or int(first) >= len(data):
            return self.answer(200, data, ETag='"e"', Accept_Ranges="bytes")
        end = min(int(last or len(data) - 1), len(data) - 1)
        return self.answer(206, data[int(first):end + 1], ETag='"e"', Content_Range=f"bytes {first}-{end}/{len(data)}")

    def do_GET(self):
        self.server.reply(self, self.path.split("?")[0])


class Server(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 64

    def __init__(self, reply):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply, self.address = reply, f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass


def list_of_hub(files, **stated):
    siblings = []
    for name, data in files.items():
        size = stated.get("size", len(data))
        one = {"rfilename": name, "size": size, "blobId": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}
        if name.endswith(".safetensors"):
            one["lfs"] = {"size": size, "sha256": stated.get("sha256", hashlib.sha256(data).hexdigest()), "pointerSize": 100}
        siblings.append(one)
    return json.dumps({"id": "a/m", "sha": stated.get("commit", COMMIT), "siblings": siblings, "lastModified": "2024-05-01T12:00:00.000Z"})


def json_files(arguments):
    names = ["config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        model = Model(folder)

        def once(rng):
            name = rng.choice(names)
            text = model.files[name].decode()
            for _ in range(rng.choice((1, 1, 2))):
                text = structure.change_json(text, rng)
            (model.folder / name).write_bytes(text.encode(errors="surrogatepass"))
            result = run(rng.choice((["info", model.folder], ["ls", "-R", model.folder], ["cat", model.folder, "metadata.json"], ["cat", model.folder, "model.gguf"])), folder)
            (model.folder / name).write_bytes(model.files[name])
            return fault(result), "accepted" if result.returncode == 0 else "refused"

        return loop(arguments, "json", once)


def list_of_s3(files):
    objects = "".join(f"<Contents><Key>m/{name}</Key><Size>{len(data)}</Size><ETag>&quot;e&quot;</ETag><LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
                      for name, data in files.items())
    return f'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>{objects}</ListBucketResult>'


def lists(arguments):
    with tempfile.TemporaryDirectory() as scratch:
        folder, now = pathlib.Path(scratch), {}
        model = Model(folder)

        def reply(handler, path):
            name = path.rsplit("/", 1)[-1]
            if path.startswith("/api/") or path.endswith("/") or "list-type" in handler.path:
                return handler.answer(200, now["list"], Content_Type=now["type"])
            return handler.content(model.files[name]) if name in model.files else handler.answer(404)

        server = Server(reply)
        html = "".join(f'<a href="{name}">{name}</a>\n' for name in model.files)
        kinds = [("hf://a/m", list_of_hub(model.files), "application/json", structure.change_json),
                 ("s3://bucket/m", list_of_s3(model.files), "application/xml", structure.change_text),
                 (f"{server.address}/m/", html, "text/html", structure.change_text),
                 (f"{server.address}/m/", json.dumps([{"name": name, "type": "file"} for name in model.files]), "application/json", structure.change_json)]

        def once(rng):
            source, text, now["type"], change = rng.choice(kinds)
            now["list"] = change(text, rng).encode(errors="surrogatepass")
            shutil.rmtree(folder / "cache", ignore_errors=True)
            result = run([rng.choice(("info", "ls")), "-o", "timeout=3", source], folder, HF_ENDPOINT=server.address, AWS_ENDPOINT_URL=server.address,
                         AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s", AWS_REGION="us-east-1")
            return fault(result), "accepted" if result.returncode == 0 else "refused"

        return loop(arguments, "lists", once)


def hubs(arguments):
    """Another hub states the honest one's hashes, sizes and commit, and sends other bytes; then the honest one is read through the same cache."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, other = pathlib.Path(scratch), {}
        model = Model(folder)
        expected = run(["cat", model.folder, "model.safetensors"], folder).stdout
        sha256 = hashlib.sha256(model.files["model.safetensors"]).hexdigest()

        def hub(files, stated):
            def reply(handler, path):
                name = path.rsplit("/", 1)[-1]
                if path.startswith("/api/"):
                    return handler.answer(200, list_of_hub(files(), **stated()).encode(), Content_Type="application/json")
                return handler.content(files()[name]) if name in files() else handler.answer(404)
            return Server(reply)

        honest = hub(lambda: model.files, dict)
        hostile = hub(lambda: other["files"], lambda: other["stated"])

        def once(rng):
            shutil.rmtree(folder / "cache", ignore_errors=True)
            data = bytearray(model.files["model.safetensors"])
            data[rng.randrange(len(data) // 2, len(data))] ^= 1
            other["files"] = {**model.files, "model.safetensors": bytes(data)}
            other["stated"] = dict(rng.sample([("sha256", sha256), ("commit", COMMIT), ("commit", "b" * 40)], rng.randrange(1, 4)))
            hostile_command = rng.choice((["info"], ["cat"], ["sha256"], ["fetch"], ["ls"]))
            more = ["model.safetensors"] if hostile_command[0] in ("cat", "sha256") else []
            first = run([*hostile_command, "-o", "timeout=5", "hf://a/m", *more], folder, HF_ENDPOINT=hostile.address)
            second = run(["cat", "-o", "timeout=5", "hf://a/m", "model.safetensors"], folder, HF_ENDPOINT=honest.address)
            if second.stdout != expected:
                return f"the honest hub's model has other bytes, status {second.returncode}", "poisoned"
            return fault(first) or fault(second), f"after {hostile_command[0]}"

        return loop(arguments, "hubs", once)


PIECES = [b"GET", b"HEAD", b"POST", b" ", b"/", b"/a/m/resolve/main/config.json", b"/api/models", b"/api/models/a/m", b"/v2/a/m/manifests/latest", b"?", b"&", b"=", b"%00", b"%2e%2e",
          b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9.9", b"\r\n", b"\n", b"\r", b"\0", b":", b"Host: localhost\r\n", b"Host: evil\r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n",
          b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: x\r\n", b"Range: bytes=0-0\r\n", b"Range: bytes=5-\r\n", b"Range: bytes=9999999999999999999-\r\n", b"If-None-Match: *\r\n",
          b"Connection: close\r\n", b"Expect: 100-continue\r\n", b"a" * 5000, b"&a" * 300, b"\xff\xfe", b"\t", b"\x0b"]


def request(rng):
    lines = [b"GET /a/m/resolve/main/config.json HTTP/1.1\r\n", b"Host: localhost\r\n", *rng.sample(PIECES[18:33], rng.randrange(4)), b"\r\n"]
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(lines))
        line = lines[at]
        cut = rng.randrange(len(line) + 1)
        lines[at] = rng.choice((line[:cut] + rng.choice(PIECES) + line[cut:], line[:cut], rng.choice(PIECES), line + line))
    return b"".join(lines)


def requests(arguments):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        model = Model(folder)
        with subprocess.Popen([os.environ["WFS"], "serve", "--listen", "127.0.0.1:0", f"a/m={model.folder}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            port = int(server.stdout.readline().rsplit(":", 1)[1].strip().strip("/"))
            good = b"GET /a/m/resolve/main/config.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

            def ask(data, is_end=False):
                with socket.create_connection(("127.0.0.1", port), timeout=1) as one:
                    try:
                        one.sendall(data)
                        if is_end:
                            one.shutdown(socket.SHUT_WR)
                        return b"".join(iter(lambda: one.recv(65536), b""))
                    except ConnectionError:
                        return b""

            expected = ask(good).partition(b"\r\n\r\n")[2]

            def once(rng):
                data = b"".join(request(rng) for _ in range(rng.choice((1, 1, 2))))
                try:
                    answer = ask(data, True)
                except TimeoutError:  # the server ends such a connection after a minute
                    answer = b"HTTP/1.1 kept open"
                if server.poll() is not None:
                    return f"the server ends with {server.returncode}", "ends"
                after = ask(good) if rng.random() < 0.05 else None
                if after is not None and after.partition(b"\r\n\r\n")[2] != expected:
                    return f"a good request after it is answered {after[:40]}", "breaks"
                return None, answer[9:].split(b"\r\n")[0].decode(errors="replace") or "closed"

            good_end = loop(arguments, "requests", once)
            server.terminate()
            return good_end


def sources(arguments):
    """A source is changed while libwfs reads it: a read gives the old bytes, the new ones of a file opened since, or an error, and never both."""
    import wfs
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch, "model.safetensors")
        count = 1 << 18

        def content(byte):
            header = json.dumps({"w": {"dtype": "U8", "shape": [count], "data_offsets": [0, count]}}).encode()
            return struct.pack("<Q", len(header)) + header + bytes([byte]) * count

        def change(rng):
            kind = rng.choice(("write", "cut", "replace", "grow", "touch"))
            if kind == "write":
                with open(path, "r+b") as file:
                    file.write(content(2))
            elif kind == "cut":
                os.truncate(path, rng.randrange(count))
            elif kind == "replace":
                path.with_suffix(".new").write_bytes(content(2))
                os.replace(path.with_suffix(".new"), path)
            elif kind == "grow":
                with open(path, "ab") as file:
                    file.write(b"x")
            else:
                os.utime(path)
            return kind

        def once(rng):
            path.unlink(missing_ok=True)
            path.write_bytes(content(1))
            phase = rng.choice(("before", "during", "between"))
            kind, seen = None, []
            with wfs.open(path) as model:
                tensor = model.tensors["w"]
                if phase == "between":
                    seen.append(tensor.tobytes())
                thread = threading.Timer(rng.random() * 0.0002, lambda: change(rng)) if phase == "during" else None
                if thread:
                    thread.start()
                else:
                    kind = change(rng)
                try:
                    seen.append(tensor.tobytes("f32") if rng.random() < 0.5 else tensor.tobytes())
                    ended = "read"
                except OSError:
                    ended = "an error"
                if thread:
                    thread.join()
            if phase != "during" and kind in ("write", "cut", "grow") and ended == "read":
                return f"a source that was changed ({kind}) before the read is read", "stale"
            values = set(itertools.chain.from_iterable(set(data) for data in seen))
            return ("old and new bytes in one read" if {1, 2} <= values else None), f"{phase}: {ended}"

        return loop(arguments, "sources", once)


KINDS = {"json": json_files, "lists": lists, "hubs": hubs, "requests": requests, "sources": sources}
