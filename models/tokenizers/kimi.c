/* "gpt2" from tiktoken.model, Kimi K2's tokenizer. Special tokens are those of tokenizer_config.json, and reserved
 * ones. conversion/deepseek.py, kimi_linear.py; the tokenization_kimi.py of these repositories. */
#include "models/tokenizers/ranked.h"

#include <stdlib.h>
#include <string.h>

enum { RESERVED_TOKENS = 258 };

static void set_specials(struct token_list *list, uint64_t first, uint64_t count, const struct tokenizer_files *files)
{
    for (uint64_t id = first; id < first + count; id++) {
        char *text = arena_printf(list->arena, "<|reserved_token_%llu|>", (unsigned long long)id);
        token_list_set(list, id, text, strlen(text), 0, TOKEN_CONTROL);
    }
    const struct json *decoder = json_get(files->config, "added_tokens_decoder");
    for (struct json_member token = {0}; json_next_member(decoder, &token);) {
        size_t length;
        const char *text = json_string(json_get(token.value, "content"), &length);
        uint64_t id = strtoull(token.key, NULL, 10);
        if (text != NULL && id >= first && id < first + count)
            token_list_set(list, id, text, length, 0, TOKEN_CONTROL);
    }
}

static const struct ranked_kind kimi = {"tiktoken.model", TIKTOKEN_RANKS_SAID, "kimi-k2", RESERVED_TOKENS,
                                        .set_specials = set_specials};
static const struct ranked_kind kimi_linear = {"tiktoken.model", TIKTOKEN_RANKS_SAID,          "kimi-k2",
                                               RESERVED_TOKENS,  .set_specials = set_specials, .end = "[EOS]"};

const struct vocab kimi_vocab = {.name = "Kimi's ranked tokens", .file = "tiktoken.model", .ranked = &kimi};
const struct vocab kimi_linear_vocab = {
    .name = "Kimi Linear's ranked tokens", .file = "tiktoken.model", .ranked = &kimi_linear};
