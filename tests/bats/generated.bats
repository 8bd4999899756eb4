# The man page and the completions: everything that --help knows is in them, and their readers take them.

load lib

setup() {
    "$WFS" generate man >"$BATS_TEST_TMPDIR/wfs.1"
    "$WFS" generate bash >"$BATS_TEST_TMPDIR/wfs.bash"
    "$WFS" generate zsh >"$BATS_TEST_TMPDIR/_wfs"
    "$WFS" generate fish >"$BATS_TEST_TMPDIR/wfs.fish"
    cd "$BATS_TEST_TMPDIR"
}

# The words of a section of --help: "Options" lists names, "Commands" as well.
options() {
    "$WFS" --help | sed -n '/^Options/,/^Examples/s/^  \([a-z0-9_-][a-z0-9_-]*\).*/\1/p'
}

commands() {
    "$WFS" --help | sed -n '/^Commands/,/^Options/s/^  \([a-z0-9][a-z0-9]*\)  .*/\1/p'
}

flags() {
    "$WFS" "$1" --help | sed -n '/^Flags/,/^$/s/.* --\([a-z]*\) .*/\1/p'
}

@test "every command, option and flag is in all of them" {
    [ "$(options | wc -l)" -ge 15 ]
    [ "$(commands | wc -l)" -ge 10 ]
    sed 's/\\-/-/g' wfs.1 >plain.1
    for option in $(options); do
        grep -qE "^\\\\fB$option\\\\fR(=.*)?$" plain.1
        for file in wfs.bash _wfs wfs.fish; do
            grep -qE "(^|[ '])$option[=[ ]" "$file"
        done
    done
    for command in $(commands); do
        grep -qF ".SS \"wfs $command" plain.1
        grep -qF "    $command) flags=" wfs.bash
        grep -qF "'$command:" _wfs
        grep -qF -- "-a $command " wfs.fish
        for flag in $(flags "$command"); do
            grep -qF -- "--$flag" plain.1 || [ "$flag" = help ]
            grep -F "    $command) flags=" wfs.bash | grep -qwF -- "--$flag"
            grep -F "        $command) _arguments" _wfs | grep -qwF -- "--$flag"
            grep -F "seen_subcommand_from $command'" wfs.fish | grep -qwF -- "-l $flag"
        done
    done
}

@test "the man page formats without a warning" {
    need man
    output=$(MANWIDTH=100 man --warnings -l wfs.1 2>warnings | cat)
    [ ! -s warnings ] || { cat warnings; return 1; }
    [[ $output == *"-o OPTION"* && $output == *"absmax7"* && $output == *"{}/model.gguf"* && $output == *'written "\,"'* ]]
}

complete_bash() {
    bash -c 'source wfs.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _wfs; printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

@test "bash completes" {
    [ "$(complete_bash wfs um)" = umount ]
    [ "$(complete_bash wfs ls --re)" = --recursive ]
    [ "$(complete_bash wfs mount -o q4)" = q4_0= ]
    [ "$(complete_bash wfs mount -o pure,q4)" = pure,q4_0= ]
}

@test "zsh and fish take their files" {
    if ! command -v zsh >/dev/null && ! command -v fish >/dev/null; then
        skip "neither zsh nor fish is here"
    fi
    ! command -v zsh >/dev/null || zsh -n _wfs
    if command -v fish >/dev/null; then
        fish -n wfs.fish
        [ "$(fish -c 'source wfs.fish; complete -C "wfs um"' | cut -f 1)" = umount ]
        fish -c 'source wfs.fish; complete -C "wfs mount -o q4"' | grep -q '^q4_0=.*absmax7'
        fish -c 'source wfs.fish; complete -C "wfs ls --re"' | grep -q '^--recursive'
    fi
}
