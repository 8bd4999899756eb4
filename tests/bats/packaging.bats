# What packages install: the unit of systemd, the line of fstab.

load lib

setup() {
    need_numpy
    need systemd-analyze
    PACKAGING=$HERE/../../packaging
    UNIT=$(dirname "$WFS")/wfs@.service
}

teardown() {
    [ -n "${BOOTED:-}" ] || return 0
    kill -KILL "$BOOTED"
    wait "$BOOTED" || true
    await "$HERE/namespace" sh -c 'mount -t cgroup2 none /mnt && find "/mnt/wfs-test-$1" -depth -type d -exec rmdir {} +' sh "$BOOTED"
}

# A line of the unit, with this program.
line() {
    sed -n "s/^$1=//p" "$UNIT" | sed "s|^/[^ ]*/bin/wfs |$(realpath "$WFS") |"
}

@test "the systemd unit is valid" {
    need_mount_commands
    local unit=$BATS_TEST_TMPDIR/wfs@.service
    sed "s|=/[^ ]*/bin/wfs |=$(realpath "$WFS") |" "$UNIT" >"$unit"
    run systemd-analyze verify --man=no "$BATS_TEST_TMPDIR/wfs@llama.service" 2>&1
    echo "$output"
    [ "$status" -eq 0 ]
    run ! grep -F "wfs@" <<<"$output"
}

# Makes the units of a small system that has the unit of mounts, for a model, and boots it. Sets INSIDE, a command that
# runs others in it.
boot() {
    local units=$BATS_TEST_TMPDIR/units name
    mkdir "$units"
    sed "s|=/[^ ]*/bin/wfs |=$(realpath "$WFS") |; s|/etc/wfs/|$BATS_TEST_TMPDIR/|" "$UNIT" >"$units/wfs@.service"
    for name in test basic sysinit shutdown umount local-fs remote-fs; do
        printf '[Unit]\nDefaultDependencies=no\n' >"$units/$name.target"
    done
    "$HERE/booted" "$units" >"$BATS_TEST_TMPDIR/booted" 2>&1 &
    BOOTED=$!
    await eval 'FIRST=$(pgrep -x -P "$BOOTED" systemd) || ! kill -0 "$BOOTED"'
    [ -n "${FIRST:-}" ] || missing "the right to boot systemd: $(tail -n 1 "$BATS_TEST_TMPDIR/booted")"
    INSIDE=(nsenter --target "$FIRST" --mount --root --pid --cgroup)
    await "${INSIDE[@]}" systemctl is-active --quiet test.target
}

# Reads a file out of a map, before and after the command that ends or starts the unit anew.
map_across() {
    rm -f "$BATS_TEST_TMPDIR/mapped" "$BATS_TEST_TMPDIR/go"
    "${INSIDE[@]}" "$PYTHON" "$HERE/mapped_reader.py" /run/wfs/model/tensors/large/q4_0 "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/read" &
    local reader=$!
    await test -e "$BATS_TEST_TMPDIR/mapped"
    "${INSIDE[@]}" systemctl "$1" wfs@model
    [ "$("${INSIDE[@]}" systemctl show wfs@model -p Result --value)" = success ]
    touch "$BATS_TEST_TMPDIR/go"
    wait "$reader"
    "$WFS" cat "$BATS_TEST_TMPDIR/model.safetensors" tensors/large/q4_0 | cmp - "$BATS_TEST_TMPDIR/read"
}

@test "programs that map files read on while the unit stops or starts anew" {
    need_fuse
    need_mount_namespace
    need nsenter pgrep systemctl
    ! grep -qE '__(asan|tsan)_init' "$WFS" || skip "sanitizers need rights that the unit does not have"
    make_input large "$BATS_TEST_TMPDIR/model.safetensors"
    echo "SOURCE=$BATS_TEST_TMPDIR/model.safetensors" >"$BATS_TEST_TMPDIR/model"
    boot
    "${INSIDE[@]}" systemctl start wfs@model
    map_across restart
    "${INSIDE[@]}" test -s /run/wfs/model/tensors/large/q4_0
    map_across stop
    [ "$("${INSIDE[@]}" systemctl is-active wfs@model)" = inactive ]
    "${INSIDE[@]}" test ! -e /run/wfs/model
}

