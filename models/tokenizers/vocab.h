/* Tokenizers: the tokenizer.* keys of a GGUF, from a checkpoint's side files.
 *
 * A kind of vocabulary is a constant; a family (models/family/family.h) lists the kinds to try, in order. To add one,
 * write `models/tokenizers/x.c`, and declare the constant below. Tokenizer files are read only when a GGUF is planned,
 * and their memory is freed once the keys are made.
 *
 * Tokenizer files of N bytes cost O(N log N) time and at most 128 N bytes of memory, plus 128 bytes for each row of the
 * token embedding and the budget for encoding the check text (hf_encode.h). A tokenizer that would cost more fails with
 * a reason.
 *
 * Source: gguf-py vocab.py (SpecialVocab), conversion/base.py of llama.cpp, transformers tokenizers. */
#pragma once

#include "formats/gguf/kv.h"
#include "models/config/hparams.h"
#include "models/references/references.h"

struct vocab_input {
    const struct checkpoint *checkpoint; /* has the side files, and takes notes: checkpoint_note() */
    const struct hparams *hparams;
    const char *architecture; /* "llama": prefix of its keys */
    const char *class_name;   /* the Hugging Face class: "LlamaForCausalLM" */
    /* rows of the token embedding, which limit vocab_size; 0: none */
    uint64_t n_rows;
    const struct hparams *owner;         /* of the tokenizer's model; for a draft model, its target's */
    const struct references *references; /* the builds that the keys follow; NULL: the newest */
};

enum vocab_result {
    VOCAB_ADDED,
    VOCAB_ABSENT, /* its files are missing, or of another kind: the caller tries the next kind */
    VOCAB_FAILED,
};

struct hf_vocabulary;
struct ranked_kind;
struct sentencepiece;

struct vocab {
    const char *name;
    const char *file; /* the file that it requires: "tokenizer.model" */

    /* Reports whether the kind is for this model; NULL: for any. */
    bool (*applies)(const struct hparams *hparams);

    /* One of the following four makes the keys.
     *
     * From tokenizer.json or vocab.json and similar files (hf_vocabulary.h), if tokenizer.json `fits` (NULL: any does).
     */
    bool (*write)(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                  struct error *error);
    bool (*fits)(const struct json *tokenizer);

    /* From the SentencePiece model `file`. */
    bool (*write_pieces)(struct gguf_kvs *kvs, const struct vocab_input *input, const struct sentencepiece *given,
                         struct error *error);

    /* From the ranks of tokens in `file`. */
    const struct ranked_kind *ranked;

    /* From any files. */
    enum vocab_result (*add)(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error);
};

/* Adds the keys of a kind of vocabulary. */
enum vocab_result vocab_add(const struct vocab *vocab, struct gguf_kvs *kvs, const struct vocab_input *input,
                            struct error *error);

/* Adds the keys of a tokenizer.json alone, as transformers 5 saves it, by the kind of its vocabulary: for a model whose
 * own kinds are absent. */
enum vocab_result vocab_add_saved(struct gguf_kvs *kvs, const struct vocab_input *input, struct error *error);

