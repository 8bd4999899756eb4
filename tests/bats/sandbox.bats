# The sandbox of running servers: what the kernel says of them. What it stops is tried in tests/unit/base/sandbox.c.

load lib

setup() {
    need_fuse
    LLAMA=$HERE/../data/gguf/models/llama-tiny
    MNT=$BATS_TEST_TMPDIR/mnt
}

# Prints the process that serves the mount of this test.
server_of_mount() {
    "$WFS" mounts | sed -n "s,.* on $MNT\, process ,,p"
}

# Prints the process beside a server that detaches its mount.
process_beside() {
    pgrep -P "$1"
}

status_of() {
    awk -v name="$2:" '$1 == name { print $2 }' "/proc/$1/status"
}

@test "a server has no new privileges, few capabilities and a filter of system calls" {
    local server lost=$((1 << 16 | 1 << 19 | 1 << 12 | 1 << 7)) # modules, ptrace, network, setuid
    SECRET_TOKEN=hidden HF_HUB_CACHE=$BATS_TEST_TMPDIR/hub "$WFS" mount "$LLAMA" "$MNT"
    server=$(server_of_mount)
    [ "$(status_of "$server" NoNewPrivs)" = 1 ]
    [ "$(status_of "$server" Seccomp)" = 2 ]
    [ "$((0x$(status_of "$server" CapPrm) & lost))" = 0 ]
    [ "$((0x$(status_of "$server" CapBnd) & lost))" = 0 ] || ! is_root
    run ! grep -qa hidden "/proc/$server/environ"
    grep -qa HF_HUB_CACHE= "/proc/$server/environ"
    cmp <("$WFS" cat "$LLAMA" gguf/model-Q4_K_M.gguf) "$MNT/gguf/model-Q4_K_M.gguf"
    "$WFS" umount "$MNT"
}

@test "passthrough=no gives up the capability that it needs" {
    need_root
    "$WFS" mount -o passthrough=no "$LLAMA" "$MNT"
    [ "$((0x$(status_of "$(server_of_mount)" CapPrm) & 1 << 21))" = 0 ]
    "$WFS" umount "$MNT"
    [ ! -e "$MNT" ]
}

@test "the process beside a server holds none of its files, and ends with it" {
    local server beside
    "$WFS" mount "$LLAMA" "$MNT"
    server=$(server_of_mount)
    beside=$(process_beside "$server")
    [ "$(find "/proc/$beside/fd" -lname '/dev/fuse' -o -lname '*/llama-tiny*' | wc -l)" -eq 0 ]
    [ "$(readlink "/proc/$beside/cwd")" = / ]
    kill -TERM "$server"
    await test ! -e "/proc/$server"
    await test ! -e "/proc/$beside"
    [ ! -e "$MNT" ]
    "$WFS" mount "$LLAMA" "$MNT"
    server=$(server_of_mount)
    beside=$(process_beside "$server")
    kill -KILL "$server"
    await test ! -e "/proc/$beside"
    "$WFS" umount "$MNT"
}

@test "wfs serve runs in the sandbox" {
    SECRET_TOKEN=hidden "$WFS" serve --listen 127.0.0.1:0 acme/llama="$LLAMA" >"$BATS_TEST_TMPDIR/address" 3>&- &
    await test -s "$BATS_TEST_TMPDIR/address"
    run ! grep -qa hidden "/proc/$!/environ"
    [ "$(status_of $! NoNewPrivs)" = 1 ]
    [ "$(status_of $! Seccomp)" = 2 ]
    kill $!
    wait $!
}

@test "wfs cp writes where it was told to, and a command of local sources forgets its environment" {
    local out=$BATS_TEST_TMPDIR/out
    mkdir "$out"
    (cd "$out" && "$WFS" cp "$LLAMA" model.gguf here.gguf)
    "$WFS" cp "$LLAMA" model.gguf "$out"
    "$WFS" cp "$LLAMA" model.gguf "$out/model.gguf"
    "$WFS" cp "$LLAMA" model.gguf /dev/stdout >"$out/by_name.gguf"
    "$WFS" cp -r "$LLAMA" tensors "$out/new"
    cmp "$out/here.gguf" "$out/model.gguf"
    cmp "$out/by_name.gguf" "$out/model.gguf"
    [ -d "$out/new" ]
    make_input large "$out/large.safetensors"
    mkfifo "$out/fifo"
    SECRET_TOKEN=hidden "$WFS" cat "$out/large.safetensors" tensors/large/f32 >"$out/fifo" 3>&- &
    exec 4<"$out/fifo" # whose reader waits while the process writes
    await grep -q '^NoNewPrivs:.1' "/proc/$!/status"
    run ! grep -qa hidden "/proc/$!/environ"
    exec 4<&-
    wait $! || true
}
