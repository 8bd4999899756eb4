/* model.gguf, gguf/, gguf/converter/ and gguf/split/: the files that the converter, llama-quantize and llama-gguf-split
 * would write.
 *
 * The first plan makes the model for all these files, which share its keys and views. A GGUF source needs no
 * conversion: model.gguf is the source itself, or its splits joined into one file. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/nodes.h"
#include "fs/tree/target_files.h"

#include "models/convert/from_gguf.h"
#include "models/diffusion/convert.h"
#include "models/diffusion/state_dict.h"
#include "models/facts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One shard of an output. */
struct gguf_shard {
    struct tree *tree;
    const struct artifact *whole;
    enum splitter splitter;
    const size_t *ends;
    size_t n_shards, number;
};

/* Notes tensors without importances: llama-quantize accepts another model's matrix silently if no type needs one. */
static void note_unweighed(const struct gguf_edition *edition, const struct quantize_options *options)
{
    size_t n;
    const char *first = NULL;
    size_t n_unweighed = options->imatrix != NULL ? quantize_unweighed(edition, options, &n, &first) : 0;
    if (n_unweighed == 0)
        return;
    if (n_unweighed == n)
        checkpoint_note(
            edition->model->checkpoint, SUBJECT_QUANTIZED,
            "%s has no data for any quantized tensor and may be for another model: all are quantized without it",
            options->imatrix->file);
    else
        checkpoint_note(edition->model->checkpoint, SUBJECT_QUANTIZED,
                        "%s has no data for '%s' and %zu more of %zu tensors: they are quantized without it",
                        options->imatrix->file, first, n_unweighed - 1, n);
}

static const void *make_model(void *context, struct arena *arena, struct error *error)
{
    const struct content_options *options = tree_options(context);
    struct gguf_model *model = (options->request.kept_header != NULL ? gguf_model_new_without_vocab : gguf_model_new)(
        tree_checkpoint(context), &options->request.references, error);
    const struct quantize_outline *outline = model != NULL ? quantize_outline_of(model, arena) : NULL;
    if (outline != NULL)
        note_unweighed(&(struct gguf_edition){model, &options->request.edits, outline}, &options->request.quantize);
    return gguf_edition_new(arena, model, &options->request.edits, outline);
}

/* Makes the model that keeps packed weights as blocks. */
static const void *make_repacked(void *context, struct arena *arena, struct error *error)
{
    const struct content_options *options = tree_options(context);
    struct gguf_model *model = gguf_model_new_repacked(tree_checkpoint(context), &options->request.references, error);
    return gguf_edition_new(arena, model, &options->request.edits, NULL);
}

/* Reports whether model.gguf is the source itself. */
static bool is_source_shown(const struct tree *tree)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    bool is_merged = checkpoint_base(checkpoint, BASE_ADAPTER) != NULL;
    return facts_of(checkpoint).keys != NULL && checkpoint->n_sources == 1 && !is_merged &&
           gguf_edits_are_none(&tree_options(tree)->request.edits);
}

static enum outcome plan_source(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(context);
    *ret_file = vfile_of_source(arena, checkpoint->sources[0], origin_of_weights(checkpoint));
    return OK;
}