@test "a unit whose server was killed mounts again, and one whose source is missing gives up" {
    need_fuse
    need_mount_namespace
    need nsenter pgrep systemctl
    ! grep -qE '__(asan|tsan)_init' "$WFS" || skip "sanitizers need rights that the unit does not have"
    make_input large "$BATS_TEST_TMPDIR/model.safetensors"
    echo "SOURCE=$BATS_TEST_TMPDIR/model.safetensors" >"$BATS_TEST_TMPDIR/model"
    echo "SOURCE=$BATS_TEST_TMPDIR/missing" >"$BATS_TEST_TMPDIR/missing"
    boot
    "${INSIDE[@]}" systemctl start wfs@model
    "${INSIDE[@]}" systemctl start wfs@missing || true
    "${INSIDE[@]}" systemctl kill --signal=KILL --kill-who=all wfs@model
    await "${INSIDE[@]}" sh -c '[ "$(systemctl show wfs@model -p NRestarts --value)" -ge 1 ] && test -s /run/wfs/model/tensors/large/q4_0'
    "${INSIDE[@]}" systemctl stop wfs@model
    "${INSIDE[@]}" test ! -e /run/wfs/model
    await "${INSIDE[@]}" systemctl is-failed --quiet wfs@missing
    [ "$("${INSIDE[@]}" systemctl show wfs@missing -p NRestarts --value)" -le 5 ]
}

@test "the systemd unit is exposed little, and has no mount namespace of its own" {
    need_mount_commands
    local score
    cp "$UNIT" "$BATS_TEST_TMPDIR/wfs@llama.service"
    score=$(systemd-analyze security --offline=true --no-pager "$BATS_TEST_TMPDIR/wfs@llama.service" 2>/dev/null |
        sed -n 's/.*Overall exposure level for [^:]*: \([0-9.]*\).*/\1/p')
    awk -v score="$score" 'BEGIN { exit !(score > 0 && score < 4) }'
    run ! grep -E '^(Protect(System|Home|Proc|Kernel|ControlGroups)|Private|Root|ReadOnlyPaths|MountFlags)' "$UNIT"
}

@test "the systemd unit has a cache directory, where the store is" {
    need_mount_commands
    make_input large "$BATS_TEST_TMPDIR/model.safetensors"
    touch -d 2020-01-01 "$BATS_TEST_TMPDIR/model.safetensors"
    [ "$(line CacheDirectory)" = wfs ]
    [ "$(line CacheDirectoryMode)" = 0700 ]
    CACHE_DIRECTORY=$BATS_TEST_TMPDIR/cache "$WFS" cat -o keep=all "$BATS_TEST_TMPDIR/model.safetensors" tensors/large/q8_0 >/dev/null
    [ -e "$BATS_TEST_TMPDIR/cache/CACHEDIR.TAG" ]
}

@test "the units of wfs serve are valid, and their command serves" {
    need_serve
    need curl
    local units=$BATS_TEST_TMPDIR service
    service=$(dirname "$WFS")/wfs-serve@.service
    cp "$PACKAGING/wfs-serve@.socket" "$units"
    sed "s|=/[^ ]*/bin/wfs |=$(realpath "$WFS") |" "$service" >"$units/wfs-serve@.service"
    run systemd-analyze verify --man=no "$units/wfs-serve@llama.service" "$units/wfs-serve@llama.socket" 2>&1
    echo "$output"
    [ "$status" -eq 0 ]
    run ! grep -F "wfs-serve@" <<<"$output"

    make_input dtypes "$units/model.safetensors"
    local start
    export FLAGS="--listen 127.0.0.1:0" SOURCES="acme/m=$units/model.safetensors"
    start=$(sed -n 's/^ExecStart=//p' "$units/wfs-serve@.service")
    SERVER_LOG=$units/server.log
    eval "exec $start" >"$units/address" 2>"$SERVER_LOG" 3>&- &
    SERVER=$!
    await test -s "$units/address"
    curl --silent --fail "$(cat "$units/address")/api/models"
    kill -TERM "$SERVER"
    server_ends_with 0
}

# The system calls in sets of systemd's, which may have sets in them.
calls_of() {
    local name
    for name; do
        case $name in
        @*)
            # shellcheck disable=SC2046 # a list of words
            calls_of $(systemd-analyze syscall-filter "$name" | sed '1d; s/#.*//')
            ;;
        *) echo "$name" ;;
        esac
    done
}

