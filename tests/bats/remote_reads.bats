# Reads of a mount whose bytes come from a server that stalls: whom they hold up, and what ends them.

load lib

MODEL=hf://org/big
FAULT="path=/org/big/model.safetensors&kind=stall&after=0"
N_READERS=32

setup_file() {
    load lib
    ROOT=$BATS_FILE_TMPDIR/root
    mkdir -p "$ROOT/hub/org/big" "$ROOT/web"
    ln -s ../hub/org/big "$ROOT/web/big"
    mkdir "$ROOT/web/forty"
    "$PYTHON" - "$ROOT/hub/org/big/model.safetensors" 3072 "$ROOT/web/forty/model.safetensors" 10240 <<'MAKE'
import struct, sys
for path, rows in zip(sys.argv[1::2], map(int, sys.argv[2::2])):
    columns = 1024
    header = b'{"w":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,%d]}}' % (rows, columns, 4 * rows * columns)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + b"\x3f" * (4 * rows * columns))
MAKE
}

setup() {
    need_numpy
    need_fuse
    "$WFS" ls https:// 2>&1 | grep -q 'built without libcurl' && skip "built without remote sources"
    PORTS=$BATS_TEST_TMPDIR/ports
    "$PYTHON" "$HERE/../remote/server.py" "$PORTS" "$BATS_FILE_TMPDIR/root" 3>&- >"$BATS_TEST_TMPDIR/http.log" 2>&1 &
    HTTP=$!
    await test -s "$PORTS"
    read -r HUB _ <"$PORTS"
    unset HF_TOKEN HUGGING_FACE_HUB_TOKEN HF_HUB_OFFLINE TRANSFORMERS_OFFLINE CACHE_DIRECTORY HF_HUB_CACHE HUGGINGFACE_HUB_CACHE
    export HF_ENDPOINT=http://127.0.0.1:$HUB HF_HOME=$BATS_TEST_TMPDIR/hf XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    export HOME=$BATS_TEST_TMPDIR TMPDIR=$BATS_TEST_TMPDIR no_proxy=127.0.0.1
    MNT=$BATS_TEST_TMPDIR/mnt
    READERS=()
}

# Readers and the HTTP server end with their test; then what lib.bash does.
eval "remaining_$(declare -f teardown)"
teardown() {
    for process in "${READERS[@]}" "$HTTP"; do
        kill -KILL "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    if mountpoint -q "$BATS_TEST_TMPDIR/fusectl"; then
        umount "$BATS_TEST_TMPDIR/fusectl"
    fi
    remaining_teardown
}

control() {
    "$PYTHON" -c 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())' \
        "http://127.0.0.1:$HUB/control/$1"
}

has_stalled() {
    control log | "$PYTHON" -c 'import json, sys; sys.exit(json.load(sys.stdin)["stalled"] == 0)'
}

# Reads one page directly, past the kernel's cache: each reader waits for bytes of its own.
read_page() {
    exec dd if="$MNT/tensors/w/raw" of=/dev/null bs=4096 count=1 skip=$((90 * $1)) iflag=direct status=none 3>&-
}

# A program that reads pages of a file with 240 threads, 200 of them past the kernel's cache.
start_many_readers() {
    "$PYTHON" - "$MNT/tensors/w/raw" 3>&- <<'READ' &
import mmap, os, sys, threading

def read(number):
    descriptor = os.open(sys.argv[1], os.O_RDONLY | (os.O_DIRECT if number <= 200 else 0))
    try:
        os.preadv(descriptor, [mmap.mmap(-1, 4096)], 4096 * (72 + 12 * number))
    except OSError:
        pass

for number in range(1, 241):
    threading.Thread(target=read, args=[number]).start()
READ
    READERS=($!)
}

