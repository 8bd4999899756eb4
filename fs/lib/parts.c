#include "fs/lib/parts.h"

#include "fs/lib/output.h"
#include "fs/lib/parts_plan.h"
#include "fs/lib/source_digest.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How far a step has come. GONE: another worker has ended the copy and removed the directory. */
enum step { DONE, GONE, BROKEN };

/* A call. */
struct work {
    struct parts_copy *copy;
    struct arena *arena;
    const char *directory, *data, *plan_path;
    struct parts_plan plan; /* the one that was found */
    struct error *error;
};

bool parts_is_refusal(const struct error *error)
{
    static const int final[] = {EINVAL, EEXIST,    ENOENT,       ENOTDIR, EISDIR,     EACCES, EPERM, EROFS,
                                ESPIPE, ENOTEMPTY, ENAMETOOLONG, ELOOP,   EOPNOTSUPP, EXDEV,  ENOSYS};
    for (size_t i = 0; i < sizeof final / sizeof *final; i++)
        if (error->code == final[i])
            return true;
    return false;
}

void parts_lay_out(struct parts_copy *copy, size_t n_parts, struct arena *arena)
{
    const struct vfile **files = arena_array(arena, copy->n_files + 1, sizeof *files);
    uint64_t *ends = arena_array(arena, n_parts, sizeof *ends);
    struct buffer layout = {0};
    for (size_t i = 0; i < copy->n_files; i++) {
        files[i] = copy->files[i].file;
        buffer_append(&layout, copy->files[i].path, strlen(copy->files[i].path) + 1);
        buffer_append_le(&layout, files[i]->size, 8);
    }
    for (size_t i = 0; i < copy->n_directories; i++)
        buffer_append(&layout, copy->directories[i], strlen(copy->directories[i]) + 1);
    sha256_hex(layout.bytes, layout.length, copy->plan.layout);
    buffer_free(&layout);
    source_stamp(copy->sources, copy->n_sources, copy->plan.stamp);
    cut_files(files, copy->n_files, n_parts, ends);
    copy->plan.ends = ends;
    copy->plan.n_parts = n_parts;
    copy->plan.bytes = ends[n_parts - 1];
}

static struct parts_range range_of(const struct parts_plan *plan, size_t number)
{
    return (struct parts_range){number > 1 ? plan->ends[number - 2] : 0, plan->ends[number - 1]};
}

uint64_t parts_length(const struct parts_copy *copy, size_t number)
{
    struct parts_range range = range_of(&copy->plan, number);
    return range.to - range.from;
}

static bool fail(const struct work *work, int reason, const char *path)
{
    error_set_errno(work->error, reason, "%s", path);
    return error_set_code(work->error, reason);
}

static struct work begin(struct parts_copy *copy, struct arena *arena, struct error *error)
{
    const char *directory = arena_printf(arena, "%s" PARTS_SUFFIX, copy->destination);
    return (struct work){
        .copy = copy,
        .arena = arena,
        .directory = directory,
        .data = arena_printf(arena, "%s/data", directory),
        .plan_path = arena_printf(arena, "%s/plan", directory),
        .error = error,
    };
}

/* Markers and temporary files. */

static const char *marker_path(const struct work *work, size_t number)
{
    return arena_printf(work->arena, "%s/%06zu.done", work->directory, number);
}

/* Returns the number of the part whose marker has that name; 0: it is none. */
static size_t marker_number(const char *name)
{
    char *end;
    size_t number = strlen(name) == strlen("000000.done") ? strtoul(name, &end, 10) : 0;
    return number > 0 && strcmp(end, ".done") == 0 ? number : 0;
}

/* Calls take(context, name) for the names in the directory of the parts. */
static bool list_names(const struct work *work, void (*take)(void *context, const char *name), void *context)
{
    DIR *names = opendir(work->directory);
    if (names == NULL)
        return false;
    for (const struct dirent *entry; (entry = readdir(names)) != NULL;)
        take(context, entry->d_name);
    closedir(names);
    return true;
}

