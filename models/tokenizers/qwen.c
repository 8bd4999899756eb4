/* "gpt2" from qwen.tiktoken: the tokenizer of the first Qwen. conversion/base.py (_set_vocab_qwen); the
 * tokenization_qwen.py of these repositories. */
#include "models/tokenizers/ranked.h"

#include <stdio.h>
#include <string.h>

static const char *const named_specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
enum { N_NAMED_SPECIALS = sizeof named_specials / sizeof *named_specials, EXTRA_TOKENS = 205 };

static uint64_t count_specials(uint64_t n_ranks, uint64_t n_tokens)
{
    (void)n_ranks, (void)n_tokens;
    return N_NAMED_SPECIALS + EXTRA_TOKENS;
}

static void set_specials(struct token_list *list, uint64_t first, uint64_t count, const struct tokenizer_files *files)
{
    for (uint64_t i = 0; i < count; i++) {
        const char *text = i < N_NAMED_SPECIALS
                               ? named_specials[i]
                               : arena_printf(list->arena, "<|extra_%llu|>", (unsigned long long)i - N_NAMED_SPECIALS);
        token_list_set(list, first + i, text, strlen(text), 0, TOKEN_CONTROL);
    }
}

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
                                        .count_specials = count_specials,
                                        .set_specials = set_specials,
                                        .list_ids = list_ids};

const struct vocab qwen_vocab = {.name = "ranked tokens of Qwen 1", .file = "qwen.tiktoken", .ranked = &kind};
