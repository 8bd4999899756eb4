# Checkpoints that are made of several: pipelines, and models with modules of their own.

load lib

setup() {
    need_numpy
    OUT=$BATS_TEST_TMPDIR/out
    MNT=$BATS_TEST_TMPDIR/mnt
    mkdir "$OUT"
}

make_pipeline() {
    make_input pipeline "$OUT/pipeline"
    PIPELINE=$OUT/pipeline
}

@test "each component looks like a mount of its own directory" {
    need_fuse
    make_pipeline
    cd "$OUT" # a relative path leads to the same later, in the background
    "$WFS" mount pipeline "$MNT" 2>/dev/null
    for part in text_encoder unet vae; do
        mkdir "$OUT/$part"
        "$WFS" mount "pipeline/$part" "$OUT/$part" 2>/dev/null
        diff -r "$OUT/$part" "$MNT/$part"
        "$WFS" cp -r pipeline "$part" "$OUT/copy-$part" 2>/dev/null
        diff -r "$OUT/$part" "$OUT/copy-$part"
        "$WFS" umount "$OUT/$part"
    done
    cmp "$PIPELINE/model_index.json" "$MNT/model_index.json"
    cmp "$PIPELINE/scheduler/scheduler_config.json" "$MNT/scheduler/scheduler_config.json"
    cmp "$PIPELINE/unet/diffusion_pytorch_model.safetensors" "$MNT/unet/diffusion_pytorch_model.safetensors"
    cmp "$MNT/vae/hf/model.safetensors" "$MNT/vae/hf/diffusion_pytorch_model.safetensors"
    [ ! -e "$MNT/text_encoder/diffusion_pytorch_model.safetensors" ]
    same eval 'cd "$MNT" && ls' == printf '%s\n' metadata.json model_index.json scheduler text_encoder unet vae
    "$WFS" umount "$MNT"
}

