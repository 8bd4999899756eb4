/* The packed weights of a checkpoint, found by all known packings. */
#pragma once

#include "formats/checkpoint.h"
#include "models/packings/packing.h"

/* All packings, NULL at the end. */
extern const struct packing *const packings[];

/* Returns the packer with that name, of any packing; NULL: none. */
const struct packer *packer_find(const char *name);

/* The packing that a checkpoint declares in config.json (params.json for Mistral's format), or in hf_quant_config.json.
 * The values live until packing_config_close(). */
struct packing_config {
    struct document *documents[2];
    const struct json *model;        /* all of that file */
    const struct json *quantization; /* NULL: config.json declares no packing */
    const char *method;              /* in the arena; "" if none is named */
    const struct dtype *dtype;
    bool is_nvfp4;                   /* the converter treats it as an NVFP4 checkpoint */
    struct json_document *comfy;     /* ComfyUI's description of quantized layers in the header of the file */
    const struct json *comfy_layers; /* of that; NULL: none */
};

bool packing_config_open(const struct checkpoint *checkpoint, struct arena *arena, struct packing_config *ret_config,
                         struct error *error);
void packing_config_close(struct packing_config *config);

/* The packed weights of a set. A weight that repeats an earlier name is refused, like a weight whose parts disagree. */
struct unpacked_weights {
    struct unpacked *weights; /* in the order of their keys */
    size_t n_weights;
};
struct unpacked_weights packings_find(const struct packing_input *input);

/* The packed weights of a checkpoint. */
struct packed_weights {
    const struct checkpoint *checkpoint;
    const char *method; /* like `dtype` and `is_nvfp4`: as in packing_config */
    const struct dtype *dtype;
    bool is_nvfp4;
    const char *unread; /* why config.json cannot be read, which then counts as empty; NULL: it can */
    bool is_unreached;  /* because a source could not be reached: reading may work later */
    struct unpacked_weights found;
};

/* Returns the packed weights, found on the first call, for all callers. They live as long as the checkpoint. */
const struct packed_weights *packings_of(const struct checkpoint *checkpoint);

/* A set with plain tensors in place of the packed ones, in the converter's order, without tensors that change no value.
 * If the converter does not know the method, the set is like that of the model unpacked and saved again: sorted by
 * name, in the dtype from before packing. */
struct plain_set {
    const struct tensor_set *set;     /* not sealed, unless it is the stored set */
    struct tensor_set *made;          /* `set`, for sealing; NULL: `set` is the stored set, perhaps reordered */
    const struct unpacked **unpacked; /* by tensor, NULL: stored plain. The array is NULL if nothing is packed */
    const char *beyond;               /* the feature that makes the converter refuse the model; NULL: none */
    bool is_saved_again;
};

/* How to unpack. */
struct plain_wish {
    struct arena *arena;          /* owns the views; the arena of packings_unpack() owns the set */
    const uint32_t *order;        /* of the stored tensors; NULL: as stored */
    bool is_saved_again;          /* like a model unpacked and saved again, even if the converter knows the method */
    const struct dtype *saved_as; /* the dtype for that, rounded to once; NULL: the dtype from before packing */
    bool keeps_blocks;            /* use blocks wherever they are exact */
    bool keeps_groups;            /* use the values in F32, which remember their codes (packed.h) */
    bool keeps_mxfp4;             /* the converter copies packed MXFP4 of the model's family */
    const struct references *references; /* whose converter; NULL: the newest */
};

/* Fails if config.json cannot be read and weights may be packed. */
bool packings_unpack(const struct packed_weights *packed, const struct plain_wish *wish, struct arena *arena,
                     struct plain_set *ret_plain, struct error *error);

/* The tensors of a checkpoint, with all packed weights dequantized as if the model had been unpacked and saved again.
 */
struct plain_tensors {
    const struct tensor_set *set; /* sealed; the stored set if nothing is packed; NULL: a weight cannot be unpacked */
    const char *refusal;          /* why `set` is NULL */
};

/* Returns them, made on the first call, for all callers. They live as long as the checkpoint. */
const struct plain_tensors *packings_plain(const struct checkpoint *checkpoint);

/* Reports whether any packing supports a quant_method. */
bool packing_is_known(const char *method);
