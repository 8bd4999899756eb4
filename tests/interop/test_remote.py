"""Servers that others wrote, and clients of what a fetch leaves: nginx, moto (S3, whose signatures botocore checks), huggingface_hub."""
import contextlib
import hashlib
import json
import logging
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from interop import ROOT, cat, check, done, serving, skip, wfs

PATHS = ("model.safetensors", "config.json", "gguf/model-Q8_0.gguf")
N_OTHERS = 1100  # objects beside the model: more than a page of a listing
SECRET = "wrong/secret+key"


def await_file(path):
    for _ in range(1200):
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text().split()
        time.sleep(0.05)
    raise OSError(f"{path} does not appear")


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def answers(url):
    try:
        urllib.request.urlopen(url).read()
        return True
    except OSError:
        return False


@contextlib.contextmanager
def nginx(folder, files):
    """Serves `files` with lists in HTML and in JSON; yields the address."""
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""  # another user may not read the folder
    (folder / "nginx.conf").write_text(f"""
        {user} worker_processes 1; pid {folder}/pid; error_log {folder}/log; daemon off;
        events {{ }}
        http {{
            access_log off;
            client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
            uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
            gzip on; gzip_types *; gzip_min_length 1;
            server {{
                listen 127.0.0.1:{port};
                location /html/ {{ alias {files}/; autoindex on; }}
                location /json/ {{ alias {files}/; autoindex on; autoindex_format json; }}
                location /none/ {{ alias {files}/; }}
            }}
        }}""")
    with subprocess.Popen([shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"), "-p", folder, "-c", folder / "nginx.conf"],
                          stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(1200):
                if answers(f"http://127.0.0.1:{port}/html/") or server.poll() is not None:
                    break
                time.sleep(0.05)
            else:
                raise OSError((folder / "log").read_text())
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def same_files(source, model, what):
    """All names of the local model are listed, and the paths have the same bytes."""
    names, expected = (set(wfs("ls", place).stdout.split()) for place in (source, model))
    check(expected and expected <= names, f"{what}: the names")
    for path in PATHS:
        check(cat(source, path) == cat(model, path), f"{what}: the bytes of {path}")


def check_nginx(folder, model):
    with nginx(folder, model.parent) as address:
        for kind in ("html", "json", "none"):
            os.environ["XDG_CACHE_HOME"] = str(folder / kind)
            same_files(f"{address}/{kind}/tiny/", model, f"nginx, {kind}")
        before = cat(f"{address}/html/tiny/", "README.md")
        (model / "README.md").write_bytes(before + b"more\n")
        check(cat(f"{address}/html/tiny/", "README.md") == before + b"more\n", "nginx: a file that has changed is read again")


def check_s3(folder, model):
    """moto refuses requests without the signature that botocore computes."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # not each request
    os.environ["XDG_CACHE_HOME"] = str(folder / "s3")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=free_port(), verbose=False)
    server.start()
    try:
        address = "http://%s:%d" % server.get_host_and_port()
        os.environ.update(AWS_ENDPOINT_URL=address, AWS_REGION="us-east-1", AWS_DEFAULT_REGION="us-east-1",
                          AWS_ACCESS_KEY_ID="first", AWS_SECRET_ACCESS_KEY="first")
        iam, s3 = boto3.client("iam"), boto3.client("s3")
        iam.create_user(UserName="reader")
        allowed = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
        iam.put_user_policy(UserName="reader", PolicyName="all", PolicyDocument=json.dumps(allowed))
        key = iam.create_access_key(UserName="reader")["AccessKey"]
        s3.create_bucket(Bucket="models")
        prefix = "team a+é=1 & (2)/tiny"
        for file in model.iterdir():
            s3.put_object(Bucket="models", Key=f"{prefix}/{file.name}", Body=file.read_bytes())
        for number in range(N_OTHERS):
            s3.put_object(Bucket="models", Key=f"{prefix}/logs/{number}.log", Body=b"")
        check_signatures = urllib.request.Request(f"{address}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"})
        urllib.request.urlopen(check_signatures).read()
        os.environ.update(AWS_ACCESS_KEY_ID=key["AccessKeyId"], AWS_SECRET_ACCESS_KEY=key["SecretAccessKey"])
        same_files(f"s3://models/{prefix}", model, "moto")
        check(cat(f"s3://models/{prefix}/model.safetensors", "model.safetensors") == cat(model, "model.safetensors"), "moto: one object")
        os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET
        refused = wfs("ls", f"s3://models/{prefix}")
        check(refused.returncode == 1 and b"does not accept the credentials" in refused.stderr, "moto: a wrong secret is refused")
        check(SECRET.encode() not in refused.stderr, "moto: the secret is not shown")
    finally:
        server.stop()


READ_OFFLINE = """
import json, sys
from huggingface_hub import hf_hub_download, scan_cache_dir, snapshot_download
cache = scan_cache_dir()
print(json.dumps([snapshot_download("org/tiny"), hf_hub_download("org/tiny", "model.safetensors"),
                  [repo.repo_id for repo in cache.repos], [str(warning) for warning in cache.warnings]]))
"""


def check_hub_cache_of_wfs(folder, model):
    """The same from `wfs serve`, which states no hashes."""
    with serving(f"org/tiny={model}") as address:
        environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(folder / "hf-wfs"), "XDG_CACHE_HOME": str(folder / "hub-wfs")}
        fetched = wfs("fetch", "--hub-cache", "hf://org/tiny", env=environment)
        check(fetched.returncode == 0, f"wfs fetch --hub-cache of wfs serve: {fetched.stderr.decode()}")
    read = subprocess.run([sys.executable, "-c", READ_OFFLINE], env={**environment, "HF_HUB_OFFLINE": "1"}, check=False, capture_output=True)
    if check(read.returncode == 0, f"huggingface_hub, offline: {read.stderr.decode()}"):
        file, warnings = json.loads(read.stdout)[1::2]
        check(pathlib.Path(file).read_bytes() == (model / "model.safetensors").read_bytes() and warnings == [], "hf_hub_download() of wfs serve's")


def check_hub_cache(folder, model):
    """huggingface_hub finds offline what `wfs fetch --hub-cache` has fetched from a hub."""
    (folder / "root/hub/org").mkdir(parents=True)
    shutil.copytree(model, folder / "root/hub/org/tiny")
    with subprocess.Popen([sys.executable, ROOT / "tests/remote/server.py", folder / "ports", folder / "root"]) as server:
        try:
            port = await_file(folder / "ports")[0]
            environment = {**os.environ, "HF_ENDPOINT": f"http://127.0.0.1:{port}", "HF_HOME": str(folder / "hf"),
                           "XDG_CACHE_HOME": str(folder / "hub")}
            fetched = wfs("fetch", "--hub-cache", "hf://org/tiny", env=environment)
            check(fetched.returncode == 0, f"wfs fetch --hub-cache: {fetched.stderr.decode()}")
        finally:
            server.terminate()
    read = subprocess.run([sys.executable, "-c", READ_OFFLINE], env={**environment, "HF_HUB_OFFLINE": "1"}, check=False, capture_output=True)
    if not check(read.returncode == 0, f"huggingface_hub, offline: {read.stderr.decode()}"):
        return
    snapshot, file, repositories, warnings = json.loads(read.stdout)
    check(sorted(os.listdir(snapshot)) == sorted(os.listdir(model)), "snapshot_download() has all files")
    check(all((pathlib.Path(snapshot) / name).read_bytes() == (model / name).read_bytes() for name in os.listdir(model)),
          "snapshot_download(): the bytes of each file")
    check(hashlib.sha256(pathlib.Path(file).read_bytes()).digest() == hashlib.sha256((model / "model.safetensors").read_bytes()).digest(),
          "hf_hub_download()")
    check(repositories == ["org/tiny"] and warnings == [], f"scan_cache_dir() has no warning: {warnings}")


def main():
    if wfs("ls", "https://").stderr.find(b"built without libcurl") >= 0:
        skip("built without remote sources")
    for name in [name for name in os.environ if name.startswith(("AWS_", "HF_")) or name.lower().endswith("_proxy")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        model = folder / "files/tiny"
        model.parent.mkdir()
        subprocess.run([sys.executable, ROOT / "tests/data/make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
        check_hub_cache(folder, model)
        check_hub_cache_of_wfs(folder, model)
        check_nginx(folder, model)
        check_s3(folder, model)
    done()


main()
