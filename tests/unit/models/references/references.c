/* Builds of llama.cpp: which are known, and which rules they follow. */
#include "models/references/references.h"

#include "models/families/families.h"
#include "models/projectors/projectors.h"
#include "models/tokenizers/hf_vocabulary.h"

#include "tests/unit/check.h"

#include <stdio.h>

/* A rule changes between two builds that were looked at, so none of those between is known. */
static void ranges(void)
{
    struct build_range found[MOST_BUILD_RANGES];
    size_t n = known_builds(found);
    CHECK(n >= 2 && found[0].first == 10470 && found[n - 1].last == 11549);
    for (size_t i = 0; i < n; i++) {
        CHECK(found[i].first <= found[i].last && (i == 0 || found[i].first > found[i - 1].last));
        for (size_t j = 1; j < N_CHANGES; j++) {
            const struct change_row *row = &change_rows[j];
            CHECK_NAMED(found[i].last <= row->absent || found[i].first >= row->since, row->name);
        }
    }
    for (size_t j = 1; j < N_CHANGES; j++)
        CHECK_NAMED(change_rows[j].name != NULL && change_rows[j].absent < change_rows[j].since, change_rows[j].name);
}

static void parsing(void)
{
    static const char *const known[] = {"b10470", "b10472", "b11181", "b11192", "b11549"};
    static const char *const unknown[] = {"",       "b",       "10470",       "b10469",
                                          "b11185", "b11550",  "b11549x",     "b-1",
                                          "B11549", "b011549", "b4294978845", "b99999999999999999999999"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct references references = {0};
        struct error error;
        char text[16];
        CHECK_NAMED(reference_parse(known[i], &references, &error), known[i]);
        snprintf(text, sizeof text, "b%u", reference_build(&references));
        CHECK_TEXT(text, known[i]);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct references references = {0};
        struct error error = {""};
        CHECK_NAMED(!reference_parse(unknown[i], &references, &error) && references.llama_cpp == 0, unknown[i]);
        CHECK_NAMED(strstr(error.message, "known are b10470-b10472, ") != NULL, error.message);
        CHECK_NAMED(strstr(error.message, "b11549") != NULL, error.message);
    }
}

static void rules(void)
{
    const struct references old = {10470}, before = {11181}, after = {11192};
    CHECK(follows(NULL, FIRST_POST_PROCESSOR) && follows(&(struct references){0}, FIRST_POST_PROCESSOR));
    CHECK(!follows(&old, FIRST_POST_PROCESSOR) && !follows(&before, FIRST_POST_PROCESSOR));
    CHECK(follows(&after, FIRST_POST_PROCESSOR));
    CHECK(follows(&old, CHANGE_NONE) && follows(&before, RECURRENT_LAYERS) && !follows(&after, CLASSIFIER_POOLING));
}

/* The builds in other tables are those in which some row begins. */
static bool is_in_table(unsigned build)
{
    bool found = build == 0;
    for (size_t i = 0; i < N_CHANGES; i++)
        found |= change_rows[i].since == build;
    return found;
}

static void builds_of(const struct family *const *all)
{
    for (; *all != NULL; all++) {
        CHECK_NAMED(is_in_table((*all)->since), (*all)->name);
        for (const struct family_name *name = (*all)->hf; name != NULL && name->name != NULL; name++)
            CHECK_NAMED(is_in_table(name->since), name->name);
    }
}

/* Returns the last build looked at before one in which rows begin. */
static unsigned build_before(unsigned since)
{
    unsigned before = 0;
    for (size_t i = 1; i < N_CHANGES; i++)
        if (change_rows[i].since == since && change_rows[i].absent > before)
            before = change_rows[i].absent;
    return before;
}

static void younger(const struct family *family, const struct family_name *name)
{
    unsigned since = name->since > family->since ? name->since : family->since;
    const struct references without = {build_before(since)}, with = {since};
    CHECK_NAMED(family_is_known(family, name, NULL), name->name);
    CHECK_NAMED(since == 0 || (!family_is_known(family, name, &without) && family_is_known(family, name, &with)),
                name->name);
}

static void all_younger(const struct family *const *all)
{
    for (; *all != NULL; all++)
        for (const struct family_name *name = (*all)->hf; name != NULL && name->name != NULL; name++)
            younger(*all, name);
}

/* A family, and a class of an older one, that came later. */
static void made_younger(void)
{
    static const struct family_name names[] = {{"Old"}, {"Young", .since = 11549}, {0}};
    static const struct family old = {.name = "old", .hf = names},
                               young = {.name = "young", .since = 11292, .hf = names};
    const struct references build = {11292};
    for (size_t i = 0; i < 2; i++) {
        younger(&old, &names[i]);
        younger(&young, &names[i]);
    }
    CHECK(family_is_known(&young, &names[0], &build) && !family_is_known(&old, &names[1], &build));
}

int main(void)
{
    made_younger();
    all_younger(families);
    all_younger(projectors);
    ranges();
    parsing();
    rules();
    builds_of(families);
    builds_of(projectors);
    for (const struct pre_hash *hash = pre_hashes; hash->sha256 != NULL; hash++)
        CHECK_NAMED(is_in_table(hash->since), hash->name);
    return check_done();
}
