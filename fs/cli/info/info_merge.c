#include "fs/cli/info/info_pages.h"

#include "base/text.h"
#include "fs/cli/progress.h"

#include <stdio.h>

bool append_merge(struct buffer *text, const struct checkpoint *checkpoint)
{
    char size[SIZE_TEXT];
    struct merge_profile merge;
    struct arena *arena = arena_new();
    const bool is_merge = profile_merge(&merge, checkpoint, false, arena);
    if (is_merge) {
        buffer_printf(text, "%s of %zu model%s (", merge.method, merge.n_models, merge.n_models == 1 ? "" : "s");
        for (size_t i = 0; i < merge.n_models; i++)
            buffer_printf(text, "%s%s", i > 0 ? ", " : "", merge.models[i]);
        buffer_printf(text, "), config.json of %s; %s are read for all tensors; %s", merge.config,
                      size_text(merge.n_bytes, size), merge.cost);
    }
    arena_free(arena);
    return is_merge;
}

void print_merge(const struct checkpoint *checkpoint)
{
    struct merge_profile merge;
    struct arena *arena = arena_new();
    const size_t n = profile_merge(&merge, checkpoint, true, arena) ? merge.n_tensors : 0;
    for (size_t i = 0; i < n; i++) {
        fputs(i > 0 ? "" : "\nMERGE\n", stdout);
        text_put(merge.tensors[i].name, stdout);
        fputs(" = ", stdout);
        text_put_n((const char *)merge.tensors[i].plan.bytes, merge.tensors[i].plan.length, stdout);
        putchar('\n');
    }
    arena_free(arena);
}
