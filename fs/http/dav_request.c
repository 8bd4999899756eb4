#include "fs/http/dav_request.h"

#include "text/xml_read.h"

#include <string.h>

enum { SEPARATOR = '\n' /* no name has it */, IN_ROOT = 1, IN_PROP = 2 };

struct reading {
    struct arena *arena;
    unsigned depth;
    bool is_in_prop;
    unsigned n_kinds; /* allprop, propname and prop, of which a request has one */
    struct dav_request request;
    struct dav_name names[DAV_MOST_PROPERTIES];
};

static struct dav_name name_of(const char *text, struct arena *arena)
{
    const char *separator = strrchr(text, SEPARATOR);
    if (separator == NULL)
        return (struct dav_name){"", arena_strdup(arena, text)};
    return (struct dav_name){arena_strndup(arena, text, (size_t)(separator - text)),
                             arena_strdup(arena, separator + 1)};
}

/* What else a request may have is passed over (RFC 4918, section 17); `include` names what allprop has, anyway. */
static void begin_kind(struct reading *reading, const struct dav_name *name)
{
    static const char *const kinds[] = {[DAV_ALL] = "allprop", [DAV_NAMES] = "propname", [DAV_NAMED] = "prop"};
    for (unsigned i = 0; strcmp(name->space, "DAV:") == 0 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(name->name, kinds[i]) == 0) {
            reading->request.kind = i;
            reading->is_in_prop = i == DAV_NAMED;
            reading->n_kinds++;
        }
}

static const char *begin_element(void *context, const char *text)
{
    struct reading *reading = context;
    struct dav_name name = name_of(text, reading->arena);
    bool is_property = reading->depth == IN_PROP && reading->is_in_prop;
    if (reading->depth == 0 && (strcmp(name.space, "DAV:") != 0 || strcmp(name.name, "propfind") != 0))
        return "its element is not propfind of the namespace DAV:";
    if (is_property && reading->request.n_names == DAV_MOST_PROPERTIES)
        return "it names more than 64 properties";
    if (reading->depth == IN_ROOT)
        begin_kind(reading, &name);
    if (is_property)
        reading->names[reading->request.n_names++] = name;
    reading->depth++;
    return NULL;
}

static const char *end_element(void *context, const char *name)
{
    struct reading *reading = context;
    if (--reading->depth == IN_ROOT)
        reading->is_in_prop = false;
    return NULL;
}

static const char *parse(struct reading *reading, const char *text, size_t length)
{
    static const struct xml_reader reader = {NULL, SEPARATOR, begin_element, end_element, NULL};
    const char *why = xml_read(text, length, &reader, reading);
    return why == NULL && reading->n_kinds != 1 ? "it has not one of allprop, propname and prop" : why;
}

bool dav_request_read(const char *text, size_t length, struct arena *arena, struct dav_request *ret_request,
                      struct error *error)
{
    struct reading reading = {.arena = arena};
    const char *why = length != 0 ? parse(&reading, text, length) : NULL;
    if (why != NULL)
        return error_set(error, "the body of the request cannot be read: %s", why);
    reading.request.names = arena_copy(arena, reading.names, reading.request.n_names * sizeof *reading.names);
    *ret_request = reading.request;
    return true;
}
