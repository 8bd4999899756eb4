#include "models/families/qwen/qwen.h"

#include "formats/documents.h"
#include "models/tokenizers/hf_vocabulary.h"

#include <stdlib.h>
#include <string.h>

static const char *const answers[] = {"yes", "no"};
static const char *const rows[] = {"row_of_yes", "row_of_no"};

static bool is_named_so(const char *text)
{
    return text != NULL &&
           (strcasestr(text, "qwen3-reranker") != NULL || strcasestr(text, "qwen3-vl-reranker") != NULL);
}

static bool card_says_so(const struct checkpoint *checkpoint)
{
    size_t length;
    bool absent;
    struct error unused;
    char *text = document_text(checkpoint, "README.md", &length, &absent, &unused);
    bool says = text != NULL &&
                (strcasestr(text, "# qwen3-reranker") != NULL || strcasestr(text, "# qwen3-vl-reranker") != NULL);
    free(text);
    return says;
}

static bool ranks(const struct gguf_model *model)
{
    const struct checkpoint *checkpoint = model->checkpoint;
    const struct json *raw = hparams_raw(model->hparams);
    const char *class_name = json_string(json_first(json_get(raw, "architectures")), NULL);
    if (class_name != NULL && (strcasestr(class_name, "sequenceclassification") != NULL || is_named_so(class_name)))
        return true;
    return is_named_so(checkpoint->model_name) || is_named_so(checkpoint->path) ||
           is_named_so(json_string(hparams_get(model->hparams, "model_type"), NULL)) || card_says_so(checkpoint);
}

static bool find_answers(struct model_builder *builder, const struct hf_vocabulary *vocabulary, struct error *error)
{
    for (size_t i = 0; i < 2; i++) {
        uint64_t id;
        if (!hf_token_id(vocabulary, answers[i], strlen(answers[i]), &id))
            return error_set(error, "the model's name says reranker, but its tokenizer has no token '%s'", answers[i]);
        dimensions_set(&builder->dimensions, rows[i], id);
    }
    dimensions_set(&builder->dimensions, "ranks", 1);
    return true;
}

bool reranker_look(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    const struct vocab_input input = {
        model->checkpoint, model->hparams,    family_architecture(builder->family), builder->hf->name, 0,
        model->hparams,    &model->references};
    struct tokenizer_files files;
    struct hf_vocabulary vocabulary;
    if (!ranks(model))
        return true;
    if (!tokenizer_files_load(model->checkpoint, &files, error))
        return false;
    enum vocab_result result = hf_vocabulary_load(&input, &files, &vocabulary, error);
    bool found = result == VOCAB_ADDED && find_answers(builder, &vocabulary, error);
    if (result == VOCAB_ADDED)
        hf_vocabulary_free(&vocabulary);
    else if (result == VOCAB_ABSENT)
        error_set(error, "the model's name says reranker, but tokenizer.json is missing");
    tokenizer_files_free(&files);
    return found;
}

static bool is_tied(const struct model_builder *builder)
{
    return json_bool(hparams_get(builder->model->hparams, "tie_word_embeddings"), false);
}

/* Returns the two rows of a matrix; NULL if it lacks one. */
static const struct view *rows_of_answers(const struct model_builder *builder, const struct view *view)
{
    struct arena *arena = builder->model->arena;
    const struct view *parts[2];
    for (size_t i = 0; i < 2; i++) {
        uint64_t row = dimensions_get(&builder->dimensions, rows[i]);
        if (view->rank != 2 || row >= view->shape[0])
            return NULL;
        parts[i] = view_slice(arena, view, 0, row, 1, 1);
    }
    return view_concatenate(arena, parts, 2, 0);
}

void reranker_arrange(struct model_builder *builder)
{
    static const char name[] = "cls.output.weight";
    struct gguf_model *model = builder->model;
    const char *source = is_tied(builder) ? "token_embd.weight" : "output.weight";
    size_t at = 0;
    if (dimensions_get(&builder->dimensions, "ranks") == 0)
        return;
    while (at < model->tensors->n_tensors && strcmp(model->tensors->tensors[at].name, source) != 0)
        at++;
    if (at == model->tensors->n_tensors)
        return;
    const struct view *view = rows_of_answers(builder, model->tensors->tensors[at].view);
    if (view == NULL) {
        dimensions_set(&builder->dimensions, "lacks_rows", 1);
        return;
    }
    builder_insert_tensor(builder, at, name, view);
    if (is_tied(builder))
        return;
    size_t n_after = --model->tensors->n_tensors - (at + 1);
    struct tensor *tensors = tensor_set_edit(model->tensors);
    memmove(&tensors[at + 1], &tensors[at + 2], n_after * sizeof *tensors);
}

static void set_texts(struct gguf_kvs *kvs, const char *key, const char *const *texts, size_t n_texts)
{
    struct buffer elements = {0};
    for (size_t i = 0; i < n_texts; i++)
        gguf_append_string(&elements, texts[i], strlen(texts[i]));
    gguf_set_array(kvs, key, GGUF_STRING, n_texts, &elements);
}

bool emit_reranker(struct model_builder *builder, struct error *error)
{
    enum { POOLING_RANK = 4 };
    static const char *const template_names[] = {"rerank"};
    static const char template[] =
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
        "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
        "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
        "<Query>: {query}\n<Document>: {document}<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n";
    struct gguf_kvs *kvs = &builder->model->kvs;
    if (dimensions_get(&builder->dimensions, "ranks") == 0)
        return true;
    if (dimensions_get(&builder->dimensions, "lacks_rows") != 0)
        return error_set(error, "the output has no row for the token 'yes' or for 'no'");
    gguf_set_u32(kvs, builder_key(builder, "pooling_type"), POOLING_RANK);
    set_texts(kvs, builder_key(builder, "classifier.output_labels"), answers, 2);
    gguf_set_text(kvs, "tokenizer.chat_template.rerank", template);
    set_texts(kvs, "tokenizer.chat_templates", template_names, 1);
    return true;
}
