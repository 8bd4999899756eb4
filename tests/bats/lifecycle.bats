# How mounts begin and end.

load lib

is_gone() {
    ! kill -0 "$1" 2>/dev/null
}

setup_file() {
    load lib
    make_input dtypes "$BATS_FILE_TMPDIR/model.safetensors"
}

setup() {
    need_fuse
    need_numpy
    SOURCE=$BATS_FILE_TMPDIR/model.safetensors
    MNT=$BATS_TEST_TMPDIR/mnt
}

@test "mount in the background returns with all files present, every time" {
    for ((i = 0; i < 10; i++)); do
        "$WFS" mount "$SOURCE" "$MNT"
        cat "$MNT/tensors/f32/raw" >/dev/null
        "$WFS" umount "$MNT"
        [ ! -e "$MNT" ]
    done
}

@test "mount in the background holds nothing of its caller" {
    output=$("$WFS" mount "$SOURCE" "$MNT")
    [ -z "$output" ]
    "$WFS" mount --replace "$SOURCE" "$MNT" | cat
    "$WFS" umount "$MNT"
}

@test "mount in the background closes descriptors that the caller left open" {
    need timeout flock
    for option in nonempty auto_unmount; do # which fusermount3 serves, and may hold them too
        [ "$option" != auto_unmount ] || command -v fusermount3 >/dev/null || continue
        timeout 60 bash -c 'said=$("$@" 9>&1)' bash "$WFS" mount -o "$option" "$SOURCE" "$MNT"
        exec 8>"$BATS_TEST_TMPDIR/lock"
        flock 8
        "$WFS" mount --replace -o "$option" "$SOURCE" "$MNT"
        exec 8>&-
        timeout 60 flock "$BATS_TEST_TMPDIR/lock" true
        "$WFS" umount "$MNT"
    done
}

@test "mount in the background keeps descriptors that the caller names" {
    mkdir -p "$BATS_TEST_TMPDIR/pipeline/unet"
    echo '{"_class_name":"P","unet":["diffusers","U"]}' >"$BATS_TEST_TMPDIR/pipeline/model_index.json"
    echo '{}' >"$BATS_TEST_TMPDIR/pipeline/unet/config.json"
    cp "$SOURCE" "$BATS_TEST_TMPDIR/pipeline/unet/diffusion_pytorch_model.safetensors"
    "$WFS" mount /dev/fd/9 "$MNT" 9<"$BATS_TEST_TMPDIR/pipeline"
    cmp "$MNT/unet/tensors/f32/raw" "$MNT/unet/tensors/f32/f32"
    "$WFS" umount "$MNT"
    "$WFS" mount /proc/self/fd/9 "$MNT" 9<"$SOURCE"
    cmp "$MNT/tensors/f32/raw" "$MNT/tensors/f32/f32"
    "$WFS" umount "$MNT"
}

@test "mount in the background works with closed standard streams" {
    "$WFS" mount "$SOURCE" "$MNT" 0<&- 1>&- 2>&-
    cmp "$MNT/tensors/f32/f32" "$MNT/tensors/f32/raw"
    "$WFS" umount "$MNT"
    same eval '"$WFS" cat "$SOURCE" tensors/f32/raw 0<&-' == "$WFS" cat "$SOURCE" tensors/f32/f32
}

@test "source and mount point can be relative" {
    cd "$BATS_FILE_TMPDIR"
    "$WFS" mount model.safetensors "test mnt"
    grep -qF "$BATS_FILE_TMPDIR/test\\040mnt fuse.wfs" /proc/self/mounts
    "$WFS" umount "test mnt/"
    [ ! -e "test mnt" ]
}

@test "umount keeps a mount point that existed, and removes one that mount made" {
    mkdir "$MNT"
    "$WFS" mount "$SOURCE" "$MNT"
    "$WFS" umount "$MNT"
    [ -d "$MNT" ]
    "$WFS" mount "$SOURCE" "$MNT/made"
    "$WFS" umount "$MNT/made"
    [ ! -e "$MNT/made" ]
}

@test "umount(8) ends a mount" {
    need_root
    serve "$SOURCE" "$MNT"
    umount "$MNT"
    server_ends_with 0
    [ ! -e "$MNT" ]
}

@test "a failing mount ends at once with one line and makes nothing" {
    echo nonsense >"$BATS_TEST_TMPDIR/bad.safetensors"
    for front in "" -f; do
        run --separate-stderr "$WFS" mount $front "$BATS_TEST_TMPDIR/nothing" "$MNT"
        [ "$status" -eq 1 ]
        [ "$stderr" = "wfs: $BATS_TEST_TMPDIR/nothing: No such file or directory" ]
        run --separate-stderr "$WFS" mount $front "$BATS_TEST_TMPDIR/bad.safetensors" "$MNT"
        [ "$status" -eq 1 ]
        [[ $stderr == "wfs: "*bad.safetensors* ]]
        [ "${#stderr_lines[@]}" -eq 1 ]
        [ ! -e "$MNT" ]
    done
}

