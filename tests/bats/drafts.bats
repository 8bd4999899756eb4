# Draft models: their GGUF has the tokenizer of the model that they draft for, which -o base= names.

load lib

setup_file() {
    load lib
    "$PYTHON" - "$BATS_FILE_TMPDIR" <<'EOF'
import json, os, struct, sys
def model(name, config, tensors):
    path = os.path.join(sys.argv[1], name)
    os.mkdir(path)
    json.dump(config, open(path + "/config.json", "w"))
    header, data = {}, b""
    for tensor, (dtype, shape, raw) in tensors.items():
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    header = json.dumps(header).encode()
    open(path + "/model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + data)
sizes = {"hidden_size": 4, "intermediate_size": 4, "num_attention_heads": 2, "num_key_value_heads": 2,
         "max_position_embeddings": 8, "rms_norm_eps": 1e-6, "vocab_size": 5}
model("base", {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 9, **sizes},
      {"model.embed_tokens.weight": ("F32", [5, 4], bytes(80))})
json.dump({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}},
          open(sys.argv[1] + "/base/tokenizer.json", "w"))
model("draft", {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": 2, **sizes},
      {"fc.weight": ("F32", [4, 12], bytes(192)), "d2t": ("I64", [2], struct.pack("<2q", 1, 3))})
model("windows", {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", "num_hidden_layers": 2, **sizes,
                  "dflash_config": {"target_layer_ids": [1], "mask_token_id": 3, "use_swa": True, "swa_window_size": 6}},
      {"fc.weight": ("F32", [4, 4], bytes(64)), "norm.weight": ("F32", [4], bytes(16))})
EOF
}

setup() {
    need_fuse
    need_numpy
    BASE=$BATS_FILE_TMPDIR/base
    DRAFT=$BATS_FILE_TMPDIR/draft
    MNT=$BATS_TEST_TMPDIR/mnt
}

@test "a draft model has its base's tokenizer and the map of its tokens to the base's" {
    serve -o "base=$BASE" "$DRAFT" "$MNT"
    same cat "$MNT/model.gguf" == "$WFS" cat -o "base=$BASE" "$DRAFT" model.gguf
    "$WFS" info "$MNT/model.gguf" | grep -q '^tokenizer   BPE, 5 tokens'
    [ "$(tail -c 32 "$MNT/model.gguf" | od -A n -t d8 | tr -s ' \n' ' ')" = " 1 4 0 0 " ]
    unmount "$MNT"
    server_is_quiet
}

# As convert_hf_to_gguf.py of b10662, b10688 and b11549 writes them.
@test "use_swa of a DFlash draft gives its layers a window, in builds that know it" {
    local draft=$BATS_FILE_TMPDIR/windows
    windows_of() {
        "$WFS" cat -o "base=$BASE,llama.cpp=b$1" "$draft" model.gguf >"$BATS_TEST_TMPDIR/$1.gguf"
        "$WFS" cat "$BATS_TEST_TMPDIR/$1.gguf" metadata.json |
            jq -c '[.metadata | to_entries[] | select(.key | startswith("dflash.attention.sliding_window")) | .value]'
    }
    [ "$(windows_of 10662)" = "[]" ]
    [ "$(windows_of 10688)" = "[6,[false,false]]" ]
    [ "$(windows_of 11549)" = "[6,[true,true]]" ]

    # Without use_swa, layer_types counts, which only a class of transformers fills in.
    draft=$BATS_TEST_TMPDIR/classless
    cp -r "$BATS_FILE_TMPDIR/windows" "$draft"
    jq '.model_type = "unheard_of" | .use_sliding_window = true | .sliding_window = 6 | del(.dflash_config.use_swa)' \
        "$BATS_FILE_TMPDIR/windows/config.json" >"$draft/config.json"
    [ "$(windows_of 11549)" = "[6]" ]
}

# The converter has no place for d2t: llama.cpp would take the draft's tokens for the base's.
@test "a DFlash draft with fewer tokens than its base is refused" {
    cp -r "$DRAFT" "$BATS_TEST_TMPDIR/fewer"
    cp "$BATS_FILE_TMPDIR/windows/config.json" "$BATS_TEST_TMPDIR/fewer/"
    fails 1 "tensor 'd2t': only a DSpark draft can have fewer tokens than the base" \
        "$WFS" cat -o "base=$BASE" "$BATS_TEST_TMPDIR/fewer" model.gguf
}

# As convert_hf_to_gguf.py of b11549 writes it: 24 files of 12 other drafts were compared once.
@test "a DFlash draft's own row for masks replaces the base's, in builds that read it" {
    draft=$BATS_TEST_TMPDIR/masked target=$BATS_TEST_TMPDIR/target
    cp -r "$BATS_FILE_TMPDIR/windows" "$draft"
    cp -r "$BASE" "$target"
    (cd "$BATS_TEST_DIRNAME" && "$PYTHON" - "$target" "$draft" <<'EOF'
import json, struct, sys
import make_torch_file
target, draft = sys.argv[1:]
floats = lambda first, count: struct.pack(f"<{count}f", *range(first, first + count))
header = {name: {"dtype": "F32", "shape": [5, 4], "data_offsets": [i * 80, i * 80 + 80]}
          for i, name in enumerate(["model.embed_tokens.weight", "lm_head.weight"])}
header = json.dumps(header).encode()
open(target + "/model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + floats(0, 20) + floats(100, 20))
make_torch_file.write(draft + "/mask_embedding.pt", {"embedding": ("F32", [4], floats(50, 4))}, "FloatStorage",
                      lambda state: {"mask_token_id": 3, **state})
EOF
    )
    values_of() { "$WFS" cat "$BATS_TEST_TMPDIR/gguf" "tensors/$1.weight/f32" | od -A n -v -t f4 -w16 | tr -s ' ' | paste -s -d ,; }
    "$WFS" cat -o "base=$target" "$draft" model.gguf >"$BATS_TEST_TMPDIR/gguf"
    [ "$(values_of token_embd)" = " 0 1 2 3, 4 5 6 7, 8 9 10 11, 50 51 52 53, 16 17 18 19" ]
    [ "$(values_of output)" = " 100 101 102 103, 104 105 106 107, 108 109 110 111, 112 113 114 115, 116 117 118 119" ]
    "$WFS" cat -o "base=$target,llama.cpp=b11292" "$draft" model.gguf >"$BATS_TEST_TMPDIR/gguf"
    fails 1 "there is no 'tensors/token_embd.weight'" "$WFS" cat "$BATS_TEST_TMPDIR/gguf" tensors/token_embd.weight/f32

    fails 1 "mask_embedding.pt needs tensor 'model.embed_tokens.weight' of the base" \
        "$WFS" cat -o "base=$BATS_FILE_TMPDIR/draft" "$draft" model.gguf
    sed -i 's/"mask_token_id": 3/"mask_token_id": 2/' "$draft/config.json"
    fails 1 "mask_embedding.pt: mask_token_id is not 2, as dflash_config has it" \
        "$WFS" cat -o "base=$target" "$draft" model.gguf
    echo >"$draft/mask_embedding.pt"
    fails 1 "mask_embedding.pt cannot be read; llama.cpp b11292 and older builds leave it out: use -o llama.cpp=b11292" \
        "$WFS" cat -o "base=$target" "$draft" model.gguf
    "$WFS" info -o "base=$target" "$draft" | grep -q "^notes .*mask_embedding.pt: not a checkpoint"
}

# What the converter subtracts from, adds to and drops of these drafts comes back.
@test "the GGUF of a draft model becomes the draft again" {
    "$WFS" cat -o "base=$BASE" "$DRAFT" model.gguf >"$BATS_TEST_TMPDIR/eagle.gguf"
    "$WFS" cp -r "$BATS_TEST_TMPDIR/eagle.gguf" hf "$BATS_TEST_TMPDIR/eagle"
    [ "$(jq -c '[.architectures[0], .draft_vocab_size, .vocab_size, .eagle_aux_hidden_state_layer_ids, .target_hidden_size,
        .num_hidden_layers, .norm_before_fc]' "$BATS_TEST_TMPDIR/eagle/config.json")" = '["LlamaForCausalLMEagle3",2,5,[2,4,6],4,1,false]' ]
    [ "$("$WFS" ls "$BATS_TEST_TMPDIR/eagle" tensors | tr '\n' ' ')" = "d2t fc.weight " ]
    same "$WFS" cat "$BATS_TEST_TMPDIR/eagle" tensors/d2t/raw == "$WFS" cat "$DRAFT" tensors/d2t/raw
    same "$WFS" cat -o "base=$BASE" "$BATS_TEST_TMPDIR/eagle" tensors/d2t/raw == "$WFS" cat "$DRAFT" tensors/d2t/raw

    "$WFS" cat -o "base=$BASE" "$BATS_FILE_TMPDIR/windows" model.gguf >"$BATS_TEST_TMPDIR/dflash.gguf"
    "$WFS" cp -r "$BATS_TEST_TMPDIR/dflash.gguf" hf "$BATS_TEST_TMPDIR/dflash"
    [ "$(jq -c '[.architectures[0], .block_size, .dflash_config, .vocab_size, .use_sliding_window, .sliding_window, .layer_types]' \
        "$BATS_TEST_TMPDIR/dflash/config.json")" = \
        '["DFlashDraftModel",16,{"target_layer_ids":[1],"mask_token_id":3},5,true,6,["sliding_attention","sliding_attention"]]' ]
    [ "$("$WFS" ls "$BATS_TEST_TMPDIR/dflash" tensors | tr '\n' ' ')" = "fc.weight norm.weight " ]
}

@test "a draft model without a base shows everything else, and says why" {
    "$WFS" cat "$DRAFT" model.safetensors | cmp - "$DRAFT/model.safetensors"
    run "$WFS" cat "$DRAFT" model.gguf
    [ "$status" -eq 1 ]
    [[ "$output" == *"a draft model needs the tokenizer of the model it drafts for; use -o base=DIR"* ]]
    run "$WFS" ls -o "base=$BATS_TEST_TMPDIR/absent" "$DRAFT"
    [ "$status" -eq 1 ]
    [[ "$output" == *"option base: $BATS_TEST_TMPDIR/absent: No such file or directory" ]]
}

# Writes the checkpoint that a golden file describes.
golden_checkpoint()
{
    "$PYTHON" -c 'import sys, pathlib; sys.path.insert(0, sys.argv[1]); import golden
golden.make(golden.load(sys.argv[2]), pathlib.Path(sys.argv[3]))' "$BATS_TEST_DIRNAME/../golden" "$1" "$BATS_TEST_TMPDIR/$1"
}

@test "layers of multi-token prediction are files of their own, also quantized" {
    golden_checkpoint hy3
    local model=$BATS_TEST_TMPDIR/hy3
    "$WFS" ls "$model" | grep -Fx mtp-model.gguf
    "$WFS" ls "$model" gguf | grep -Fx mtp-model-Q8_0.gguf
    [ "$("$WFS" ls -o show=Q8_0 "$model" gguf | grep model- | tr '\n' ' ')" = "model-Q8_0.gguf mtp-model-Q8_0.gguf " ]
    "$WFS" cat "$model" gguf/mtp-model-Q8_0.gguf >"$BATS_TEST_TMPDIR/mtp.gguf"
    "$WFS" ls "$BATS_TEST_TMPDIR/mtp.gguf" tensors | grep -F blk.2.attn_q.weight
    run "$WFS" ls "$BATS_TEST_TMPDIR/mtp.gguf" tensors
    [[ $output != *blk.1.* ]]
    run --separate-stderr "$WFS" cat -o fuse=gate-up-exps "$model" model.gguf
    ((status == 1))
    [[ $stderr == *"--fuse-gate-up-exps fails for the architecture hy_v3"* ]]
    "$WFS" ls -o library "$model" models/local/hy3 | grep -Fx mtp-hy3-Q8_0.gguf
    "$WFS" cat -o library "$model" models/local/hy3/mtp-hy3-Q8_0.gguf | cmp - "$BATS_TEST_TMPDIR/mtp.gguf"
    # as `ollama create` writes them: the draft after the model, and its architecture in the configuration
    local store=ollama/manifests/registry.ollama.ai/library/hy3 blob
    "$WFS" cat -o library "$model" $store/q8_0 >"$BATS_TEST_TMPDIR/manifest"
    [ "$(jq -r '.layers[0, 1].mediaType' "$BATS_TEST_TMPDIR/manifest" | tr '\n' ' ')" = "application/vnd.ollama.image.model application/vnd.ollama.image.draft " ]
    blob=$(jq -r '.layers[1].digest' "$BATS_TEST_TMPDIR/manifest")
    "$WFS" cat -o library "$model" "ollama/blobs/${blob/:/-}" | cmp - "$BATS_TEST_TMPDIR/mtp.gguf"
    blob=$(jq -r '.config.digest' "$BATS_TEST_TMPDIR/manifest")
    [ "$("$WFS" cat -o library "$model" "ollama/blobs/${blob/:/-}" | jq -c .draft)" = '{"model_format":"gguf","architecture":"hy_v3"}' ]
    run "$WFS" cat -o fuse=kv "$model" model.gguf
    ((status == 2))
    [[ $output == *"'kv' is neither qkv nor gate-up-exps"* ]]
}

@test "a model without such layers has no such file, and mtp=no changes nothing" {
    golden_checkpoint qwen3-fp8
    local model=$BATS_TEST_TMPDIR/qwen3-fp8
    run "$WFS" cat "$model" mtp-model.gguf
    ((status == 1))
    [[ $output == *"no layers of multi-token prediction"* ]]
    same "$WFS" cat "$model" model.gguf == "$WFS" cat -o mtp=no "$model" model.gguf
}
