/* Any side files of a Hugging Face directory: opens it, makes every kind of vocabulary, and everything that is shown.
 *
 * An input is files after each other, each begun by a line "@NAME", without the newline at their ends. Only the names
 * below are written; the weights are always the same: model.safetensors, or the two shards that an index may name. */
#include "fs/tree/content_options.h"
#include "fs/tree/tree.h"
#include "models/facts.h"
#include "models/families/families.h"
#include "models/formats.h"
#include "models/tokenizers/vocab.h"

#include "tests/fuzz/fuzz.h"
#include "tests/unit/write_safetensors.h"

enum { MOST_BYTES = 1 << 16, MOST_FILES = 400, READ_BYTES = 4096, EMBEDDING_ROWS = 1024 };

static const char *const names[] = {
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "tokenizer.jsonl",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tekken.json",
    "tiktoken.model",
    "qwen.tiktoken",
    "hy.tiktoken",
    "rwkv_vocab_v20230424.txt",
    "chat_template.json",
    "chat_template.jinja",
    "additional_chat_templates/other one.jinja",
    "README.md",
    "model.safetensors.index.json",
};

static char directory[] = "/tmp/wfs-fuzz-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void write_weights(const char *name, const char *tensor)
{
    struct safetensors file = {0};
    safetensors_add(&file, tensor, "F32", "4,8", NULL, 128);
    safetensors_write(&file, path_of(name));
}

static void remove_file(const char *name)
{
    unlink(path_of(name));
}

static void remove_directory(void)
{
    remove_file("model.safetensors");
    remove_file("model-00001-of-00002.safetensors");
    remove_file("model-00002-of-00002.safetensors");
    rmdir(path_of("additional_chat_templates"));
    rmdir(directory);
}

static void write_part(const uint8_t *name, size_t length, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) {
            files_write(path_of(names[i]), data, size);
            if (strcmp(names[i], "model.safetensors.index.json") == 0)
                remove_file("model.safetensors");
        }
}

/* The next line that begins a file, or the end. */
static const uint8_t *next_part(const uint8_t *from, const uint8_t *end)
{
    while (from < end) {
        if (*from == '@')
            return from;
        const uint8_t *line = memchr(from, '\n', (size_t)(end - from));
        from = line != NULL ? line + 1 : end;
    }
    return end;
}

static void write_parts(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size;
    for (const uint8_t *part = next_part(data, end); part < end;) {
        const uint8_t *line = memchr(part, '\n', (size_t)(end - part));
        if (line == NULL)
            return;
        const uint8_t *next = next_part(line + 1, end);
        size_t length = (size_t)(next - line - 1);
        length -= length > 0 && next[-1] == '\n';
        write_part(part + 1, (size_t)(line - part - 1), line + 1, length);
        part = next;
    }
}

static void make_vocabulary(const struct vocab *vocab, const struct vocab_input *input)
{
    struct error error = {""};
    struct gguf_kvs kvs = {0};
    if (vocab_add(vocab, &kvs, input, &error) == VOCAB_FAILED)
        require_one_line(&error);
    gguf_kvs_free(&kvs);
}

/* Reports whether no family before `end` has the kind. */
static bool is_new(const struct vocab *vocab, const struct family *const *end)
{
    for (const struct family *const *family = families; family < end; family++)
        for (size_t i = 0; i < FAMILY_MAX_VOCABS; i++)
            if ((*family)->vocabs[i] == vocab)
                return false;
    return true;
}

static void make_vocabularies(const struct checkpoint *checkpoint)
{
    struct error error = {""};
    struct hparams *hparams = hparams_of(checkpoint, &error);
    struct vocab_input input = {checkpoint, hparams, "llama", "LlamaForCausalLM", EMBEDDING_ROWS, hparams};
    for (const struct family *const *family = families; hparams != NULL && *family != NULL; family++)
        for (size_t i = 0; i < FAMILY_MAX_VOCABS && (*family)->vocabs[i] != NULL; i++)
            if (is_new((*family)->vocabs[i], family))
                make_vocabulary((*family)->vocabs[i], &input);
    hparams_free(hparams);
}

static bool read_head(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    static unsigned char head[READ_BYTES];
    struct tree *tree = context;
    struct vfile file;
    struct error error;
    struct arena *arena = arena_new();
    (void)name;
    if (!attributes->directory && tree_file(tree, attributes->id, arena, &file, &error)) {
        require(file.size == attributes->size);
        if (!vfile_read(&file, 0, file.size < READ_BYTES ? (size_t)file.size : READ_BYTES, head, &error))
            require_one_line(&error);
    }
    arena_free(arena);
    return index < MOST_FILES;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct open_options options = {0};
    struct content_options content_options = {0};
    if (size > MOST_BYTES)
        return 0;
    if (strcmp(directory, "/tmp/wfs-fuzz-XXXXXX") == 0) {
        require(mkdtemp(directory) != NULL && atexit(remove_directory) == 0);
        write_weights("model-00001-of-00002.safetensors", "model.embed_tokens.weight");
        write_weights("model-00002-of-00002.safetensors", "model.norm.weight");
    }
    write_weights("model.safetensors", "model.embed_tokens.weight");
    write_parts(data, size);
    const struct checkpoint *checkpoint = checkpoint_open(directory, formats, &options, &error);
    struct tree *tree = checkpoint != NULL ? tree_new(checkpoint, &content_options, &error) : NULL;
    if (tree != NULL) {
        make_vocabularies(checkpoint);
        tree_list(tree, TREE_ROOT, 0, read_head, tree);
    } else {
        require_one_line(&error);
    }
    tree_free(tree);
    checkpoint_close(checkpoint);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove_file(names[i]);
    return 0;
}