@test "unsuitable mount points are refused" {
    run --separate-stderr "$WFS" mount "$SOURCE" "$BATS_TEST_TMPDIR/no/such"
    [ "$status" -eq 1 ]
    [ "$stderr" = "wfs: $BATS_TEST_TMPDIR/no/such: cannot be created: $BATS_TEST_TMPDIR/no does not exist; 'mkdir -p $BATS_TEST_TMPDIR/no' creates it" ]
    (cd "$BATS_TEST_TMPDIR" && run ! "$WFS" mount "$SOURCE" no/such//)
    run --separate-stderr "$WFS" mount "$SOURCE" ""
    [ "$status" -eq 1 ]
    [ "$stderr" = "wfs: the mount point is empty; is a variable unset?" ]
    run --separate-stderr "$WFS" mount "" "$MNT"
    [ "$stderr" = "wfs: the source name is empty; is a variable unset?" ]
    touch "$BATS_TEST_TMPDIR/file"
    run --separate-stderr "$WFS" mount "$SOURCE" "$BATS_TEST_TMPDIR/file"
    [ "$status" -eq 1 ]
    [[ $stderr == *"/file: not a directory" ]]
    mkdir "$MNT"
    touch "$MNT/precious"
    run --separate-stderr "$WFS" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == *"not empty; -o nonempty"* ]]
    "$WFS" mount -o nonempty "$SOURCE" "$MNT"
    [ ! -e "$MNT/precious" ]
    run --separate-stderr "$WFS" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == *"$SOURCE is mounted here; --replace"* ]]
    "$WFS" umount "$MNT"
    [ -e "$MNT/precious" ]
    run --separate-stderr "$WFS" umount "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == *"no wfs is mounted here" ]]
}

@test "mount without permission says so" {
    need_root
    need setpriv
    open_to_others "$BATS_TEST_TMPDIR"
    open_to_others "$BATS_FILE_TMPDIR"
    cp "$WFS" "$BATS_TEST_TMPDIR/wfs"
    mkdir "$MNT"
    chown 65534 "$MNT"
    run --separate-stderr as_other "$BATS_TEST_TMPDIR/wfs" mount "$SOURCE" "$BATS_TEST_TMPDIR/made"
    [ "$status" -eq 1 ]
    [ "$stderr" = "wfs: $BATS_TEST_TMPDIR/made: cannot be created: you cannot write to $BATS_TEST_TMPDIR" ]
    # Without capabilities to be had fusermount3 cannot help either.
    run --separate-stderr as_other setpriv --no-new-privs "$BATS_TEST_TMPDIR/wfs" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ ${stderr_lines[-1]} == "wfs: $MNT: cannot mount: "* ]]
    run --separate-stderr as_other "$BATS_TEST_TMPDIR/wfs" mount -o allow_other "$SOURCE" "$MNT"
    grep -q '^user_allow_other' /etc/fuse.conf && skip "user_allow_other is set here"
    [ "$status" -eq 2 ]
    [[ $stderr == *'need the line "user_allow_other" in /etc/fuse.conf'* ]]
}

@test "another user cannot unmount, and learns the owner" {
    need_fuse
    need_root
    need setpriv
    open_to_others "$BATS_TEST_TMPDIR"
    open_to_others "$BATS_FILE_TMPDIR"
    cp "$WFS" "$BATS_TEST_TMPDIR/wfs"
    "$WFS" mount "$SOURCE" "$MNT"
    run --separate-stderr as_other "$BATS_TEST_TMPDIR/wfs" umount "$MNT"
    [ "$status" -eq 1 ]
    [ "$stderr" = "wfs: $MNT: mounted by user 0; only that user or root can unmount it" ]
    "$WFS" umount "$MNT"
}

@test "the message names the obstacle to a mount" {
    need_fuse_for_others
    local cannot="wfs: $MNT: cannot mount:"
    run --separate-stderr "$HERE/namespace" sh -c 'mount -t tmpfs none /dev && exec "$@"' sh "$WFS" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == "$cannot /dev/fuse does not exist; 'modprobe fuse' loads it"*"'wfs cp' need no mount" ]]
    mkdir "$MNT"
    run --separate-stderr as_other_with_fuse "$BATS_TEST_TMPDIR/wfs" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == "$cannot you cannot write to this directory"* ]]
    [ "${#stderr_lines[@]}" -eq 1 ]
    chown 65534 "$MNT"
    run --separate-stderr "$HERE/namespace" sh -c 'mount --bind /dev/null "$(command -v fusermount3)" && exec "$@"' sh \
        "$HERE/namespace" sh -c 'mount --bind "$0" /dev/fuse && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"' \
        "$BATS_TEST_TMPDIR/fuse" "$BATS_TEST_TMPDIR/wfs" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ ${stderr_lines[-1]} == "$cannot fusermount3 is missing (package fuse3); "*"'wfs cp' need no mount" ]]
    chmod 600 "$BATS_TEST_TMPDIR/fuse"
    run --separate-stderr as_other_with_fuse "$BATS_TEST_TMPDIR/wfs" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == "$cannot /dev/fuse: Permission denied; "* ]]
}

