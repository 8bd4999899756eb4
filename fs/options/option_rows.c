#include "fs/options/options.h"

#include "base/text.h"
#include "models/engines/ct_ignored.h"
#include "models/formats.h"
#include "models/huggingface/shards.h"
#include "models/quantize/mix.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool parse_flag(void *field, const char *value, struct arena *arena, struct error *error)
{
    *(bool *)field = true;
    return true;
}

static bool parse_text(void *field, const char *value, struct arena *arena, struct error *error)
{
    *(const char **)field = value;
    return true;
}

static bool parse_format(void *field, const char *value, struct arena *arena, struct error *error)
{
    return format_of_name(formats, value, error) != NULL && parse_text(field, value, arena, error);
}

static bool parse_names(void *field, const char *value, struct arena *arena, struct error *error)
{
    enum shown_names *names = field;
    *names = strcasecmp(value, "hf") == 0 ? NAMES_HF : NAMES_GGUF;
    return *names == NAMES_HF || strcasecmp(value, "gguf") == 0 ||
           error_set(error, "'%s' is neither hf nor gguf", value);
}

static bool parse_q4_0_rule(void *field, const char *value, struct arena *arena, struct error *error)
{
    const struct rule **rule = field;
    *rule = strcmp(value, q4_0_absmax7_rule.name) == 0 ? &q4_0_absmax7_rule : NULL;
    return *rule != NULL || strcmp(value, "ggml") == 0 || error_set(error, "'%s' is neither ggml nor absmax7", value);
}

static bool parse_quantize_type(void *field, const char *value, struct arena *arena, struct error *error)
{
    const struct dtype **type = field;
    *type = quantize_type(value, error);
    return *type != NULL;
}

/* Adds a value to a NULL-terminated list; NULL is an empty list. */
static void add_to_list(const char *const **list, const char *value, struct arena *arena)
{
    size_t count = 0;
    while (*list != NULL && (*list)[count] != NULL)
        count++;
    const char **longer = arena_array(arena, count + 2, sizeof *longer);
    for (size_t i = 0; i < count; i++)
        longer[i] = (*list)[i];
    longer[count] = value;
    *list = longer;
}

static bool parse_tensor_type(void *field, const char *value, struct arena *arena, struct error *error)
{
    const char *const only[] = {value, NULL};
    if (!quantize_options_check(&(struct quantize_options){.tensor_types = only}, error))
        return false;
    add_to_list(field, value, arena);
    return true;
}

static bool parse_ignored(void *field, const char *value, struct arena *arena, struct error *error)
{
    if (!ct_ignored_check(value, error))
        return false;
    add_to_list(field, value, arena);
    return true;
}

static bool parse_shown(void *field, const char *value, struct arena *arena, struct error *error)
{
    add_to_list(field, value, arena);
    return true;
}

static bool parse_layers(void *field, const char *value, struct arena *arena, struct error *error)
{
    return layer_list_parse(value, arena, field, error);
}

static bool parse_override_kv(void *field, const char *value, struct arena *arena, struct error *error)
{
    if (!gguf_override_check(value, error))
        return false;
    add_to_list(field, value, arena);
    return true;
}

static bool parse_chat_template(void *field, const char *value, struct arena *arena, struct error *error)
{
    enum { LIMIT = 16 << 20 };
    struct gguf_edits *edits = field;
    size_t length;
    struct source *file = location_open_file(value, error);
    char *text = file != NULL ? source_read_text(file, LIMIT, &length, error) : NULL;
    source_close(file);
    if (text == NULL)
        return false;
    edits->chat_template = arena_strndup(arena, text, length);
    edits->chat_template_length = length;
    free(text);
    return true;
}

static bool parse_imatrix(void *field, const char *value, struct arena *arena, struct error *error)
{
    const struct imatrix **imatrix = field;
    *imatrix = imatrix_open(value, arena, error);
    return *imatrix != NULL;
}

/* Refuses both lists together, as the tool does. */
static bool parse_include_weights(void *field, const char *value, struct arena *arena, struct error *error)
{
    struct imatrix_filter *filter = field;
    add_to_list(&filter->include, value, arena);
    return filter->exclude == NULL || error_set(error, "cannot be combined with exclude-weights");
}

