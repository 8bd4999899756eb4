#include "fs/tree/tree.h"

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
        [SUBJECT_REPACKED] = "mlx/repacked/: ",
    };
    return paths[subject];
}

const char *note_line(struct note note, struct arena *arena)
{
    return arena_printf(arena, "%s%s", subject_paths(note.subject), note.text);
}
