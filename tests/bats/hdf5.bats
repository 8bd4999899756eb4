# HDF5 files and Keras models. h5py made the files (tests/data/make_hdf5.py): datasets hold 0, 1, 2 ...

load lib

DATA=$BATS_TEST_DIRNAME/../data/hdf5

# Prints the elements of a tensor.
floats() {
    "$WFS" cat "$1" "tensors/${2//\//%2F}/raw" | od -A n -t f4 -v | tr -s ' \n' ' '
}

setup() {
    OUT=$BATS_TEST_TMPDIR
}

@test "chunks, filters and groups of the oldest and the newest versions" {
    for version in earliest latest; do
        for tensor in fixed/plain fixed/gzip extensible/sums tree/lzf; do
            result=$(floats "$DATA/$version.h5" "$tensor")
            [ "$result" = " $(seq -s ' ' 0 34) " ]
        done
        [ "$(floats "$DATA/$version.h5" many/w17)" = " 0 1 " ]
        [ "$(floats "$DATA/$version.h5" filled)" = " 2.5 2.5 2.5 2.5 2.5 2.5 " ]
    done
}

@test "model.safetensors has what has values, if a part is accepted" {
    fails 1 "1 external link leads to a dataset in another file" "$WFS" cp "$DATA/latest.h5" model.safetensors "$OUT"
    "$WFS" cp -o partial "$DATA/latest.h5" model.safetensors "$OUT" 2>/dev/null
    result=$(floats "$OUT/model.safetensors" extensible/gzip)
    [ "$result" = " $(seq -s ' ' 0 34) " ]
    "$WFS" cat "$OUT/model.safetensors" metadata.json | grep -q '"name": *"dtypes/f2"'
    run -1 --separate-stderr "$WFS" cat "$OUT/model.safetensors" tensors/external/raw
}

@test "links by a path are not followed, and elements in other files have no values" {
    "$WFS" cat "$DATA/latest.h5" metadata.json >"$OUT/metadata.json"
    grep -q 'latest.h5: 1 soft link is not followed' "$OUT/metadata.json"
    grep -q 'latest.h5: 1 external link leads to a dataset in another file; -o partial' "$OUT/metadata.json"
    grep -q 'its elements are in other files' "$OUT/metadata.json"
    grep -q '"keras_version": *"3.0"' "$OUT/metadata.json"
    run -1 --separate-stderr "$WFS" cat "$DATA/latest.h5" tensors/external/raw
    run -1 --separate-stderr "$WFS" cat "$DATA/latest.h5" tensors/links%2Fsoft/raw
}

@test "a dataset with two hard links has two names; a group within itself is not shown again" {
    for version in earliest latest; do
        same "$WFS" cat "$DATA/$version.h5" tensors/links%2Fagain/raw == "$WFS" cat "$DATA/$version.h5" tensors/dtypes%2Ff2/raw
        [ "$("$WFS" cat "$DATA/$version.h5" tensors/links%2Fagain/f32 | od -A n -t f4 -v | tr -s ' \n' ' ')" = " 0 1 2 3 " ]
        run -1 --separate-stderr "$WFS" cat "$DATA/$version.h5" tensors/links%2Fgroup%2Fagain/raw
    done
}

@test "a .keras archive is read where its weights lie, stored or deflated" {
    need_numpy
    "$PYTHON" - "$DATA/latest.h5" "$OUT" <<'END'
import sys
import zipfile

for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
    with zipfile.ZipFile(f"{sys.argv[2]}/{name}.keras", "w", method) as archive:
        archive.writestr("metadata.json", '{"keras_version": "3.0"}')
        archive.writestr("config.json", '{"class_name": "Functional"}')
        archive.write(sys.argv[1], "model.weights.h5")
        archive.writestr("assets/words.txt", "a b")
with zipfile.ZipFile(f"{sys.argv[2]}/none.keras", "w") as archive:
    archive.writestr("config.json", "{}")
END
    for name in stored deflated; do
        for tensor in fixed/plain tree/gzip; do
            result=$(floats "$OUT/$name.keras" "$tensor")
            [ "$result" = " $(seq -s ' ' 0 34) " ]
        done
        [ "$("$WFS" cat "$OUT/$name.keras" config.json)" = '{"class_name": "Functional"}' ]
        [ "$("$WFS" cat "$OUT/$name.keras" assets/words.txt)" = "a b" ]
    done
    run -1 --separate-stderr "$WFS" ls "$OUT/none.keras"
    [ "$stderr" = "wfs: $OUT/none.keras: model.weights.h5 is missing" ]
}

@test "shards of Keras are one model; a shard elsewhere is refused" {
    cp "$DATA/../../fuzz/corpus/hdf5/latest.h5" "$OUT/model_00000.weights.h5"
    cp "$DATA/latest.h5" "$OUT/model_00001.weights.h5"
    echo '{"metadata": {"total_size": 1.0}, "weight_map": {"/a": ["model_00000.weights.h5", "model_00001.weights.h5"],
        "/b": "model_00001.weights.h5"}}' >"$OUT/model.weights.json"
    [ "$(floats "$OUT" a/w)" = " 0 1 2 3 " ]
    [ "$(floats "$OUT" many/w17)" = " 0 1 " ]
    [ "$(floats "$OUT/model_00000.weights.h5" a/w)" = " 0 1 2 3 " ]
    for shard in ../x.h5 "" /etc/passwd; do
        echo "{\"weight_map\": {\"/a\": [\"$shard\"]}}" >"$OUT/model.weights.json"
        run -1 --separate-stderr "$WFS" ls "$OUT"
        [ "$stderr" = "wfs: $OUT/model.weights.json: weight_map has a shard that is not a file name" ]
    done
    echo '{"weight_map": {}}' >"$OUT/model.weights.json"
    run -1 --separate-stderr "$WFS" ls "$OUT"
    [ "$stderr" = "wfs: $OUT/model.weights.json: the object weight_map is missing or empty" ]
}

