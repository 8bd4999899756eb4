/* tests/data/gguf/cards.json holds model cards and configurations, and the keys that gguf-py makes of them: see
 * tests/data/make_cards.py. Where gguf-py ends with an exception, the table below says what is made of it here. */
#include "models/card/general.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "sources/location.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"

static const uint64_t n_parameters = 6738415616;

/* A checkpoint of nothing but side files: `texts` of README.md and generation_config.json, NULL where there is none. */
static struct checkpoint *make_checkpoint(const char *name, const char *readme, size_t readme_length,
                                          const char *generation)
{
    struct checkpoint *checkpoint = checkpoint_new(".");
    struct error error;
    checkpoint->model_name = arena_strdup(checkpoint->arena, name);
    if (generation != NULL) {
        files_write_text("generation_config.json", generation);
        checkpoint_add_side_file(checkpoint, "generation_config.json",
                                 location_open_file("generation_config.json", &error));
    }
    if (readme != NULL) {
        files_write("README.md", readme, readme_length);
        checkpoint_add_side_file(checkpoint, "README.md", location_open_file("README.md", &error));
    }
    return checkpoint;
}

/* The cases were recorded from the converter of b10470. */
static const struct references recorded = {10470};

static struct gguf_kvs add_general(const struct checkpoint *checkpoint, const char *config)
{
    struct gguf_kvs kvs = {0};
    struct error error;
    struct parameter_count count = {.total = n_parameters, .shared = n_parameters};
    struct json_document *document = config == NULL ? NULL : json_parse(config, strlen(config), &error);
    CHECK(general_add(&kvs, checkpoint, document == NULL ? NULL : json_root(document), &count, &recorded, &error));
    json_free(document);
    return kvs;
}

/* Type and value as they stand in a file, in hexadecimal. */
static void write_hex(const struct gguf_kv *kv, struct buffer *out)
{
    buffer_printf(out, "%02x000000", (unsigned)kv->type);
    for (size_t i = 0; i < kv->value.length; i++)
        buffer_printf(out, "%02x", kv->value.bytes[i]);
}

static bool same_keys(const struct gguf_kvs *kvs, const struct json *expected)
{
    bool same = kvs->n_kvs == json_count(expected);
    const struct json *pair = json_first(expected);
    for (size_t i = 0; i < kvs->n_kvs && pair != NULL; i++, pair = json_next(pair)) {
        struct buffer hex = {0};
        write_hex(&kvs->kvs[i], &hex);
        size_t length;
        const char *key = json_string(json_at(pair, 0), NULL), *value = json_string(json_at(pair, 1), &length);
        bool same_key = strcmp(key, kvs->kvs[i].key) == 0;
        bool same_value = hex.length == length && memcmp(hex.bytes, value, length) == 0;
        if (!same_key || !same_value)
            fprintf(stderr, "  is %s %.*s, expected %s %s\n", kvs->kvs[i].key, (int)hex.length, (const char *)hex.bytes,
                    key, value);
        same &= same_key && same_value;
        buffer_free(&hex);
    }
    return same;
}

static void check_case(const struct json *row)
{
    size_t length = 0;
    const char *readme = json_string(json_get(row, "readme"), &length),
               *config = json_string(json_get(row, "config"), NULL),
               *generation = json_string(json_get(row, "generation"), NULL);
    struct checkpoint *checkpoint =
        make_checkpoint(json_string(json_get(row, "name"), NULL), readme, length, generation);
    struct gguf_kvs kvs = add_general(checkpoint, config);
    char name[256];
    text_printable(readme ? readme : "", length, name, 160);
    size_t used = strlen(name);
    snprintf(name + used, sizeof name - used, " %.40s %.40s", config ? config : "", generation ? generation : "");
    const struct json *expected = json_get(row, "hex");
    if (expected != NULL)
        CHECK_NAMED(same_keys(&kvs, expected), name);
    else
        CHECK_NAMED(gguf_kvs_find(&kvs, "general.name") != NULL, name);
    gguf_kvs_free(&kvs);
    checkpoint_close(checkpoint);
}

