/* Products: the directories and files that a checkpoint is shown as, a row each, in one file with its makers.
 *
 * A product says when it is offered, makes the object that its files share, and lists them. It knows no tree:
 * fs/tree/product_files.c shows it, plans its files when they are asked for, and notes what cannot be made. Callbacks
 * are called on any thread. */
#pragma once

#include "formats/artifact.h"
#include "formats/checkpoint.h"
#include "formats/origin.h"
#include "products/request.h"

struct shards;
struct tree;

struct product_input {
    const struct checkpoint *checkpoint;
    const struct request *request;

    /* For make(): returns the checkpoint of a component, which opens if necessary and lives as long as the object; NULL
     * if it is not shown or cannot be opened. */
    const struct checkpoint *(*component)(struct tree *tree, const char *name);
    struct tree *tree; /* for component() alone */
};

/* Makes an object that files share, in the arena; NULL, with the reason. */
typedef const void *product_object_maker(const struct product_input *input, struct arena *arena, struct error *error);

/* Makes the artifact of a file, with tensors in the arena: OK; REPORTED: there is no such file, and the error says why;
 * FAILED: this is worth a note, too. `made` is the product's object, `what` the file's own. */
typedef enum outcome product_maker(const struct product_input *input, const void *made, const void *what,
                                   struct arena *arena, struct artifact *ret_artifact, struct error *error);

/* Appends the text of a file; the result is as for a maker. */
typedef enum outcome product_writer(const struct product_input *input, const void *made, const void *what,
                                    struct buffer *out, struct error *error);

/* A file: one of make, artifact, write, source and side; write may have a side file, too, which the text is made from.
 */
struct product_file {
    const char *path; /* below the product's root; with a '/' at its end a directory, which may stay empty */
    product_maker *make;
    const struct artifact *artifact; /* in the list's arena; not for artifact_free() */
    product_writer *write;
    struct source *source;                  /* a weights file of the checkpoint, which it shows unchanged */
    const struct side_file *side;           /* of the checkpoint, which it shows unchanged */
    const void *what;                       /* static, or in the list's arena */
    const struct product *of;               /* whose object the file is made from; NULL: the product that lists it */
    bool needs_no_object;                   /* it is made from `what` and the input alone */
    bool of_weights;                        /* a text is made from the weights files alone, not from the whole model */
    const char *alias;                      /* another name, which is not listed; NULL: none */
    struct source *may_be;                  /* the source that the file may turn out to be; NULL: none */
    struct source *(*is)(const void *made); /* returns the source that it is; NULL: it is made. May be NULL */
};

struct product_hint {
    const char *path, *text;
    const char *place; /* of an equivalent file; NULL: none */
};

struct product_release {
    void (*release)(void *context);
    void *context;
};

/* The files of a product, and what to say about paths that it does not have (tree_add_hint()). */
struct product_list {
    struct arena *arena;
    struct arena *scratch; /* of the arrays here, which the files are copied from */
    struct product_file *files;
    size_t n_files;
    struct product_hint *hints;
    size_t n_hints;
    struct product_release *releases;
    size_t n_releases;
};

void product_add(struct product_list *list, struct product_file file);

/* What a file of weights that product_add_shards() lists is made from. */
struct product_shard {
    const void *of; /* which shards: the caller's, static or in the list's arena */
    size_t number;  /* from 0 */
};

/* Adds the files of weights in a folder, "" or "hf/", each made from a struct product_shard. */
void product_add_shards(struct product_list *list, const char *folder, const struct shards *shards, const void *of,
                        product_maker *make);

/* Say what a user may look for in vain, and where an equivalent file is (tree_add_place()). All texts are static, or in
 * the list's arena. */
void product_hint(struct product_list *list, const char *path, const char *text);
void product_place(struct product_list *list, const char *path, const char *place, const char *why);

/* Calls release(context) once no file of the list is read any more, before the product's object is freed. */
void product_on_free(struct product_list *list, void (*release)(void *context), void *context);

/* When the files are listed: while the tree is made, or at the first look into the root or into a variant. */
enum product_opening { OPENED_WITH_TREE, OPENED_AT_ROOT, OPENED_AT_VARIANT };

/* Takes a variant: a directory in the root, or below it, "oneshot/W4A16"; copies the name. */
typedef void product_found(void *context, const char *name, const void *variant, bool is_listed);

struct product {
    const char *name;    /* "sdcpp" */
    const char *summary; /* for the documentation: "sdcpp/: a diffusion model in the GGUF files of ..." */
    const char *root;    /* the directory of all files; NULL: the root of the tree */
    enum product_opening opened;
    bool needs_no_weights; /* it may be offered for a checkpoint without weights files, or with few of its tensors */

    /* Reports whether the checkpoint has such files; else says why not, if users may look for them. */
    bool (*is_offered)(const struct product_input *input, struct product_list *hints);

    /* Finds the variants, which are static or in the arena; NULL: the files are in the root. */
    void (*variants)(const struct product_input *input, struct arena *arena, product_found *found, void *context);

    /* Makes the object before the first file is planned. There is none if this is NULL. */
    product_object_maker *make;

    /* Makes an object for planning the sizes of files alone, in less time; NULL: there is none now. A file made from it
     * is planned again, from the whole object, before it is read. May be NULL. */
    product_object_maker *make_for_sizes;

    /* Returns the inputs of the files made from the object, if there are more than the checkpoint's; they live as long
     * as the object. `n_sources` is 0 if there are not. May be NULL. */
    struct origin (*origin)(const void *made);

    /* Reports whether the names of files follow from the object, which is then made before them; NULL: they do not. */
    bool (*needs_object)(const struct product_input *input);

    /* Lists the files, of a variant. `made` is NULL unless the object is needed and can be made. Fails the whole tree,
     * if the files are listed with it: only for what the user asked for by name. */
    bool (*files)(const struct product_input *input, const void *made, const void *variant, struct product_list *list,
                  struct error *error);

    /* For a directory that an engine loads as a model: how `wfs serve` names the variants as models of their own, the
     * source's name, this ending and the variant's name: "-MLX-"; and the command that runs one, without its name:
     * "mlx_lm.server --model". NULL: it does not offer them, or no command is known. */
    const char *ending, *command;

    /* The beginning of the note if there is no object, and its subject: "left out"; NULL: the reason stays with each
     * file. */
    const char *(*left_out)(const struct product_input *input);
    enum subject left_out_subject;
};

/* For products that are directories which a loader opens: is_offered(). A GGUF of a diffusion model has none, because
 * no config.json follows from its keys. */
bool product_is_for_loaders(const struct product_input *input, struct product_list *hints);

/* For products whose files always depend on the object: needs_object(). */
bool product_needs_object(const struct product_input *input);

/* For directories that from_pretrained() opens, the files beside the weights (hf.c). */

/* Adds the source's side files, without the description of a packing, and for a GGUF the files made from its keys.
 * Names that are taken stay as they are. `prefix` begins the path of each: "". */
void hf_add_beside(const struct product_input *input, const char *prefix, struct product_list *list);

/* Adds chat_template.jinja if the source has the template within another file. */
void hf_add_template(const struct product_input *input, struct product_list *list);

extern const struct product adapter_product, bitsandbytes_product, comfy_product, compressed_tensors_product,
    ctranslate2_product, diffusers_product, diffusion_gguf_product, fp8_blocks_product, gguf_product, hf_product,
    layouts_product, mlx_product, mmproj_product, modelopt_product, mtp_product, sdcpp_product, single_file_product,
    whisper_product;
