#include "fs/cli/part_number.h"

#include "fs/lib/parts_plan.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool part_number_is(const char *word)
{
    size_t before = strspn(word, "0123456789"), after = 0;
    if (word[before] == '/')
        after = strspn(word + before + 1, "0123456789");
    return after > 0 && word[before + 1 + after] == '\0';
}

/* Parses decimal digits. A number that is too large is refused by the limit of its caller. */
static bool parse(const char *text, size_t *ret_number)
{
    enum { MOST_DIGITS = 9 };
    if (!isdigit((unsigned char)*text) || strlen(text) > MOST_DIGITS || text[strspn(text, "0123456789")] != '\0')
        return false;
    *ret_number = (size_t)strtoul(text, NULL, 10);
    return true;
}

static bool get(const char *name, size_t *ret_number)
{
    const char *value = getenv(name);
    return value != NULL && parse(value, ret_number);
}

bool part_count_parse(const char *value, size_t *ret_count, struct error *error)
{
    if (parse(value, ret_count) && *ret_count >= 1 && *ret_count <= PARTS_MOST)
        return true;
    return error_set(error, "'%s' is not a number of parts from 1 to %d", value, PARTS_MOST);
}

static bool check(const struct part_number *part, struct error *error)
{
    if (part->number >= 1 && part->number <= part->count)
        return true;
    return error_set(error, "there is no part %zu of %zu; parts are numbered from 1 on", part->number, part->count);
}

/* Finds the number in a Slurm array. `count` is 0 if --part does not name one. */
static bool find_slurm(size_t count, struct part_number *ret_part, struct error *error)
{
    size_t id, first, last, step = 1, tasks;
    if (!get("SLURM_ARRAY_TASK_ID", &id) || !get("SLURM_ARRAY_TASK_MIN", &first) ||
        !get("SLURM_ARRAY_TASK_MAX", &last) || !get("SLURM_ARRAY_TASK_COUNT", &tasks) ||
        (getenv("SLURM_ARRAY_TASK_STEP") != NULL && !get("SLURM_ARRAY_TASK_STEP", &step)))
        return error_set(error, "the SLURM_ARRAY_TASK_ variables are incomplete; write --part NUMBER/COUNT");
    bool is_whole = first <= 1 && step == 1 && last - first + 1 == tasks && (count == 0 || count == tasks);
    if (!is_whole)
        return error_set(
            error,
            "the array has tasks %zu to %zu in steps of %zu, %zu in all, which does not tell the number of "
            "parts; write --part $((SLURM_ARRAY_TASK_ID + 1))/COUNT for an array that begins with 0",
            first, last, step, tasks);
    *ret_part = (struct part_number){id - first + 1, tasks, "SLURM_ARRAY_TASK_ID"};
    return check(ret_part, error);
}

/* Finds the number of a pod of an indexed Job, which does not know how many there are. */
static bool find_kubernetes(size_t count, struct part_number *ret_part, struct error *error)
{
    size_t index;
    if (!get("JOB_COMPLETION_INDEX", &index))
        return error_set(error, "JOB_COMPLETION_INDEX is not a number; write --part NUMBER/COUNT");
    if (count == 0)
        return error_set(error, "JOB_COMPLETION_INDEX does not tell the number of parts; write --part /COUNT");
    *ret_part = (struct part_number){index + 1, count, "JOB_COMPLETION_INDEX"};
    return check(ret_part, error);
}

static bool find_array(size_t count, struct part_number *ret_part, struct error *error)
{
    bool is_kubernetes = getenv("JOB_COMPLETION_INDEX") != NULL, is_slurm = getenv("SLURM_ARRAY_TASK_ID") != NULL;
    if (is_kubernetes && is_slurm)
        return error_set(error, "both JOB_COMPLETION_INDEX and SLURM_ARRAY_TASK_ID are set; write --part NUMBER/COUNT");
    if (is_kubernetes)
        return find_kubernetes(count, ret_part, error);
    if (is_slurm)
        return find_slurm(count, ret_part, error);
    return error_set(error, "no array job is in the environment (JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID); write "
                            "--part NUMBER/COUNT");
}

bool part_number_find(const char *value, struct part_number *ret_part, struct error *error)
{
    struct part_number part = {.from = NULL};
    const char *slash = value != NULL ? strchr(value, '/') : NULL;
    if (value == NULL)
        return find_array(0, ret_part, error);
    if (slash == NULL || !part_number_is(value))
        return error_set(error, "'%s' is not NUMBER/COUNT", value);
    if (!part_count_parse(slash + 1, &part.count, error))
        return false;
    if (slash == value)
        return find_array(part.count, ret_part, error);
    char number[16] = "";
    if (slash - value < (long)sizeof number)
        memcpy(number, value, (size_t)(slash - value));
    if (!parse(number, &part.number))
        return error_set(error, "there is no part %.*s of %zu; parts are numbered from 1 on", (int)(slash - value),
                         value, part.count);
    *ret_part = part;
    return check(ret_part, error);
}