@test "a component's values are those that numpy wrote" {
    need_fuse
    make_pipeline
    serve "$PIPELINE" "$MNT"
    "$PYTHON" - "$PIPELINE" "$MNT" <<'END'
import json, os, struct, sys
import numpy
root, mount = sys.argv[1:]
for part in ("text_encoder", "unet"):
    path, = [name for name in os.listdir(f"{root}/{part}") if name.endswith(".safetensors")]
    with open(f"{root}/{part}/{path}", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    listed = {tensor["name"]: tensor for tensor in json.load(open(f"{mount}/{part}/metadata.json"))["tensors"]}
    assert listed.keys() == header.keys()
    for name, tensor in header.items():
        wanted = numpy.frombuffer(data[slice(*tensor["data_offsets"])], "<f4").reshape(tensor["shape"])
        values = numpy.load(f"{mount}/{part}/tensors/{name}/f32.npy", mmap_mode="r")
        assert (values == wanted).all() and os.getxattr(f"{mount}/{part}/tensors/{name}", "user.wfs.name") == name.encode()
whole = json.load(open(f"{mount}/metadata.json"))
assert whole["format"] == "pipeline" and whole["tensors"] == []
sizes = {part: sum(os.path.getsize(f"{root}/{part}/{name}") for name in os.listdir(f"{root}/{part}")
                   if name.endswith((".bin", ".safetensors"))) for part in ("text_encoder", "unet", "vae")}
assert {part["name"]: part["size"] for part in whole["components"]} == sizes
assert os.statvfs(mount).f_blocks == -(-sum(sizes.values()) // 4096)
numbers = [os.lstat(os.path.join(top, name)).st_ino for top, *names in os.walk(mount) for name in sum(names, [])]
assert len(numbers) == len(set(numbers)) > 50
END
    unmount "$MNT"
}

@test "a component is opened only when its directory is listed" {
    need_fuse
    need getfattr
    make_pipeline
    rm -r "$PIPELINE/vae" # with it the root has single_file.safetensors, whose size depends on all components
    serve "$PIPELINE" "$MNT"
    opened() {
        find "/proc/$SERVER/fd" -lname "$PIPELINE/$1/*.safetensors" -o -lname "$PIPELINE/$1/*.bin" | grep -c . || true
    }
    ls -l "$MNT" >/dev/null
    getfattr -d "$MNT"/* >/dev/null # as `ls -l` of coreutils 9.7 does
    cat "$MNT/metadata.json" >/dev/null
    [ "$(opened unet)" -eq 0 ]
    [ "$(opened text_encoder)" -eq 0 ]
    ls "$MNT/unet" >/dev/null
    [ "$(opened unet)" -eq 1 ]
    [ "$(opened text_encoder)" -eq 0 ]
    unmount "$MNT"
}

@test "many processes list a component at once" {
    need_fuse
    make_pipeline
    serve "$PIPELINE" "$MNT"
    for ((i = 0; i < 16; i++)); do
        sha256sum "$MNT/unet/model.gguf" >"$OUT/sum-$i" &
        pids[i]=$!
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    [ "$(sort -u "$OUT"/sum-* | wc -l)" -eq 1 ]
    [ "$(cut -d' ' -f1 "$OUT/sum-0")" = "$("$WFS" cat "$PIPELINE/unet" model.gguf | sha256sum | cut -d' ' -f1)" ]
    unmount "$MNT"
}

@test "a broken component says why, and the others work" {
    need_fuse
    make_pipeline
    printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >"$PIPELINE/text_encoder/model.safetensors"
    serve "$PIPELINE" "$MNT"
    same ls "$MNT/text_encoder" == printf '%s\n' config.json metadata.json
    cmp "$PIPELINE/text_encoder/config.json" "$MNT/text_encoder/config.json"
    grep -q 'the weights cannot be used: model.safetensors: a Git LFS pointer' "$MNT/text_encoder/metadata.json"
    grep -q "^wfs: $MNT: text_encoder: model.safetensors: a Git LFS pointer" "$SERVER_LOG"
    "$WFS" cat "$PIPELINE/unet" model.safetensors | cmp - "$MNT/unet/model.safetensors"
    unmount "$MNT"
    run -1 "$WFS" cat "$PIPELINE" text_encoder/model.gguf
    [[ ${lines[-1]} == "wfs: "*"there is no 'model.gguf': model.safetensors: a Git LFS pointer"* ]]
    "$WFS" info "$PIPELINE" 2>/dev/null | grep -q 'text_encoder/: CLIPTextModel, nothing can be made of it: model.safetensors: a Git LFS pointer'
    "$WFS" info --json "$PIPELINE" 2>/dev/null >"$OUT/info"
    "$PYTHON" - "$OUT/info" <<'END'
import json, sys
broken, unet, vae = json.load(open(sys.argv[1]))["components"]
assert broken["name"] == "text_encoder" and "Git LFS" in broken["failure"] and broken["tensors"] == 0
assert unet["failure"] is None and unet["class"] == "UNet2DConditionModel" and unet["tensors"] == 2
assert vae["format"] == "huggingface" and vae["dtypes"][0]["dtype"] == "F32"
END
}

@test "a component fails if its source changes, and the others work" {
    need_fuse
    make_pipeline
    serve "$PIPELINE" "$MNT"
    cat "$MNT/unet/model.safetensors" "$MNT/text_encoder/model.safetensors" >"$OUT/before"
    printf x | dd of="$(echo "$PIPELINE"/unet/*.safetensors)" bs=1 seek=300 conv=notrunc status=none
    await unreadable "$MNT/unet/model.safetensors"
    cat "$MNT/text_encoder/model.safetensors" >/dev/null
    await grep -q "wfs: $MNT: unet/diffusion_pytorch_model.safetensors: changed since it was mounted" "$SERVER_LOG"
    unmount "$MNT"
}

@test "a component has the permissions of its files" {
    need_fuse
    make_pipeline
    chmod 640 "$PIPELINE"/unet/*.safetensors
    serve "$PIPELINE" "$MNT"
    [ "$(stat -c %a "$MNT/unet/model.gguf")" = 440 ]
    [ "$(stat -c %a "$MNT/unet/tensors")" = 750 ]
    [ "$(stat -c %a "$MNT/text_encoder/model.gguf")" = 444 ]
    unmount "$MNT"
}

@test "nothing outside the directory becomes a component or appears in one" {
    make_pipeline
    mkdir "$OUT/elsewhere"
    cp "$PIPELINE"/unet/* "$OUT/elsewhere"
    ln -s ../elsewhere "$PIPELINE/linked"
    ln -s ../../elsewhere/config.json "$PIPELINE/unet/stolen.json"
    ln -s ../vae/config.json "$PIPELINE/unet/sibling.json"
    sed -i 's|^{|{"linked": ["a", "B"], "../elsewhere": ["a", "B"], |' "$PIPELINE/model_index.json"
    "$WFS" ls -R "$PIPELINE" >"$OUT/list" 2>/dev/null
    run ! grep -E 'linked|elsewhere|stolen|sibling' "$OUT/list"
    "$WFS" cat "$PIPELINE" unet/metadata.json | grep -q 'stolen.json: a symbolic link to .*, outside of the model'
    same "$WFS" cat "$PIPELINE" unet/metadata.json == "$WFS" cat "$PIPELINE/unet" metadata.json
}

@test "options apply to every component; options for one model are refused" {
    make_pipeline
    for options in names=gguf dtype=f16 tensor-type=conv=f32 split=1 format=safetensors allow_trailing; do
        same eval '"$WFS" ls -lR -o "$options" "$PIPELINE" unet | sed "s|^unet/||"' == "$WFS" ls -lR -o "$options" "$PIPELINE/unet"
        same "$WFS" cat -o "$options" "$PIPELINE" unet/metadata.json == "$WFS" cat -o "$options" "$PIPELINE/unet" metadata.json
    done
    "$WFS" cat -o format=pipeline,name=whole "$PIPELINE" metadata.json | grep -qF '"name":"whole"'
    "$WFS" cat -o format=pipeline,name=whole "$PIPELINE" unet/metadata.json | grep -qF '"name":"unet"'
    run -1 "$WFS" cat -o format=torch "$PIPELINE" unet/model.gguf
    [[ ${lines[-1]} == "wfs: "*"unet: this directory has no weights of the format torch"* ]]
    "$WFS" ls -o format=torch "$PIPELINE" vae/model.gguf
    fails 1 "option lora: $PIPELINE: a pipeline of 3 models (model_index.json): text_encoder, unet, vae; name one" \
        "$WFS" ls -o "lora=$OUT" "$PIPELINE"
    fails 1 "option layout: $PIPELINE: a pipeline of 3 models" "$WFS" ls -o shards=vllm:tp=2 "$PIPELINE"
    fails 1 "a pipeline of 3 models" "$WFS" info --quantization "$PIPELINE"
    fails 2 "a pipeline of 3 models" "$WFS" diff "$PIPELINE" "$PIPELINE/unet"
    fails 1 "there is no 'model.gguf'; the components are text_encoder, unet, vae" "$WFS" cat "$PIPELINE" model.gguf
    fails 1 "unet: there is no 'tensor'; did you mean 'tensors'?" "$WFS" ls "$PIPELINE" unet/tensor
}

@test "exec shows a pipeline to a program" {
    need_fuse
    make_pipeline
    "$WFS" cat "$PIPELINE/unet" model.gguf >"$OUT/wanted"
    "$WFS" exec "$PIPELINE" -- cmp {}/unet/model.gguf "$OUT/wanted"
    "$WFS" sha256 "$PIPELINE" 2>/dev/null >"$OUT/sums"
    "$WFS" exec "$PIPELINE" -- sh -c "cd {} && sha256sum --quiet -c '$OUT/sums'" 2>/dev/null
}

@test "components open from the hub cache, whose files are links" {
    make_pipeline
    local repository=$OUT/hub/models--org--sd part file blob
    mkdir -p "$repository/snapshots/abc" "$repository/refs" "$repository/blobs"
    printf abc >"$repository/refs/main"
    (cd "$PIPELINE" && find . -type f) | while read -r file; do
        mkdir -p "$repository/snapshots/abc/$(dirname "$file")"
        blob=$repository/blobs/$(echo "$file" | sha256sum | cut -c-32)
        cp "$PIPELINE/$file" "$blob"
        ln -s "$blob" "$repository/snapshots/abc/$file"
    done
    for part in unet vae; do
        same eval 'HF_HUB_CACHE=$OUT/hub "$WFS" cat org/sd $part/model.gguf' == "$WFS" cat "$PIPELINE/$part" model.gguf
    done
    HF_HUB_CACHE=$OUT/hub "$WFS" info org/sd | grep -qx sd
}

@test "each module of a model is a checkpoint of its own, and hf/ has all modules" {
    need_fuse
    make_input modules "$OUT/model"
    serve "$OUT/model" "$MNT"
    mkdir "$OUT/dense"
    "$WFS" mount "$OUT/model/2_Dense" "$OUT/dense" 2>/dev/null
    diff -r "$OUT/dense" "$MNT/2_Dense"
    "$WFS" umount "$OUT/dense"
    cmp "$OUT/model/2_Dense/model.safetensors" "$MNT/hf/2_Dense/model.safetensors"
    same eval 'cd "$OUT/model" && find . -type f | sort' == eval 'cd "$MNT/hf" && find . -type f | sort'
    for file in 1_Pooling/config.json 2_Dense/config.json modules.json config.json; do
        cmp "$OUT/model/$file" "$MNT/hf/$file"
    done
    diff "$MNT/1_Pooling/config.json" "$OUT/model/1_Pooling/config.json"
    "$WFS" cat -o name=model "$OUT/model" model.gguf | cmp - "$MNT/model.gguf"
    cp -r "$OUT/model" "$OUT/bare" # without the weights of its modules it is the same model
    rm "$OUT/bare/2_Dense/model.safetensors"
    "$WFS" cat -o name=model "$OUT/bare" model.gguf | cmp - "$MNT/model.gguf"
    "$WFS" cat -o name=model "$OUT/bare" gguf/model-Q8_0.gguf | cmp - "$MNT/gguf/model-Q8_0.gguf"
    unmount "$MNT"
    "$WFS" info "$OUT/model" | grep -q '^components  2_Dense/: Dense, 2080 parameters in 2 tensors'
    "$WFS" diff "$OUT/model" "$OUT/bare"
}

@test "a model may have all modules in folders" {
    make_input modules "$OUT/model"
    mkdir "$OUT/model/0_Transformer"
    (cd "$OUT/model" && mv model.safetensors config.json tokenizer*.json 0_Transformer)
    sed -i 's|"path": ""|"path": "0_Transformer"|' "$OUT/model/modules.json"
    "$WFS" ls "$OUT/model" | grep -qx 2_Dense
    run ! "$WFS" ls "$OUT/model" model.gguf
    same "$WFS" cat "$OUT/model" 0_Transformer/gguf/model-Q8_0.gguf == "$WFS" cat "$OUT/model/0_Transformer" gguf/model-Q8_0.gguf
}
