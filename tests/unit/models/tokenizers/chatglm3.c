/* SentencePiece pieces and what becomes of them: ChatGLM 3's tokens, and a piece of one NUL. The expected keys are the
 * converter's, of the same files beside small checkpoints. */
#include "tests/unit/models/tokenizers/kinds.h"
#include "tests/unit/write_pieces.h"

static void chatglm3(void)
{
    static const char *const files[] = {"config.json", "tokenizer.model", NULL};
    static const char config[] =
        "{\"_name_or_path\":\"THUDM/chatglm3-6b\",\"padded_vocab_size\":18,\"eos_token_id\":2}";
    struct buffer model = {0};
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    piece_add(&model, "x", 1, -1, PIECE_NORMAL);
    piece_add(&model, "<unk>", 5, 0, PIECE_UNKNOWN);
    piece_add(&model, "a", 1, -2, PIECE_NORMAL);
    piece_add(&model, "<s>", 3, 0, PIECE_CONTROL);
    piece_add(&model, "</s>", 4, 0, PIECE_CONTROL);
    piece_add(&model, "[U]", 3, 0, PIECE_UNUSED);
    piece_add(&model, "uu", 2, -4, PIECE_USER);
    pieces_write(&model, "tokenizer.model");
    CHECK(!kinds_add(&chatglm3_vocab, files, "{\"padded_vocab_size\":18}", &kvs, &error));
    CHECK_NAMED(kinds_add(&chatglm3_vocab, files, config, &kvs, &error), error.message);
    kinds_check_array(&kvs, "tokenizer.ggml.tokens",
                      "<unk>|<bos>|<eos>|||[U]|uu|[MASK]|[gMASK]|[sMASK]|sop|eop|<|system|>|<|user|>|<|assistant|>|"
                      "<|observation|>|[PAD16]|[PAD17]|");
    kinds_check_array(&kvs, "tokenizer.ggml.scores", "-1|0|-2|0|0|0|-4|0|0|0|0|0|0|0|0|0|0|0|");
    kinds_check_array(&kvs, "tokenizer.ggml.token_type", "1|2|1|3|3|5|1|3|3|3|3|3|3|3|3|3|5|5|");
    kinds_check_id(&kvs, "tokenizer.ggml.eos_token_id", 2);
    gguf_kvs_free(&kvs);
}

/* It is unused where bytes have pieces of their own. */
static void nul(void)
{
    static const char *const files[] = {"config.json", "tokenizer.model", NULL}, *const types[] = {"2|1|1|", "2|5|1|"};
    for (size_t has_bytes = 0; has_bytes < 2; has_bytes++) {
        struct buffer model = {0};
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        piece_add(&model, "<unk>", 5, 0, PIECE_UNKNOWN);
        piece_add(&model, "\0", 1, -1, PIECE_NORMAL);
        piece_add(&model, "a", 1, -2, PIECE_NORMAL);
        if (has_bytes)
            buffer_append(&model, "\x12\x03\x98\x02\x01", 5);
        pieces_write(&model, "tokenizer.model");
        CHECK_NAMED(kinds_add(&spm_vocab, files, "{}", &kvs, &error), error.message);
        kinds_check_array(&kvs, "tokenizer.ggml.token_type", types[has_bytes]);
        gguf_kvs_free(&kvs);
    }
}

int main(void)
{
    files_begin();
    chatglm3();
    nul();
    files_remove();
    return check_done();
}
