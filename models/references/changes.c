/* What changed in llama.cpp's converter and llama-quantize, by build. */
#include "models/references/references.h"

const struct change_row change_rows[N_CHANGES] = {
    [REPETITION_PENALTY] = {"repetition-penalty", 10605, 10615,
                            "general.sampling.penalty_repeat is also read from repetition_penalty"},
    [NEMOTRON_LAYER_TYPES] = {"nemotron-layer-types", 10630, 10635,
                              "Nemotron-H: layers_block_type gives the number of layers, and knows the words "
                              "linear_attention and full_attention"},
    [ROWS_BECOME_F16] = {"rows-become-f16", 10644, 10662,
                         "llama-quantize: a tensor whose rows are not whole blocks of Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 or "
                         "IQ4_NL becomes F16; before, the program stopped"},
    [RECURRENT_LAYERS] = {"recurrent-layers", 10830, 10840, "Qwen3-Next, Qwen 3.5: the key attention.recurrent_layers"},
    [FIRST_POST_PROCESSOR] = {"first-post-processor", 11181, 11192,
                              "tokenizer.ggml.add_bos_token and add_eos_token follow the post-processor of "
                              "tokenizer.json before tokenizer_config.json; ByteLevel means false"},
    [WEIGHTS_ONLY_NVFP4] =
        {"weights-only-nvfp4", 11181, 11192,
         "NVFP4 of weights only: the keys general.tensor_extra.name and general.tensor_extra.prec_a4"},
    [CLASSIFIER_POOLING] = {"classifier-pooling", 11269, 11292, "the key classifier.pooling_type"},
    [CLASSIFIER_ACTIVATION] = {"classifier-activation", 11434, 11549, "the key classifier.activation"},
    [NAMED_LAYER_EMBEDDING] = {"named-layer-embedding", 10630, 10662,
                               "llama-quantize: --tensor-type may name per_layer_token_embd.weight beside "
                               "--token-embedding-type"},
    [RESIZE_ALGORITHM] = {"resize-algorithm", 11434, 11549, "LFM2-VL: the key clip.vision.image_resize_algo"},
    [PLAMO_YARN] = {"plamo-yarn", 11218, 11269, "PLaMo 3: YaRN of rope_scaling_factor"},
    [PLAMO_ADDS] = {"plamo-adds", 11292, 11349, "PLaMo 2 and 3: add_bos_token and add_eos_token of the tokenizer"},
    [PLAMO_MODELS] = {"plamo-models", 11434, 11549,
                      "PLaMo 2 and 3: tokenizer.ggml.model by the tokenizer's class, and the end of a turn by its "
                      "token"},
    [POOLING_OF_EMBEDDING_CONFIG] = {"pooling-of-embedding-config", 11434, 11549,
                                     "pooling_type is also read from embedding_config.json"},
    [ROUTER_SCORE_FUNC] = {"router-score-func", 11434, 11549, "expert_gating_func is also read from router_score_func"},
    [LING_SHARED_EXPERTS] = {"ling-shared-experts", 11138, 11173,
                             "Ling 3: without num_shared_experts there is one; before, the converter failed"},
    [GEMMA4_WITHOUT_EXPERTS] = {"gemma4-without-experts", 11434, 11549,
                                "Gemma 4: moe_intermediate_size may be missing; before, the converter failed"},
    [NOMIC_ACTIVATION] = {"nomic-activation", 11218, 11269,
                          "Nomic BERT without experts: another activation than swiglu is refused"},
    [HUNYUAN_DRAFTS] = {"hunyuan-drafts", 11095, 11104,
                        "drafts for Hunyuan models: the ends of texts and turns are those of the target's config.json"},
    [MIMO_MXFP4] = {"mimo-mxfp4", 11095, 11104,
                    "MiMo V2: experts in MXFP4 keep their blocks; before, the converter failed"},
    [MIMO_SCALES] = {"mimo-scales", 11173, 11181,
                     "MiMo V2 in FP8: queries, keys and values of the layers that predict are scaled by their own "
                     "factors"},
    [MIXED_NVFP4] =
        {"mixed-nvfp4", 11434, 11549,
         "NVFP4 beside FP8 whose scales are a matrix, and groups of compressed-tensors that are NVFP4 in part; "
         "before, the converter failed"},
    [LORA_OF_DELTA_NET] = {"lora-of-delta-net", 11292, 11321,
                           "LoRA adapters for linear attention of Qwen 3.5; before, the converter failed"},
    [DFLASH_KEYS] =
        {"dflash-keys", 10644, 10662,
         "DFlash: block_size, scales of embedding and logits from dflash_config; rope.dimension_sections if the "
         "target has them"},
    [DFLASH_CAUSAL] = {"dflash-causal", 10662, 10688,
                       "DFlash: attention.causal, and windows of dflash_config; DSpark: has_confidence_head"},
    [DFLASH_ALL_WINDOWS] =
        {"dflash-all-windows", 11117, 11138,
         "DFlash: use_swa of dflash_config gives all layers a window, whatever layer_types says; before, "
         "no window without layer_types"},
    [DFLASH_ROTARY] = {"dflash-rotary", 11292, 11321,
                       "DFlash: rope.dimension_count, attention.value_scale, and the embedding's scale of a Gemma"},
    [MASK_EMBEDDING] = {"mask-embedding", 11292, 11349,
                        "DFlash: mask_embedding.pt replaces a row of the target's embedding"},
    [MTP_OF_GLM45] = {"mtp-of-glm-4.5", 10593, 10603, "GLM-4.5: the converter's --mtp and --no-mtp"},
    [MTP_OF_MIMO] = {"mtp-of-mimo", 11173, 11181, "MiMo V2: the converter's --mtp and --no-mtp"},
    [TTS_WIDE_FEED_FORWARD] = {"tts-wide-feed-forward", 10739, 10773,
                               "Qwen3-TTS: ffn_down of the code predictor is of F32 in every file"},
    [CLASSES_10531] = {"classes-10531", 10472, 10531, "classes and pre-tokenizers that b10472 does not know"},
    [CLASSES_10593] = {"classes-10593", 10531, 10593, "classes and pre-tokenizers that b10531 does not know"},
    [CLASSES_10662] = {"classes-10662", 10644, 10662, "classes and pre-tokenizers that b10644 does not know"},
    [CLASSES_10773] = {"classes-10773", 10739, 10773, "classes and pre-tokenizers that b10739 does not know"},
    [CLASSES_10816] = {"classes-10816", 10773, 10816, "classes and pre-tokenizers that b10773 does not know"},
    [CLASSES_10830] = {"classes-10830", 10816, 10830, "classes and pre-tokenizers that b10816 does not know"},
    [CLASSES_11028] = {"classes-11028", 10909, 11028, "classes and pre-tokenizers that b10909 does not know"},
    [CLASSES_11076] = {"classes-11076", 11028, 11076, "classes and pre-tokenizers that b11028 does not know"},
    [CLASSES_11138] = {"classes-11138", 11117, 11138, "classes and pre-tokenizers that b11117 does not know"},
    [CLASSES_11173] = {"classes-11173", 11138, 11173, "classes and pre-tokenizers that b11138 does not know"},
    [CLASSES_11292] = {"classes-11292", 11269, 11292, "classes and pre-tokenizers that b11269 does not know"},
    [CLASSES_11368] = {"classes-11368", 11349, 11368, "classes and pre-tokenizers that b11349 does not know"},
    [CLASSES_11382] = {"classes-11382", 11368, 11382, "classes and pre-tokenizers that b11368 does not know"},
    [CLASSES_11549] = {"classes-11549", 11434, 11549, "classes and pre-tokenizers that b11434 does not know"},
};

