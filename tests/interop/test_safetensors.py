"""wfs accepts the safetensors files that the safetensors library accepts, and finds the same tensors in them.

What it refuses beyond that is stated: DELIBERATE. Nothing that the library refuses is accepted.
"""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import safetensors

from interop import ROOT, WFS, check, done

sys.path.append(str(ROOT / "tests" / "data"))
import make

OPEN = pathlib.Path(WFS).parent / "tests" / "interop" / "open"
N_MUTATED = 4000

# Reasons for which wfs refuses what the library accepts.
DELIBERATE = {
    "appears twice in one object": "a key twice: the library takes the last, the description of the format forbids it",
    "its description is not an object": "a tensor as an array: only the library's JSON parser reads that as a tensor",
    "dtype is not a string": "a dtype as an object: likewise",
    "shape has ": "more than 64 dimensions: numpy and torch have no such tensors",
    "its name is too long": "names of more than 64 KiB",
}


def tensor(dtype="I32", shape="[1]", offsets="[0,4]", more=""):
    return f'{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}{more}}}'


def one(*arguments, **options):
    return '{"a":' + tensor(*arguments, **options) + "}"


T = tensor()

# Name: header, bytes of data, and whether the library accepts what wfs refuses.
ROWS = {
    "one": (one(), 4),
    "leading white space": (" \n\t" + one(), 4),
    "byte order mark": ("\ufeff" + one(), 4),
    "trailing white space": (one() + " \r\n\t", 4),
    "trailing NUL": (one() + "\0", 4),
    "trailing junk": (one() + "x", 4),
    "two objects": (one() + "{}", 4),
    "empty header": ("", 0),
    "no tensors": ("{}", 0),
    "no tensors, 4 bytes": ("{}", 4),
    "array": ("[]", 0),
    "null": ("null", 0),
    "name twice": (f'{{"a":{T},"a":{T}}}', 4, True),
    "name twice, the last valid": (f'{{"a":{tensor("I32", "[2]", "[0,4]")},"a":{T}}}', 4, True),
    "name twice, the first empty": (f'{{"a":{tensor("I32", "[0]", "[0,0]")},"a":{T}}}', 4, True),
    "name twice, escaped": (f'{{"a":{T},"\\u0061":{T}}}', 4, True),
    "metadata": (f'{{"__metadata__":{{"k":"v"}},"a":{T}}}', 4),
    "metadata twice": (f'{{"__metadata__":{{}},"__metadata__":{{}},"a":{T}}}', 4),
    "metadata null": (f'{{"__metadata__":null,"a":{T}}}', 4),
    "metadata with integer": (f'{{"__metadata__":{{"k":1}},"a":{T}}}', 4),
    "metadata with null": (f'{{"__metadata__":{{"k":null}},"a":{T}}}', 4),
    "metadata as list": (f'{{"__metadata__":[],"a":{T}}}', 4),
    "metadata key twice": (f'{{"__metadata__":{{"k":"1","k":"2"}},"a":{T}}}', 4, True),
    "metadata is a tensor": (f'{{"__metadata__":{T}}}', 4),
    "metadata, escaped": (f'{{"\\u005f_metadata__":{{"k":"v"}},"a":{T}}}', 4),
    "offsets of one": (one("U8", "[4]", "[4]"), 4),
    "offsets of three": (one("U8", "[4]", "[0,4,4]"), 4),
    "offsets as object": (one("U8", "[4]", '{"0":0,"1":4}'), 4),
    "offsets reversed": (one("U8", "[4]", "[4,0]"), 4),
    "hole at the start": (one("U8", "[4]", "[1,5]"), 5),
    "hole in the middle": (f'{{"a":{T},"b":{tensor("U8", "[1]", "[5,6]")}}}', 6),
    "overlap": (f'{{"a":{T},"b":{tensor("U8", "[4]", "[2,6]")}}}', 6),
    "alias": (f'{{"a":{T},"b":{T}}}', 4),
    "short": (one(), 3),
    "long": (one(), 5),
    "offsets short of the shape": (one("I32", "[2,2]", "[0,4]"), 4),
    "extra field": (one(more=',"extra":[{"x":null}]'), 4),
    "extra field 127 deep": (one(more=',"extra":' + "[" * 125 + "]" * 125), 4),
    "extra field 128 deep": (one(more=',"extra":' + "[" * 126 + "]" * 126), 4),
    "field twice": (one(more=',"dtype":"I32"'), 4),
    "extra field twice": (one(more=',"x":1,"x":2'), 4, True),
    "field missing": ('{"a":{"dtype":"I32","shape":[1]}}', 4),
    "tensor as array": ('{"a":["I32",[1],[0,4]]}', 4, True),
    "dtype as object": ('{"a":{"dtype":{"I32":null},"shape":[1],"data_offsets":[0,4]}}', 4, True),
    "dtype unknown": (one("I33"), 4),
    "dtype C128": (one("C128", "[1]", "[0,16]"), 16),
    "dtype in lower case": (one("i32"), 4),
    "dtype as integer": ('{"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}}', 4),
    "dtype escaped": (one("\\u004932"), 4),
    "scalar": (one("I32", "[]"), 4),
    "0 before an overflow": (one("I32", "[0,9223372036854775808,4]", "[0,0]"), 0),
    "0 after an overflow": (one("I32", "[9223372036854775808,4,0]", "[0,0]"), 0),
    "bits overflow": (one("F32", "[576460752303423488]", "[0,2305843009213693952]"), 0),
    "product wraps": (one("U8", "[4194305,4194305,211106198978564]", "[0,4]"), 4),
    "empty between": (f'{{"a":{T},"b":{tensor("U8", "[0]", "[4,4]")},"c":{tensor("U8", "[1]", "[4,5]")}}}', 5),
    "empty inside": (f'{{"a":{T},"b":{tensor("U8", "[0]", "[2,2]")}}}', 4),
    "empty after": (f'{{"a":{T},"b":{tensor("U8", "[0]", "[5,5]")}}}', 4),
    "F4 of 4": (one("F4", "[4]", "[0,2]"), 2),
    "F4 of 3": (one("F4", "[3]", "[0,2]"), 2),
    "F4 in odd rows": (one("F4", "[2,3]", "[0,3]"), 3),
    "F6 of 4": (one("F6_E2M3", "[4]", "[0,3]"), 3),
    "F6 of 5": (one("F6_E3M2", "[5]", "[0,4]"), 4),
    "64 dimensions": (one("U8", "[1" + ",1" * 63 + "]", "[0,1]"), 1),
    "65 dimensions": (one("U8", "[1" + ",1" * 64 + "]", "[0,1]"), 1, True),
    "name of 64 KiB": (f'{{"{"n" * 65536}":{T}}}', 4),
    "name of more": (f'{{"{"n" * 65537}":{T}}}', 4, True),
    "empty name": (f'{{"":{T}}}', 4),
    "NUL in a name": (f'{{"a\\u0000b":{T}}}', 4),
    "path as name": (f'{{"../../etc/x":{T}}}', 4),
    "control byte": (f'{{"a\nb":{T}}}', 4),
    "DEL": (f'{{"a\x7fb":{T}}}', 4),
    "noncharacter": (f'{{"\ufffe":{T}}}', 4),
    "lone surrogate": (f'{{"\\ud800":{T}}}', 4),
    "reversed surrogates": (f'{{"\\ude00\\ud83d":{T}}}', 4),
    "surrogate pair": (f'{{"\\ud83d\\ude00":{T}}}', 4),
    "bad escape": (f'{{"\\x61":{T}}}', 4),
    "escaped slash": (f'{{"a\\/b":{T}}}', 4),
    "trailing comma": (f'{{"a":{T},}}', 4),
    "comment": (f'{{"a":{T}/**/}}', 4),
    "single quotes": (f"{{'a':{T}}}", 4),
    "NaN": ('{"a":NaN}', 0),
    "overlong": (b'{"\xc0\xaf":' + T.encode() + b"}", 4),
    "surrogate bytes": (b'{"\xed\xa0\x80":' + T.encode() + b"}", 4),
    "no UTF-8": (b"\xff", 0),
    "not JSON": ("{", 0),
}
for number in ("4.0", "4e0", "-0", "-1", "04", "+4", '"4"', "18446744073709551615", "18446744073709551616", "0x4", "4.", "[4]", "null"):
    ROWS[f"dimension {number}"] = (one("U8", f"[{number}]", "[0,4]"), 4)
    ROWS[f"offset {number}"] = (one("U8", "[4]", f"[0,{number}]"), 4)
