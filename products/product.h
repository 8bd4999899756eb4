/* Products: the directories and files that a checkpoint is shown as, a row each, in one file with its makers.
 *
 * A product says when it is offered, makes the object that its files share, and lists them. It knows no tree:
 * fs/tree/product_files.c shows it, plans its files when they are asked for, and notes what cannot be made. Callbacks
 * are called on any thread. */
#pragma once

#include "formats/artifact.h"
#include "formats/checkpoint.h"
#include "products/request.h"

struct product_input {
    const struct checkpoint *checkpoint;
    const struct request *request;
};

/* Makes the artifact of a file, with tensors in the arena: OK; REPORTED: there is no such file, and the error says why;
 * FAILED: this is worth a note, too. `made` is the product's object, `what` the file's own. */
typedef enum outcome product_maker(const struct product_input *input, const void *made, const void *what,
                                   struct arena *arena, struct artifact *ret_artifact, struct error *error);

/* A file: one of make and source. */
struct product_file {
    const char *path; /* below the product's root */
    product_maker *make;
    struct source *source; /* a weights file of the checkpoint, which it shows unchanged */
    const void *what;      /* static, or in the list's arena */
};

struct product_hint {
    const char *path, *text;
};

/* The files of a product, and what to say about paths that it does not have (tree_add_hint()). */
struct product_list {
    struct arena *arena;
    struct product_file *files;
    size_t n_files;
    struct product_hint *hints;
    size_t n_hints;
};

void product_add(struct product_list *list, struct product_file file);
void product_hint(struct product_list *list, const char *path, const char *text); /* both outlive the list */

struct product {
    const char *name;    /* "sdcpp" */
    const char *summary; /* for the documentation: "sdcpp/: a diffusion model in the GGUF files of ..." */
    const char *root;    /* the directory of all files; NULL: the root of the tree */

    /* Reports whether the checkpoint has such files; else says why not, if users may look for them. */
    bool (*is_offered)(const struct product_input *input, struct product_list *hints);

    /* Makes the object that the files share, in the arena, before the first is planned; NULL, with the reason. There is
     * no object if this is NULL. */
    const void *(*make)(const struct product_input *input, struct arena *arena, struct error *error);

    /* Lists the files. */
    void (*files)(const struct product_input *input, struct product_list *list);

    /* The beginning of the note if there is no object, and its subject: "left out"; NULL: the reason stays with each
     * file. */
    const char *left_out;
    enum subject left_out_subject;
};

extern const struct product sdcpp_product, whisper_product;
