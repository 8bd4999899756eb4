/* A checkpoint as `sd-cli -M convert` of stable-diffusion.cpp writes it: a GGUF without keys, with all tensors under
 * their own names, by name.
 *
 * Every tensor gets the wanted type, vectors too, unless its rows are not whole blocks or its name is among those that
 * the tool leaves alone. Blocks are quantized with an importance of one for every column. Source: src/model_loader.cpp,
 * src/convert.cpp and src/model_io/safetensors_io.cpp of stable-diffusion.cpp. */
#pragma once

#include "formats/artifact.h"
#include "formats/checkpoint.h"

struct sdcpp_type {
    const char *name;  /* as the tool spells it: "q4_K" */
    const char *dtype; /* "Q4_K" */
};

/* The offered types, up to one without a name. */
extern const struct sdcpp_type sdcpp_types[];

/* Reports whether the tool reads the checkpoint's files in a way that wfs follows: safetensors. */
bool sdcpp_reads(const struct checkpoint *checkpoint);

/* Makes the artifact of a type, with views and importances in `arena`; the checkpoint must outlive it. The caller frees
 * it. Fails, with the reason, if the tool refuses the checkpoint. */
bool sdcpp_artifact(const struct checkpoint *checkpoint, const struct sdcpp_type *type, struct arena *arena,
                    struct artifact *ret_artifact, struct error *error);
