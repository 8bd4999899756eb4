#include "fs/tree/name.h"

#include "base/encodings.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { DIGEST_HEX = 16, CUT_MARK_BYTES = 2 + DIGEST_HEX }; /* "%~" and the digest */

static bool stands_for_itself(unsigned char byte)
{
    return byte >= 0x20 && byte != 0x7f && byte != '/' && byte != '%';
}

/* Writes the character at raw[0], or its first byte escaped. Returns the number of raw bytes taken. */
static size_t escape_one(const char *raw, size_t length, char out[5], size_t *ret_out_length)
{
    size_t taken = text_character(raw, length);
    if (taken > 1 || (taken == 1 && stands_for_itself((unsigned char)*raw))) {
        memcpy(out, raw, taken);
        *ret_out_length = taken;
        return taken;
    }
    snprintf(out, 5, "%%%02X", (unsigned char)*raw);
    *ret_out_length = 3;
    return 1;
}

static void append_digest(const char *raw, size_t length, char *out)
{
    char hex[SHA256_HEX + 1];
    sha256_hex(raw, length, hex);
    sprintf(out, "%%~%.*s", DIGEST_HEX, hex);
}

bool name_escape(const char *raw, size_t length, char escaped[NAME_MAX_BYTES + 1])
{
    if (length <= 2 && memcmp(raw, "..", length) == 0) {
        static const char *const names[] = {"%", "%2E", "%2E%2E"};
        strcpy(escaped, names[length]);
        return true;
    }
    size_t used = 0, cut = 0; /* `cut`: the length of the longest prefix with room for the mark */
    for (size_t at = 0; at < length;) {
        char piece[5];
        size_t piece_length;
        at += escape_one(raw + at, length - at, piece, &piece_length);
        if (used + piece_length > NAME_MAX_BYTES) {
            append_digest(raw, length, escaped + cut);
            return false;
        }
        memcpy(escaped + used, piece, piece_length);
        used += piece_length;
        if (used <= NAME_MAX_BYTES - CUT_MARK_BYTES)
            cut = used;
    }
    escaped[used] = '\0';
    return true;
}

bool name_unescape(const char *escaped, char raw[NAME_MAX_BYTES + 1], size_t *ret_length)
{
    size_t length = 0;
    if (strlen(escaped) > NAME_MAX_BYTES)
        return false;
    for (const char *at = escaped; *at != '\0' && strcmp(escaped, "%") != 0;) {
        if (*at != '%') {
            raw[length++] = *at++;
            continue;
        }
        int high = text_hex_digit(at[1]), low = high < 0 ? -1 : text_hex_digit(at[2]);
        if (low < 0)
            return false;
        raw[length++] = (char)(high * 16 + low);
        at += 3;
    }
    /* Only the spelling that name_escape() gives is a name: "%41" is none. */
    char again[NAME_MAX_BYTES + 1];
    if (!name_escape(raw, length, again) || strcmp(again, escaped) != 0)
        return false;
    *ret_length = length;
    return true;
}
