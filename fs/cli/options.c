#include "fs/cli/options.h"

#include "base/text.h"
#include "models/mix.h"
#include "models/shards.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool set_format(struct options *options, const char *value, struct error *error)
{
    (void)error;
    options->open.format = value;
    return true;
}

static bool set_name(struct options *options, const char *value, struct error *error)
{
    (void)error;
    options->open.name = value;
    return true;
}

static bool set_allow_trailing(struct options *options, const char *value, struct error *error)
{
    (void)value, (void)error;
    options->open.allow_trailing = true;
    return true;
}

static bool set_q4_0(struct options *options, const char *value, struct error *error)
{
    options->tree.q4_0_rule = strcmp(value, q4_0_absmax7_rule.name) == 0 ? &q4_0_absmax7_rule : NULL;
    return options->tree.q4_0_rule != NULL || strcmp(value, "ggml") == 0 ||
           error_set(error, "option q4_0: '%s' is neither ggml nor absmax7", value);
}

static bool set_quantize_type(const struct dtype **target, const char *option, const char *value, struct error *error)
{
    *target = quantize_type(value, error);
    return *target != NULL || error_prefix(error, "option %s", option);
}

static bool set_token_embedding_type(struct options *options, const char *value, struct error *error)
{
    return set_quantize_type(&options->tree.quantize.token_embedding_type, "token-embedding-type", value, error);
}

static bool set_output_tensor_type(struct options *options, const char *value, struct error *error)
{
    return set_quantize_type(&options->tree.quantize.output_tensor_type, "output-tensor-type", value, error);
}

/* A NULL-terminated list with one text more. */
static const char *const *longer_list(struct arena *arena, const char *const *list, const char *value)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL)
        count++;
    const char **longer = arena_array(arena, count + 2, sizeof *longer);
    for (size_t i = 0; i < count; i++)
        longer[i] = list[i];
    longer[count] = value;
    return longer;
}

static bool set_tensor_type(struct options *options, const char *value, struct error *error)
{
    const char *const only[] = {value, NULL};
    if (!quantize_options_check(&(struct quantize_options){.tensor_types = only}, error))
        return error_prefix(error, "option");
    options->tree.quantize.tensor_types = longer_list(options->arena, options->tree.quantize.tensor_types, value);
    return true;
}

static bool set_keep_split(struct options *options, const char *value, struct error *error)
{
    (void)value, (void)error;
    options->tree.quantize.keep_split = true;
    return true;
}

static bool set_requantize(struct options *options, const char *value, struct error *error)
{
    (void)value, (void)error;
    options->tree.quantize.requantize = true;
    return true;
}

static bool set_override_kv(struct options *options, const char *value, struct error *error)
{
    if (!gguf_override_check(value, error))
        return error_prefix(error, "option");
    options->tree.edits.override_kvs = longer_list(options->arena, options->tree.edits.override_kvs, value);
    return true;
}

static bool set_chat_template(struct options *options, const char *value, struct error *error)
{
    enum { LIMIT = 16 << 20 };
    size_t length;
    struct source *file = source_open(AT_FDCWD, value, value, error);
    char *text = file != NULL ? source_read_text(file, LIMIT, &length, error) : NULL;
    source_close(file);
    if (text == NULL)
        return error_prefix(error, "option chat-template");
    options->tree.edits.chat_template = arena_strndup(options->arena, text, length);
    options->tree.edits.chat_template_length = length;
    free(text);
    return true;
}

static bool set_imatrix(struct options *options, const char *value, struct error *error)
{
    options->tree.quantize.imatrix = imatrix_open(value, options->arena, error);
    return options->tree.quantize.imatrix != NULL || error_prefix(error, "option imatrix");
}

/* The tool takes one kind of the two. */
static bool set_filter(struct options *options, const char *const **list, const char *value, struct error *error)
{
    const struct imatrix_filter *filter = &options->tree.quantize.filter;
    *list = longer_list(options->arena, *list, value);
    return filter->include == NULL || filter->exclude == NULL ||
           error_set(error, "option include-weights: not together with exclude-weights");
}

static bool set_include_weights(struct options *options, const char *value, struct error *error)
{
    return set_filter(options, &options->tree.quantize.filter.include, value, error);
}

static bool set_exclude_weights(struct options *options, const char *value, struct error *error)
{
    return set_filter(options, &options->tree.quantize.filter.exclude, value, error);
}

static bool set_split(struct options *options, const char *value, struct error *error)
{
    return split_rule_parse(value, &options->tree.split, error) || error_prefix(error, "option");
}

static bool set_dtype(struct options *options, const char *value, struct error *error)
{
    const struct dtype *const types[] = {&f32_dtype, &f16_dtype, &bf16_dtype};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcasecmp(types[i]->view_name, value) == 0)
            options->tree.hf_type = types[i];
    return options->tree.hf_type != NULL || error_set(error, "option dtype: '%s' is not f32, f16 or bf16", value);
}

static bool set_shard_size(struct options *options, const char *value, struct error *error)
{
    return shards_parse_size(value, &options->tree.shard_size, error) || error_prefix(error, "option shard-size");
}