static bool parse_exclude_weights(void *field, const char *value, struct arena *arena, struct error *error)
{
    struct imatrix_filter *filter = field;
    add_to_list(&filter->exclude, value, arena);
    return filter->include == NULL || error_set(error, "cannot be combined with include-weights");
}

static bool parse_split(void *field, const char *value, struct arena *arena, struct error *error)
{
    return split_rule_parse(value, field, error);
}

static bool parse_float_type(void *field, const char *value, struct arena *arena, struct error *error)
{
    const struct dtype *const types[] = {&f32_dtype, &f16_dtype, &bf16_dtype};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcasecmp(types[i]->view_name, value) == 0) {
            *(const struct dtype **)field = types[i];
            return true;
        }
    }
    return error_set(error, "'%s' is not f32, f16 or bf16", value);
}

static bool parse_number(const char *value, int base, unsigned long limit, unsigned long *ret_number)
{
    char *end;
    *ret_number = strtoul(value, &end, base);
    return *value >= '0' && *value <= '9' && *end == '\0' && *ret_number <= limit;
}

/* torch's generator uses the low 32 bits of its seed. */
static bool parse_seed(void *field, const char *value, struct arena *arena, struct error *error)
{
    struct recipe_options *recipe = field;
    unsigned long number;
    if (!parse_number(value, 10, INT64_MAX, &number))
        return error_set(error, "'%s' is not a number from 0 to %lld", value, (long long)INT64_MAX);
    recipe->has_seed = true;
    recipe->seed = (uint32_t)number;
    return true;
}

