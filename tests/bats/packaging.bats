# What packages install: the unit of systemd, the line of fstab.

load lib

setup() {
    PACKAGING=$HERE/../../packaging
    need systemd-analyze
}

@test "the unit of systemd is one" {
    local unit=$BATS_TEST_TMPDIR/wfs@.service
    sed "s|/usr/bin/wfs|$(realpath "$WFS")|" "$PACKAGING/wfs@.service" >"$unit"
    run systemd-analyze verify --man=no "$BATS_TEST_TMPDIR/wfs@llama.service" 2>&1
    echo "$output"
    [ "$status" -eq 0 ]
    run ! grep -F "wfs@" <<<"$output"
}

@test "what the unit runs mounts, and unmounts" {
    need_fuse
    make_input dtypes "$BATS_TEST_TMPDIR/model.safetensors"
    line() {
        sed -n "s/^$1=//p" "$PACKAGING/wfs@.service"
    }
    local mnt=$BATS_TEST_TMPDIR/llama options source start stop
    options=$(line Environment) source=$BATS_TEST_TMPDIR/model.safetensors
    start=$(line ExecStart | sed "s|/usr/bin/wfs|\$WFS|; s|/run/wfs/%i|$mnt|; s|\${OPTIONS}|${options#OPTIONS=}|; s|\${SOURCE}|$source|")
    stop=$(line ExecStop | sed "s|/usr/bin/wfs|\$WFS|; s|/run/wfs/%i|$mnt|")
    eval "$start"
    is_mounted "$mnt"
    eval "$stop"
    not_mounted "$mnt"
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

@test "the drawing is what its script draws" {
    "$PYTHON" "$HERE/../../scripts/drawing" --check
}

@test "the plots are what their script draws" {
    "$PYTHON" "$HERE/../../scripts/plots" --check
}
