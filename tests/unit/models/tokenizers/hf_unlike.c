/* Notes on what llama.cpp does otherwise than a tokenizer.json says. Expected values: which texts llama.cpp and
 * transformers split differently with such files. */
#include "tests/unit/models/tokenizers/kinds.h"
#include "tests/unit/notes.h"

#define BLOCK "\xe2\x96\x81"
#define BYTES "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}"
#define STEPS(steps)                                                                                                   \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" steps                                               \
    "{\"type\":\"ByteLevel\",\"use_regex\":false}]}"
#define SPLIT(regex, does) "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"" does "},"
#define ISOLATED           "Isolated\",\"invert\":false"
#define CONTRACTIONS       "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
#define LLAMA3(ends)                                                                                                   \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[" ends "]*|"                    \
    "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define ENDS "\\\\r\\\\n"
#define BOS  "{\"SpecialToken\":{\"id\":\"<s>\"}}"
#define TEXT "{\"Sequence\":{\"id\":\"A\"}}"
#define EOS  "{\"SpecialToken\":{\"id\":\"<x>\"}}"
#define STEP(items)                                                                                                    \
    "{\"type\":\"TemplateProcessing\",\"single\":[" items "],\"special_tokens\":{"                                     \
    "\"<s>\":{\"id\":\"<s>\",\"ids\":[1]},\"<x>\":{\"id\":\"<x>\",\"ids\":[261]}}}"
#define TEMPLATE(items)         "\"post_processor\":" STEP(items)
#define REPLACE(kind, from, to) "{\"type\":\"Replace\",\"pattern\":{\"" kind "\":\"" from "\"},\"content\":\"" to "\"}"
#define SEQUENCE(steps)         "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" steps "]}"
#define NAMES(list)             "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" list "\"}}"

