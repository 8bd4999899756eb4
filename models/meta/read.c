#include "formats/checkpoint_builder.h"
#include "formats/documents.h"
#include "formats/format.h"
#include "models/meta/meta.h"
#include "models/relation/rearrangement.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHARDS = 100, MAX_NAME = 256 };

/* How the slices of a tensor in the shards make up the tensor. */
enum merge_rule {
    ROWS,
    COLUMNS,
    SAME,       /* the same in every shard; the first shard's is taken */
    ROTARY,     /* rows of query heads, put into the order of Hugging Face */
    ROTARY_KEY, /* like ROTARY, for key heads; shards may repeat heads, as with ROWS_OF_HEADS */
    ROWS_OF_HEADS,
    EMBEDDING, /* rows or columns, depending on the shapes */
    DROPPED,
    UNKNOWN,
};

struct name_rule {
    const char *suffix, *hugging_face; /* names in a layer, or whole names */
    enum merge_rule rule;
};

static const struct name_rule layer_rules[] = {
    {"attention.wq.weight", "self_attn.q_proj.weight", ROTARY},
    {"attention.wk.weight", "self_attn.k_proj.weight", ROTARY_KEY},
    {"attention.wv.weight", "self_attn.v_proj.weight", ROWS_OF_HEADS},
    {"attention.wo.weight", "self_attn.o_proj.weight", COLUMNS},
    {"feed_forward.w1.weight", "mlp.gate_proj.weight", ROWS},
    {"feed_forward.w2.weight", "mlp.down_proj.weight", COLUMNS},
    {"feed_forward.w3.weight", "mlp.up_proj.weight", ROWS},
    {"attention_norm.weight", "input_layernorm.weight", SAME},
    {"ffn_norm.weight", "post_attention_layernorm.weight", SAME},
    {"attention.inner_attention.rope.freqs", NULL, DROPPED},
    {NULL, NULL, UNKNOWN},
};

static const struct name_rule model_rules[] = {
    {"tok_embeddings.weight", "model.embed_tokens.weight", EMBEDDING},
    {"norm.weight", "model.norm.weight", SAME},
    {"output.weight", "lm_head.weight", ROWS},
    {"rope.freqs", NULL, DROPPED},
    {NULL, NULL, UNKNOWN},
};

struct reader {
    struct checkpoint *checkpoint;
    const struct input *input;
    const struct open_options *options;
    struct json_document *document; /* params.json */
    struct meta_params params;
    struct tiktoken *tiktoken;
    unsigned n_shards;
    struct tensor_set *shards[MAX_SHARDS]; /* as they are stored */
    struct tensor_set *merged;             /* made from the shards, under Hugging Face's names */
};

static bool has_hugging_face_weights(const struct input *input)
{
    static const char *const weights[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                          "pytorch_model.bin.index.json"};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (input_has(input, weights[i]))
            return true;
    return false;
}

/* Accepts a directory, or its first shard. */
static enum probe meta_probe(const struct input *input)
{
    if (!input_has(input, "params.json") || !input_has(input, "consolidated.00.pth"))
        return PROBE_NO;
    if (input->file_name != NULL)
        return strcmp(input->file_name, "consolidated.00.pth") == 0 ? PROBE_SURE : PROBE_NO;
    return has_hugging_face_weights(input) ? PROBE_MAYBE : PROBE_SURE;
}

/* The directory's small files. */

static bool read_params(struct reader *reader, struct error *error)
{
    struct source *source = location_source(reader->input->location, "params.json", error);
    if (source == NULL)
        return false;
    checkpoint_add_guide(reader->checkpoint, source);
    reader->document = document_parse(source, error);
    if (reader->document == NULL)
        return false;
    return meta_params_parse(json_root(reader->document), &reader->params, error) || error_prefix(error, "params.json");
}

static bool read_tokenizer(struct reader *reader, struct error *error)
{
    size_t length;
    bool damaged;
    if (!input_has(reader->input, "tokenizer.model"))
        return true;
    struct source *source = location_source(reader->input->location, "tokenizer.model", error);
    if (source == NULL)
        return false;
    checkpoint_add_guide(reader->checkpoint, source);
    char *text = source_read_text(source, document_limit("tokenizer.model"), &length, error);
    if (text == NULL)
        return false;
    reader->tiktoken = tiktoken_parse(text, length, TIKTOKEN_RANKS_SAID, &damaged, error);
    free(text);
    if (damaged)
        return error_prefix(error, "tokenizer.model");
    reader->params.sentencepiece = reader->tiktoken == NULL;
    reader->params.n_ranks = reader->tiktoken != NULL ? tiktoken_count(reader->tiktoken) : 0;
    return true;
}