static enum outcome plan_shard(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct gguf_shard *shard = context;
    struct artifact artifact;
    if (tree_options(shard->tree)->request.kept_header != NULL) {
        error_set(error, "only %s has the header that was kept", tree_options(shard->tree)->request.kept_header->path);
        return FAILED;
    }
    split_artifact(shard->whole, shard->splitter, shard->ends, shard->n_shards, shard->number, &artifact);
    enum outcome outcome = vfile_of_artifact(&artifact, tree_origin_of_model(shard->tree), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static void release_artifact(void *context)
{
    artifact_free(context);
}

static bool split_is_asked(const struct tree *tree)
{
    const struct split_rule *rule = &tree_options(tree)->request.split;
    return rule->max_bytes != 0 || rule->max_tensors != 0;
}

/* Reports whether quantized files are split where the source is. */
static bool keeps_split(const struct tree *tree)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    return tree_options(tree)->request.quantize.keep_split && facts_of(checkpoint).keys != NULL &&
           checkpoint->n_sources > 1;
}

/* Adds the splits of a target's file to gguf/split/. Their names need their number, so the artifact is made now. */
static void add_shards(struct target_files *files, const struct target *target)
{
    struct tree *tree = files->tree;
    struct arena *arena = tree_arena(tree);
    bool is_kept = target->make == target_quantize && keeps_split(tree);
    struct artifact *whole = arena_alloc(arena, sizeof *whole);
    enum splitter splitter = is_kept ? SPLITTER_QUANTIZE : SPLITTER_GGUF_SPLIT;
    struct quantize_options options = tree_options(tree)->request.quantize;
    struct error error;
    size_t n_shards = 0;
    options.keep_split = is_kept;
    if ((!is_kept && !split_is_asked(tree)) || target_files_make(files, target, &options, whole, &error) != OK)
        return;
    tree_on_free(tree, release_artifact, whole);
    const char *name = strrchr(target->path, '/') != NULL ? strrchr(target->path, '/') + 1 : target->path;
    size_t *ends = is_kept ? gguf_source_ends(tree_checkpoint(tree), whole, &n_shards)
                           : split_ends(whole, &tree_options(tree)->request.split, &n_shards, &error);
    if (ends == NULL)
        checkpoint_note(tree_checkpoint(tree), SUBJECT_SOURCE, "gguf/split: %s is left out: %s", name, error.message);
    const size_t *kept = arena_copy(arena, ends, n_shards * sizeof *ends);
    free(ends);
    node_id directory = tree_add_directory(tree, tree_add_directory(tree, TREE_ROOT, "gguf"), "split");
    for (size_t i = 0; i < n_shards; i++) {
        struct gguf_shard *shard = arena_alloc(arena, sizeof *shard);
        *shard = (struct gguf_shard){tree, whole, splitter, kept, n_shards, i};
        const char *file_name = arena_printf(arena, "%.*s-%05zu-of-%05zu.gguf", (int)(strlen(name) - strlen(".gguf")),
                                             name, i + 1, n_shards);
        tree_add_file(tree, directory, file_name, plan_shard, shard);
    }
}

/* Adds the outputs of the converter, or those made from a GGUF. */
static void add_targets(struct target_files *files, enum target_model of)
{
    struct tree *tree = files->tree;
    if (is_source_shown(tree)) {
        tree_add_file(tree, TREE_ROOT, "model.gguf", plan_source, tree);
        tree_expect_whole(tree, tree_checkpoint(tree)->sources[0]);
    }
    target_files_add_all(files, of);
    for (const struct target *target = targets; target->path != NULL; target++)
        if (target->of == of)
            add_shards(files, target);
}

static void add_mixes(struct target_files *files, enum target_model of, node_id directory)
{
    struct arena *arena = tree_arena(files->tree);
    for (const struct mix *mix = mixes; mix->name != NULL; mix++) {
        struct target *target = arena_alloc(arena, sizeof *target);
        *target = (struct target){arena_printf(arena, "gguf/model-%s.gguf", mix->name), of, target_quantize, mix->name};
        target_files_add(files, target);
        add_shards(files, target);
        if (mix->alias != NULL)
            tree_add_alias(files->tree, directory, strchr(target->path, '/') + 1,
                           arena_printf(arena, "model-%s.gguf", mix->alias));
    }
}

static void note_options(const struct tree *tree)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    const struct quantize_options *options = &tree_options(tree)->request.quantize;
    if (options->keep_split && !keeps_split(tree))
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "keep-split: the source is not a split GGUF");
    if (options->imatrix != NULL && options->imatrix->n_unseen > 0)
        checkpoint_note(checkpoint, SUBJECT_QUANTIZED,
                        "%s has no counts for %" PRIu64 " matrices or experts: all their columns have equal weight",
                        options->imatrix->file, options->imatrix->n_unseen);
    if (options->pruned.n_layers > 0)
        checkpoint_note(checkpoint, SUBJECT_QUANTIZED,
                        "prune-layers: each layer has, as in what llama-quantize writes, "
                        "the values of the layer that had its new number");
}

