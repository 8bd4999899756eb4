# What the tests of the command and of mounts share. WFS is the program, from meson.
#
# A mount is served in the foreground, so that its exit status, its messages and, in sanitizer builds, its reports are seen.

bats_require_minimum_version 1.5.0

HERE=$BATS_TEST_DIRNAME
WFS=${WFS:-$HERE/../../build/wfs}
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

# A python3 that has numpy: Debian's, where another one is first in PATH. Where none has, `:`, so that setup_file() makes
# nothing, and need_numpy in setup() says why. Exported, since each test reads this file anew.
if [ -z "${PYTHON:-}" ]; then
    export PYTHON=:
    for candidate in /usr/bin/python3 python3; do
        if "$candidate" -c 'import numpy' 2>/dev/null; then
            PYTHON=$candidate
            break
        fi
    done
fi

# What a test needs. These are for setup() and tests: bats 1.8 cannot skip in setup_file(), and shows no reason there.
#
# need_root skips what no ordinary user can do, always: CI tests that as root. A tool or a device that the machine lacks
# is `missing`: skipped as well, but with WFS_TEST_STRICT, as in CI, a failure.
missing() {
    if [ "${WFS_TEST_STRICT:-}" = 1 ]; then
        echo "missing: $1" >&2
        return 1
    fi
    skip "$1"
}

need() {
    local tool
    for tool; do
        command -v "$tool" >/dev/null || missing "$tool"
    done
}

need_strace() {
    need strace
    strace -o /dev/null true 2>/dev/null || missing "the right to trace"
    export ASAN_OPTIONS=detect_leaks=0 # not while traced
}

