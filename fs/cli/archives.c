#include "fs/cli/compare/checks.h"

#include "base/report.h"
#include "base/text.h"
#include "fs/cli/terminal.h"
#include "fs/lib/archives.h"

#include <stdio.h>

/* Prints a line on stdout for the archive, if its directory can be read. */
static void print_archive(void *context, const struct checked_archive *archive)
{
    enum archives *worst = context;
    char size[SIZE_TEXT];
    for (size_t i = 0; i < archive->n_damages; i++)
        report("%s", archive->damages[i]);
    if (archive->n_damages > 0 || *worst == ARCHIVES_NONE)
        *worst = archive->n_damages > 0 ? ARCHIVES_DAMAGED : ARCHIVES_WHOLE;
    if (archive->n_members == 0 && archive->n_damages > 0)
        return;
    text_put(archive->name, stdout);
    printf(": %zu of %zu members have the CRC of the directory, %s in all",
           archive->n_members - archive->n_damages - archive->n_unknown, archive->n_members,
           size_text(archive->n_bytes, size));
    if (archive->n_unknown > 0)
        printf("; of %zu members the directory has no CRC", archive->n_unknown);
    putchar('\n');
}

enum archives check_archives(const struct checkpoint *checkpoint)
{
    enum archives worst = ARCHIVES_NONE;
    archives_check(checkpoint, print_archive, &worst);
    return worst;
}

enum archives check_named_archives(const char *name, struct error *error)
{
    enum archives worst = ARCHIVES_NONE;
    archives_check_named(name, print_archive, &worst, error);
    return worst;
}
