# Sources that are cut, replaced, deleted or failing while they are mounted.

load lib

setup_file() {
    load lib
    need_fuse
    make_input dtypes "$BATS_FILE_TMPDIR/model.safetensors"
    make_input large "$BATS_FILE_TMPDIR/large.safetensors"
    make_input infinite "$BATS_FILE_TMPDIR/infinite.safetensors"
}

setup() {
    SOURCE=$BATS_TEST_TMPDIR/source.safetensors
    MNT=$BATS_TEST_TMPDIR/mnt
}

@test "a source that is cut: EIO for what is gone, to the byte, and everything else lives" {
    need jq
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    serve "$SOURCE" "$MNT"
    large=$MNT/tensors/large
    offset=$(jq .offset "$large/metadata.json")
    limit=$((offset + 30000001))
    truncate -s "$limit" "$SOURCE"
    check eio_beyond "$large/raw" "$limit" "$offset"
    check eio_beyond "$large/f32" $((offset + 2 * (limit - offset))) "$offset"
    run ! bash -c 'cat "$0" >/dev/null' "$large/raw"
    jq -e .tensors "$MNT/metadata.json" >/dev/null
    head -c 100000 "$large/q4_0" | cmp - <("$WFS" cat "$BATS_FILE_TMPDIR/large.safetensors" tensors/large/q4_0 | head -c 100000)
    # Whoever cut it may put it back.
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    cmp "$large/raw" <("$WFS" cat "$BATS_FILE_TMPDIR/large.safetensors" tensors/large/raw)
    unmount "$MNT"
    grep "ends at offset" "$SERVER_LOG"
    [ "$(server_lines)" -eq 2 ] # one for each file
}

@test "a reader who has mapped the file when the source is cut: the server lives" {
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    serve "$SOURCE" "$MNT"
    run "$PYTHON" - "$MNT/tensors/large/raw" "$SOURCE" <<'END'
import mmap, os, sys
with open(sys.argv[1], "rb") as file:
    mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    os.truncate(sys.argv[2], 4096)
    mapping[60_000_000]
END
    [ "$status" -ne 0 ]
    cat "$MNT/metadata.json" >/dev/null
    unmount "$MNT"
}

@test "a source that is replaced by a rename: the old one is served" {
    cp "$BATS_FILE_TMPDIR/model.safetensors" "$SOURCE"
    serve "$SOURCE" "$MNT"
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE.new"
    mv "$SOURCE.new" "$SOURCE"
    check contents "$MNT" "$BATS_FILE_TMPDIR/model.safetensors" 2>&1 | grep "source is source.safetensors" # all but its name
    cmp "$MNT/tensors/f32/f32" <("$WFS" cat "$BATS_FILE_TMPDIR/model.safetensors" tensors/f32/raw)
    unmount "$MNT"
    server_is_quiet
}

@test "a source that is deleted, with its directory: it is served to the end" {
    mkdir "$BATS_TEST_TMPDIR/model"
    cp "$BATS_FILE_TMPDIR/model.safetensors" "$BATS_TEST_TMPDIR/model/"
    serve "$BATS_TEST_TMPDIR/model" "$MNT"
    rm -r "$BATS_TEST_TMPDIR/model"
    check contents "$MNT" "$BATS_FILE_TMPDIR/model.safetensors"
    unmount "$MNT"
    server_is_quiet
}

@test "a failing disk: EIO, and the files live when it does again" {
    need_strace
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    serve -o no_readahead "$SOURCE" "$MNT"
    strace -f -o "$BATS_TEST_TMPDIR/trace" -e trace=pread64 -e inject=pread64:error=EIO -p "$SERVER" 2>"$BATS_TEST_TMPDIR/attached" 3>&- &
    tracer=$!
    await grep -q attached "$BATS_TEST_TMPDIR/attached"
    run bash -c 'cat "$0" >/dev/null' "$MNT/tensors/large/f32"
    [ "$status" -eq 1 ]
    [[ $output == *"Input/output error"* ]]
    kill -INT "$tracer"
    wait "$tracer" || true
    cmp "$MNT/tensors/large/f32" <("$WFS" cat "$SOURCE" tensors/large/f32)
    unmount "$MNT"
    grep "source.safetensors: offset .*: Input/output error" "$SERVER_LOG"
    [ "$(server_lines)" -eq 1 ]
}

@test "a weight that is not finite: EIO for the quantized range that holds it, said once" {
    serve "$BATS_FILE_TMPDIR/infinite.safetensors" "$MNT"
    file=$MNT/tensors/infinite/q8_0
    dd if="$file" iflag=direct bs=68 skip=39 count=1 status=none | wc -c | grep -qx 68
    for i in 1 2 3; do
        run dd if="$file" iflag=direct bs=68 skip=40 count=1 status=none
        [ "$status" -eq 1 ]
        [[ $output == *"Input/output error"* ]]
    done
    dd if="$file" iflag=direct bs=68 skip=41 count=1 status=none | wc -c | grep -qx 68
    cmp "$MNT/tensors/infinite/f32" "$MNT/tensors/infinite/raw"
    unmount "$MNT"
    grep "is not finite" "$SERVER_LOG"
    [ "$(server_lines)" -eq 1 ]
}

@test "/dev/fuse that cannot be opened twice: served all the same" {
    need_strace
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    SERVER_LOG=$BATS_TEST_TMPDIR/server.log
    strace -f -o "$BATS_TEST_TMPDIR/trace" -P /dev/fuse -e trace=openat -e inject=openat:error=EPERM:when=2+ \
        "$WFS" mount -f "$SOURCE" "$MNT" 2>"$SERVER_LOG" 3>&- &
    SERVER=$!
    await is_mounted "$MNT"
    check threads "$MNT/tensors/large/q8_0"
    grep -q EPERM "$BATS_TEST_TMPDIR/trace"
    unmount "$MNT"
    server_is_quiet
}
