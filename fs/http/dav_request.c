#include "fs/http/dav_request.h"

#include <expat.h>
#include <string.h>

enum { SEPARATOR = '\n' /* no name has it */, MOST_DEPTH = 16, IN_ROOT = 1, IN_PROP = 2 };

struct reading {
    XML_Parser parser;
    struct arena *arena;
    unsigned depth;
    bool is_in_prop;
    unsigned n_kinds; /* allprop, propname and prop, of which a request has one */
    struct dav_request request;
    struct dav_name names[DAV_MOST_PROPERTIES];
    const char *failure;
};

static void fail(struct reading *reading, const char *why)
{
    if (reading->failure == NULL)
        reading->failure = why;
    XML_StopParser(reading->parser, XML_FALSE);
}

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

static void begin_element(void *context, const XML_Char *text, const XML_Char **attributes)
{
    struct reading *reading = context;
    struct dav_name name = name_of(text, reading->arena);
    if (reading->depth == MOST_DEPTH)
        fail(reading, "its elements are nested too deeply");
    else if (reading->depth == 0 && (strcmp(name.space, "DAV:") != 0 || strcmp(name.name, "propfind") != 0))
        fail(reading, "its element is not propfind of the namespace DAV:");
    else if (reading->depth == IN_ROOT)
        begin_kind(reading, &name);
    else if (reading->depth == IN_PROP && reading->is_in_prop && reading->request.n_names == DAV_MOST_PROPERTIES)
        fail(reading, "it names more than 64 properties");
    else if (reading->depth == IN_PROP && reading->is_in_prop)
        reading->names[reading->request.n_names++] = name;
    reading->depth++;
}

static void end_element(void *context, const XML_Char *name)
{
    struct reading *reading = context;
    if (--reading->depth == IN_ROOT)
        reading->is_in_prop = false;
}

static void refuse_document_type(void *context, const XML_Char *name, const XML_Char *system_id,
                                 const XML_Char *public_id, int has_internal_subset)
{
    fail(context, "it has a document type");
}

static void parse(struct reading *reading, const char *text, size_t length)
{
    reading->parser = XML_ParserCreateNS(NULL, SEPARATOR);
    if (reading->parser == NULL) {
        reading->failure = "there is no memory to read it";
        return;
    }
    XML_SetUserData(reading->parser, reading);
    XML_SetElementHandler(reading->parser, begin_element, end_element);
    XML_SetStartDoctypeDeclHandler(reading->parser, refuse_document_type);
    if (XML_Parse(reading->parser, text, (int)length, XML_TRUE) != XML_STATUS_OK && reading->failure == NULL)
        reading->failure = XML_ErrorString(XML_GetErrorCode(reading->parser));
    XML_ParserFree(reading->parser);
}

bool dav_request_read(const char *text, size_t length, struct arena *arena, struct dav_request *ret_request,
                      struct error *error)
{
    struct reading reading = {.arena = arena};
    if (length != 0)
        parse(&reading, text, length);
    if (length != 0 && reading.failure == NULL && reading.n_kinds != 1)
        reading.failure = "it has not one of allprop, propname and prop";
    if (reading.failure != NULL)
        return error_set(error, "the body of the request cannot be read: %s", reading.failure);
    reading.request.names = arena_copy(arena, reading.names, reading.request.n_names * sizeof *reading.names);
    *ret_request = reading.request;
    return true;
}
