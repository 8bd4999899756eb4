/* Handlers that refuse a document, or run out of memory: the parser ends, and no handler is called after that. */
#include "text/xml_read.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "tests/unit/check.h"

#include <string.h>

struct seen {
    char names[64];
    const char *failure; /* what reading ends with */
};

static const char *begin(void *context, const char *name)
{
    struct seen *seen = context;
    strcat(strcat(seen->names, "<"), name);
    if (strcmp(name, "large") == 0)
        memory_exhausted(4711);
    return strcmp(name, "bad") == 0 ? "it is bad" : NULL;
}

static const char *end(void *context, const char *name)
{
    struct seen *seen = context;
    strcat(strcat(seen->names, ">"), name);
    return NULL;
}

static const struct xml_reader reader = {.begin = begin, .end = end};

static const char *failure_of(const char *text, struct seen *seen)
{
    *seen = (struct seen){0};
    return xml_read(text, strlen(text), &reader, seen);
}

static void read_large(void *context)
{
    static const char text[] = "<a><large/><b/></a>";
    struct seen *seen = context;
    seen->failure = xml_read(text, strlen(text), &reader, seen);
}

int main(void)
{
    struct seen seen = {0};
    struct error error;
    CHECK(failure_of("<a><b/>text</a>", &seen) == NULL);
    CHECK_TEXT(seen.names, "<a<b>b>a");
    CHECK_TEXT(failure_of("<a><bad/><b/></a>", &seen), "it is bad");
    CHECK_TEXT(seen.names, "<a<bad");
    CHECK_TEXT(failure_of("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", &seen), "it has a document type");
    CHECK(failure_of("<a>", &seen) != NULL && failure_of("", &seen) != NULL);
    CHECK_TEXT(failure_of("<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>", &seen),
               "its elements are nested too deeply");

    seen = (struct seen){.failure = "none yet"};
    CHECK(!attempt(read_large, &seen, &error));
    CHECK_TEXT(error.message, "out of memory (4711 bytes wanted)");
    CHECK_TEXT(seen.names, "<a<large");
    CHECK_TEXT(seen.failure, "none yet");
    return check_done();
}
