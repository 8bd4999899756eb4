/* The members of an object. Of a long one, neither the text nor its values are in memory as a whole: slices of its text
 * are parsed as objects of their own. */
#include "text/json_value.h"

#include <stdlib.h>

enum {
    SLICE = 2048,      /* bytes of the longest slice, with what is before it: some twenty tensors of safetensors */
    BRACKETS = 2,      /* bytes around it */
    VALUES = SLICE,    /* more than yyjson wants room for */
    PART = 256 * 1024, /* bytes of the text that are in memory */
};

/* A long text that is being read. A slice of it begins after the object's '{' or after a ','. find_slice() guesses
 * where it ends: before the last ',' or '}' within SLICE bytes that follows a '}'. The guess is checked: if the slice,
 * put in brackets, is a valid object, it consists of whole members, and if all slices do, the text is valid. Any other
 * text is parsed as a whole. */
struct slices {
    json_read_part *read;
    json_take_member *take;
    void *context;
    struct error *error;
    size_t length, n_read; /* of the text */
    size_t n_values;       /* of the slices so far, with keys */
    size_t n_taken;        /* members */
    bool cannot_read;
    size_t begin, end; /* what is left in `part`: from the byte before a slice on */
    yyjson_val values[VALUES];
    char slice[BRACKETS + SLICE + YYJSON_PADDING_SIZE];
    char part[PART]; /* of the text */
};

/* Memory for yyjson: the values of a slice. */

static void *allocate(void *context, size_t size)
{
    struct slices *slices = context;
    return size <= sizeof slices->values ? slices->values : NULL;
}

static void *reallocate(void *context, void *memory, size_t old_size, size_t size)
{
    return allocate(context, size);
}

static void release(void *context, void *memory)
{
}

/* Moves the unparsed bytes to the beginning of the part, and fills the rest of it from the text. */
static bool read_on(struct slices *slices)
{
    size_t left = slices->end - slices->begin, more = slices->length - slices->n_read;
    if (more > PART - left)
        more = PART - left;
    memmove(slices->part, slices->part + slices->begin, left);
    slices->cannot_read = !slices->read(slices->context, slices->n_read, slices->part + left, more, slices->error);
    slices->n_read += more;
    slices->begin = 0;
    slices->end = left + more;
    return !slices->cannot_read;
}

/* Returns the first byte at or after `at` that is not white space, or `end`. */
static const char *skip_spaces(const char *at, const char *end)
{
    while (at < end && memchr(" \t\r\n", *at, 4) != NULL)
        at++;
    return at;
}

/* Skips white space of the text, in all its parts. Returns whether anything follows it. */
static bool find_text(struct slices *slices)
{
    for (;;) {
        const char *end = slices->part + slices->end;
        slices->begin = (size_t)(skip_spaces(slices->part + slices->begin, end) - slices->part);
        if (slices->begin < slices->end)
            return true;
        if (slices->n_read == slices->length || !read_on(slices))
            return false;
    }
}

/* Finds the ',' or '}' after the next slice. */
static bool find_slice(struct slices *slices, size_t *ret_end)
{
    if (slices->end - slices->begin <= SLICE && slices->n_read < slices->length && !read_on(slices))
        return false;
    const char *begin = slices->part + slices->begin, *end = slices->part + slices->end;
    if (end - begin > SLICE)
        end = begin + SLICE;
    for (const char *at = end - 1; at > begin; at--) {
        const char *last = *at == '}' ? skip_spaces(at + 1, end) : end;
        *ret_end = (size_t)(last - slices->part);
        if (last < end && (*last == ',' || *last == '}'))
            return true;
    }
    return false;
}

/* Parses a copy of the slice before `end`. */
static bool parse_slice(struct slices *slices, size_t end, const struct json_parser *parser)
{
    const yyjson_alc memory = {allocate, reallocate, release, slices};
    const yyjson_read_flag flags = YYJSON_READ_INSITU | YYJSON_READ_NUMBER_AS_RAW;
    struct json_document *document = parser->document;
    document->length = end - slices->begin + 1;
    memcpy(document->text, slices->part + slices->begin, document->length);
    document->text[0] = '{';
    document->text[document->length - 1] = '}';
    memset(document->text + document->length, 0, YYJSON_PADDING_SIZE);
    document->parsed = yyjson_read_opts(document->text, document->length, flags, &memory, NULL);
    if (document->parsed == NULL || !json_check_values(parser) || length_of(root_of(document)) == 0)
        return false;
    slices->n_values += yyjson_doc_get_val_count(document->parsed);
    return slices->n_values <= JSON_MAX_VALUES;
}

static bool take_members(struct slices *slices, const struct json *object)
{
    for (struct json_member member = {0}; json_next_member(object, &member); slices->n_taken++)
        if (!slices->take(slices->context, &member, slices->error))
            return false;
    return true;
}

/* Takes the members of a text that consists of slices. Fails at the first that does not, or that is not taken. */
static bool take_slices(struct slices *slices, const struct json_parser *parser)
{
    if (!find_text(slices) || slices->part[slices->begin] != '{')
        return false;
    size_t end;
    do {
        if (!find_slice(slices, &end) || !parse_slice(slices, end, parser) ||
            !take_members(slices, root_of(parser->document)))
            return false;
        slices->begin = end;
    } while (slices->part[end] == ',');
    slices->begin++;
    return !find_text(slices) && !slices->cannot_read;
}

static bool take_quickly(struct slices *slices)
{
    struct error unused; /* take_rest() finds the reason */
    struct json_document document = {.text = slices->slice, .arena = arena_new()};
    const struct json_parser parser = {.document = &document, .root_repeats = true, .error = &unused};
    bool taken = take_slices(slices, &parser);
    arena_free(document.arena);
    return taken;
}

static bool read_whole(void *context, char *to, size_t length, struct error *error)
{
    const struct slices *slices = context;
    return slices->read(slices->context, 0, to, length, error);
}

/* Takes the members that are not yet taken. */
static bool take_rest(struct slices *slices)
{
    struct json_document *document = json_read_repeating(read_whole, slices, slices->length, slices->error);
    bool good = document != NULL;
    if (good && type_of(root_of(document)) != JSON_OBJECT)
        good = error_set(slices->error, "not a JSON object");
    size_t n = 0;
    for (struct json_member member = {0}; good && json_next_member(root_of(document), &member); n++)
        good = n < slices->n_taken || slices->take(slices->context, &member, slices->error);
    json_free(document);
    return good;
}

bool json_read_members(json_read_part *read, void *context, size_t length, json_take_member *take, struct error *error)
{
    struct slices *slices = memory_alloc(sizeof *slices);
    slices->read = read;
    slices->take = take;
    slices->context = context;
    slices->error = error;
    slices->length = length;
    slices->n_read = slices->n_values = slices->n_taken = slices->begin = slices->end = 0;
    slices->cannot_read = false;
    bool taken = (length > JSON_LINED && take_quickly(slices)) || (!slices->cannot_read && take_rest(slices));
    free(slices);
    return taken;
}