@test "root without the right to mount learns what needs none, and can use it" {
    need_fuse
    need_root
    need setpriv
    local weak=(setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin)
    run --separate-stderr "${weak[@]}" "$WFS" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ ${stderr_lines[-1]} == "wfs: $MNT: cannot mount: this container lacks CAP_SYS_ADMIN"*"'wfs exec SOURCE -- COMMAND'"* ]]
    "${weak[@]}" unshare -Um --propagation unchanged true 2>/dev/null || skip "no namespaces of users here"
    same "${weak[@]}" "$WFS" exec "$SOURCE" -- cat {}/metadata.json == "$WFS" cat "$SOURCE" metadata.json
}

@test "a mount that ends leaves one process to whoever adopts it, its server" {
    need_fuse
    "$PYTHON" - "$WFS" "$SOURCE" "$MNT" <<'END'
import ctypes, os, subprocess, sys
wfs, source, mountpoint = sys.argv[1:]
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
subprocess.run([wfs, "mount", source, mountpoint], check=True)
subprocess.run([wfs, "umount", mountpoint], check=True)
adopted = []
while True:
    try:
        adopted.append(os.wait())
    except ChildProcessError:
        break
assert [status for _, status in adopted] == [0], adopted
END
}

@test "the first process of a container ends at SIGTERM, and its mount with it" {
    need_fuse
    need_mount_namespace
    mkdir "$MNT"
    "$HERE/namespace" unshare --pid --fork --kill-child sh -c 'exec "$@"' sh "$WFS" mount -f "$SOURCE" "$MNT" &
    local container=$! first
    await eval 'first=$(pgrep -f "^$WFS mount -f $SOURCE $MNT" | head -n 1) && [ -s "/proc/$first/root/$MNT/metadata.json" ]'
    kill -TERM "$first"
    wait "$container"
}

@test "options of mount(8) and FUSE are applied, refused, or have no effect" {
    "$WFS" mount -o 'noexec,fsname=a model,default_permissions,subtype=wfs,nofail,nosymfollow,_netdev,x-systemd.automount,ro' "$SOURCE" "$MNT"
    grep -qF 'a\040model '"$MNT"' fuse.wfs ro,nosuid,nodev,noexec,' /proc/self/mounts
    "$WFS" umount "$MNT"
    for word in rw dev suid remount subtype=other; do
        run --separate-stderr "$WFS" mount -o "$word" "$SOURCE" "$MNT"
        [ "$status" -eq 2 ]
        [[ $stderr == "wfs: option ${word%=*}: "* ]]
        [ ! -e "$MNT" ]
    done
}

@test "labels of SELinux reach a kernel that has it, and no other" {
    need_traced_mount
    need_mount_namespace
    local label=system_u:object_r:container_file_t:s0:c1,c2 trace=$BATS_TEST_TMPDIR/trace
    local labels="fscontext=a:b:c:s0,context=\"$label\""
    if [ ! -e /sys/fs/selinux ]; then
        "$WFS" mount -o "$labels" "$SOURCE" "$MNT"
        "$WFS" umount "$MNT"
    fi
    # a kernel without it refuses what it is given here
    run "$HERE/namespace" sh -c 'mkdir -p /sys/fs && mount -t tmpfs none /sys/fs && mkdir /sys/fs/selinux && >/sys/fs/selinux/enforce && exec "$@"' sh \
        strace -f -qq -s 512 -e trace=mount -o "$trace" "$WFS" mount -o "$labels" "$SOURCE" "$MNT"
    grep -qF ',context=\"system_u:object_r:container_file_t:s0:c1,c2\",fscontext=\"a:b:c:s0\"' "$trace"
    run -2 --separate-stderr "$WFS" mount -o 'context="a"b' "$SOURCE" "$MNT"
    [[ $stderr == *"option context: '\"a\"b' is not a label"* ]]
}

@test "-o allow_root admits only root and the mounter" {
    need_root
    need setpriv
    open_to_others "$BATS_TEST_TMPDIR"
    "$WFS" mount -o allow_root "$SOURCE" "$MNT"
    cat "$MNT/tensors/f32/raw" >/dev/null
    run ! as_other cat "$MNT/tensors/f32/raw"
    run ! as_other ls "$MNT"
    "$WFS" umount "$MNT"
}

@test "with -o auto_unmount, fusermount3 waits for the end of wfs" {
    need fusermount3 pgrep
    serve -o auto_unmount "$SOURCE" "$MNT"
    # Whether it then finds the mount dead is a race of its own, which it may lose on a busy machine.
    pgrep -f "^fusermount3 .*auto[_-]unmount.* $MNT\$"
    unmount "$MNT"
    run ! pgrep -f "^fusermount3 .*auto[_-]unmount.* $MNT\$"
}

