# How mounts begin and end.

load lib

is_gone() {
    ! kill -0 "$1" 2>/dev/null
}

setup_file() {
    load lib
    need_fuse
    make_input dtypes "$BATS_FILE_TMPDIR/model.safetensors"
}

setup() {
    SOURCE=$BATS_FILE_TMPDIR/model.safetensors
    MNT=$BATS_TEST_TMPDIR/mnt
}

@test "in the background: the files are there on return, at once and each time" {
    for ((i = 0; i < 10; i++)); do
        "$WFS" mount "$SOURCE" "$MNT"
        cat "$MNT/tensors/f32/raw" >/dev/null
        "$WFS" umount "$MNT"
        [ ! -e "$MNT" ]
    done
}

@test "in the background: nothing of the caller's is held" {
    output=$("$WFS" mount "$SOURCE" "$MNT")
    [ -z "$output" ]
    "$WFS" mount --replace "$SOURCE" "$MNT" | cat
    "$WFS" umount "$MNT"
}

@test "in the background: with closed standard input, output and error" {
    "$WFS" mount "$SOURCE" "$MNT" 0<&- 1>&- 2>&-
    cmp "$MNT/tensors/f32/f32" "$MNT/tensors/f32/raw"
    "$WFS" umount "$MNT"
    "$WFS" cat "$SOURCE" tensors/f32/raw 0<&- | cmp - <("$WFS" cat "$SOURCE" tensors/f32/f32)
}

@test "a relative source and a relative mount point" {
    cd "$BATS_FILE_TMPDIR"
    "$WFS" mount model.safetensors "test mnt"
    grep -qF "$BATS_FILE_TMPDIR/test\\040mnt fuse.wfs" /proc/self/mounts
    "$WFS" umount "test mnt/"
    [ ! -e "test mnt" ]
}

@test "a mount point that exists is kept, one that is made is removed" {
    mkdir "$MNT"
    "$WFS" mount "$SOURCE" "$MNT"
    "$WFS" umount "$MNT"
    [ -d "$MNT" ]
    "$WFS" mount "$SOURCE" "$MNT/made"
    "$WFS" umount "$MNT/made"
    [ ! -e "$MNT/made" ]
}

@test "umount(8) ends it as well" {
    need_root
    serve "$SOURCE" "$MNT"
    umount "$MNT"
    server_ends_with 0
    [ ! -e "$MNT" ]
}

@test "what cannot be mounted fails at once, with one line, and makes nothing" {
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

@test "mount points that will not do" {
    run --separate-stderr "$WFS" mount "$SOURCE" "$BATS_TEST_TMPDIR/no/such"
    [ "$status" -eq 1 ]
    [ "$stderr" = "wfs: $BATS_TEST_TMPDIR/no/such: cannot be made: there is no $BATS_TEST_TMPDIR/no; 'mkdir -p $BATS_TEST_TMPDIR/no' makes it" ]
    (cd "$BATS_TEST_TMPDIR" && run ! "$WFS" mount "$SOURCE" no/such//)
    run --separate-stderr "$WFS" mount "$SOURCE" ""
    [ "$status" -eq 1 ]
    [ "$stderr" = "wfs: the mount point is the empty text; is a variable not set?" ]
    run --separate-stderr "$WFS" mount "" "$MNT"
    [ "$stderr" = "wfs: the source is the empty text; is a variable not set?" ]
    touch "$BATS_TEST_TMPDIR/file"
    run --separate-stderr "$WFS" mount "$SOURCE" "$BATS_TEST_TMPDIR/file"
    [ "$status" -eq 1 ]
    [[ $stderr == *"/file: is not a directory" ]]
    mkdir "$MNT"
    touch "$MNT/precious"
    run --separate-stderr "$WFS" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == *"is not empty; -o nonempty"* ]]
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

@test "without the right to mount it says so" {
    need_root
    need setpriv
    open_to_others "$BATS_TEST_TMPDIR"
    open_to_others "$BATS_FILE_TMPDIR"
    cp "$WFS" "$BATS_TEST_TMPDIR/wfs"
    mkdir "$MNT"
    chown 65534 "$MNT"
    run --separate-stderr as_other "$BATS_TEST_TMPDIR/wfs" mount "$SOURCE" "$BATS_TEST_TMPDIR/made"
    [ "$status" -eq 1 ]
    [ "$stderr" = "wfs: $BATS_TEST_TMPDIR/made: cannot be made: you may not write to $BATS_TEST_TMPDIR" ]
    # Without capabilities to be had fusermount3 cannot help either.
    run --separate-stderr as_other setpriv --no-new-privs "$BATS_TEST_TMPDIR/wfs" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ ${stderr_lines[-1]} == "wfs: $MNT: cannot mount: "* ]]
    run --separate-stderr as_other "$BATS_TEST_TMPDIR/wfs" mount -o allow_other "$SOURCE" "$MNT"
    grep -q '^user_allow_other' /etc/fuse.conf && skip "user_allow_other is set here"
    [ "$status" -eq 2 ]
    [[ $stderr == *'/etc/fuse.conf has the line "user_allow_other"'* ]]
}

