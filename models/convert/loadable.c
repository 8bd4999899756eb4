#include "models/convert/loadable.h"

#include "models/family/family.h"
#include "models/relation/pattern.h"

#include <inttypes.h>
#include <string.h>

static const char consequence[] = "llama.cpp refuses the file, as it does the converter's";

/* Architectures whose layers may have no tensors, or whose tensors' names do not begin with "blk.". */
static const char *const without_blocks[] = {"deci", "t5", "t5encoder", "wavtokenizer-dec"};

/* Tensors that llama.cpp requires in every layer, and that some checkpoints have in a part of the layers. */
static const struct {
    const char *architecture, *tensor, *reason;
} required[] = {
    {"gemma3n", "blk.{}.attn_k.weight",
     "transformers 5 does not save the keys and values of layers that share others'"},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Notes that the tokens are not as many as the rows of the embedding. */
static void note_rows(const struct gguf_model *model, struct arena *scratch)
{
    struct gguf_array tokens;
    struct error unused;
    const struct tensor *embedding = tensor_set_find_text(model->tensors, "token_embd.weight");
    if (embedding == NULL || embedding->view->rank != 2 ||
        !gguf_get_array(&model->kvs, "tokenizer.ggml.tokens", scratch, &tokens, &unused))
        return;
    uint64_t n_rows = embedding->view->shape[0];
    if (n_rows != tokens.count)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "the token embedding has %" PRIu64 " rows, the tokenizer %" PRIu64 " tokens: %s; "
                        "set vocab_size in config.json to the number of rows",
                        n_rows, tokens.count, consequence);
}

static void note_merges(const struct gguf_model *model, struct arena *scratch)
{
    const char *kind = gguf_get_text(&model->kvs, "tokenizer.ggml.model", scratch),
               *pre = gguf_get_text(&model->kvs, "tokenizer.ggml.pre", scratch);
    bool is_bpe = kind != NULL && (strcmp(kind, "gpt2") == 0 || strcmp(kind, "gemma4") == 0);
    if (is_bpe && gguf_kvs_find(&model->kvs, "tokenizer.ggml.merges") == NULL &&
        (pre == NULL || strcmp(pre, "kimi-k2") != 0))
        checkpoint_note(model->checkpoint, SUBJECT_GGUF, "the BPE tokenizer has no merges: %s", consequence);
}

/* Counts the layers below `n_layers` that have a tensor of a pattern, and returns the first without in *ret_first. */
static uint64_t count_layers(const struct gguf_model *model, const char *pattern, uint64_t n_layers,
                             struct arena *scratch, uint64_t *ret_first)
{
    uint64_t numbers[PATTERN_NUMBERS], n_found = 0;
    bool *found = arena_array(scratch, n_layers + 1, sizeof *found);
    memset(found, 0, (n_layers + 1) * sizeof *found);
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        if (!pattern_match(pattern, tensor->name, tensor->name_length, numbers) || numbers[0] >= n_layers)
            continue;
        n_found += !found[numbers[0]];
        found[numbers[0]] = true;
    }
    for (*ret_first = 0; found[*ret_first]; ++*ret_first)
        ;
    return n_found;
}

/* Notes a tensor that only some layers have; none has it if it has another name, such as that of a fused matrix. */
static void note_layers(const struct gguf_model *model, const char *pattern, const char *reason, uint64_t n_layers,
                        struct arena *scratch)
{
    uint64_t first, n_found = count_layers(model, pattern, n_layers, scratch, &first);
    if (n_found > 0 && n_found < n_layers)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "%" PRIu64 " of %" PRIu64 " layers have %s, layer %" PRIu64 " has none%s%s: %s", n_found,
                        n_layers, pattern_count(pattern) == 1 && strchr(pattern, '*') ? "tensors" : pattern, first,
                        reason != NULL ? "; " : "", reason != NULL ? reason : "", consequence);
}

static bool has_blocks(const char *architecture)
{
    for (size_t i = 0; i < COUNT(without_blocks); i++)
        if (strcmp(without_blocks[i], architecture) == 0)
            return false;
    return true;
}

void loadable_note(const struct gguf_model *model)
{
    enum { MAX_LAYERS = 1 << 16 };
    struct arena *scratch = arena_new();
    const char *architecture = family_architecture(model->family);
    uint64_t n_layers = 0;
    note_rows(model, scratch);
    note_merges(model, scratch);
    gguf_get_u64(&model->kvs, arena_printf(scratch, "%s.block_count", architecture), &n_layers);
    if (n_layers > 0 && n_layers <= MAX_LAYERS && has_blocks(architecture))
        note_layers(model, "blk.{}.*", NULL, n_layers, scratch);
    for (size_t i = 0; i < COUNT(required) && n_layers <= MAX_LAYERS; i++)
        if (strcmp(required[i].architecture, architecture) == 0)
            note_layers(model, required[i].tensor, required[i].reason, n_layers, scratch);
    arena_free(scratch);
}