static bool read_marker(const struct work *work, size_t number, struct parts_marker *ret_marker)
{
    struct buffer text = {0};
    bool is_marker =
        durable_read(marker_path(work, number), PARTS_MOST_TEXT, &text) == 0 && parts_marker_read(&text, ret_marker);
    buffer_free(&text);
    return is_marker;
}

/* Reports whether a part is done. A marker of another plan is an error: it belongs to another copy. */
static bool is_done(const struct work *work, size_t number, bool *ret_done)
{
    struct parts_marker marker;
    struct parts_range range = range_of(&work->plan, number);
    *ret_done = read_marker(work, number, &marker);
    if (!*ret_done || (strcmp(marker.plan, work->plan.hash) == 0 && marker.from == range.from && marker.to == range.to))
        return true;
    error_set(work->error, "%s: was made by another plan; remove %s to begin again", marker_path(work, number),
              work->directory);
    return error_set_code(work->error, EINVAL);
}

/* Removing the directory once the copy has its name. */

static void tidy_name(void *context, const char *name)
{
    const struct work *work = context;
    bool is_ours = marker_number(name) != 0 || strcmp(name, "plan") == 0 || strcmp(name, "header") == 0 ||
                   (name[0] == '.' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
    if (is_ours)
        unlink(arena_printf(work->arena, "%s/%s", work->directory, name));
}

/* Removes `data` last: while it is there, its inode tells that DEST is this copy. */
static void tidy(struct work *work)
{
    list_names(work, tidy_name, work);
    parts_data_remove(work->copy, work->data);
    rmdir(work->directory);
}

/* Reports whether the directory of the parts belongs to the copy that has its name: a worker that ended it was killed
 * before it could tidy up, or the directory was made again since. */
static bool is_left_over(const struct work *work)
{
    struct error unsaid;
    struct buffer text = {0};
    struct parts_plan found;
    if (!durable_exists(work->data) ||
        (!work->copy->is_directory && durable_is_same(work->data, work->copy->destination)))
        return durable_exists(work->directory);
    bool is_same = durable_read(work->plan_path, PARTS_MOST_TEXT, &text) == 0 &&
                   parts_plan_read(&text, work->arena, &found, &unsaid) &&
                   parts_plan_agrees(&found, &work->copy->plan, work->copy->sources, work->copy->n_sources, &unsaid);
    buffer_free(&text);
    return is_same;
}

/* Ends a call for a copy that has its name: compares the part with it. Number 0 compares sizes alone. */
static bool accept_named(struct work *work, size_t number)
{
    struct parts_range range = number > 0 ? range_of(&work->copy->plan, number) : (struct parts_range){0, 0};
    if (!parts_data_compare(work->copy, work->copy->destination, range, work->error))
        return false;
    if (is_left_over(work))
        tidy(work);
    return true;
}

/* The directory and its plan. */

static enum step broken(const struct work *work, int reason, const char *path)
{
    if (reason == ENOENT && durable_exists(work->copy->destination))
        return GONE;
    fail(work, reason, path);
    return BROKEN;
}

/* Makes the directory. If it was missing, another worker may just have ended the copy. */
static enum step make_directory(const struct work *work)
{
    int reason = durable_make_directory(work->directory);
    if (reason != 0)
        return reason == EEXIST ? DONE : broken(work, reason, work->directory);
    if (!durable_exists(work->copy->destination))
        return DONE;
    rmdir(work->directory);
    return GONE;
}

static bool write_plan(const struct work *work, int *ret_reason)
{
    struct parts_copy *copy = work->copy;
    struct buffer text = {0};
    if (copy->plan.source[0] == '\0')
        source_digest(copy->sources, copy->n_sources, copy->plan.source);
    if (!copy->is_directory)
        parts_header_keep(copy->files[0].file, arena_printf(work->arena, "%s/header", work->directory), &copy->plan);
    parts_plan_write(&copy->plan, &text);
    *ret_reason = durable_write(work->plan_path, text.bytes, text.length, false);
    buffer_free(&text);
    return *ret_reason == 0 || *ret_reason == EEXIST;
}

static enum step check_plan(struct work *work, const struct buffer *text)
{
    if (parts_plan_read(text, work->arena, &work->plan, work->error)) {
        if (parts_plan_agrees(&work->plan, &work->copy->plan, work->copy->sources, work->copy->n_sources, work->error))
            return DONE;
        error_prefix(work->error, "%s", work->directory);
        struct error why = *work->error;
        error_set(work->error, "%s; remove the directory to begin again, or name another DEST", why.message);
        error_set_code(work->error, why.code);
        return BROKEN;
    }
    error_prefix(work->error, "%s", work->plan_path);
    return BROKEN;
}

/* Finds the plan, or makes it. */
static enum step find_plan(struct work *work, bool may_write)
{
    struct buffer text = {0};
    int reason = durable_read(work->plan_path, PARTS_MOST_TEXT, &text);
    if (reason == ENOENT && may_write && write_plan(work, &reason))
        reason = durable_read(work->plan_path, PARTS_MOST_TEXT, &text);
    enum step step = reason == 0 ? check_plan(work, &text) : broken(work, reason, work->plan_path);
    buffer_free(&text);
    return step;
}

/* Ending the copy. */

struct counting {
    bool *is_marked;
    size_t n_parts;
};

static void count_marker(void *context, const char *name)
{
    const struct counting *counting = context;
    size_t number = marker_number(name);
    if (number > 0 && number <= counting->n_parts)
        counting->is_marked[number - 1] = true;
}

static bool are_all_done(const bool *done, size_t n_parts)
{
    for (size_t i = 0; i < n_parts; i++)
        if (!done[i])
            return false;
    return true;
}

/* Finds the parts that are done; *ret_done has one element for each part. Of a copy that is not wholly done, markers
 * are read only if `all_matter`: each worker comes here. */
static enum step find_done(const struct work *work, bool all_matter, bool **ret_done)
{
    size_t n_parts = work->plan.n_parts;
    bool *done = arena_array(work->arena, n_parts, sizeof *done);
    if (!list_names(work, count_marker, &(struct counting){done, n_parts}))
        return broken(work, errno, work->directory);
    bool reads = all_matter || are_all_done(done, n_parts);
    for (size_t i = 0; i < n_parts && reads; i++)
        if (done[i] && !is_done(work, i + 1, &done[i]))
            return BROKEN;
    *ret_done = done;
    return DONE;
}

/* Gives the copy its name. If the data is gone, another worker has: all parts were seen to be done. */
static enum step name_copy(struct work *work)
{
    const struct parts_copy *copy = work->copy;
    if (!parts_data_is_whole(copy, work->data, work->error))
        return work->error->code == ENOENT && durable_exists(copy->destination) ? DONE : BROKEN;
    int reason = copy->is_directory ? durable_rename(work->data, copy->destination)
                                    : durable_link(work->data, copy->destination);
    if (reason == EEXIST || reason == ENOTEMPTY || reason == ENOTDIR || reason == EISDIR)
        return GONE;
    if (reason != 0)
        return broken(work, reason, copy->destination) == GONE ? DONE : BROKEN;
    tidy(work);
    return DONE;
}

/* Ends the copy if all parts are done. If the directory is gone, with the marker in it, another worker has. */
static enum step try_to_end(struct work *work)
{
    bool *done;
    enum step step = find_done(work, false, &done);
    if (step != DONE)
        return step == GONE ? DONE : BROKEN;
    if (are_all_done(done, work->plan.n_parts))
        return name_copy(work);
    return durable_exists(work->copy->destination) ? GONE : DONE;
}

/* Making a part. */

static enum step write_marker(const struct work *work, size_t number, const char *checksum)
{
    struct parts_range range = range_of(&work->plan, number);
    struct parts_marker marker = {.from = range.from, .to = range.to};
    struct buffer text = {0};
    memcpy(marker.plan, work->plan.hash, sizeof marker.plan);
    memcpy(marker.checksum, checksum, sizeof marker.checksum);
    parts_marker_write(&marker, &text);
    int reason = durable_write(marker_path(work, number), text.bytes, text.length, true);
    buffer_free(&text);
    return reason == 0 ? DONE : broken(work, reason, marker_path(work, number));
}

static bool have_sources_changed(const struct parts_copy *copy)
{
    bool changed = false;
    for (size_t i = 0; i < copy->n_sources; i++)
        changed |= source_verify(copy->sources[i]);
    return changed;
}

static enum step make_part(const struct work *work, size_t number)
{
    char checksum[SHA256_HEX + 1];
    bool made = parts_data_write(work->copy, work->data, range_of(&work->plan, number), checksum, work->error);
    if (!made && work->error->code == ENOENT && durable_exists(work->copy->destination))
        return GONE;
    if (have_sources_changed(work->copy)) {
        error_set(work->error, "%s: a source changed while part %zu was made, which does not count; copy again",
                  work->copy->destination, number);
        error_set_code(work->error, EINVAL);
        return BROKEN;
    }
    return made ? write_marker(work, number, checksum) : BROKEN;
}

static enum step make(struct work *work, size_t number)
{
    bool done = false;
    enum step step = make_directory(work);
    if (step == DONE)
        step = find_plan(work, true);
    if (step == DONE && !is_done(work, number, &done))
        step = BROKEN;
    if (step == DONE && !done)
        step = make_part(work, number);
    return step == DONE ? try_to_end(work) : step;
}

bool parts_make(struct parts_copy *copy, size_t number, struct error *error)
{
    struct arena *arena = arena_new();
    struct work work = begin(copy, arena, error);
    enum step step = durable_exists(copy->destination) ? GONE : make(&work, number);
    bool made = step == GONE ? accept_named(&work, number) : step == DONE;
    arena_free(arena);
    return made;
}

/* Joining. */

/* Appends "3, 5-7" for the parts that are missing. */
static void append_missing(struct buffer *out, const bool *done, size_t n_parts)
{
    for (size_t i = 0, end; i < n_parts; i = end) {
        for (end = i; end < n_parts && !done[end];)
            end++;
        if (end > i)
            buffer_printf(out, end > i + 1 ? "%s%zu-%zu" : "%s%zu", out->length > 0 ? ", " : "", i + 1, end);
        end += end == i;
    }
}

static enum step refuse_missing(const struct work *work, const bool *done)
{
    struct buffer missing = {0};
    append_missing(&missing, done, work->plan.n_parts);
    error_set(work->error, "%s: of %zu parts these are missing: %.*s; make them with --part", work->copy->destination,
              work->plan.n_parts, (int)missing.length, (const char *)missing.bytes);
    buffer_free(&missing);
    error_set_code(work->error, EINVAL);
    return BROKEN;
}

static enum step verify_parts(const struct work *work)
{
    for (size_t i = 1; i <= work->plan.n_parts; i++) {
        struct parts_marker marker;
        char checksum[SHA256_HEX + 1];
        if (!read_marker(work, i, &marker))
            continue;
        if (!parts_data_check(work->copy, work->data, range_of(&work->plan, i), checksum, work->error))
            return BROKEN;
        if (strcmp(checksum, marker.checksum) == 0)
            continue;
        error_set(work->error, "%s: part %zu is damaged; remove %s and make the part again", work->data, i,
                  marker_path(work, i));
        return BROKEN;
    }
    return DONE;
}

static enum step join(struct work *work, bool verify)
{
    bool *done;
    enum step step = find_plan(work, false);
    if (step == DONE)
        step = find_done(work, true, &done);
    if (step == DONE && !are_all_done(done, work->plan.n_parts))
        return refuse_missing(work, done);
    if (step == DONE && verify)
        step = verify_parts(work);
    return step == DONE ? name_copy(work) : step;
}

bool parts_join(struct parts_copy *copy, bool verify, struct error *error)
{
    struct arena *arena = arena_new();
    struct work work = begin(copy, arena, error);
    enum step step = durable_exists(copy->destination) ? GONE : join(&work, verify);
    bool joined = step == GONE ? accept_named(&work, 0) : step == DONE;
    arena_free(arena);
    return joined;
}
