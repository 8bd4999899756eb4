# Completion of wfs in bash: `wfs complete` completes the word at the cursor.

_wfs() {
    local line=${COMP_LINE:0:COMP_POINT} word words=() kind current candidates
    # COMP_WORDS is cut at '=' and ':' as well.
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current=${words[-1]}
    words=("${words[@]:1}")
    for word in "${!words[@]}"; do
        words[word]=${words[word]/#\~\//$HOME/}
        words[word]=${words[word]//[\\\"\']/}
    done
    mapfile -t candidates < <(wfs complete -- "${words[@]}" 2>/dev/null | cut -f 1)
    kind=${candidates[0]}
    COMPREPLY=("${candidates[@]:1}")
    # What comes before the last of these is not part of the word that bash replaces.
    local before=${current%"${current##*[=:]}"} i
    for i in "${!COMPREPLY[@]}"; do
        [[ ${COMPREPLY[i]} == *[/=:] ]] && compopt -o nospace
        COMPREPLY[i]=${COMPREPLY[i]#"$before"}
    done
    case $kind in
    files | value)
        compopt -o filenames
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${current##*[=:]}")
        ;;
    command)
        for ((i = 1; i < COMP_CWORD; i++)); do
            [[ ${COMP_WORDS[i]} == -- ]] && break
        done
        if declare -F _command_offset >/dev/null; then
            _command_offset $((i + 1))
        elif ((COMP_CWORD == i + 1)); then
            mapfile -t COMPREPLY < <(compgen -c -- "$current" | sort -u)
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        fi
        ;;
    esac
}

complete -F _wfs wfs