/* The shards. */

static bool count_shards(struct reader *reader, struct error *error)
{
    char name[32];
    unsigned n_present = 0;
    for (unsigned i = 0; i < MAX_SHARDS; i++) {
        snprintf(name, sizeof name, "consolidated.%02u.pth", i);
        n_present += input_has(reader->input, name);
        if (input_has(reader->input, name))
            reader->n_shards = i + 1;
    }
    if (n_present == reader->n_shards)
        return true;
    return error_set(error, "%s: %u shards are there, but the last one is consolidated.%02u.pth", reader->input->path,
                     n_present, reader->n_shards - 1);
}

static bool read_shard(struct reader *reader, const char *name, struct tensor_set *shard, struct error *error)
{
    struct source *source = location_source(reader->input->location, name, error);
    if (source == NULL)
        return false;
    return format_read_file(reader->checkpoint, source, shard, reader->options, error) && tensor_set_seal(shard, error);
}

static bool read_shards(struct reader *reader, struct error *error)
{
    for (unsigned i = 0; i < reader->n_shards; i++) {
        char name[32];
        snprintf(name, sizeof name, "consolidated.%02u.pth", i);
        reader->shards[i] = tensor_set_new(reader->checkpoint->arena);
        if (!read_shard(reader, name, reader->shards[i], error))
            return false;
    }
    return true;
}

/* Names. */

static const struct name_rule *find_rule(const struct name_rule *rules, const char *name)
{
    while (rules->suffix != NULL && strcmp(rules->suffix, name) != 0)
        rules++;
    return rules;
}

/* Returns the rule for a tensor, and its new name in `out`. A tensor without a rule keeps its name. */
static enum merge_rule rule_of(const struct tensor *tensor, char out[MAX_NAME])
{
    int layer, used = 0;
    snprintf(out, MAX_NAME, "%s", tensor->name);
    if (strlen(tensor->name) != tensor->name_length || tensor->name_length >= MAX_NAME / 2)
        return UNKNOWN;
    bool in_layer = sscanf(tensor->name, "layers.%9d.%n", &layer, &used) == 1 && used > 0 && layer >= 0;
    const struct name_rule *rule =
        in_layer ? find_rule(layer_rules, tensor->name + used) : find_rule(model_rules, tensor->name);
    if (rule->hugging_face == NULL)
        return rule->rule;
    if (in_layer)
        snprintf(out, MAX_NAME, "model.layers.%d.%s", layer, rule->hugging_face);
    else
        snprintf(out, MAX_NAME, "%s", rule->hugging_face);
    return rule->rule;
}

/* Merging. */

struct parts {
    const struct tensor *tensors[MAX_SHARDS];
    unsigned n;
};

/* Keeps one copy of each head that several shards repeat. */
static void drop_repeated_heads(const struct reader *reader, struct parts *parts)
{
    uint64_t rows = parts->tensors[0]->shape[0],
             wanted = reader->params.n_kv_heads * (reader->params.dim / reader->params.n_heads);
    uint64_t repeat = rows > 0 && wanted % rows == 0 && wanted / rows > 0 ? parts->n / (wanted / rows) : 1;
    if (repeat <= 1 || wanted / rows * repeat != parts->n)
        return;
    for (unsigned i = 0; i < parts->n / repeat; i++)
        parts->tensors[i] = parts->tensors[i * repeat];
    parts->n /= (unsigned)repeat;
}

/* Returns the axis along which to join the slices; -1: they do not fit. */
static int joining_axis(const struct reader *reader, const struct parts *parts, enum merge_rule rule)
{
    const struct tensor *part = parts->tensors[0];
    unsigned axis = rule == COLUMNS;
    if (part->rank != 2)
        return -1;
    if (rule == EMBEDDING)
        axis = part->shape[1] != reader->params.dim;
    for (unsigned i = 1; i < parts->n; i++) {
        const struct tensor *other = parts->tensors[i];
        if (other->dtype != part->dtype || other->rank != 2 || other->shape[1 - axis] != part->shape[1 - axis])
            return -1;
    }
    return (int)axis;
}

/* Reorders the rows of each head from pairs (even and odd rows side by side) to halves, by the inverse of Llama's
 * relation for query rows. Returns NULL if the rows are not whole heads. */
