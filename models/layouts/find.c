#include "models/layouts/layout_file.h"

#include "base/system.h"
#include "base/text.h"
#include "sources/paths.h"

#include <string.h>

/* The directories of layouts, from the program's own: installed, and in the build directory. */
static const char *const places[] = {"../share/wfs/layouts", "models/layouts"};
enum { N_PLACES = sizeof places / sizeof *places };

/* Returns the path of a directory of layouts; NULL: the program's own path is unknown. */
static const char *place_at(size_t i, struct arena *arena)
{
    char program[PATH_MAX];
    if (!system_program_path(program))
        return NULL;
    return arena_printf(arena, "%.*s/%s", (int)(strrchr(program, '/') - program), program, places[i]);
}

const char *const *layout_directories(struct arena *arena)
{
    const char **directories = arena_array(arena, N_PLACES + 1, sizeof *directories);
    size_t count = 0;
    for (size_t i = 0; i < N_PLACES; i++)
        if ((directories[count] = place_at(i, arena)) != NULL)
            count++;
    directories[count] = NULL;
    return directories;
}

static const char *installed_path(const char *name, struct arena *arena)
{
    for (size_t i = 0; i < N_PLACES; i++) {
        const char *place = place_at(i, arena);
        const char *path = place != NULL ? arena_printf(arena, "%s/%s.json", place, name) : NULL;
        if (path != NULL && local_kind(path) == LOCATION_FILE)
            return path;
    }
    return NULL;
}

static const char *base_name(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    return arena_strndup(arena, base, strlen(base) - (text_ends_with(base, ".json") ? strlen(".json") : 0));
}

const char *const *layout_names(struct arena *arena)
{
    struct error unused;
    const char **layouts = arena_array(arena, 1, sizeof *layouts);
    struct location_list list;
    size_t n_layouts = 0;
    for (size_t i = 0; i < N_PLACES && n_layouts == 0; i++) {
        const char *place = place_at(i, arena);
        struct location *location = place != NULL ? location_open(place, LOCATION_INSIDE, NULL, &unused) : NULL;
        if (location != NULL && location_list(location, "", arena, &list, &unused)) {
            layouts = arena_array(arena, list.count + 1, sizeof *layouts);
            for (size_t j = 0; j < list.count; j++)
                if (text_ends_with(list.entries[j].name, ".json"))
                    layouts[n_layouts++] = base_name(list.entries[j].name, arena);
        }
        location_close(location);
    }
    layouts[n_layouts] = NULL;
    return layouts;
}

static bool refuse_name(const char *name, struct arena *arena, struct error *error)
{
    struct text_guess guess = {.typed = name};
    char question[TEXT_QUESTION];
    const char *known = "";
    for (const char *const *layout = layout_names(arena); *layout != NULL; layout++) {
        text_guess_try(&guess, *layout);
        known = arena_printf(arena, "%s%s%s", known, *known != '\0' ? ", " : " (known: ", *layout);
    }
    return error_set(error, "there is no layout '%.100s'%s%s%s", name, known, *known != '\0' ? ")" : "",
                     text_guess_question(&guess, question));
}

bool layout_find(const char *text, struct arena *arena, struct layout_request *ret_request, struct error *error)
{
    const char *colon = strchr(text, ':');
    const char *given = arena_strndup(arena, text, colon != NULL ? (size_t)(colon - text) : strlen(text));
    bool is_path = strchr(given, '/') != NULL || text_ends_with(given, ".json");
    const char *path = is_path ? given : installed_path(given, arena), *name = base_name(given, arena);
    if (path == NULL)
        return refuse_name(given, arena, error);
    if (*name == '\0' || *name == '.')
        return error_set(error, "'%.200s' names no layout file", given);
    struct source *source = location_open_file(path, error);
    if (source == NULL)
        return false;
    ret_request->file = layout_file_read(source, name, arena, error);
    ret_request->parameters = colon != NULL ? arena_strdup(arena, colon + 1) : NULL;
    source_close(source);
    return ret_request->file != NULL;
}
