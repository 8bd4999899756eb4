#include "models/references/references.h"

#include <stdlib.h>

enum { OLDEST = 10470, NEWEST = 11549 };

bool follows(const struct references *references, enum upstream_change change)
{
    return reference_build(references) >= change_rows[change].since;
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

void references_append(struct buffer *out, const struct references *references)
{
    buffer_printf(out, "%s=b%u", reference_tools[0].name, reference_build(references));
    for (const struct reference_tool *tool = &reference_tools[1]; tool->name != NULL; tool++)
        buffer_printf(out, " %s=%s", tool->name, tool->version);
}
