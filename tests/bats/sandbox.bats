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

# Prints the processes beside a server: the one that mounts, and the one that opens files.
mounter_of() {
    pgrep -P "$1" | head -n 1
}

opener_of() {
    pgrep -P "$1" | tail -n 1
}

status_of() {
    awk -v name="$2:" '$1 == name { print $2 }' "/proc/$1/status"
}

# The effective capabilities of a process.
capabilities_of() {
    echo "$((0x$(status_of "$1" CapEff)))"
}

@test "a server has no new privileges, no capabilities and a filter of system calls" {
    local server
    SECRET_TOKEN=hidden HF_HUB_CACHE=$BATS_TEST_TMPDIR/hub "$WFS" mount "$LLAMA" "$MNT"
    server=$(server_of_mount)
    [ "$(status_of "$server" NoNewPrivs)" = 1 ]
    [ "$(status_of "$server" Seccomp)" = 2 ]
    [ "$(capabilities_of "$server")" = 0 ]
    [ "$((0x$(status_of "$server" CapPrm)))" = 0 ]
    [ "$((0x$(status_of "$server" CapBnd)))" = 0 ] || ! is_root
    run ! grep -qa hidden "/proc/$server/environ"
    grep -qa HF_HUB_CACHE= "/proc/$server/environ"
    same "$WFS" cat "$LLAMA" gguf/model-Q4_K_M.gguf == cat "$MNT/gguf/model-Q4_K_M.gguf"
    "$WFS" umount "$MNT"
}

@test "wfs mounts tells which layers bind a server, and what it may reach" {
    local lines
    "$WFS" mount "$LLAMA" "$MNT"
    lines=$("$WFS" mounts | grep -F -A1 " on $MNT, ")
    [[ $lines == *"  sandbox: privileges dropped, system calls filtered (seccomp), paths "*"(Landlock); no network; opens what its sources and options name" ]]
    "$WFS" mounts --json | jq -e ".mounts[] | select(.mountpoint == \"$MNT\").sandbox | .privileges_dropped and .calls_filtered and (.network | not)"
    "$WFS" umount "$MNT"
    "$WFS" mount -o follow-links "$LLAMA" "$MNT"
    "$WFS" mounts | grep -F -A1 " on $MNT, " | grep -q '; opens any path (follow-links)$'
    "$WFS" umount "$MNT"
}

@test "the processes beside a server hold none of its files, keep one capability each, and end with it" {
    local server beside how
    for how in TERM KILL; do
        SECRET_TOKEN=hidden "$WFS" mount "$LLAMA" "$MNT"
        server=$(server_of_mount)
        [ "$(pgrep -P "$server" | wc -l)" -eq 2 ]
        for beside in $(pgrep -P "$server"); do
            [ "$(find "/proc/$beside/fd" -lname '/dev/fuse' -o -lname '*/llama-tiny*' -o -lname "$MNT" | wc -l)" -eq 0 ]
            [ "$(readlink "/proc/$beside/cwd")" = / ]
            run ! grep -qa hidden "/proc/$beside/environ"
            if is_root; then
                [ "$(status_of "$beside" Seccomp)" = 2 ]
                [ "$(status_of "$beside" NoNewPrivs)" = 1 ]
                [ "$(tr -d '\0' <"/proc/$beside/environ" | wc -c)" -eq 0 ]
            fi
        done
        if is_root; then
            [ "$(capabilities_of "$(mounter_of "$server")")" = $((1 << 21)) ] # CAP_SYS_ADMIN
            [ "$(capabilities_of "$(opener_of "$server")")" = $((1 << 2)) ]   # CAP_DAC_READ_SEARCH
        fi
        beside=$(pgrep -P "$server")
        kill "-$how" "$server"
        for beside in $server $beside; do
            await has_ended "$beside"
        done
        [ "$how" = TERM ] || "$WFS" umount "$MNT"
        [ ! -e "$MNT" ]
    done
}

# A process of another parent stays until init looks after it.
has_ended() {
    [ ! -e "/proc/$1" ] || [ "$(status_of "$1" State)" = Z ]
}

@test "a kernel without Landlock leaves that layer out, and wfs mounts says so" {
    need_traced_mount
    strace -D -f -qq -o /dev/null -e trace=landlock_create_ruleset -e inject=landlock_create_ruleset:error=ENOSYS \
        "$WFS" mount "$LLAMA" "$MNT"
    "$WFS" mounts | grep -F -A1 " on $MNT, " | grep -q 'system calls filtered (seccomp), paths NOT RESTRICTED (Landlock)'
    [ "$(capabilities_of "$(server_of_mount)")" = 0 ]
    cmp "$MNT/model.safetensors" "$LLAMA/model.safetensors"
    "$WFS" umount "$MNT"
}

