/* "gpt2" from qwen.tiktoken: the tokenizer of the first Qwen. conversion/base.py (_set_vocab_qwen); the
 * tokenization_qwen.py of these repositories. */
#include "models/tokenizers/ranked.h"

#include <stdio.h>
#include <string.h>

static const char *const specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", NULL};

/* Reports whether the files name any special token. */
static bool names_specials(const struct vocab_input *input, const struct tokenizer_files *files)
{
    static const char *const types[] = {"bos", "eos", "unk", "sep", "pad", "cls", "mask"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char id[32], token[32];
        uint64_t unused;
        snprintf(id, sizeof id, "%s_token_id", types[i]);
        snprintf(token, sizeof token, "%s_token", types[i]);
        if (json_u64(json_get(hparams_raw(input->owner), id), &unused) || json_get(files->config, token) != NULL)
            return true;
    }
    return false;
}

static size_t list_ids(const struct vocab_input *input, const struct tokenizer_files *files, uint64_t first,
                       struct special_id *ids)
{
    size_t n_ids = 0;
    if (!names_specials(input, files)) {
        ids[n_ids++] = (struct special_id){"bos", first};
        ids[n_ids++] = (struct special_id){"eos", first};
    }
    ids[n_ids++] = (struct special_id){"unk", first};
    return n_ids;
}

static const struct ranked_kind kind = {.file = "qwen.tiktoken",
                                        .ranks = TIKTOKEN_RANKS_SAID,
                                        .pre = "qwen2",
                                        .n_specials = 208,
                                        .specials = specials,
                                        .list_ids = list_ids};

const struct vocab qwen_vocab = {.name = "ranked tokens of Qwen 1", .file = "qwen.tiktoken", .ranked = &kind};
