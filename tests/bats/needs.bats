# What the tests say of what they need and do not find (lib.bash).

load lib

# Runs the tests of files where /dev/fuse belongs to no driver: run_without_fuse VARIABLES... FILES...
run_without_fuse() {
    run env -i PATH=/usr/local/bin:/usr/bin:/bin WFS="$WFS" "$HERE/namespace" sh -c 'mount --bind "$0" /dev/fuse && exec "$@"' "$BATS_TEST_TMPDIR/fuse" \
        env "$@"
    echo "$output"
}

@test "without /dev/fuse each test is skipped with the reason, or fails in strict mode" {
    need_mount_commands
    need_mount_namespace
    mknod "$BATS_TEST_TMPDIR/fuse" c 60 0 || missing "the right to make devices"
    local reason="/dev/fuse cannot be opened: No such device or address"
    run_without_fuse bats --formatter tap "$HERE/exec.bats" "$HERE/drafts.bats"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^ok' <<<"$output")" -ge 12 ]
    run ! grep -v "^1[.][.]\|^ok .* # skip $reason\$" <<<"$output"
    run_without_fuse WFS_TEST_STRICT=1 bats --formatter tap "$HERE/exec.bats" "$HERE/drafts.bats"
    [ "$status" -eq 1 ]
    [ "$(grep -c '^not ok' <<<"$output")" -ge 12 ]
    [ "$(grep -c '^not ok' <<<"$output")" -eq "$(grep -cxF "# missing: $reason" <<<"$output")" ]
}

@test "setup_file needs nothing, because bats 1.8 cannot skip there" {
    run ! grep -E '^ +(need|missing|skip)' < <(sed -n '/^setup_file()/,/^}/p' "$HERE"/*.bats)
}
