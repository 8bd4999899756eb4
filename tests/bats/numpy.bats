# Arrays of numpy as sources: what numpy writes is what is shown.

load lib

setup_file() {
    load lib
    "$PYTHON" - "$BATS_FILE_TMPDIR" <<'END'
import sys
import numpy

random = numpy.random.default_rng(1)
arrays = {
    "a.weight": random.standard_normal((32, 64), "f4"),
    "big.endian": random.standard_normal((3, 5)).astype(">f8"),
    "fortran": numpy.asfortranarray(random.standard_normal((6, 32)).astype("f2")),
    "both": numpy.asfortranarray(numpy.arange(24, dtype=">i4").reshape(2, 3, 4)),
    "bool": numpy.array([True, False]),
    "scalar": numpy.array(3.5),
    "complex": (random.standard_normal(3) + 1j).astype(">c8"),
    "empty": numpy.zeros((0, 4), "u2"),
    "bytes": numpy.arange(256, dtype="u1"),
}
odd = {
    "text": numpy.array(["x", "yy"]),
    "structured": numpy.zeros(2, [("x", "<f4"), ("y", "<i2", (2,))]),
    "objects": numpy.array([{}, None], dtype=object),
    "void": numpy.zeros(3, "V3"),
    "bfloat16": numpy.array([0x3F80, 0xC000, 0x3EAA], "u2").view("V2"),
}
directory = sys.argv[1]
numpy.savez(directory + "/stored.npz", **arrays)
numpy.savez_compressed(directory + "/deflated.npz", **arrays)
numpy.savez_compressed(directory + "/odd.npz", **odd)
numpy.save(directory + "/one.npy", arrays["fortran"])
END
}

setup() {
    need_numpy
    D=$BATS_FILE_TMPDIR
    OUT=$BATS_TEST_TMPDIR
}

@test "each array of a .npz is the array that numpy loads" {
    for file in stored deflated; do
        "$WFS" cp -r "$D/$file.npz" tensors "$OUT/$file" 2>/dev/null
        "$PYTHON" - "$D/$file.npz" "$OUT/$file" <<'END'
import sys
import numpy

arrays = numpy.load(sys.argv[1])
assert len(arrays.files) == 9
for name in arrays.files:
    shown = numpy.load(f"{sys.argv[2]}/{name}/raw.npy")
    wanted = arrays[name].astype(arrays[name].dtype.newbyteorder("<"))
    assert shown.dtype == wanted.dtype and shown.shape == wanted.shape, name
    assert shown.tobytes() == wanted.tobytes(order="C"), name
    if not numpy.iscomplexobj(wanted):
        f32 = numpy.load(f"{sys.argv[2]}/{name}/f32.npy")
        assert f32.tobytes() == wanted.astype("f4").tobytes(), name
END
    done
    same "$WFS" cat "$D/stored.npz" model.safetensors == "$WFS" cat "$D/deflated.npz" model.safetensors
}

@test "a .npy is one tensor, named after the file" {
    [ "$("$WFS" ls "$D/one.npy" tensors)" = one ]
    "$WFS" cat "$D/one.npy" tensors/one/raw.npy >"$OUT/raw.npy"
    "$PYTHON" -c 'import numpy, sys; assert (numpy.load(sys.argv[1]) == numpy.load(sys.argv[2])).all()' "$D/one.npy" "$OUT/raw.npy"
}

@test "arrays without values are listed with the reason; two-byte void is bfloat16" {
    need jq
    "$WFS" cat "$D/odd.npz" metadata.json >"$OUT/metadata.json"
    for pair in text:texts structured:'structured elements' objects:'pickled objects' void:'elements without a type'; do
        [ "$(jq -r --arg name "${pair%%:*}" '.tensors[] | select(.name == $name) | .refused' "$OUT/metadata.json")" = "${pair#*:}" ]
    done
    [ "$(jq -r '.tensors[] | select(.name == "bfloat16") | .dtype' "$OUT/metadata.json")" = BF16 ]
    [ "$("$WFS" cat "$D/odd.npz" tensors/bfloat16/f32 | od -A n -t f4 | tr -s ' ')" = " 1 -2 0.33203125" ]
}

@test "weights.npz can be a model's weights" {
    mkdir "$OUT/model"
    cp "$D/stored.npz" "$OUT/model/weights.npz"
    echo '{"architectures":["NoSuchModel"]}' >"$OUT/model/config.json"
    "$WFS" ls "$OUT/model" | grep -qx config.json
    same "$WFS" cat "$OUT/model" tensors/a.weight/raw == "$WFS" cat "$D/stored.npz" tensors/a.weight/raw
}

# refuses TEXT HEADER [BYTES]: a .npy of version 1 with that header and so many bytes of elements.
refuses() {
    "$PYTHON" - "$OUT/bad.npy" "$2" "${3:-24}" <<'END'
import sys
header = sys.argv[2].encode()
open(sys.argv[1], "wb").write(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + bytes(int(sys.argv[3])))
END
    run --separate-stderr "$WFS" ls "$OUT/bad.npy"
    echo "$2: $stderr"
    [ "$status" -eq "${4:-1}" ]
    [[ $stderr == *"$1"* ]]
}

@test "contradictory headers are refused in one line" {
    local good="'fortran_order': False, 'shape': (2, 3), "
    refuses "" "{'descr': '<f4', $good}" 24 0
    refuses "" "{\"shape\": (2, 3L), 'descr': '|u1', 'fortran_order': True}  " 6 0
    refuses "truncated: 20 bytes of elements, expected 24" "{'descr': '<f4', $good}" 20
    refuses "1 extra bytes after the last element; -o allow_trailing" "{'descr': '<f4', $good}" 25
    for header in "" "{" "{}" "{'descr': '<f4', $good" "{'descr': '<f4', $good 'x': 1}" "{'descr': '<f4', $good}}" \
        "{'descr': '<f4', $good 'descr': '<f4'}" "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}" \
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}" "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}" \
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3)}" "{'descr': [('x', '<f4', $good}" \
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"; do
        refuses "the header is not a dictionary as numpy writes it" "$header"
    done
    refuses "the size of its shape overflows" \
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"
    printf '\x93NUMPY\x07\0\0\0\0\0' >"$OUT/bad.npy"
    run --separate-stderr "$WFS" ls "$OUT/bad.npy"
    [[ $stderr == *"unknown format version 7" ]]
}