@test "tf_model.h5 in a Hugging Face directory" {
    cp "$DATA/earliest.h5" "$OUT/tf_model.h5"
    echo '{}' >"$OUT/config.json"
    [ "$(floats "$OUT" many/w17)" = " 0 1 " ]
    run -0 "$WFS" cat "$OUT" config.json
}

@test "shards of TensorFlow and Flax, whose indexes spell names in another way" {
    mkdir "$OUT/tf" "$OUT/flax"
    cp "$DATA/../../fuzz/corpus/hdf5/latest.h5" "$OUT/tf/tf_model-00001-of-00002.h5"
    cp "$DATA/latest.h5" "$OUT/tf/tf_model-00002-of-00002.h5"
    echo '{"weight_map": {"tf_model/a/w": "tf_model-00001-of-00002.h5", "tf_model/many/w17": "tf_model-00002-of-00002.h5"}}' \
        >"$OUT/tf/tf_model.h5.index.json"
    [ "$(floats "$OUT/tf" a/w)" = " 0 1 2 3 " ]
    [ "$(floats "$OUT/tf" many/w17)" = " 0 1 " ]

    # {"a": {KEY: an array of one number}}: 1.0 and 2.0
    printf '\x81\xa1a\x81\xa1b\xc7\x11\1\x93\x91\1\xa7float32\xc4\4\0\0\x80\x3f' >"$OUT/flax/flax_model-00001-of-00002.msgpack"
    printf '\x81\xa1a\x81\xa1c\xc7\x11\1\x93\x91\1\xa7float32\xc4\4\0\0\0\x40' >"$OUT/flax/flax_model-00002-of-00002.msgpack"
    echo '{"weight_map": {"a/b": "flax_model-00001-of-00002.msgpack", "a/c": "flax_model-00002-of-00002.msgpack"}}' \
        >"$OUT/flax/flax_model.msgpack.index.json"
    [ "$(floats "$OUT/flax" a.b)" = " 1 " ]
    [ "$(floats "$OUT/flax" a.c)" = " 2 " ]
}

# Changes a byte at an offset from each occurrence of a text.
damage() {
    "$PYTHON" - "$@" <<'END'
import sys

name, text, offset, value = sys.argv[1:]
parts = open(name, "rb").read().split(text.encode())
at = int(offset) - len(text)
for i, part in enumerate(parts[1:], 1):
    parts[i] = part[:at] + bytes([int(value)]) + part[at + 1 :]
open(name, "wb").write(text.encode().join(parts))
END
}

@test "damaged files are refused, with the address" {
    need_numpy
    cp "$DATA/earliest.h5" "$OUT/tree.h5"
    damage "$OUT/tree.h5" TREE 5 9
    run -1 --separate-stderr "$WFS" ls "$OUT/tree.h5"
    [[ "$stderr" =~ ^"wfs: $OUT/tree.h5: address "[0-9]+": damaged: " ]]
    cp "$DATA/latest.h5" "$OUT/header.h5"
    damage "$OUT/header.h5" OHDR 6 255
    run -1 --separate-stderr "$WFS" ls "$OUT/header.h5"
    [[ "$stderr" =~ ^"wfs: $OUT/header.h5: address "[0-9]+": damaged: " ]]
    head -c 20000 "$DATA/latest.h5" >"$OUT/short.h5"
    run -1 --separate-stderr "$WFS" ls "$OUT/short.h5"
    [[ "$stderr" =~ ^"wfs: $OUT/short.h5: truncated: the superblock gives "[0-9]+" bytes, but the file has 20000"$ ]]
}

@test "a damaged chunk or index is an error of its tensor alone" {
    need_numpy
    cp "$DATA/latest.h5" "$OUT/index.h5"
    damage "$OUT/index.h5" FAHD 8 99
    run -1 --separate-stderr "$WFS" cat "$OUT/index.h5" tensors/fixed%2Fplain/raw
    [[ "$stderr" == *"damaged: the checksum is wrong"* ]]
    [ "$(floats "$OUT/index.h5" many/w17)" = " 0 1 " ]
}

# libhdf5 gives the fill value for chunks that it does not find by the order of keys.
@test "chunks that libhdf5 would not find are refused" {
    need_numpy
    for key in "112 200" "128 4"; do # the third key of a node: its first element, and the byte in it
        cp "$DATA/earliest.h5" "$OUT/keys.h5"
        # shellcheck disable=SC2086 # two words
        damage "$OUT/keys.h5" TREE $key
        run -1 --separate-stderr "$WFS" cat "$OUT/keys.h5" tensors/fixed%2Fplain/raw
        [[ "$stderr" == *"damaged: the index of a dataset's chunks"* ]]
    done
}

@test "a user block is looked for in files with HDF5's names alone" {
    # a safetensors file whose only tensor begins at 512, with HDF5's signature
    { printf '\xf8\1\0\0\0\0\0\0%-504s' '{"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}}'
        printf '\x89HDF\r\n\x1a\n'; } >"$OUT/a.safetensors"
    [ "$("$WFS" cat "$OUT/a.safetensors" tensors/a/raw | od -An -c | tr -d ' ')" = '211HDF\r\n032\n' ]
    cp "$DATA/latest.h5" "$OUT/other.bin" # has a user block of 512 bytes
    run -1 --separate-stderr "$WFS" ls "$OUT/other.bin"
    [[ "$stderr" != *HDF5* ]]
}