/* Parses the name of a type as wfs or as torch spells it. */
static bool parse_merge_dtype(void *field, const char *value, struct arena *arena, struct error *error)
{
    static const char *const names[][2] = {{"float32", "f32"}, {"float16", "f16"}, {"bfloat16", "bf16"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(names[i][0], value) == 0)
            return parse_float_type(field, names[i][1], arena, error);
    return parse_float_type(field, value, arena, error);
}

static bool parse_shard_size(void *field, const char *value, struct arena *arena, struct error *error)
{
    return shards_parse_size(value, field, error);
}

static bool parse_layout(void *field, const char *value, struct arena *arena, struct error *error)
{
    struct layout_requests *layouts = field;
    struct layout_request *longer = arena_array(arena, layouts->count + 1, sizeof *longer);
    if (layouts->count > 0)
        memcpy(longer, layouts->items, layouts->count * sizeof *longer);
    if (!layout_find(value, arena, &longer[layouts->count], error))
        return false;
    const char *name = longer[layouts->count].file->name;
    for (size_t i = 0; i < layouts->count; i++)
        if (strcmp(longer[i].file->name, name) == 0)
            return error_set(error, "'%s' is there twice", name);
    *layouts = (struct layout_requests){longer, layouts->count + 1};
    return true;
}

static bool parse_lora(void *field, const char *value, struct arena *arena, struct error *error)
{
    struct lora_requests *loras = field;
    struct lora_request *longer = arena_array(arena, loras->count + 1, sizeof *longer);
    if (loras->count > 0)
        memcpy(longer, loras->items, loras->count * sizeof *longer);
    if (!lora_request_parse(value, arena, &longer[loras->count], error))
        return false;
    *loras = (struct lora_requests){longer, loras->count + 1};
    return true;
}

/* Reports whether this user may give allow_other; fusermount3's own refusal would explain less. */
static bool may_allow_other(void)
{
    static const char line[] = "user_allow_other";
    char text[256];
    bool found = false;
    FILE *file = geteuid() != 0 ? fopen("/etc/fuse.conf", "re") : NULL;
    if (file == NULL)
        return geteuid() == 0;
    while (!found && fgets(text, sizeof text, file) != NULL) {
        const char *start = text + strspn(text, " \t");
        found = text_starts_with(start, line) && strchr(" \t\r\n", start[strlen(line)]) != NULL;
    }
    fclose(file);
    return found;
}

static bool parse_allow_other(void *field, const char *value, struct arena *arena, struct error *error)
{
    return parse_flag(field, value, arena, error) &&
           (may_allow_other() ||
            error_set(error, "ordinary users need the line \"user_allow_other\" in /etc/fuse.conf"));
}

/* Restricts the permissions to the owner and root. The kernel's caches serve all users alike, and so bypass libfuse's
 * own check of the user. */
static bool parse_allow_root(void *field, const char *value, struct arena *arena, struct error *error)
{
    struct mount_options *options = field;
    options->umask |= 077;
    return parse_allow_other(&options->session.allow_other, value, arena, error);
}

static bool parse_subtype(void *field, const char *value, struct arena *arena, struct error *error)
{
    return strcmp(value, "wfs") == 0 ||
           error_set(error, "it is always wfs; 'wfs umount' would not find a mount of '%s'", value);
}

/* Parses the number of a user or group, which have one type. Refuses all ones, which mean "unchanged" to chown. */
static bool parse_id(void *field, const char *value, struct arena *arena, struct error *error)
{
    unsigned long number;
    if (!parse_number(value, 10, 0xfffffffe, &number))
        return error_set(error, "'%s' is not a number from 0 to 4294967294", value);
    *(uid_t *)field = (uid_t)number;
    return true;
}

static bool parse_build(void *field, const char *value, struct arena *arena, struct error *error)
{
    return reference_parse(value, field, error);
}

static bool parse_tokenizer(void *field, const char *value, struct arena *arena, struct error *error)
{
    *(bool *)field = strcmp(value, "exact") == 0;
    return *(bool *)field || strcmp(value, "converter") == 0 ||
           error_set(error, "'%s' is neither exact nor converter", value);
}

static bool parse_mtp(void *field, const char *value, struct arena *arena, struct error *error)
{
    *(bool *)field = strcasecmp(value, "no") == 0;
    return *(bool *)field || strcasecmp(value, "yes") == 0 || error_set(error, "'%s' is not yes or no", value);
}

static bool parse_fuse(void *field, const char *value, struct arena *arena, struct error *error)
{
    struct converter_options *converter = field;
    bool is_qkv = strcmp(value, "qkv") == 0, is_gate_up = strcmp(value, "gate-up-exps") == 0;
    converter->fuses_qkv |= is_qkv;
    converter->fuses_gate_up |= is_gate_up;
    return is_qkv || is_gate_up || error_set(error, "'%s' is neither qkv nor gate-up-exps", value);
}

static bool parse_seconds(void *field, const char *value, struct arena *arena, struct error *error)
{
    enum { DAY = 24 * 60 * 60 };
    unsigned long number;
    if (!parse_number(value, 10, DAY, &number) || number == 0)
        return error_set(error, "'%s' is not a number of seconds from 1 to %d", value, DAY);
    *(unsigned *)field = (unsigned)number;
    return true;
}

static bool parse_cache_size(void *field, const char *value, struct arena *arena, struct error *error)
{
    struct remote_options *options = field;
    options->cache_size.is_set = true;
    return strcmp(value, "0") == 0 || parse_shard_size(&options->cache_size.bytes, value, arena, error);
}

static bool parse_keep(void *field, const char *value, struct arena *arena, struct error *error)
{
    static const char *const words[] = {[KEEP_SIZES] = "sizes",
                                        [KEEP_NONE] = "none",
                                        [KEEP_QUANTIZED] = "quantized",
                                        [KEEP_WHOLE] = "whole",
                                        [KEEP_ALL] = "all"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(value, words[i]) == 0) {
            *(enum keep *)field = (enum keep)i;
            return true;
        }
    return error_set(error, "'%s' is not sizes, quantized, whole, all or none", value);
}

static bool parse_only(void *field, const char *value, struct arena *arena, struct error *error)
{
    struct only *only = field;
    const char **longer = arena_array(arena, only->n_patterns + 1, sizeof *longer);
    if (only->n_patterns > 0)
        memcpy(longer, only->patterns, only->n_patterns * sizeof *longer);
    longer[only->n_patterns] = value;
    *only = (struct only){longer, only->n_patterns + 1};
    return true;
}

/* Sets the field if the value is "no": the field forbids passthrough. */
static bool parse_passthrough(void *field, const char *value, struct arena *arena, struct error *error)
{
    *(bool *)field = strcasecmp(value, "no") == 0;
    return *(bool *)field || strcasecmp(value, "yes") == 0 || error_set(error, "'%s' is not yes or no", value);
}

/* Makes a path absolute, since the server changes its working directory. */
static bool parse_path(void *field, const char *value, struct arena *arena, struct error *error)
{
    char *directory = *value == '/' ? NULL : getcwd(NULL, 0);
    if (*value != '/' && directory == NULL)
        return error_set_errno(error, errno, "the working directory");
    *(const char **)field = directory != NULL ? arena_printf(arena, "%s/%s", directory, value) : value;
    free(directory);
    return true;
}

/* Takes a label with or without the quotes that keep its commas from mount(8). */
static bool parse_label(void *field, const char *value, struct arena *arena, struct error *error)
{
    size_t length = strlen(value);
    bool is_quoted = length >= 2 && *value == '"' && value[length - 1] == '"';
    const char *label = is_quoted ? arena_strndup(arena, value + 1, length - 2) : value;
    if (strchr(label, '"') != NULL)
        return error_set(error, "'%s' is not a label, or \"a label\"", value);
    *(const char **)field = label;
    return true;
}

static bool parse_umask(void *field, const char *value, struct arena *arena, struct error *error)
{
    unsigned long number;
    if (!parse_number(value, 8, 0777, &number))
        return error_set(error, "'%s' is not an octal number from 0 to 777", value);
    *(mode_t *)field = (mode_t)number;
    return true;
}

/* The values of options, from tables, for completion. */

static void format_values(struct buffer *words)
{
    for (const struct format *const *format = formats; *format != NULL; format++)
        buffer_printf(words, "%s ", (*format)->name);
}

static void type_values(struct buffer *words)
{
    struct error unused;
    for (const struct dtype *const *dtype = dtypes; *dtype != NULL; dtype++)
        if (quantize_type((*dtype)->name, &unused) != NULL)
            buffer_printf(words, "%s ", (*dtype)->name);
}

static void build_values(struct buffer *words)
{
    struct build_range ranges[MOST_BUILD_RANGES];
    size_t n_ranges = known_builds(ranges);
    for (size_t i = 0; i < n_ranges; i++)
        buffer_printf(words, "b%u ", ranges[i].last);
}

static void layout_values(struct buffer *words)
{
    struct arena *arena = arena_new();
    for (const char *const *layout = layout_names(arena); *layout != NULL; layout++)
        buffer_printf(words, "%s ", *layout);
    arena_free(arena);
}

#define FIELD(name) offsetof(struct options, name)

const struct option_row option_rows[] = {
    {"format", "NAME", "read this format, if a directory holds several checkpoints", SOURCE_OPTION, parse_format,
     FIELD(open.format), .values = format_values, .is_common = true},
    {"name", "NAME", "the model's name in GGUF files; the default is the directory's name", SOURCE_OPTION, parse_text,
     FIELD(open.name), .is_common = true},
    {"names", "hf|gguf", "tensors/: use the names and layout of model.safetensors or of model.gguf", SOURCE_OPTION,
     parse_names, FIELD(content.names), .words = "hf gguf"},
    {"lora", "DIR[:SCALE]", "merge this LoRA adapter into every file; may be repeated", MERGE_OPTION, parse_lora,
     FIELD(loras), .names_input = true, .is_common = true},
    {"seed", "N", "recipes of merges: the number that random methods begin with, as mergekit's --random-seed",
     MERGE_OPTION, parse_seed, FIELD(recipe)},
    {"lora-merge-dtype", "TYPE",
     "recipes of merges: merge adapters in f32, f16 or bf16; the default is the weights' type", MERGE_OPTION,
     parse_merge_dtype, FIELD(recipe.lora_dtype), .words = "f32 f16 bf16"},
    {"base", "DIR|ORG/NAME", "for a LoRA adapter or a draft model: the base model, which its GGUF needs", SOURCE_OPTION,
     parse_text, FIELD(content.request.base), .names_input = true},
    {"architecture", "CLASS", "treat the model as one of this class, which wfs knows, if config.json names another one",
     SOURCE_OPTION, parse_text, FIELD(architecture)},
    {"whisper", "DIR",
     "for OpenAI's Whisper .pt files: the tokens for ggml-model.bin, from a checkout of openai/whisper", SOURCE_OPTION,
     parse_text, FIELD(whisper), .names_input = true},
    {"llama.cpp", "BUILD", "GGUF files: the bytes that this build of llama.cpp writes; the default is the newest known",
     GGUF_OPTION, parse_build, FIELD(content.request.references), .values = build_values, .is_common = true},
    {"tokenizer", "exact|converter",
     "GGUF files: 'exact' splits text as transformers does where the converter's own tokenizer does not", GGUF_OPTION,
     parse_tokenizer, FIELD(content.request.references.exact_tokenizer), .words = "exact converter"},
    {"mtp", "yes|no",
     "GGUF files: 'no' leaves out the layers of multi-token prediction, which mtp-model.gguf has; yes is the default",
     GGUF_OPTION, parse_mtp, FIELD(content.request.references.converter.without_mtp), .words = "yes no"},
    {"fuse", "qkv|gate-up-exps",
     "GGUF files: join the matrices of queries, keys and values, or the gate and up matrices of experts; may be "
     "repeated",
     GGUF_OPTION, parse_fuse, FIELD(content.request.references.converter), .words = "qkv gate-up-exps"},
    {"fp8-as-q8", NULL, "the converter's GGUF files: matrices that the source stores in FP8 become Q8_0", GGUF_OPTION,
     parse_flag, FIELD(content.request.references.converter.fp8_as_q8)},
    {"dense-modules", NULL,
     "GGUF files: include the dense layers that sentence-transformers keeps in folders of EmbeddingGemma",
     SOURCE_OPTION, parse_flag, FIELD(content.request.references.converter.dense_modules)},
    {"fold-scale", NULL, "LoRA adapters: adapter.gguf as strong in llama.cpp as in peft (rsLoRA, alpha_pattern)",
     GGUF_OPTION, parse_flag, FIELD(content.request.fold_scale)},
    {"partial", NULL, "make files of a checkpoint that is known to be incomplete, such as one shard", SOURCE_OPTION,
     parse_flag, FIELD(open.partial)},
    {"allow_trailing", NULL, "accept a safetensors file with bytes after its last tensor", SOURCE_OPTION, parse_flag,
     FIELD(open.allow_trailing)},
    {"library", NULL, "the source is a directory of models or a hub cache: show models/PUBLISHER/NAME/ and ollama/",
     LIBRARY_OPTION, parse_flag, FIELD(library), .is_transport = true, .is_common = true},
    {"show", "GLOB", "gguf/ and libraries: list only types that match, such as Q4_K_M; may be repeated", LIBRARY_OPTION,
     parse_shown, FIELD(content.shown), .is_transport = true},
    {"true-digests", NULL, "ollama/: name blobs by the SHA-256 of their bytes, which reads each file once",
     LIBRARY_OPTION, parse_flag, FIELD(content.true_digests), .is_transport = true},
    {"optimizer", NULL, "training checkpoints: show the state of the optimizer, too", SOURCE_OPTION, parse_flag,
     FIELD(open.optimizer)},
    {"follow-links", NULL,
     "follow symbolic links to files outside the model's directory, and let a recipe name paths outside of its own, "
     "and "
     "URLs",
     SOURCE_OPTION, parse_flag, FIELD(open.follow_links)},
    {"cache", "DIR", "keep fetched and computed bytes in DIR; the default is ~/.cache/wfs", STORE_OPTION, parse_path,
     FIELD(open.remote.cache), .is_transport = true},
    {"cache-size", "SIZE",
     "limit the cache to SIZE (for example 20GB; 0 disables it); the default leaves 5% of the disk free", STORE_OPTION,
     parse_cache_size, FIELD(open.remote), .is_transport = true},
    {"keep", "sizes|quantized|whole|all|none",
     "what to keep on disk, for later mounts: the sizes of files alone (the default), the scales of quantized types, "
     "their bytes, all computed bytes, or none",
     STORE_OPTION, parse_keep, FIELD(content.keep), .is_transport = true, .words = "sizes quantized whole all none",
     .is_common = true},
    {"offline", NULL, "remote sources: read only what has been fetched before", STORE_OPTION, parse_flag,
     FIELD(open.remote.offline), .is_transport = true, .is_common = true},
    {"timeout", "SECONDS", "remote sources: a read fails after so long without a new byte; the default is 60",
     STORE_OPTION, parse_seconds, FIELD(open.remote.timeout), .is_transport = true},
    {"cacert", "FILE", "remote sources: trust the certificates in FILE instead of the system's", STORE_OPTION,
     parse_path, FIELD(open.remote.cacert), .is_transport = true},
    {"q4_0", "RULE", "how Q4_0 rounds, in tensors/ and gguf/: ggml (the default) or absmax7, as some Rust engines do",
     QUANTIZED_OPTION, parse_q4_0_rule, FIELD(content.request.quantize.q4_0_rule), .words = "ggml absmax7"},
    {"tensor-type", "PATTERN=TYPE", "quantized files: use this type for tensors whose name matches; may be repeated",
     QUANTIZED_OPTION, parse_tensor_type, FIELD(content.request.quantize.tensor_types)},
    {"token-embedding-type", "TYPE", "quantized files: the type of the token embedding", QUANTIZED_OPTION,
     parse_quantize_type, FIELD(content.request.quantize.token_embedding_type), .values = type_values},
    {"output-tensor-type", "TYPE", "quantized files: the type of the output tensor", QUANTIZED_OPTION,
     parse_quantize_type, FIELD(content.request.quantize.output_tensor_type), .values = type_values},
    {"pure", NULL, "quantized files: use one type for all tensors", QUANTIZED_OPTION, parse_flag,
     FIELD(content.request.quantize.pure)},
    {"leave-output-tensor", NULL, "quantized files: do not quantize the output tensor", QUANTIZED_OPTION, parse_flag,
     FIELD(content.request.quantize.leave_output_tensor)},
    {"imatrix", "FILE", "quantized files: use this importance matrix, a file of llama-imatrix", QUANTIZED_OPTION,
     parse_imatrix, FIELD(content.request.quantize.imatrix), .reads_file = true, .names_input = true,
     .is_common = true},
    {"include-weights", "TEXT", "importance matrix: use only entries whose name contains TEXT; may be repeated",
     QUANTIZED_OPTION, parse_include_weights, FIELD(content.request.quantize.filter)},
    {"exclude-weights", "TEXT", "importance matrix: skip entries whose name contains TEXT; may be repeated",
     QUANTIZED_OPTION, parse_exclude_weights, FIELD(content.request.quantize.filter)},
    {"keep-split", NULL, "gguf/split/: split quantized files as the source GGUF is split", QUANTIZED_OPTION, parse_flag,
     FIELD(content.request.quantize.keep_split)},
    {"prune-layers", "N,N,...", "quantized files: remove these layers, counted from 0", QUANTIZED_OPTION, parse_layers,
     FIELD(content.request.quantize.pruned), COMMAS_BEFORE_DIGITS},
    {"requantize", NULL, "quantized files: also quantize a GGUF that is quantized already, losing precision twice",
     QUANTIZED_OPTION, parse_flag, FIELD(content.request.quantize.requantize)},
    {"override-kv", "KEY=TYPE:VALUE", "GGUF files: set a key; TYPE is int, float, bool or str; may be repeated",
     GGUF_OPTION, parse_override_kv, FIELD(content.request.edits.override_kvs)},
    {"chat-template", "FILE", "GGUF files: use the text of FILE as tokenizer.chat_template", GGUF_OPTION,
     parse_chat_template, FIELD(content.request.edits), .reads_file = true, .names_input = true},
    {"split", "SIZE|N", "gguf/split/: split every GGUF file into shards of at most SIZE (500M, 2G) or N tensors",
     GGUF_OPTION, parse_split, FIELD(content.request.split)},
    {"dtype", "TYPE", "model.safetensors and hf/: store floating-point tensors as f32, f16 or bf16", ENGINE_OPTION,
     parse_float_type, FIELD(content.request.hf_type), .words = "f32 f16 bf16", .is_common = true},
    {"shard-size", "SIZE", "hf/ and bitsandbytes/: the largest shard; the default is 5GB", ENGINE_OPTION,
     parse_shard_size, FIELD(content.request.shard_size)},
    {"ignore", "PATTERN",
     "compressed-tensors/, fp8/, modelopt/: modules to leave as they are, by name or re:EXPRESSION; may be repeated",
     ENGINE_OPTION, parse_ignored, FIELD(content.request.ignored_modules)},
    {"layout", "NAME[:PARAMETERS]",
     "layouts/NAME/: the model in a built-in layout, or as a layout FILE.json describes; to use several, repeat -o",
     ENGINE_OPTION, parse_layout, FIELD(content.request.layouts), COMMAS_AFTER_COLON, .values = layout_values,
     .finds_in = layout_directories, .names_input = true},
    {"shards", "ENGINE[:PARAMETERS]",
     "layouts/ENGINE/: files for each rank of an engine: trtllm:tp=2,pp=2 or vllm:tp=4", ENGINE_OPTION, parse_layout,
     FIELD(content.request.layouts), COMMAS_AFTER_COLON, .words = "trtllm: vllm:", .finds_in = layout_directories},
    {"allow_other", NULL, "let other users read the mount, as far as file modes allow", MOUNT_OPTION, parse_allow_other,
     FIELD(mount.session.allow_other), .is_common = true},
    {"allow_rdwr", NULL, "let programs open files for reading and writing, as MLX does; every write fails with EROFS",
     MOUNT_OPTION, parse_flag, FIELD(mount.session.allow_rdwr)},
    {"uid", "NUMBER", "owner of all files; the default is the user who mounts", MOUNT_OPTION, parse_id,
     FIELD(mount.uid)},
    {"gid", "NUMBER", "group of all files; the default is the group of the user who mounts", MOUNT_OPTION, parse_id,
     FIELD(mount.gid)},
    {"umask", "OCTAL", "permission bits to remove from the modes of the sources", MOUNT_OPTION, parse_umask,
     FIELD(mount.umask)},
    {"allow_root", NULL, "let root read the mount, and no other user: allow_other with umask=077", MOUNT_OPTION,
     parse_allow_root, FIELD(mount)},
    {"nonempty", NULL, "mount over a directory that is not empty", MOUNT_OPTION, parse_flag, FIELD(mount.nonempty)},
    {"only", "GLOB",
     "list only these paths, such as model.gguf or gguf/*Q4_K*; others still open by name; may be repeated",
     MOUNT_OPTION, parse_only, FIELD(mount.only)},
    {"cachedir-tag", NULL, "show CACHEDIR.TAG, so that backup programs skip the mount; libraries always have it",
     MOUNT_OPTION, parse_flag, FIELD(content.cache_tag)},
    {"no_readahead", NULL, "do not raise the kernel's read-ahead window to 4 MiB (root only)", MOUNT_OPTION, parse_flag,
     FIELD(mount.session.no_readahead)},
    {"passthrough", "yes|no",
     "let the kernel read files that are unchanged sources by itself, where it can (root only); yes is the default",
     MOUNT_OPTION, parse_passthrough, FIELD(mount.session.no_passthrough), .words = "yes no"},
    {"noexec", NULL, "do not let files be run as programs", MOUNT_OPTION, parse_flag, FIELD(mount.session.noexec)},
    {"context", "LABEL", "SELinux: the label of all files, as for mount(8); \"LABEL\" if it has commas", MOUNT_OPTION,
     parse_label, FIELD(mount.session.labels.context), COMMAS_IN_QUOTES},
    {"fscontext", "LABEL", "SELinux: the label of the file system itself", MOUNT_OPTION, parse_label,
     FIELD(mount.session.labels.fscontext), COMMAS_IN_QUOTES},
    {"defcontext", "LABEL", "SELinux: the label of files without one", MOUNT_OPTION, parse_label,
     FIELD(mount.session.labels.defcontext), COMMAS_IN_QUOTES},
    {"rootcontext", "LABEL", "SELinux: the label of the mount's root", MOUNT_OPTION, parse_label,
     FIELD(mount.session.labels.rootcontext), COMMAS_IN_QUOTES},
    {"auto_unmount", NULL, "let fusermount3 unmount if wfs is killed", MOUNT_OPTION, parse_flag,
     FIELD(mount.session.auto_unmount)},
    {"fsname", "NAME", "the source's name in /proc/mounts and df", MOUNT_OPTION, parse_text,
     FIELD(mount.session.source)},
    {"subtype", "wfs", "the file system type; it is always fuse.wfs", MOUNT_OPTION, parse_subtype, FIELD(mount),
     .words = "wfs"},
    {"log", "FILE", "append messages, such as why a read failed, to FILE instead of syslog", MOUNT_OPTION, parse_text,
     FIELD(mount.log)},
    {0},
};