@test "an ordinary user's server is confined, too" {
    need_fuse_for_others
    cp -r "$LLAMA" "$BATS_TEST_TMPDIR/model"
    mkdir "$BATS_TEST_TMPDIR/home"
    chown 65534 "$BATS_TEST_TMPDIR/home"
    as_other_with_fuse env HOME="$BATS_TEST_TMPDIR/home" sh -c '
        "$0" mount "$1" "$2/mnt" && "$0" mounts && cmp "$1/model.safetensors" "$2/mnt/model.safetensors" && "$0" umount "$2/mnt"' \
        "$BATS_TEST_TMPDIR/wfs" "$BATS_TEST_TMPDIR/model" "$BATS_TEST_TMPDIR/home" >"$BATS_TEST_TMPDIR/out"
    grep -q 'privileges dropped, system calls filtered (seccomp), paths .*; no network' "$BATS_TEST_TMPDIR/out"
    [ ! -e "$BATS_TEST_TMPDIR/home/mnt" ]
}

@test "root mounts what another user alone may read, and in that user's directory" {
    need_root
    need setpriv
    open_to_others "$BATS_TEST_TMPDIR"
    cp -r "$LLAMA" "$BATS_TEST_TMPDIR/model"
    mkdir "$BATS_TEST_TMPDIR/home"
    chown -R 65534 "$BATS_TEST_TMPDIR/model" "$BATS_TEST_TMPDIR/home"
    chmod -R go= "$BATS_TEST_TMPDIR/model" "$BATS_TEST_TMPDIR/home"
    MNT=$BATS_TEST_TMPDIR/home/mnt
    "$WFS" mount -o allow_other,name=m "$BATS_TEST_TMPDIR/model" "$MNT"
    same cat "$MNT/model.gguf" == "$WFS" cat -o name=m "$LLAMA" model.gguf
    [ "$(capabilities_of "$(server_of_mount)")" = 0 ]
    printf x | dd of="$BATS_TEST_TMPDIR/model/model.safetensors" bs=1 seek=4000 conv=notrunc 2>/dev/null
    await run ! cat "$MNT/model.gguf"
    kill -TERM "$(server_of_mount)"
    await test ! -e "$MNT"
}

@test "a source whose links lead elsewhere stays closed, also for the process that opens files" {
    mkdir "$BATS_TEST_TMPDIR/model"
    cp "$LLAMA/config.json" "$BATS_TEST_TMPDIR/model"
    ln -s "$LLAMA/model.safetensors" "$BATS_TEST_TMPDIR/model/model.safetensors"
    fails 1 "a symbolic link to $(realpath "$LLAMA")/model.safetensors, outside of the model's directory; -o follow-links follows it" \
        "$WFS" mount "$BATS_TEST_TMPDIR/model" "$MNT"
    [ ! -e "$MNT" ]
    "$WFS" mount -o follow-links "$BATS_TEST_TMPDIR/model" "$MNT"
    [ -e "$MNT/model.safetensors" ]
    "$WFS" umount "$MNT"
}

@test "a snapshot of a hub cache is mounted, also below a cache and a model that are links" {
    local hub=$BATS_TEST_TMPDIR/hub real=$BATS_TEST_TMPDIR/disk/models--acme--llama file
    mkdir -p "$hub" "$real/blobs" "$real/snapshots/abc" "$real/refs"
    printf abc >"$real/refs/main"
    for file in config.json model.safetensors; do
        cp "$LLAMA/$file" "$real/blobs/of-$file"
        ln -s "../../blobs/of-$file" "$real/snapshots/abc/$file"
    done
    ln -s "$real" "$hub/models--acme--llama"
    HF_HUB_CACHE=$hub "$WFS" mount acme/llama "$MNT"
    cmp "$MNT/model.safetensors" "$LLAMA/model.safetensors"
    "$WFS" umount "$MNT"
}

@test "wfs serve runs in the sandbox" {
    need_serve
    SECRET_TOKEN=hidden "$WFS" serve --listen 127.0.0.1:0 acme/llama="$LLAMA" >"$BATS_TEST_TMPDIR/address" 3>&- &
    await test -s "$BATS_TEST_TMPDIR/address"
    run ! grep -qa hidden "/proc/$!/environ"
    [ "$(status_of $! NoNewPrivs)" = 1 ]
    [ "$(status_of $! Seccomp)" = 2 ]
    kill $!
    wait $!
}

need_landlock() {
    "$PYTHON" -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(444, None, 0, 1) < 4)' ||
        skip "this kernel has no Landlock with ports"
}

