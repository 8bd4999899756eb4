#include "fs/http/index.h"

#include "base/arena.h"
#include "base/text.h"

#include <string.h>

bool index_has(const struct repository *repository)
{
    return repository->is_listed && !repository_is_empty(repository);
}

static size_t list_models(const struct repositories *repositories, const char *owner, index_found *found, void *context)
{
    size_t length = strlen(owner), n_found = 0;
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *repository = &repositories->items[i];
        if (strncmp(repository->id, owner, length) != 0 || repository->id[length] != '/' || !index_has(repository))
            continue;
        found(context, &(struct index_entry){repository->id + length + 1, repository, NULL});
        n_found++;
    }
    return n_found;
}

static size_t list_owners(const struct repositories *repositories, index_found *found, void *context)
{
    struct arena *arena = arena_new();
    size_t n_found = 0;
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *repository = &repositories->items[i];
        if (!index_has(repository) || !repository_is_first_of_owner(repositories, i, index_has))
            continue;
        const char *owner = arena_strndup(arena, repository->id, strcspn(repository->id, "/"));
        found(context, &(struct index_entry){owner, repository, NULL});
        n_found++;
    }
    arena_free(arena);
    return n_found;
}

/* `directory` is "" or has a slash at its end. Files are sorted, so those of a directory below it are side by side. */
static size_t list_files(const struct repository *repository, const char *directory, index_found *found, void *context)
{
    struct arena *arena = arena_new();
    struct repository_files files = repository_files(repository);
    const char *last = "";
    size_t n_found = 0;
    for (size_t i = 0; i < files.count; i++) {
        if (!text_starts_with(files.items[i].name, directory))
            continue;
        const char *rest = files.items[i].name + strlen(directory);
        size_t length = strcspn(rest, "/");
        bool is_file = rest[length] == '\0';
        if (!is_file && strlen(last) == length && strncmp(rest, last, length) == 0)
            continue;
        last = arena_strndup(arena, rest, length);
        found(context, &(struct index_entry){last, repository, is_file ? &files.items[i] : NULL});
        n_found++;
    }
    arena_free(arena);
    return n_found;
}

size_t index_list(const struct repositories *repositories, const char *place, const char *path, index_found *found,
                  void *context)
{
    if (*place == '\0')
        return list_owners(repositories, found, context);
    if (strchr(place, '/') == NULL)
        return list_models(repositories, place, found, context);
    const struct repository *repository = repository_find(repositories, place);
    if (repository == NULL)
        return 0;
    struct arena *arena = arena_new();
    const char *directory = *path != '\0' ? arena_printf(arena, "%s/", path) : "";
    size_t n_found = list_files(repository, directory, found, context);
    arena_free(arena);
    return n_found;
}