extern const struct vocab spm_vocab;      /* "llama", from tokenizer.model (SentencePiece) */
extern const struct vocab llama_hf_vocab; /* "llama", from a tokenizer.json with byte fallback */
extern const struct vocab jamba_hf_vocab; /* like llama_hf_vocab, without a space before the text */
extern const struct vocab hf_spm_vocab;   /* like llama_hf_vocab, with the scores of the merges */
extern const struct vocab hf_gemma_vocab;
extern const struct vocab hf_phi3_vocab;
extern const struct vocab hf_internlm2_vocab;
extern const struct vocab hf_internlm3_vocab;
extern const struct vocab hf_unigram_vocab; /* "t5", from a tokenizer.json of that kind */
extern const struct vocab xverse_vocab;     /* like llama_hf_vocab, without scores */
extern const struct vocab plamo_vocab;      /* "plamo2", from the lines of tokenizer.jsonl */
extern const struct vocab bpe_vocab;        /* "gpt2", byte-level BPE */
extern const struct vocab plain_bpe_vocab;  /* like bpe_vocab, with the files' flags for added tokens */
extern const struct vocab codes_vocab;      /* like bpe_vocab, with the codes of Qwen3-TTS after the tokens */
extern const struct vocab laguna_vocab;     /* like bpe_vocab; the end of a turn is a control token */
extern const struct vocab qwen_vocab;       /* "gpt2", from the ranks of qwen.tiktoken */
extern const struct vocab arctic_vocab;     /* "llama" with Arctic's tokens in place of pieces */
extern const struct vocab internlm2_vocab;  /* "llama" with InternLM's added tokens */
extern const struct vocab internlm3_vocab;
extern const struct vocab tekken_vocab;        /* "gpt2", from tekken.json */
extern const struct vocab mistral_spm_vocab;   /* "llama", from tokenizer.model.v3 and similar names */
extern const struct vocab wordpiece_vocab;     /* "bert" */
extern const struct vocab t5_vocab;            /* "t5", from a Unigram SentencePiece model */
extern const struct vocab pocket_vocab;        /* like t5_vocab, with the learned vectors of Pocket TTS */
extern const struct vocab xlmr_vocab;          /* "t5", the XLM-RoBERTa way */
extern const struct vocab phi3_vocab;          /* "llama" with Phi-3's added tokens */
extern const struct vocab gemma4_vocab;        /* "gemma4", from a tokenizer.json with byte fallback */
extern const struct vocab kimi_vocab;          /* "gpt2", from the ranks of tiktoken.model */
extern const struct vocab kimi_linear_vocab;   /* like kimi_vocab, with the end of a text */
extern const struct vocab glm_vocab;           /* "gpt2" with the ids of GLM's turns */
extern const struct vocab dots3_vocab;         /* like glm_vocab, for dots3-note */
extern const struct vocab glm4_vocab;          /* like glm_vocab, for GLM-4 */
extern const struct vocab glm_asr_vocab;       /* like glm_vocab, for GLM-ASR, by the whole model's name */
extern const struct vocab chatglm_vocab;       /* like glm_vocab, for ChatGLM, without a BOS token */
extern const struct vocab chatglm3_vocab;      /* "llama", for ChatGLM 3, by is_chatglm3() */
extern const struct vocab hunyuan_vocab;       /* "gpt2" with the ids of Hunyuan */
extern const struct vocab hunyuan_ranks_vocab; /* like hunyuan_vocab, from the ranks of hy.tiktoken */
extern const struct vocab hunyuan_moe_ranks_vocab;
extern const struct vocab solar_vocab; /* like glm_vocab, for Solar Open */
extern const struct vocab rwkv_vocab;  /* "rwkv", from rwkv_vocab_v20230424.txt */
extern const struct vocab no_vocab;    /* "none" */

/* Recognizes ChatGLM 3, which has a SentencePiece tokenizer where related models have byte-level BPE. */
bool is_chatglm3(const struct hparams *hparams);

/* A special token by its kind: "eot". */
struct special_id {
    const char *type;
    uint64_t id;
};

/* The inputs of special_vocab_write() (tokenizer_files.h). */
enum { SPECIAL_IDS = 8 };
struct special_vocab_options {
    bool load_merges;
    uint64_t n_vocab;              /* ids from here on are ignored; 0: no limit */
    const char *const *more_types; /* in addition to bos, eos, unk, sep, pad, cls, mask: NULL-terminated, may be NULL */
    const struct special_id *ids;  /* ids that follow those of the files */
    size_t n_ids;                  /* at most SPECIAL_IDS */
};

/* Sets the token that ends a turn, for families that look for it alone: that of tokenizer_config.json, or else of
 * config.json, or else `otherwise`. */
bool special_vocab_set_eot(struct gguf_kvs *kvs, const struct vocab_input *input, uint32_t otherwise,
                           struct error *error);
