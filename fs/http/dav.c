/* WebDAV, class 1, for reading: what file managers and file systems mount. Each address of an index page is a
 * collection, and the files are those that the page has.
 *
 * Answers OPTIONS, and PROPFIND of the depths 0 and 1; GET is that of the pages and files (page.c). There are no locks,
 * so clients mount read-only. A list of a model plans its files, as its page does: sizes are exact. href is escaped,
 * and there is no displayname, since XML cannot have all the characters of a file's name.
 *
 * Source: RFC 4918. */
#include "fs/http/dav_request.h"
#include "fs/http/file_answer.h"
#include "fs/http/index.h"
#include "fs/http/protocols.h"
#include "fs/http/xml.h"

#include "base/encodings.h"

#include <inttypes.h>
#include <string.h>

/* A file or a collection. */
struct resource {
    const char *href;
    const struct repository_file *file; /* NULL: a collection */
    uint64_t size;
    const char *etag;
    time_t modified;
};

enum property { RESOURCE_TYPE, LAST_MODIFIED, CONTENT_LENGTH, CONTENT_TYPE, ETAG, N_PROPERTIES };

static const char *const properties[N_PROPERTIES] = {
    [RESOURCE_TYPE] = "resourcetype",
    [LAST_MODIFIED] = "getlastmodified",
    [CONTENT_LENGTH] = "getcontentlength",
    [CONTENT_TYPE] = "getcontenttype",
    [ETAG] = "getetag",
};

/* An answer to PROPFIND while it is written. */
struct listing {
    const struct dav_request *request;
    bool is_asked[N_PROPERTIES];
    struct buffer unknown; /* the elements of the properties that are asked for and that nothing here has */
    struct buffer *out;
    const char *directory; /* the href of the collection whose entries are listed */
    struct arena *arena;
};

bool dav_is_asked(const struct http_request *request, const struct route *route)
{
    return (strcmp(request->method, "OPTIONS") == 0 || strcmp(request->method, "PROPFIND") == 0) &&
           (route->kind == ROUTE_PAGE || route->kind == ROUTE_OWNER || route->kind == ROUTE_PATH);
}

/* Returns the value of a property as XML, in the arena; NULL if the resource has none. */
static const char *value_of(const struct resource *resource, enum property property, struct arena *arena)
{
    char date[HTTP_DATE];
    if (property == RESOURCE_TYPE)
        return resource->file == NULL ? "<D:collection/>" : "";
    if (property == LAST_MODIFIED)
        return http_date(resource->modified, date) ? arena_strdup(arena, date) : NULL;
    if (resource->file == NULL)
        return NULL;
    if (property == CONTENT_LENGTH)
        return arena_printf(arena, "%" PRIu64, resource->size);
    return property == ETAG ? resource->etag : file_content_type(resource->file->name);
}

static void put_status(struct buffer *out, const char *status)
{
    buffer_printf(out, "</D:prop><D:status>HTTP/1.1 %s</D:status></D:propstat>", status);
}

static void put_resource(struct listing *listing, const struct resource *resource)
{
    static const char begin[] = "<D:propstat><D:prop>";
    struct buffer *out = listing->out, lacking = {0};
    buffer_printf(out, "<D:response><D:href>%s</D:href>%s", resource->href, begin);
    for (enum property i = 0; i < N_PROPERTIES; i++) {
        const char *value = listing->is_asked[i] ? value_of(resource, i, listing->arena) : NULL;
        if (value != NULL && (*value == '\0' || listing->request->kind == DAV_NAMES))
            buffer_printf(out, "<D:%s/>", properties[i]);
        else if (value != NULL)
            buffer_printf(out, "<D:%s>%s</D:%s>", properties[i], value, properties[i]);
        else if (listing->request->kind == DAV_NAMED && listing->is_asked[i])
            buffer_printf(&lacking, "<D:%s/>", properties[i]);
    }
    put_status(out, "200 OK");
    buffer_append(&lacking, listing->unknown.bytes, listing->unknown.length);
    if (lacking.length != 0) {
        buffer_append_text(out, begin);
        buffer_append(out, lacking.bytes, lacking.length);
        put_status(out, "404 Not Found");
    }
    buffer_append_text(out, "</D:response>\n");
    buffer_free(&lacking);
}

/* Puts a file, unless it turns out to be absent. */
static void put_file(struct listing *listing, const char *href, const struct repository *repository,
                     const struct repository_file *file)
{
    struct resource resource = {.href = href, .file = file};
    struct node_attributes attributes;
    char identity[ETAG_TEXT];
    if (!repository_plan(repository, file->node, &resource.size, identity) ||
        !tree_attributes(repository->tree, file->node, &attributes))
        return;
    resource.etag = file_etag(identity, S3_TAG_ENDING, listing->arena);
    resource.modified = attributes.mtime.tv_sec;
    put_resource(listing, &resource);
}

static void put_entry(void *context, const struct index_entry *entry)
{
    struct listing *listing = context;
    const char *slash = entry->file == NULL ? "/" : "";
    const char *href = arena_printf(listing->arena, "%s%s%s", listing->directory,
                                    percent_encode(entry->name, "", listing->arena), slash);
    if (entry->file != NULL)
        put_file(listing, href, entry->repository, entry->file);
    else
        put_resource(listing, &(struct resource){.href = href, .modified = entry->repository->modified.tv_sec});
}

