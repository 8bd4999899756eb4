#!/usr/bin/env python3
"""A server of models for tests, on loopback: a hub, its CDN on a port of its own, and plain folders.

    server.py PORTS ROOT [CERTIFICATE]

ROOT/hub/ORG/NAME/FILES are models, all at one commit; ROOT/web/... are plain files; ROOT/s3/BUCKET/KEYS are objects, at
/s3 (s3.py). The ports are written to PORTS as "HUB CDN", or with a certificate and its key "HUB CDN TLS": the hub again,
by https. Standard library only.

Faults are asked for at /control on either port, before the requests that they are for:

    GET /control/fault?path=SUFFIX&kind=KIND[&skip=N][&times=N]  requests of a path that ends so, after N of them, N times
    GET /control/barrier?count=N                               content is answered once N requests wait, or at release
    GET /control/reset                                         faults, log, counters and barrier
    GET /control/log                                           JSON: counters, and each request with its range and answer
"""
import asyncio
import collections
import email.utils
import gzip
import hashlib
import json
import os
import ssl
import sys
import urllib.parse

import s3

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_secrettoken"


class State:
    def __init__(self):
        self.reset()

    def reset(self):
        self.faults, self.log, self.barrier, self.waiting = [], [], 0, 0
        self.waves, self.released = 0, asyncio.Event()
        self.stalled = 0

    def fault(self, path):
        for fault in self.faults:
            if not path.endswith(fault["path"]) or fault["times"] == 0:
                continue
            if fault["skip"] > 0:
                fault["skip"] -= 1
                continue
            fault["times"] -= 1
            return fault
        return collections.defaultdict(str)


class Request:
    def __init__(self, method, target, headers):
        self.method, self.headers = method, headers
        parts = urllib.parse.urlsplit(target)
        self.path, self.raw_query = urllib.parse.unquote(parts.path), parts.query
        self.raw_path = parts.path
        self.query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))


