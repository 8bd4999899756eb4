/* Gives a checkpoint that mlx-lm wrote (mlx_lm.convert, mlx_lm.fuse, or mlx/ of wfs) the names and shapes that
 * transformers has: sanitize() of the model's class in mlx-lm, undone. Stacked experts become a matrix each, also if
 * they are quantized. Quantized weights are dequantized first if they are joined or transposed, or if config.json
 * describes them by a name that changes. If a tensor or a class
 * cannot be turned back, the tensors stay as stored, and no file is made of them all.
 *
 * Source: sanitize() of the classes in mlx_lm/models/ of mlx-lm. */
#include "models/derive/foreign_names.h"

#include "base/text.h"
#include "models/config/hparams.h"
#include "models/derive/derive.h"
#include "models/facts.h"
#include "models/packings/packings.h"
#include "models/relation/elementwise.h"
#include "models/relation/pattern.h"
#include "models/relation/rearrangement.h"

#include <inttypes.h>
#include <string.h>

#define QUANTIZED "mlx-lm quantized the weight in another shape, and it cannot be dequantized"
#define SCALAR    "scalar" /* a number without dimensions, which transformers has in one */

/* What is done to a module, by the end of its path. The first rule that fits counts. */
static const struct mlx_rule {
    const char *types; /* model types, separated by bars; NULL: any */
    const char *there; /* the end of the path in mlx-lm */
    const char *here;  /* in transformers; with {}, each matrix of a stack becomes a module; NULL: the same */
    const char *axes;  /* a rearrangement from there to here; NULL: unchanged */
    bool minus_one;    /* 1 was added to the values */
    bool is_bare;      /* the name in transformers has no ".weight", and "_bias" for ".bias" */
} rules[] = {
#define W_TYPES "mixtral|phimoe|minimax|minimax_m2|minimax_m3_vl|lfm2_moe"
    {W_TYPES, ".switch_mlp.gate_proj", ".experts.{}.w1"},
    {W_TYPES, ".switch_mlp.up_proj", ".experts.{}.w3"},
    {W_TYPES, ".switch_mlp.down_proj", ".experts.{}.w2"},
    {"lfm2_moe", ".feed_forward.gate_proj", ".feed_forward.w1"},
    {"lfm2_moe", ".feed_forward.up_proj", ".feed_forward.w3"},
    {"lfm2_moe", ".feed_forward.down_proj", ".feed_forward.w2"},
    {"lfm2|lfm2_moe", ".conv.conv", NULL, "c k 1 -> c 1 k"},
#define STEP "step3p5"
    {STEP, ".mlp.gate.gate", ".moe.gate"},
    {STEP, ".mlp.gate.router_bias", ".moe.router_bias"},
    {STEP, ".mlp.switch_mlp.gate_proj", ".moe.gate_proj"},
    {STEP, ".mlp.switch_mlp.up_proj", ".moe.up_proj"},
    {STEP, ".mlp.switch_mlp.down_proj", ".moe.down_proj"},
    {STEP, ".mlp.share_expert.gate_proj", ".share_expert.gate_proj"},
    {STEP, ".mlp.share_expert.up_proj", ".share_expert.up_proj"},
    {STEP, ".mlp.share_expert.down_proj", ".share_expert.down_proj"},
    {STEP, "norm", NULL, .minus_one = true},
    {"granitemoe|granitemoehybrid", ".switch_mlp.down_proj", ".output_linear"},
    {"granitemoehybrid", ".mlp.down_proj", ".shared_mlp.output_linear"},
    {"llama4|llama4_text", ".experts.down_proj", NULL, "e o i -> e i o", .is_bare = true},
    {"qwen3_vl_moe|qwen3_vl_moe_text", ".switch_mlp.down_proj", ".experts.down_proj", "e o i -> e i o",
     .is_bare = true},
    {"gemma4|gemma4_unified|gemma4_text", ".switch_glu.down_proj", ".down_proj", .is_bare = true},
    {"gpt_oss", ".experts.down_proj", NULL, "e o i -> e i o", .is_bare = true},
    {"phixtral|phi-msft", ".switch_mlp.fc1", ".mlp.{}.fc1"},
    {"phixtral|phi-msft", ".switch_mlp.fc2", ".mlp.{}.fc2"},
    {"nemotron_h", ".switch_mlp.fc1", ".experts.{}.up_proj"},
    {"nemotron_h", ".switch_mlp.fc2", ".experts.{}.down_proj"},
    {"dots1|afmoe|Klear", ".experts.gate_proj", ".experts.{}.gate_proj"},
    {"dots1|afmoe|Klear", ".experts.up_proj", ".experts.{}.up_proj"},
    {"dots1|afmoe|Klear", ".experts.down_proj", ".experts.{}.down_proj"},
    {"bailing_moe|bailing_moe_linear|bailing_hybrid", ".mlp.gate.gate_proj", ".mlp.gate"},
    {"laguna", ".mlp.gate.proj", ".mlp.gate"},
    {"laguna", ".mlp.gate.e_score_correction_bias", ".mlp.experts.e_score_correction_bias"},
    {"recurrent_gemma", ".conv_1d", NULL, "c k 1 -> c 1 k"},
    {"exaone_moe", ".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias"},
    {"gpt2", ".attn.c_attn", NULL, "o i -> i o"},
    {"gpt2", ".attn.c_proj", NULL, "o i -> i o"},
    {"gpt2", ".mlp.c_fc", NULL, "o i -> i o"},
    {"gpt2", ".mlp.c_proj", NULL, "o i -> i o"},
#define NORMS "qwen3_next|qwen3_5|qwen3_5_text|qwen3_5_moe|qwen3_5_moe_text"
    {NORMS, ".input_layernorm", NULL, .minus_one = true},
    {NORMS, ".post_attention_layernorm", NULL, .minus_one = true},
    {NORMS, "model.norm", NULL, .minus_one = true},
    {NORMS, ".q_norm", NULL, .minus_one = true},
    {NORMS, ".k_norm", NULL, .minus_one = true},
    {"bailing_moe_v3|olmo_hybrid", ".q_conv1d", NULL, "c k 1 -> c 1 k"},
    {"bailing_moe_v3|olmo_hybrid", ".k_conv1d", NULL, "c k 1 -> c 1 k"},
    {"bailing_moe_v3|olmo_hybrid", ".v_conv1d", NULL, "c k 1 -> c 1 k"},
    {"gear", ".key_conv", NULL, "c k 1 -> c 1 k"},
    {"gear", ".value_conv", NULL, "c k 1 -> c 1 k"},
    {"rwkv7", ".attn.k_k", NULL, "h c -> (h c)"},
    {"rwkv7", ".attn.k_a", NULL, "h c -> (h c)"},
    {"rwkv7", ".attn.g_norm", NULL, "h c -> (h c)"},
    {"longcat_flash_ngram", ".ngram_embeddings.word_embeddings", ".embed_tokens"},
    {"apertus", ".alpha_p", NULL, SCALAR},
    {"apertus", ".alpha_n", NULL, SCALAR},
    {NULL, ".switch_mlp.gate_proj", ".experts.{}.gate_proj"},
    {NULL, ".switch_mlp.up_proj", ".experts.{}.up_proj"},
    {NULL, ".switch_mlp.down_proj", ".experts.{}.down_proj"},
    {NULL, ".conv1d", NULL, "c k 1 -> c 1 k"},
};