@test "-o log=FILE and -v say why a read failed, without a syslog" {
    cp "$SOURCE" "$BATS_TEST_TMPDIR/source.safetensors"
    (cd "$BATS_TEST_TMPDIR" && "$WFS" mount -v -o log=log source.safetensors "$MNT" 2>said)
    grep -qE '^wfs: .*source.safetensors is mounted at .*: safetensors, [0-9]+ tensors$' "$BATS_TEST_TMPDIR/said"
    truncate -s -1 "$BATS_TEST_TMPDIR/source.safetensors"
    run ! cat "$MNT/tensors/f32/raw"
    for said in "$BATS_TEST_TMPDIR/said" "$BATS_TEST_TMPDIR/log"; do
        await grep -q "wfs.*: $MNT: source.safetensors.*changed since it was mounted" "$said"
    done
    grep -qE '^20[0-9T:+-]+ wfs\[[0-9]+\]: ' "$BATS_TEST_TMPDIR/log"
    "$WFS" umount "$MNT"
    run --separate-stderr "$WFS" mount -o "log=$BATS_TEST_TMPDIR/no/log" "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [ "$stderr" = "wfs: option log: $BATS_TEST_TMPDIR/no/log: No such file or directory" ]
    run ! is_mounted "$MNT"
}

@test "the error line includes fusermount3's message" {
    need_fuse_for_others
    mkdir "$MNT" "$BATS_TEST_TMPDIR/bin"
    chown 65534 "$MNT"
    printf '#!/bin/sh\necho "fusermount3: not today" >&2\nexit 1\n' >"$BATS_TEST_TMPDIR/bin/fusermount3"
    chmod -R a+rx "$BATS_TEST_TMPDIR/bin"
    run --separate-stderr as_other_with_fuse sh -c '"$0" mount "$1" "$2" && ! PATH=$3:$PATH "$0" umount "$2" && "$0" umount "$2"' \
        "$BATS_TEST_TMPDIR/wfs" "$SOURCE" "$MNT" "$BATS_TEST_TMPDIR/bin"
    [ "$status" -eq 0 ]
    [[ ${stderr_lines[-1]} == "wfs: $MNT: fusermount3: not today" ]]
    [ "$(grep -vc '^wfs: note: ' <<<"$stderr")" -eq 1 ]
}

@test "the source is closed when umount returns" {
    need_attached_strace
    mkdir "$MNT"
    serve "$SOURCE" "$MNT"
    strace -f -o /dev/null -e trace=munmap -e inject=munmap:delay_enter=200000 -p "$SERVER" 2>"$BATS_TEST_TMPDIR/attached" 3>&- &
    tracer=$!
    await grep -q attached "$BATS_TEST_TMPDIR/attached"
    "$WFS" umount "$MNT"
    run ! grep -F "$SOURCE" "/proc/$SERVER/maps"
    server_ends_with 0
    wait "$tracer" || true
}

@test "a mount point can be inside the model's directory, or the directory itself" {
    mkdir "$BATS_TEST_TMPDIR/model"
    cp "$SOURCE" "$BATS_TEST_TMPDIR/model/"
    "$WFS" mount "$BATS_TEST_TMPDIR/model" "$BATS_TEST_TMPDIR/model/mnt"
    cmp "$BATS_TEST_TMPDIR/model/mnt/tensors/f32/f32" "$BATS_TEST_TMPDIR/model/mnt/tensors/f32/raw"
    "$WFS" umount "$BATS_TEST_TMPDIR/model/mnt"
    "$WFS" mount -o nonempty "$BATS_TEST_TMPDIR/model" "$BATS_TEST_TMPDIR/model"
    cmp "$BATS_TEST_TMPDIR/model/tensors/f32/f32" "$BATS_TEST_TMPDIR/model/tensors/f32/raw"
    "$WFS" umount "$BATS_TEST_TMPDIR/model"
    [ -e "$BATS_TEST_TMPDIR/model/model.safetensors" ]
}

@test "SIGTERM unmounts, and an open file works until it is closed" {
    serve "$SOURCE" "$MNT"
    cp "$MNT/tensors/f32/q8_0" "$BATS_TEST_TMPDIR/wanted"
    exec 7<"$MNT/tensors/f32/q8_0"
    kill -TERM "$SERVER"
    await not_mounted "$MNT"
    cmp "$BATS_TEST_TMPDIR/wanted" - <&7
    kill -0 "$SERVER"
    exec 7<&-
    server_ends_with 0
    [ ! -e "$MNT" ]
}

# In a mount namespace of its own, since mounts there are made over, and moved. It begins with copies of all mounts of
# this moment, also those of tests that run beside: only its own mount points tell something.
apart() {
    need_mount_namespace
    SOURCE=$SOURCE MNT=$MNT OUT=$BATS_TEST_TMPDIR "$HERE/namespace" bash -eu -c '
        start() {
            mkdir -p "$MNT" "$OUT/elsewhere"
            "$WFS" mount -f -o passthrough=no "$SOURCE" "$MNT" 2>>"$OUT/log" 3>&- &
            server=$!
            for ((i = 0; i < 1200; i++)); do if [ -e "$MNT/metadata.json" ]; then break; fi; sleep 0.05; done
            exec 7<"$MNT/tensors/f32/q8_0"
        }
        finish() { # the open file can be read, and then the server ends
            [ "$(wc -c <&7)" -gt 0 ]
            exec 7<&-
            wait $server
        }
        '"$1"
}

