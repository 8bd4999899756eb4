#include "fs/cli/source_roots.h"

#include "base/text.h"
#include "fs/cli/sandbox_paths.h"
#include "fs/lib/library.h"
#include "sources/archive/location.h"
#include "sources/location_ollama.h"
#include "sources/paths.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Returns what must be open for a path without links: the repository of a hub cache whose snapshot the path is in, a
 * directory, or the folder of a file, unless that is the root directory. */
static const char *place_of(const char *path, struct arena *arena)
{
    const char *snapshots = strstr(path, "/snapshots/"), *slash = strrchr(path, '/');
    const char *end = snapshots != NULL ? snapshots : local_kind(path) == LOCATION_FILE ? slash : path + strlen(path);
    return end == path ? path : arena_strndup(arena, path, (size_t)(end - path));
}

/* Adds the place of a path and that of its target. Returns false if there is nothing. */
static bool add_path(struct path_list *roots, const char *path)
{
    const char *real = local_real_path(path, roots->arena), *slash = strrchr(path, '/');
    if (real == NULL)
        return false;
    path_list_add(roots, place_of(real, roots->arena));
    if (local_kind(path) != LOCATION_FILE)
        return true;
    const char *folder = slash == NULL ? "." : arena_strndup(roots->arena, path, (size_t)(slash - path));
    if (*folder != '\0' && (folder = local_real_path(folder, roots->arena)) != NULL)
        path_list_add(roots, place_of(folder, roots->arena));
    return true;
}

/* Adds what the links in a directory name, and those in its directories, `depth` deep. */
static void add_links(struct path_list *roots, const char *directory, unsigned depth)
{
    struct error unused;
    struct location_list list;
    struct location *location = location_open(directory, LOCATION_INSIDE, NULL, &unused);
    bool listed = location != NULL && location_list(location, "", roots->arena, &list, &unused);
    for (size_t i = 0; listed && i < list.count; i++) {
        const char *path = arena_printf(roots->arena, "%s/%s", directory, list.entries[i].name);
        if (list.entries[i].kind == LOCATION_LINK)
            add_path(roots, path);
        else if (list.entries[i].kind == LOCATION_FOLDER && depth > 0)
            add_links(roots, path, depth - 1);
    }
    location_close(location);
}

/* Adds what the name of a repository means, ORG/NAME or ORG/NAME@REVISION, if the hub cache has it. */
static void add_repository(struct path_list *roots, const char *name)
{
    const char *id = arena_strndup(roots->arena, name, strcspn(name, "@"));
    add_path(roots, hub_cache_folder(roots->arena, id));
}

static void add_text(struct path_list *roots, const char *text)
{
    size_t archive = archive_prefix(text);
    const char *store = ollama_store_of(text, roots->arena);
    if (archive > 0) {
        add_path(roots, arena_strndup(roots->arena, text, archive));
    } else if (store != NULL) {
        add_path(roots, store);
        add_links(roots, arena_printf(roots->arena, "%s/blobs", store), 0);
    } else if (strstr(text, "://") == NULL && !add_path(roots, text)) {
        add_repository(roots, text);
    }
}

/* Adds the values of a layout's parameters, "NAME=VALUE,...", to a list of texts. */
static size_t add_parameters(const char *parameters, const char **texts, size_t count, struct arena *arena)
{
    for (const char *at = parameters; *at != '\0'; at += *at == ',') {
        size_t name = strcspn(at, "=,"), length = strcspn(at, ",");
        if (at[name] == '=')
            texts[count++] = arena_strndup(arena, at + name + 1, length - name - 1);
        at += length;
    }
    return count;
}

const char *const *texts_of_value(const char *value, struct arena *arena)
{
    enum { WHOLE_AND_PARTS = 4 };
    const char *first = strchr(value, ':'), *last = strrchr(value, ':');
    size_t n_commas = 0, count = 0;
    for (const char *at = value; (at = strchr(at, ',')) != NULL; at++)
        n_commas++;
    const char **texts = arena_array(arena, n_commas + 1 + WHOLE_AND_PARTS, sizeof *texts);
    texts[count++] = value;
    if (first != NULL && strstr(value, "://") == NULL) {
        texts[count++] = arena_strndup(arena, value, (size_t)(first - value));
        texts[count++] = arena_strndup(arena, value, (size_t)(last - value));
        count = add_parameters(first + 1, texts, count, arena);
    }
    texts[count] = NULL;
    return texts;
}

static void add_value(struct path_list *roots, const char *value)
{
    for (const char *const *text = texts_of_value(value, roots->arena); *text != NULL; text++)
        add_text(roots, *text);
}

/* Adds the hub cache, and what links in it name. */
static void add_hub_cache(struct path_list *roots)
{
    const char *cache = hub_cache_directory(roots->arena);
    if (add_path(roots, cache))
        add_links(roots, cache, 0);
}

const char *const *hub_cache_roots(struct arena *arena)
{
    struct path_list roots = {.arena = arena};
    add_hub_cache(&roots);
    return path_list_end(&roots);
}

