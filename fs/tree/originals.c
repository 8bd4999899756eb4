#include "fs/library/library.h"

#include "fs/tree/content.h"
#include "fs/tree/content_options.h"

#include <string.h>

/* The files of a member, as the tree shows them. */
struct shown_member {
    struct archive *archive; /* held by the tree */
    size_t member;
    const struct files *files;
    struct shown_entry *entries;
};

struct shown_entry {
    const struct shown_member *owner;
    size_t index;
    struct original original;
    struct source *source; /* made by the first plan */
    node_id node;          /* of a folder */
};

/* Opens the file's source. One that cannot be opened is shown all the same: its reads fail with the reason. */
static struct source *open_source(const struct shown_entry *entry, struct arena *arena)
{
    const struct shown_member *owner = entry->owner;
    const struct files_entry *file = &owner->files->entries[entry->index];
    const char *name = arena_printf(arena, "%s%s%s", archive_member(owner->archive, owner->member)->name,
                                    *file->path != '\0' ? "/" : "", file->path);
    struct source_identity identity;
    struct error error;
    struct source *source = archive_source(owner->archive, owner->member, entry->index, name, &error);
    if (source != NULL)
        return source;
    archive_identify(owner->archive, owner->member, file, &identity);
    return source_unopened(&identity, name, error.message);
}

static enum outcome plan(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct shown_entry *entry = context;
    if (entry->source == NULL)
        entry->source = open_source(entry, arena);
    *ret_file = vfile_of_source(arena, entry->source, (struct origin){.sources = &entry->source, .n_sources = 1});
    return OK;
}

static void close_sources(void *context)
{
    struct shown_member *shown = context;
    for (size_t i = 0; i < shown->files->n_entries; i++)
        source_close(shown->entries[i].source);
    archive_drop(shown->archive);
}

static bool add_entry(struct tree *tree, struct shown_entry *entry, node_id parent, const char *name)
{
    bool is_file = entry->owner->files->entries[entry->index].kind == FILES_FILE;
    entry->node = tree_add_original(tree, parent, name, &entry->original, is_file ? plan : NULL, entry);
    return entry->node != 0;
}

/* Returns the number of the folder that holds an entry: parents come first in the list. */
static node_id folder_of(const struct shown_member *shown, const char *path)
{
    const char *slash = strrchr(path, '/');
    bool found;
    size_t index = files_find(shown->files, path, slash != NULL ? (size_t)(slash - path) : 0, &found);
    return shown->entries[index].node;
}

static bool add_member(struct tree *tree, node_id top, struct archive *archive, size_t member, struct error *error)
{
    struct arena *arena = tree_arena(tree);
    const struct files *files = archive_files(archive, member, error);
    const char *name = archive_member(archive, member)->name;
    if (files == NULL)
        return false;
    struct shown_member *shown = arena_alloc(arena, sizeof *shown);
    *shown = (struct shown_member){archive_hold(archive), member, files,
                                   arena_array(arena, files->n_entries, sizeof *shown->entries)};
    tree_on_free(tree, close_sources, shown);
    for (size_t i = 0; i < files->n_entries; i++) {
        const struct files_entry *entry = &files->entries[i];
        const char *slash = strrchr(entry->path, '/');
        shown->entries[i] = (struct shown_entry){
            .owner = shown,
            .index = i,
            .original = {entry->mode, {.tv_sec = (time_t)entry->seconds, .tv_nsec = entry->nanoseconds}, entry->target},
        };
        if (!add_entry(tree, &shown->entries[i], i == 0 ? top : folder_of(shown, entry->path),
                       i == 0          ? name
                       : slash != NULL ? slash + 1
                                       : entry->path))
            return error_set(error, "files/%s/%s: more files than a tree can hold", name, entry->path);
    }
    return true;
}

bool archive_files_add(struct tree *tree, struct archive *archive, size_t member, struct error *error)
{
    node_id top = tree_add_directory(tree, TREE_ROOT, "files");
    if (top == 0)
        return error_set(error, "the files of the archive are hidden by another file of the name 'files'");
    for (size_t i = 0; i < archive_count(archive); i++)
        if ((member == SIZE_MAX || member == i) && !add_member(tree, top, archive, i, error))
            return false;
    return true;
}

/* Shows the files of the source in an archive that a model was opened from. */
static bool add(struct tree *tree, struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct error reason;
    size_t member;
    struct archive *archive = checkpoint->n_sources > 0 ? archive_of_source(checkpoint->sources[0], &member) : NULL;
    bool is_alone = tree_options(tree)->name_in_library == NULL;
    if (archive != NULL && is_alone && !archive_files_add(tree, archive, member, &reason))
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "no files/: %s", reason.message);
    return true;
}

const struct content archive_files_content = {
    .name = "files",
    .summary = "files/NAME/...: the files of an archive, as they were before wfs pack",
    .of_parts = true,
    .add = add,
};