/* Beginnings of names that mlx-lm changes. The first that fits counts. */
static const struct mlx_prefix {
    const char *types, *there, *here;
} prefixes[] = {
    {"gpt2|gptj", "model.", "transformer."},
    {"gpt_neox", "model.h.", "gpt_neox.layers."},
    {"gpt_neox", "model.embed_out", "embed_out"},
    {"gpt_neox", "model.", "gpt_neox."},
};

/* Classes that are not turned back. */
static const struct mlx_refused {
    const char *types, *reason;
} refused_classes[] = {
    {"falcon_h1", "mlx-lm multiplied the weights by the multipliers of config.json, which wfs cannot undo exactly"},
    {"kimi_linear|kimi_k3", "wfs does not undo what mlx-lm changes in the weights of this class"},
};

/* Two tensors of mlx-lm that are one in transformers: the ends of the names, and the rearrangement. */
static const struct mlx_pair {
    const char *types; /* as in a rule */
    const char *first, *second, *here;
    const char *axes; /* one and other are 1: rows that alternate */
} pairs[] = {
    {NULL, ".embed_q.weight", ".unembed_out.weight", ".kv_b_proj.weight",
     "head rank nope, head value rank -> (head (nope + value)) rank"},
#define GATE_UP(module) module ".gate_proj.weight", module ".up_proj.weight"
    {"granitemoe|granitemoehybrid", GATE_UP(".switch_mlp"), ".input_linear.weight", "e g c, e u c -> e (g + u) c"},
    {"granitemoehybrid", GATE_UP(".mlp"), ".shared_mlp.input_linear.weight", "g c, u c -> (g + u) c"},
    {"llama4|llama4_text", GATE_UP(".experts"), ".experts.gate_up_proj", "e g c, e u c -> e c (g + u)"},
    {"qwen3_vl_moe|qwen3_vl_moe_text", GATE_UP(".switch_mlp"), ".experts.gate_up_proj", "e g c, e u c -> e c (g + u)"},
    {"gemma4|gemma4_unified|gemma4_text", GATE_UP(".switch_glu"), ".gate_up_proj", "e g c, e u c -> e (g + u) c"},
    {"gpt_oss", GATE_UP(".experts"), ".experts.gate_up_proj",
     "e (row one) c, e (row other) c -> e c (row (one + other))"},
    {"gpt_oss", ".experts.gate_proj.bias", ".experts.up_proj.bias", ".experts.gate_up_proj_bias",
     "e (row one), e (row other) -> e (row (one + other))"},
};

