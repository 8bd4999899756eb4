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
    [ "$("$WFS" cache)" = "$("$WFS" cache ls)" ]
    [ "$("$WFS" cache --json)" = "$("$WFS" cache ls --json)" ]
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
    fails 2 "option keep: 'some' is not sizes, quantized, whole, all or none" "$WFS" ls -o keep=some "$SOURCE"
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

# Without an option, only the sizes of the tokenizers in GGUF headers are kept, in a file of records.

# has_sizes: the file has a record.
has_sizes() {
    [ "$(tr -d '\0' <"$XDG_CACHE_HOME/wfs/sizes" | wc -c)" -gt 0 ]
}

# forge_sizes BYTES [ENDING]: makes each record say so many bytes more, and replaces the notes in it by ENDING.
forge_sizes() {
    "$PYTHON" - "$XDG_CACHE_HOME/wfs/sizes" "$@" <<'END'
import hashlib, struct, sys

with open(sys.argv[1], "r+b") as file:
    records = bytearray(file.read())
    for at in range(0, len(records), 512):
        key, (length,) = records[at:at + 32], struct.unpack_from("<I", records, at + 40)
        if length == 0:
            continue
        data = records[at + 44:at + 44 + length]
        data[:8] = struct.pack("<Q", struct.unpack_from("<Q", data)[0] + int(sys.argv[2]) & (1 << 64) - 1)
        if len(sys.argv) > 3:
            data[8:] = sys.argv[3].encode("latin-1").decode("unicode_escape").encode("latin-1")
        body = struct.pack("<I", len(data)) + data.ljust(468, b"\0")
        records[at + 32:at + 40] = hashlib.sha256(key + body).digest()[:8]
        records[at + 40:at + 512] = body
    file.seek(0)
    file.write(records)
END
}

# mounted COMMAND...: its output in a new mount, served quietly unless it is allowed to say something.
mounted() {
    serve ${OPTIONS:+-o "$OPTIONS"} "$MODEL" "$MNT"
    "$@"
    unmount "$MNT"
}

size_of_gguf() {
    stat -c %s "$MNT/model.gguf"
}

