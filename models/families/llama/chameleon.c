/* Chameleon: the language model, without the image tokenizer. conversion/chameleon.py.
 *
 * The converter takes the norms of queries and keys from their first head, which equals all others unless ranks trained
 * their own. It fails if heads share keys; wfs then keeps each head's norm.
 *
 * There is no way back: the class needs the tokens for parts of images, and the image tokenizer. */
#include "models/families/llama/llama.h"

#define ATTENTION "model.layers.{}.self_attn."

#define OF_FIRST(name, heads)                                                                                          \
    {                                                                                                                  \
        ATTENTION name, "blk.{}.attn_" name, "first (half pair) -> " heads " (pair half)", .when = "!grouped",         \
                                                                                           .forward_only = true        \
    }
#define OF_EACH(name, heads, ...)                                                                                      \
    {                                                                                                                  \
        ATTENTION name, "blk.{}.attn_" name, heads " (half pair) -> " heads " (pair half)", __VA_ARGS__                \
    }

static const struct key_row keys[] = {{"swin_norm", GGUF_BOOL, OR_DEFAULT, "swin_norm", 0}, {0}};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t head = dimensions_get(dimensions, "head");
    if (head != 0)
        dimensions_set(dimensions, "first", head);
    if (dimensions_get(dimensions, "kv_head") != head)
        dimensions_set(dimensions, "grouped", 1);
}

static bool note_shared_keys(struct model_builder *builder, struct error *error)
{
    if (dimensions_get(&builder->dimensions, "grouped") != 0)
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "the converter fails on Chameleon where heads share keys; "
                        "norms of queries and keys are those of each head");
    return true;
}

const struct family chameleon_family = {
    .name = "chameleon",
    .summary = "Chameleon",
    .hf = FAMILY_NAMES({"ChameleonForConditionalGeneration"}, {"ChameleonForCausalLM"}),
    .tensors = {TENSORS(OF_FIRST("q_norm", "head"), OF_FIRST("k_norm", "kv_head"),
                        OF_EACH("q_norm", "head", .when = "!grouped", .backward_only = true),
                        OF_EACH("k_norm", "kv_head", .when = "!grouped", .backward_only = true),
                        OF_EACH("q_norm", "head", .when = "grouped"), OF_EACH("k_norm", "kv_head", .when = "grouped"),
                        {"model.vqmodel.*", NULL}),
                llama_tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .add_dimensions = add_dimensions,
    .adjust = note_shared_keys,
};
