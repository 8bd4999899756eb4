#include "text/xml_read.h"

#include "base/arena.h"
#include "base/attempt.h"

#include <expat.h>
#include <limits.h>

struct reading {
    XML_Parser parser;
    const struct xml_reader *reader;
    void *context; /* of the handlers */
    unsigned depth;
    size_t lacking; /* bytes that a handler could not allocate */
    const char *failure;
};

static void fail(struct reading *reading, const char *why)
{
    if (reading->failure == NULL)
        reading->failure = why;
    XML_StopParser(reading->parser, XML_FALSE);
}

/* What the parser found, and what a handler says of it. */
struct piece {
    const struct reading *reading;
    const char *(*handle_name)(void *context, const char *name);
    const char *text;
    size_t length;
    const char *failure;
};

static void handle(void *context)
{
    struct piece *piece = context;
    const struct reading *reading = piece->reading;
    piece->failure = piece->handle_name != NULL ? piece->handle_name(reading->context, piece->text)
                                                : reading->reader->text(reading->context, piece->text, piece->length);
}

/* An attempt of its own, so that none ends within the parser, which would never be freed. */
static void pass(struct reading *reading, struct piece piece)
{
    if (reading->failure != NULL)
        return;
    reading->lacking = attempt_lacking(handle, &piece);
    if (reading->lacking > 0)
        piece.failure = "there is no memory to read it";
    if (piece.failure != NULL)
        fail(reading, piece.failure);
}

static void begin_element(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct reading *reading = context;
    if (reading->depth++ == XML_MOST_DEPTH)
        fail(reading, "its elements are nested too deeply");
    else
        pass(reading, (struct piece){reading, reading->reader->begin, name, 0, NULL});
}

static void end_element(void *context, const XML_Char *name)
{
    struct reading *reading = context;
    reading->depth--;
    pass(reading, (struct piece){reading, reading->reader->end, name, 0, NULL});
}

static void take_text(void *context, const XML_Char *text, int length)
{
    pass(context, (struct piece){context, NULL, text, (size_t)length, NULL});
}

static void refuse_document_type(void *context, const XML_Char *name, const XML_Char *system_id,
                                 const XML_Char *public_id, int has_internal_subset)
{
    fail(context, "it has a document type");
}

const char *xml_read(const char *text, size_t length, const struct xml_reader *reader, void *context)
{
    struct reading reading = {.reader = reader, .context = context};
    reading.parser = reader->separator != '\0' ? XML_ParserCreateNS(reader->encoding, reader->separator)
                                               : XML_ParserCreate(reader->encoding);
    if (reading.parser == NULL || length > INT_MAX) {
        XML_ParserFree(reading.parser);
        return "there is no memory to read it";
    }
    XML_SetUserData(reading.parser, &reading);
    XML_SetElementHandler(reading.parser, begin_element, end_element);
    XML_SetCharacterDataHandler(reading.parser, reader->text != NULL ? take_text : NULL);
    XML_SetStartDoctypeDeclHandler(reading.parser, refuse_document_type);
    if (XML_Parse(reading.parser, text, (int)length, XML_TRUE) != XML_STATUS_OK && reading.failure == NULL)
        reading.failure = XML_ErrorString(XML_GetErrorCode(reading.parser));
    XML_ParserFree(reading.parser);
    if (reading.lacking > 0)
        memory_exhausted(reading.lacking);
    return reading.failure;
}
