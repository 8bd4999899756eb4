/* The dictionary of a GGUF's keys: order, changing, removing; and many keys. */
#include "formats/gguf/kv.h"

#include "tests/unit/check.h"

static bool stands(const struct gguf_kvs *kvs, size_t place, const char *key, unsigned value)
{
    const struct gguf_kv *kv = gguf_kvs_find(kvs, key);
    return kv != NULL && kv == &kvs->kvs[place] && kv->value.length == 4 && kv->value.bytes[0] == value;
}

static void keeps_order(void)
{
    struct gguf_kvs kvs = {0};
    gguf_set_u32(&kvs, "a", 1);
    gguf_set_u32(&kvs, "b", 2);
    gguf_set_u32(&kvs, "c", 3);
    gguf_set_u32(&kvs, "a", 4);
    CHECK(kvs.n_kvs == 3 && stands(&kvs, 0, "a", 4) && stands(&kvs, 1, "b", 2) && stands(&kvs, 2, "c", 3));
    struct gguf_kvs copy = gguf_kvs_copy(&kvs);
    gguf_kvs_remove(&copy, "b");
    CHECK(copy.n_kvs == 2 && stands(&copy, 0, "a", 4) && stands(&copy, 1, "c", 3) && gguf_kvs_find(&copy, "b") == NULL);
    gguf_set_u32(&copy, "b", 5);
    CHECK(stands(&copy, 2, "b", 5));
    gguf_kvs_free(&copy);
    gguf_kvs_free(&kvs);
}

/* As chat templates and base models may give them: comparing each with all before it takes hours. */
static void takes_many(void)
{
    enum { MANY = 500000 };
    struct gguf_kvs kvs = {0};
    char key[64];
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "tokenizer.chat_template.%u", i);
        gguf_set_u32(&kvs, key, i);
    }
    CHECK(kvs.n_kvs == MANY && stands(&kvs, 77, "tokenizer.chat_template.77", 77));
    gguf_kvs_free(&kvs);
}

/* An array that is appended to its entry is the one that is set from a buffer; about its size may be wrong. */
static void begins_arrays(void)
{
    struct gguf_kvs kvs = {0};
    struct buffer elements = {0};
    gguf_append_string(&elements, "ab", 2);
    gguf_append_string(&elements, "", 0);
    gguf_set_array(&kvs, "set", GGUF_STRING, 2, &elements);
    CHECK(elements.bytes == NULL);
    struct buffer *begun = gguf_begin_array(&kvs, "begun", GGUF_STRING, 2, 3);
    gguf_append_string(begun, "ab", 2);
    gguf_append_string(begun, "", 0);
    const struct buffer *value = &gguf_kvs_find(&kvs, "set")->value;
    begun = &kvs.kvs[1].value;
    CHECK(value->length == begun->length && memcmp(value->bytes, begun->bytes, value->length) == 0);
    CHECK(value->length == 4 + 8 + 2 * GGUF_LENGTH + 2 && value->bytes[0] == GGUF_STRING && value->bytes[4] == 2);
    CHECK(gguf_begin_array(&kvs, "none", GGUF_STRING, 0, 0) == NULL && gguf_kvs_find(&kvs, "none") == NULL);
    gguf_kvs_free(&kvs);
}

int main(void)
{
    keeps_order();
    begins_arrays();
    takes_many();
    return check_done();
}
