/* Every row of every family and projector: unique, well-formed, and readable in both directions. That they come back is
 * in relation.c. */
#include "models/families/families.h"
#include "models/projectors/projector.h"
#include "models/projectors/projectors.h"
#include "tests/unit/check.h"

#include <ctype.h>

static void check_names(const struct family *const *table)
{
    for (size_t i = 0; table[i] != NULL; i++) {
        const struct family *family = table[i];
        bool is_projector = table == projectors;
        CHECK_NAMED(family->name != NULL && family->summary != NULL && family->hf[0].name != NULL, family->name);
        CHECK_NAMED(family->tensors[0] != NULL && family->keys[0] != NULL, family->name);
        CHECK_NAMED((family->vocabs[0] == NULL) ==
                            (is_projector || strcmp(family_architecture(family), "dflash") == 0) &&
                        (family->tower != NULL) == is_projector,
                    family->name);
        CHECK_NAMED(!is_projector || strcmp(family_architecture(family), "clip") == 0, family->name);
        for (size_t j = 0; j < i; j++)
            if (strcmp(family->name, table[j]->name) == 0)
                CHECK_NAMED(false, family->name);
    }
}

/* A class names one family; of several, all but one have a test of their own. */
static void check_architectures(const struct family *const *table)
{
    for (size_t i = 0; table[i] != NULL; i++)
        for (const struct family_name *hf = table[i]->hf; hf->name != NULL; hf++)
            for (size_t j = 0; j < i; j++)
                for (const struct family_name *other = table[j]->hf; other->name != NULL; other++)
                    if (strcmp(hf->name, other->name) == 0)
                        CHECK_NAMED(table[i]->applies != NULL || table[j]->applies != NULL, hf->name);
}

static bool is_well_formed(const char *pattern)
{
    size_t length;
    const char *end = strchr(pattern, '*');
    for (const char *at = pattern + (*pattern == '^'); *at != '\0' && *at != '*'; at++)
        if (!isalnum((unsigned char)*at) && strchr("._{}", *at) == NULL)
            return false;
    return pattern_count(pattern) <= 2 && *pattern != '\0' && (end == NULL || end[1] == '\0') &&
           (pattern_count(pattern) < 2 || (pattern_number_name(pattern, 0, &length) != NULL && length == 0));
}

static void check_entry(struct arena *arena, const struct relation_entry *entry)
{
    const uint64_t numbers[PATTERN_NUMBERS] = {3, 7};
    uint64_t found[PATTERN_NUMBERS];
    for (unsigned side = FORWARD; side <= BACKWARD; side++)
        for (unsigned i = 0; i < entry->n_names[side]; i++) {
            const char *pattern = relation_bare_name(entry->names[side][i]),
                       *name = pattern_fill(arena, pattern, numbers, "");
            CHECK_NAMED(is_well_formed(pattern), pattern);
            CHECK_NAMED(strchr(pattern, '*') == NULL || entry->row->there == NULL, pattern);
            CHECK_NAMED(strchr(pattern, '*') != NULL || (pattern_match(pattern, name, strlen(name), found) &&
                                                         (found[0] == 3 || found[0] == UINT64_MAX)),
                        name);
            CHECK_NAMED(side == FORWARD || strlen(name) < 64 - strlen(".weight"), name); /* what ggml has room for */
        }
}

/* Reports whether a condition of one row denies one of the other. */
static bool exclude_each_other(const struct relation_row *a, const struct relation_row *b)
{
    char condition[128];
    for (const char *at = a->when; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        snprintf(condition, sizeof condition, " %s%.*s ", *at == '!' ? "" : "!", (int)(length - (*at == '!')),
                 at + (*at == '!'));
        char others[256];
        snprintf(others, sizeof others, " %s ", b->when ? b->when : "");
        if (strstr(others, condition) != NULL)
            return true;
        at += length;
    }
    return false;
}

/* In one table, what leads to one name there is told apart by more than its order. */
static void check_ways_back(const struct relation *relation)
{
    for (unsigned i = 0; i < relation->n_entries; i++)
        for (unsigned j = 0; j < i; j++) {
            const struct relation_entry *a = &relation->entries[i], *b = &relation->entries[j];
            if (a->table != b->table || a->row->forward_only || b->row->forward_only)
                continue;
            for (unsigned x = 0; x < a->n_names[BACKWARD]; x++)
                for (unsigned y = 0; y < b->n_names[BACKWARD]; y++)
                    if (strcmp(a->names[BACKWARD][x], b->names[BACKWARD][y]) == 0)
                        CHECK_NAMED(exclude_each_other(a->row, b->row), a->row->here);
        }
}

/* What is no matrix, and matrices that every rank has whole: routers, projections to a latent space that all heads
 * share, what reads or makes the whole of a hidden state beside attention and feed-forward. */
static bool is_whole(const char *name)
{
    static const char *const parts[] = {
        "norm",
        "ffn_gate_inp",
        "exp_probs_b",
        "attn_q_a",
        "attn_kv_a_mqa",
        "indexer.",
        "nextn.eh_proj",
        "_projection",
        "time_mix_",
        "channel_mix_receptance",
        "channel_mix_lerp",
        "posnet.",
        "convnext.",
        "dense_2",
        "attn_output.scale",
        "ffn_down.scale",
        "ffn_latent_",
        "hc_",
        "compressor_",
        "ffn_gate_tid2eid",
        "ffn_routed_",
        "_res_score",
        ".altup_",
        ".inp_gate",
        "layer_output_scale",
        "attn_v_gate",
        "attn_conv_",
        "ffn_conv_",
        "selector_",
        "hrm.z_l_init",
        ".ple_",
        "token_types",
        "position_embd",
        "cls",
        "attn_output.bias",
        "ffn_down.bias",
        "ffn_down_exps.bias",
        "ffn_down_exps.scale",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]) != NULL)
            return true;
    return strcmp(name, "blk.{}.proj") == 0 || strcmp(name, "blk.{}.attn_kv") == 0 || strcmp(name, "fc") == 0 ||
           strcmp(name, "conf_proj") == 0 || strcmp(name, "conv1d") == 0;
}