for dtype, bits in {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64,
    "U64": 64,
}.items():  # fmt: skip
    ROWS[f"dtype {dtype}"] = (one(dtype, "[2,4]", f"[0,{bits}]"), bits)

# Whole files whose first 8 bytes are the point.
BEGINNINGS = {
    "empty file": b"",
    "7 bytes": b"\2" + b"\0" * 6,
    "length only": b"\2" + b"\0" * 7,
    "length one too large": struct.pack("<Q", 3) + b"{}",
    "length of 2^63": struct.pack("<Q", 1 << 63) + b"{}",
    "length that wraps": struct.pack("<Q", (1 << 64) - 8) + b"{}",
    "length over the limit": struct.pack("<Q", 100_000_001) + b"{}",
}


def mutated(seed):
    """Valid files with pieces of their headers changed, as text: most stay close to what is valid."""
    numbers = random.Random(seed)
    pieces = ["0", "1", "2", "4", "8", "-", ".", "e", '"', "[", "]", "{", "}", ",", ":", " ", "\\u0000", "null", "true", "F4", "I8",
              "BF16", '"a":', '"dtype":', '"shape":', '"data_offsets":', "18446744073709551615", "é", "\x01", "__metadata__"]  # fmt: skip
    header = {}
    offset = 0
    for name in numbers.sample(["a", "b", "c", "layers.0", "é", "\0", ""], numbers.randint(0, 4)):
        dtype, size = numbers.choice([("F32", 4), ("BF16", 2), ("U8", 1), ("F64", 8)])
        shape = [numbers.randint(0, 3) for _ in range(numbers.randint(0, 3))]
        n_bytes = size
        for dimension in shape:
            n_bytes *= dimension
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + n_bytes]}
        offset += n_bytes
    if numbers.random() < 0.3:
        header["__metadata__"] = {"format": "pt"}
    members = list(header.items())
    numbers.shuffle(members)
    text = json.dumps(dict(members), ensure_ascii=numbers.random() < 0.5, separators=(",", ":"))
    for _ in range(numbers.choice([0, 1, 1, 1, 2, 3])):
        at = numbers.randrange(len(text) + 1)
        end = min(len(text), at + numbers.choice([0, 0, 1, 1, 2, 5]))
        text = text[:at] + numbers.choice(pieces + [""]) + text[end:]
    return make.safetensors_file(text.encode(), bytes(offset + numbers.choice([0, 0, 0, 0, 0, 0, 1, -1]) * (offset > 0)))