/* Numbered modules of mlx-lm whose rows follow each other in one tensor of transformers: patterns of the names, in
 * which the number of the module comes last. */
static const struct mlx_run {
    const char *types; /* as in a rule */
    const char *there, *here;
    bool is_transposed;
} runs[] = {
#define DBRX(name)                                                                                                     \
    "dbrx", "transformer.blocks.{}.ffn.experts.{}." name ".weight", "transformer.blocks.{}.ffn.experts.mlp." name
    {DBRX("w1")},
    {DBRX("v1")},
    {DBRX("w2"), .is_transposed = true},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct undoing {
    const char *model_type;
    const struct json *quantization; /* config.json's; NULL: none */
    const struct tensor_set *from;
    struct tensor_set *to;
    struct arena *arena;
    bool is_changed;
    const char *refused; /* the first quantized weight that cannot be turned back; NULL: none */
    struct error *error;

    /* What becomes of quantized weights that are joined or rearranged; NULL: they are refused. */
    const struct tensor_fate *fates; /* by tensor */
    const struct dtype *dtype;       /* of their values */
};

struct tensor_fate {
    const struct view *values; /* NULL: as stored */
    bool is_left_out;
};

static bool has_type(const char *types, const char *model_type)
{
    size_t length = strlen(model_type);
    for (const char *at = types; at != NULL; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (strncmp(at, model_type, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return true;
    return false;
}

/* Returns the length of the path in a tensor's name: without the ending of a module's tensor. */
static size_t path_length(const char *name)
{
    static const char *const endings[] = {".weight", ".scales", ".biases", ".bias"};
    for (size_t i = 0; i < COUNT(endings); i++)
        if (text_ends_with(name, endings[i]))
            return strlen(name) - strlen(endings[i]);
    return strlen(name);
}

static const struct mlx_rule *find_rule(const char *model_type, const char *path)
{
    for (size_t i = 0; i < COUNT(rules); i++)
        if (text_ends_with(path, rules[i].there) && (rules[i].types == NULL || has_type(rules[i].types, model_type)))
            return &rules[i];
    return NULL;
}

/* Returns a name with the beginning that it has in transformers. */
static const char *with_prefix(struct arena *arena, const char *model_type, const char *name)
{
    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (has_type(prefixes[i].types, model_type) && text_starts_with(name, prefixes[i].there))
            return arena_printf(arena, "%s%s", prefixes[i].here, name + strlen(prefixes[i].there));
    return name;
}

static void put(struct undoing *undoing, const char *name, const struct view *view)
{
    tensor_set_add_view(undoing->to, name, view);
    undoing->is_changed = true;
}

/* Reports whether a tensor holds codes. */
static bool is_quantized(const struct tensor *tensor)
{
    return tensor->dtype->kind != DTYPE_FLOAT;
}

/* Returns the values of a weight that is dequantized, F32; NULL: it is not. */
static const struct view *dequantized(const struct undoing *undoing, const struct tensor *tensor)
{
    return undoing->fates != NULL ? undoing->fates[tensor - undoing->from->tensors].values : NULL;
}

/* Returns those values, else the tensor as stored. */
static const struct view *view_of(const struct undoing *undoing, const struct tensor *tensor)
{
    const struct view *values = dequantized(undoing, tensor);
    return values != NULL ? values : tensor_view(tensor, undoing->arena);
}

/* Rounds what a weight became to the model's dtype if it is dequantized. */
static const struct view *rounded(const struct undoing *undoing, const struct tensor *tensor, const struct view *view)
{
    return dequantized(undoing, tensor) != NULL ? view_convert(undoing->arena, view, undoing->dtype) : view;
}

/* Refuses a tensor whose codes would be moved, unless it is dequantized; returns whether it does. */
static bool refuse(struct undoing *undoing, const struct tensor *tensor)
{
    bool is_refused = is_quantized(tensor) && dequantized(undoing, tensor) == NULL;
    if (is_refused && undoing->refused == NULL)
        undoing->refused = tensor->name;
    return is_refused;
}

/* Makes each matrix of a stack a module: `path` up to the rule's end. */
static bool unstack(struct undoing *undoing, const struct tensor *tensor, const char *start,
                    const struct mlx_rule *rule, const char *suffix)
{
    struct arena *arena = undoing->arena;
    const char *number = strstr(rule->here, "{}");
    if (tensor->rank < 2 || tensor->shape[0] > TENSOR_SET_MAX - undoing->to->n_tensors)
        return error_set(undoing->error, "tensor '%.200s' is not a stack of experts", tensor->name);
    const struct view *stack = view_of(undoing, tensor);
    for (uint64_t i = 0; i < tensor->shape[0]; i++) {
        const struct view *one = view_slice(arena, stack, 0, i, 1, 1);
        const char *name = arena_printf(arena, "%s%.*s%" PRIu64 "%s%s", start, (int)(number - rule->here), rule->here,
                                        i, number + strlen("{}"), suffix);
        one = view_reshape(arena, one, stack->rank - 1u, stack->shape + 1);
        put(undoing, name, rounded(undoing, tensor, one));
    }
    return true;
}

/* Reports whether a rule moves elements of a weight, or makes one tensor of its parts: not possible with codes. */
static bool needs_values(const struct mlx_rule *rule)
{
    return rule->is_bare || (rule->axes != NULL && strcmp(rule->axes, SCALAR) != 0);
}

static const struct view *undone(struct undoing *undoing, const struct tensor *tensor, const struct mlx_rule *rule)
{
    struct arena *arena = undoing->arena;
    const struct view *view = view_of(undoing, tensor), *result = view;
    if (needs_values(rule) && refuse(undoing, tensor))
        return view;
    if (rule->minus_one && tensor->rank == 1 && dtype_kernels(tensor->dtype).decode != NULL)
        return view_convert(arena, elementwise_apply(arena, &plus_one, NULL, BACKWARD, view), view->dtype);
    const uint64_t one = 1;
    if (rule->axes != NULL && strcmp(rule->axes, SCALAR) == 0)
        return tensor->rank == 0 ? view_reshape(arena, view, 1, &one) : view;
    bool is_turned =
        rule->axes != NULL && tensor->rank == (strchr(rule->axes, '1') != NULL || *rule->axes == 'e' ? 3 : 2);
    if (!is_turned)
        return rounded(undoing, tensor, view);
    const struct axis_sizes none = {0};
    const struct rearrangement *parsed = rearrangement_parse(arena, rule->axes, undoing->error);
    if (parsed == NULL || !rearrangement_apply(arena, parsed, FORWARD, &none, &view, &result, undoing->error)) {
        error_prefix(undoing->error, "tensor '%.200s'", tensor->name);
        return NULL;
    }
    return rounded(undoing, tensor, result);
}

static bool undo(struct undoing *undoing, const struct tensor *tensor)
{
    struct arena *arena = undoing->arena;
    size_t length = path_length(tensor->name);
    const char *path = arena_strndup(arena, tensor->name, length), *suffix = tensor->name + length;
    const struct mlx_rule *rule = find_rule(undoing->model_type, path);
    const char *renamed = with_prefix(arena, undoing->model_type, tensor->name);
    if (rule == NULL && renamed == tensor->name) {
        tensor_set_add(undoing->to, tensor);
        return true;
    }
    if (rule == NULL) {
        put(undoing, renamed, rounded(undoing, tensor, view_of(undoing, tensor)));
        return true;
    }
    const char *start =
        with_prefix(arena, undoing->model_type, arena_strndup(arena, path, length - strlen(rule->there)));
    if (rule->here != NULL && strstr(rule->here, "{}") != NULL)
        return unstack(undoing, tensor, start, rule, suffix);
    const struct view *view = undone(undoing, tensor, rule);
    if (view == NULL)
        return false;
    put(undoing,
        arena_printf(arena, "%s%s%s", start, rule->here != NULL ? rule->here : rule->there,
                     rule->is_bare ? (strcmp(suffix, ".bias") == 0 ? "_bias" : "") : suffix),
        view);
    return true;
}

/* Returns the pair that a tensor is a half of, and the other half; NULL: it is none, or the other half is missing. */
static const struct mlx_pair *find_pair(const struct undoing *undoing, const struct tensor *tensor,
                                        const struct tensor **ret_other)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        bool is_first = text_ends_with(tensor->name, pairs[i].first);
        if ((!is_first && !text_ends_with(tensor->name, pairs[i].second)) ||
            (pairs[i].types != NULL && !has_type(pairs[i].types, undoing->model_type)))
            continue;
        const char *end = is_first ? pairs[i].first : pairs[i].second;
        const char *name = arena_printf(undoing->arena, "%.*s%s", (int)(strlen(tensor->name) - strlen(end)),
                                        tensor->name, is_first ? pairs[i].second : pairs[i].first);
        *ret_other = tensor_set_find_text(undoing->from, name);
        return *ret_other != NULL && (*ret_other)->refusal == NULL ? &pairs[i] : NULL;
    }
    return NULL;
}

static bool join(struct undoing *undoing, const struct mlx_pair *pair, const struct tensor *first,
                 const struct tensor *second)
{
    static const struct axis_size ones[] = {{.name = "one", .size = 1}, {.name = "other", .size = 1}};
    struct arena *arena = undoing->arena;
    const struct axis_sizes sizes = {ones, COUNT(ones)};
    const struct rearrangement *parsed = rearrangement_parse(arena, pair->axes, undoing->error);
    const struct view *both[] = {view_of(undoing, first), view_of(undoing, second)}, *result;
    if (refuse(undoing, first) || refuse(undoing, second))
        return true;
    if (parsed == NULL || !rearrangement_apply(arena, parsed, FORWARD, &sizes, both, &result, undoing->error))
        return error_prefix(undoing->error, "tensor '%.200s'", first->name);
    size_t stem = strlen(first->name) - strlen(pair->first);
    result = rounded(undoing, is_quantized(first) ? first : second, result);
    put(undoing, arena_printf(arena, "%.*s%s", (int)stem, first->name, pair->here), result);
    return true;
}

/* Joins a pair at the place of its first half. */
static bool undo_half(struct undoing *undoing, const struct mlx_pair *pair, const struct tensor *tensor,
                      const struct tensor *other)
{
    return !text_ends_with(tensor->name, pair->first) || join(undoing, pair, tensor, other);
}

/* Returns the run that a tensor is a part of, with the numbers of its name; NULL: none. */
static const struct mlx_run *find_run(const struct undoing *undoing, const char *name, uint64_t *numbers)
{
    for (size_t i = 0; i < COUNT(runs); i++)
        if (has_type(runs[i].types, undoing->model_type) && pattern_match(runs[i].there, name, strlen(name), numbers))
            return &runs[i];
    return NULL;
}

/* Returns part `number` of a run; NULL: there is none. */
static const struct tensor *part_of_run(const struct undoing *undoing, const struct mlx_run *run,
                                        const uint64_t *numbers, uint64_t number)
{
    const uint64_t own[PATTERN_NUMBERS] = {numbers[0], number};
    return tensor_set_find_text(undoing->from, pattern_fill(undoing->arena, run->there, own, ""));
}

/* Joins matrices. If all were dequantized, their rows are rounded together, so that the codes of all can be found. */
static bool join_run(struct undoing *undoing, const char *name, const struct view **views, size_t n,
                     size_t n_dequantized)
{
    struct arena *arena = undoing->arena;
    bool is_mixed = n_dequantized > 0 && n_dequantized < n;
    for (size_t i = 0; i < n; i++) {
        views[i] = is_mixed ? view_convert(arena, views[i], undoing->dtype) : views[i];
        if (views[i]->shape[1] != views[0]->shape[1] || views[i]->dtype != views[0]->dtype)
            return error_set(undoing->error, "part %zu of '%.200s' has another width or dtype than the first", i, name);
    }
    const struct view *whole = view_concatenate(arena, views, n, 0);
    put(undoing, name, n_dequantized == n ? view_convert(arena, whole, undoing->dtype) : whole);
    return true;
}

/* Joins a run at the place of its first part. */
static bool undo_run(struct undoing *undoing, const struct mlx_run *run, const uint64_t *numbers)
{
    struct arena *arena = undoing->arena;
    const struct tensor *part = part_of_run(undoing, run, numbers, 0);
    size_t n_parts = 0, n_dequantized = 0;
    const struct view **views = NULL;
    for (; part != NULL; part = part_of_run(undoing, run, numbers, n_parts)) {
        if (part->rank != 2 || part->refusal != NULL)
            return error_set(undoing->error, "tensor '%.200s' is not a matrix", part->name);
        if (refuse(undoing, part))
            return true;
        const struct view *view = view_of(undoing, part);
        n_dequantized += dequantized(undoing, part) != NULL;
        views = arena_grow(arena, views, n_parts, sizeof *views);
        views[n_parts++] = run->is_transposed ? view_transpose(arena, view) : view;
    }
    return join_run(undoing, pattern_fill(arena, run->here, numbers, ""), views, n_parts, n_dequantized);
}

static bool undo_all(struct undoing *undoing)
{
    const struct tensor_set *from = undoing->from;
    bool good = true;
    for (size_t i = 0; i < from->n_tensors && good; i++) {
        const struct tensor *tensor = &from->tensors[i], *other;
        bool is_plain = strlen(tensor->name) != tensor->name_length || tensor->refusal != NULL;
        uint64_t numbers[PATTERN_NUMBERS];
        const struct mlx_pair *pair = is_plain ? NULL : find_pair(undoing, tensor, &other);
        const struct mlx_run *run = is_plain ? NULL : find_run(undoing, tensor->name, numbers);
        if (undoing->fates != NULL && undoing->fates[i].is_left_out)
            continue;
        if (run != NULL && numbers[1] > 0 && part_of_run(undoing, run, numbers, numbers[1] - 1) != NULL)
            continue;
        if (is_plain || (run != NULL && numbers[1] > 0))
            tensor_set_add(undoing->to, tensor);
        else if (run != NULL)
            good = undo_run(undoing, run, numbers);
        else
            good = pair != NULL ? undo_half(undoing, pair, tensor, other) : undo(undoing, tensor);
    }
    return good;
}

/* Reports whether a weight is joined or rearranged, or gets another name than the one by which config.json describes
 * it alone. */
static bool is_moved(const struct undoing *undoing, const struct tensor *tensor)
{
    const struct tensor *other;
    uint64_t numbers[PATTERN_NUMBERS];
    const char *path = arena_strndup(undoing->arena, tensor->name, path_length(tensor->name));
    const struct mlx_rule *rule = find_rule(undoing->model_type, path);
    bool is_renamed =
        (rule != NULL && rule->here != NULL) || with_prefix(undoing->arena, undoing->model_type, path) != path;
    return find_pair(undoing, tensor, &other) != NULL || find_run(undoing, tensor->name, numbers) != NULL ||
           (rule != NULL && needs_values(rule)) ||
           (is_renamed && json_is(json_get(undoing->quantization, path), JSON_OBJECT));
}

/* Reports whether config.json describes a weight alone. */
static bool describes_weights(const struct json *quantization)
{
    for (struct json_member member = {0}; json_next_member(quantization, &member);)
        if (json_is(member.value, JSON_OBJECT))
            return true;
    return false;
}

/* Finds the values of quantized weights that are joined or rearranged. */
static void find_values(struct undoing *undoing, const struct checkpoint *checkpoint)
{
    const struct packed_weights *packed = packings_of(checkpoint);
    size_t n_tensors = undoing->from->n_tensors;
    struct tensor_fate *fates = arena_array(undoing->arena, n_tensors + 1, sizeof *fates);
    memset(fates, 0, n_tensors * sizeof *fates);
    for (size_t i = 0; i < packed->found.n_weights; i++) {
        const struct unpacked *weight = &packed->found.weights[i];
        if (weight->view == NULL || !is_moved(undoing, weight->parts[0]))
            continue;
        fates[weight->parts[0] - undoing->from->tensors].values = weight->view;
        for (unsigned k = 1; k < weight->n_parts; k++)
            fates[weight->parts[k] - undoing->from->tensors].is_left_out = true;
    }
    undoing->fates = fates;
    undoing->dtype = packed->dtype;
}

/* Tries to undo all, with quantized weights dequantized where that must be. */
static bool try_all(struct undoing *trial, const struct checkpoint *checkpoint)
{
    if (!undo_all(trial))
        return false;
    if (trial->refused == NULL && !describes_weights(trial->quantization))
        return true;
    find_values(trial, checkpoint);
    trial->refused = NULL;
    trial->to = tensor_set_new(trial->arena);
    return undo_all(trial);
}

/* Reports whether a rearrangement swaps the last two axes of a matrix or a stack. */
static bool is_transpose(const char *axes)
{
    return axes != NULL && (text_ends_with(axes, " i o") || text_ends_with(axes, " c (g + u)"));
}

/* Finds the place of a half of a pair of stacks; false if the rows of the two alternate. */
static bool place_of_half(struct arena *arena, const char *model_type, const char *name, struct mlx_place *ret_place)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        bool is_first = text_ends_with(name, pairs[i].first), alternates = strstr(pairs[i].axes, "one") != NULL;
        if ((!is_first && !text_ends_with(name, pairs[i].second)) || pairs[i].types == NULL || alternates ||
            !has_type(pairs[i].types, model_type))
            continue;
        size_t stem = strlen(name) - strlen(is_first ? pairs[i].first : pairs[i].second);
        size_t here = path_length(pairs[i].here);
        *ret_place =
            (struct mlx_place){.path = arena_printf(arena, "%.*s%.*s", (int)stem, name, (int)here, pairs[i].here),
                               .is_transposed = is_transpose(pairs[i].axes),
                               .half = is_first ? MLX_FIRST_HALF : MLX_SECOND_HALF};
        return true;
    }
    return false;
}

