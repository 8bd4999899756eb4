"""Costs of hostile inputs: the peak memory and the requests of commands, against the bounds of docs/security.md.

A listing or a file of a few hundred kilobytes must not take more than MEMORY_FACTOR times its size, 1 KiB for each name, and what any
command takes.
"""
import concurrent.futures
import hashlib
import http.server
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from interop import ROOT, WFS, check, done

BASE = 48 << 20  # of any command with a remote source: libcurl, TLS and the program itself
MEMORY_FACTOR, NAME_BYTES = 100, 1024
SECONDS = 60  # no command comes near: a bound for a machine that is busy


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.n_requests += 1
        status, kind, body = self.server.reply(self.path)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 128

    def handle_error(self, *_):
        pass  # a client that has read enough

    def __init__(self, reply):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply, self.n_requests = reply, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()


def peak(arguments, folder, **variables):
    """The status, the seconds and the peak memory of a command, and what it wrote to stderr."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "AWS_"))}
    environment.update(XDG_CACHE_HOME=str(folder / "cache"), no_proxy="*", **variables)
    start = time.monotonic()
    with tempfile.TemporaryFile() as error:
        measured = f"import resource, subprocess, sys; p = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, timeout={SECONDS}); " \
                   "print(p.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"
        result = subprocess.run([sys.executable, "-S", "-c", measured, WFS, *map(str, arguments)], stdout=subprocess.PIPE, stderr=error,
                                env=environment, check=False)
        error.seek(0)
        text = error.read().decode(errors="replace")
    status, memory = map(int, result.stdout.split() or (-1, 1 << 62))
    return status, time.monotonic() - start, memory, text


def within(name, arguments, size, n_names, folder, **variables):
    """Checks that a command ends in time with a status, and takes no more memory than its input allows."""
    status, seconds, memory, text = peak(arguments, folder, **variables)
    limit = BASE + min(MEMORY_FACTOR * size, NAME_BYTES * n_names + 16 * size)
    check(status in (0, 1) and "out of memory" not in text, f"{name}: status {status}, {text[-300:]}")
    check(memory <= limit, f"{name}: {memory >> 10} KiB of {limit >> 10} for {size} bytes and {n_names} names")
    check(seconds < SECONDS, f"{name}: {seconds:.1f} s")


def web(page, kind):
    return lambda path: (200, kind, page) if path.endswith("/") else (404, "text/plain", b"")


def listing_of_web(folder):
    n = 50000
    page = b'<a href="config.json">' * n
    server = Server(web(page, "text/html"))
    within("one name many times", ["info", f"http://127.0.0.1:{server.server_port}/m/"], len(page), 1, folder)
    check(server.n_requests < n / 100, f"one name many times: {server.n_requests} requests")
    pages = {
        "many names": (b"".join(b'<a href="f%d">' % i for i in range(3000)), "text/html", 3000),
        "links that do not end": (b'<a href="' * 20000, "text/html", 1),
        "many folders": (b"".join(b'<a href="d%d/">' % i for i in range(20000)), "text/html", 20000),
        "names in JSON": (json.dumps([{"name": f"f{i}", "type": "file"} for i in range(3000)]).encode(), "application/json", 3000),
        "one name in JSON": (json.dumps([{"name": "f", "type": "file"}] * 20000).encode(), "application/json", 1),
    }
    for name, (page, kind, n_names) in pages.items():
        server = Server(lambda path, page=page, kind=kind: (200, kind, page) if path == "/m/" else (404, "text/plain", b""))
        within(name, ["info", f"http://127.0.0.1:{server.server_port}/m/"], len(page), n_names, folder)


def hub(files, more=b""):
    listing = {"sha": "a" * 40, "siblings": [{"rfilename": name, "size": size, "lfs": {
        "size": size, "sha256": hashlib.sha256(name.encode()).hexdigest()}} for name, size in files]}
    body = json.dumps(listing).encode() + more
    return body, lambda path: (200, "application/json", body) if path.startswith("/api/") else (404, "text/plain", b"")


def listing_of_hub(folder):
    cases = {
        "a file of 2^46 bytes": [("model.safetensors", 2**46), ("config.json", 10)],
        "a file of 2^50 bytes": [("model.safetensors", 2**50), ("config.json", 10)],
        "100 files of 2^46 bytes": [(f"model-{i:05d}-of-00100.safetensors", 2**46) for i in range(1, 101)],
        "900 small files": [(f"f{i}.json", 10) for i in range(900)],
        "900 large files": [(f"f{i}.safetensors", 2**40) for i in range(900)],
    }
    for name, files in cases.items():
        body, reply = hub(files)
        server = Server(reply)
        within(name, ["info", "hf://a/m"], len(body), 40 * len(files), folder, HF_ENDPOINT=f"http://127.0.0.1:{server.server_port}")
    for size in (2**50 + 1, 2**63, 2**64 - 1):
        body, reply = hub([("model.safetensors", size)])
        server = Server(reply)
        status, _, _, text = peak(["info", "hf://a/m"], folder, HF_ENDPOINT=f"http://127.0.0.1:{server.server_port}")
        check(status == 1 and str(size) in text, f"a file of {size} bytes: status {status}, {text}")


def listing_of_s3(folder):
    def page(objects):
        return (b'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>' + b"".join(
            b"<Contents><Key>m/%s</Key><Size>%d</Size><ETag>\"e\"</ETag><LastModified>2024-01-01T00:00:00Z</LastModified></Contents>" % one
            for one in objects) + b"</ListBucketResult>")

    cases = {
        "an object of 2^46 bytes": page([(b"model.safetensors", 2**46)]),
        "100 objects of 2^46 bytes": page([(b"model-%05d-of-00100.safetensors" % i, 2**46) for i in range(1, 101)]),
        "many objects": page([(b"f%d" % i, 10) for i in range(1000)]),
        "attributes": b"<ListBucketResult " + b" ".join(b'a%d="x"' % i for i in range(20000)) + b">",
        "depth": b"<a>" * 50000,
    }
    for name, body in cases.items():
        server = Server(lambda path, body=body: (200, "application/xml", body) if "list-type" in path else (404, "text/plain", b""))
        within(name, ["info", "s3://bucket/m"], len(body), 40 * body.count(b"<Key>"), folder, AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s",
               AWS_REGION="us-east-1", AWS_ENDPOINT_URL=f"http://127.0.0.1:{server.server_port}", AWS_EC2_METADATA_DISABLED="true")


def safetensors(header, data=b""):
    return struct.pack("<Q", len(header)) + header + data


def gguf(n_tensors, n_keys, body):
    return b"GGUF" + struct.pack("<IQQ", 3, n_tensors, n_keys) + body


def gguf_key(i):
    name = b"k%07d" % i
    return struct.pack("<Q", len(name)) + name + struct.pack("<II", 4, i)


def onnx_of_fields(n):
    return b"\x08\x07" + b"\x3a" + varint(4 * n) + b"\x2a\x02\x08\x01" * n


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def readers(folder):
    n = 20000
    names = json.dumps({f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(n)}).encode()
    files = {
        "names.safetensors": (safetensors(names), n),
        "nested.safetensors": (safetensors(b"[" * 200000), 0),
        "metadata.safetensors": (safetensors(json.dumps({"__metadata__": {f"k{i}": "v" for i in range(n)}}).encode()), n),
        "shapes.safetensors": (safetensors(json.dumps({"t": {"dtype": "F32", "shape": [1] * 100000, "data_offsets": [0, 4]}}).encode(), bytes(4)), 1),
        "keys.gguf": (gguf(0, n, b"".join(map(gguf_key, range(n)))), n),
        "array.gguf": (gguf(0, 1, struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 8, 60000) + bytes(8 * 60000)), 1),
        "tensors.gguf": (gguf(n, 0, b"".join(struct.pack("<Q", 6) + b"%06d" % i + struct.pack("<IQIQ", 1, 0, 0, 0) for i in range(n))), n),
        "fields.onnx": (onnx_of_fields(50000), 50000),
        "pickle.pt": (b"\x80\x02" + b"(" * 300000 + b".", 0),
        "list.pt": (b"\x80\x02]" + b"q\x01" + b"(" + b"h\x01" * 100000 + b"e.", 0),
        "header.npy": (b"\x93NUMPY\x02\x00" + struct.pack("<I", 200000) + b"(" * 200000, 0),
    }
    for name, (content, n_names) in files.items():
        (folder / name).write_bytes(content)
        within(name, ["info", folder / name], len(content), 4 * n_names, folder)


# wfs serve

N_CLIENTS, SERVE_EXTRA = 400, 64 << 20


def memory_of(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def clients_that_do_not_read(folder):
    subprocess.run([sys.executable, ROOT / "tests/data/make.py", "sample", folder / "sample"], check=True)
    with subprocess.Popen([WFS, "serve", "--listen", "127.0.0.1:0", f"a/m={folder / 'sample'}"], stdout=subprocess.PIPE, text=True) as server:
        try:
            port = int(server.stdout.readline().rsplit(":", 1)[1].strip().strip("/"))
            before = memory_of(server.pid, "VmRSS")
            sockets = []
            for path in ("model.safetensors", "gguf/model-Q8_0.gguf"):
                for _ in range(N_CLIENTS // 2):
                    one = socket.create_connection(("127.0.0.1", port))
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    one.sendall(f"GET /a/m/resolve/main/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                    sockets.append(one)
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                pool.submit(time.sleep, 3).result()
            taken = memory_of(server.pid, "VmHWM") - before
            check(taken <= SERVE_EXTRA, f"{N_CLIENTS} clients that do not read: {taken >> 20} MiB above the model")
            for one in sockets:
                one.close()
        finally:
            server.terminate()


with tempfile.TemporaryDirectory() as directory:
    for bound in (listing_of_web, listing_of_hub, listing_of_s3, readers, clients_that_do_not_read):
        if len(sys.argv) == 1 or bound.__name__ in sys.argv:
            bound(pathlib.Path(directory))
done()
