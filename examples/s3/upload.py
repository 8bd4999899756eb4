#!/usr/bin/env python3
"""upload.py MODEL PATH s3://BUCKET/KEY [--processes N] [--part-size MIB]: a file of wfs as a multipart upload by N processes. Nothing touches a disk.

MODEL is whatever wfs reads, also s3://. Needs boto3. Each part is sent with its MD5 and compared with the ETag of the answer, the whole
with the ETag of all parts (a store that encrypts with SSE-KMS has other ETags: use its checksums there). After a failure the upload is
aborted, so that neither an object nor parts stay. An object that exists is not replaced.
"""
import argparse
import base64
import concurrent.futures
import hashlib
import multiprocessing

import boto3
import wfs

MIB = 1 << 20
MOST_PARTS = 10_000  # S3 takes no more, each of 5 MiB to 5 GiB but the last


def part_size(size, least):
    return max(least, -(-size // MOST_PARTS // MIB) * MIB)


def begin(model, path):
    """Once in each process: this makes the plan of the file."""
    global file, store
    file, store = wfs.open(model, threads=1).raw(path), boto3.client("s3")


def upload(part):
    number, where, offset, length = part
    data = bytearray(length)
    file.pread_into(data, offset)
    md5 = hashlib.md5(data).digest()
    answer = store.upload_part(**where, PartNumber=number, Body=bytes(data), ContentMD5=base64.b64encode(md5).decode())
    if answer["ETag"].strip('"') != md5.hex():
        raise OSError(f"part {number}: the store has other bytes")
    return number, answer["ETag"], md5


def upload_all(model, path, where, processes, least):
    size = wfs.open(model).files.stat(path).size
    step = part_size(size, least)
    parts = [(i + 1, where, i * step, min(step, size - i * step)) for i in range(-(-size // step))]
    with concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), begin, (model, path)) as pool:
        return list(pool.map(upload, parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("path")
    parser.add_argument("url")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--part-size", type=int, default=8, metavar="MIB", help="more if there would be more than 10,000 parts")
    options = parser.parse_args()
    bucket, key = options.url.removeprefix("s3://").split("/", 1)
    store = boto3.client("s3")
    where = dict(Bucket=bucket, Key=key)
    where["UploadId"] = store.create_multipart_upload(**where)["UploadId"]
    try:
        done = upload_all(options.model, options.path, where, options.processes, options.part_size * MIB)
        listed = [dict(PartNumber=number, ETag=etag) for number, etag, _ in done]
        answer = store.complete_multipart_upload(**where, MultipartUpload={"Parts": listed}, IfNoneMatch="*")
    except BaseException:
        store.abort_multipart_upload(**where)
        raise
    wanted = hashlib.md5(b"".join(md5 for *_, md5 in done)).hexdigest() + f"-{len(done)}"
    if answer["ETag"].strip('"') != wanted:
        raise OSError(f"{options.url}: the store has {answer['ETag']}, not {wanted}")
    print(f"{options.url}: {len(done)} parts, ETag {wanted}")


if __name__ == "__main__":
    main()