# The system calls that the lines SystemCallFilter= of a unit leave: each adds some, or with a tilde takes some away.
allowed_calls() { # UNIT
    local allowed=$BATS_TEST_TMPDIR/allowed words
    : >"$allowed"
    while read -r words; do
        # shellcheck disable=SC2086 # a list of words
        calls_of ${words#\~} | sort -u >"$allowed.line"
        if [[ $words == "~"* ]]; then
            comm -23 "$allowed" "$allowed.line" >"$allowed.new"
        else
            sort -u "$allowed" "$allowed.line" >"$allowed.new"
        fi
        mv "$allowed.new" "$allowed"
    done < <(sed -n 's/^SystemCallFilter=//p' "$1")
    cat "$allowed"
}

@test "the unit of wfs serve allows the system calls of a server" {
    need_serve
    need curl jq
    need_strace
    local out=$BATS_TEST_TMPDIR name
    make_input dtypes "$out/model.safetensors"
    SERVER_LOG=$out/log
    CACHE_DIRECTORY=$out/cache strace -D -f -q -o "$out/trace" \
        "$WFS" serve --listen 127.0.0.1:0 "acme/m=$out/model.safetensors" >"$out/address" 2>"$SERVER_LOG" 3>&- &
    SERVER=$!
    await test -s "$out/address"
    name=$(curl --silent --fail "$(cat "$out/address")/api/models/acme/m" | jq -r '.siblings[0].rfilename')
    curl --silent --fail --output "$out/file" "$(cat "$out/address")/acme/m/resolve/main/$name"
    kill -TERM "$SERVER"
    server_ends_with 0
    await grep -q '+++ exited with 0 +++' "$out/trace"
    sed -n 's/^[0-9]* *\([a-z0-9_]*\)(.*/\1/p' "$out/trace" | sort -u >"$out/used"
    grep -qx epoll_wait "$out/used"
    comm -23 "$out/used" <(allowed_calls "$(dirname "$WFS")/wfs-serve@.service") | diff - /dev/null
}

@test "the unit's commands mount and unmount" {
    need_fuse
    make_input dtypes "$BATS_TEST_TMPDIR/model.safetensors"
    local mnt=$BATS_TEST_TMPDIR/llama options source start stop
    options=$(line Environment) source=$BATS_TEST_TMPDIR/model.safetensors
    start=$(line ExecStart | sed "s|/run/wfs/%i|$mnt|; s|\${OPTIONS}|${options#OPTIONS=}|; s|\${SOURCE}|$source|")
    stop=$(line ExecStop | sed "s|/run/wfs/%i|$mnt|")
    eval "$start"
    is_mounted "$mnt"
    eval "$stop"
    not_mounted "$mnt"
}

# What a build directory would install, below $ROOT.
install_to_root() {
    ROOT=$BATS_TEST_TMPDIR/root
    rm -rf "$ROOT"
    DESTDIR=$ROOT meson install -C "$BUILD" --no-rebuild >/dev/null
}

@test "a new prefix of an existing build directory reaches the unit and mount.wfs" {
    need meson
    BUILD=$BATS_TEST_TMPDIR/build
    meson setup -Dtests=false "$BUILD" "$HERE/../.." >/dev/null
    mkdir -p "$BUILD/fs/lib" && cp "$WFS" "$BUILD/wfs" && touch "$BUILD/wfs.1"
    cp -P "$(dirname "$WFS")"/fs/lib/libwfs.{a,so,so.0,so.?.?.?} "$(dirname "$WFS")/fs/lib/wfs.3" "$BUILD/fs/lib"
    for prefix in /usr /opt/wfs; do
        meson configure --prefix="$prefix" "$BUILD"
        ninja -C "$BUILD" --quiet build.ninja >/dev/null
        install_to_root
        cmp "$WFS" "$ROOT$prefix/bin/wfs"
        [ -f "$ROOT$prefix/include/wfs.h" ] && [ -f "$ROOT$prefix/share/man/man3/wfs.3" ]
        for name in mount.wfs mount.fuse.wfs; do
            [ "$(readlink "$ROOT$prefix/sbin/$name")" = "$prefix/bin/wfs" ]
        done
        grep -qxF "ExecStop=$prefix/bin/wfs umount -l /run/wfs/%i" "$ROOT$prefix/lib/systemd/system/wfs@.service"
        grep -qxF "ExecStart=$prefix/bin/wfs serve \$FLAGS \$SOURCES" "$ROOT$prefix/lib/systemd/system/wfs-serve@.service"
        [ -f "$ROOT$prefix/lib/systemd/system/wfs-serve@.socket" ]
    done
}

@test "the line of fstab becomes a mount unit and an automount" {
    need_root # allow_other is for others to be allowed
    local generator=/usr/lib/systemd/system-generators/systemd-fstab-generator
    [ -x "$generator" ] || missing "$generator"
    mkdir "$BATS_TEST_TMPDIR/units"
    cp "$PACKAGING/fstab" "$BATS_TEST_TMPDIR/fstab"
    cd "$BATS_TEST_TMPDIR"
    SYSTEMD_FSTAB=$BATS_TEST_TMPDIR/fstab "$generator" units units units
    grep -qx 'What=/srv/models/Llama-3.2-1B' units/mnt-llama.mount
    grep -qx 'Type=fuse.wfs' units/mnt-llama.mount
    run systemd-analyze verify --man=no units/mnt-llama.mount units/mnt-llama.automount
    echo "$output"
    [ "$status" -eq 0 ]
    # The line of the documents is this one, and wfs takes its options.
    grep -qxF "$(cat fstab)" "$HERE/../../docs/troubleshooting.md"
    options=$(sed -n 's/^Options=//p' units/mnt-llama.mount)
    [[ $options == *allow_other* ]]
    (exec -a mount.wfs "$WFS" /srv/models/Llama-3.2-1B /mnt/llama -f -o "rw,$options")
    run ! bash -c 'exec -a mount.wfs "$0" /srv/models/Llama-3.2-1B /mnt/llama -f -o "$1,no_such"' "$WFS" "$options"
}

@test "the drawing matches its script" {
    "$PYTHON" "$HERE/../../scripts/drawing" --check
}

@test "the plots match their script" {
    "$PYTHON" "$HERE/../../scripts/plots" --check
}

@test "--help of a script prints its manual, and runs no other program" {
    mkdir "$BATS_TEST_TMPDIR/bin"
    for tool in bash dirname realpath sed sh; do
        ln -s "$(command -v "$tool")" "$BATS_TEST_TMPDIR/bin/$tool"
    done
    for script in scripts/configure scripts/setup scripts/test scripts/demo scripts/families scripts/yyjson scripts/release scripts/abi .ci/quick \
        packaging/make packaging/static/build tests/interop/run; do
        interpreter=$(command -v "$(sed -n '1s/.*[/ ]//p' "$HERE/../../$script")")
        run --separate-stderr env PATH="$BATS_TEST_TMPDIR/bin" "$interpreter" "$HERE/../../$script" --help
        [ "$status" -eq 0 ] && [ -z "$stderr" ] && [ "${#lines[@]}" -ge 2 ] && [[ ${lines[0]} == [A-Z]* ]] || {
            echo "$script: $status $output $stderr"
            false
        }
    done
}

@test "scripts say why meson cannot set up a directory, and set it up the next time" {
    cat >"$BATS_TEST_TMPDIR/meson" <<'END'
#!/bin/sh
mkdir -p "$2" && [ -e "$0.works" ] && : >"$2/build.ninja" && echo configured "$@" && exit
echo "meson.build:45:0: ERROR: could not get yyjson"
exit 1
END
    chmod +x "$BATS_TEST_TMPDIR/meson"
    configure=$HERE/../../scripts/configure
    run --separate-stderr env PATH="$BATS_TEST_TMPDIR:$PATH" "$configure" "$BATS_TEST_TMPDIR/made" -Dtests=false
    [ "$status" -eq 1 ] && [[ $stderr == *"could not get yyjson" ]]
    touch "$BATS_TEST_TMPDIR/meson.works"
    for _ in 1 2; do
        run --separate-stderr env PATH="$BATS_TEST_TMPDIR:$PATH" "$configure" "$BATS_TEST_TMPDIR/made" -Dtests=false
        [ "$status" -eq 0 ] && [ -z "$output$stderr" ]
    done
    run "$configure"
    [ "$status" -eq 2 ]
}
