"""S3 as tests need it: listings in pages, and a strict verifier of signatures (AWS Signature Version 4)."""
import datetime
import email.utils
import hashlib
import hmac
import os
import urllib.parse
import xml.sax.saxutils

KEYS = {"AKIDTEST": "secret/Key+1"}
TOKEN = "session/token=="  # of temporary credentials, whose key is ASIATEST
KEYS["ASIATEST"] = "secret/Key+2"
REGION = "eu-test-1"
PAGE = 3  # objects of a page, whatever is asked for
SKEW = datetime.timedelta(minutes=15)


def failure(status, code, message="", region=""):
    region = f"<Region>{region}</Region>" if region else ""
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message>{region}</Error>'
    return status, {"Content-Type": "application/xml"}, text.encode()


def encode(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-_.~")


def canonical_query(raw_query):
    pairs = [pair.partition("=")[::2] for pair in raw_query.split("&") if pair]
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def refuse(request):
    """The failure of a request whose signature is missing or wrong; None if it is right."""
    authorization = request.headers.get("authorization", "")
    if not authorization.startswith("AWS4-HMAC-SHA256 "):
        return failure(403, "AccessDenied", "Access Denied")
    fields = dict(part.strip().split("=", 1) for part in authorization.split(" ", 1)[1].split(","))
    key, date, region, service, ending = fields["Credential"].split("/")
    if key not in KEYS:
        return failure(403, "InvalidAccessKeyId")
    if region != REGION:
        return failure(400, "AuthorizationHeaderMalformed", f"expecting '{REGION}'", REGION)
    stamp = request.headers["x-amz-date"]
    when = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if abs(datetime.datetime.now(datetime.timezone.utc) - when) > SKEW:
        return failure(403, "RequestTimeTooSkewed")
    if (key == "ASIATEST") != (request.headers.get("x-amz-security-token") == TOKEN):
        return failure(400, "InvalidToken")
    signed = fields["SignedHeaders"].split(";")
    needed = {"host", *(name for name in request.headers if name.startswith("x-amz-"))}
    path_is_canonical = encode(urllib.parse.unquote(request.raw_path), "/") == request.raw_path
    if signed != sorted(signed) or not needed <= set(signed) or not path_is_canonical or not stamp.startswith(date):
        return failure(403, "SignatureDoesNotMatch", "not canonical")
    canonical = "\n".join([request.method, request.raw_path, canonical_query(request.raw_query),
                           *(f"{name}:{request.headers[name]}" for name in signed), "", ";".join(signed),
                           request.headers["x-amz-content-sha256"]])
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, f"{date}/{region}/{service}/{ending}",
                         hashlib.sha256(canonical.encode()).hexdigest()])
    secret = ("AWS4" + KEYS[key]).encode()
    for part in (date, region, service, ending, to_sign):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    return None if secret.hex() == fields["Signature"] else failure(403, "SignatureDoesNotMatch")


def etag_of(path):
    with open(path, "rb") as file:
        return '"%s"' % hashlib.md5(file.read()).hexdigest()


def list_objects(request, bucket, keys):
    """A page of ListObjectsV2 over `keys`, the objects of the folder `bucket`."""
    prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
    after = request.query.get("continuation-token", "")
    found = [key for key in sorted(keys) if key.startswith(prefix) and key > after and
             not (delimiter and delimiter in key[len(prefix):])]
    page, more = found[:PAGE], len(found) > PAGE
    objects = "".join(
        f"<Contents><Key>{urllib.parse.quote_plus(key)}</Key>"
        f"<LastModified>{datetime.datetime.utcfromtimestamp(int(os.path.getmtime(f'{bucket}/{key}'))).isoformat()}.000Z</LastModified>"
        f"<ETag>{xml.sax.saxutils.escape(etag_of(f'{bucket}/{key}'), {chr(34): '&quot;'})}</ETag>"
        f"<Size>{os.path.getsize(f'{bucket}/{key}')}</Size></Contents>" for key in page)
    token = f"<NextContinuationToken>{xml.sax.saxutils.escape(page[-1])}</NextContinuationToken>" if more else ""
    text = ('<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{objects}</ListBucketResult>")
    return 200, {"Content-Type": "application/xml", "Date": email.utils.formatdate(usegmt=True)}, text.encode()