static const struct view *rotary_view(struct arena *arena, const struct view *view, uint64_t n_heads)
{
    const struct axis_size sizes[] = {{.name = "head", .size = n_heads}, {.name = "half", .size = 2}};
    struct error error;
    const struct view *halves;
    const struct rearrangement *rotary = rearrangement_parse(arena, QUERY_ROTARY, &error);
    const struct axis_sizes known = {sizes, sizeof sizes / sizeof *sizes};
    return rearrangement_apply(arena, rotary, BACKWARD, &known, &view, &halves, &error) ? halves : NULL;
}

static void merge_parts(struct reader *reader, struct parts *parts, enum merge_rule rule, struct tensor *merged)
{
    struct arena *arena = reader->checkpoint->arena;
    const struct view *views[MAX_SHARDS];
    bool heads = rule == ROTARY_KEY || rule == ROWS_OF_HEADS;
    if (heads && merged->rank == 2)
        drop_repeated_heads(reader, parts);
    int axis = joining_axis(reader, parts, rule);
    if (axis < 0) {
        merged->refusal = "its parts in the shards disagree in shape";
        return;
    }
    for (unsigned i = 0; i < parts->n; i++)
        views[i] = tensor_view(parts->tensors[i], arena);
    const struct view *whole = parts->n == 1 ? views[0] : view_concatenate(arena, views, parts->n, (unsigned)axis);
    uint64_t n_heads = 0;
    if (rule == ROTARY || rule == ROTARY_KEY)
        n_heads = rule == ROTARY ? reader->params.n_heads : reader->params.n_kv_heads;
    merged->view = n_heads > 0 ? rotary_view(arena, whole, n_heads) : whole;
    if (merged->view == NULL) {
        merged->refusal = "its rows are not whole heads";
        return;
    }
    merged->shape = merged->view->shape;
    merged->strides = NULL;
    if (parts->n == 1 && n_heads == 0) /* unchanged from its shard */
        *merged = *parts->tensors[0];
}

static bool collect_parts(const struct reader *reader, const struct tensor *first, struct parts *parts,
                          struct error *error)
{
    parts->n = reader->n_shards;
    for (unsigned i = 0; i < parts->n; i++) {
        parts->tensors[i] = i == 0 ? first : tensor_set_find(reader->shards[i], first->name, first->name_length);
        if (parts->tensors[i] == NULL)
            return error_set(error, "consolidated.%02u.pth: tensor '%.200s' is missing, which consolidated.00.pth has",
                             i, first->name);
    }
    return true;
}

static bool add_merged(struct reader *reader, const struct tensor *first, struct error *error)
{
    char name[MAX_NAME];
    enum merge_rule rule = rule_of(first, name);
    struct tensor merged = *first;
    struct parts parts;
    if (rule == DROPPED)
        return true;
    if (!collect_parts(reader, first, &parts, error))
        return false;
    for (unsigned i = 0; i < parts.n && merged.refusal == NULL; i++)
        merged.refusal = parts.tensors[i]->refusal;
    if (rule == UNKNOWN && reader->n_shards > 1)
        merged.refusal = "it is unknown how to merge its parts in the shards";
    else if (rule != UNKNOWN && rule != SAME && merged.refusal == NULL)
        merge_parts(reader, &parts, rule, &merged);
    if (rule != UNKNOWN) {
        merged.name = arena_strdup(reader->checkpoint->arena, name);
        merged.name_length = (uint32_t)strlen(name);
    } else {
        checkpoint_note(reader->checkpoint, SUBJECT_SOURCE, "tensors unknown to Llama keep their names: '%.200s'",
                        first->name);
    }
    tensor_set_add(reader->merged, &merged);
    return true;
}

static bool same_bytes(const struct tensor *a, const struct tensor *b)
{
    return a->source == b->source && a->offset == b->offset && a->length == b->length && a->view == NULL &&
           b->view == NULL;
}

/* Returns lm_head.weight if it is tied to the embedding, because the conversion leaves it out; else NULL. */
static const struct tensor *tied_output(struct reader *reader)
{
    const struct tensor *embedding = tensor_set_find_text(reader->merged, "model.embed_tokens.weight");
    const struct tensor *output = tensor_set_find_text(reader->merged, "lm_head.weight");
    reader->params.tied = output == NULL || same_bytes(embedding, output) || meta_is_small_llama32(&reader->params);
    if (output == NULL || !reader->params.tied)
        return NULL;
    checkpoint_note(reader->checkpoint, SUBJECT_SOURCE, "output.weight is left out: it is tied to the embedding");
    return output;
}

