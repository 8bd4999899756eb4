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
    same "$WFS" cat -o pure,q4_0=absmax7 "$OUT/flux1-dev.safetensors" gguf/model-Q4_0.gguf == "$WFS" cat "$OUT/flux1-dev.safetensors" gguf/model-Q4_0.gguf
    run -1 "$WFS" cat "$OUT/flux1-dev.safetensors" gguf/model-IQ3_S.gguf
    [[ $output == *"does not write this type"* ]]
}

@test "quantized layers of ComfyUI are dequantized in every file, or in none" {
    make flux-plain "$OUT/plain.safetensors"
    for how in mark header; do
        make flux-$how "$OUT/$how.safetensors"
        for file in model.gguf gguf/model-Q8_0.gguf gguf/model-F32.gguf sdcpp/model-f16.gguf diffusers/transformer/diffusion_pytorch_model.safetensors; do
            [ $how = mark ] || [[ $file != sdcpp* ]] || continue # it keeps the prefix
            same "$WFS" cat "$OUT/$how.safetensors" "$file" == "$WFS" cat "$OUT/plain.safetensors" "$file"
        done
    done
    "$WFS" cat "$OUT/mark.safetensors" model.safetensors >"$OUT/model.safetensors"
    same "$WFS" cat "$OUT/model.safetensors" model.gguf == "$WFS" cat "$OUT/plain.safetensors" model.gguf

    make flux-unknown "$OUT/unknown.safetensors"
    for file in model.gguf gguf/model-Q8_0.gguf sdcpp/model-f16.gguf model.safetensors hf/model.safetensors tensors/img_in.weight/f32; do
        run -1 "$WFS" cat "$OUT/unknown.safetensors" "$file"
    done
    run -1 "$WFS" cat "$OUT/unknown.safetensors" model.safetensors
    [[ $output == *"ComfyUI's quantization format 'int8_blockwise' is not supported"* ]]
}

@test "comfy/ is what comfy-quants makes of a model of Qwen-Image" {
    local data=$HERE/../data/comfy format
    for format in fp8_e4m3fn mxfp8 nvfp4; do
        "$WFS" cat "$data/model.safetensors" "comfy/model-$format.safetensors" >"$OUT/$format.safetensors"
        python3 "$HERE/diffusion.py" same "$OUT/$format.safetensors" "$data/model-$format.safetensors"
        "$WFS" info --json "$OUT/$format.safetensors" | jq -e '.notes == [] and .family == "Qwen-Image"'
    done
    make clash "$OUT/clash.safetensors"
    fails 1 "named 'double_blocks.0.img_attn.proj.input_scale', which the source has already" "$WFS" cat "$OUT/clash.safetensors" comfy/model-fp8_e4m3fn.safetensors
    "$WFS" cat "$OUT/clash.safetensors" comfy/model-int8.safetensors >"$OUT/int8.safetensors"
    "$WFS" cat "$OUT/int8.safetensors" tensors/double_blocks.0.img_attn.proj.weight/f32 >"$OUT/f32"
    [ "$(stat -c %s "$OUT/f32")" -eq $((4 * 256 * 256)) ]
    "$WFS" cat "$OUT/int8.safetensors" model.gguf >"$OUT/int8.gguf"
    run ! "$WFS" ls "$OUT/int8.gguf" comfy
}

@test "the converter's GGUF is a source like the model itself" {
    make flux "$OUT/flux.safetensors"
    "$WFS" cat "$OUT/flux.safetensors" model.gguf >"$OUT/flux.gguf"
    same "$WFS" cat "$OUT/flux.gguf" gguf/model-Q3_K_M.gguf == "$WFS" cat "$OUT/flux.safetensors" gguf/model-Q3_K_M.gguf
    "$WFS" info --json "$OUT/flux.gguf" | jq -e '[.notes[] | select(startswith("gguf/"))] == []'
    "$WFS" ls "$OUT/flux.gguf" | diff - <(printf '%s\n' metadata.json gguf model.gguf model.safetensors hf tensors) # none for engines
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
    same "$WFS" cat "$OUT/flux.pt" model.gguf == "$WFS" cat "$OUT/flux-model.pt" model.gguf
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
    same cat "$MNT/gguf/model-Q5_K_M.gguf" == "$WFS" cat "$OUT/flux.safetensors" gguf/model-Q5_K_M.gguf
    unmount "$MNT"
}

