/* Values of every type, in every version and byte order: read, taken and written again. */
#include "base/arena.h"
#include "formats/gguf/kv.h"
#include "sources/location.h"

#include "tests/unit/check.h"
#include "tests/unit/write_gguf.h"

/* Where the values of the keys begin: nothing but keys is in these files. */
static struct source *source_of(const struct assembly *file)
{
    struct error error;
    write_file(file, "keys");
    struct source *source = location_open_file("keys", &error);
    files_must(source != NULL, "keys");
    return source;
}

static bool read_all(struct gguf_kvs *kvs, struct source *source, const struct assembly *file, unsigned n,
                     struct error *error)
{
    struct gguf_cursor cursor =
        gguf_cursor_at(source, 0, file->version, file->big_endian ? GGUF_BIG_ENDIAN : GGUF_LITTLE_ENDIAN);
    bool good = true;
    for (unsigned i = 0; good && i < n; i++)
        good = gguf_kvs_read(kvs, &cursor, error);
    good = good && gguf_remaining(&cursor) == 0;
    gguf_cursor_free(&cursor);
    return good;
}

enum { LONG = 100000, N_KEYS = 17 };

static void put_keys(struct assembly *file)
{
    put_key(file, "u8", 0), put(file, 200, 1);
    put_key(file, "i8", 1), put(file, (uint8_t)-100, 1);
    put_key(file, "u16", 2), put(file, 60000, 2);
    put_key(file, "i16", 3), put(file, (uint16_t)-30000, 2);
    put_key(file, "u32", 4), put(file, 4000000000u, 4);
    put_key(file, "i32", 5), put(file, (uint32_t)-2000000000, 4);
    put_key(file, "f32", 6), put(file, 0x3727c5ac, 4); /* 1e-05 */
    put_key(file, "bool", 7), put(file, 7, 1);
    put_key(file, "string", 8), put_string(file, "a \"b\" \xc3\xa9");
    put_key(file, "u64", 10), put(file, UINT64_MAX, 8);
    put_key(file, "i64", 11), put(file, (uint64_t)INT64_MIN, 8);
    put_key(file, "f64", 12), put(file, 0x400921fb54442d18, 8); /* pi */
    put_key(file, "numbers", 9), put_array(file, 3, 3), put(file, 1, 2), put(file, (uint16_t)-2, 2), put(file, 3, 2);
    put_key(file, "nested", 9), put_array(file, 9, 3);
    put_array(file, 8, 2), put_string(file, "x"), put_string(file, "");
    put_array(file, 9, 1), put_array(file, 7, 2), put(file, 2, 1), put(file, 0, 1);
    put_array(file, 4, 0);
    put_key(file, "nul", 8), put_text(file, "cut\0here", 8);
    put_key(file, "long", 9), put_array(file, 8, LONG);
    for (unsigned i = 0; i < LONG; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        put_string(file, i == 77 ? "" : text);
    }
    put_key(file, "longer", 9), put_array(file, 6, LONG);
    for (unsigned i = 0; i < LONG; i++)
        put(file, 0x3f800000, 4);
}

static void check_numbers(const struct gguf_kvs *kvs)
{
    uint64_t u = 0;
    int64_t i = 0;
    double f = 0;
    bool b = false;
    CHECK(gguf_get_u64(kvs, "u8", &u) && u == 200);
    CHECK(gguf_get_i64(kvs, "i8", &i) && i == -100 && !gguf_get_u64(kvs, "i8", &u));
    CHECK(gguf_get_u64(kvs, "u16", &u) && u == 60000);
    CHECK(gguf_get_i64(kvs, "i16", &i) && i == -30000);
    CHECK(gguf_get_u64(kvs, "u32", &u) && u == 4000000000u && gguf_get_i64(kvs, "u32", &i) && i == 4000000000);
    CHECK(gguf_get_i64(kvs, "i32", &i) && i == -2000000000);
    CHECK(gguf_get_u64(kvs, "u64", &u) && u == UINT64_MAX && !gguf_get_i64(kvs, "u64", &i));
    CHECK(gguf_get_i64(kvs, "i64", &i) && i == INT64_MIN);
    CHECK(gguf_get_f64(kvs, "f32", &f) && f == (double)1e-05f);
    CHECK(gguf_get_f64(kvs, "f64", &f) && f == 3.141592653589793 && !gguf_get_f64(kvs, "u8", &f));
    CHECK(gguf_get_bool(kvs, "bool", &b) && b && !gguf_get_bool(kvs, "u8", &b) && !gguf_get_u64(kvs, "bool", &u));
    CHECK(!gguf_get_u64(kvs, "absent", &u));
}