static void cases(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/gguf/cards.json", getenv("WFS_TEST_DATA"));
    struct error error;
    size_t length = 0;
    struct source *file = location_open_file(path, &error);
    char *text = file == NULL ? NULL : source_read_text(file, 1 << 24, &length, &error);
    struct json_document *document = text == NULL ? NULL : json_parse(text, length, &error);
    if (CHECK(document != NULL))
        for (const struct json *row = json_first(json_root(document)); row != NULL; row = json_next(row))
            check_case(row);
    json_free(document);
    free(text);
    source_close(file);
}

/* The value of a text, or the texts of an array joined with commas; "(none)" where the key is not there. */
static void show(const struct gguf_kvs *kvs, const char *key, char *out, size_t capacity)
{
    const struct gguf_kv *kv = gguf_kvs_find(kvs, key);
    snprintf(out, capacity, "(none)");
    if (kv == NULL)
        return;
    const unsigned char *at = kv->value.bytes;
    uint64_t n_texts = kv->type == GGUF_ARRAY ? read_le(at + 4, 8) : 1;
    at += kv->type == GGUF_ARRAY ? 12 : 0;
    size_t used = 0;
    for (uint64_t i = 0; i < n_texts; i++) {
        size_t length = (size_t)read_le(at, 8);
        used += (size_t)snprintf(out + used, capacity - used, "%s%.*s", i == 0 ? "" : ",", (int)length,
                                 (const char *)at + 8);
        at += 8 + length;
    }
}

/* What ends the reference, and what is made of it. */
static const struct {
    const char *card, *key, *value;
} mended[] = {
    {"version: 1.0\n", "general.version", "1.0"},
    {"version: 2024-01-31\n", "general.version", "2024-01-31"},
    {"name: 7\n", "general.name", "7"},
    {"name: yes\n", "general.name", "yes"},
    {"name: [a, b]\n", "general.name", "a,b"},
    {"name: {a: b}\n", "general.name", "M"},
    {"license: {a: b}\n", "general.license", "(none)"},
    {"license: [mit, 5]\n", "general.license", "mit,5"},
    {"tags: [2024, x]\n", "general.tags", "2024,x"},
    {"language: [en, no]\n", "general.languages", "en,no"},
    {"tags: [a, {b: c}, ~, [d], e]\n", "general.tags", "a,e"},
    {"tags: [~]\n", "general.tags", "(none)"},
    {"tags: [[a]]\n", "general.tags", "(none)"}, /* gguf-py writes an array of arrays, which llama.cpp refuses */
    {"tags: [2024-01-31]\n", "general.tags", "2024-01-31"},
    {"tags: [3000000000]\n", "general.tags", "3000000000"},
    {"tags: [99999999999999999999]\n", "general.tags", "99999999999999999999"},
    {"name: 'unclosed\n", "general.name", "M"},
    {"license: mit\n--- second\n", "general.license", "mit"},
    {"base_model: [{name: 5}]\n", "general.base_model.0.name", "5"},
    {"x: !!python/name:os.system\nlicense: mit\n", "general.license", "mit"},
};

static void mends(void)
{
    for (size_t i = 0; i < sizeof mended / sizeof *mended; i++) {
        char readme[256], shown[256], name[256];
        snprintf(readme, sizeof readme, "---\n%s---\n", mended[i].card);
        struct checkpoint *checkpoint = make_checkpoint("m", readme, strlen(readme), NULL);
        struct gguf_kvs kvs = add_general(checkpoint, NULL);
        show(&kvs, mended[i].key, shown, sizeof shown);
        text_printable(mended[i].card, strlen(mended[i].card), name, sizeof name);
        check_text_report(shown, mended[i].value, __FILE__, __LINE__, name);
        gguf_kvs_free(&kvs);
        checkpoint_close(checkpoint);
    }
}

