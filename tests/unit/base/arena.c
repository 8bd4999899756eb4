/* What an arena releases besides its memory. */
#include "base/arena.h"

#include "tests/unit/check.h"

#include <string.h>

static char order[8];

static void note(void *context)
{
    strncat(order, context, 1);
}

int main(void)
{
    struct arena *arena = arena_new();
    arena_on_free(arena, note, arena_strdup(arena, "a"));
    memset(arena_alloc(arena, 1 << 20), 1, 1 << 20);
    arena_on_free(arena, note, arena_strdup(arena, "b"));
    CHECK_TEXT(order, "");
    arena_free(arena);
    CHECK_TEXT(order, "ba");
    arena_free(NULL);
    return check_done();
}
