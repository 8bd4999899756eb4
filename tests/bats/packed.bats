# Packed checkpoints: the weights that they stand for, beside what is stored.

load lib

setup_file() {
    load lib
    need_fuse
    need getfattr
}

setup() {
    PACKED=$BATS_TEST_DIRNAME/../data/packed
    WEIGHT=tensors/model.layers.0.mlp.down_proj.weight
    MNT=$BATS_TEST_TMPDIR/mnt
}

@test "a weight of other names: values without raw, its parts as they are" {
    serve "$PACKED/gptq-4" "$MNT"
    cmp "$MNT/$WEIGHT/f32" "$PACKED/gptq-4/expected.f32"
    [ ! -e "$MNT/$WEIGHT/raw" ]
    [ "$(stat -c %s "$MNT/tensors/model.layers.0.mlp.down_proj.qweight/raw")" -eq 512 ]
    [ "$(getfattr --only-values -n user.wfs.packing "$MNT/$WEIGHT/f32")" = gptq ]
    getfattr --only-values -n user.wfs.parts "$MNT/$WEIGHT" | grep -qx model.layers.0.mlp.down_proj.g_idx
    need_numpy
    "$PYTHON" - "$MNT" <<'END'
import json, sys
tensors = {t["name"]: t for t in json.load(open(sys.argv[1] + "/metadata.json"))["tensors"]}
weight = tensors["model.layers.0.mlp.down_proj.weight"]
assert weight["dtype"] == "F32" and weight["shape"] == [16, 64] and weight["source"] is None, weight
assert weight["packing"]["name"] == "gptq" and weight["packing"]["bits"] == 4 and len(weight["packing"]["parts"]) == 4, weight
assert "packing" not in tensors["model.layers.0.mlp.down_proj.qweight"]
END
    unmount "$MNT"
    server_is_quiet
}

@test "a weight that is called as a part of it: raw is bytes, views are values" {
    serve "$PACKED/fp8-blocks" "$MNT"
    cmp "$MNT/$WEIGHT/f32" "$PACKED/fp8-blocks/expected.f32"
    cmp "$MNT/$WEIGHT/raw" <(tail -c $((1024 + 24)) "$PACKED/fp8-blocks/model.safetensors" | head -c 1024)
    [ "$(getfattr --only-values -n user.wfs.dtype "$MNT/$WEIGHT/raw")" = F8_E4M3 ]
    [ "$(getfattr --only-values -n user.wfs.dtype "$MNT/$WEIGHT/f32")" = F32 ]
    [ "$(getfattr --only-values -n user.wfs.packing "$MNT/$WEIGHT/raw")" = scaled ]
    unmount "$MNT"
    server_is_quiet
}

@test "a shape of its own: raw has that of the bytes" {
    serve "$PACKED/bnb-nf4" "$MNT"
    cmp "$MNT/$WEIGHT/f32" "$PACKED/bnb-nf4/expected.f32"
    [ "$(getfattr --only-values -n user.wfs.shape "$MNT/$WEIGHT/raw")" = "[512, 1]" ]
    [ "$(getfattr --only-values -n user.wfs.shape "$MNT/$WEIGHT/f32")" = "[16, 64]" ]
    unmount "$MNT"
}

@test "a weight that does not fit says why, and all else is there" {
    mkdir "$BATS_TEST_TMPDIR/model"
    cp "$PACKED/fp8-blocks/model.safetensors" "$BATS_TEST_TMPDIR/model/"
    echo '{"quantization_config":{"quant_method":"fp8","weight_block_size":[2,2]}}' >"$BATS_TEST_TMPDIR/model/config.json"
    serve "$BATS_TEST_TMPDIR/model" "$MNT"
    [ "$(ls "$MNT/$WEIGHT" | tr '\n' ' ')" = "metadata.json raw " ]
    grep -q "\"refused\":\"'model.layers.0.mlp.down_proj.weight_scale_inv' is BF16 \[4, 3\], which does not fit 16 rows of 64\"" \
        "$MNT/$WEIGHT/metadata.json"
    [ -s "$MNT/${WEIGHT}_scale_inv/f32" ]
    unmount "$MNT"
}

@test "hf/ and model.safetensors are the plain model" {
    serve "$PACKED/gptq-4" "$MNT"
    run -0 "$PYTHON" - "$MNT" <<'END'
import json, struct, sys
data = open(sys.argv[1] + "/hf/model.safetensors", "rb").read()
assert data == open(sys.argv[1] + "/model.safetensors", "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
name = "model.layers.0.mlp.down_proj.weight"
assert [key for key in header if key != "__metadata__"] == [name] and header[name]["dtype"] == "BF16", header
assert data[8 + length:] == open(f"{sys.argv[1]}/tensors/{name}/bf16", "rb").read()
assert json.load(open(sys.argv[1] + "/hf/config.json")) == {"architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16"}
assert "quantization_config" in json.load(open(sys.argv[1] + "/config.json"))
END
    unmount "$MNT"
    server_is_quiet
}

@test "a model of no known family: the plain container has the weight, not its parts" {
    mkdir "$BATS_TEST_TMPDIR/model"
    cp "$PACKED/gptq-4/model.safetensors" "$BATS_TEST_TMPDIR/model/"
    sed 's/LlamaForCausalLM/NobodyForCausalLM/' "$PACKED/gptq-4/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    "$WFS" cp "$BATS_TEST_TMPDIR/model" model.gguf "$BATS_TEST_TMPDIR/plain.gguf"
    [ "$("$WFS" ls "$BATS_TEST_TMPDIR/plain.gguf" tensors)" = "${WEIGHT#tensors/}" ]
    cmp <("$WFS" cat "$BATS_TEST_TMPDIR/plain.gguf" "$WEIGHT/raw") <("$WFS" cat "$PACKED/gptq-4" "$WEIGHT/bf16")
}

@test "what the converter refuses is named" {
    mkdir "$BATS_TEST_TMPDIR/model"
    cp "$PACKED/fp8-blocks/model.safetensors" "$BATS_TEST_TMPDIR/model/"
    sed 's/"quantization_config": *{/&"config_groups":{"a":{"weights":{"strategy":"tensor"}}},/; s/"fp8"/"compressed-tensors"/' \
        "$PACKED/fp8-blocks/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    "$WFS" info --all "$BATS_TEST_TMPDIR/model" | grep -F "the converter refuses the strategy 'tensor' of its weights"
}

@test "what is in blocks already is not quantized again without being asked: one note says so" {
    make_input nvfp4 "$BATS_TEST_TMPDIR/model"
    run -0 "$WFS" info "$BATS_TEST_TMPDIR/model"
    [ "$(grep -c requantize <<<"$output")" -eq 1 ]
    [[ $output == *"gguf/: the source is quantized already; -o requantize shows it quantized again"* ]]
    run -1 "$WFS" cat "$BATS_TEST_TMPDIR/model" gguf/model-Q4_0.gguf
    [[ $output == *"'gguf/model-Q4_0.gguf': gguf/: the source is quantized already"* ]]
    "$WFS" ls -o requantize "$BATS_TEST_TMPDIR/model" gguf/model-Q4_0.gguf
}
