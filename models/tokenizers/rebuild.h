/* Tokenizers in reverse: makes the files of a Hugging Face directory from the tokenizer.* keys of a GGUF.
 *
 * Facts that a GGUF does not keep are chosen as most original tokenizers have them: flags of added tokens (stripping,
 * normalization), the normalizer of byte-level BPE (by the name of the pre-tokenizer), training options. Other
 * tokenizers give other ids to some texts. Memory and time are O(N log N) for keys of N bytes; a SentencePiece
 * vocabulary whose pieces are too long for that limit has no tokenizer.json.
 *
 * Sources: transformers (convert_slow_tokenizer.py, tokenization_utils_base.py), tokenizers, the SentencePiece format.
 */
#pragma once

#include "base/arena.h"
#include "formats/gguf/kv.h"
#include "models/tokenizers/token_list.h"
#include "text/json_write.h"

enum { NO_TOKEN = -1, TOKEN_NO_PIECE = -1000 /* the converter's score for tokens that are not pieces */ };

/* Special tokens, in the order in which the converter writes their keys. */
enum special {
    SPECIAL_BOS,
    SPECIAL_EOS,
    SPECIAL_UNKNOWN,
    SPECIAL_SEPARATOR,
    SPECIAL_PADDING,
    SPECIAL_MASK,
    SPECIALS,
};

/* The vocabulary of a GGUF. */
struct stored_vocab {
    struct arena *arena;
    const struct gguf_kvs *kvs;
    const char *model, *pre; /* tokenizer.ggml.model and .pre; `pre` is "" if the key is missing */
    struct token *tokens;
    uint64_t n_tokens;     /* without the padding at the end */
    bool has_scores;       /* a SentencePiece BPE has the scores of its pieces */
    bool is_xlmr;          /* a Unigram model with the order and the special tokens of XLM-RoBERTa */
    int64_t ids[SPECIALS]; /* of the special tokens, or NO_TOKEN */
};

/* A file that wfs can make. */
struct rebuilt_file {
    const char *name;
    const char *model; /* the tokenizer.ggml.model it is for; NULL: any */
    bool (*write)(const struct stored_vocab *vocab, struct buffer *out, struct error *error);
    bool (*applies)(const struct gguf_kvs *kvs); /* looks at small keys only; NULL: always */
};

/* All files, up to one without a name. */
extern const struct rebuilt_file rebuilt_files[];

/* Returns one line about a tokenizer that is missing or unsupported, a file that lacks scores, or a pre-tokenizer that
 * is unknown; NULL: none of them. In the arena, or constant. Reads no long value. */
const char *rebuilt_note(const struct gguf_kvs *kvs, struct arena *arena);

/* Returns the name of the chat template that a key holds; NULL for the default template and for other keys. */
const char *rebuilt_template_name(const char *key);

/* Returns the reason why a file for this type of vocabulary cannot be made; NULL: it can be, or is for another type. As
 * rebuilt_note(). */
const char *rebuilt_file_refusal(const struct rebuilt_file *file, const struct gguf_kvs *kvs, struct arena *arena);

/* Reports whether the file can be made from the vocabulary in these keys. Reads no long value. */
bool rebuilt_file_applies(const struct rebuilt_file *file, const struct gguf_kvs *kvs);

/* Appends the contents of the file. Fails if a key is invalid or exceeds a limit. */
bool rebuilt_file_write(const struct rebuilt_file *file, const struct gguf_kvs *kvs, struct buffer *out,
                        struct error *error);

/* For the functions that write files. */

bool rebuild_bpe_json(const struct stored_vocab *vocab, struct buffer *out, struct error *error);
bool rebuild_bpe_vocab(const struct stored_vocab *vocab, struct buffer *out, struct error *error);
bool rebuild_bpe_merges(const struct stored_vocab *vocab, struct buffer *out, struct error *error);
bool rebuild_spm_json(const struct stored_vocab *vocab, struct buffer *out, struct error *error);
bool rebuild_spm_model(const struct stored_vocab *vocab, struct buffer *out, struct error *error);
bool rebuild_xlmr_model(const struct stored_vocab *vocab, struct buffer *out, struct error *error);
bool rebuild_unigram_json(const struct stored_vocab *vocab, struct buffer *out, struct error *error);
bool rebuild_wordpiece_json(const struct stored_vocab *vocab, struct buffer *out, struct error *error);
bool rebuild_wordpiece_text(const struct stored_vocab *vocab, struct buffer *out, struct error *error);

/* Reports whether texts are searched for a token before they are split: control, user-defined and unknown tokens. */
bool token_is_added(const struct token *token);

/* Begins tokenizer.json, up to added_tokens. */
void rebuild_begin(const struct stored_vocab *vocab, struct json_writer *writer);

/* Writes a member of "vocab": the token and its id. */
void rebuild_put_token(const struct stored_vocab *vocab, uint64_t id, struct json_writer *writer);

/* Writes the member "merges", as in the keys. */
bool rebuild_merges(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error);

/* Marks the added tokens of a character BPE: tokens of several characters that no merge makes. */
bool rebuild_find_added(struct stored_vocab *vocab, struct error *error);

/* Returns the bool of a key; `otherwise` if the GGUF lacks the key. */
bool rebuild_flag(const struct stored_vocab *vocab, const char *key, bool otherwise);

/* {"type": "TemplateProcessing"}: the tokens before, between and after one text or two. */
struct template
{
    int64_t before, after, second; /* NO_TOKEN: none. `second` comes before the second text */
    unsigned n_between;            /* number of `after` tokens between two texts */
    uint64_t second_type;          /* type_id of the second text and the tokens after it */
};
void rebuild_template(const struct stored_vocab *vocab, const struct template *template, const char *key,
                      struct json_writer *writer);

/* Makes the usual template from add_bos_token, add_eos_token and add_sep_token; false: it adds no tokens. */
bool rebuild_usual_template(const struct stored_vocab *vocab, bool adds_bos, struct template *ret_template);

/* A pre-tokenizer of byte-level BPE. pre_row_find() returns that of llama.cpp's name, else GPT-2's usual one. */
struct pre_row {
    const char *names[20];
    const char *normalizer;    /* "NFC", or NULL */
    const char *const *splits; /* regular expressions, in order of use, up to a NULL; NULL: none */
    enum { BYTES_ALONE, SPLIT_BYTES, DIGITS_BYTES, SPLIT_DIGITS_BYTES, FALCON_BYTES } form;
    bool ignores_merges, adds_bos;
};
const struct pre_row *pre_row_find(const char *name, bool *ret_known);
void rebuild_pre_tokenizer(const struct pre_row *row, struct json_writer *writer);

/* Write the members of a byte-level BPE's tokenizer.json from the normalizer to the decoder, and the beginning of its
 * model, up to the vocabulary. */
void rebuild_bpe_steps(const struct stored_vocab *vocab, const struct pre_row *row, struct json_writer *writer);
void rebuild_bpe_begin_model(const struct pre_row *row, struct json_writer *writer);