@test "SIGTERM detaches the own mount, and none that is at its mount point by then" {
    apart 'start
        "$WFS" mount --replace "$SOURCE" "$MNT"
        kill $server
        finish
        grep -q " $MNT fuse.wfs " /proc/self/mounts
        "$WFS" umount "$MNT"'
    apart 'start
        "$WFS" umount -l "$MNT"
        mount -t tmpfs tmpfs "$MNT"
        kill $server
        finish
        grep -q " $MNT tmpfs " /proc/self/mounts'
    apart 'start
        mount --move "$MNT" "$OUT/elsewhere"
        kill $server
        for ((i = 0; i < 1200; i++)); do if ! grep -q " $OUT/elsewhere fuse.wfs " /proc/self/mounts; then break; fi; sleep 0.05; done
        finish
        ! grep -Eq " ($MNT|$OUT/elsewhere) fuse.wfs " /proc/self/mounts'
}

@test "SIGTERM leaves a mount with another one on it, and says so" {
    apart 'start
        mount -t tmpfs tmpfs "$MNT"
        echo text >"$MNT/file"
        kill $server
        for ((i = 0; i < 1200; i++)); do if grep -q "tmpfs is mounted at" "$OUT/log"; then break; fi; sleep 0.05; done
        [ "$(cat "$MNT/file")" = text ]
        [ "$(wc -c <&7)" -gt 0 ]
        kill $server
        wait $server && exit 1
        [ -e "$MNT/file" ]'
    grep -qxF "wfs: $MNT: tmpfs is mounted at $MNT; unmount that first; a second signal ends this server at once" "$BATS_TEST_TMPDIR/log"
}

# A stand-in for a lack of memory: the server stops when it has mounted, and is killed.
@test "a server that is killed before its mount answers leaves no mount" {
    need_traced_mount
    mkdir "$MNT"
    strace -f -o "$BATS_TEST_TMPDIR/trace" -e trace=writev -e inject=writev:delay_enter=2000000 \
        "$WFS" mount "$SOURCE" "$MNT" 2>"$BATS_TEST_TMPDIR/log" 3>&- &
    SERVER=$! SERVER_LOG=$BATS_TEST_TMPDIR/log
    await is_mounted "$MNT"
    server=$(pgrep -P "$(pgrep -P "$SERVER" -x wfs)" -x wfs)
    kill -KILL "$server"
    if wait "$SERVER"; then false; fi
    SERVER=
    not_mounted "$MNT"
    grep -qF "it ended before the mount answered: Killed; if memory ran out, it needs more for this model" "$SERVER_LOG"
}

@test "a second signal ends the server without a wait" {
    serve "$SOURCE" "$MNT"
    exec 7<"$MNT/tensors/f32/q8_0"
    kill -INT "$SERVER"
    await not_mounted "$MNT"
    kill -INT "$SERVER"
    server_ends_with 130
    run cat <&7
    [[ $output == *"not connected"* ]]
    exec 7<&-
    [ ! -e "$MNT" ]
}

@test "umount of a mount in use is refused; -l lets its users finish" {
    serve "$SOURCE" "$MNT"
    exec 7<"$MNT/tensors/f32/raw"
    run --separate-stderr "$WFS" umount "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == "wfs: $MNT: is in use: "*" (process "*") has tensors/f32/raw open"*"; end "*", or 'wfs umount -l $MNT' detaches the mount now"* ]]
    "$WFS" umount -l "$MNT"
    [ ! -e "$MNT" ]
    same eval 'cat <&7' == "$WFS" cat "$SOURCE" tensors/f32/raw
    exec 7<&-
    server_ends_with 0
}

@test "umount names the process that uses the mount, to ordinary users too" {
    need_numpy
    cat >"$BATS_TEST_TMPDIR/map.py" <<'END'
import mmap, os, sys, time
with open(sys.argv[1], "rb") as file:
    mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
open(sys.argv[2], "w").close()
time.sleep(600)
END
    serve "$SOURCE" "$MNT"
    "$PYTHON" "$BATS_TEST_TMPDIR/map.py" "$MNT/tensors/f32/raw" "$BATS_TEST_TMPDIR/mapped" 3>&- &
    user=$!
    await test -e "$BATS_TEST_TMPDIR/mapped"
    fails 1 "(process $user) maps tensors/f32/raw; end it" "$WFS" umount "$MNT"
    (cd "$MNT/tensors" && exec sleep 600 3>&-) &
    second=$!
    await grep -qx sleep "/proc/$second/comm" # and so it is in the directory
    fails 1 ", and so does 1 more process; end them, or 'wfs umount -l $MNT'" "$WFS" umount "$MNT"
    kill "$user"
    wait "$user" || true
    fails 1 ": sleep (process $second) works in tensors; end it" "$WFS" umount "$MNT"
    kill "$second"
    wait "$second" || true
    unmount "$MNT"
    need_fuse_for_others
    mkdir "$MNT"
    chown 65534 "$MNT"
    run --separate-stderr as_other_with_fuse sh -c '"$0" mount "$1" "$2" 2>/dev/null && exec 7<"$2/tensors/f32/raw" && ! "$0" umount "$2" &&
        exec 7<&- && "$0" umount "$2"' "$BATS_TEST_TMPDIR/wfs" "$SOURCE" "$MNT"
    [ "$status" -eq 0 ]
    [[ $stderr == "wfs: $MNT: is in use: sh (process "*") has tensors/f32/raw open; end it, or 'wfs umount -l "* ]]
    [ "${#stderr_lines[@]}" -eq 1 ]
}