/* Adds where wfs finds files by names of its own. */
static void add_own_files(struct path_list *roots)
{
    for (const struct option_row *row = option_rows; row->name != NULL; row++)
        if (row->finds_in != NULL)
            for (const char *const *directory = row->finds_in(roots->arena); *directory != NULL; directory++)
                add_path(roots, *directory);
}

const char *const *source_roots(const char *const *sources, size_t n, bool is_library, const struct options *options,
                                struct arena *arena)
{
    enum { PUBLISHERS = 1 }; /* the depth of folders of models in a library */
    struct path_list roots = {.arena = arena};
    for (size_t i = 0; i < n; i++) {
        const char *id, *source = is_library ? library_split(sources[i], arena, &id) : sources[i];
        add_text(&roots, source);
        if (is_library && local_kind(source) == LOCATION_FOLDER)
            add_links(&roots, source, PUBLISHERS);
    }
    for (size_t i = 0; i < options->asked.count; i++) {
        const struct option_row *row = options->asked.items[i].row;
        if (row->names_input || row->finds_in != NULL)
            add_value(&roots, options->asked.items[i].value);
    }
    add_hub_cache(&roots);
    add_own_files(&roots);
    return path_list_end(&roots);
}

bool roots_are_at_top(const char *const *roots)
{
    for (; *roots != NULL; roots++)
        if (strrchr(*roots, '/') == *roots && local_kind(*roots) == LOCATION_FILE)
            return true;
    return false;
}

const int *source_descriptors(const char *const *sources, size_t n, struct arena *arena)
{
    static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};
    int *descriptors = arena_array(arena, n + 1, sizeof *descriptors);
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < sizeof directories / sizeof *directories; j++)
            if (text_starts_with(sources[i], directories[j]))
                descriptors[count++] = atoi(sources[i] + strlen(directories[j]));
    descriptors[count] = -1;
    return descriptors;
}

static bool names_server(const char *text, bool follows_links)
{
    return (strstr(text, "://") != NULL && !text_starts_with(text, "ollama://")) ||
           (follows_links && (text_ends_with(text, ".yaml") || text_ends_with(text, ".yml")));
}

bool sources_need_network(const char *const *sources, size_t n, const struct options *options)
{
    for (size_t i = 0; i < n; i++)
        if (names_server(sources[i], options->open.follow_links))
            return true;
    for (size_t i = 0; i < options->asked.count; i++) {
        const char *value = options->asked.items[i].value;
        if (value != NULL && names_server(value, options->open.follow_links))
            return true;
    }
    return false;
}

/* Ports. */

struct ports {
    struct arena *arena;
    uint16_t *numbers;
    size_t count;
};

static void add_port(struct ports *ports, unsigned long number)
{
    ports->numbers = arena_grow(ports->arena, ports->numbers, ports->count, sizeof *ports->numbers);
    ports->numbers[ports->count++] = number <= UINT16_MAX ? (uint16_t)number : 0;
}

/* Adds the port of each "HOST:PORT" in a text, after "://" if there is one. */
static void add_ports_in(struct ports *ports, const char *text)
{
    for (const char *from = strstr(text, "://") != NULL ? strstr(text, "://") + 3 : text; from != NULL;) {
        size_t length = strcspn(from, "/?#,");
        const char *colon = from + length;
        while (colon > from && *colon != ':')
            colon--;
        if (*colon == ':' && colon[1] >= '1' && colon[1] <= '9')
            add_port(ports, strtoul(colon + 1, NULL, 10));
        const char *next = strstr(from, "://");
        from = next != NULL ? next + 3 : NULL;
    }
}

static void add_environment(struct ports *ports)
{
    enum { SOCKS = 1080, SQUID = 3128 };
    static const char *const ends[] = {"_proxy", "_PROXY", "ENDPOINT", "ENDPOINT_URL", "ENDPOINT_URL_S3"};
    for (char **variable = environ; *variable != NULL; variable++) {
        size_t length = strcspn(*variable, "=");
        const char *name = arena_strndup(ports->arena, *variable, length);
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            if (text_ends_with(name, ends[i]) && (*variable)[length] == '=') {
                add_ports_in(ports, *variable + length + 1);
                add_port(ports, SOCKS);
                add_port(ports, SQUID);
            }
    }
}

const uint16_t *source_ports(const char *const *sources, size_t n, const struct options *options, struct arena *arena)
{
    enum { HTTPS = 443, HTTP = 80, DNS = 53 };
    struct ports ports = {.arena = arena};
    bool are_unknown = options->open.follow_links; /* a recipe names any */
    add_port(&ports, HTTPS);
    add_port(&ports, HTTP);
    add_port(&ports, DNS);
    add_environment(&ports);
    for (size_t i = 0; i < n; i++) {
        add_ports_in(&ports, sources[i]);
        are_unknown |= !location_names_all_ports(sources[i]);
    }
    for (size_t i = 0; i < options->asked.count; i++) {
        const char *value = options->asked.items[i].value != NULL ? options->asked.items[i].value : "";
        add_ports_in(&ports, value);
        are_unknown |= !location_names_all_ports(value);
    }
    add_port(&ports, 0);
    return are_unknown ? NULL : ports.numbers;
}