@test "a Stable Diffusion XL checkpoint is a pipeline of diffusers" {
    make xl "$OUT/xl.safetensors"
    "$WFS" cp -r "$OUT/xl.safetensors" diffusers "$OUT"
    diff <(cd "$OUT/diffusers" && find . -type f | sort) - <<'END'
./model_index.json
./scheduler/scheduler_config.json
./text_encoder/config.json
./text_encoder/model.safetensors
./text_encoder_2/config.json
./text_encoder_2/model.safetensors
./unet/config.json
./unet/diffusion_pytorch_model.safetensors
./vae/config.json
./vae/diffusion_pytorch_model.safetensors
END
    jq -e '._class_name == "StableDiffusionXLPipeline" and .unet == ["diffusers", "UNet2DConditionModel"] and .tokenizer_2 == ["transformers", "CLIPTokenizer"]' \
        "$OUT/diffusers/model_index.json"
    jq -e '._class_name == "EulerDiscreteScheduler" and .timestep_spacing == "leading"' "$OUT/diffusers/scheduler/scheduler_config.json"
    jq -e '.block_out_channels == [8, 16, 24] and .down_block_types == ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"] and
           .up_block_types == ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"] and .transformer_layers_per_block == [1, 2, 3] and
           .cross_attention_dim == 20 and .projection_class_embeddings_input_dim == 44 and .sample_size == 128 and .use_linear_projection' \
        "$OUT/diffusers/unet/config.json"
    jq -e '.block_out_channels == [8, 12, 16, 20] and .scaling_factor == 0.13025 and .latent_channels == 4 and .sample_size == 1024' "$OUT/diffusers/vae/config.json"
    jq -e '.hidden_size == 64 and .num_hidden_layers == 3 and .hidden_act == "quick_gelu" and .num_attention_heads == 1' "$OUT/diffusers/text_encoder/config.json"
    jq -e '.projection_dim == 6 and .num_hidden_layers == 2 and .hidden_act == "gelu" and .vocab_size == 50' "$OUT/diffusers/text_encoder_2/config.json"
}