const struct reference_tool reference_tools[] = {
    {"llama.cpp", "b11549", "GGUF files", "model.gguf mtp-model.gguf gguf/ mmproj.gguf adapter.gguf"},
    {"transformers", "4.57.6", "hf/, the defaults of config.json", "hf/"},
    {"llmcompressor", "0.14.0.1", "compressed-tensors/", "compressed-tensors/"},
    {"mlx-lm", "0.32.2", "mlx/", "mlx/"},
    {"bitsandbytes", "0.50.2", "bitsandbytes/", "bitsandbytes/"},
    {"mergekit", "0.1.5", "merges by recipes", NULL},
    {"peft", "0.17.1", "merged LoRA adapters", NULL},
    {"whisper.cpp", "233fe1fc9", "ggml-model.bin", "ggml-model.bin"},
    {"CTranslate2", "4.8.5", "ctranslate2/", "ctranslate2/"},
    {"ComfyUI-GGUF", "4dfc025e4", "GGUF files of diffusion models", NULL},
    {"diffusers", "58eb52c08", "single_file.safetensors, diffusers/",
     "single_file.safetensors single_file-fp16.safetensors original.safetensors diffusers/"},
    {"stable-diffusion.cpp", "97d299080", "sdcpp/", "sdcpp/"},
    {0},
};