@test "another user may not take a mount away, and is told whose it is" {
    need_fuse
    need_root
    need setpriv
    open_to_others "$BATS_TEST_TMPDIR"
    open_to_others "$BATS_FILE_TMPDIR"
    cp "$WFS" "$BATS_TEST_TMPDIR/wfs"
    "$WFS" mount "$SOURCE" "$MNT"
    run --separate-stderr as_other "$BATS_TEST_TMPDIR/wfs" umount "$MNT"
    [ "$status" -eq 1 ]
    [ "$stderr" = "wfs: $MNT: mounted by the user with the number 0, who may take it away, as may root" ]
    "$WFS" umount "$MNT"
}

@test "what is in the way of a mount is called by its name" {
    need_root
    need unshare
    local cannot="wfs: $MNT: cannot mount:"
    run --separate-stderr unshare -m sh -c 'mount -t tmpfs none /dev && exec "$@"' sh "$WFS" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == "$cannot there is no /dev/fuse; 'modprobe fuse' loads it"*"'wfs cp' need no mount" ]]
    need_fuse_for_others
    mkdir "$MNT"
    run --separate-stderr as_other_with_fuse "$BATS_TEST_TMPDIR/wfs" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == "$cannot you may not write to this directory"* ]]
    [ "${#stderr_lines[@]}" -eq 1 ]
    chown 65534 "$MNT"
    run --separate-stderr unshare -m sh -c 'mount --bind /dev/null "$(command -v fusermount3)" && exec "$@"' sh \
        unshare -m sh -c 'mount --bind "$0" /dev/fuse && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"' \
        "$BATS_TEST_TMPDIR/fuse" "$BATS_TEST_TMPDIR/wfs" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ ${stderr_lines[-1]} == "$cannot fusermount3 is missing (package fuse3); "*"'wfs cp' need no mount" ]]
    chmod 600 "$BATS_TEST_TMPDIR/fuse"
    run --separate-stderr as_other_with_fuse "$BATS_TEST_TMPDIR/wfs" mount "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == "$cannot /dev/fuse: Permission denied; "* ]]
}

@test "words of mount(8) and FUSE are applied, refused, or change nothing" {
    "$WFS" mount -o 'noexec,fsname=a model,default_permissions,subtype=wfs,nofail,_netdev,x-systemd.automount,ro' "$SOURCE" "$MNT"
    grep -qF 'a\040model '"$MNT"' fuse.wfs ro,nosuid,nodev,noexec,' /proc/self/mounts
    "$WFS" umount "$MNT"
    for word in rw dev suid subtype=other; do
        run --separate-stderr "$WFS" mount -o "$word" "$SOURCE" "$MNT"
        [ "$status" -eq 2 ]
        [[ $stderr == "wfs: option ${word%=*}: "* ]]
        [ ! -e "$MNT" ]
    done
}

@test "-o allow_root: root and who mounts, nobody else" {
    need_root
    need setpriv
    open_to_others "$BATS_TEST_TMPDIR"
    "$WFS" mount -o allow_root "$SOURCE" "$MNT"
    cat "$MNT/tensors/f32/raw" >/dev/null
    run ! as_other cat "$MNT/tensors/f32/raw"
    run ! as_other ls "$MNT"
    "$WFS" umount "$MNT"
}

@test "-o auto_unmount: fusermount3 waits for the end of wfs" {
    need fusermount3 pgrep
    serve -o auto_unmount "$SOURCE" "$MNT"
    # Whether it then finds the mount dead is a race of its own, which it may lose on a busy machine.
    pgrep -f "^fusermount3 .*auto_unmount.* $MNT\$"
    unmount "$MNT"
    run ! pgrep -f "^fusermount3 .*auto_unmount.* $MNT\$"
}

@test "-o log=FILE and -v: why a read failed, without a syslog" {
    cp "$SOURCE" "$BATS_TEST_TMPDIR/source.safetensors"
    (cd "$BATS_TEST_TMPDIR" && "$WFS" mount -v -o log=log source.safetensors "$MNT" 2>said)
    grep -qE '^wfs: .*source.safetensors is mounted at .*: safetensors, [0-9]+ tensors$' "$BATS_TEST_TMPDIR/said"
    truncate -s -1 "$BATS_TEST_TMPDIR/source.safetensors"
    run ! cat "$MNT/tensors/f32/raw"
    for said in "$BATS_TEST_TMPDIR/said" "$BATS_TEST_TMPDIR/log"; do
        await grep -q 'source.safetensors.*changed since it was mounted' "$said"
    done
    grep -qE '^20[0-9T:+-]+ wfs\[[0-9]+\]: ' "$BATS_TEST_TMPDIR/log"
    "$WFS" umount "$MNT"
    run --separate-stderr "$WFS" mount -o "log=$BATS_TEST_TMPDIR/no/log" "$SOURCE" "$MNT"
    [ "$status" -eq 1 ]
    [ "$stderr" = "wfs: option log: $BATS_TEST_TMPDIR/no/log: No such file or directory" ]
    run ! is_mounted "$MNT"
}

