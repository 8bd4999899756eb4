/* XVERSE, whose layers are Llama's. conversion/xverse.py, except keys that several heads share: the converter regroups
 * their rows by a wrong number of heads. */
#include "models/families/llama/llama.h"

static const struct key_row keys[] = {
    {"tensor_data_layout", GGUF_STRING, ALWAYS, .text = "Meta AI original pth"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_hidden},
    {0},
};

static bool note_shared_keys(struct model_builder *builder, struct error *error)
{
    if (dimensions_get(&builder->dimensions, "kv_head") != dimensions_get(&builder->dimensions, "head"))
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "the converter puts rows of keys that several heads share "
                        "into an order that is wrong; here it is right");
    return true;
}

const struct family xverse_family = {
    .name = "xverse",
    .summary = "XVERSE",
    .hf = FAMILY_NAMES({"XverseForCausalLM"}),
    .tensors = {llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"LlamaForCausalLM", "llama", NULL, CONFIG_TABLES(silu_rows)}),
    .keys = {base_keys, keys},
    .vocabs = {&xverse_vocab},
    .adjust = note_shared_keys,
};
