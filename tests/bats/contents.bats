# What is in the files of a mounted safetensors file, against numpy; and that any range of it can be read in any way.

load lib

setup_file() {
    load lib
    make_input dtypes "$BATS_FILE_TMPDIR/model.safetensors"
    make_input large "$BATS_FILE_TMPDIR/large.safetensors"
}

setup() {
    need_fuse
    need_numpy
    SOURCE=$BATS_FILE_TMPDIR/model.safetensors
    LARGE=$BATS_FILE_TMPDIR/large.safetensors
    MNT=$BATS_TEST_TMPDIR/mnt
}

@test "every tensor has the right name, views, sizes, bytes and metadata" {
    serve "$SOURCE" "$MNT"
    check contents "$MNT" "$SOURCE"
    unmount "$MNT"
    server_is_quiet
}

@test "-o q4_0=absmax7 quantizes by the other rule" {
    serve -o q4_0=absmax7 "$SOURCE" "$MNT"
    check contents "$MNT" "$SOURCE" absmax7
    unmount "$MNT"
}

@test "any range of any file is a slice of the whole" {
    serve "$SOURCE" "$MNT"
    check ranges "$MNT"
    unmount "$MNT"
}

@test "a mount, wfs cat and wfs cp give the same bytes" {
    serve "$SOURCE" "$MNT"
    "$WFS" cp -r "$SOURCE" / "$BATS_TEST_TMPDIR/copy"
    diff -r "$MNT" "$BATS_TEST_TMPDIR/copy"
    "$WFS" cat "$SOURCE" tensors/f32/q8_0 | cmp - "$MNT/tensors/f32/q8_0"
    unmount "$MNT"
}

@test "eight readers at once read large files, stored and computed" {
    serve "$LARGE" "$MNT"
    check threads "$MNT/tensors/large/raw"
    check threads "$MNT/tensors/large/q8_0"
    unmount "$MNT"
}

@test "large files support mappings, sendfile, holes and locks" {
    serve "$LARGE" "$MNT"
    for view in raw f32 q4_0; do
        check mapped "$MNT/tensors/large/$view"
        check system_calls "$MNT/tensors/large/$view"
    done
    unmount "$MNT"
}

@test "programs and numpy read the same from large files" {
    serve "$LARGE" "$MNT"
    file=$MNT/tensors/large/f32
    sum=$(sha256sum <"$file")
    [ "$(cat "$file" | sha256sum)" = "$sum" ]
    [ "$(dd if="$file" bs=1000003 status=none | sha256sum)" = "$sum" ]
    [ "$(dd if="$file" bs=4M iflag=direct status=none | sha256sum)" = "$sum" ]
    [ "$("$WFS" cat "$LARGE" tensors/large/f32 | sha256sum)" = "$sum" ]
    cp "$file" "$BATS_TEST_TMPDIR/copied"
    [ "$(sha256sum <"$BATS_TEST_TMPDIR/copied")" = "$sum" ]
    "$WFS" cp "$LARGE" tensors/large/f32 "$BATS_TEST_TMPDIR/copied"
    [ "$(sha256sum <"$BATS_TEST_TMPDIR/copied")" = "$sum" ]
    same tail -c 1000 "$file" == tail -c 1000 "$BATS_TEST_TMPDIR/copied"
    unmount "$MNT"
}

@test "a second mount of a source is the same, including inode numbers" {
    serve "$SOURCE" "$MNT"
    before=$(cd "$MNT" && find . -type f -printf '%i %s %P\n' -exec sha256sum {} + | sort)
    unmount "$MNT"
    serve "$SOURCE" "$MNT"
    [ "$(cd "$MNT" && find . -type f -printf '%i %s %P\n' -exec sha256sum {} + | sort)" = "$before" ]
    unmount "$MNT"
}

@test "a mount says at once why model.gguf is a plain container" {
    run "$WFS" mount "$SOURCE" "$BATS_TEST_TMPDIR/mnt"
    "$WFS" umount "$BATS_TEST_TMPDIR/mnt"
    [ "$status" -eq 0 ]
    [[ $output == *"note: model.gguf: no config.json"* ]]
}

@test "experts/N/ of a stacked tensor has the files of that expert" {
    need getfattr
    local experts=$MNT/tensors/l.0.experts.gate_up_proj/experts
    make_input experts "$BATS_TEST_TMPDIR/experts.safetensors"
    serve "$BATS_TEST_TMPDIR/experts.safetensors" "$MNT"
    check experts "$MNT" "$BATS_TEST_TMPDIR/experts.safetensors"
    check attributes "$MNT"
    [ "$(stat -c %h "$experts")" -eq 5 ]
    [ "$(getfattr --only-values -n user.wfs.expert "$experts/2/f32")" -eq 2 ]
    [ ! -e "$experts/3" ]
    fails 1 "only tensors that hold the experts of a layer" "$WFS" cat "$BATS_TEST_TMPDIR/experts.safetensors" tensors/plain/experts/0/f32
    check ranges "$MNT"
    unmount "$MNT"
}
