/* Targets: the GGUF files that are made from a model, a row each.
 *
 * A target is the path of its file, the kind of model that it is made from, and the maker of its artifact: the
 * converter, llama-quantize, or nobody where the source is a GGUF. fs/tree/target_files.c shows the files. To add one,
 * write its row in targets.c. Every mix (models/quantize/mix.h) is a target besides: gguf/model-MIX.gguf. */
#pragma once

#include "models/quantize/quantize.h"

enum target_model { OF_CHECKPOINT, OF_PACKED_CHECKPOINT, OF_GGUF, OF_PROJECTOR, OF_ADAPTER };

/* Makes the artifact of `type`, which is one of the maker's own; artifact_free() frees it. REPORTED: a note of the
 * checkpoint has the reason. */
typedef enum outcome target_maker(const struct gguf_model *model, const char *type,
                                  const struct quantize_options *options, struct artifact *ret_artifact,
                                  struct error *error);

struct target {
    const char *path; /* of the file: "gguf/model-F16.gguf" */
    enum target_model of;
    target_maker *make;
    const char *type; /* the converter's --outtype, the name of a mix; NULL: the maker has only one */
};

extern const struct target targets[]; /* up to a NULL path, those of one kind of model in the order of listing */

/* llama-quantize; `type` is the name of a mix. */
target_maker target_quantize;