static const char *torch_name(const struct dtype *dtype)
{
    if (dtype == &f32_dtype)
        return "float32";
    return dtype == &f16_dtype ? "float16" : "bfloat16";
}

static bool derive_params(struct reader *reader, struct error *error)
{
    const struct tensor *embedding = tensor_set_find_text(reader->merged, "model.embed_tokens.weight");
    const struct tensor *gate = tensor_set_find_text(reader->merged, "model.layers.0.mlp.gate_proj.weight");
    if (embedding == NULL || embedding->rank != 2 || gate == NULL || gate->rank != 2)
        return error_set(error, "%s: tok_embeddings.weight or layers.0.feed_forward.w1.weight is missing",
                         reader->input->path);
    reader->params.vocab_size = embedding->shape[0];
    reader->params.intermediate_size = gate->shape[0];
    reader->params.dtype = torch_name(embedding->dtype);
    return true;
}

/* Makes the checkpoint's tensors, in the order of names, from the first shard's and their slices in the others. */
static bool merge(struct reader *reader, struct error *error)
{
    struct arena *scratch = arena_new();
    const struct tensor_set *first = reader->shards[0];
    struct tensor_set *merged = reader->merged = tensor_set_new(scratch);
    bool good = true;
    for (size_t i = 0; i < first->n_tensors && good; i++)
        good = add_merged(reader, &first->tensors[i], error);
    good = good && tensor_set_seal(merged, error) && derive_params(reader, error);
    const struct tensor *left_out = good ? tied_output(reader) : NULL;
    for (size_t i = 0; i < merged->n_tensors && good; i++) {
        const struct tensor *tensor = &merged->tensors[merged->by_name[i]];
        if (tensor != left_out)
            tensor_set_add(reader->checkpoint->unsealed, tensor);
    }
    arena_free(scratch);
    return good;
}

/* Files that the conversion would write. */

static void add_text(const struct reader *reader, const char *name, struct buffer *text)
{
    struct checkpoint *checkpoint = reader->checkpoint;
    if (!input_has(reader->input, name)) {
        const struct source *base = checkpoint->sources[0];
        checkpoint_add_side_file(checkpoint, name, source_of_text(base, name, (const char *)text->bytes, text->length));
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s is made of params.json%s", name,
                        strcmp(name, "config.json") == 0 ? " and the shapes of the tensors" : " and tokenizer.model");
    }
    buffer_free(text);
}

static void add_made_files(const struct reader *reader)
{
    struct buffer config = {0}, tokenizer_config = {0}, tokenizer = {0};
    meta_write_config(&reader->params, &config);
    add_text(reader, "config.json", &config);
    if (!input_has(reader->input, "tokenizer.model"))
        return;
    meta_write_tokenizer_config(&reader->params, &tokenizer_config);
    add_text(reader, "tokenizer_config.json", &tokenizer_config);
    if (reader->tiktoken == NULL)
        return;
    meta_write_tokenizer(reader->tiktoken, reader->params.use_scaled_rope, &tokenizer);
    add_text(reader, "tokenizer.json", &tokenizer);
}

/* Hides Llama 3's tokenizer.model, which has the name of a SentencePiece model but is none; tokenizer.json replaces it,
 * as in the conversion. */
static void hide_ranks(struct checkpoint *checkpoint)
{
    static const char name[] = "tokenizer.model";
    if (checkpoint_side_file(checkpoint, name) != NULL)
        checkpoint_hide_side_file(checkpoint, name, "ranks of tokens, shown as tokenizer.json");
}

static bool meta_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                      struct error *error)
{
    struct reader reader = {.checkpoint = checkpoint, .input = input, .options = options};
    bool good = count_shards(&reader, error) && read_params(&reader, error) && read_tokenizer(&reader, error) &&
                read_shards(&reader, error) && merge(&reader, error);
    if (good) {
        if (input->file_name != NULL && reader.n_shards > 1)
            checkpoint_note(checkpoint, SUBJECT_SOURCE,
                            "%s is the first of %u shards, shown merged; -o format=torch shows it alone",
                            input->file_name, reader.n_shards);
        add_made_files(&reader);
        format_add_side_files(checkpoint, input);
        if (reader.tiktoken != NULL)
            hide_ranks(checkpoint);
    }
    tiktoken_free(reader.tiktoken);
    json_free(reader.document);
    return good;
}

const struct format meta_format = {
    .name = "meta",
    .directory_name = "consolidated.00.pth",
    .summary = "Meta's Llama directories: params.json, consolidated.00.pth ...",
    .probe = meta_probe,
    .open = meta_open,
};
