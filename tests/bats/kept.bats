# -o keep=: computed bytes on disk, which later commands and mounts read.

load lib

setup_file() {
    load lib
    make_input large "$BATS_FILE_TMPDIR/large.safetensors"
}

setup() {
    need_numpy
    unset CACHE_DIRECTORY
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    SOURCE=$BATS_TEST_TMPDIR/model.safetensors
    MNT=$BATS_TEST_TMPDIR/mnt
    KEEP=keep=quantized,cache-size=1GB
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    touch -d 2020-01-01 "$SOURCE" # bytes of an input that was written in this minute are not kept
}

# sum_of OPTIONS: the SHA-256 of the file that the tests read. It has fewer granules than wfs queues for the disk, so that
# none is dropped, however slow the disk is.
sum_of() {
    "$WFS" cat "$@" "$SOURCE" tensors/large/q2_k | sha256sum
}

# forge [ABOVE]: changes the kept bytes, and their CRCs, to others that only the store can give, of the object of more
# bytes than ABOVE.
forge() {
    "$PYTHON" - "${1:-0}" "$XDG_CACHE_HOME"/wfs/objects/*/computed-*/000000 <<'END'
import struct, sys, zlib

def size_of(path):
    with open(path, "rb") as segment:
        bytes = segment.read()
    return struct.unpack_from("<Q", bytes, len(bytes) - 4096 + 24)[0]

(path,) = (path for path in sys.argv[2:] if size_of(path) > int(sys.argv[1]))
with open(path, "r+b") as segment:
    bytes = bytearray(segment.read())
    size = struct.unpack_from("<Q", bytes, len(bytes) - 4096 + 24)[0]
    for granule in range((size + (256 << 10) - 1) // (256 << 10)):
        at, end = granule * (256 << 10), min(size, (granule + 1) * (256 << 10))
        word = len(bytes) - 2048 + 8 * granule
        if bytes[word + 4] == 0:
            continue
        bytes[at:end] = b"x" * (end - at)
        struct.pack_into("<II", bytes, word, zlib.crc32(bytes[at:end]), 1)
    segment.seek(0)
    segment.write(bytes)
END
}

# The file is all x.
is_forged() {
    [ "$(tr -d x | wc -c)" -eq 0 ]
}

@test "what one command has computed another reads" {
    local wanted
    wanted=$(sum_of)
    "$WFS" cache ls | grep -qx ' *0 bytes  all'
    [ "$(sum_of -o "$KEEP")" = "$wanted" ]
    [ "$("$WFS" cache ls | grep -c "  $SOURCE/tensors\$")" -eq 1 ]
    "$WFS" cache ls --json | jq -e --arg name "$SOURCE/tensors" \
        '.bytes == (.kept | map(.bytes) | add) and (.kept | any(.name == $name))'
    [ "$(sum_of -o "$KEEP")" = "$wanted" ]
    forge
    "$WFS" cat -o "$KEEP" "$SOURCE" tensors/large/q2_k | is_forged
    "$WFS" cp -o "$KEEP" "$SOURCE" tensors/large/q2_k "$BATS_TEST_TMPDIR/copy"
    is_forged <"$BATS_TEST_TMPDIR/copy"
    [ "$(sum_of)" = "$wanted" ]
    [ "$(sum_of -o keep=none)" = "$wanted" ]
    fails 1 "nothing of it is in the cache" "$WFS" cache rm "$SOURCE/tens"
    "$WFS" cache rm "$SOURCE"
    "$WFS" cache ls | grep -qx ' *0 bytes  all'
    [ "$(sum_of -o "$KEEP")" = "$wanted" ]
}

@test "a mount reads what another has computed" {
    need_fuse
    serve -o "$KEEP" "$SOURCE" "$MNT"
    [ "$(sha256sum <"$MNT/tensors/large/q2_k")" = "$(sum_of)" ]
    unmount "$MNT"
    server_is_quiet
    forge
    serve -o "$KEEP" "$SOURCE" "$MNT"
    is_forged <"$MNT/tensors/large/q2_k"
    unmount "$MNT"
    server_is_quiet
}

@test "an input that is replaced by one of equal size and time has other bytes" {
    sum_of -o "$KEEP"
    forge
    "$PYTHON" - "$SOURCE" <<'END'
import sys

with open(sys.argv[1], "r+b") as source:
    source.seek(5000000)
    source.write(bytes(4096))
END
    touch -d 2020-01-01 "$SOURCE"
    [ "$(sum_of -o "$KEEP")" = "$(sum_of)" ]
}

@test "other options, and a new name, give other bytes" {
    sum_of -o "$KEEP"
    forge
    [ "$("$WFS" cat -o "$KEEP,names=gguf" "$SOURCE" tensors/large/q2_k | sha256sum)" = "$(sum_of)" ]
    mv "$SOURCE" "$BATS_TEST_TMPDIR/other.safetensors"
    SOURCE=$BATS_TEST_TMPDIR/other.safetensors
    [ "$(sum_of -o "$KEEP")" = "$(sum_of)" ]
}

@test "nothing is kept of an input that has just been written" {
    touch -d '+1 hour' "$SOURCE" # so that it is young however slow this machine is
    [ "$(sum_of -o keep=all)" = "$(sum_of)" ]
    "$WFS" cache ls | grep -qx ' *0 bytes  all'
}

# bytes_kept: what the store takes on disk.
bytes_kept() {
    find "$XDG_CACHE_HOME/wfs/objects" -type f -printf '%b\n' | awk '{ sum += $1 } END { print sum * 512 }'
}

# gguf_of OPTIONS: a quantized file of a model, of 1.2 MB.
gguf_of() {
    "$WFS" cat "$@" "$BATS_TEST_TMPDIR/llama" gguf/model-Q4_K_M.gguf
}

# Changes a byte of the first record of scales, and its CRC if the argument is "whole".
change_scales() {
    "$PYTHON" - "$XDG_CACHE_HOME"/wfs/objects/*/computed-*/000000 "$1" <<'END'
import struct, sys, zlib

with open(sys.argv[1], "r+b") as segment:
    bytes = bytearray(segment.read())
    bytes[1] ^= 4
    if sys.argv[2] == "whole":
        struct.pack_into("<I", bytes, len(bytes) - 2048, zlib.crc32(bytes[:256 << 10]))
    segment.seek(0)
    segment.write(bytes)
END
}

@test "keep=quantized keeps the scales of a GGUF, an eighth of it, and keep=whole its bytes" {
    local wanted size
    make_input wide "$BATS_TEST_TMPDIR/llama"
    touch -d 2020-01-01 "$BATS_TEST_TMPDIR"/llama/*
    wanted=$(gguf_of | sha256sum)
    size=$(gguf_of | wc -c)
    [ "$(gguf_of -o "$KEEP" | sha256sum)" = "$wanted" ]
    [ "$(gguf_of -o "$KEEP" | sha256sum)" = "$wanted" ]
    echo "$(bytes_kept) of $size"
    [ "$(bytes_kept)" -le $((size * 12 / 100)) ]
    change_scales damaged
    [ "$(gguf_of -o "$KEEP" | sha256sum)" = "$wanted" ]
    change_scales whole # shows that scales are read, and codes follow from them
    [ "$(gguf_of -o "$KEEP" | sha256sum)" != "$wanted" ]
    [ "$(gguf_of -o keep=whole,cache-size=1GB | sha256sum)" = "$wanted" ]
    [ "$(bytes_kept)" -ge $((size * 90 / 100)) ]
    "$WFS" cache rm "$BATS_TEST_TMPDIR/llama"
    [ "$(gguf_of -o "$KEEP" | sha256sum)" = "$wanted" ]
}

@test "a mount computes codes from the scales that another kept, at any offset" {
    need_fuse
    local wanted
    make_input wide "$BATS_TEST_TMPDIR/llama"
    touch -d 2020-01-01 "$BATS_TEST_TMPDIR"/llama/*
    gguf_of >"$BATS_TEST_TMPDIR/wanted"
    gguf_of -o "$KEEP" >/dev/null
    serve -o "$KEEP" "$BATS_TEST_TMPDIR/llama" "$MNT"
    for at in 900001 1048575 0 700000; do
        local range=(bs=64K "iflag=skip_bytes,count_bytes" skip="$at" count=300000 status=none)
        same dd if="$MNT/gguf/model-Q4_K_M.gguf" "${range[@]}" == dd if="$BATS_TEST_TMPDIR/wanted" "${range[@]}"
    done
    cmp "$MNT/gguf/model-Q4_K_M.gguf" "$BATS_TEST_TMPDIR/wanted"
    unmount "$MNT"
    server_is_quiet
}

@test "keep=quantized keeps what takes long to encode, keep=all every computed byte" {
    "$WFS" cat -o "$KEEP" "$SOURCE" tensors/large/q8_0 | sha256sum
    "$WFS" cat -o keep=all "$SOURCE" tensors/large/raw | sha256sum
    "$WFS" cache ls | grep -qx ' *0 bytes  all'
    "$WFS" cat -o keep=all "$SOURCE" tensors/large/q8_0 | sha256sum
    [ "$("$WFS" cache ls | grep -c "  $SOURCE/tensors\$")" -eq 1 ]
    fails 2 "option keep: 'some' is not quantized, whole, all or none" "$WFS" ls -o keep=some "$SOURCE"
}

# set_finding BYTES OTHER: changes the only finding that is kept, and its CRC unless OTHER is "damaged".
set_finding() {
    "$PYTHON" - "$XDG_CACHE_HOME"/wfs/objects/*/computed-*/000000 "$@" <<'END'
import struct, sys, zlib

with open(sys.argv[1], "r+b") as segment:
    bytes = bytearray(segment.read())
    length = struct.unpack_from("<Q", bytes)[0]
    new = struct.pack("<2f", *map(float, sys.argv[2].split()))
    assert length == len(new), length
    bytes[8:8 + length] = new
    if sys.argv[3] != "damaged":
        struct.pack_into("<I", bytes, len(bytes) - 2048, zlib.crc32(bytes[:4096]))
    segment.seek(0)
    segment.write(bytes)
END
}

@test "what the first reader of a merged tensor finds out another command need not" {
    local models=$BATS_TEST_TMPDIR/models recipe=$BATS_TEST_TMPDIR/models/slerp.yaml tensor=tensors/lm_head.weight/raw wanted
    mkdir "$models"
    "$PYTHON" "$HERE/recipes.py" "$models"
    printf '%s\n' 'merge_method: slerp' 'models: [{model: base}, {model: tuned}]' 'base_model: base' 'parameters: {t: 0.5}' 'dtype: bfloat16' >"$recipe"
    touch -d 2020-01-01 "$models"/* "$models"/*/*
    merged() { "$WFS" cat "$@" "$recipe" "$tensor" | sha256sum; }
    wanted=$(merged)
    "$WFS" cache ls | grep -qx ' *0 bytes  all'
    [ "$(merged -o "$KEEP")" = "$wanted" ]
    [ "$("$WFS" cache ls | grep -c "  $recipe/findings\$")" -eq 1 ]
    set_finding "1 0" whole # all of the base, nothing of the other model
    [ "$(merged -o "$KEEP")" = "$("$WFS" cat "$models/base" "$tensor" | sha256sum)" ]
    [ "$(merged -o "$KEEP,names=gguf")" != "$(merged -o "$KEEP")" ] # another request
    "$WFS" cache rm "$recipe"
    [ "$(merged -o "$KEEP")" = "$wanted" ]
    set_finding "1 0" damaged
    [ "$(merged -o "$KEEP")" = "$wanted" ]
    "$WFS" cache rm "$recipe"
    [ "$(merged -o "$KEEP")" = "$wanted" ]
    set_finding "1 0" whole
    cp "$models/half/model.safetensors" "$models/tuned/" # which has other values
    touch -d 2020-01-01 "$models/tuned/model.safetensors"
    [ "$(merged -o "$KEEP")" = "$(merged)" ]
}

# header_of OPTIONS: the SHA-256 of the bytes of model.gguf that no weight is in.
header_of() {
    "$WFS" cat --range 0:150000 "$@" "$MODEL" model.gguf | sha256sum
}

@test "a tokenizer that one command has read another need not" {
    local wanted list
    MODEL=$BATS_TEST_TMPDIR/padded
    make_input padded "$MODEL"
    touch -d 2020-01-01 "$MODEL"/*
    wanted=$(header_of)
    list=$("$WFS" ls -l "$MODEL")
    [ "$(header_of -o "$KEEP")" = "$wanted" ]
    [ "$("$WFS" cache ls | grep -c "  $MODEL/findings\$")" -eq 1 ]
    [ "$(header_of -o "$KEEP")" = "$wanted" ]
    [ "$("$WFS" info --json -o "$KEEP" "$MODEL" | jq .notes)" = "$("$WFS" info --json "$MODEL" | jq .notes)" ]
    [ "$(header_of -o "$KEEP,name=Other")" = "$(header_of -o name=Other)" ]
    "$WFS" cache rm "$MODEL"
    header_of -o "$KEEP" >/dev/null
    forge 100000 # the tokens
    [ "$("$WFS" cat --range 100000:4 -o "$KEEP" "$MODEL" model.gguf)" = xxxx ]
    [ "$("$WFS" ls -l -o "$KEEP" "$MODEL")" = "$list" ]
    printf '\n' >>"$MODEL/tokenizer_config.json"
    touch -d 2020-01-01 "$MODEL/tokenizer_config.json"
    [ "$(header_of -o "$KEEP")" = "$wanted" ]
    "$WFS" cache rm "$MODEL"
    header_of -o "$KEEP" >/dev/null
    rm "$(grep -lr . --include=000000 "$XDG_CACHE_HOME/wfs/objects" | xargs ls -S | head -1)"
    [ "$(header_of -o "$KEEP")" = "$wanted" ] # read again
}

@test "a cache that cannot be written, or may hold nothing, keeps nothing" {
    local wanted
    wanted=$(sum_of)
    touch "$BATS_TEST_TMPDIR/file"
    run --separate-stderr sum_of -o "keep=quantized,cache=$BATS_TEST_TMPDIR/file/cache"
    [ "$output" = "$wanted" ]
    [[ $stderr == "wfs: note: "*"computed bytes are not kept"* ]]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [ "$(sum_of -o keep=quantized,cache-size=0)" = "$wanted" ]
    "$WFS" cache ls | grep -qx ' *0 bytes  all'
}
