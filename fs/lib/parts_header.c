#include "fs/lib/parts.h"

#include "fs/lib/output.h"
#include "sources/paths.h"

#include <stdlib.h>
#include <string.h>

void parts_header_keep(const struct vfile *file, const char *path, struct parts_plan *plan)
{
    const struct span_header *header = &file->header;
    struct error unsaid;
    if (header->length == 0 || header->length > PARTS_MOST_HEADER)
        return;
    unsigned char *bytes = memory_alloc((size_t)header->length);
    bool kept = vfile_wait(file, 0, header->length, &unsaid) &&
                vfile_read(file, 0, (size_t)header->length, bytes, &unsaid) &&
                durable_write(path, bytes, (size_t)header->length, true) == 0;
    if (kept) {
        plan->header_bytes = header->length;
        sha256_hex(bytes, (size_t)header->length, plan->header);
        sha256_hex(bytes + header->table, (size_t)header->table_length, plan->table);
    }
    free(bytes);
}

static void close_source(void *context)
{
    source_close(context);
}

/* Reports whether the source begins with the header. */
static bool has_header(const struct source *source, const struct parts_plan *plan)
{
    struct error unsaid;
    char hash[SHA256_HEX + 1] = "";
    unsigned char *bytes = memory_alloc((size_t)plan->header_bytes);
    if (source_read(source, 0, (size_t)plan->header_bytes, bytes, &unsaid))
        sha256_hex(bytes, (size_t)plan->header_bytes, hash);
    free(bytes);
    return strcmp(hash, plan->header) == 0;
}

static struct source *open_header(const char *path, const struct parts_plan *plan, size_t number, struct arena *arena)
{
    struct error unsaid;
    struct source *source = local_open_file(path, path, &unsaid);
    if (source == NULL)
        return NULL;
    arena_on_free(arena, close_source, source);
    bool has_some = number == 1 || plan->ends[number - 2] < plan->header_bytes;
    bool is_good = source_size(source) == plan->header_bytes && (!has_some || has_header(source, plan));
    return is_good ? source : NULL;
}

static bool read_plan(const char *path, struct arena *arena, struct parts_plan *ret_plan)
{
    struct buffer text = {0};
    struct error unsaid;
    bool is_read = durable_read(path, PARTS_MOST_TEXT, &text) == 0 && parts_plan_read(&text, arena, ret_plan, &unsaid);
    buffer_free(&text);
    return is_read;
}

const struct kept_header *parts_header_find(const char *destination, const struct parts_plan *own, size_t number,
                                            struct arena *arena)
{
    struct parts_plan plan;
    if (!read_plan(arena_printf(arena, "%s" PARTS_SUFFIX "/plan", destination), arena, &plan) ||
        plan.n_parts != own->n_parts || strcmp(plan.path, own->path) != 0 || strcmp(plan.wfs, own->wfs) != 0 ||
        plan.header_bytes == 0 || plan.header_bytes > PARTS_MOST_HEADER)
        return NULL;
    const char *path = arena_printf(arena, "%s" PARTS_SUFFIX "/header", destination);
    struct source *source = open_header(path, &plan, number, arena);
    if (source == NULL)
        return NULL;
    const struct kept_header kept = {plan.path, {source, plan.header_bytes, arena_strdup(arena, plan.table)}};
    return arena_copy(arena, &kept, sizeof kept);
}
