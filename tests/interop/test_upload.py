"""examples/s3: processes upload the parts of a computed file to moto; after a failure, nothing is left."""
import hashlib
import logging
import os
import pathlib
import subprocess
import sys
import tempfile

from interop import ROOT, cat, check, done, leave_out

PATH = "gguf/model-F32.gguf"
UPLOAD = ROOT / "examples/s3/upload.py"


def upload(model, url, **variables):
    return subprocess.run([sys.executable, UPLOAD, model, PATH, url, "--processes", "2", "--part-size", "5"], check=False, capture_output=True, text=True,
                          env=os.environ | variables)


def check_uploads(boto3, model):
    store = boto3.client("s3")
    store.create_bucket(Bucket="models")
    wanted = cat(model, PATH)
    result = upload(model, "s3://models/tiny.gguf")
    check(result.returncode == 0, f"the upload ends well: {result.stderr[-500:]}")
    answer = store.get_object(Bucket="models", Key="tiny.gguf")
    check(answer["Body"].read() == wanted, "the object has the bytes of the file")
    md5s = b"".join(hashlib.md5(wanted[at:at + (5 << 20)]).digest() for at in range(0, len(wanted), 5 << 20))
    count = -(-len(wanted) // (5 << 20))
    check(count > 1 and answer["ETag"] == f'"{hashlib.md5(md5s).hexdigest()}-{count}"', f"its ETag is that of {count} parts")
    (model / "config.json").write_text("{")
    result = upload(model, "s3://models/other.gguf")
    check(result.returncode != 0, "a file that cannot be made ends the upload")
    check(store.list_multipart_uploads(Bucket="models").get("Uploads", []) == [], "no upload is left")
    check([item["Key"] for item in store.list_objects_v2(Bucket="models")["Contents"]] == ["tiny.gguf"], "no object is left")


def main():
    try:
        import boto3
        from moto.server import ThreadedMotoServer
    except ImportError as error:
        leave_out(f"needs {error.name}")
    os.environ["PYTHONPATH"] = str(ROOT / "python")
    os.environ["WFS_LIBRARY"] = str(ROOT / "build/fs/lib/libwfs.so.0")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    os.environ.update(AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="key", AWS_DEFAULT_REGION="us-east-1", no_proxy="127.0.0.1",
                      AWS_ENDPOINT_URL=f"http://{host}:{port}")
    with tempfile.TemporaryDirectory() as directory:
        model = pathlib.Path(directory) / "model"
        subprocess.run([sys.executable, ROOT / "tests/data/make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
        check_uploads(boto3, model)
    server.stop()
    done()


if __name__ == "__main__":
    main()
