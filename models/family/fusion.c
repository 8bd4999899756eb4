#include "models/family/tensors.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* Architectures that know attn_qkv beside attn_q, attn_k and attn_v, and whose converter joins them. */
static const char *const qkv_architectures[] = {
    "llama",          "llama4",
    "deci",           "grok",
    "baichuan",       "bert",
    "jina-bert-v2",   "eurobert",
    "gptj",           "refact",
    "stablelm",       "qwen2",
    "dream",          "llada",
    "qwen2vl",        "qwen2moe",
    "qwen3",          "qwen3moe",
    "qwen3next",      "qwen3vl",
    "qwen3vlmoe",     "qwen35",
    "qwen35moe",      "qwen4exp",
    "plamo",          "phi2",
    "phi3",           "phimoe",
    "orion",          "internlm2",
    "minicpm",        "gemma",
    "gemma2",         "gemma3",
    "gemma3n",        "gemma4",
    "starcoder2",     "gemma-embedding",
    "xverse",         "command-r",
    "cohere2",        "olmo",
    "olmo2",          "seed_oss",
    "olmoe",          "arctic",
    "deepseek",       "deepseek2-ocr",
    "ernie4_5-moe",   "chatglm",
    "glm4",           "glm4moe",
    "jais2",          "nemotron",
    "nemotron_h",     "nemotron_h_moe",
    "exaone",         "exaone4",
    "exaone-moe",     "granite",
    "granitemoe",     "granitehybrid",
    "graniteswitch",  "chameleon",
    "bailingmoe",     "dots1",
    "arcee",          "afmoe",
    "ernie4_5",       "paddleocr",
    "falcon-h1",      "hunyuan-moe",
    "hunyuan-dense",  "hunyuan_vl",
    "smollm3",        "gpt-oss",
    "lfm2",           "lfm2moe",
    "smallthinker",   "apertus",
    "llada-moe",      "grovemoe",
    "minimax-01",     "minimax-m2",
    "rnd1",           "mimo2",
    "step35",         "llama-embed",
    "pangu-embedded", "mistral3",
    "maincoder",      "muse-glimmer",
    "kimi-linear",
};

static const char *const gate_up_architectures[] = {
    "qwen3next", "qwen35moe", "qwen4exp", "gemma4", "cohere2moe", "deepseek2-ocr", "granite_swa", "mistral4",
};