# taken_over COMMAND...: prints what code could do that takes the command over at the first byte of weights.safetensors.
taken_over() {
    local library
    library=$(dirname "$WFS")/tests/bats/taken_over.so
    rm -f "$BATS_TEST_TMPDIR/report"
    LD_PRELOAD=$library TAKEN_OVER_AT=/weights.safetensors TAKEN_OVER_REPORT=$BATS_TEST_TMPDIR/report \
        TAKEN_OVER_OPENS=/etc/shadow:/etc/passwd:$BATS_TEST_TMPDIR/key:$SOURCE/config.json \
        TAKEN_OVER_MAKES=$SOURCE/made "$@" >/dev/null 2>&1 3>&- || true
    cat "$BATS_TEST_TMPDIR/report"
}

serve_until_taken_over() {
    "$WFS" serve --listen 127.0.0.1:0 "$SOURCE" &
    await grep -q ^make "$BATS_TEST_TMPDIR/report"
    kill $!
    wait $!
}

confined_at_first_byte() {
    local report
    report=$(taken_over "$@")
    echo "$*: $report"
    [ "$report" = "open /etc/shadow: refused
open /etc/passwd: refused
open $BATS_TEST_TMPDIR/key: refused
open $SOURCE/config.json: done
connect: refused
make $SOURCE/made: refused" ]
}

@test "a command that a source takes over at its first byte opens no other files, makes none and connects to nobody" {
    local out=$BATS_TEST_TMPDIR/out
    SOURCE=$BATS_TEST_TMPDIR/model
    [ -e "$(dirname "$WFS")/tests/bats/taken_over.so" ] || skip "a build with sanitizers"
    mkdir "$out"
    echo secret >"$BATS_TEST_TMPDIR/key"
    cp -r "$LLAMA" "$SOURCE"
    mv "$SOURCE/model.safetensors" "$SOURCE/weights.safetensors"
    need_landlock
    confined_at_first_byte "$WFS" cat "$SOURCE" model.gguf
    confined_at_first_byte "$WFS" info "$SOURCE"
    confined_at_first_byte "$WFS" ls "$SOURCE"
    confined_at_first_byte "$WFS" ls -o library "$SOURCE" models/local/model
    confined_at_first_byte "$WFS" cp "$SOURCE" model.gguf "$out"
    confined_at_first_byte "$WFS" sha256 "$SOURCE" model.gguf
    confined_at_first_byte "$WFS" attest "$SOURCE" model.gguf
    confined_at_first_byte "$WFS" diff "$SOURCE" "$LLAMA"
    confined_at_first_byte "$WFS" diff "$LLAMA" "$SOURCE"
    confined_at_first_byte "$WFS" verify "$out/model.gguf" "$SOURCE"
    confined_at_first_byte "$WFS" verify "$SOURCE"
    confined_at_first_byte "$WFS" fetch "$SOURCE"
    confined_at_first_byte "$WFS" layout check trtllm "$SOURCE"
    confined_at_first_byte "$WFS" complete -- ls "$SOURCE" ten
    confined_at_first_byte serve_until_taken_over
}

@test "commands open what users name: descriptors, also of files without a name, relative paths, links" {
    local file=$BATS_TEST_TMPDIR/model/weights.safetensors copy=$BATS_TEST_TMPDIR/copy.safetensors name=$BATS_TEST_TMPDIR/link.safetensors
    mkdir "$BATS_TEST_TMPDIR/model"
    cp "$LLAMA/model.safetensors" "$file"
    same eval '"$WFS" cat -o name=m /dev/stdin model.gguf <"$file"' == "$WFS" cat -o name=m "$file" model.gguf
    same eval '"$WFS" cat -o name=m /dev/fd/4 model.gguf 4<"$file"' == "$WFS" cat -o name=m "$file" model.gguf
    cp "$file" "$copy"
    exec 9<"$copy"
    rm "$copy"
    same "$WFS" cat /dev/fd/9 model.safetensors == cat "$file"
    exec 9<&-
    ln -s "$file" "$name"
    same eval 'cd "$BATS_TEST_TMPDIR" && "$WFS" cat link.safetensors model.safetensors' == cat "$file"
    same eval 'cd "$LLAMA" && "$WFS" cat . model.safetensors' == cat "$file"
}

@test "a parameter of a layout may name a file anywhere, also for a mount" {
    local keys=$BATS_TEST_TMPDIR/keys.json
    echo '{"qkv": 3}' >"$keys"
    fails 1 "$keys:1: 'qkv' is neither a text nor a list of texts" "$WFS" mount -o "shards=trtllm:keymap=$keys" "$LLAMA" "$MNT"
    fails 1 "$keys:1: 'qkv' is neither a text nor a list of texts" "$WFS" layout check "trtllm:tp=1,keymap=$keys" "$LLAMA"
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
