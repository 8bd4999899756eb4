"""Clients of S3 read from `wfs serve`: boto3, rclone, s3cmd, s3fs, wfs itself, and those that are there of aws and runai-model-streamer."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import boto3
import botocore.config
import botocore.exceptions
from interop import ROOT, WFS, cat, check, done, serving, skip

TOKEN = "secret-token"
GGUF, ENGINE = "Tiny-GGUF/Tiny-Q4_K_M.gguf", "Tiny-MLX-4bit"


def run(*arguments, **options):
    return subprocess.run([*map(str, arguments)], check=True, capture_output=True, **options).stdout


def client(address, secret=TOKEN, **options):
    config = botocore.config.Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}, **options)
    return boto3.client("s3", endpoint_url=address, aws_access_key_id="any/key", aws_secret_access_key=secret, region_name="eu-west-3", config=config)


def code_of(call, **arguments):
    try:
        call(**arguments)
        return None
    except botocore.exceptions.ClientError as error:
        return error.response["Error"]["Code"]


def check_boto3(address, wanted, scratch):
    s3 = client(address)
    check([bucket["Name"] for bucket in s3.list_buckets()["Buckets"]] == ["acme"], "boto3 lists buckets")
    check(s3.get_bucket_location(Bucket="acme")["LocationConstraint"] is None, "boto3 gets a bucket's location")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="acme", PaginationConfig={"PageSize": 50})
    sizes = {item["Key"]: item["Size"] for page in pages for item in page["Contents"]}
    check(list(sizes) == sorted(sizes) and sizes.get(GGUF) == len(wanted), "boto3 lists keys in pages, with exact sizes")
    folders = [entry["Prefix"] for entry in s3.list_objects_v2(Bucket="acme", Delimiter="/")["CommonPrefixes"]]
    check({"Tiny/", "Tiny-GGUF/", ENGINE + "/"} <= set(folders), "boto3 lists models as folders")
    answer = s3.get_object(Bucket="acme", Key=GGUF, Range="bytes=1000-5999")
    check(answer["Body"].read() == wanted[1000:6000] and answer["ContentRange"] == f"bytes 1000-5999/{len(wanted)}", "boto3 reads a range")
    check(s3.head_object(Bucket="acme", Key=GGUF)["ETag"] == answer["ETag"], "an object has one ETag")
    s3.download_file("acme", GGUF, str(scratch / "boto3"))
    check((scratch / "boto3").read_bytes() == wanted, "boto3 downloads a computed file")
    link = client(address, signature_version="s3v4").generate_presigned_url("get_object", Params={"Bucket": "acme", "Key": GGUF}, ExpiresIn=60)
    check(urllib.request.urlopen(link).read() == wanted, "a presigned address needs no token")
    check(code_of(s3.get_object, Bucket="acme", Key="none") == "NoSuchKey", "boto3 is told of a missing key")
    check(code_of(s3.list_objects_v2, Bucket="none") == "NoSuchBucket", "boto3 is told of a missing bucket")
    check(code_of(s3.get_object, Bucket="acme", Key=GGUF, IfMatch='"x"') == "PreconditionFailed", "If-Match is heeded")
    check(code_of(client(address, "other").list_buckets) == "SignatureDoesNotMatch", "another secret is refused")


def check_rclone(address, wanted, model, scratch):
    flags = ("--config", os.devnull, "--s3-provider", "Other", "--s3-endpoint", address, "--s3-access-key-id", "any", "--s3-secret-access-key", TOKEN)
    check(run("rclone", *flags, "cat", f":s3:acme/{GGUF}") == wanted, "rclone reads a computed file")
    run("rclone", *flags, "copy", f":s3:acme/{ENGINE}", scratch / "rclone")
    names = [path.name for path in (scratch / "rclone").iterdir()]
    check("model.safetensors" in names and all((scratch / "rclone" / name).read_bytes() == cat(model, f"mlx/4bit/{name}") for name in names),
          "rclone copies a directory for an engine")


def check_s3cmd(address, wanted, scratch):
    host = address.removeprefix("http://")
    flags = ("-c", os.devnull, "--access_key=any", f"--secret_key={TOKEN}", f"--host={host}", f"--host-bucket={host}", "--no-ssl")
    check(b"s3://acme/Tiny-GGUF/" in run("s3cmd", *flags, "ls", "s3://acme/"), "s3cmd lists models")
    got = subprocess.run(["s3cmd", *flags, "get", f"s3://acme/{GGUF}", scratch / "s3cmd"], check=True, capture_output=True, text=True)
    check((scratch / "s3cmd").read_bytes() == wanted and "WARNING" not in got.stderr, "s3cmd gets a computed file, and takes no tag for an MD5")


def check_s3fs(address, wanted, scratch):
    password, directory = scratch / "password", scratch / "s3fs"
    password.write_text(f"any:{TOKEN}")
    password.chmod(0o600)
    directory.mkdir()
    run("s3fs", "acme", directory, "-o", f"url={address}", "-o", "use_path_request_style", "-o", f"passwd_file={password}", "-o", "ro")
    try:
        check((directory / GGUF).read_bytes() == wanted, "s3fs's mount reads a computed file")
    finally:
        run("fusermount3", "-u", directory)


def check_others(address, wanted, scratch):
    environment = os.environ | {"AWS_ENDPOINT_URL": address}
    source = run(WFS, "cat", f"s3://acme/{GGUF}", "model.gguf", env=environment)
    check(source == wanted, "wfs reads a source from another wfs")
    program = f"import runai_model_streamer as r\nwith r.SafetensorsStreamer() as s:\n s.stream_file('s3://acme/{ENGINE}/model.safetensors')\n print(len(list(s.get_tensors())))"
    if importlib.util.find_spec("runai_model_streamer_s3") is None:
        print("left out: runai-model-streamer is missing")
    else:
        path = environment | {"RUNAI_STREAMER_S3_USE_VIRTUAL_ADDRESSING": "0"}
        check(int(run(sys.executable, "-c", program, env=path)) > 10, "runai-model-streamer reads tensors")
    aws = pathlib.Path(sys.executable).parent / "aws"
    if not aws.exists():
        print("left out: aws is missing")
        return
    run(aws, "s3", "sync", f"s3://acme/{ENGINE}", scratch / "aws", env=environment)
    check((scratch / "aws" / "model.safetensors").stat().st_size > 0, "aws copies a directory for an engine")
    check(run(aws, "s3", "cp", "--quiet", f"s3://acme/{GGUF}", "-", env=environment) == wanted, "aws reads a computed file")


def main():
    for program in ("rclone", "s3cmd", "s3fs", "fusermount3"):
        if shutil.which(program) is None:
            skip(f"{program} is missing")
    if not os.path.exists("/dev/fuse"):
        skip("/dev/fuse is missing")
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        model, token, config = (scratch / name for name in ("tiny-llama", "token", "config"))
        run(sys.executable, ROOT / "tests" / "data" / "make.py", "sample", model)
        token.write_text(TOKEN)
        config.write_text("[default]\ns3 =\n  addressing_style = path\n")
        os.environ.pop("AWS_CA_BUNDLE", None)  # which rclone 1.60 cannot read
        os.environ |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": TOKEN, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
                       "AWS_CONFIG_FILE": str(config), "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
        wanted = cat(model, "gguf/model-Q4_K_M.gguf")
        with serving("--token-file", token, f"acme/Tiny={model}") as address:
            check_boto3(address, wanted, scratch)
            check_rclone(address, wanted, model, scratch)
            check_s3cmd(address, wanted, scratch)
            check_s3fs(address, wanted, scratch)
            check_others(address, wanted, scratch)
    done()


main()