@test "the components of a Stable Diffusion XL checkpoint have diffusers' tensors" {
    make xl "$OUT/xl.safetensors"
    "$WFS" cp -r "$OUT/xl.safetensors" diffusers "$OUT"
    for part in unet vae text_encoder text_encoder_2; do
        make names "$OUT/diffusers/$part"/*.safetensors >"$OUT/$part"
        make firsts "$OUT/diffusers/$part"/*.safetensors >"$OUT/$part.firsts"
    done
    [ "$(wc -l <"$OUT/unet")" -eq "$(make names "$OUT/xl.safetensors" | grep -c '^model.diffusion_model.')" ]
    grep -qx 'up_blocks.0.upsamplers.0.conv.weight F32 24 24 3 3' "$OUT/unet"
    grep -qx 'up_blocks.0.attentions.2.transformer_blocks.2.attn2.to_k.weight F32 24 20' "$OUT/unet"
    grep -qx 'down_blocks.1.downsamplers.0.conv.bias F32 16' "$OUT/unet"
    grep -qx 'add_embedding.linear_2.weight F32 32 44' "$OUT/unet"
    grep -qx 'decoder.mid_block.attentions.0.to_q.weight F32 4 4' "$OUT/vae"
    grep -qx 'decoder.up_blocks.0.upsamplers.0.conv.weight F32 8 8 3 3' "$OUT/vae"
    grep -qx 'encoder.down_blocks.1.resnets.0.conv_shortcut.bias F32 12' "$OUT/vae"
    run -1 grep position_ids "$OUT/text_encoder"
    diff "$OUT/text_encoder_2.firsts" - <<'END'
text_model.embeddings.position_embedding.weight 0 1
text_model.embeddings.token_embedding.weight 0 1
text_model.encoder.layers.0.layer_norm1.bias 0 1
text_model.encoder.layers.0.layer_norm1.weight 0 1
text_model.encoder.layers.0.mlp.fc1.bias 0 1
text_model.encoder.layers.0.mlp.fc1.weight 0 1
text_model.encoder.layers.0.self_attn.k_proj.bias 4 5
text_model.encoder.layers.0.self_attn.k_proj.weight 16 17
text_model.encoder.layers.0.self_attn.out_proj.bias 0 1
text_model.encoder.layers.0.self_attn.out_proj.weight 0 1
text_model.encoder.layers.0.self_attn.q_proj.bias 0 1
text_model.encoder.layers.0.self_attn.q_proj.weight 0 1
text_model.encoder.layers.0.self_attn.v_proj.bias 8 9
text_model.encoder.layers.0.self_attn.v_proj.weight 32 33
text_model.encoder.layers.1.layer_norm1.bias 0 1
text_model.encoder.layers.1.layer_norm1.weight 0 1
text_model.encoder.layers.1.mlp.fc1.bias 0 1
text_model.encoder.layers.1.mlp.fc1.weight 0 1
text_model.encoder.layers.1.self_attn.k_proj.bias 4 5
text_model.encoder.layers.1.self_attn.k_proj.weight 16 17
text_model.encoder.layers.1.self_attn.out_proj.bias 0 1
text_model.encoder.layers.1.self_attn.out_proj.weight 0 1
text_model.encoder.layers.1.self_attn.q_proj.bias 0 1
text_model.encoder.layers.1.self_attn.q_proj.weight 0 1
text_model.encoder.layers.1.self_attn.v_proj.bias 8 9
text_model.encoder.layers.1.self_attn.v_proj.weight 32 33
text_model.final_layer_norm.bias 0 1
text_model.final_layer_norm.weight 0 1
text_projection.weight 0 6
END
}

@test "Stable Diffusion 1 and 2 have pipelines of their own" {
    for kind in v1 v2; do
        make "$kind" "$OUT/$kind.safetensors"
        mkdir "$OUT/$kind"
        "$WFS" cp -r "$OUT/$kind.safetensors" diffusers "$OUT/$kind"
    done
    make v1-torch "$OUT/v1.ckpt"
    same "$WFS" ls -R "$OUT/v1.ckpt" diffusers == "$WFS" ls -R "$OUT/v1.safetensors" diffusers
    jq -e '.attention_head_dim == 8 and .sample_size == 64 and (.use_linear_projection | not)' "$OUT/v1/diffusers/unet/config.json"
    jq -e '.attention_head_dim == [1, 1, 1, 1] and .sample_size == 96 and .use_linear_projection and .upcast_attention' "$OUT/v2/diffusers/unet/config.json"
    jq -e '._class_name == "PNDMScheduler"' "$OUT/v1/diffusers/scheduler/scheduler_config.json"
    jq -e '._class_name == "DDIMScheduler" and .prediction_type == "v_prediction"' "$OUT/v2/diffusers/scheduler/scheduler_config.json"
    make names "$OUT/v1/diffusers/unet/diffusion_pytorch_model.safetensors" >"$OUT/names"
    grep -qx 'up_blocks.0.upsamplers.0.conv.weight F32 32 32 3 3' "$OUT/names"
    grep -qx 'down_blocks.0.attentions.1.proj_in.weight F32 8 8 1 1' "$OUT/names"
    make names "$OUT/v2/diffusers/text_encoder/model.safetensors" >"$OUT/names"
    grep -q '^text_model.encoder.layers.22.self_attn.q_proj.weight F32 4 4$' "$OUT/names"
    run -1 grep -e 'layers.23' -e text_projection -e logit_scale "$OUT/names" # the last layer is not used
    jq -e '.num_hidden_layers == 23 and .projection_dim == 512 and .hidden_act == "gelu"' "$OUT/v2/diffusers/text_encoder/config.json"
    "$WFS" info "$OUT/v2.safetensors" | grep -q 'needs prediction_type epsilon'
}

@test "what a single file lacks for a pipeline is told" {
    make xl "$OUT/xl.safetensors"
    "$WFS" info "$OUT/xl.safetensors" | grep -q 'diffusers/: no tokenizer'
    for path in tokenizer tokenizer/vocab.json tokenizer_2/merges.txt; do
        run -1 "$WFS" cat "$OUT/xl.safetensors" "diffusers/$path"
        [[ $output == *"a single file has no vocabulary"* ]]
    done
    make xl-no-vae "$OUT/part.safetensors"
    make inpainting "$OUT/inpainting.safetensors"
    make pipeline "$OUT/pipeline"
    for source in part.safetensors inpainting.safetensors pipeline; do
        run -1 "$WFS" ls "$OUT/$source" diffusers
    done
    reasons() { # KIND PATH REASON
        make "$1" "$OUT/$1.safetensors"
        run -1 "$WFS" cat "$OUT/$1.safetensors" "diffusers/$2"
        [[ $output == *"$3"* ]]
    }
    reasons xl-uneven unet/config.json 'level 2 has attentions with unusual numbers of transformer blocks'
    reasons xl-cut text_encoder_2/model.safetensors 'does not hold queries, keys and values of one size'
    reasons xl-flat text_encoder_2/config.json "text_projection' is no matrix"
    reasons v1-wide vae/diffusion_pytorch_model.safetensors "'decoder.mid.attn_1.q.weight' is no convolution of 1 by 1"
    reasons v1-no-time unet/diffusion_pytorch_model.safetensors "tensor 'time_embedding.linear_2.bias' is missing"
}

@test "a mounted pipeline has exact sizes, and ends with its source" {
    need_fuse
    make v2 "$OUT/v2.safetensors"
    "$WFS" cp -r "$OUT/v2.safetensors" diffusers "$OUT"
    serve "$OUT/v2.safetensors" "$MNT"
    diff -r "$OUT/diffusers" "$MNT/diffusers"
    for path in unet/diffusion_pytorch_model.safetensors text_encoder/model.safetensors; do
        [ "$(stat -c %s "$MNT/diffusers/$path")" -eq "$(wc -c <"$OUT/diffusers/$path")" ]
        same tail -c 1000 "$MNT/diffusers/$path" == tail -c 1000 "$OUT/diffusers/$path"
    done
    printf x | dd of="$OUT/v2.safetensors" bs=1 seek=300 conv=notrunc status=none
    await unreadable "$MNT/diffusers/unet/diffusion_pytorch_model.safetensors"
    unmount "$MNT"
}
