/* Plans and markers of parts: what is read is what was written, and nothing else is read. */
#include "fs/lib/parts_plan.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t ends[] = {65536, 65536, 200000};

static struct parts_plan make_plan(void)
{
    struct parts_plan plan = {.wfs = "wfs 1",
                              .path = "a/\"b\".gguf",
                              .model = "m\xc3\xa9",
                              .options = "pure",
                              .bytes = 200000,
                              .n_parts = 3,
                              .ends = ends};
    memset(plan.layout, 'a', SHA256_HEX);
    memset(plan.stamp, 'b', SHA256_HEX);
    memset(plan.source, 'c', SHA256_HEX);
    return plan;
}

static bool reads(const struct buffer *text, struct arena *arena, struct parts_plan *ret_plan)
{
    struct error error;
    return parts_plan_read(text, arena, ret_plan, &error);
}

static void whole_plans(struct arena *arena)
{
    struct parts_plan plan = make_plan(), found;
    struct buffer text = {0};
    struct error error;
    parts_plan_write(&plan, &text);
    CHECK(reads(&text, arena, &found));
    CHECK_TEXT(found.path, plan.path);
    CHECK_TEXT(found.model, plan.model);
    CHECK_TEXT(found.hash, plan.hash);
    CHECK(found.n_parts == 3 && found.ends[0] == 65536 && found.ends[2] == 200000);
    CHECK(parts_plan_agrees(&found, &plan, NULL, 0, &error));
    plan.wfs = "wfs 2";
    CHECK(!parts_plan_agrees(&found, &plan, NULL, 0, &error));
    CHECK_TEXT(error.message, "was begun by wfs 1, not wfs 2");
    buffer_free(&text);
}

static void damaged_plans(struct arena *arena)
{
    struct parts_plan plan = make_plan(), found;
    struct buffer text = {0};
    parts_plan_write(&plan, &text);
    for (size_t i = 0; i + 1 < text.length; i++) {
        text.bytes[i] ^= 1;
        CHECK(!reads(&text, arena, &found));
        text.bytes[i] ^= 1;
    }
    for (size_t length = 0; length < text.length; length++)
        CHECK(!reads(&(struct buffer){text.bytes, length, length}, arena, &found));
    buffer_free(&text);
}

/* Sealed, and yet no plan. */
static void wrong_plans(struct arena *arena)
{
    static const char *const wrong[] = {"{}",
                                        "[]",
                                        "1",
                                        "{\"format\":1,\"bytes\":3,\"ends\":[]}",
                                        "{\"format\":1,\"bytes\":3,\"ends\":[4]}",
                                        "{\"format\":1,\"bytes\":3,\"ends\":[3,2,3]}",
                                        "{\"format\":1,\"bytes\":3,\"ends\":[-1,3]}",
                                        "{\"format\":1,\"bytes\":3}",
                                        "{\"format\":2,\"bytes\":3,\"ends\":[3]}",
                                        "{\"format\":1,\"bytes\":3,\"ends\":[\"3\"]}"};
    struct parts_plan found;
    char hash[SHA256_HEX + 1];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct buffer text = {0};
        sha256_hex(wrong[i], strlen(wrong[i]), hash);
        buffer_printf(&text, "%s\n%s\n", wrong[i], hash);
        CHECK(!reads(&text, arena, &found));
        buffer_free(&text);
    }
}

static void markers(void)
{
    struct parts_marker marker = {.from = 65536, .to = 1 << 30}, found;
    struct buffer text = {0};
    memset(marker.plan, 'd', SHA256_HEX);
    memset(marker.checksum, 'e', SHA256_HEX);
    parts_marker_write(&marker, &text);
    CHECK(parts_marker_read(&text, &found));
    CHECK(found.from == marker.from && found.to == marker.to);
    CHECK_TEXT(found.plan, marker.plan);
    CHECK_TEXT(found.checksum, marker.checksum);
    text.bytes[20] ^= 1;
    CHECK(!parts_marker_read(&text, &found));
    CHECK(!parts_marker_read(&(struct buffer){0}, &found));
    buffer_free(&text);
}

int main(void)
{
    struct arena *arena = arena_new();
    whole_plans(arena);
    damaged_plans(arena);
    wrong_plans(arena);
    markers();
    arena_free(arena);
    return check_done();
}
