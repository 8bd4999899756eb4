#!/bin/sh
# container.sh MODEL COMMAND...: runs a command with the model mounted in a container, {} being where, as in
#     examples/container.sh ~/models/Llama-3.2-1B sha256sum {}/model.gguf
# ENGINE is docker (the default) or podman with its own options, IMAGE what `docker build -t wfs .` made.
set -eu
[ $# -ge 2 ] || { echo "usage: container.sh MODEL COMMAND..." >&2; exit 2; }
model=$(realpath "$1")
inside=/models/$(basename "$model") # the model is called after its directory
shift
# shellcheck disable=SC2086 # ENGINE has its options in it
exec ${ENGINE:-docker} run --rm --device /dev/fuse --cap-add SYS_ADMIN --volume "$model:$inside:ro" ${IMAGE:-wfs} exec "$inside" -- "$@"
