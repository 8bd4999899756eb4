# The man page and the completions: everything that --help knows is in them, and their readers take them.

load lib

setup_file() {
    load lib
    mkdir "$BATS_FILE_TMPDIR/m"
    make_input dtypes "$BATS_FILE_TMPDIR/m/model.safetensors"
}

setup() {
    need_numpy
    COMPLETIONS=$HERE/../../fs/cli/completions
    "$WFS" manual >"$BATS_TEST_TMPDIR/wfs.1"
    mkdir "$BATS_TEST_TMPDIR/bin"
    ln -s "$(realpath "$WFS")" "$BATS_TEST_TMPDIR/bin/wfs"
    PATH=$BATS_TEST_TMPDIR/bin:$PATH
    ln -s "$BATS_FILE_TMPDIR/m" "$BATS_TEST_TMPDIR/m"
    touch "$BATS_TEST_TMPDIR/context.dat"
    export HF_HUB_CACHE=$BATS_TEST_TMPDIR/hub
    mkdir -p "$HF_HUB_CACHE"/models--Some-Org--Some-model/snapshots "$HF_HUB_CACHE"/models--old/snapshots \
        "$HF_HUB_CACHE"/models--Some-Org--begun "$HF_HUB_CACHE"/datasets--Some-Org--texts/snapshots \
        "$HF_HUB_CACHE"/models--Some-Org--$'not\ta-name'/snapshots
    cd "$BATS_TEST_TMPDIR" || return
}

options() {
    "$WFS" help options | sed -n 's/^  \([a-z0-9_-][a-z0-9_.-]*\).*/\1/p'
}

commands() {
    "$WFS" --help | sed -n '1,/^Examples/s/^  \([a-z0-9][a-z0-9]*\)  .*/\1/p'
}

flags() {
    "$WFS" "$1" --help | sed -n '/^Flags/,/^$/s/.* --\([a-z-]*\) .*/\1/p'
}

# Candidates without what they mean.
words() {
    "$WFS" complete -- "$@" | tail -n +2 | cut -f 1
}

@test "every command, option and flag is in the man page and the completions" {
    [ "$(options | wc -l)" -ge 15 ]
    [ "$(commands | wc -l)" -ge 10 ]
    sed 's/\\-/-/g' wfs.1 >plain.1
    for option in $(options); do
        grep -qE "^\\\\fB$option\\\\fR(=.*)?$" plain.1
        words mount -o "$option" | grep -qE "^$option=?$"
    done
    for command in $(commands); do
        grep -qF ".SS \"wfs $command" plain.1
        words "$command" | grep -qx "$command"
        for flag in $(flags "$command"); do
            grep -qE -- "--$flag\\\\fR" plain.1 || [ "$flag" = help ]
            words "$command" "--$flag" | grep -qx -- "--$flag"
        done
    done
}

@test "docs/options.md has every option, and no other" {
    grep '^|' "$HERE/../../docs/options.md" | cut -d '|' -f 2 | grep -oE '`[a-z][a-z0-9_.-]+' | tr -d '`' | sort -u >documented
    diff <(options | sort) documented
}

@test "the man page formats without a warning" {
    need_mount_commands
    need man
    output=$(MANWIDTH=100 man --warnings -l wfs.1 2>warnings | cat)
    [ ! -s warnings ] || { cat warnings; return 1; }
    for section in NAME SYNOPSIS DESCRIPTION COMMANDS OPTIONS EXAMPLES "EXIT STATUS" ENVIRONMENT FILES NOTES BUGS "SEE ALSO"; do
        grep -qx "$section" <<<"$output"
    done
    [[ $output == *"-o OPTION"* && $output == *"absmax7"* && $output == *"{}/model.gguf"* && $output == *'"\,"'* ]]
}

