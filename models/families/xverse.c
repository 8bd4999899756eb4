/* XVERSE, whose layers are Llama's. conversion/xverse.py, but for keys that several heads share: the converter regroups
 * their rows by a number of heads that they do not have. */
#include "models/families/llama.h"

static const struct family_name names[] = {{"XverseForCausalLM"}, {0}};

static const struct key_row keys[] = {
    {"tensor_data_layout", GGUF_STRING, ALWAYS, .text = "Meta AI original pth"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_hidden},
    {0},
};

static bool note_shared_keys(struct draft *draft, struct error *error)
{
    (void)error;
    if (facts_get(&draft->facts, "kv_head") != facts_get(&draft->facts, "head"))
        checkpoint_note(draft->model->checkpoint,
                        "model.gguf: the converter puts rows of keys that several heads share "
                        "into an order that is wrong; here it is right");
    return true;
}

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'silu'"},
    {0},
};

static const struct config_form forms[] = {{"LlamaForCausalLM", "llama", NULL, config_rows}, {0}};

const struct family xverse_family = {
    .name = "xverse",
    .summary = "XVERSE",
    .hf = names,
    .tensors = {llama_tensors, decoder_tensors},
    .forms = forms,
    .keys = {base_keys, keys},
    .vocabs = {&xverse_vocab},
    .adjust = note_shared_keys,
};