struct mlx_place mlx_place_of(struct arena *arena, const char *model_type, const char *path)
{
    struct mlx_place place = {0};
    path = place.path = with_prefix(arena, model_type, path);
    if (place_of_half(arena, model_type, arena_printf(arena, "%s.weight", path), &place))
        return place;
    const struct mlx_rule *rule = find_rule(model_type, path);
    if (rule == NULL)
        return place;
    place.is_transposed = is_transpose(rule->axes);
    if (rule->here != NULL)
        place.path = arena_printf(arena, "%.*s%s", (int)(strlen(path) - strlen(rule->there)), path, rule->here);
    return place;
}

/* Reports whether mlx-lm wrote the checkpoint: its safetensors files say so. */
static bool is_of_mlx(const struct checkpoint *checkpoint)
{
    struct arena *arena = arena_new();
    const char *format = gguf_get_text(&checkpoint->metadata, "format", arena);
    bool is = facts_of(checkpoint).has_class_names && format != NULL && strcmp(format, "mlx") == 0;
    arena_free(arena);
    return is;
}

/* Returns why the tensors of a class are not turned back; NULL: they are. */
static const char *class_refusal(const char *model_type)
{
    for (size_t i = 0; i < COUNT(refused_classes); i++)
        if (has_type(refused_classes[i].types, model_type))
            return refused_classes[i].reason;
    return NULL;
}

