# Runs the examples of every command's help as they are, in a home and a /mnt of their own: to be run by
# tests/bats/namespace. WFS is the program, PYTHON one with numpy; the first argument is a directory with a model, the second
# one a torch checkpoint.
set -euo pipefail

home=$(mktemp -d)
trap 'wfs umount /mnt/m 2>/dev/null || true; cd /; rm -rf "$home"' EXIT
mount -t tmpfs none /mnt
mkdir -p "$home/bin" "$home/models" "$home/hub"
for model in Llama-3.2-1B Qwen2.5-0.5B; do
    cp -r "$1" "$home/models/$model"
done
"$PYTHON" "${BASH_SOURCE%/*}/make_inputs.py" seeing "$home/Qwen2.5-VL"
for name in Qwen--Qwen2.5-0.5B meta-llama--Llama-3.2-1B; do
    mkdir -p "$home/hub/models--$name/snapshots" "$home/hub/models--$name/refs"
    cp -r "$1" "$home/hub/models--$name/snapshots/1"
    printf 1 >"$home/hub/models--$name/refs/main"
done
ln -s "$(realpath "$WFS")" "$home/bin/wfs"
# Stands in for a program that is not here: it reads the model that it is given.
printf '#!/bin/sh\n[ "$1" = -m ] && [ "$(head -c 4 "$2")" = GGUF ] && echo Hello\n' >"$home/bin/llama-cli"
printf '#!/bin/sh\n[ "$3" = --mmproj ] && [ "$(head -c 4 "$4")" = GGUF ] && llama-cli "$1" "$2"\n' >"$home/bin/llama-server"
chmod +x "$home"/bin/llama-*
export HOME=$home HF_HUB_CACHE=$home/hub PATH=$home/bin:$PATH
cd "$home"
cp "$1"/* .
cp "$2" pytorch_model.bin
cp -r "$1" model
cat >my.json <<'END'
{"parameters": {"tp": 1}, "files": {"name": "rank{rank}.safetensors", "for": {"rank": "tp"}}, "tensors": [{"from": "*"}]}
END
for name in model-Q4_K_M.gguf qwen2.5-0.5b-q4_k_m.gguf; do
    wfs cat Qwen/Qwen2.5-0.5B gguf/model-Q4_K_M.gguf >"$name" 2>/dev/null
done
wfs cat models/Qwen2.5-0.5B model.gguf >model.gguf 2>/dev/null
wfs attest models/Llama-3.2-1B gguf/model-Q4_K_M.gguf >model.intoto.json 2>/dev/null

# Its status, and what it said besides notes.
run() {
    local status=0
    timeout 120 bash -c "$1" >out 2>err || status=$?
    [[ $1 == "wfs diff "* && $status -eq 1 ]] && status=0 # they differ
    echo "$status: $1"
    [ "$status" -eq 0 ] && ! grep -v '^wfs: note: ' err && { [ -s out ] || [[ $1 == "wfs cp "* || $1 == *'>'* ]]; }
}

mounted() {
    grep -q ' /mnt/m fuse.wfs ' /proc/self/mounts
}

while IFS= read -r line; do
    case $line in
    *hf://* | "wfs cache "*) ;; # of a server; remote.bats has its own
    "wfs mount -f "*)
        bash -c "exec $line" 2>err &
        until mounted; do kill -0 $!; done
        kill -INT $!
        wait $!
        ;;
    "wfs mount "*)
        bash -c "$line" 2>err
        mounted
        wfs umount /mnt/m
        ;;
    "wfs serve "*)
        rm -f out
        bash -c "exec $line" >out 2>err &
        until [ -s out ]; do kill -0 $!; done
        kill -TERM $!
        wait $!
        [ ! -s err ]
        ;;
    "wfs umount "*)
        wfs mount "$1" /mnt/m 2>err
        bash -c "$line"
        ! mounted
        ;;
    *"cd /mnt/m"* | "wfs mounts"*)
        wfs mount Qwen/Qwen2.5-0.5B /mnt/m 2>err
        run "$line"
        wfs umount /mnt/m
        ;;
    *) run "$line" || { cat out err; exit 1; } ;;
    esac
done < <(for command in $(wfs --help | sed -n '/^Commands/,/^Options/s/^  \([a-z0-9][a-z0-9]*\)  .*/\1/p'); do
    wfs "$command" --help | sed -n '/^Examples/,$s/^  \(wfs .*\)/\1/p'
done)
echo "all of them ran"
