/* What the server's index lists: owners of models, their models, and the directories and files of a model, for the
 * index pages (page.c) and for WebDAV (dav.c).
 *
 * A list plans nothing: a file may turn out to be absent when it is planned. */
#pragma once

#include "fs/http/repository.h"

struct index_entry {
    const char *name;                    /* the last part of its path; valid during the call */
    const struct repository *repository; /* the model; of an owner, the first one that is shown */
    const struct repository_file *file;  /* NULL: a directory */
};

typedef void index_found(void *context, const struct index_entry *entry);

/* Calls `found` with each entry of a directory, and returns how many there are: with `place` "", the owners; with
 * "ORG", the models of an owner; with "ORG/NAME", the entries of that model's directory `path`, without slashes at its
 * ends. */
size_t index_list(const struct repositories *repositories, const char *place, const char *path, index_found *found,
                  void *context);

/* Reports whether the index has a model: engines' directories that are found only by their names are left out, and
 * models whose files are all known to be absent. */
bool index_has(const struct repository *repository);
