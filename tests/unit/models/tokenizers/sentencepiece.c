/* Vocabularies that a small file makes large: refused with a reason, before anything is made. */
#include "formats/checkpoint_builder.h"

#include "base/attempt.h"
#include "models/sentencepiece_model.pb-c.h"
#include "models/tokenizers/vocab.h"
#include "sources/location.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"
#include "tests/unit/lack.h"

/* Reports whether the vocabulary of the side files is made; *error says why not. */
static bool add(const struct vocab *vocab, const char *const files[], size_t n_files, const char *config,
                uint64_t n_rows, struct error *error)
{
    struct checkpoint *checkpoint = checkpoint_new(".");
    struct hparams *hparams = hparams_parse(config, strlen(config), error);
    struct vocab_input input = {checkpoint, hparams, "llama", "LlamaForCausalLM", n_rows, hparams};
    struct gguf_kvs kvs = {0};
    error->message[0] = '\0';
    for (size_t i = 0; i < n_files; i++)
        checkpoint_add_side_file(checkpoint, files[i], location_open_file(files[i], error));
    bool added = vocab_add(vocab, &kvs, &input, error) == VOCAB_ADDED;
    gguf_kvs_free(&kvs);
    hparams_free(hparams);
    checkpoint_close(checkpoint);
    return added;
}

static void write_pieces(const char *piece, size_t length, size_t count)
{
    struct buffer model = {0};
    for (size_t i = 0; i < count; i++)
        buffer_append(&model, piece, length);
    files_write("tokenizer.model", model.bytes, model.length);
    buffer_free(&model);
}

static const char *const model_files[] = {"tokenizer.model"}, *const json_files[] = {"tokenizer.json"};

/* Two bytes each, and a structure for each. */
static void empty_pieces(void)
{
    struct error error;
    write_pieces("\x0a\x00", 2, 1 << 20);
    CHECK(!add(&spm_vocab, model_files, 1, "{}", 0, &error));
    CHECK_TEXT(error.message, "tokenizer.model: takes more than 16 bytes of memory for each of its own");
    write_pieces("\x0a\x09\x0a\x02zz\x15\x00\x00\x80\x3f", 11, 1 << 14);
    CHECK(add(&spm_vocab, model_files, 1, "{}", 0, &error));
}

/* A number in config.json, or the id of one token, is no reason to make millions. */
static void padding(void)
{
    struct error error;
    write_pieces("\x0a\x09\x0a\x02zz\x15\x00\x00\x80\x3f", 11, 100);
    CHECK(add(&spm_vocab, model_files, 1, "{\"vocab_size\":128}", 128, &error));
    CHECK(!add(&spm_vocab, model_files, 1, "{\"vocab_size\":16000000}", 128, &error));
    CHECK_TEXT(error.message,
               "the vocabulary has 16000000 tokens, 100 of them in the tokenizer: more than the 128 rows of the "
               "token embedding");
    files_write_text("tokenizer.json",
                     "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":16000000},\"merges\":[]}}");
    CHECK(!add(&bpe_vocab, json_files, 1, "{}", 128, &error));
    CHECK_TEXT(error.message,
               "the vocabulary has 16000001 tokens, 2 of them in the tokenizer: more than the 128 rows of the "
               "token embedding");
    files_write_text("tokenizer.json", "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0,\"b\":1}}}");
    CHECK(!add(&wordpiece_vocab, json_files, 1, "{\"vocab_size\":16000000}", 128, &error));
    CHECK(add(&wordpiece_vocab, json_files, 1, "{\"vocab_size\":100}", 128, &error));
    files_write_text("tokenizer.json", "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0],[\"b\",-1]]}}");
    CHECK(!add(&xlmr_vocab, json_files, 1, "{\"vocab_size\":16000000}", 128, &error));
    CHECK(add(&xlmr_vocab, json_files, 1, "{\"vocab_size\":100}", 128, &error));
}

static int n_entered, n_returned;

/* In place of protobuf-c's function, which it calls. */
ProtobufCMessage *protobuf_c_message_unpack(const ProtobufCMessageDescriptor *descriptor, ProtobufCAllocator *allocator,
                                            size_t length, const uint8_t *bytes)
{
    static ProtobufCMessage *(*theirs)(const ProtobufCMessageDescriptor *, ProtobufCAllocator *, size_t,
                                       const uint8_t *);
    lack_find("protobuf_c_message_unpack", &theirs);
    n_entered++;
    ProtobufCMessage *message = theirs(descriptor, allocator, length, bytes);
    n_returned++;
    return message;
}

static void add_pieces(void *context)
{
    struct error error;
    *(bool *)context = add(&spm_vocab, model_files, 1, "{}", 0, &error);
    CHECK_TEXT(error.message, "");
}

/* Memory that runs out while protobuf-c reads: the work ends once it has returned. */
static void lack_of_memory(void)
{
    bool is_added = false;
    int n_failed = 0;
    struct error error;
    write_pieces("\x0a\x09\x0a\x02zz\x15\x00\x00\x80\x3f", 11, 4);
    if (!lack_is_possible()) {
        check_skip("lack of memory", "no allocation can be made to fail here");
        return;
    }
    for (bool is_done = false; !is_done; n_failed += !is_done) {
        lack_of(n_failed);
        is_done = attempt(add_pieces, &is_added, &error);
        lack_of(-1);
        CHECK_NAMED(is_done || strstr(error.message, "out of memory") != NULL, error.message);
        CHECK(n_entered == n_returned);
    }
    CHECK(is_added && n_entered > 5); /* the model, its pieces and their texts */
}

int main(void)
{
    files_begin();
    empty_pieces();
    padding();
    lack_of_memory();
    files_remove();
    return check_done();
}