@test "mounts lists sources, mount points and processes" {
    need jq
    mine() { jq -c ".mounts[] | select(.mountpoint | startswith(\"$BATS_TEST_TMPDIR/\"))"; }
    "$WFS" mounts --json | jq -e '.schema == 1'
    [ -z "$("$WFS" mounts --json | mine)" ]
    serve "$SOURCE" "$MNT"
    [ "$("$WFS" mounts --json | mine | jq -c 'del(.sandbox)')" = "{\"mountpoint\":\"$MNT\",\"source\":\"$SOURCE\",\"pid\":$SERVER,\"state\":\"served\"}" ]
    "$WFS" mounts | grep -qxF "$SOURCE on $MNT, process $SERVER"
    is_stopped() { [ "$("$WFS" mounts --json | mine | jq -r .state)" = stopped ]; }
    kill -STOP "$SERVER"
    await is_stopped
    kill -CONT "$SERVER"
    "$WFS" mount --replace "$SOURCE" "$MNT" # the newer one of two servers
    server_ends_with 0
    pid=$("$WFS" mounts --json | mine | jq .pid)
    [ "$(readlink "/proc/$pid/exe")" = "$(realpath "$WFS")" ]
    kill -KILL "$pid"
    await is_gone "$pid"
    [ "$("$WFS" mounts --json | mine | jq -c '[.pid, .state]')" = '[null,"dead"]' ]
    "$WFS" umount "$MNT"
    [ -z "$("$WFS" mounts --json | mine)" ]
}

@test "umount while another mount namespace has the mount exits with 0 and names the remaining server" {
    need_root
    need unshare
    serve "$SOURCE" "$MNT"
    "$HERE/namespace" sleep 600 3>&- &
    other=$!
    await grep -qF " $MNT fuse.wfs " "/proc/$other/mounts"
    await sh -c '[ "$(readlink /proc/self/ns/mnt)" != "$(readlink "/proc/$0/ns/mnt")" ]' "$other"
    run --separate-stderr "$WFS" umount "$MNT"
    [ "$status" -eq 0 ]
    [[ $stderr == "wfs: note: $MNT: is unmounted, but its server, process $SERVER, goes on: another mount namespace"* ]]
    kill "$other"
    server_ends_with 0
}

@test "umount is not refused while programs only look at the tree" {
    mkdir "$MNT"
    for ((i = 0; i < 20; i++)); do
        "$WFS" mount "$SOURCE" "$MNT"
        (for ((j = 0; j < 400; j++)); do [ -d "$MNT/tensors" ] || true; done) &
        "$WFS" umount "$MNT"
        wait $!
    done
}

@test "umount -l lets a reader finish" {
    make_input large "$BATS_TEST_TMPDIR/large.safetensors"
    serve "$BATS_TEST_TMPDIR/large.safetensors" "$MNT"
    exec 7<"$MNT/tensors/large/q8_0"
    sha256sum <&7 >"$BATS_TEST_TMPDIR/sum" 3>&- &
    reader=$!
    exec 7<&-
    "$WFS" umount -l "$MNT"
    wait "$reader"
    [ "$("$WFS" cat "$BATS_TEST_TMPDIR/large.safetensors" tensors/large/q8_0 | sha256sum)" = "$(cat "$BATS_TEST_TMPDIR/sum")" ]
    server_ends_with 0
}

@test "after kill -9 the dead mount is named, and umount removes it with its directory" {
    serve "$SOURCE" "$MNT"
    kill -KILL "$SERVER"
    wait "$SERVER" || true
    SERVER=
    run --separate-stderr "$WFS" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == *"has died; --replace or"* ]]
    is_mounted "$MNT"
    "$WFS" umount "$MNT"
    not_mounted "$MNT"
    if setfattr -n user.wfs.test -v 1 "$BATS_TEST_TMPDIR"; then # where a directory can be marked
        [ ! -e "$MNT" ]
    fi
}

