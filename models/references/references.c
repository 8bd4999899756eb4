#include "models/references/references.h"

#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

enum { OLDEST = 10470, NEWEST = 11549 };

bool follows(const struct references *references, enum upstream_change change)
{
    return reference_build(references) >= change_rows[change].since;
}

bool follows_or_refuse(const struct references *references, enum upstream_change change, struct error *error)
{
    const struct change_row *row = &change_rows[change];
    return follows(references, change) || error_set(error, "llama.cpp b%u cannot convert this model; since b%u: %s",
                                                    reference_build(references), row->since, row->seen);
}

unsigned reference_build(const struct references *references)
{
    return references != NULL && references->llama_cpp != 0 ? references->llama_cpp : NEWEST;
}

static int by_absent(const void *a, const void *b)
{
    const struct change_row *x = a, *y = b;
    return (x->absent > y->absent) - (x->absent < y->absent);
}

size_t known_builds(struct build_range ranges[MOST_BUILD_RANGES])
{
    struct change_row rows[N_CHANGES];
    size_t n_ranges = 0;
    unsigned first = OLDEST;
    for (size_t i = 0; i < N_CHANGES; i++)
        rows[i] = change_rows[i];
    qsort(rows, N_CHANGES, sizeof *rows, by_absent);
    for (size_t i = 0; i < N_CHANGES; i++) {
        if (rows[i].absent >= first)
            ranges[n_ranges++] = (struct build_range){first, rows[i].absent};
        first = rows[i].since > first ? rows[i].since : first;
    }
    ranges[n_ranges++] = (struct build_range){first, NEWEST};
    return n_ranges;
}

static bool refuse(const char *text, const struct build_range *ranges, size_t n_ranges, struct error *error)
{
    struct buffer list = {0};
    for (size_t i = 0; i < n_ranges; i++) {
        buffer_printf(&list, "%sb%u", i > 0 ? ", " : "", ranges[i].first);
        if (ranges[i].last > ranges[i].first)
            buffer_printf(&list, "-b%u", ranges[i].last);
    }
    error_set(error, "the build '%.32s' is unknown; known are %.*s", text, (int)list.length, (const char *)list.bytes);
    buffer_free(&list);
    return false;
}

bool reference_parse(const char *text, struct references *ret_references, struct error *error)
{
    struct build_range ranges[MOST_BUILD_RANGES];
    size_t n_ranges = known_builds(ranges);
    char *end;
    unsigned long build = text[0] == 'b' && text[1] >= '1' && text[1] <= '9' ? strtoul(text + 1, &end, 10) : 0;
    for (size_t i = 0; build != 0 && *end == '\0' && i < n_ranges; i++)
        if (build >= ranges[i].first && build <= ranges[i].last) {
            ret_references->llama_cpp = (unsigned)build;
            return true;
        }
    return refuse(text, ranges, n_ranges, error);
}

static const struct reference_tool *find_tool(const char *name)
{
    const struct reference_tool *tool = reference_tools;
    while (tool->name != NULL && strcmp(tool->name, name) != 0)
        tool++;
    return tool;
}

static bool has_path(const struct reference_tool *tool, const char *path)
{
    size_t length;
    for (const char *word = tool->paths; word != NULL && *word != '\0'; word += length + (word[length] == ' ')) {
        length = strcspn(word, " ");
        if (strncmp(word, path, length) == 0 && (word[length - 1] == '/' || path[length] == '\0'))
            return true;
    }
    return false;
}

const struct reference_tool *reference_of_path(const char *path, bool is_diffusion)
{
    const struct reference_tool *tool = reference_tools;
    while (tool->name != NULL && !has_path(tool, path))
        tool++;
    if (tool == reference_tools && is_diffusion)
        return find_tool("ComfyUI-GGUF");
    return tool->name != NULL ? tool : NULL;
}

const char *reference_version(const struct reference_tool *tool, const struct references *references,
                              struct arena *arena)
{
    return tool == reference_tools ? arena_printf(arena, "b%u", reference_build(references)) : tool->version;
}