static bool set_layout(struct options *options, const char *value, struct error *error)
{
    size_t count = options->tree.n_layouts;
    struct layout_request *longer = arena_array(options->arena, count + 1, sizeof *longer);
    if (count > 0)
        memcpy(longer, options->tree.layouts, count * sizeof *longer);
    if (!layout_find(value, options->arena, &longer[count], error))
        return error_prefix(error, "option layout");
    for (size_t i = 0; i < count; i++)
        if (strcmp(longer[i].file->name, longer[count].file->name) == 0)
            return error_set(error, "option layout: '%s' is there twice", longer[count].file->name);
    options->tree.layouts = longer;
    options->tree.n_layouts = count + 1;
    return true;
}

static bool set_pure(struct options *options, const char *value, struct error *error)
{
    (void)value, (void)error;
    options->tree.quantize.pure = true;
    return true;
}

static bool set_leave_output_tensor(struct options *options, const char *value, struct error *error)
{
    (void)value, (void)error;
    options->tree.quantize.leave_output_tensor = true;
    return true;
}

/* Whether the process may let other users in; fusermount3 would refuse with less of a hint. */
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
        found = strncmp(start, line, strlen(line)) == 0 && strchr(" \t\r\n", start[strlen(line)]) != NULL;
    }
    fclose(file);
    return found;
}

static bool set_allow_other(struct options *options, const char *value, struct error *error)
{
    (void)value;
    options->mount.allow_other = true;
    return may_allow_other() ||
           error_set(
               error,
               "option allow_other: not for ordinary users until /etc/fuse.conf has the line \"user_allow_other\"");
}

static bool set_nonempty(struct options *options, const char *value, struct error *error)
{
    (void)value, (void)error;
    options->mount.nonempty = true;
    return true;
}

static bool set_no_readahead(struct options *options, const char *value, struct error *error)
{
    (void)value, (void)error;
    options->mount.no_readahead = true;
    return true;
}

/* All ones mean "as it is" to chown. */
static const unsigned long largest_id = 0xfffffffe;

static bool parse_number(const char *option, const char *value, int base, unsigned long limit,
                         unsigned long *ret_number, struct error *error)
{
    char *end;
    unsigned long number = strtoul(value, &end, base);
    if (*value < '0' || *value > '9' || *end != '\0' || number > limit) {
        error_set(error, "option %s: '%s' is not %s number from 0 to %s", option, value, base == 8 ? "an octal" : "a",
                  base == 8 ? "777" : "4294967294");
        return false;
    }
    *ret_number = number;
    return true;
}

static bool set_uid(struct options *options, const char *value, struct error *error)
{
    unsigned long number;
    if (!parse_number("uid", value, 10, largest_id, &number, error))
        return false;
    options->mount.uid = (uid_t)number;
    return true;
}

static bool set_gid(struct options *options, const char *value, struct error *error)
{
    unsigned long number;
    if (!parse_number("gid", value, 10, largest_id, &number, error))
        return false;
    options->mount.gid = (gid_t)number;
    return true;
}

static bool set_umask(struct options *options, const char *value, struct error *error)
{
    unsigned long number;
    if (!parse_number("umask", value, 8, 0777, &number, error))
        return false;
    options->mount.umask = (mode_t)number;
    return true;
}

const struct option_row option_rows[] = {
    {"format", "NAME", "read the source as this format, where it could be several", false, set_format},
    {"name", "NAME", "call the model so in model.gguf, instead of after its directory", false, set_name},
    {"allow_trailing", NULL, "ignore bytes after the last tensor instead of refusing the file", false,
     set_allow_trailing},
    {"q4_0", "RULE", "how Q4_0 rounds: ggml (the default), or absmax7 as some Rust engines do", false, set_q4_0},
    {"tensor-type", "PATTERN=TYPE", "quantized files: tensors whose name matches get this type; may be repeated", false,
     set_tensor_type},
    {"token-embedding-type", "TYPE", "quantized files: type of the token embedding", false, set_token_embedding_type},
    {"output-tensor-type", "TYPE", "quantized files: type of the output tensor", false, set_output_tensor_type},
    {"pure", NULL, "quantized files: one type for all tensors, no mixture", false, set_pure},
    {"leave-output-tensor", NULL, "quantized files: do not quantize the output tensor", false, set_leave_output_tensor},
    {"imatrix", "FILE", "quantized files: go by this importance matrix, as llama-imatrix writes them", false,
     set_imatrix},
    {"include-weights", "TEXT", "of the importance matrix only what TEXT is part of the name of; may be repeated",
     false, set_include_weights},
    {"exclude-weights", "TEXT", "of the importance matrix nothing that TEXT is part of the name of; may be repeated",
     false, set_exclude_weights},
    {"keep-split", NULL, "gguf/split/: quantized files in the parts that the source, a GGUF, is in", false,
     set_keep_split},
    {"requantize", NULL, "quantized files: also of a GGUF that is quantized already, at a loss", false, set_requantize},
    {"override-kv", "KEY=TYPE:VALUE",
     "GGUF files: give a key another value, an int, float, bool or str; may be repeated", false, set_override_kv},
    {"chat-template", "FILE", "GGUF files: the text of FILE as tokenizer.chat_template", false, set_chat_template},
    {"split", "SIZE|N", "gguf/split/: every GGUF file in parts of at most SIZE (500M, 2G) or N tensors", false,
     set_split},
    {"dtype", "TYPE", "model.safetensors and hf/: floating-point tensors as f32, f16 or bf16", false, set_dtype},
    {"shard-size", "SIZE", "hf/: the most bytes of a shard, 5GB by default", false, set_shard_size},
    {"layout", "NAME[:PARAMETERS]",
     "layouts/NAME/: the model as that layout or file says; may be repeated, each with its -o", false, set_layout,
     true},
    {"shards", "ENGINE[:PARAMETERS]", "the same for the ranks of an engine: trtllm:tp=2,pp=2 or vllm:tp=4", false,
     set_layout, true},
    {"allow_other", NULL, "let other users in; modes decide what they may read", true, set_allow_other},
    {"uid", "NUMBER", "owner of all files; the default is who mounts", true, set_uid},
    {"gid", "NUMBER", "group of all files; the default is that of who mounts", true, set_gid},
    {"umask", "OCTAL", "bits taken from the modes, which are those of the sources", true, set_umask},
    {"nonempty", NULL, "mount over a directory that has files in it", true, set_nonempty},
    {"no_readahead", NULL, "leave the kernel's read-ahead window as it is, instead of raising it to 4 MiB (root)", true,
     set_no_readahead},
    {0},
};