# Traces a server that runs: `strace -p`. Ubuntu's kernel lets users trace what they start, and nothing else.
need_attached_strace() {
    need_strace
    is_root || [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" -eq 0 ] ||
        skip "only root can trace a running process here (kernel.yama.ptrace_scope)"
}

# Starts `wfs mount` under strace: fusermount3, which mounts for a user, has no rights of root while a user traces it.
need_traced_mount() {
    need_root
    need_strace
}

need_numpy() {
    [ "$PYTHON" != : ] || missing "python3 with numpy"
}

# Skips what a build without FUSE lacks, always: its help, its completions, its units.
need_mount_commands() {
    "$WFS" --help | grep -q "^  mount " || skip "$WFS was built without FUSE"
}

# Skips what a build without the server lacks, always.
need_serve() {
    "$WFS" --help | grep -q "^  serve " || skip "$WFS was built without the server"
}

need_fuse() {
    local reason
    need_mount_commands
    reason=$( (: <>/dev/fuse) 2>&1) || missing "/dev/fuse cannot be opened: ${reason##*: }"
    is_root || command -v fusermount3 >/dev/null || missing "fusermount3"
}

is_root() {
    [ "$(id -u)" -eq 0 ]
}

need_root() {
    is_root || skip "only root can"
}

# For tests/bats/namespace.
need_mount_namespace() {
    need_root
    need unshare
    "$HERE/namespace" true 2>/dev/null || missing "the right to make a mount namespace"
}

# For mounts that `wfs exec` hides from others. In a chroot the kernel gives an ordinary user no namespaces.
need_hidden_mounts() {
    local flags=-m
    is_root || flags=-Um
    unshare "$flags" --propagation unchanged true 2>/dev/null || skip "no mount namespaces for this user here"
}

make_input() {
    "$PYTHON" "$HERE/make_inputs.py" "$@"
}

check() {
    "$PYTHON" "$HERE/check.py" "$@"
}

# Lets other users reach a directory of this test, and runs a command as one of them.
open_to_others() {
    local directory=$1
    while [[ $directory == "$BATS_RUN_TMPDIR"* ]]; do
        chmod a+rx "$directory"
        directory=$(dirname "$directory")
    done
}

as_other() {
    setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# Runs a command as another user who may open /dev/fuse, in a mount namespace of its own.
need_fuse_for_others() {
    need_mount_namespace
    need setpriv fusermount3
    [ -e "$BATS_TEST_TMPDIR/fuse" ] || mknod -m 666 "$BATS_TEST_TMPDIR/fuse" c 10 229 || missing "the right to make devices"
    open_to_others "$BATS_TEST_TMPDIR"
    open_to_others "$BATS_FILE_TMPDIR"
    cp "$WFS" "$BATS_TEST_TMPDIR/wfs"
}

as_other_with_fuse() {
    OTHER=${OTHER:-65534} "$HERE/namespace" sh -c 'mount --bind "$0" /dev/fuse && exec setpriv --reuid "$OTHER" --regid "$OTHER" --clear-groups "$@"' \
        "$BATS_TEST_TMPDIR/fuse" "$@"
}

# Waits until a command succeeds, for a minute at most.
await() {
    local i
    for ((i = 0; i < 1200; i++)); do
        "$@" && return
        sleep 0.05
    done
    echo "waited in vain for: $*" >&2
    return 1
}

# fails STATUS TEXT COMMAND...: with one line on stderr that holds the text, and nothing on stdout.
fails() {
    local wanted=$1 text=$2
    shift 2
    run --separate-stderr "$@"
    echo "status $status: $stderr"
    [ "$status" -eq "$wanted" ]
    [[ $stderr == "wfs: "*"$text"* ]]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [ -z "$output" ]
}

# both_print COMMAND... == COMMAND...: runs both; each succeeds and prints something, to $BATS_TEST_TMPDIR/.left and .right.
# `cmp <(A) <(B)` would take two failures for equal outputs. A pipeline is `eval 'A | B'`, which
# does not know the parameters of the calling function.
both_print() {
    local left=()
    while [ $# -gt 0 ] && [ "$1" != == ]; do
        left+=("$1")
        shift
    done
    ("${left[@]}") >"$BATS_TEST_TMPDIR/.left" || return 1
    ("${@:2}") >"$BATS_TEST_TMPDIR/.right" || return 1
    [ -s "$BATS_TEST_TMPDIR/.left" ] && [ -s "$BATS_TEST_TMPDIR/.right" ]
}

# same COMMAND... == COMMAND...: both print the same bytes. differ: others.
same() {
    both_print "$@" && cmp "$BATS_TEST_TMPDIR/.left" "$BATS_TEST_TMPDIR/.right"
}
differ() {
    both_print "$@" && ! cmp -s "$BATS_TEST_TMPDIR/.left" "$BATS_TEST_TMPDIR/.right"
}

# Reading fails with EIO: of what a changed source gave, at the latest when the kernel has been told to forget it, so `await` it.
unreadable() {
    [[ $(cat "$1" 2>&1 >/dev/null) == *": Input/output error" ]]
}

is_mounted() {
    grep -qF " $1 fuse.wfs " /proc/self/mounts
}

not_mounted() {
    ! is_mounted "$1"
}

# serve [FLAGS] SOURCE MOUNTPOINT: mounts in the foreground. Sets SERVER (pid) and SERVER_LOG.
serve() {
    SERVER_LOG=$BATS_TEST_TMPDIR/server.log
    "$WFS" mount -f "$@" >"$SERVER_LOG" 2>&1 3>&- &
    SERVER=$!
    await served_or_dead "${@: -1}"
    is_mounted "${@: -1}" || { cat "$SERVER_LOG" >&2; return 1; }
}

# A mount that is dead is not served: somebody is about to replace it, and takes it away before there is another.
served_or_dead() {
    { [ -d "$1/." ] && is_mounted "$1"; } || ! kill -0 "$SERVER" 2>/dev/null
}

# Waits for the server to end by itself; its status must be the one given.
server_ends_with() {
    local status=0
    wait "$SERVER" || status=$?
    SERVER=
    if [ "$status" -ne "$1" ]; then
        echo "the server ended with $status instead of $1:" >&2
        cat "$SERVER_LOG" >&2
        return 1
    fi
}

unmount() {
    "$WFS" umount "$1"
    server_ends_with 0
}

# The number of lines that the server has said, but for the notes at the start.
server_lines() {
    grep -vc '^wfs: note: ' "$SERVER_LOG" || true
}

# The server has said nothing.
server_is_quiet() {
    [ "$(server_lines)" -eq 0 ] || { cat "$SERVER_LOG" >&2; return 1; }
}

# Ends what a failed test has left, and shows what the server said.
teardown() {
    local mountpoint
    if [ -n "${SERVER:-}" ]; then
        cat "$SERVER_LOG" >&2
        kill -KILL "$SERVER" 2>/dev/null
        wait "$SERVER" 2>/dev/null
    fi
    while read -r _ mountpoint _; do
        umount -l "$mountpoint" 2>/dev/null || fusermount3 -uz "$mountpoint" 2>/dev/null
    done < <(grep -F " $BATS_TEST_TMPDIR/" /proc/self/mounts)
    true
}

# Nothing that these tests mounted is left.
teardown_file() {
    ! grep -F " $BATS_FILE_TMPDIR/" /proc/self/mounts
}
