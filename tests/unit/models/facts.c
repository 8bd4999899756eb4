/* Facts: what the kind and files of a checkpoint say; what config.json says, once for all who ask, again after an
 * outage, and unchanged by who changes hyperparameters. */
#include "models/facts.h"

#include "formats/checkpoint_builder.h"
#include "models/config/hparams.h"
#include "tests/unit/check.h"
#include "tests/unit/unreached.h"

#include <string.h>

static const char config[] = "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"vocab_size\":32,"
                             "\"vision_config\":{},\"filler\":\"";

static struct checkpoint *with_text(const char *text)
{
    struct checkpoint *checkpoint = checkpoint_new("here");
    checkpoint->format = "safetensors";
    checkpoint_add_side_file(checkpoint, "config.json", unreached_source("config.json", text));
    return checkpoint;
}

/* Returns a checkpoint with that config.json, of 100 kB where it is large. */
static struct checkpoint *with_config(bool is_large)
{
    static char texts[2][100000];
    size_t length = is_large ? sizeof texts[1] - sizeof config - 2 : 0;
    char *text = texts[is_large], *end = stpcpy(text, config);
    memset(end, 'x', length);
    strcpy(end + length, "\"}");
    return with_text(text);
}

static void test_kinds(void)
{
    struct checkpoint *bare = checkpoint_new("here"), *described = with_config(false);
    bare->format = "mistral";
    CHECK(facts_of(bare).lacks_config && !facts_of(bare).makes_directories && facts_of(bare).has_class_names);
    CHECK(!facts_of(described).lacks_config && facts_of(described).makes_directories);
    described->format = "mistral"; /* which is described by params.json */
    CHECK(facts_of(described).lacks_config && facts_of(described).makes_directories);
    bare->kind = CHECKPOINT_GGUF;
    CHECK(facts_of(bare).keys == &bare->metadata && facts_of(bare).makes_directories);
    CHECK(!facts_of(bare).has_class_names && !facts_of(bare).is_adapter && facts_of(described).keys == NULL);
    described->kind = CHECKPOINT_ADAPTER;
    CHECK(facts_of(described).is_adapter && !facts_of(described).makes_directories);
    checkpoint_close(described);
    checkpoint_close(bare);
}

static void check_config(const struct checkpoint *checkpoint)
{
    struct error error;
    uint64_t size;
    const struct config_facts *facts = config_facts_of(checkpoint, &error);
    if (!CHECK(facts != NULL && facts == config_facts_of(checkpoint, &error)))
        return;
    CHECK_TEXT(facts->model_type, "llama");
    CHECK_TEXT(facts->class_name, "LlamaForCausalLM");
    CHECK(facts->family != NULL && facts->describes_towers);
    CHECK(config_family(facts, NULL) == facts->family && config_projector(facts, NULL, &error) == NULL);
    CHECK_TEXT(error.message, "no mmproj.gguf is known for LlamaForCausalLM");
    struct hparams *changed = hparams_of(checkpoint, &error), *other = hparams_of(checkpoint, &error);
    if (CHECK(changed != NULL && other != NULL)) {
        CHECK(hparams_override(changed, "vocab_size", 64, &error));
        CHECK(hparams_default(changed, "{'added': 1}", &error) && hparams_get(other, "added") == NULL);
        CHECK(hparams_count(changed, "vocab_size", 0, 100, &size, &error) && size == 64);
        CHECK(hparams_count(other, "vocab_size", 0, 100, &size, &error) && size == 32);
    }
    hparams_free(changed);
    hparams_free(other);
}

/* A large config.json is not kept. */
static void test_config(void)
{
    struct error error;
    struct checkpoint *small = with_config(false), *large = with_config(true);
    check_config(small);
    check_config(large);
    CHECK(config_facts_of(small, &error)->hparams != NULL && config_facts_of(large, &error)->hparams == NULL);
    checkpoint_close(small);
    checkpoint_close(large);
}

static void test_reasons(void)
{
    struct error error;
    struct checkpoint *bare = checkpoint_new("here"), *broken = with_text("[1]");
    bare->format = "safetensors";
    for (int i = 0; i < 2; i++) {
        CHECK(config_facts_of(bare, &error) == NULL && hparams_of(bare, &error) == NULL);
        CHECK_TEXT(error.message, "here: config.json is missing");
        CHECK(config_facts_of(broken, &error) == NULL && hparams_of(broken, &error) == NULL);
        CHECK_TEXT(error.message, "config.json: not a JSON object");
    }
    checkpoint_close(bare);
    checkpoint_close(broken);
}

static void test_outage(void)
{
    struct error error;
    struct checkpoint *checkpoint = with_text("{\"model_type\":\"llama\"}");
    unreached_now = true;
    CHECK(config_facts_of(checkpoint, &error) == NULL && strstr(error.message, "no server") != NULL);
    CHECK(hparams_of(checkpoint, &error) == NULL && !facts_of(checkpoint).lacks_config);
    unreached_now = false;
    const struct config_facts *facts = config_facts_of(checkpoint, &error);
    if (CHECK(facts != NULL))
        CHECK_TEXT(facts->model_type, "llama");
    checkpoint_close(checkpoint);
}

int main(void)
{
    test_kinds();
    test_config();
    test_reasons();
    test_outage();
    return check_done();
}
