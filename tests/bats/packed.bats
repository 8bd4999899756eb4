# Packed checkpoints: the weights that they stand for, beside what is stored.

load lib

setup() {
    need_fuse
    need_numpy
    need getfattr
    PACKED=$BATS_TEST_DIRNAME/../data/packed
    WEIGHT=tensors/model.layers.0.mlp.down_proj.weight
    MNT=$BATS_TEST_TMPDIR/mnt
}

@test "a packed weight has values but no raw; its parts keep theirs" {
    serve "$PACKED/gptq-4" "$MNT"
    cmp "$MNT/$WEIGHT/f32" "$PACKED/gptq-4/expected.f32"
    [ ! -e "$MNT/$WEIGHT/raw" ]
    [ "$(stat -c %s "$MNT/tensors/model.layers.0.mlp.down_proj.qweight/raw")" -eq 512 ]
    [ "$(getfattr --only-values -n user.wfs.packing "$MNT/$WEIGHT/f32")" = gptq ]
    getfattr --only-values -n user.wfs.parts "$MNT/$WEIGHT" | grep -qx model.layers.0.mlp.down_proj.g_idx
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

@test "if a weight and its part share a name, raw is the part's bytes and views are the weight's values" {
    serve "$PACKED/fp8-blocks" "$MNT"
    cmp "$MNT/$WEIGHT/f32" "$PACKED/fp8-blocks/expected.f32"
    same cat "$MNT/$WEIGHT/raw" == eval 'tail -c $((1024 + 24)) "$PACKED/fp8-blocks/model.safetensors" | head -c 1024'
    [ "$(getfattr --only-values -n user.wfs.dtype "$MNT/$WEIGHT/raw")" = F8_E4M3 ]
    [ "$(getfattr --only-values -n user.wfs.dtype "$MNT/$WEIGHT/f32")" = F32 ]
    [ "$(getfattr --only-values -n user.wfs.packing "$MNT/$WEIGHT/raw")" = scaled ]
    unmount "$MNT"
    server_is_quiet
}

@test "if a weight and its bytes differ in shape, raw has the shape of the bytes" {
    serve "$PACKED/bnb-nf4" "$MNT"
    cmp "$MNT/$WEIGHT/f32" "$PACKED/bnb-nf4/expected.f32"
    [ "$(getfattr --only-values -n user.wfs.shape "$MNT/$WEIGHT/raw")" = "[512, 1]" ]
    [ "$(getfattr --only-values -n user.wfs.shape "$MNT/$WEIGHT/f32")" = "[16, 64]" ]
    unmount "$MNT"
}

@test "if the parts of a weight disagree, metadata.json says why, and other weights work" {
    mkdir "$BATS_TEST_TMPDIR/model"
    cp "$PACKED/fp8-blocks/model.safetensors" "$BATS_TEST_TMPDIR/model/"
    echo '{"quantization_config":{"quant_method":"fp8","weight_block_size":[2,2]}}' >"$BATS_TEST_TMPDIR/model/config.json"
    serve "$BATS_TEST_TMPDIR/model" "$MNT"
    [ "$(ls "$MNT/$WEIGHT" | tr '\n' ' ')" = "metadata.json raw " ]
    grep -q "\"refused\":\"'model.layers.0.mlp.down_proj.weight_scale_inv' is BF16 \[4, 3\], but the weight has 16 rows of 64 columns\"" \
        "$MNT/$WEIGHT/metadata.json"
    [ -s "$MNT/${WEIGHT}_scale_inv/f32" ]
    unmount "$MNT"
}

@test "hf/ and model.safetensors hold the dequantized model" {
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

@test "-o dtype= rounds the exact values of packed weights once" {
    need_numpy
    local sample dtype
    # bits by offsets or second scales: most values have more than 16 bits
    for sample in mlx-6 gptq-4 bnb-nf4-nested; do
        for dtype in f32 f16 bf16; do
            echo "# $sample as $dtype"
            "$PYTHON" - "$dtype" "$PACKED/$sample/expected.f32" >"$BATS_TEST_TMPDIR/expected" <<'END'
import sys
import numpy as np
values = np.fromfile(sys.argv[2], np.float32)
bits = values.view(np.uint32)
rounded = {"f32": values, "f16": values.astype(np.float16), "bf16": (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)}[sys.argv[1]]
sys.stdout.buffer.write(rounded.tobytes())
END
            for file in model.safetensors hf/model.safetensors; do
                same eval '"$WFS" cat -o "dtype=$dtype" "$PACKED/$sample" "$file" | tail -c "$(stat -c %s "$BATS_TEST_TMPDIR/expected")"' == cat "$BATS_TEST_TMPDIR/expected"
            done
        done
    done
}

@test "model.gguf of an unknown family holds the weight, not its parts" {
    mkdir "$BATS_TEST_TMPDIR/model"
    cp "$PACKED/gptq-4/model.safetensors" "$BATS_TEST_TMPDIR/model/"
    sed 's/LlamaForCausalLM/NobodyForCausalLM/' "$PACKED/gptq-4/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    "$WFS" cp "$BATS_TEST_TMPDIR/model" model.gguf "$BATS_TEST_TMPDIR/plain.gguf"
    [ "$("$WFS" ls "$BATS_TEST_TMPDIR/plain.gguf" tensors)" = "${WEIGHT#tensors/}" ]
    same "$WFS" cat "$BATS_TEST_TMPDIR/plain.gguf" "$WEIGHT/raw" == "$WFS" cat "$PACKED/gptq-4" "$WEIGHT/bf16"
}

@test "info names the packing that the converter refuses" {
    mkdir "$BATS_TEST_TMPDIR/model"
    cp "$PACKED/fp8-blocks/model.safetensors" "$BATS_TEST_TMPDIR/model/"
    sed 's/"quantization_config": *{/&"config_groups":{"a":{"weights":{"strategy":"tensor"}}},/; s/"fp8"/"compressed-tensors"/' \
        "$PACKED/fp8-blocks/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    "$WFS" info --all "$BATS_TEST_TMPDIR/model" | grep -F "the converter refuses weights with the strategy 'tensor'"
}

@test "a quantized source is not quantized again without -o requantize: one note says so" {
    make_input nvfp4 "$BATS_TEST_TMPDIR/model"
    run -0 "$WFS" info "$BATS_TEST_TMPDIR/model"
    [ "$(grep -c requantize <<<"$output")" -eq 1 ]
    [[ $output == *"gguf/: the source is already quantized; -o requantize quantizes it again"* ]]
    run -1 "$WFS" cat "$BATS_TEST_TMPDIR/model" gguf/model-Q4_0.gguf
    [[ $output == *"gguf/model-Q4_0.gguf is left out: the source is already quantized"* ]]
    "$WFS" ls -o requantize "$BATS_TEST_TMPDIR/model" gguf/model-Q4_0.gguf
}

@test "an unknown quantization is never shown as values: the reason names it" {
    local folder=$BATS_TEST_TMPDIR/model name
    mkdir "$folder"
    while read -r sample edit reason; do
        rm -f "$folder"/*
        cp "$PACKED/$sample"/* "$folder/"
        sed -i "$edit" "$folder/config.json" "$folder/model.safetensors"
        name=$("$WFS" ls "$PACKED/$sample" tensors | grep '[.]weight$')
        echo "# $sample: $reason"
        "$WFS" cat "$folder" "tensors/$name/metadata.json" | grep -F "\"refused\":\"" | grep -F "$reason"
        run ! "$WFS" cat "$folder" "tensors/$name/f32"
        [[ $output == *"$reason"* ]]
        run ! "$WFS" cat "$folder" model.safetensors
        [[ $output == *"$reason"* ]]
    done <<'END'
mlx-mxfp4 s/mxfp4/mxfp5/ the quantization mode 'mxfp5' is not supported
mlx-entry s/"bits":.8/"mode":"none"/ the quantization mode 'none' is not supported
bnb-int8 s/"bitsandbytes"/"eetq"/ the quantization method 'eetq' is not supported
fp8-tensor s/"fp8"/"unheard-of"/ the quantization method 'unheard-of' is not supported
hqq-4-axis1 s/4bit_u8/4bit_u9/ packing is '4bit_u9', but 4 bits need '4bit_u8'
bnb-nf4 s/"nf4"/"fp4"/ but must hold the state of a bitsandbytes weight
END
}

# Writes a model whose tensors are "NAME DTYPE SHAPE", of zeros: write_model DIRECTORY CONFIG TENSOR...
write_model() {
    mkdir -p "$1"
    echo "$2" >"$1/config.json"
    "$PYTHON" - "$1/model.safetensors" "${@:3}" <<'END'
import json, math, struct, sys
header, data = {}, b""
for tensor in sys.argv[2:]:
    name, dtype, *shape = tensor.split()
    size = math.prod(map(int, shape)) * {"I8": 1, "U8": 1, "I32": 4, "F32": 4, "BF16": 2}[dtype]
    header[name] = {"dtype": dtype, "shape": [*map(int, shape)], "data_offsets": [len(data), len(data) + size]}
    data += bytes(size)
text = json.dumps(header).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + data)
END
}

@test "no engine gets a model in which nothing is quantized" {
    local start='{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64, "dtype": "bfloat16"'
    write_model "$BATS_TEST_TMPDIR/spqr" "$start, \"quantization_config\": {\"quant_method\": \"spqr\", \"bits\": 3}}" \
        "model.norm.weight BF16 64" "model.layers.0.mlp.up_proj.dense_weights I32 256" "model.layers.0.mlp.up_proj.col_vals I32 9"
    for file in compressed-tensors/W8A8/model.safetensors bitsandbytes/nf4/model.safetensors model.safetensors hf/model.safetensors; do
        run -1 "$WFS" cat "$BATS_TEST_TMPDIR/spqr" "$file"
        [[ $output == *"config.json declares the quantization method 'spqr', and no weight of a known packing"* ]]
    done
    write_model "$BATS_TEST_TMPDIR/kernels" "$start}" "dense/kernel F32 64 64" "dense/bias F32 64"
    for file in compressed-tensors/W8A8/model.safetensors compressed-tensors/W8A8/config.json bitsandbytes/nf4/model.safetensors bitsandbytes/nf4/config.json; do
        run -1 "$WFS" cat "$BATS_TEST_TMPDIR/kernels" "$file"
        [[ $output == *"there is no linear module to quantize among 2 tensors"* ]]
    done
    "$WFS" cat "$BATS_TEST_TMPDIR/kernels" model.safetensors >"$BATS_TEST_TMPDIR/plain"
}

@test "a tensor or a key that no packing knows refuses every product of its weights" {
    local config='{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized"'
    write_model "$BATS_TEST_TMPDIR/left" "$config}}" "a.weight I8 8 64" "a.weight_scale F32 8 1" "a.smooth F32 64"
    write_model "$BATS_TEST_TMPDIR/key" "$config, \"rotation\": \"hadamard\"}}" "a.weight I8 8 64" "a.weight_scale F32 8 1"
    for file in model.gguf model.safetensors hf/model.safetensors compressed-tensors/W8A8/model.safetensors bitsandbytes/nf4/model.safetensors tensors/a.weight/f32; do
        run -1 "$WFS" cat "$BATS_TEST_TMPDIR/left" "$file"
        [[ $output == *"'a.smooth' is left over"* || $file == model.gguf ]]
        run -1 "$WFS" cat "$BATS_TEST_TMPDIR/key" "$file"
        [[ $output == *"the key 'rotation' of quantization_config"* || $file == model.gguf ]]
    done
    same "$WFS" cat "$BATS_TEST_TMPDIR/left" tensors/a.weight/raw == head -c 512 /dev/zero
}