/* The axes that ranks divide are axes of the row, and each of its tensors has one of them. */
static void check_parallel(const struct relation_entry *entry)
{
    const struct relation_row *row = entry->row;
    const struct rearrangement *axes = entry->axes[FORWARD];
    uint32_t found = 0;
    /* low rank in Kimi's layers, as wide as the heads in Ling's */
    if (row->there != NULL && row->parallel == NULL &&
        (strcmp(row->there, "blk.{}.ssm_f_a") == 0 || strcmp(row->there, "blk.{}.ssm_g_a") == 0))
        return;
    /* one side of an adapter is of its rank */
    if (row->there != NULL && row->parallel == NULL && strstr(row->there, ".lora_") != NULL)
        return;
    if (row->backward_only)
        return;
    if (row->there == NULL || is_whole(row->there)) {
        CHECK_NAMED(row->there == NULL || row->parallel == NULL || strstr(row->there, "ssm_norm") != NULL, row->here);
        return;
    }
    if (!CHECK_NAMED(row->parallel != NULL, row->here))
        return;
    for (const char *at = row->parallel; *at != '\0'; at += strspn(at, " /")) {
        size_t length = strcspn(at, " /");
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        int axis = axes != NULL ? rearrangement_axis(axes, name) : -1;
        CHECK_NAMED(axis >= 0 || strcmp(name, "row") == 0 || strcmp(name, "column") == 0, row->here);
        if (axis >= 0)
            found |= UINT32_C(1) << axis;
        at += length;
    }
    for (unsigned i = 0; found != 0 && i < axes->n_tensors[FORWARD]; i++)
        CHECK_NAMED((axes->sides[FORWARD][i].names & found) != 0, row->here);
}

static void check_tensors(const struct family *family)
{
    struct arena *arena = arena_new();
    struct error error;
    const struct relation *relation = relation_new(arena, family->name, family->prefix, family->tensors, &error);
    if (!CHECK_NAMED(relation != NULL, family->name))
        fprintf(stderr, "  %s\n", error.message);
    for (unsigned i = 0; relation != NULL && i < relation->n_entries; i++) {
        check_entry(arena, &relation->entries[i]);
        if (family->tower == NULL) /* a tower is the same on each rank */
            check_parallel(&relation->entries[i]);
    }
    if (relation != NULL)
        check_ways_back(relation);
    arena_free(arena);
}

/* Arrays that are full to the last place lack the NULL that ends them. */
static void check_ends(const struct family *family)
{
    CHECK_NAMED(family->tensors[FAMILY_MAX_TABLES] == NULL && family->keys[FAMILY_MAX_TABLES] == NULL &&
                    family->dimensions[FAMILY_MAX_TABLES] == NULL,
                family->name);
}

static void check_keys(const struct family *family)
{
    for (size_t i = 0; i < FAMILY_MAX_TABLES && family->keys[i] != NULL; i++)
        for (const struct key_row *row = family->keys[i]; row->key != NULL || row->emit != NULL; row++) {
            if (row->emit != NULL)
                continue;
            bool has_source = row->compute != NULL || row->from != NULL || row->when == ALWAYS;
            bool has_text = row->type != GGUF_STRING || row->when != ALWAYS || row->text != NULL;
            bool has_type =
                row->type == GGUF_U32 || row->type == GGUF_F32 || row->type == GGUF_BOOL || row->type == GGUF_STRING;
            CHECK_NAMED(has_source && has_text && has_type, row->key);
        }
}

static void check_find(void)
{
    static const struct {
        const char *config, *family, *architecture;
    } rows[] = {
        {"{\"architectures\":[\"LlamaForCausalLM\"]}", "llama", "llama"},
        {"{\"architectures\":[\"XLMRobertaModel\"]}", "xlm-roberta", "bert"},
        {"{\"architectures\":[\"NomicBertModel\"]}", "nomic-bert", "nomic-bert"},
        {"{\"architectures\":[\"NomicBertModel\"],\"moe_every_n_layers\":2}", "nomic-bert-moe", "nomic-bert-moe"},
        {"{\"architectures\":[\"NobodyForCausalLM\"]}", NULL, NULL},
        {"{}", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error;
        struct hparams *hparams = hparams_parse(rows[i].config, strlen(rows[i].config), &error);
        const struct family_name *hf;
        const struct family *family = family_find(hparams, &hf);
        CHECK_NAMED((family == NULL) == (rows[i].family == NULL), rows[i].config);
        if (family != NULL) {
            CHECK_TEXT(family->name, rows[i].family);
            CHECK_TEXT(family_architecture(family), rows[i].architecture);
        }
        hparams_free(hparams);
    }
}

int main(void)
{
    const struct family *const *const tables[] = {families, projectors};
    for (size_t i = 0; i < 2; i++) {
        check_names(tables[i]);
        check_architectures(tables[i]);
        for (size_t j = 0; tables[i][j] != NULL; j++) {
            check_tensors(tables[i][j]);
            check_keys(tables[i][j]);
            check_ends(tables[i][j]);
        }
    }
    check_find();
    return check_done();
}