/* Architectures whose experts the converter writes past the option. */
static const char *const past_architectures[] = {"deepseek4", "dflash", "jamba"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The tensors of a layer that are joined: q, k, v and their biases. */
static const char *const parts[] = {"attn_q.weight", "attn_k.weight", "attn_v.weight",
                                    "attn_q.bias",   "attn_k.bias",   "attn_v.bias"};

enum { N_PARTS = COUNT(parts), N_MATRICES = N_PARTS / 2, ALL_WEIGHTS = 7, ALL = 63 };

/* Returns the number of the part that a GGUF name is, -1: none; *ret_layer is its layer. */
static int part_of(const char *name, uint64_t *ret_layer)
{
    uint64_t numbers[PATTERN_NUMBERS];
    if (!pattern_match("blk.{}.*", name, strlen(name), numbers))
        return -1;
    const char *rest = strchr(name + strlen("blk."), '.') + 1;
    *ret_layer = numbers[0];
    for (size_t i = 0; i < N_PARTS; i++)
        if (strcmp(parts[i], rest) == 0)
            return (int)i;
    return -1;
}

/* Reports whether the converter knows the tensor's name before it renames it while it writes. */
static bool is_known_early(const struct family *family, const char *shown)
{
    return family->renamed_late == NULL || !text_starts_with(shown, family->renamed_late);
}

static void mark(const struct model_builder *builder, const struct relation_job *job, size_t i, struct fusible *fusible)
{
    struct relation_match match;
    uint64_t layer, member;
    const struct tensor *tensor = &job->set->tensors[i];
    if (tensor->dtype->kind == DTYPE_BLOCK || !is_known_early(builder->family, job->shown[i]) ||
        !relation_find(job->relation, FORWARD, job->dimensions, NULL, tensor->name, &match) ||
        match.entry->row->there == NULL || match.entry->n_names[FORWARD] != 1 || match.entry->n_names[BACKWARD] != 1)
        return;
    int part = part_of(relation_target(job, &match, &member), &layer);
    if (part >= 0 && layer < fusible->n_layers && member == UINT64_MAX)
        fusible->marks[layer] |= (uint8_t)(1 << part);
}

struct fusible fusion_find(const struct model_builder *builder, const struct relation_job *job)
{
    const struct converter_options *options = &builder->model->references.converter;
    const char *architecture = family_architecture(builder->family);
    if (!options->fuses_qkv || builder->family->tower != NULL ||
        !text_is_one_of(architecture, qkv_architectures, COUNT(qkv_architectures)))
        return (struct fusible){0};
    struct fusible fusible = {.n_layers = job->set->n_tensors}; /* a layer has at least one */
    fusible.marks = arena_array(job->arena, fusible.n_layers + 1, 1);
    memset(fusible.marks, 0, fusible.n_layers + 1);
    for (size_t i = 0; i < job->set->n_tensors; i++)
        mark(builder, job, i, &fusible);
    return fusible;
}

static const struct view *join(struct arena *arena, const char *name, const struct view **views, size_t n_views,
                               unsigned axis, struct error *error)
{
    for (size_t i = 0; i < n_views; i++) {
        bool fits = views[i]->rank == views[0]->rank && axis < views[i]->rank;
        for (unsigned j = 0; j < views[i]->rank && fits; j++)
            fits = j == axis || views[i]->shape[j] == views[0]->shape[j];
        if (!fits) {
            error_set(error, "option fuse: the parts of %s have different shapes", name);
            return NULL;
        }
    }
    bool are_alike = true;
    for (size_t i = 1; i < n_views; i++)
        are_alike &= views[i]->dtype == views[0]->dtype;
    for (size_t i = 0; i < n_views && !are_alike; i++)
        views[i] = view_convert(arena, views[i], &f32_dtype);
    return view_concatenate(arena, views, n_views, axis);
}

/* Parts of a tensor that have been met, by layer. */
struct met {
    const struct view *views[N_PARTS];
    unsigned marks;
};

static bool fuse_qkv(struct model_builder *builder, const struct fusible *fusible, struct error *error)
{
    struct arena *arena = builder->model->arena;
    const struct tensor_set *before = builder->model->tensors;
    struct tensor_set *set = tensor_set_new(arena);
    struct met *met = arena_array(arena, fusible->n_layers + 1, sizeof *met);
    memset(met, 0, (fusible->n_layers + 1) * sizeof *met);
    for (size_t i = 0; i < before->n_tensors; i++) {
        uint64_t layer = 0;
        int part = part_of(before->tensors[i].name, &layer);
        bool is_whole = part >= 0 && layer < fusible->n_layers &&
                        (fusible->marks[layer] == ALL_WEIGHTS || fusible->marks[layer] == ALL);
        if (!is_whole) {
            tensor_set_add(set, &before->tensors[i]);
            continue;
        }
        unsigned first = (unsigned)part / N_MATRICES * N_MATRICES;
        met[layer].views[part] = tensor_view(&before->tensors[i], arena);
        met[layer].marks |= 1u << part;
        if ((met[layer].marks >> first & ALL_WEIGHTS) != ALL_WEIGHTS)
            continue;
        const char *name = arena_printf(arena, "blk.%" PRIu64 ".attn_qkv.%s", layer, first == 0 ? "weight" : "bias");
        const struct view *joined = join(arena, name, &met[layer].views[first], N_MATRICES, 0, error);
        if (joined == NULL)
            return false;
        tensor_set_add_view(set, name, joined);
        tensor_set_edit(set)[set->n_tensors - 1].was_fp8 = before->tensors[i].was_fp8;
    }
    builder->model->tensors = set;
    return true;
}

/* Reports whether the tensor is the gate (0) or up (1) of a layer's experts, as numbers rather than a packing's blocks;
 * the other one is `*ret_other`. */
static bool is_gate_or_up(const struct model_builder *builder, const struct tensor *tensor, size_t *ret_which,
                          const char **ret_other)
{
    static const char *const names[] = {"ffn_gate_exps.weight", "ffn_up_exps.weight"};
    uint64_t numbers[PATTERN_NUMBERS];
    if (tensor->view->dtype->kind == DTYPE_BLOCK ||
        !pattern_match("blk.{}.*", tensor->name, tensor->name_length, numbers))
        return false;
    const char *rest = strchr(tensor->name + strlen("blk."), '.') + 1;
    for (size_t i = 0; i < 2; i++)
        if (strcmp(names[i], rest) == 0) {
            *ret_which = i;
            *ret_other = arena_printf(builder->model->arena, "blk.%" PRIu64 ".%s", numbers[0], names[1 - i]);
            return true;
        }
    return false;
}

static const struct tensor *find(const struct tensor_set *set, const char *name, size_t *ret_place)
{
    for (*ret_place = 0; *ret_place < set->n_tensors; ++*ret_place)
        if (strcmp(set->tensors[*ret_place].name, name) == 0)
            return &set->tensors[*ret_place];
    return NULL;
}

static bool fuse_gate_up(struct model_builder *builder, struct error *error)
{
    struct arena *arena = builder->model->arena;
    const char *architecture = family_architecture(builder->family), *other_name;
    const struct tensor_set *before = builder->model->tensors;
    struct tensor_set *set = tensor_set_new(arena);
    for (size_t i = 0; i < before->n_tensors; i++) {
        const struct tensor *tensor = &before->tensors[i];
        size_t which, place;
        if (!is_gate_or_up(builder, tensor, &which, &other_name)) {
            tensor_set_add(set, tensor);
            continue;
        }
        if (!text_is_one_of(architecture, gate_up_architectures, COUNT(gate_up_architectures)))
            return error_set(error, "option fuse: the converter's --fuse-gate-up-exps fails for the architecture %s",
                             architecture);
        const struct tensor *other = find(before, other_name, &place);
        if (other == NULL)
            return error_set(error, "option fuse: %s has no %s to be joined with", tensor->name, other_name);
        if (place > i)
            continue;
        const struct view *views[] = {tensor_view(which == 0 ? tensor : other, arena),
                                      tensor_view(which == 0 ? other : tensor, arena)};
        const char *name =
            arena_printf(arena, "%.*sffn_gate_up_exps.weight",
                         (int)(strchr(tensor->name + strlen("blk."), '.') + 1 - tensor->name), tensor->name);
        const struct view *joined = join(arena, name, views, 2, 1, error);
        if (joined == NULL)
            return false;
        tensor_set_add_view(set, name, joined);
        tensor_set_edit(set)[set->n_tensors - 1].was_fp8 = tensor->was_fp8;
    }
    builder->model->tensors = set;
    return true;
}

bool fusion_apply(struct model_builder *builder, const struct fusible *fusible, struct error *error)
{
    bool is_past = text_is_one_of(family_architecture(builder->family), past_architectures, COUNT(past_architectures));
    if (builder->family->tower != NULL)
        return true;
    return (fusible->marks == NULL || fuse_qkv(builder, fusible, error)) &&
           (!builder->model->references.converter.fuses_gate_up || is_past || fuse_gate_up(builder, error));
}