static void check_texts(const struct gguf_kvs *kvs, struct arena *arena)
{
    size_t length;
    struct error error;
    CHECK_TEXT(gguf_get_string(kvs, "string", arena, &length, &error), "a \"b\" \xc3\xa9");
    const char *text = gguf_get_string(kvs, "nul", arena, &length, &error);
    CHECK(text != NULL && length == 8 && memcmp(text, "cut\0here", 9) == 0);
    CHECK(gguf_get_string(kvs, "u8", arena, &length, &error) == NULL);
    CHECK_TEXT(error.message, "'u8' is u8, not string");
    CHECK(gguf_get_string(kvs, "absent", arena, &length, &error) == NULL);
    CHECK_TEXT(error.message, "the key 'absent' is missing");
}

static void check_arrays(const struct gguf_kvs *kvs, struct arena *arena)
{
    size_t length;
    struct error error;
    struct gguf_array array;
    int64_t i;
    double f;
    CHECK(gguf_get_array(kvs, "numbers", arena, &array, &error) && array.type == GGUF_I16 && array.count == 3 &&
          gguf_array_i64(&array, 1, &i) && i == -2);
    CHECK(gguf_get_array(kvs, "long", arena, &array, &error) && array.count == LONG);
    const char *text = gguf_array_string(&array, 99999, &length);
    CHECK(text != NULL && length == 5 && memcmp(text, "99999", 5) == 0);
    CHECK(gguf_array_string(&array, 77, &length) != NULL && length == 0);
    CHECK(gguf_get_array(kvs, "longer", arena, &array, &error) && gguf_array_f64(&array, LONG - 1, &f) && f == 1);
    CHECK(gguf_get_array(kvs, "nested", arena, &array, &error) && array.type == GGUF_ARRAY && array.count == 3);
}

static void check_json(const struct gguf_kvs *kvs)
{
    static const char *const expected[N_KEYS] = {
        "200",
        "-100",
        "60000",
        "-30000",
        "4000000000",
        "-2000000000",
        "1e-05",
        "true",
        "\"a \\\"b\\\" \xc3\xa9\"",
        "18446744073709551615",
        "-9223372036854775808",
        "3.141592653589793",
        "[1,-2,3]",
        "[[\"x\",\"\"],[[true,false]],[]]",
        "\"cut\\u0000here\"",
        "{\"type\":\"string\",\"length\":100000}",
        "{\"type\":\"f32\",\"length\":100000}",
    };
    for (size_t i = 0; i < N_KEYS; i++) {
        struct buffer text = {0};
        gguf_put_json(&(struct json_writer){.out = &text, .letters = JSON_UTF8, .compact = true}, NULL, &kvs->kvs[i],
                      16);
        buffer_append(&text, "", 1);
        CHECK_TEXT((const char *)text.bytes, expected[i]);
        buffer_free(&text);
    }
}

/* What is written is what a file of version 3 has: truth as 1, texts up to their first NUL. */
static void check_written(const struct gguf_kvs *kvs)
{
    struct assembly expected = {.version = 3};
    struct buffer written = {0};
    struct error error;
    bool good = true;
    for (size_t i = 0; i < kvs->n_kvs; i++)
        good = good && gguf_write_kv(&written, &kvs->kvs[i], &error);
    put_keys(&expected);
    unsigned char *bytes = expected.bytes.bytes;
    size_t length = expected.bytes.length;
    *((unsigned char *)memmem(bytes, length, "bool\7\0\0\0\7", 9) + 8) = 1;
    unsigned char *nested = memmem(bytes, length, "\2\0\0\0\0\0\0\0\2\0", 10);
    nested[8] = 1;
    unsigned char *nul = memmem(bytes, length, "\10\0\0\0\0\0\0\0cut\0here", 16);
    nul[0] = 3;
    memmove(nul + 11, nul + 16, length - (size_t)(nul + 16 - bytes));
    length -= 5;
    CHECK(good && written.length == length && memcmp(written.bytes, bytes, length) == 0);
    buffer_free(&expected.bytes);
    buffer_free(&written);
}

static void all_types(unsigned version, bool big_endian)
{
    struct assembly file = {.version = version, .big_endian = big_endian};
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    put_keys(&file);
    struct source *source = source_of(&file);
    CHECK(read_all(&kvs, source, &file, N_KEYS, &error) && kvs.n_kvs == N_KEYS);
    CHECK_TEXT(error.message, "");
    const struct gguf_kv *tokens = gguf_kvs_find(&kvs, "long");
    CHECK(tokens->value.length == 0 && tokens->stored.source == source && tokens->stored.length > LONG);
    CHECK(tokens->stored.canonical == (version > 1 && !big_endian));
    struct arena *arena = arena_new();
    check_numbers(&kvs);
    check_texts(&kvs, arena);
    check_arrays(&kvs, arena);
    check_json(&kvs);
    check_written(&kvs);
    arena_free(arena);
    gguf_kvs_free(&kvs);
    source_close(source);
    buffer_free(&file.bytes);
}

