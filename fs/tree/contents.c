#include "fs/tree/content.h"
#include "fs/tree/tree.h"

extern const struct content archive_files_content, cache_tag_content, component_files_content, library_files_content,
    metadata_file_content, side_files_content, tensor_files_content;

#define PRODUCT(row)                                                                                                   \
    &(const struct content)                                                                                            \
    {                                                                                                                  \
        .product = &(row)                                                                                              \
    }

/* One row a line. */
/* clang-format off */
const struct content *const contents[] = {
    &metadata_file_content,
    PRODUCT(gguf_product),
    PRODUCT(diffusion_gguf_product),
    PRODUCT(adapter_product),
    PRODUCT(mmproj_product),
    PRODUCT(mtp_product),
    PRODUCT(whisper_product),
    PRODUCT(ctranslate2_product),
    PRODUCT(sdcpp_product),
    PRODUCT(comfy_product),
    PRODUCT(diffusers_product),
    PRODUCT(hf_product),
    PRODUCT(layouts_product),
    PRODUCT(compressed_tensors_product),
    PRODUCT(fp8_blocks_product),
    PRODUCT(modelopt_product),
    PRODUCT(mlx_product),
    PRODUCT(bitsandbytes_product),
    &tensor_files_content,
    &component_files_content,
    PRODUCT(single_file_product),
    &archive_files_content,
    &side_files_content,
    &library_files_content,
    &cache_tag_content,
    NULL,
};
/* clang-format on */

/* Returns the prefix of notes on this subject: "model.gguf: "; "" for the source. */
static const char *subject_paths(enum subject subject)
{
    static const char *const paths[] = {
        [SUBJECT_SOURCE] = "",
        [SUBJECT_GGUF] = "model.gguf: ",
        [SUBJECT_QUANTIZED] = "gguf/: ",
        [SUBJECT_PROJECTOR] = "mmproj.gguf: ",
        [SUBJECT_ADAPTER] = "adapter.gguf: ",
        [SUBJECT_WEIGHTS] = "model.safetensors, hf/: ",
        [SUBJECT_DIRECTORY] = "hf/: ",
        [SUBJECT_WHISPER] = "ggml-model.bin, ggml/: ",
        [SUBJECT_PIPELINE] = "diffusers/: ",
        [SUBJECT_FREE_PTQ] = "compressed-tensors/: ",
        [SUBJECT_REPACKED] = "mlx/repacked/: ",
    };
    return paths[subject];
}

const char *note_line(struct note note, struct arena *arena)
{
    return arena_printf(arena, "%s%s", subject_paths(note.subject), note.text);
}