class Server:
    def __init__(self, root):
        self.root, self.state, self.ports = root, None, {}

    async def run(self, ports_file, certificate=None):
        self.state = State()
        servers = {name: await asyncio.start_server(lambda r, w, name=name: self.connection(r, w, name), "127.0.0.1", 0)
                   for name in ("hub", "cdn")}
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate)
            servers["tls"] = await asyncio.start_server(lambda r, w: self.connection(r, w, "hub"), "127.0.0.1", 0, ssl=context)
        self.ports = {name: server.sockets[0].getsockname()[1] for name, server in servers.items()}
        with open(ports_file + ".new", "w") as file:
            file.write(" ".join(map(str, self.ports.values())) + "\n")
        os.rename(ports_file + ".new", ports_file)
        await asyncio.Event().wait()

    async def connection(self, reader, writer, name):
        try:
            while await self.request(reader, writer, name):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def request(self, reader, writer, name):
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines[1:] if line)}
        request = Request(method, target, headers)
        if request.path.startswith("/control/"):
            answer = self.control(request)
        else:
            answer = await self.answer(request, name)
        return await self.send(writer, request, *answer)

    # Control

    def control(self, request):
        what = request.path.removeprefix("/control/")
        if what == "reset":
            self.state.released.set()
            self.state.reset()
        elif what == "fault":
            self.state.faults.append({**request.query, "times": int(request.query.get("times", -1)),
                                      "skip": int(request.query.get("skip", 0))})
        elif what == "barrier":
            self.state.barrier = int(request.query["count"])
        elif what == "log":
            log = self.state.log
            counters = {"requests": len(log), "content": sum(bool(entry["sent"]) and entry["content"] for entry in log),
                        "bytes": sum(entry["sent"] for entry in log if entry["content"]), "stalled": self.state.stalled,
                        "weights": sum(entry["sent"] for entry in log if entry["content"] and is_large(entry["path"])),
                        "waves": self.state.waves}
            return 200, {}, json.dumps({**counters, "log": log}).encode()
        return 200, {}, b"done\n"

    async def pass_barrier(self):
        """Waits until as many requests wait as the barrier says. Each time that is a wave."""
        state = self.state
        if state.barrier == 0:
            return
        state.waiting += 1
        released = state.released
        if state.waiting >= state.barrier:
            self.release()
        else:
            # Fewer come: those that came are a wave, once no other has come for a while.
            while not released.is_set():
                waiting = state.waiting
                try:
                    await asyncio.wait_for(asyncio.shield(released.wait()), 3)
                except asyncio.TimeoutError:
                    if state.waiting == waiting and not released.is_set():
                        self.release()

    def release(self):
        self.state.waves += 1
        self.state.waiting = 0
        self.state.released.set()
        self.state.released = asyncio.Event()

    # Answers: status, headers, body, and what else send() is to do

    async def answer(self, request, name):
        fault = self.state.fault(request.path)
        entry = {"port": name, "path": request.path, "range": request.headers.get("range", ""), "status": 0, "sent": 0,
                 "authorization": request.headers.get("authorization", ""), "content": False,
                 "condition": request.headers.get("if-match", "")}
        self.state.log.append(entry)
        await self.pass_barrier()
        answer = self.failure(request, fault, name) or self.route(request, fault, name)
        entry["status"] = answer[0]
        entry["content"] = answer[0] in (200, 206) and "/api/" not in request.path and not request.path.endswith("/")
        return (*answer, fault, entry)

    def failure(self, request, fault, name):
        kind = fault["kind"]
        if kind == "status":
            headers = {header[len("header-"):]: value for header, value in fault.items() if header.startswith("header-")}
            return int(fault["status"]), headers, fault.get("body", "the server's reason").encode()
        if kind == "loop":
            return 302, {"Location": request.raw_path + "?again"}, b""
        if kind == "redirect":
            return 302, {"Location": fault["to"].replace("CDN", f"http://127.0.0.1:{self.ports['cdn']}")}, b""
        return None

    def route(self, request, fault, name):
        if request.path.startswith("/api/models/"):
            return self.api(request)
        if request.path.startswith("/web/"):
            return self.file(request, self.root + request.path, fault)
        if name == "cdn" and request.path.startswith("/blobs/"):
            if "authorization" in request.headers:
                return 400, {}, b"the CDN must not see a token"
            return self.file(request, self.root + "/hub/" + request.path.removeprefix("/blobs/"), fault, "cdn")
        if request.path.startswith("/s3/"):
            return self.bucket(request, fault)
        parts = request.path.strip("/").split("/")
        if len(parts) > 4 and parts[2] == "resolve":
            return self.resolve(request, parts, fault)
        return 404, {}, b"not found"

    def refused(self, request, model):
        """Gated models are called so, and want a token that is right; those of `private` are not there without."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token and token not in (TOKEN, "hf_other"):
            return 401, {"X-Error-Message": "Invalid credentials in Authorization header"}, b""
        if "private" in model and token != TOKEN:
            return 401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b""
        return None

    def gated(self, request, model):
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if "gated" not in model or token == TOKEN:
            return None
        return 403 if token else 401, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}, b""

    def api(self, request):
        parts = request.path.removeprefix("/api/models/").split("/", 3)
        model, what, revision = "/".join(parts[:2]), parts[2], parts[3]
        folder = f"{self.root}/hub/{model}"
        if refused := self.refused(request, model):
            return refused
        if not os.path.isdir(folder):
            return 401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b""
        if revision not in ("main", "refs/pr/1", COMMIT):
            return 404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}, b""
        files = [self.description(folder, path) for path in list_files(folder)]
        if what == "tree":
            return self.tree(request, files)
        siblings = [{"rfilename": f["path"], "size": f["size"], "blobId": f["oid"],
                     **({"lfs": {"sha256": f["lfs"]["oid"], "size": f["size"], "pointerSize": 130}} if "lfs" in f else {})}
                    for f in files]
        page = {"id": model, "sha": COMMIT, "gated": "manual" if "gated" in model else False, "private": False,
                "lastModified": "2024-05-01T12:00:00.000Z", "siblings": siblings[:1000]}
        return 200, {"Content-Type": "application/json"}, json.dumps(page).encode()

    def tree(self, request, files):
        start, limit = int(request.query.get("cursor", 0)), int(request.query.get("limit", 50))
        headers = {"Content-Type": "application/json"}
        if start + limit < len(files):
            query = urllib.parse.urlencode({**request.query, "cursor": start + limit})
            headers["Link"] = f"<http://127.0.0.1:{self.ports['hub']}{request.raw_path}?{query}>; rel=\"next\""
        return 200, headers, json.dumps(files[start:start + limit]).encode()

    def description(self, folder, path):
        with open(f"{folder}/{path}", "rb") as file:
            content = file.read()
        git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        large = {"lfs": {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}}
        return {"type": "file", "path": path, "size": len(content), "oid": git, **(large if is_large(f"{folder}/{path}") else {})}

    def resolve(self, request, parts, fault):
        model, path = "/".join(parts[:2]), "/".join(parts[4:])
        file = f"{self.root}/hub/{model}/{path}"
        if refused := self.refused(request, model) or self.gated(request, model):
            return refused
        if not os.path.isfile(file):
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        if not is_large(file):
            return self.file(request, file, fault)
        target = f"http://127.0.0.1:{self.ports['cdn']}/blobs/{model}/{path}?X-Amz-Signature=secretsignature"
        return 302, {"Location": target, "X-Linked-Size": str(os.path.getsize(file)), "X-Repo-Commit": COMMIT}, b""

    def bucket(self, request, fault):
        """Buckets are folders; those called public... need no signature."""
        _, _, bucket, key = request.path.split("/", 3)
        folder = f"{self.root}/s3/{bucket}"
        if not bucket.startswith("public") and (refused := s3.refuse(request)):
            return refused
        if not os.path.isdir(folder):
            return s3.failure(404, "NoSuchBucket")
        if key == "":
            return s3.list_objects(request, folder, list_files(folder))
        return self.file(request, f"{folder}/{key}", fault) if os.path.isfile(f"{folder}/{key}") else s3.failure(404, "NoSuchKey")

    def file(self, request, path, fault, kind="web"):
        if os.path.isdir(path):
            return self.listing(request, path, fault)
        if not os.path.isfile(path):
            return 404, {}, b"not found"
        with open(self.root + fault["from"] if fault["kind"] == "file" else path, "rb") as file:
            content = file.read()
        etag = fault.get("etag") or '"%s"' % hashlib.md5(content).hexdigest()
        headers = {"ETag": etag, "Last-Modified": email.utils.formatdate(os.path.getmtime(path), usegmt=True),
                   "Accept-Ranges": "bytes"}
        if fault["kind"] == "noetag":
            headers.pop("ETag")
        if request.headers.get("if-none-match") == etag:
            return 304, headers, b""
        if request.headers.get("if-match", etag) != etag:
            return 412, headers, b""
        if fault["kind"] == "gzip":
            return 200, {**headers, "Content-Encoding": "gzip"}, gzip.compress(content)
        if "range" not in request.headers or fault["kind"] == "norange":
            return 200, headers, content
        return self.part(request, headers, content, fault)

    def part(self, request, headers, content, fault):
        first, last = request.headers["range"].removeprefix("bytes=").split("-")
        first, last, total = int(first), min(int(last), len(content) - 1), len(content)
        if first >= total:
            return 416, {"Content-Range": f"bytes */{total}"}, b""
        body = content[first:last + 1]
        if fault["kind"] == "wrongrange":
            first, last = first + 1, last + 1
        if fault["kind"] == "wrongtotal":
            total += 1
        return 206, {**headers, "Content-Range": f"bytes {first}-{last}/{total}"}, body

    def listing(self, request, path, fault):
        if not request.path.endswith("/"):
            return 301, {"Location": request.raw_path + "/"}, b""
        if fault["kind"] == "nolist":
            return 403, {}, b"forbidden"
        names = sorted(name + "/" * os.path.isdir(f"{path}/{name}") for name in os.listdir(path))
        if "json" in request.path:
            entries = [{"name": name.rstrip("/"), "type": "directory" if name.endswith("/") else "file"} for name in names]
            return 200, {"Content-Type": "application/json"}, json.dumps(entries).encode()
        links = "".join(f'<a href="{urllib.parse.quote(name)}">{name}</a>\r\n' for name in ["../", *names])
        return 200, {"Content-Type": "text/html; charset=utf-8"}, f"<html><body><pre>{links}</pre></body></html>".encode()

    async def send(self, writer, request, status, headers, body, fault=None, entry=None):
        kind = fault["kind"] if fault else ""
        head = [f"HTTP/1.1 {status} Status"]
        if kind != "nolength":
            headers = {"Content-Length": str(len(body)), **headers}
        writer.write("\r\n".join(head + [f"{key}: {value}" for key, value in headers.items()] + ["", ""]).encode())
        if kind in ("short", "reset", "stall") and status in (200, 206):
            body = body[:int(fault.get("after", len(body) // 2))]
        if request.method != "HEAD":
            writer.write(body)
            if entry is not None:
                entry["sent"] = len(body)
        await writer.drain()
        if kind == "stall":
            self.state.stalled += 1
            await self.state.released.wait()  # until a reset
        if kind == "reset":
            writer.transport.abort()
        return kind not in ("short", "reset", "stall", "nolength")


def is_large(path):
    """Weights are LFS files, on the CDN."""
    return path.endswith((".safetensors", ".gguf"))


def list_files(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


if __name__ == "__main__":
    asyncio.run(Server(os.path.abspath(sys.argv[2])).run(sys.argv[1], *sys.argv[3:]))