static void take_modified(void *modified, const struct index_entry *entry)
{
    *(time_t *)modified = entry->repository->modified.tv_sec;
}

static void begin_listing(struct listing *listing)
{
    for (size_t i = 0; i < N_PROPERTIES; i++)
        listing->is_asked[i] = listing->request->kind != DAV_NAMED;
    for (size_t i = 0; i < listing->request->n_names; i++) {
        const struct dav_name *name = &listing->request->names[i];
        size_t known = strcmp(name->space, "DAV:") == 0 ? 0 : N_PROPERTIES;
        while (known < N_PROPERTIES && strcmp(properties[known], name->name) != 0)
            known++;
        if (known < N_PROPERTIES) {
            listing->is_asked[known] = true;
            continue;
        }
        buffer_printf(&listing->unknown, "<%s xmlns=\"", name->name);
        xml_put_text(&listing->unknown, name->space, strlen(name->space));
        buffer_append_text(&listing->unknown, "\"/>");
    }
}

/* Refuses to list a collection with all that is below it. A missing depth asks for that, too. */
static void refuse_depth(struct answer *answer)
{
    answer->status = 403;
    answer_header(answer, "Content-Type", "application/xml");
    xml_put_declaration(&answer->text);
    buffer_append_text(&answer->text, "<D:error xmlns:D=\"DAV:\"><D:propfind-finite-depth/></D:error>\n");
}

/* Returns the file that a route names; NULL if it is none. */
static const struct repository_file *file_of(const struct repositories *repositories, const struct route *route,
                                             const struct repository **ret_repository)
{
    *ret_repository = repository_find(repositories, route->repository);
    return *ret_repository != NULL && !route->is_directory ? repository_file(*ret_repository, route->path) : NULL;
}

static void begin_multistatus(struct answer *answer)
{
    answer->status = 207;
    answer_header(answer, "Content-Type", "application/xml");
    xml_put_declaration(&answer->text);
    buffer_append_text(&answer->text, "<D:multistatus xmlns:D=\"DAV:\">\n");
}

static void answer_file(struct listing *listing, const struct repository *repository,
                        const struct repository_file *file, const char *href, struct answer *answer)
{
    begin_multistatus(answer);
    size_t n_before = answer->text.length;
    put_file(listing, href, repository, file);
    if (answer->text.length == n_before)
        answer_fail(answer, 404, "EntryNotFound", "%s has no file '%s': %s", repository->id, file->name,
                    repository_refusal_of(repository, file, answer->arena));
}

static void answer_collection(struct listing *listing, const struct repositories *repositories,
                              const struct route *route, const char *depth, struct answer *answer)
{
    time_t modified = 0;
    bool has_entries = depth != NULL && strcmp(depth, "1") == 0;
    if (index_list(repositories, route->repository, route->path, take_modified, &modified) == 0 &&
        *route->repository != '\0') {
        answer_fail(answer, 404, "EntryNotFound", "not found; the index at / lists all models");
    } else if (!has_entries && (depth == NULL || strcmp(depth, "0") != 0)) {
        refuse_depth(answer);
    } else {
        begin_multistatus(answer);
        put_resource(listing, &(struct resource){.href = listing->directory, .modified = modified});
        if (has_entries)
            index_list(repositories, route->repository, route->path, put_entry, listing);
    }
}

static void answer_propfind(const struct repositories *repositories, const struct dav_request *asked,
                            const struct route *route, const char *depth, struct answer *answer)
{
    struct arena *arena = answer->arena;
    struct listing listing = {.request = asked, .out = &answer->text, .arena = arena};
    const char *path = arena_printf(arena, "/%s%s%s", route->repository, *route->path != '\0' ? "/" : "", route->path),
               *href = percent_encode(path, "/", arena);
    const struct repository *repository;
    const struct repository_file *file = file_of(repositories, route, &repository);
    begin_listing(&listing);
    listing.directory = *route->repository != '\0' ? arena_printf(arena, "%s/", href) : href;
    if (file != NULL)
        answer_file(&listing, repository, file, href, answer);
    else
        answer_collection(&listing, repositories, route, depth, answer);
    if (answer->status == 207)
        buffer_append_text(&answer->text, "</D:multistatus>\n");
    buffer_free(&listing.unknown);
}

void dav_answer(const struct served *served, const struct http_request *request, const struct route *route,
                struct answer *answer)
{
    struct dav_request asked;
    struct error error;
    if (strcmp(request->method, "OPTIONS") == 0) {
        answer_header(answer, "DAV", "1");
        answer_header(answer, "MS-Author-Via", "DAV"); /* Windows looks for it */
        answer_header(answer, "Allow", DAV_METHODS);
    } else if (request->body_length > REQUEST_MOST_BODY) {
        answer_fail(answer, 413, NULL, "the body of the request has more than %d bytes", REQUEST_MOST_BODY);
    } else if (!dav_request_read(request->body, request->body_length, answer->arena, &asked, &error)) {
        answer_fail(answer, 400, NULL, "%s", error.message);
    } else {
        answer_propfind(served->repositories, &asked, route, request_header(request, "Depth"), answer);
    }
}
