/* Overrides of keys, as llama-quantize stores them: what is expected here was read from files that it wrote. */
#include "models/convert/edits.h"

#include "tests/unit/check.h"

static const char *shown(const struct gguf_kvs *kvs)
{
    static char text[1024];
    size_t length = 0;
    for (size_t i = 0; i < kvs->n_kvs; i++) {
        struct buffer value = {0};
        gguf_put_json(&(struct json_writer){.out = &value, .letters = JSON_UTF8, .compact = true}, NULL, &kvs->kvs[i],
                      16);
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s %s %.*s", i ? ", " : "", kvs->kvs[i].key,
                                   gguf_type_name(kvs->kvs[i].type), (int)value.length, (const char *)value.bytes);
        buffer_free(&value);
    }
    return text;
}

static void edits(void)
{
    static const char *const overrides[] = {"a=int:-5", "f=float:0.1", "b=bool:false",        "s=str:x=y:z",
                                            "e=str:",   "c=bool:true", "n=int:4294967296123", NULL};
    const struct gguf_edits changes = {
        .override_kvs = overrides, .chat_template = "{{ x }}", .chat_template_length = 7};
    struct gguf_kvs kvs = {0};
    gguf_set_u32(&kvs, "a", 1);
    gguf_set_text(&kvs, "tokenizer.chat_template", "old");
    gguf_set_u32(&kvs, "z", 2);
    struct gguf_kvs copy = gguf_kvs_copy(&kvs);
    CHECK(gguf_edits_are_none(NULL) && gguf_edits_are_none(&(struct gguf_edits){0}) && !gguf_edits_are_none(&changes));
    gguf_edit(&copy, NULL, 0);
    CHECK_TEXT(shown(&copy), "a u32 1, tokenizer.chat_template string \"old\", z u32 2");
    gguf_edit(&copy, &changes, 1);
    CHECK_TEXT(shown(&copy), "tokenizer.chat_template string \"{{ x }}\", z u32 2, a u32 5, f f32 0.1, b bool false, "
                             "s string \"x=y:z\", e string \"\", c bool true, n u32 123");
    CHECK_TEXT(shown(&kvs), "a u32 1, tokenizer.chat_template string \"old\", z u32 2");
    gguf_kvs_free(&copy);
    gguf_kvs_free(&kvs);
}

/* What was not there is the last key, or in the place that the converter has for it. */
static void new_template(void)
{
    static const char *const expected[] = {"a u32 1, b u32 2, tokenizer.chat_template string \"{{ x }}\"",
                                           "a u32 1, tokenizer.chat_template string \"{{ x }}\", b u32 2"};
    const struct gguf_edits changes = {.chat_template = "{{ x }}", .chat_template_length = 7};
    for (size_t place = 0; place < 2; place++) {
        struct gguf_kvs kvs = {0};
        gguf_set_u32(&kvs, "a", 1);
        gguf_set_u32(&kvs, "b", 2);
        gguf_edit(&kvs, &changes, place);
        CHECK_TEXT(shown(&kvs), expected[place]);
        gguf_set_u32(&kvs, "b", 3); /* each is found where it is */
        CHECK(kvs.n_kvs == 3 && gguf_kvs_find(&kvs, "b")->type == GGUF_U32);
        gguf_kvs_free(&kvs);
    }
}

static void refusals(void)
{
    static const struct {
        const char *override_kv, *reason;
    } bad[] = {
        {"a", "'a' is not KEY=TYPE:VALUE with a TYPE of int, float, bool or str"},
        {"=int:1", "'=int:1' is not KEY=TYPE:VALUE with a TYPE of int, float, bool or str"},
        {"a=u32:1", "'a=u32:1' is not KEY=TYPE:VALUE with a TYPE of int, float, bool or str"},
        {"a=bool:1", "'a=bool:1': '1' is neither true nor false"},
        {"split.count=int:7", "'split.count=int:7': keys alone cannot split a file; use -o split=N"},
        {"split.count=int:-2", "'split.count=int:-2': keys alone cannot split a file; use -o split=N"},
    };
    struct error error;
    char text[200];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!gguf_override_check(bad[i].override_kv, &error));
        CHECK_TEXT(error.message, bad[i].reason);
    }
    CHECK(gguf_override_check("split.count=int:1", &error) && gguf_override_check("split.count=str:7", &error));
    snprintf(text, sizeof text, "a=str:%0127d", 0);
    CHECK(gguf_override_check(text, &error));
    snprintf(text, sizeof text, "a=str:%0128d", 0);
    CHECK(!gguf_override_check(text, &error));
    snprintf(text, sizeof text, "%0127d=int:1", 0);
    CHECK(gguf_override_check(text, &error));
    snprintf(text, sizeof text, "%0128d=int:1", 0);
    CHECK(!gguf_override_check(text, &error));
}

int main(void)
{
    edits();
    new_template();
    refusals();
    return check_done();
}