@test "the word at the cursor is completed" {
    need_mount_commands
    [ "$(words um)" = umount ]
    [ "$(words help um)" = umount ]
    [ "$(words help op)" = options ]
    [ "$(words ls --re)" = --recursive ]
    [ "$(words mount -o pure,q4)" = pure,q4_0= ]
    [ "$(words ls -o pure,q4_0=a)" = pure,q4_0=absmax7 ]
    [ "$(words ls -o format=safe)" = "format=safetensors
format=safetensors-parts" ]
    [ "$(words ls -o allow)" = allow_trailing ]
    [ "$(words ls m ten)" = tensors/ ]
    [ "$(words cat -o pure m ./tensors/u8/r)" = "./tensors/u8/raw
./tensors/u8/raw.npy" ]
    [ "$("$WFS" complete -- cp m metadata.json "" | head -1)" = files ]
    [ "$("$WFS" complete -- ls "" | head -1)" = files ]
    [ "$("$WFS" complete -- mount -o imatrix=c)" = value ]
    [ "$("$WFS" complete -- exec m -- "")" = command ]
    [ "$(words info Some)" = Some-Org/Some-model ]
    [ "$(words info "" | sort)" = "$(printf 'Some-Org/Some-model\nold')" ]
    [ "$(words ls -o base=o)" = base=old ]
    [ "$("$WFS" complete -- ls -o lora=a)" = value ]
    [ "$(words ls -o pure,names=h)" = pure,names=hf ]
    [ "$(words ls -o layout=v)" = layout=vllm ]
    [ "$(words layout '')" = check ]
    [ "$(words layout check a)" = antigravity ]
    [ "$(words layout check vllm Some)" = Some-Org/Some-model ]
    for arguments in "zzz a" "ls nothing a" "ls m no/such"; do
        [ -z "$(words $arguments 2>/dev/null)" ]
    done
}

@test "completion of umount lists the mounts of wfs" {
    need_fuse
    serve m "$BATS_TEST_TMPDIR/place"
    words umount "$BATS_TEST_TMPDIR/" | grep -qxF "$BATS_TEST_TMPDIR/place"
    unmount "$BATS_TEST_TMPDIR/place"
    [ -z "$(words umount "$BATS_TEST_TMPDIR/")" ]
}

# What a shell makes of a line: LINE|WORDS.
lines() {
    cat <<'END'
wfs um|umount
wfs ls --re|--recursive
wfs mount -o q4|q4_0=
wfs mount -o pure,q4_0=a|pure,q4_0=absmax7
wfs ls m ten|tensors/
wfs cat m tensors/c64/f|
wfs cat m tensors/i8/raw.|tensors/i8/raw.npy
wfs mount -o imatrix=cont|imatrix=context.dat
wfs ls cont|context.dat
wfs ls Some|Some-Org/Some-model
wfs exec m -- mkfif|mkfifo
END
}

complete_bash() {
    bash --norc -c 'source "$0"; compopt() { :; }
        COMP_LINE=$1 COMP_POINT=${#1}; read -ra COMP_WORDS <<<"$1"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _wfs
        last=${COMP_WORDS[-1]} # bash replaces what is after the last = of it
        for word in "${COMPREPLY[@]}"; do echo "${last%"${last##*=}"}$word"; done' "$COMPLETIONS/wfs.bash" "$1"
}

@test "bash completes" {
    need_mount_commands
    while IFS='|' read -r line wanted; do
        echo "$line"
        [ "$(complete_bash "$line")" = "$wanted" ]
    done < <(lines)
}

@test "fish completes" {
    need_mount_commands
    need fish
    while IFS='|' read -r line wanted; do
        echo "$line"
        [ "$(fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$COMPLETIONS/wfs.fish" "$line" | cut -f 1)" = "$wanted" ]
    done < <(lines)
}

@test "zsh completes" {
    need_mount_commands
    need zsh
    while IFS='|' read -r line wanted; do
        echo "$line"
        zsh -f "$HERE/complete.zsh" "$COMPLETIONS" "$line" "$BATS_TEST_TMPDIR/out"
        [[ " ${wanted:-${line##* }}" == " $(sed 's/ $//; s/.* //' out)" ]]
    done < <(lines)
}

@test "the examples of the help run as they are" {
    need_fuse
    need_mount_namespace
    need jq
    "$PYTHON" "$HERE/../data/make.py" sample "$BATS_TEST_TMPDIR/model"
    run env PYTHON="$PYTHON" "$HERE/namespace" bash "$HERE/examples.bash" "$BATS_TEST_TMPDIR/model" "$HERE/../data/torch/views-5.pt"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ ${lines[-1]} == "all of them ran" ]]
}

@test "docs/families.md matches the program's list" {
    "$HERE/../../scripts/families" --check
}

@test "the variables of the man page are in docs/environment.md" {
    sed -n '/^\.SH ENVIRONMENT/,/^\.SH FILES/{s/^\\fB\(.*\)\\fR$/\1/p}' wfs.1 | sed 's/\\fR, \\fB/\n/g' >variables
    [ "$(wc -l <variables)" -ge 8 ]
    while read -r variable; do
        grep -q "^| .*\`$variable\`.* | " "$HERE/../../docs/environment.md"
    done <variables
}