@test "--replace removes a dead mount, and a live one" {
    serve "$SOURCE" "$MNT"
    kill -KILL "$SERVER"
    wait "$SERVER" || true
    "$WFS" mount -f --replace "$SOURCE" "$MNT" >"$SERVER_LOG" 2>&1 3>&- & # a mount is there until it is replaced
    SERVER=$!
    await test -e "$MNT/tensors/f32/raw"
    exec 7<"$MNT/tensors/f32/raw"
    "$WFS" mount --replace "$SOURCE" "$MNT" 7<&-
    [ "$(grep -cF " $MNT fuse.wfs " /proc/self/mounts)" -eq 1 ]
    cmp - "$MNT/tensors/f32/raw" <&7
    exec 7<&-
    server_ends_with 0 # it must leave the directory alone
    cmp "$MNT/tensors/f32/f32" "$MNT/tensors/f32/raw"
    "$WFS" umount "$MNT"
}

@test "mount(8) works with -t fuse.wfs, mount.wfs and the options of fstab" {
    need_root
    mkdir "$BATS_TEST_TMPDIR/bin" "$MNT"
    ln -s "$(realpath "$WFS")" "$BATS_TEST_TMPDIR/bin/mount.fuse.wfs"
    helper=$BATS_TEST_TMPDIR/bin/mount.fuse.wfs
    words=rw,noauto,user,nofail,_netdev,x-systemd.automount,x-gvfs-show,comment=mine,noatime,dev,suid,umask=077
    "$helper" "$SOURCE" "$MNT" -n -v -o "$words"
    [ "$(stat -c %a "$MNT/metadata.json")" = 400 ]
    umount "$MNT"
    run --separate-stderr "$helper" "$SOURCE" "$MNT" -o rw,nonsense
    [ "$status" -eq 1 ]
    [[ $stderr == *"unknown option 'nonsense'"* ]]
    run --separate-stderr "$helper" "$SOURCE" "$MNT" -o remount,ro
    [ "$status" -eq 1 ]
    [[ $stderr == *"option remount: the options of a mount do not change; 'wfs mount --replace' mounts it anew" ]]
    run --separate-stderr "$helper" "$BATS_TEST_TMPDIR/nothing" "$MNT" -s -o rw
    [ "$status" -eq 32 ]
    [[ $stderr == *"No such file"* ]]
    "$helper" "$SOURCE" "$MNT" -f -o rw
    not_mounted "$MNT"
    "$WFS" "$SOURCE" "$MNT" -o rw,dev,suid
    umount "$MNT"
    if [ -x /sbin/mount.fuse3 ]; then
        ln -s "$(realpath "$WFS")" "$BATS_TEST_TMPDIR/bin/wfs"
        PATH=$BATS_TEST_TMPDIR/bin:$PATH mount.fuse3 "$SOURCE" "$MNT" -t fuse.wfs -o ro,uid=7
        [ "$(stat -c %u "$MNT/metadata.json")" = 7 ]
        umount "$MNT"
    fi
}

@test "/dev/fd/N serves a mount made by another program" {
    need_root
    mkdir "$MNT"
    "$PYTHON" - "$WFS" "$SOURCE" "$MNT" <<'END'
import ctypes, os, subprocess, sys
wfs, source, mountpoint = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
assert libc.mount(b"other", mountpoint.encode(), b"fuse.wfs", 0, options.encode()) == 0, os.strerror(ctypes.get_errno())
subprocess.run([wfs, "mount", source, f"/dev/fd/{fuse}"], pass_fds=[fuse], check=True, timeout=10)
os.close(fuse)
END
    cmp "$MNT/tensors/f32/f32" "$MNT/tensors/f32/raw"
    check writers "$MNT"
    "$WFS" umount "$MNT"
}

@test "the read-ahead window is raised, unless an option forbids it" {
    need_root
    window() { cat "/sys/class/bdi/$(mountpoint -d "$MNT")/read_ahead_kb"; }
    mkdir "$MNT"
    "$WFS" mount "$SOURCE" "$MNT"
    [ -w "/sys/class/bdi/$(mountpoint -d "$MNT")/read_ahead_kb" ] || skip "/sys is not writable here"
    [ "$(window)" -eq 4096 ]
    "$WFS" mount --replace -o no_readahead "$SOURCE" "$MNT"
    [ "$(window)" -lt 4096 ]
    "$WFS" umount "$MNT"
}

@test "without a server thread, mount says why and leaves nothing mounted" {
    need timeout
    refused=0
    for ((kib = 14000; kib <= 40000; kib += 1000)); do
        run timeout 60 bash -c 'ulimit -v "$0" && exec "$@"' "$kib" "$WFS" mount "$SOURCE" "$MNT"
        [ "$status" -ne 124 ]
        if [ "$status" -eq 0 ]; then
            "$WFS" umount "$MNT"
            break
        fi
        not_mounted "$MNT"
        [ ! -e "$MNT" ]
        [[ $output != *"$MNT: cannot be served: "*"thread"* ]] || refused=$((refused + 1))
    done
    [ "$refused" -gt 0 ] || skip "no amount of memory lets it mount and not serve"
}