def by_library(content):
    """The tensors as the library sees them, or None where it refuses the file."""
    try:
        tensors = safetensors.deserialize(content)
    except (safetensors.SafetensorError, OverflowError):
        return None
    return {name.encode(): (facts["dtype"], tuple(facts["shape"]), bytes(facts["data"])) for name, facts in tensors}


def by_wfs(directory, contents):
    """Of each file its tensors, and the reason where it is refused."""
    paths = []
    for i, content in enumerate(contents):
        paths.append(directory / str(i) / "model.safetensors")
        paths[-1].parent.mkdir()
        paths[-1].write_bytes(content)
    output = subprocess.run([OPEN, "safetensors", *paths], check=True, capture_output=True).stdout
    for line, content in zip(output.splitlines(), contents, strict=True):
        kind, *fields = line.split(b"\t")
        if kind == b"refused":
            yield None, fields[0].decode()
            continue
        tensors = {}
        for field in fields:
            name, dtype, shape, offset, length = field.decode().split(" ")
            dimensions = tuple(int(dimension) for dimension in shape.split(",") if dimension)
            data = content[int(offset) :][: int(length)]
            tensors[bytes.fromhex(name)] = (dtype, dimensions, data)
        yield tensors, ""


def main():
    files = {name: make.safetensors_file(row[0] if isinstance(row[0], bytes) else row[0].encode(), bytes(range(row[1]))) for name, row in ROWS.items()}
    files |= BEGINNINGS
    files |= {f"mutated with seed {seed}": mutated(seed) for seed in range(N_MUTATED)}
    n_accepted = 0
    used = set()
    with tempfile.TemporaryDirectory() as directory:
        results = by_wfs(pathlib.Path(directory), list(files.values()))
        for (name, content), (ours, reason) in zip(files.items(), results, strict=True):
            theirs = by_library(content)
            deliberate = [phrase for phrase in DELIBERATE if phrase in reason]
            if len(ROWS.get(name, ())) == 3:
                check(ours is None and theirs is not None and deliberate, f"{name}: only the library accepts it ({reason})")
            elif ours is None and theirs is not None:
                check(name not in ROWS and deliberate, f"{name}: only the library accepts it: {reason}")
            else:
                check(ours == theirs, f"{name}: wfs {ours or reason}, the library {theirs}")
            used |= set(deliberate) if theirs is not None else set()
            n_accepted += ours is not None
    check(used == set(DELIBERATE), f"differences that do not occur: {set(DELIBERATE) - used}")
    print(f"{len(files)} files, {n_accepted} accepted; safetensors {safetensors.__version__}")
    done()


if __name__ == "__main__":
    main()
