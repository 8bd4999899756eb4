# Completion of wfs in fish: `wfs complete` completes the word at the cursor.

function __wfs_complete
    set -l current (commandline -ct)
    set -l typed (commandline -opc)[2..]
    set -l lines (wfs complete -- $typed (string unescape -- $current; or echo) 2>/dev/null)
    printf '%s\n' $lines[2..]
    switch $lines[1]
        case files
            __fish_complete_path $current
        case value
            set -l before (string replace -r '[^=]*$' '' -- $current)
            printf "$before%s\n" (__fish_complete_path (string replace -r '.*=' '' -- $current))
        case command
            set -l end (contains -i -- -- $typed)
            __fish_complete_subcommand --fcs-skip=(math $end + 1)
    end
end

complete -c wfs -f -a '(__wfs_complete)'