@test "a server killed right after mounting is gone" {
    need_traced_mount
    mkdir "$MNT"
    for delay in 0.3 0.4 0.5 0.6; do # its first replies take 0.25 s each
        strace -f -o "$BATS_TEST_TMPDIR/trace" -e trace=writev -e inject=writev:delay_enter=250000 \
            "$WFS" mount -f "$SOURCE" "$MNT" 2>"$BATS_TEST_TMPDIR/log" 3>&- &
        SERVER=$! SERVER_LOG=$BATS_TEST_TMPDIR/log
        await is_mounted "$MNT"
        server=$(pgrep -P "$SERVER" -x wfs)
        sleep "$delay"
        kill -KILL "$server"
        await is_gone "$server"
        wait "$SERVER" || true
        SERVER=
        umount -l "$MNT" 2>/dev/null || fusermount3 -uz "$MNT"
    done
}

# A mount without a descriptor for its signals or its log never ended, and kept its caller's pipe.
@test "with a low limit of descriptors, mount says why or works" {
    need_numpy
    local shards=$BATS_TEST_TMPDIR/shards mounted=0 refused=0
    mkdir "$shards"
    "$PYTHON" - "$shards" <<'END'
import json, pathlib, struct, sys
folder, names = pathlib.Path(sys.argv[1]), {}
for number in range(60):
    header = json.dumps({f"t{number}": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    names[f"t{number}"] = name = f"model-{number + 1:05d}-of-00060.safetensors"
    (folder / name).write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
(folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
END
    for ((limit = 62; limit <= 110; limit += 4)); do
        run timeout 60 bash -c 'ulimit -n "$0" && exec "$@"' "$limit" "$WFS" mount "$shards" "$MNT"
        [ "$status" -ne 124 ]
        if [ "$status" -eq 0 ]; then
            mounted=$((mounted + 1))
            [ "$(wc -c <"$MNT/tensors/t7/raw")" -eq 4 ]
            "$WFS" umount "$MNT"
            await sh -c '! pgrep -f "mount $0" >/dev/null' "$shards"
        else
            [[ $output == *"Too many open files"* || $output == *"raise it ('ulimit -n')"* ]]
            refused=$((refused + 1))
            not_mounted "$MNT"
        fi
    done
    [ "$mounted" -gt 0 ]
    [ "$refused" -gt 0 ]
}

@test "with a low process limit, mount says why or shows all files" {
    need_fuse_for_others
    need prlimit timeout flock
    ! grep -q __tsan_init "$WFS" || skip "ThreadSanitizer needs a thread of its own, which there may be none for"
    export ASAN_OPTIONS=detect_leaks=0 # which takes a thread that there may be none for
    export OTHER=5 # nobody else runs anything as that user, but another run of this test
    exec 8</dev/null # which all systems on the machine share
    flock 8
    mkdir "$MNT"
    chown "$OTHER" "$MNT"
    cat >"$BATS_TEST_TMPDIR/try" <<'END'
wfs=$1 source=$2 mnt=$3 refused=0 served=0
for ((n = 1; n < 100 && served < 4; n++)); do
    status=0
    output=$(timeout 60 prlimit --nproc="$n" "$wfs" mount "$source" "$mnt" 2>&1) || status=$?
    if [ "$status" -eq 0 ]; then
        served=$((served + 1))
        cmp "$mnt/tensors/f32/raw" "$mnt/tensors/f32/f32" && cat "$mnt"/model.gguf "$mnt"/tensors/*/* >/dev/null ||
            { echo "$n: not all files can be read"; exit 1; }
        "$wfs" umount "$mnt" || { echo "$n: umount ended with $?"; exit 1; }
    else
        refused=$((refused + 1))
        [[ $status -eq 1 && $output == "wfs: "*": Resource temporarily unavailable" ]] || { echo "$n: $status $output"; exit 1; }
        grep -F " $mnt " /proc/self/mounts && exit 1
    fi
done
[[ $refused -gt 0 && $served -gt 0 ]] || { echo "$refused refused, $served served"; exit 1; }
END
    as_other_with_fuse bash "$BATS_TEST_TMPDIR/try" "$BATS_TEST_TMPDIR/wfs" "$SOURCE" "$MNT" 8<&-
}

@test "a stopped server does not block umount" {
    need timeout
    ln -s mnt "$BATS_TEST_TMPDIR/link"
    for how in "umount $BATS_TEST_TMPDIR/link/" "umount -l $MNT" "mount --replace $SOURCE $MNT"; do
        serve "$SOURCE" "$MNT"
        kill -STOP "$SERVER"
        run --separate-stderr timeout -k 1 60 "$WFS" mount "$SOURCE" "$MNT"
        [ "$status" -eq 1 ]
        [[ $stderr == *"does not answer; --replace"* ]]
        run --separate-stderr timeout -k 1 60 "$WFS" $how
        if [[ $how == "umount $BATS_TEST_TMPDIR"* ]]; then # which waits for the server
            [ "$status" -eq 1 ]
            [[ $stderr == "wfs: $MNT: is unmounted, but its server, process $SERVER, is stopped "*"'kill -CONT $SERVER' lets it end"* ]]
        else
            [ "$status" -eq 0 ]
        fi
        kill -CONT "$SERVER"
        server_ends_with 0
    done
    "$WFS" umount "$MNT"
}