# The kernel has so many requests that are not answered.
has_unanswered() {
    local device
    device=$(awk -v at="$MNT" '$5 == at { print $3 }' /proc/self/mountinfo)
    [ "$(cat "$BATS_TEST_TMPDIR/fusectl/${device#*:}/waiting")" -ge "$1" ]
}

start_readers() {
    control "fault?$FAULT"
    READERS=()
    for ((i = 1; i <= N_READERS; i++)); do
        read_page "$i" 2>"$BATS_TEST_TMPDIR/reader.$i" &
        READERS+=($!)
    done
    await has_stalled
}

# Each reader fails, and one that waited with an error that holds the text: others may come too late to open the file.
readers_fail_with() {
    for reader in "${READERS[@]}"; do
        wait "$reader" && return 1
    done
    grep "$1" "$BATS_TEST_TMPDIR"/reader.*
}

@test "names and attributes are answered while 32 readers wait for a server" {
    serve "$MODEL" "$MNT"
    start_readers
    ls -lR "$MNT" >/dev/null
    stat "$MNT/tensors/w/f16"
    cat "$MNT/metadata.json" >/dev/null
    kill -TERM "$SERVER"
    readers_fail_with "Input/output error"
    server_ends_with 0
    server_is_quiet # a server that does not answer in time would be named
}

@test "200 stalled reads hold up no other file, and no names" {
    need_root # sees the number of unanswered requests
    mkdir "$BATS_TEST_TMPDIR/fusectl" # a place of its own: a chroot has no /sys
    mount -t fusectl none "$BATS_TEST_TMPDIR/fusectl" || missing "fusectl, the file system of FUSE's counters"
    serve -o timeout=3600 "$MODEL" "$MNT"
    control "fault?$FAULT"
    start_many_readers
    await has_unanswered 200
    ls -lR "$MNT" >/dev/null
    cat "$MNT/metadata.json" >/dev/null
    head -c 1000 "$MNT/tensors/w/raw" >/dev/null # from the first bytes of the model, which are here
    [ "$(dd if="$MNT/model.safetensors" bs=4096 count=1 iflag=direct status=none | wc -c)" -eq 4096 ]
    kill -TERM "$SERVER"
    server_ends_with 0
}

# detached_by COMMAND...: a mount that is detached while programs read it ends, though nothing comes for an hour.
detached_by() {
    serve -o timeout=3600 "$MODEL" "$MNT"
    start_readers
    "$@" "$MNT"
    readers_fail_with "Input/output error"
    server_ends_with 0
}

@test "umount -l ends all waits" {
    need_root
    detached_by umount -l
}

@test "fusermount3 -uz ends all waits" {
    need fusermount3
    detached_by fusermount3 -uz
}

@test "a signal ends a reader that waits" {
    serve "$MODEL" "$MNT"
    control "fault?$FAULT"
    "$PYTHON" - "$MNT/tensors/w/raw" 3>&- <<'READ' &
import mmap, os, signal, sys

def stop(number, frame):
    sys.exit(7)

signal.signal(signal.SIGUSR1, stop)
descriptor = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
os.preadv(descriptor, [mmap.mmap(-1, 4096)], 8 << 20)
READ
    READERS=($!)
    await has_stalled
    kill -USR1 "${READERS[0]}"
    status=0
    wait "${READERS[0]}" || status=$?
    [ "$status" -eq 7 ]
    unmount "$MNT"
}

@test "umount -f ends all waits" {
    need_root
    serve "$MODEL" "$MNT"
    start_readers
    umount -f "$MNT" || true # ends what is under way, though the mount is busy
    umount -l "$MNT" 2>/dev/null || true
    readers_fail_with .
    server_ends_with 0
}

@test "a file that has changed on the server gives ESTALE" {
    serve "http://127.0.0.1:$HUB/web/big/model.safetensors" "$MNT"
    control "fault?path=/web/big/model.safetensors&kind=&etag=%22another%22"
    run dd if="$MNT/tensors/w/raw" of=/dev/null bs=4096 count=1 skip=2000 iflag=direct
    [ "$status" -ne 0 ]
    [[ $output == *"Stale file handle"* ]]
    unmount "$MNT"
}

@test "a large file of the hub that changes, of the same size, gives ESTALE" {
    serve "$MODEL" "$MNT"
    control "fault?path=/blobs/org/big/model.safetensors&kind=&etag=%22another%22"
    run dd if="$MNT/tensors/w/raw" of=/dev/null bs=4096 count=1 skip=2000 iflag=direct
    [ "$status" -ne 0 ]
    [[ $output == *"Stale file handle"* ]]
    unmount "$MNT"
}

@test "exec shows a remote model to its program alone, which gets no socket" {
    need_fuse_for_others
    as_other unshare -Um true 2>/dev/null || skip "no mount namespaces for other users here"
    chmod 777 "$BATS_TEST_TMPDIR"
    export HF_HOME=$BATS_TEST_TMPDIR/hf.other XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache.other
    run --separate-stderr as_other_with_fuse "$BATS_TEST_TMPDIR/wfs" exec "$MODEL" -- sh -c \
        'head -c 4 {}/tensors/w/raw && ls -l /proc/self/fd && readlink /proc/self/ns/user'
    echo "$output $stderr"
    [ "$status" -eq 0 ]
    [[ $output == "????"* ]]
    [[ $output != *socket:* ]]
    [ "${lines[-1]}" != "$(readlink /proc/self/ns/user)" ] # without one of its own, others would see the mount
}

@test "bytes that were computed and kept are not fetched again" {
    local sum
    sum=$("$WFS" cat -o keep=quantized,cache-size=1GB "$MODEL" tensors/w/q4_k | sha256sum)
    find "$XDG_CACHE_HOME/wfs/objects" -depth -path '*/sha256-*' -delete
    find "$XDG_CACHE_HOME/wfs/objects" -depth -path '*/url-*' -delete
    control reset >/dev/null
    serve -o keep=quantized,cache-size=1GB "$MODEL" "$MNT"
    [ "$(sha256sum <"$MNT/tensors/w/q4_k")" = "$sum" ]
    unmount "$MNT"
    [ "$(control log | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["bytes"])')" -lt 1000000 ] # of 12 MB
    [ "$("$WFS" cat "$MODEL" tensors/w/q4_k | sha256sum)" = "$sum" ]
}

# Reports whether the server has sent the 40 MB once, and at most 5% more.
was_sent_once() {
    local bytes
    bytes=$(control log | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["bytes"])')
    echo "sent: $bytes"
    [ "$bytes" -ge 41943040 ] && [ "$bytes" -le 44040192 ]
}

@test "two commands, and a mount and a command, that need one file at one moment fetch it once" {
    local web=http://127.0.0.1:$HUB/web/forty/model.safetensors file=$BATS_FILE_TMPDIR/root/web/forty/model.safetensors reader
    for reader in 1 2; do
        "$WFS" cat "$web" model.safetensors >"$BATS_TEST_TMPDIR/read$reader" 3>&- &
        READERS+=($!)
    done
    wait "${READERS[@]}"
    cmp "$BATS_TEST_TMPDIR/read1" "$file"
    cmp "$BATS_TEST_TMPDIR/read2" "$file"
    was_sent_once
    "$WFS" cache rm "http://127.0.0.1:$HUB/web/forty/"
    control reset
    "$WFS" mount "$web" "$MNT"
    cat "$MNT/model.safetensors" >"$BATS_TEST_TMPDIR/read1" 3>&- &
    "$WFS" cat "$web" model.safetensors | cmp - "$file"
    wait $!
    cmp "$BATS_TEST_TMPDIR/read1" "$file"
    was_sent_once
    "$WFS" umount "$MNT"
}