make_model() {
    MODEL=$BATS_TEST_TMPDIR/padded
    make_input padded "$MODEL"
    touch -d 2020-01-01 "$MODEL"/*
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/home
    SIZE=$("$WFS" cat "$MODEL" model.gguf | wc -c)
}

# The size of F16 that a server lists.
served_size() {
    rm -f "$BATS_TEST_TMPDIR/address"
    "$WFS" serve --listen 127.0.0.1:0 a/b="$MODEL" >"$BATS_TEST_TMPDIR/address" 2>/dev/null 3>&- &
    await test -s "$BATS_TEST_TMPDIR/address"
    "$PYTHON" - "$(cat "$BATS_TEST_TMPDIR/address")/api/models/a/b-GGUF/tree/main" <<'END'
import json, sys, urllib.request

print(*(file["size"] for file in json.load(urllib.request.urlopen(sys.argv[1])) if file["path"] == "b-F16.gguf"))
END
    kill $!
    wait $!
}

@test "a mount knows the size of model.gguf from an earlier one, and reads the tokenizer with the header" {
    local notes
    need_fuse
    make_model
    OPTIONS=keep=none
    [ "$(mounted size_of_gguf)" -eq "$SIZE" ]
    [ ! -e "$XDG_CACHE_HOME" ]
    OPTIONS=
    mounted size_of_gguf
    notes=$(grep '^wfs: note: ' "$SERVER_LOG" || true)
    has_sizes
    [ "$(stat -c %a "$XDG_CACHE_HOME/wfs/sizes")" = 600 ]
    "$WFS" cache ls | grep -q '  sizes$'
    mounted cmp "$MNT/model.gguf" <("$WFS" cat "$MODEL" model.gguf)
    mounted cmp "$MNT/gguf/model-Q8_0.gguf" <("$WFS" cat "$MODEL" gguf/model-Q8_0.gguf)
    [ "$(grep '^wfs: note: ' "$SERVER_LOG" || true)" = "$notes" ]
    forge_sizes 4096
    [ "$(mounted size_of_gguf)" -eq $((SIZE + 4096)) ] # without the tokenizer
    OPTIONS=name=padded2
    [ "$(mounted size_of_gguf)" -lt $((SIZE + 4096)) ]
    OPTIONS=
    printf '\n' >>"$MODEL/tokenizer.json"
    touch -d 2020-01-01 "$MODEL/tokenizer.json"
    [ "$(mounted size_of_gguf)" -eq "$SIZE" ]
    "$WFS" cache rm sizes
    [ ! -e "$XDG_CACHE_HOME/wfs/sizes" ]
}

@test "the first read notices a kept size that is wrong, and the next mount has the right one" {
    need_fuse
    make_model
    mounted true
    forge_sizes 4096
    serve "$MODEL" "$MNT"
    [ "$(size_of_gguf)" -eq $((SIZE + 4096)) ]
    run ! cat "$MNT/model.gguf"
    run ! cat "$MNT/model.gguf"
    cmp "$MNT/config.json" "$MODEL/config.json"
    unmount "$MNT"
    grep -q "model.gguf: read failed: its size would be $SIZE bytes.*an earlier wfs kept was wrong; mount again" "$SERVER_LOG"
    mounted cmp "$MNT/model.gguf" <("$WFS" cat "$MODEL" model.gguf)
}

@test "sizes of another source, of a young one, and what is no record, have no influence" {
    need_fuse
    make_model
    mounted true
    forge_sizes 4096
    mkdir "$BATS_TEST_TMPDIR/other"
    cp -rp "$MODEL" "$BATS_TEST_TMPDIR/other"
    MODEL=$BATS_TEST_TMPDIR/other/padded
    [ "$(mounted size_of_gguf)" -eq "$SIZE" ]
    touch -d '+1 hour' "$MODEL/tokenizer.json"
    rm "$XDG_CACHE_HOME/wfs/sizes"
    [ "$(mounted size_of_gguf)" -eq "$SIZE" ]
    run ! has_sizes
    touch -d 2020-01-01 "$MODEL/tokenizer.json"
    mounted true
    forge_sizes -1000000000000000000
    [ "$(mounted size_of_gguf)" -eq "$SIZE" ]
    rm "$XDG_CACHE_HOME/wfs/sizes"
    mounted true
    forge_sizes 0 '\x00\xff\x00'
    [ "$(mounted size_of_gguf)" -eq "$SIZE" ]
    head -c 3000000 /dev/urandom >"$XDG_CACHE_HOME/wfs/sizes"
    [ "$(mounted size_of_gguf)" -eq "$SIZE" ]
}

@test "without a cache, mounts keep no sizes and say nothing" {
    need_fuse
    make_model
    mkdir -p "$XDG_CACHE_HOME/wfs"
    quiet() {
        size_of_gguf
        server_is_quiet
    }
    mkfifo "$XDG_CACHE_HOME/wfs/sizes"
    [ "$(mounted quiet)" -eq "$SIZE" ]
    rm "$XDG_CACHE_HOME/wfs/sizes"
    ln -s "$MODEL/config.json" "$XDG_CACHE_HOME/wfs/sizes"
    [ "$(mounted quiet)" -eq "$SIZE" ]
    rm "$XDG_CACHE_HOME/wfs/sizes"
    chmod g+w "$XDG_CACHE_HOME/wfs"
    [ "$(mounted quiet)" -eq "$SIZE" ]
    [ ! -e "$XDG_CACHE_HOME/wfs/sizes" ]
    export XDG_CACHE_HOME=/proc/nothing
    [ "$(mounted quiet)" -eq "$SIZE" ]
    unset XDG_CACHE_HOME HOME
    export CACHE_DIRECTORY=/dev/null
    [ "$(mounted quiet)" -eq "$SIZE" ]
}

@test "a server knows the sizes that an earlier one has kept" {
    local size
    need_serve
    make_model
    size=$(served_size)
    [ "$(served_size)" -eq "$size" ]
    forge_sizes 4096
    [ "$(served_size)" -eq $((size + 4096)) ]
}
