#include "fs/tree/inventory.h"

#include <stdio.h>
#include <string.h>

void put_sources(struct json_writer *writer, const struct checkpoint *checkpoint)
{
    json_break_line(writer);
    json_begin_array(writer, "sources");
    for (size_t i = 0; i < checkpoint->n_sources; i++) {
        json_begin_object(writer, NULL);
        json_put_text(writer, "name", source_name(checkpoint->sources[i]));
        json_put_number(writer, "size", source_size(checkpoint->sources[i]));
        json_end(writer);
    }
    json_end(writer);
}

struct file_list {
    struct tree *tree;
    struct json_writer *writer;
    char path[4096];
};

static bool put_file(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct file_list *list = context;
    size_t length = strlen(list->path);
    if (attributes->branch || (length == 0 && strcmp(name, "tensors") == 0))
        return true;
    snprintf(list->path + length, sizeof list->path - length, "%s%s", length ? "/" : "", name);
    if (attributes->directory) {
        tree_list(list->tree, attributes->id, 0, put_file, list);
    } else {
        json_break_line(list->writer);
        json_begin_object(list->writer, NULL);
        json_put_text(list->writer, "path", list->path);
        json_put_number(list->writer, "size", attributes->size);
        json_end(list->writer);
    }
    list->path[length] = '\0';
    return true;
}

void put_files(struct json_writer *writer, struct tree *tree)
{
    struct file_list list = {.tree = tree, .writer = writer};
    json_break_line(writer);
    json_begin_array(writer, "files");
    tree_list(tree, TREE_ROOT, 0, put_file, &list);
    json_end(writer);
}