/* Makes a checkpoint of the tensors as stored, which are not shown as the model. */
static struct checkpoint *withheld(const struct checkpoint *from, const char *reason)
{
    struct checkpoint *derived = checkpoint_derive(from);
    checkpoint_withhold(derived, reason);
    return derived;
}

/* Makes the derived checkpoint if a tensor is to be changed, or cannot be. */
static bool derive_names(const struct checkpoint *from, const char *model_type, const struct json *quantization,
                         struct checkpoint **ret_derived, struct error *error)
{
    struct arena *scratch = arena_new();
    struct undoing trial = {.model_type = model_type,
                            .quantization = quantization,
                            .from = from->tensors,
                            .to = tensor_set_new(scratch),
                            .arena = scratch,
                            .error = error};
    const char *refusal = class_refusal(model_type);
    bool good = refusal != NULL || try_all(&trial, from);
    if (good && trial.refused != NULL)
        refusal = arena_printf(scratch, "tensor '%.200s': " QUANTIZED, trial.refused);
    if (good && refusal != NULL)
        *ret_derived = withheld(from, refusal);
    if (!good || refusal != NULL || !trial.is_changed) {
        arena_free(scratch);
        return good;
    }
    struct checkpoint *derived = *ret_derived = checkpoint_derive(from);
    struct undoing undoing = trial;
    undoing.to = tensor_set_new(derived->arena);
    undoing.arena = derived->arena;
    undo_all(&undoing);
    arena_free(scratch);
    struct tensor_set *ordered = tensor_set_ordered(undoing.to, derived->arena);
    derived->tensors = ordered;
    checkpoint_note(derived, SUBJECT_SOURCE,
                    "mlx-lm wrote the checkpoint; tensors are shown under the names and in the shapes of transformers");
    return tensor_set_seal(ordered, error);
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    (void)options;
    struct error unused;
    const struct config_facts *config = is_of_mlx(from) ? config_facts_of(from, &unused) : NULL;
    const char *model_type = config != NULL ? config->model_type : NULL;
    if (model_type == NULL)
        return true;
    struct hparams *hparams = hparams_of(from, error);
    const struct json *root = hparams != NULL ? hparams_raw(hparams) : NULL;
    bool good = root != NULL && derive_names(from, model_type, json_get(root, "quantization"), ret_derived, error);
    hparams_free(hparams);
    return good;
}

const struct derivation mlx_names_derivation = {.apply = apply};
