/* Every row of every family: unique, well-formed, and readable in both directions. */
#include "models/families/family.h"
#include "models/tensors.h"
#include "tests/unit/check.h"

#include <ctype.h>

static void check_names(void)
{
    for (size_t i = 0; families[i] != NULL; i++) {
        CHECK_NAMED(families[i]->name != NULL && families[i]->summary != NULL && families[i]->hf[0].name != NULL,
                    families[i]->name);
        CHECK_NAMED(families[i]->tensors[0] != NULL && families[i]->keys[0] != NULL && families[i]->vocabs[0] != NULL,
                    families[i]->name);
        for (size_t j = 0; j < i; j++)
            if (strcmp(families[i]->name, families[j]->name) == 0)
                CHECK_NAMED(false, families[i]->name);
    }
}

/* An architecture names one family, unless the families tell themselves apart. */
static void check_architectures(void)
{
    for (size_t i = 0; families[i] != NULL; i++)
        for (const struct family_name *hf = families[i]->hf; hf->name != NULL; hf++)
            for (size_t j = 0; j < i; j++)
                for (const struct family_name *other = families[j]->hf; other->name != NULL; other++)
                    if (strcmp(hf->name, other->name) == 0)
                        CHECK_NAMED(families[i]->applies != NULL && families[j]->applies != NULL, hf->name);
}

static unsigned count_placeholders(const char *pattern)
{
    unsigned n = 0;
    for (; (pattern = strstr(pattern, "{}")) != NULL; pattern += 2)
        n++;
    return n;
}

static bool is_well_formed(const char *pattern)
{
    for (const char *at = pattern; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("._{}", *at) == NULL && !(*at == '*' && at[1] == '\0'))
            return false;
    return count_placeholders(pattern) <= 2 && *pattern != '\0';
}

static void check_row(const struct family *family, const struct tensor_row *row)
{
    const uint64_t numbers[] = {3, 7};
    uint64_t found[2];
    struct arena *arena = arena_new();
    CHECK_NAMED(is_well_formed(row->hf), row->hf);
    if (row->gguf != NULL) {
        CHECK_NAMED(is_well_formed(row->gguf) && strchr(row->gguf, '*') == NULL && strchr(row->hf, '*') == NULL, row->gguf);
        CHECK_NAMED(count_placeholders(row->hf) == count_placeholders(row->gguf) + arrangement_is_stacked(row->arrangement),
                    row->hf);
        const char *hf = pattern_fill(arena, row->hf, numbers, ""), *gguf = pattern_fill(arena, row->gguf, numbers, "");
        CHECK_NAMED(pattern_match(row->hf, hf, strlen(hf), found) && (found[0] == 3 || found[0] == UINT64_MAX), hf);
        CHECK_NAMED(pattern_match(row->gguf, gguf, strlen(gguf), found) && (found[0] == 3 || found[0] == UINT64_MAX), gguf);
        CHECK_NAMED(strlen(gguf) < 64 - strlen(".weight"), gguf); /* what ggml has room for */
    }
    (void)family;
    arena_free(arena);
}

static void check_tensors(const struct family *family)
{
    for (size_t i = 0; i < FAMILY_MAX_TABLES && family->tensors[i] != NULL; i++)
        for (const struct tensor_row *row = family->tensors[i]; row->hf != NULL; row++)
            check_row(family, row);
}

static void check_keys(const struct family *family)
{
    for (size_t i = 0; i < FAMILY_MAX_TABLES && family->keys[i] != NULL; i++)
        for (const struct key_row *row = family->keys[i]; row->key != NULL || row->emit != NULL; row++) {
            if (row->emit != NULL)
                continue;
            bool has_source = row->compute != NULL || row->from != NULL || row->when == ALWAYS;
            bool has_text = row->type != GGUF_STRING || row->when != ALWAYS || row->text != NULL;
            bool has_type = row->type == GGUF_U32 || row->type == GGUF_F32 || row->type == GGUF_BOOL || row->type == GGUF_STRING;
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
    check_names();
    check_architectures();
    for (size_t i = 0; families[i] != NULL; i++) {
        check_tensors(families[i]);
        check_keys(families[i]);
    }
    check_find();
    return check_done();
}