@test "what fusermount3 says is in the line of what failed" {
    need_fuse_for_others
    mkdir "$MNT"
    chown 65534 "$MNT"
    run --separate-stderr as_other_with_fuse sh -c '"$0" mount "$1" "$2" && exec 7<"$2/tensors/f32/raw" && ! "$0" umount "$2" &&
        exec 7<&- && "$0" umount "$2"' "$BATS_TEST_TMPDIR/wfs" "$SOURCE" "$MNT"
    [ "$status" -eq 0 ]
    [[ ${stderr_lines[-1]} == "wfs: $MNT: fusermount3: failed to unmount $MNT: Device or resource busy" ]]
    [ "$(grep -vc '^wfs: note: ' <<<"$stderr")" -eq 1 ]
}

@test "on return from umount the source is closed" {
    need_strace
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

@test "a mount point inside the model's own directory, and the directory itself" {
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

@test "SIGTERM: the mount is gone, an open file lives until it is closed" {
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

@test "a second signal does not wait" {
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

@test "umount while it is used is refused, -l lets the user finish" {
    serve "$SOURCE" "$MNT"
    exec 7<"$MNT/tensors/f32/raw"
    run --separate-stderr "$WFS" umount "$MNT"
    [ "$status" -eq 1 ]
    [[ $stderr == *"is in use; -l"* || $stderr == *fusermount3* ]]
    "$WFS" umount -l "$MNT"
    [ ! -e "$MNT" ]
    cmp - <("$WFS" cat "$SOURCE" tensors/f32/raw) <&7
    exec 7<&-
    server_ends_with 0
}

@test "umount while programs look at it is not refused" {
    need_root
    mkdir "$MNT"
    for ((i = 0; i < 20; i++)); do
        "$WFS" mount "$SOURCE" "$MNT"
        (for ((j = 0; j < 400; j++)); do [ -d "$MNT/tensors" ] || true; done) &
        "$WFS" umount "$MNT"
        wait $!
    done
}

@test "umount -l while somebody reads: the reader gets all of it" {
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

@test "kill -9: the dead mount is named, and umount clears it with the directory that was made" {
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

@test "--replace takes a dead mount away, and a living one" {
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

@test "mount(8): -t fuse.wfs, mount.wfs and the words of fstab" {
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

@test "/dev/fd/N: a mount that somebody else has made" {
    need_root
    need_numpy
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

@test "the read-ahead window is raised, unless told not to" {
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

@test "without a thread to serve it: the reason, and nothing is left mounted" {
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

@test "a server that is killed as soon as it is mounted is gone" {
    need_strace
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

@test "a user who may have few processes: the reason, or all files" {
    need_fuse_for_others
    need prlimit timeout flock
    ! grep -q __tsan_init "$WFS" || skip "ThreadSanitizer needs a thread of its own, which there may be none for"
    export ASAN_OPTIONS=detect_leaks=0 # which takes a thread that there may be none for
    export OTHER=5 # nobody else runs anything as that user, but another run of this test
    exec 8</usr
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
        cmp "$mnt/tensors/f32/raw" "$mnt/tensors/f32/f32" && cat "$mnt"/model.gguf "$mnt"/tensors/*/* >/dev/null || exit
        "$wfs" umount "$mnt" || exit
    else
        refused=$((refused + 1))
        [[ $status -eq 1 && $output == "wfs: "*": Resource temporarily unavailable" ]] || { echo "$n: $status $output"; exit 1; }
        grep -F " $mnt " /proc/self/mounts && exit 1
    fi
done
[[ $refused -gt 0 && $served -gt 0 ]]
END
    as_other_with_fuse bash "$BATS_TEST_TMPDIR/try" "$BATS_TEST_TMPDIR/wfs" "$SOURCE" "$MNT" 8<&-
}

@test "a server that is stopped holds up none of those who take its mount away" {
    need timeout
    ln -s mnt "$BATS_TEST_TMPDIR/link"
    for how in "umount $BATS_TEST_TMPDIR/link/" "umount -l $MNT" "mount --replace $SOURCE $MNT"; do
        serve "$SOURCE" "$MNT"
        kill -STOP "$SERVER"
        run --separate-stderr timeout -k 1 60 "$WFS" mount "$SOURCE" "$MNT"
        [ "$status" -eq 1 ]
        [[ $stderr == *"does not answer; --replace"* ]]
        timeout -k 1 60 "$WFS" $how
        kill -CONT "$SERVER"
        server_ends_with 0
    done
    "$WFS" umount "$MNT"
}