/* What has shrunk since it was read fails when it is wanted, and only then. */
static void shrinks(void)
{
    struct assembly file = {.version = 3};
    struct gguf_kvs kvs = {0};
    struct error error;
    struct gguf_array array;
    put_keys(&file);
    struct source *source = source_of(&file);
    CHECK(read_all(&kvs, source, &file, N_KEYS, &error) && truncate("keys", 1000) == 0);
    struct arena *arena = arena_new();
    CHECK(!gguf_get_array(&kvs, "longer", arena, &array, &error));
    CHECK(gguf_get_array(&kvs, "numbers", arena, &array, &error));
    arena_free(arena);
    gguf_kvs_free(&kvs);
    source_close(source);
    buffer_free(&file.bytes);
}

static void refuses(struct assembly *file, const char *reason)
{
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    struct source *source = source_of(file);
    CHECK(!read_all(&kvs, source, file, 1, &error));
    CHECK_TEXT(error.message, reason);
    gguf_kvs_free(&kvs);
    source_close(source);
    buffer_free(&file->bytes);
}

static void refuses_all(void)
{
    struct assembly file = {.version = 3};
    put(&file, UINT64_MAX, 8);
    refuses(&file, "string too long: 18446744073709551615 bytes, the limit is 1073741824");
    put(&file, 5, 8);
    refuses(&file, "truncated: a string of 5 bytes, but only 0 bytes follow; an interrupted download?");
    put_key(&file, "", 4), put(&file, 1, 4);
    refuses(&file, "its name is empty; download the file again, or ask its maker");
    put_text(&file, "a\0b", 3), put(&file, 4, 4), put(&file, 1, 4);
    refuses(&file, "its name contains a NUL byte; download the file again, or ask its maker");
    put_key(&file, "k", 13), put(&file, 1, 8);
    refuses(&file, "'k': unknown value type 13; download the file again, or update wfs");
    put_key(&file, "k", 9), put_array(&file, 13, 1);
    refuses(&file, "'k': unknown value type 13; download the file again, or update wfs");
    put_key(&file, "k", 9), put_array(&file, 0, UINT64_C(1) << 63);
    refuses(&file, "'k': array too long: 9223372036854775808 elements, the limit is 1073741824");
    put_key(&file, "k", 9), put_array(&file, 8, 3), put(&file, 0, 8), put(&file, 0, 8);
    refuses(&file, "'k': truncated: an array of 3 elements, but only 16 bytes follow; an interrupted download?");
    put_key(&file, "k", 9), put_array(&file, 8, 1), put(&file, 1, 8);
    refuses(&file, "'k': truncated: a string of 1 bytes, but only 0 bytes follow; an interrupted download?");
    put_key(&file, "k", 9);
    for (int depth = 0; depth < 9; depth++)
        put_array(&file, 9, 1);
    refuses(&file, "'k': arrays are nested more than 8 deep");
    put_key(&file, "k", 10), put(&file, 1, 4);
    refuses(&file, "'k': truncated: 8 bytes expected at offset 13 of 17; an interrupted download?");
}

static const char *shown(const struct gguf_kv *kv)
{
    static char text[64];
    struct buffer value = {0};
    gguf_append_text(&value, kv, 2);
    snprintf(text, sizeof text, "%.*s", (int)value.length, (const char *)value.bytes);
    buffer_free(&value);
    return text;
}

static void shows_people(void)
{
    struct assembly file = {.version = 3};
    struct gguf_kvs kvs = {0};
    struct error error;
    put_key(&file, "quiet", 6), put(&file, 0x7fc00000, 4);
    put_key(&file, "below", 6), put(&file, 0xff800000, 4);
    put_key(&file, "above", 12), put(&file, 0x7ff0000000000000, 8);
    put_key(&file, "text", 8), put_string(&file, "a \"b\"");
    put_key(&file, "three", 9), put_array(&file, 0, 3), put(&file, 0x010203, 3);
    struct source *source = source_of(&file);
    CHECK(read_all(&kvs, source, &file, 5, &error));
    CHECK_TEXT(shown(&kvs.kvs[0]), "nan");
    CHECK_TEXT(shown(&kvs.kvs[1]), "-inf");
    CHECK_TEXT(shown(&kvs.kvs[2]), "inf");
    CHECK_TEXT(shown(&kvs.kvs[3]), "a \"b\"");
    CHECK_TEXT(shown(&kvs.kvs[4]), "{\"type\":\"u8\",\"length\":3}");
    gguf_kvs_free(&kvs);
    source_close(source);
    buffer_free(&file.bytes);
}

static void refuses_twice(void)
{
    struct assembly file = {.version = 3};
    struct gguf_kvs kvs = {0};
    struct error error = {""};
    put_u32_key(&file, "k", 1);
    put_u32_key(&file, "k", 1);
    struct source *source = source_of(&file);
    CHECK(!read_all(&kvs, source, &file, 2, &error));
    CHECK_TEXT(error.message, "'k' occurs twice; download the file again, or ask its maker");
    gguf_kvs_free(&kvs);
    source_close(source);
    buffer_free(&file.bytes);
}

int main(void)
{
    files_begin();
    for (unsigned version = 1; version <= 3; version++) {
        all_types(version, false);
        all_types(version, true);
    }
    shrinks();
    shows_people();
    refuses_all();
    refuses_twice();
    files_remove();
    return check_done();
}