static const struct row {
    const char *members; /* of tokenizer.json, besides its model and added tokens */
    const char *model;   /* members of the model, besides its type */
    const char *added;   /* flags of an added token */
    const char *note;    /* what the note names; NULL: there is none */
    const char *text;    /* of the added token; NULL: <x> */
} byte_rows[] =
    {
        {BYTES, "", "", NULL},
        {"\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "", "", "add_prefix_space"},
        {BYTES ",\"normalizer\":{\"type\":\"NFD\"}", "", "", "the normalizer NFD"},
        {BYTES, ",\"dropout\":0.1", "", "dropout"},
        {BYTES, ",\"dropout\":0.0", "", NULL},
        {BYTES, "", ",\"lstrip\":true", "spaces beside them (<x>)"},
        {BYTES, "", ",\"single_word\":true", "whole words (<x>)"},
        {BYTES, "", ",\"normalized\":true", NULL}, /* nothing normalizes */
        {BYTES ",\"normalizer\":{\"type\":\"NFC\"}", "", ",\"normalized\":true", "normalized text (e\xcc\x81)",
         "e\xcc\x81"},
        {BYTES ",\"decoder\":{\"type\":\"ByteLevel\"}", "", "", NULL, "y"},
        {BYTES ",\"decoder\":{\"type\":\"ByteLevel\"}", "", "", "letters that stand for bytes (\xc4\xa0y)",
         "\xc4\xa0y"},
        {STEPS(SPLIT(CONTRACTIONS LLAMA3(ENDS), ISOLATED)), "", "", NULL},
        {STEPS(SPLIT(CONTRACTIONS LLAMA3(ENDS), "Removed\",\"invert\":true")), "", "", NULL},
        {STEPS(SPLIT(CONTRACTIONS LLAMA3(ENDS), "MergedWithPrevious\"")), "", "",
         "another pre-tokenizer than llama-bpe"},
        {STEPS(SPLIT(CONTRACTIONS LLAMA3("\\r\\n"), ISOLATED)), "", "", NULL},
        {STEPS(SPLIT(LLAMA3(ENDS), ISOLATED)), "", "", "another pre-tokenizer than llama-bpe"},
        {STEPS("{\"type\":\"Digits\"}," SPLIT(CONTRACTIONS LLAMA3(ENDS), ISOLATED)), "", "",
         "the pre-tokenizer Digits"},
        {STEPS("") ",\"decoder\":{\"type\":\"ByteLevel\"}", "", "", "another pre-tokenizer than gpt-2"},
        {BYTES "," TEMPLATE(BOS "," TEXT), "", "", NULL},
        {BYTES "," TEMPLATE(BOS "," BOS "," TEXT), "", "", "other special tokens around a text"},
},
  piece_rows[] = {
      {SEQUENCE("{\"type\":\"Prepend\",\"prepend\":\"" BLOCK "\"}," REPLACE("String", " ", BLOCK)), "", "", NULL},
      {SEQUENCE(REPLACE("String", " ", BLOCK) "," REPLACE(
           "Regex", "\\\\A" BLOCK,
           BLOCK BLOCK)) ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"prepend_scheme\":\"always\",\"split\":false}",
       "", "", NULL},
      {SEQUENCE(REPLACE("String", " ", BLOCK) "," REPLACE("Regex", "\\\\A" BLOCK, BLOCK BLOCK)), "", "",
       "the normalizer Replace"},
      {SEQUENCE("{\"type\":\"Lowercase\"},{\"type\":\"NFC\"}"), "", "",
       "the normalizer Lowercase and the normalizer NFC,"},
      {"\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"x\"}", "", "", "the normalizer Prepend"},
      {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"prepend_scheme\":\"never\",\"split\":false}", "", "", NULL},
      {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"prepend_scheme\":\"never\",\"split\":true}", "", "",
       "the pre-tokenizer Metaspace"},
      {"\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Sequence\",\"pretokenizers\":["
       "{\"type\":\"Metaspace\",\"split\":false}]},{\"type\":\"Digits\"}]}",
       "", "", "the pre-tokenizer Digits"},
      {"\"pre_tokenizer\":" NAMES("<s>|\\\\[B\\\\]"), "", "", NULL, "[B]"},
      {"\"pre_tokenizer\":" NAMES("<s>|\\\\[A\\\\]"), "", "", "the pre-tokenizer Split", "[B]"},
      {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"split\":false}", "", ",\"normalized\":true",
       "normalized text (<x>)"},
      {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"split\":false}", "", "", "adds no space before a text"},
      {"\"pre_tokenizer\":null", ",\"byte_fallback\":false", "", "no byte_fallback"},
      {"\"pre_tokenizer\":null", ",\"merges\":[\"a c\"]", "", "pieces that no merge makes"},
};

/* Writes a BPE vocabulary: bytes, and "ab" of "a" and "b". */
static void write_tokenizer(const struct row *row)
{
    static const char usual[] = ",\"byte_fallback\":true,\"merges\":[\"a b\"]";
    struct buffer text = {0};
    buffer_append_text(&text, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"<unk>\":0,\"<s>\":1,\"a\":2,\"b\":3,\"ab\":4");
    for (unsigned byte = 0; byte < 256; byte++)
        buffer_printf(&text, ",\"<0x%02X>\":%u", byte, byte + 5);
    buffer_printf(&text,
                  "}%s%s},\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"special\":true},{\"id\":261,"
                  "\"content\":\"%s\"%s%s}],",
                  row->model,
                  strstr(row->model, "merges") != NULL     ? ",\"byte_fallback\":true"
                  : strstr(row->model, "fallback") != NULL ? ",\"merges\":[\"a b\"]"
                                                           : usual,
                  row->text != NULL ? row->text : "<x>",
                  strstr(row->added, "normalized") != NULL ? "" : ",\"normalized\":false", row->added);
    buffer_printf(&text, "%s}", row->members);
    buffer_append(&text, "", 1);
    files_write_text("tokenizer.json", (const char *)text.bytes);
    buffer_free(&text);
}

/* Makes the keys of tokenizer.json; returns the checkpoint, with its notes. */
static struct checkpoint *add(const struct vocab *vocab, const char *fields, struct gguf_kvs *kvs, struct error *error)
{
    static const char config[] = "{\"vocab_size\":263,\"architectures\":[\"MistralForCausalLM\"]}";
    char text[128];
    snprintf(text, sizeof text, "{%s\"bos_token\":\"<s>\"%s}",
             strstr(fields, "tokenizer_class") != NULL ? "" : "\"tokenizer_class\":\"TokenizersBackend\",", fields);
    files_write_text("tokenizer_config.json", text);
    struct checkpoint *checkpoint = checkpoint_new(".");
    checkpoint_add_side_file(checkpoint, "tokenizer.json", location_open_file("tokenizer.json", error));
    checkpoint_add_side_file(checkpoint, "tokenizer_config.json", location_open_file("tokenizer_config.json", error));
    struct hparams *hparams = hparams_parse(config, strlen(config), error);
    struct vocab_input input = {checkpoint, hparams, "llama", "MistralForCausalLM", 263, hparams, NULL};
    vocab_add(vocab, kvs, &input, error);
    hparams_free(hparams);
    return checkpoint;
}

static void check(const struct vocab *vocab, const struct row *row)
{
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    write_tokenizer(row);
    struct checkpoint *checkpoint = add(vocab, "", &kvs, &error);
    CHECK_TEXT(error.message, "");
    if (row->note != NULL)
        CHECK_NAMED(has_note(checkpoint, row->note), row->note);
    else
        CHECK_NAMED(!has_note(checkpoint, "otherwise than transformers"), row->members);
    checkpoint_close(checkpoint);
    gguf_kvs_free(&kvs);
}

static void check_refused(const struct vocab *vocab, const char *text, const char *reason)
{
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    files_write_text("tokenizer.json", text);
    checkpoint_close(add(vocab, "", &kvs, &error));
    CHECK_NAMED(strstr(error.message, reason) != NULL, error.message);
    gguf_kvs_free(&kvs);
}

/* What a GGUF can say: an added token beyond the model's, no token after a text, a prefix in a list of lists. */
static void check_unigram(void)
{
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    bool adds = true;
    files_write_text(
        "tokenizer.json",
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",-1]]},"
        "\"added_tokens\":[{\"id\":2,\"content\":\"<x>\",\"normalized\":false}],\"pre_tokenizer\":{\"type\":"
        "\"Sequence\",\"pretokenizers\":[{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Metaspace\","
        "\"prepend_scheme\":\"always\"}]},{\"type\":\"Digits\"}]}}");
    struct checkpoint *checkpoint = add(&xlmr_vocab, "", &kvs, &error);
    CHECK_TEXT(error.message, "");
    struct arena *arena = arena_new();
    struct gguf_array tokens = {0};
    size_t length = 0;
    if (CHECK(gguf_get_array(&kvs, "tokenizer.ggml.tokens", arena, &tokens, &error) && tokens.count > 2)) {
        const char *text = gguf_array_string(&tokens, 2, &length);
        CHECK(length == 3 && memcmp(text, "<x>", length) == 0);
    }
    CHECK(gguf_get_bool(&kvs, "tokenizer.ggml.add_eos_token", &adds) && !adds);
    CHECK(gguf_get_bool(&kvs, "tokenizer.ggml.add_space_prefix", &adds) && adds);
    CHECK(has_note(checkpoint, "the pre-tokenizer Digits"));
    arena_free(arena);
    checkpoint_close(checkpoint);
    gguf_kvs_free(&kvs);
}

/* WordPiece: added tokens beyond the model's are whole; a control token may be what the rest of a word is. */
static void check_words(void)
{
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    files_write_text(
        "tokenizer.json",
        "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0,\"a\":1,\"##a\":2}},\"added_tokens\":["
        "{\"id\":1,\"content\":\"a\",\"special\":true},{\"id\":3,\"content\":\"x\",\"normalized\":false}]}");
    struct checkpoint *checkpoint = add(&wordpiece_vocab, "", &kvs, &error);
    struct arena *arena = arena_new();
    struct gguf_array tokens = {0};
    size_t length = 0;
    CHECK_TEXT(error.message, "");
    if (CHECK(gguf_get_array(&kvs, "tokenizer.ggml.tokens", arena, &tokens, &error) && tokens.count > 3))
        CHECK(*gguf_array_string(&tokens, 3, &length) == 'x' && length == 1);
    CHECK(has_note(checkpoint, "the tokens 1 and 2 are both 'a'"));
    arena_free(arena);
    checkpoint_close(checkpoint);
    gguf_kvs_free(&kvs);
}

/* tokenizer_config.json denies the space before a text, and cannot ask for one that no step adds. */
static void check_prefix(void)
{
    static const struct {
        const char *members, *field, *note;
    } cases[] = {
        {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"split\":false}", ",\"add_prefix_space\":false",
         "wfs writes false"},
        {"\"pre_tokenizer\":null", ",\"add_prefix_space\":true", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        bool adds = true;
        write_tokenizer(&(struct row){cases[i].members, "", "", NULL});
        struct checkpoint *checkpoint = add(&hf_spm_vocab, cases[i].field, &kvs, &error);
        CHECK(gguf_get_bool(&kvs, "tokenizer.ggml.add_space_prefix", &adds) && !adds);
        CHECK(cases[i].note == NULL || has_note(checkpoint, cases[i].note));
        checkpoint_close(checkpoint);
        gguf_kvs_free(&kvs);
    }
}

/* Gemma's class in transformers 5 puts no space before texts, whatever tokenizer.json says. */
static void check_gemma(void)
{
    static const struct {
        const char *scheme;
        bool is_noted;
    } cases[] = {{"always", true}, {"never", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char members[128];
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        snprintf(members, sizeof members,
                 "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"prepend_scheme\":\"%s\",\"split\":false}",
                 cases[i].scheme);
        write_tokenizer(&(struct row){members, "", "", NULL});
        struct checkpoint *checkpoint = add(&hf_spm_vocab, ",\"tokenizer_class\":\"GemmaTokenizer\"", &kvs, &error);
        CHECK_TEXT(error.message, "");
        CHECK(has_note(checkpoint, "GemmaTokenizer of transformers 5") == cases[i].is_noted);
        checkpoint_close(checkpoint);
        gguf_kvs_free(&kvs);
    }
}

/* Fields of tokenizer_config.json that change how transformers splits texts, or that make a post-processor clear. */
static void check_fields(void)
{
    static const struct {
        const char *field, *note, *members;
    } cases[] = {
        {",\"add_prefix_space\":true", NULL, NULL}, /* which the class does not follow */
        {",\"add_prefix_space\":true,\"tokenizer_class\":\"Qwen2Tokenizer\"", "add_prefix_space", NULL},
        {",\"eos_token\":\"<x>\"", NULL, BYTES ",\"post_processor\":" STEP(BOS "," TEXT "," EOS)},
        {",\"eos_token\":\"<x>\"", "other special tokens around a text",
         BYTES
         ",\"post_processor\":{\"type\":\"Sequence\",\"processors\":[" STEP(BOS "," TEXT) "," STEP(TEXT "," EOS) "]}"},
        {",\"split_special_tokens\":true", "split_special_tokens"},
        {",\"split_special_tokens\":false", NULL},
        {",\"image_token\":\"<y>\"", "a special token that tokenizer.json lacks (<y>)"},
        {",\"image_token\":\"<x>\"", NULL},
        {",\"model_specific_special_tokens\":{\"image\":{\"content\":\"<y>\"}}",
         "a special token that tokenizer.json lacks (<y>)"},
        {",\"model_specific_special_tokens\":{\"image\":\"<s>\"}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_kvs kvs = {0};
        struct error error = {""};
        write_tokenizer(&(struct row){cases[i].members != NULL ? cases[i].members : BYTES, "", "", NULL});
        struct checkpoint *checkpoint = add(&bpe_vocab, cases[i].field, &kvs, &error);
        CHECK_TEXT(error.message, "");
        CHECK_NAMED(cases[i].note != NULL ? has_note(checkpoint, cases[i].note)
                                          : !has_note(checkpoint, "otherwise than transformers"),
                    cases[i].field);
        checkpoint_close(checkpoint);
        gguf_kvs_free(&kvs);
    }
}

/* Special tokens that only tokenizer_config.json has: new ones, the second of which has no row, and one of the model.
 */
static void check_named(void)
{
    enum { CONTROL = 3, MODEL_ID = 4, NEW_ID = 262 };
    int64_t new_type = 0, model_type = 0;
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    struct arena *arena = arena_new();
    struct gguf_array tokens = {0}, types = {0};
    size_t length = 0;
    write_tokenizer(&(struct row){"\"pre_tokenizer\":null", "", "", NULL});
    struct checkpoint *checkpoint =
        add(&hf_spm_vocab, ",\"sep_token\":\"<y>\",\"pad_token\":\"<z>\",\"cls_token\":\"ab\"", &kvs, &error);
    CHECK_TEXT(error.message, "");
    if (CHECK(gguf_get_array(&kvs, "tokenizer.ggml.tokens", arena, &tokens, &error) && tokens.count == NEW_ID + 1 &&
              gguf_get_array(&kvs, "tokenizer.ggml.token_type", arena, &types, &error))) {
        const char *text = gguf_array_string(&tokens, NEW_ID, &length);
        CHECK(length == 3 && memcmp(text, "<y>", length) == 0);
        CHECK(gguf_array_i64(&types, NEW_ID, &new_type) && new_type == CONTROL);
        CHECK(gguf_array_i64(&types, MODEL_ID, &model_type) && model_type == CONTROL);
    }
    CHECK(has_note(checkpoint, "the added token 263 (<z>) is beyond vocab_size, 263"));
    arena_free(arena);
    checkpoint_close(checkpoint);
    gguf_kvs_free(&kvs);
}

/* The ids of added tokens are those that the library gives them, and a list of transformers 5 is the only one. */
static void check_ids(void)
{
    enum { USER_DEFINED = 4, MODEL_ID = 4, UNUSED = 5, ADDED_ID = 261 };
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    struct arena *arena = arena_new();
    struct gguf_array types = {0};
    int64_t type = 0;
    write_tokenizer(&(struct row){"\"pre_tokenizer\":null", "", "", NULL, "ab"}); /* which the model has, too */
    checkpoint_close(
        add(&hf_spm_vocab, ",\"extra_special_tokens\":[\"a\"],\"additional_special_tokens\":[\"<y>\"]", &kvs, &error));
    CHECK_TEXT(error.message, "");
    if (CHECK(gguf_get_array(&kvs, "tokenizer.ggml.token_type", arena, &types, &error))) {
        CHECK(gguf_array_i64(&types, MODEL_ID, &type) && type == USER_DEFINED);
        CHECK(gguf_array_i64(&types, ADDED_ID, &type) && type == UNUSED);
    }
    arena_free(arena);
    gguf_kvs_free(&kvs);
}

int main(void)
{
    files_begin();
    check_named();
    check_ids();
    check_unigram();
    check_fields();
    check_words();
    check_prefix();
    check_gemma();
    for (size_t i = 0; i < sizeof byte_rows / sizeof *byte_rows; i++)
        check(&bpe_vocab, &byte_rows[i]);
    for (size_t i = 0; i < sizeof piece_rows / sizeof *piece_rows; i++)
        check(&hf_spm_vocab, &piece_rows[i]);
    check_refused(&bpe_vocab, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
                  "neither a ByteLevel step");
    check_refused(&hf_spm_vocab,
                  "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0},\"merges\":[]}}",
                  "without a token for each byte");
    check_refused(&bpe_vocab,
                  "{" BYTES
                  ",\"model\":{\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\":0},\"merges\":[]}}",
                  "end_of_word_suffix");
    files_remove();
    return check_done();
}
