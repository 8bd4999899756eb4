# Diffusion models: which files they have, and what is refused. tests/interop/test_media.py compares the bytes.

load lib

setup() {
    OUT=$BATS_TEST_TMPDIR/out
    MNT=$BATS_TEST_TMPDIR/mnt
    mkdir "$OUT"
}

make() {
    python3 "$HERE/diffusion.py" "$@"
}

@test "a single file of the makers becomes ComfyUI-GGUF's files" {
    make flux "$OUT/flux1-dev.safetensors"
    "$WFS" ls "$OUT/flux1-dev.safetensors" gguf >"$OUT/listed"
    diff "$OUT/listed" <(printf 'model-%s.gguf\n' F32 F16 BF16 Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 Q3_K_L Q3_K_M Q3_K_S Q2_K)
    "$WFS" info "$OUT/flux1-dev.safetensors" | grep -qx 'family      Flux, in GGUF flux'
    "$WFS" info --json "$OUT/flux1-dev.safetensors" | jq -e '.family == "Flux" and .gguf == "flux" and .notes == []'
    "$WFS" cat "$OUT/flux1-dev.safetensors" gguf/model-Q4_K_S.gguf >"$OUT/quantized.gguf"
    "$WFS" info --json "$OUT/quantized.gguf" | jq -e '.gguf == "flux" and .file_type == "Q4_K_S" and .tensors == 24'
    "$WFS" info -o pure "$OUT/flux1-dev.safetensors" | grep -q 'gguf/: the options of llama-quantize and split= have no effect'
    cmp <("$WFS" cat -o pure,q4_0=absmax7 "$OUT/flux1-dev.safetensors" gguf/model-Q4_0.gguf) <("$WFS" cat "$OUT/flux1-dev.safetensors" gguf/model-Q4_0.gguf)
    run -1 "$WFS" cat "$OUT/flux1-dev.safetensors" gguf/model-IQ3_S.gguf
    [[ $output == *"does not write this type"* ]]
}

@test "the converter's GGUF is a source like the model itself" {
    make flux "$OUT/flux.safetensors"
    "$WFS" cat "$OUT/flux.safetensors" model.gguf >"$OUT/flux.gguf"
    cmp <("$WFS" cat "$OUT/flux.gguf" gguf/model-Q3_K_M.gguf) <("$WFS" cat "$OUT/flux.safetensors" gguf/model-Q3_K_M.gguf)
    "$WFS" info --json "$OUT/flux.gguf" | jq -e '[.notes[] | select(startswith("gguf/"))] == []'
    "$WFS" cat "$OUT/flux.safetensors" gguf/model-Q8_0.gguf >"$OUT/quantized.gguf"
    run -1 "$WFS" cat "$OUT/quantized.gguf" gguf/model-Q4_0.gguf
    [[ $output == *"is already Q8_0"* ]]
}

@test "what the converter refuses has no model.gguf, with the reason" {
    make mixed "$OUT/mixed.safetensors"
    run -1 "$WFS" cat "$OUT/mixed.safetensors" model.gguf
    [[ $output == *"'single_transformer_blocks.0.attn.norm_k.weight' has the name that diffusers gives it"* ]]
    make torch "$OUT/flux.pt"
    make torch-model "$OUT/flux-model.pt"
    cmp <("$WFS" cat "$OUT/flux.pt" model.gguf) <("$WFS" cat "$OUT/flux-model.pt" model.gguf)
    make torch-state-dict "$OUT/flux.ckpt"
    run -1 "$WFS" cat "$OUT/flux.ckpt" model.gguf
    [[ $output == *"the tensors are in 'state_dict'"* ]]
    make torch-few "$OUT/few.pt"
    run -1 "$WFS" cat "$OUT/few.pt" gguf/model-Q8_0.gguf
    [[ $output == *"19 tensors, and ComfyUI-GGUF converts pickles with 20 or more"* ]]
}

@test "a Stable Diffusion pipeline is one file, too" {
    make pipeline "$OUT/pipeline"
    "$WFS" cp "$OUT/pipeline" single_file.safetensors single_file-fp16.safetensors "$OUT"
    make names "$OUT/single_file.safetensors" >"$OUT/names"
    grep -qx 'model.diffusion_model.input_blocks.3.0.op.weight F32 4 4' "$OUT/names"
    grep -qx 'model.diffusion_model.input_blocks.4.0.in_layers.0.bias F32 4 4' "$OUT/names"
    grep -qx 'model.diffusion_model.output_blocks.11.1.norm.bias F32 4 4' "$OUT/names"
    grep -qx 'first_stage_model.decoder.up.3.block.2.conv1.weight F32 4 4 1 1' "$OUT/names"
    grep -qx 'first_stage_model.encoder.mid.attn_1.proj_out.weight F32 4 4 1 1' "$OUT/names"
    grep -qx 'first_stage_model.encoder.mid.attn_1.q.bias F32 4' "$OUT/names"
    grep -qx 'cond_stage_model.transformer.text_model.final_layer_norm.weight F32 4' "$OUT/names"
    [ "$(make names "$OUT/single_file-fp16.safetensors" | cut -d ' ' -f 2 | sort -u)" = F16 ]
    rm "$OUT/pipeline/text_encoder/model.safetensors"
    run -1 "$WFS" cat "$OUT/pipeline" single_file.safetensors
}

@test "a mount shows the same bytes, and a change of any component ends them" {
    need_fuse
    make pipeline "$OUT/pipeline"
    make flux "$OUT/flux.safetensors"
    "$WFS" cp "$OUT/pipeline" single_file.safetensors "$OUT"
    serve "$OUT/pipeline" "$MNT"
    cmp "$MNT/single_file.safetensors" "$OUT/single_file.safetensors"
    printf x | dd of="$OUT/pipeline/vae/diffusion_pytorch_model.safetensors" bs=1 seek=300 conv=notrunc status=none
    await unreadable "$MNT/single_file.safetensors"
    unmount "$MNT"
    serve "$OUT/flux.safetensors" "$MNT"
    cmp "$MNT/gguf/model-Q5_K_M.gguf" <("$WFS" cat "$OUT/flux.safetensors" gguf/model-Q5_K_M.gguf)
    unmount "$MNT"
}
