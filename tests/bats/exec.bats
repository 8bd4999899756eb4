# wfs exec: a program that sees the mount, and nobody else does.

load lib

setup_file() {
    load lib
    make_input dtypes "$BATS_FILE_TMPDIR/model.safetensors"
}

setup() {
    need_fuse
    need_numpy
    SOURCE=$BATS_FILE_TMPDIR/model.safetensors
    export TMPDIR=$BATS_TEST_TMPDIR
}

# No directory of a mount is left.
nothing_remains() {
    [ -z "$(ls -d "$BATS_TEST_TMPDIR"/wfs-* 2>/dev/null)" ]
}

@test "the program's status is returned" {
    "$WFS" exec "$SOURCE" -- true
    run "$WFS" exec "$SOURCE" -- sh -c 'exit 7'
    [ "$status" -eq 7 ]
    [ -z "$output" ]
    run "$WFS" exec "$SOURCE" -- sh -c 'kill -9 $$'
    [ "$status" -eq 137 ]
    run -127 "$WFS" exec "$SOURCE" -- "$BATS_TEST_TMPDIR/nothing"
    [[ $output == "wfs: "*"No such file"* ]]
    run "$WFS" exec "$SOURCE" -- "$BATS_TEST_TMPDIR"
    [ "$status" -eq 126 ]
    nothing_remains
}

@test "exec says why a named file is missing" {
    run --separate-stderr "$WFS" exec "$SOURCE" -- test -e {}/gguf/model-Q4_0.gguf
    [ "$status" -eq 1 ]
    [[ $stderr == "wfs: note: gguf/model-Q4_0.gguf is left out: nothing is quantized"* ]]
    nothing_remains
}

@test "exec replaces {} by the mount point anywhere in an argument" {
    run "$WFS" exec "$SOURCE" -- sh -c 'cmp "{}/tensors/f32/raw" {}/tensors/f32/f32 && echo "$1" | sed "s,$0,@,g"' '{}' '<{}:{}>{'
    [ "$status" -eq 0 ]
    [ "$output" = '<@:@>{' ]
    nothing_remains
}

@test "the program has the caller's input and output" {
    [ "$(echo hello | "$WFS" exec "$SOURCE" -- tr a-z A-Z)" = HELLO ]
}

@test "the program gets the caller's descriptors and none of wfs" {
    show='cd /proc/self/fd && for fd in *; do ! [ -e "$fd" ] || stat -Lc "%F %s" "$fd"; done; trap "" TERM; grep -E "^Sig(Blk|Ign)" /proc/self/status'
    exec 8<"$SOURCE"
    without=$(sh -c "$show" | cat)
    for option in noexec auto_unmount; do
        [ "$option" != auto_unmount ] || command -v fusermount3 >/dev/null || continue
        [ "$("$WFS" exec -o "$option" "$SOURCE" -- sh -c "$show" | cat)" = "$without" ]
    done
    exec 8<&-
    [[ $without == *"file $(stat -c %s "$SOURCE")"* ]]
}

@test "no other process sees the mount, which ends with the program" {
    need_hidden_mounts
    mkfifo "$BATS_TEST_TMPDIR/go"
    "$WFS" exec "$SOURCE" -- sh -c 'ls {} >/dev/null && echo there >"$1"; read -r _ <"$0"; ls {}' "$BATS_TEST_TMPDIR/go" "$BATS_TEST_TMPDIR/out" >"$BATS_TEST_TMPDIR/list" 3>&- &
    wfs=$!
    await grep -qs there "$BATS_TEST_TMPDIR/out"
    run ! grep -F " $BATS_TEST_TMPDIR/wfs-" /proc/self/mounts
    echo >"$BATS_TEST_TMPDIR/go"
    wait "$wfs"
    grep metadata.json "$BATS_TEST_TMPDIR/list"
    nothing_remains
}

@test "signals reach the program once" {
    for signal in TERM HUP INT USR1; do # what is started in the background ignores INT, and under nohup HUP
        env --default-signal="$signal" "$WFS" exec "$SOURCE" -- bash -c 'trap "echo got >>$0; exit 9" '$signal'; echo up >$0; while :; do sleep 0.05; done' "$BATS_TEST_TMPDIR/out" 3>&- &
        wfs=$!
        await grep -qs up "$BATS_TEST_TMPDIR/out"
        kill -$signal "$wfs"
        status=0
        wait "$wfs" || status=$?
        [ "$status" -eq 9 ]
        [ "$(grep -c got "$BATS_TEST_TMPDIR/out")" -eq 1 ]
        rm "$BATS_TEST_TMPDIR/out"
    done
    nothing_remains
}

@test "exec ends even if the program leaves processes behind" {
    need_hidden_mounts
    need timeout
    timeout 60 "$WFS" exec "$SOURCE" -- sh -c '(cd {} && exec 1>&- 2>&- 3>&- sleep 70) & echo $! >"$0"; exit 3' "$BATS_TEST_TMPDIR/pid" ||
        [ "$?" -eq 3 ]
    nothing_remains
    kill "$(cat "$BATS_TEST_TMPDIR/pid")" # it has a copy of every mount of the machine
}

@test "kill -9 ends the program too, and the next exec removes the directory" {
    "$WFS" exec "$SOURCE" -- sh -c 'echo $$ >"$0"; exec sleep 1000' "$BATS_TEST_TMPDIR/pid" 3>&- &
    wfs=$!
    await test -s "$BATS_TEST_TMPDIR/pid"
    "$WFS" exec "$SOURCE" -- true
    [ "$(ls -d "$BATS_TEST_TMPDIR"/wfs-* | wc -l)" -eq 1 ]
    kill -KILL "$wfs"
    wait "$wfs" || true
    await has_ended "$(cat "$BATS_TEST_TMPDIR/pid")"
    mkdir "$BATS_TEST_TMPDIR/wfs-exec-full" "$BATS_TEST_TMPDIR/wfs-other"
    touch "$BATS_TEST_TMPDIR/wfs-exec-full/file"
    "$WFS" exec "$SOURCE" -- true
    [ "$(cd "$BATS_TEST_TMPDIR" && echo wfs-*)" = "wfs-exec-full wfs-other" ]
}

has_ended() {
    ! kill -0 "$1" 2>/dev/null
}

@test "exec runs nothing if the source is invalid" {
    run --separate-stderr "$WFS" exec "$BATS_TEST_TMPDIR/nothing" -- touch "$BATS_TEST_TMPDIR/run"
    [ "$status" -eq 1 ]
    [[ $stderr == "wfs: "*"No such file or directory" ]]
    run --separate-stderr "$WFS" exec "$SOURCE"
    [ "$status" -eq 2 ]
    run --separate-stderr "$WFS" exec "$SOURCE" -o nonsense -- touch "$BATS_TEST_TMPDIR/run"
    [ "$status" -eq 2 ]
    [ ! -e "$BATS_TEST_TMPDIR/run" ]
    nothing_remains
}

@test "an ordinary user can exec in a user namespace" {
    need_fuse_for_others
    chmod a+w "$BATS_TEST_TMPDIR"
    as_other unshare -Um true || skip "no user namespaces for users here"
    run as_other_with_fuse "$BATS_TEST_TMPDIR/wfs" exec "$SOURCE" -- sh -c 'id -u; stat -c %u {}/metadata.json; exit 5'
    [ "$status" -eq 5 ]
    [ "$output" = "65534
65534" ]
    nothing_remains
}