/* What mount(8) hands on from fstab: its own words, and flags that make no difference here. */
static const char *const ignored_words[] = {
    "defaults",   "auto",        "noauto",   "user",       "nouser",   "users", "owner",   "group",
    "nofail",     "_netdev",     "ro",       "rw",         "dev",      "nodev", "suid",    "nosuid",
    "exec",       "noexec",      "sync",     "async",      "dirsync",  "atime", "noatime", "relatime",
    "norelatime", "strictatime", "diratime", "nodiratime", "lazytime", NULL,
};

static bool is_ignored(const char *word)
{
    if (strncasecmp(word, "x-", 2) == 0 || strncmp(word, "comment=", 8) == 0)
        return true;
    for (const char *const *ignored = ignored_words; *ignored != NULL; ignored++)
        if (strcmp(word, *ignored) == 0)
            return true;
    return false;
}

void options_init(struct options *options)
{
    *options = (struct options){.arena = arena_new()};
    options->mount.uid = getuid();
    options->mount.gid = (gid_t)NO_GROUP;
}

void options_free(struct options *options)
{
    arena_free(options->arena);
}

static bool same_name(const char *row, const char *word, size_t length)
{
    if (strlen(row) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (row[i] != word[i] && !(strchr("-_", row[i]) != NULL && strchr("-_", word[i]) != NULL))
            return false;
    return true;
}

static bool set_word(struct options *options, const char *word, struct error *error)
{
    size_t length = strcspn(word, "=");
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    if (is_ignored(word))
        return true;
    for (const struct option_row *row = option_rows; row->name != NULL; row++) {
        if (!same_name(row->name, word, length))
            continue;
        if (row->argument == NULL && value != NULL)
            return error_set(error, "option %s takes no value", row->name);
        if (row->argument != NULL && (value == NULL || *value == '\0'))
            return error_set(error, "option %s: '=%s' is missing", row->name, row->argument);
        return row->set(options, value, error);
    }
    struct text_guess guess = {.typed = arena_strndup(options->arena, word, length)};
    for (const struct option_row *row = option_rows; row->name != NULL; row++)
        text_guess_try(&guess, row->name);
    if (guess.best != NULL)
        return error_set(error, "unknown option '%s'; did you mean '%s'?", guess.typed, guess.best);
    return error_set(error, "unknown option '%s'; wfs mount --help lists them", guess.typed);
}

/* Whether commas belong to a word that begins so. */
static bool takes_rest(const char *word, size_t length)
{
    size_t name = strcspn(word, "=");
    for (const struct option_row *row = option_rows; row->name != NULL; row++)
        if (row->takes_rest && name < length && same_name(row->name, word, name))
            return memchr(word, ':', length) != NULL;
    return false;
}

bool options_parse(struct options *options, const char *words, struct error *error)
{
    char *word = arena_alloc(options->arena, strlen(words) + 1), *end = word;
    for (const char *from = words;; from++) {
        if (*from == '\\' && from[1] == ',') {
            *end++ = *++from;
        } else if (*from == ',' && takes_rest(word, (size_t)(end - word))) {
            *end++ = *from;
        } else if (*from != ',' && *from != '\0') {
            *end++ = *from;
        } else {
            *end++ = '\0';
            if (*word != '\0' && !set_word(options, word, error))
                return false;
            word = end;
            if (*from == '\0')
                return true;
        }
    }
}