const struct gguf_model *tree_model(const struct tree *tree)
{
    struct error noted;
    const struct gguf_edition *edition =
        tree->model_files != NULL ? target_files_edition(tree->model_files, &noted) : NULL;
    return edition != NULL ? edition->model : NULL;
}

static const void *make_diffusion_model(void *context, struct arena *arena, struct error *error)
{
    struct gguf_model *model = diffusion_model_new(tree_checkpoint(context), error);
    return gguf_edition_new(arena, model, &tree_options(context)->request.edits, NULL);
}

static struct target_files *new_files(struct tree *tree, once_maker *make, const char *left_out)
{
    struct target_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    *files = (struct target_files){.tree = tree, .make = make, .context = tree, .left_out = left_out};
    target_files_init(files);
    return files;
}

/* Reports whether an option asks for something that ComfyUI-GGUF's llama-quantize is never asked for. */
static bool asks_llama_quantize(const struct quantize_options *options)
{
    return options->imatrix != NULL || options->pure || options->leave_output_tensor || options->tensor_types != NULL ||
           options->token_embedding_type != NULL || options->output_tensor_type != NULL || options->keep_split ||
           options->pruned.n_layers > 0 || options->q4_0_rule != NULL;
}

static void add_diffusion_model(struct tree *tree)
{
    target_files_add_all(new_files(tree, make_diffusion_model, "model.gguf and gguf/ are"), OF_DIFFUSION_MODEL);
    if (asks_llama_quantize(&tree_options(tree)->request.quantize) || split_is_asked(tree))
        checkpoint_note(tree_checkpoint(tree), SUBJECT_QUANTIZED,
                        "the options of llama-quantize and split= have no effect on a diffusion model");
    tree_add_hint(tree, "gguf/model-*.gguf", "ComfyUI-GGUF's llama-quantize does not write this type");
}

static bool add(struct tree *tree, struct error *error)
{
    if (state_dict_of(tree_checkpoint(tree)) != NULL) {
        add_diffusion_model(tree);
        return true;
    }
    if (facts_of(tree_checkpoint(tree)).is_adapter) {
        tree_add_hint(tree, "model.gguf", "the source is a LoRA adapter, which becomes adapter.gguf");
        tree_add_hint(tree, "gguf/model-*.gguf",
                      "the source is a LoRA adapter, and adapters are not quantized; -o lora= merges it with its base");
        return true;
    }
    bool is_gguf = facts_of(tree_checkpoint(tree)).keys != NULL;
    enum target_model of = is_gguf ? OF_GGUF : OF_CHECKPOINT;
    struct target_files *files =
        new_files(tree, make_model, is_source_shown(tree) ? "gguf/ is" : "model.gguf and gguf/ are");
    tree->model_files = files;
    gguf_note_family(tree_checkpoint(tree), &tree_options(tree)->request.references);
    node_id directory = tree_add_directory(tree, TREE_ROOT, "gguf");
    note_options(tree);
    if (split_is_asked(tree) || keeps_split(tree))
        tree_add_directory(tree, directory, "split");
    else
        tree_add_hint(tree, "gguf/split", "-o split=SIZE|N shows GGUF files in shards");
    if (!is_gguf)
        tree_add_directory(tree, directory, "converter");
    add_targets(files, of);
    if (!is_gguf && shown_tensors_of(tree_checkpoint(tree))->unpacked != NULL)
        target_files_add_all(new_files(tree, make_repacked, NULL), OF_PACKED_CHECKPOINT);
    add_mixes(files, of, directory);
    return true;
}

const struct content gguf_files_content = {
    .name = "gguf",
    .summary = "model.gguf in the source's own precision; gguf/: F32, F16, BF16 and every quantization",
    .of_weights = true,
    .add = add,
};
