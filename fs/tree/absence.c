#include "fs/tree/absence.h"

#include <string.h>

/* Whether a note begins with a path. */
static bool is_about(const char *note, const char *path)
{
    size_t length = strlen(path);
    return strncmp(note, path, length) == 0 && strchr(" :", note[length]) != NULL;
}

/* Whether it names files that the path is one of: "gguf/mmproj-*". */
static bool is_about_group(const char *note, const char *path)
{
    const char *dash = strrchr(path, '-');
    size_t until_dash = dash != NULL ? (size_t)(dash - path) + 1 : 0;
    for (const char *at = note; dash != NULL && (at = strstr(at, "-*")) != NULL; at++)
        if ((size_t)(at - note) + 1 >= until_dash && memcmp(at + 1 - until_dash, path, until_dash) == 0)
            return true;
    return false;
}

/* Whether it names a directory that the path begins with. */
static bool is_about_directory(const char *note, const char *path)
{
    size_t length = strlen(path), directory = strcspn(path, "/") + 1;
    if (directory > length)
        return false;
    for (const char *at = note; (at = strchr(at, '/')) != NULL; at++) {
        size_t end = (size_t)(at - note) + 1;
        bool is_name = end >= directory && memcmp(note + end - directory, path, directory) == 0 &&
                       (end == directory || note[end - directory - 1] == ' ');
        if (is_name && strchr(" :,", note[end]) != NULL)
            return true;
    }
    return false;
}

const char *absence_in_notes(const struct checkpoint *checkpoint, const char *path)
{
    size_t n_notes = checkpoint_notes(checkpoint);
    for (size_t i = 0; i < n_notes; i++)
        if (is_about(checkpoint_note_text(checkpoint, i), path) ||
            is_about_group(checkpoint_note_text(checkpoint, i), path))
            return checkpoint_note_text(checkpoint, i);
    return NULL;
}

const char *absence_of_directory(const struct checkpoint *checkpoint, const char *path)
{
    size_t n_notes = checkpoint_notes(checkpoint);
    for (size_t i = 0; i < n_notes; i++)
        if (is_about_directory(checkpoint_note_text(checkpoint, i), path))
            return checkpoint_note_text(checkpoint, i);
    return NULL;
}
