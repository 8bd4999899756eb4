/* What values of a document hold. */
#include "text/json_value.h"

#include "base/text_index.h"

#include <errno.h>
#include <stdlib.h>

const struct json *json_root(const struct json_document *document)
{
    return root_of(document);
}

unsigned json_line(const struct json *value)
{
    const struct json *root = value;
    if (value == NULL)
        return 0;
    while (!has_mark(root, ROOT))
        root--;
    if (type_of(root) < JSON_ARRAY)
        return 1;
    const struct json_document *document = has_mark(root, INDEXED) ? index_of(root)->document : root->of.uni.ptr;
    return document->original != NULL ? json_line_of_value(document->original, document->length, root, value) : 0;
}

enum json_type json_type(const struct json *value)
{
    return value != NULL ? type_of(value) : JSON_NULL;
}

bool json_is(const struct json *value, enum json_type type)
{
    return value != NULL && type_of(value) == type;
}

size_t json_count(const struct json *array)
{
    return json_is(array, JSON_ARRAY) ? length_of(array) : 0;
}

const struct json *json_first(const struct json *array)
{
    return json_is(array, JSON_ARRAY) ? first_value(array) : NULL;
}

const struct json *json_next(const struct json *element)
{
    return element != NULL && !has_mark(element, MEMBER) ? next_value(element) : NULL;
}

const struct json *json_at(const struct json *array, size_t index)
{
    const struct json *element = json_first(array);
    while (element != NULL && index-- > 0)
        element = json_next(element);
    return element;
}

size_t json_count_members(const struct json *object)
{
    return json_is(object, JSON_OBJECT) ? length_of(object) : 0;
}

bool json_next_member(const struct json *object, struct json_member *member)
{
    if (!json_is(object, JSON_OBJECT))
        return false;
    const struct json *next = member->value == NULL ? first_value(object) : next_value(member->value);
    if (next == NULL)
        return false;
    *member = (struct json_member){text_of(key_of(next)), length_of(key_of(next)), next};
    return true;
}

const struct json *json_get_n(const struct json *object, const char *key, size_t key_length)
{
    if (!json_is(object, JSON_OBJECT))
        return NULL;
    if (has_mark(object, INDEXED)) {
        const struct index *index = index_of(object);
        size_t at = find_slot(object, index, key, key_length, text_hash(key, key_length));
        return index->slots[at].place != 0 ? object + index->slots[at].place : NULL;
    }
    const struct json *member = first_value(object);
    while (member != NULL && !has_key(member, key, key_length))
        member = next_value(member);
    return member;
}

const struct json *json_get(const struct json *object, const char *key)
{
    return json_get_n(object, key, strlen(key));
}

const char *json_string(const struct json *value, size_t *ret_length)
{
    if (!json_is(value, JSON_STRING))
        return NULL;
    if (ret_length != NULL)
        *ret_length = length_of(value);
    return text_of(value);
}

static struct json_text string_of(const struct json *value)
{
    if (type_of(value) != JSON_STRING)
        return (struct json_text){NULL, 0};
    return (struct json_text){text_of(value), length_of(value)};
}

void json_string_pair(const struct json *array, struct json_text ret_pair[2])
{
    const struct json *first = json_first(array), *second = first != NULL ? next_value(first) : NULL;
    ret_pair[0] = first != NULL ? string_of(first) : (struct json_text){NULL, 0};
    ret_pair[1] = second != NULL ? string_of(second) : (struct json_text){NULL, 0};
}

bool json_string_is(const struct json *value, const char *text)
{
    size_t length;
    const char *string = json_string(value, &length);
    return string != NULL && length == strlen(text) && memcmp(string, text, length) == 0;
}

const char *json_number_text(const struct json *value)
{
    return json_is(value, JSON_NUMBER) ? text_of(value) : NULL;
}

bool json_is_integer(const struct json *value)
{
    return json_is(value, JSON_NUMBER) && strpbrk(text_of(value), ".eE") == NULL;
}

static bool is_whole(const struct json *value)
{
    return json_is(value, JSON_NUMBER) && has_mark(value, WHOLE);
}

bool json_u64(const struct json *value, uint64_t *ret_value)
{
    if (is_whole(value) && *text_of(value) != '-') {
        *ret_value = (uint64_t)strtod(text_of(value), NULL);
        return true;
    }
    if (!json_is(value, JSON_NUMBER))
        return false;
    uint64_t number = 0;
    for (const char *at = text_of(value); *at != '\0'; at++) {
        uint64_t digit = (uint64_t)*at - '0';
        if (digit > 9 || __builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, digit, &number))
            return false;
    }
    *ret_value = number;
    return true;
}

bool json_i64(const struct json *value, int64_t *ret_value)
{
    if (is_whole(value)) {
        *ret_value = (int64_t)strtod(text_of(value), NULL);
        return true;
    }
    if (!json_is_integer(value))
        return false;
    errno = 0;
    long long number = strtoll(text_of(value), NULL, 10);
    if (errno != 0)
        return false;
    *ret_value = number;
    return true;
}

bool json_double(const struct json *value, double *ret_value)
{
    if (!json_is(value, JSON_NUMBER))
        return false;
    *ret_value = strtod(text_of(value), NULL); /* the program never leaves the C locale */
    return true;
}

bool json_bool(const struct json *value, bool otherwise)
{
    return json_is(value, JSON_TRUE) || (otherwise && !json_is(value, JSON_FALSE));
}