/* What libyaml reads in quadratic time: a megabyte of it would take many minutes. */
static void slow_cards(void)
{
    static const char *const pieces[] = {"[", "{", "- &a%d x\n", "? &b%d x\n", "%%TAG !a%d! b\n", "- "};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct buffer readme = {0};
        buffer_append_text(&readme, "---\n");
        for (int n = 0; readme.length < 1000000; n++)
            buffer_printf(&readme, pieces[i], n);
        struct checkpoint *checkpoint = make_checkpoint("m", (const char *)readme.bytes, readme.length, NULL);
        struct gguf_kvs kvs = add_general(checkpoint, NULL);
        CHECK_NAMED(strstr(checkpoint_note_at(checkpoint, 0).text, "README.md: its front matter is not used: ") != NULL,
                    pieces[i]);
        gguf_kvs_free(&kvs);
        checkpoint_close(checkpoint);
        buffer_free(&readme);
    }
}

/* Aliases of aliases do not grow. Merges in circles refuse the front matter. */
static void bombs(void)
{
    static const char *const ends[] = {"---\n", "m: &m {<<: [*m, *m, *m, *m, *m, *m, *m, *m, *m, *m]}\n<<: *m\n---\n"};
    for (size_t circles = 0; circles < 2; circles++) {
        struct buffer readme = {0};
        buffer_append_text(&readme, "---\na0: &a0 [x]\n");
        for (int i = 1; i < 64; i++)
            buffer_printf(&readme, "a%d: &a%d [*a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1, i - 1);
        buffer_printf(&readme, "tags: *a63\nbase_model: *a63\n%s", ends[circles]);
        struct checkpoint *checkpoint = make_checkpoint("m", (const char *)readme.bytes, readme.length, NULL);
        struct gguf_kvs kvs = add_general(checkpoint, NULL);
        CHECK(gguf_kvs_find(&kvs, "general.tags") == NULL);
        CHECK((gguf_kvs_find(&kvs, "general.base_model.count") == NULL) == (circles == 1));
        gguf_kvs_free(&kvs);
        checkpoint_close(checkpoint);
        buffer_free(&readme);
    }
}

static void deep_brackets(void)
{
    struct buffer deep = {0};
    buffer_append_text(&deep, "---\nname: ");
    for (int i = 0; i < 100000; i++)
        buffer_append_text(&deep, "[");
    struct checkpoint *checkpoint = make_checkpoint("m", (const char *)deep.bytes, deep.length, NULL);
    struct gguf_kvs kvs = add_general(checkpoint, NULL);
    CHECK_NAMED(checkpoint_notes(checkpoint) == 1, "100000 brackets: no YAML, and a note");
    gguf_kvs_free(&kvs);
    checkpoint_close(checkpoint);
    buffer_free(&deep);
}

/* Newer converters also take repetition_penalty, even if it is 1. */
static void repetition(void)
{
    static const struct {
        const char *generation;
        unsigned build;
        double expected; /* 0: none */
    } rows[] = {
        {"{\"repetition_penalty\": 1.0}", 10605, 0},
        {"{\"repetition_penalty\": 1.0}", 10615, 1},
        {"{\"repetition_penalty\": 1.25}", 0, 1.25},
        {"{\"repetition_penalty\": 1.25, \"penalty_repeat\": 1.5}", 0, 1.5},
        {"{\"repetition_penalty\": 1.25, \"penalty_repeat\": null}", 0, 0},
        {"{\"repetition_penalty\": null}", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct checkpoint *checkpoint = make_checkpoint("M", NULL, 0, rows[i].generation);
        struct parameter_count count = {0};
        struct gguf_kvs kvs = {0};
        struct error error;
        double value = 0;
        CHECK(general_add(&kvs, checkpoint, NULL, &count, &(struct references){rows[i].build}, &error));
        gguf_get_f64(&kvs, "general.sampling.penalty_repeat", &value);
        CHECK_NAMED(value == rows[i].expected, rows[i].generation);
        gguf_kvs_free(&kvs);
        checkpoint_close(checkpoint);
    }
}

int main(void)
{
    files_begin();
    cases();
    repetition();
    mends();
    bombs();
    deep_brackets();
    slow_cards();
    files_remove();
    return check_done();
}
