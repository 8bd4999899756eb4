#include "fs/tree/inventory.h"

#include <stdio.h>
#include <string.h>

void put_sources(struct json_writer *writer, const struct checkpoint *checkpoint)
{
    json_put_template(writer, "\n'sources': [");
    for (size_t i = 0; i < checkpoint->n_sources; i++) {
        const struct source *source = checkpoint->sources[i];
        struct source_server server;
        if (source_server(source, &server))
            json_put_template(writer, "{'name': %s, 'size': %u, 'url': %s, 'revision': %s}", source_name(source),
                              source_size(source), server.url, server.revision);
        else
            json_put_template(writer, "{'name': %s, 'size': %u}", source_name(source), source_size(source));
    }
    json_end(writer);
}

void put_references(struct json_writer *writer, const struct references *references)
{
    struct arena *arena = arena_new();
    json_break_line(writer);
    json_begin_object(writer, "references");
    for (const struct reference_tool *tool = reference_tools; tool->name != NULL; tool++)
        json_put_text(writer, tool->name, reference_version(tool, references, arena));
    json_end(writer);
    arena_free(arena);
}

struct file_list {
    struct tree *tree;
    struct json_writer *writer;
    bool fills;
    char path[4096];
};

static bool put_file(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct file_list *list = context;
    size_t length = strlen(list->path);
    if (attributes->branch || (attributes->deferred && !list->fills) || (length == 0 && strcmp(name, "tensors") == 0))
        return true;
    snprintf(list->path + length, sizeof list->path - length, "%s%s", length ? "/" : "", name);
    if (attributes->directory)
        tree_list(list->tree, attributes->id, 0, put_file, list);
    else
        json_put_template(list->writer, "\n{'path': %s, 'size': %u}", list->path, attributes->size);
    list->path[length] = '\0';
    return true;
}

void put_files(struct json_writer *writer, struct tree *tree, bool fills)
{
    struct file_list list = {.tree = tree, .writer = writer, .fills = fills};
    json_put_template(writer, "\n'files': [");
    tree_list(tree, TREE_ROOT, 0, put_file, &list);
    json_end(writer);
}
