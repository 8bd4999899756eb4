/* model.gguf, gguf/, gguf/converter/ and gguf/split/: what the converter, llama-quantize and llama-gguf-split would
 * have written.
 *
 * The model that all of them are made of is made when the first is asked for, and kept: its keys and views are shared.
 * Of a source that is a GGUF already there is nothing for the converter to do: model.gguf is the source itself, or its
 * parts in one file. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/gguf_file.h"
#include "fs/tree/lazy.h"

#include "models/adapter.h"
#include "models/from_gguf.h"
#include "models/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gguf_files {
    struct tree *tree;
    struct lazy model, repacked; /* a gguf_model each; the latter has packed weights as blocks */
};

/* One output: of the converter, where `outtype` is set; of llama-quantize, where `mix` is; else the source's own GGUF.
 */
struct gguf_output {
    struct gguf_files *files;
    const char *outtype;
    const struct mix *mix;
    bool keep_split;  /* as the source has its tensors and parts */
    bool is_repacked; /* of the model with packed weights as blocks */
};

/* A part of one. */
struct gguf_part {
    struct gguf_files *files;
    const struct gguf_plan *whole;
    enum splitter splitter;
    const size_t *ends;
    size_t n_parts, number;
};

enum directory { TOP, GGUF, GGUF_CONVERTER, DIRECTORIES };

static const struct {
    enum directory directory;
    const char *name, *outtype;
} converter_outputs[] = {
    {TOP, "model.gguf", "auto"},
    {GGUF, "model-F32.gguf", "f32"},
    {GGUF, "model-F16.gguf", "f16"},
    {GGUF, "model-BF16.gguf", "bf16"},
    {GGUF_CONVERTER, "model-q8_0.gguf", "q8_0"},
    {GGUF_CONVERTER, "model-tq1_0.gguf", "tq1_0"},
    {GGUF_CONVERTER, "model-tq2_0.gguf", "tq2_0"},
};

/* A matrix of another model is taken without a word where no type demands one: so there is one here. */
static void note_unweighed(const struct gguf_model *model, const struct quantize_options *options)
{
    size_t n;
    const char *first = NULL;
    size_t n_unweighed = options->imatrix != NULL ? quantize_unweighed(model, options, &n, &first) : 0;
    if (n_unweighed == 0)
        return;
    if (n_unweighed == n)
        checkpoint_note(model->checkpoint,
                        "gguf/: %s says nothing of any tensor that is quantized, and may be of another model: all are "
                        "quantized as without it",
                        options->imatrix->file);
    else
        checkpoint_note(
            model->checkpoint,
            "gguf/: %s says nothing of '%s', nor of %zu more of %zu tensors: they are quantized as without it",
            options->imatrix->file, first, n_unweighed - 1, n);
}

static void *make_model(void *context, struct error *error)
{
    const struct tree *tree = ((const struct gguf_files *)context)->tree;
    struct gguf_model *model = gguf_model_new(tree_checkpoint(tree), error);
    if (model == NULL)
        return NULL;
    model->edits = &tree_options(tree)->edits;
    note_unweighed(model, &tree_options(tree)->quantize);
    return model;
}

/* Whether model.gguf is the source itself. */
static bool is_source_shown(const struct tree *tree)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    bool is_merged = checkpoint->kept != NULL;
    return gguf_is_source(checkpoint) && checkpoint->n_sources == 1 && !is_merged &&
           gguf_edits_are_none(&tree_options(tree)->edits);
}

/* The model, or NULL; why there is none is noted once, for all the files that are missing because of it. */
static const struct gguf_model *model_of(struct gguf_files *files)
{
    struct error error;
    const struct checkpoint *checkpoint = tree_checkpoint(files->tree);
    const struct gguf_model *model = lazy_get(&files->model, make_model, files, &error);
    if (error.message[0] != '\0')
        checkpoint_note(checkpoint, "%s left out: %s",
                        is_source_shown(files->tree) ? "gguf/ is" : "model.gguf and gguf/ are", error.message);
    return model;
}

/* What llama-quantize would write. A plain container knows nothing that the tool could go by. What keeps the tool from
 * all GGUFs of its kind is noted once. */
static bool plan_quantize(const struct gguf_output *output, const struct gguf_model *model, struct gguf_plan *ret_plan,
                          struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(output->files->tree);
    struct quantize_options options = tree_options(output->files->tree)->quantize;
    options.keep_split = output->keep_split;
    if (model->is_gguf && !quantize_takes(model, error)) {
        checkpoint_note(checkpoint, "gguf/ is left out: %s", error->message);
        return error_set(error, "%s", "");
    }
    bool known = model->family != NULL || model->is_gguf;
    if (known && gguf_plan_quantize(model, output->mix, &options, ret_plan, error))
        return true;
    if (model->is_quantized && !options.requantize)
        checkpoint_note(checkpoint, "gguf/: the source is quantized already; -o requantize shows it quantized again");
    else if (known && options.imatrix == NULL && mix_wants_imatrix(output->mix))
        checkpoint_note(checkpoint,
                        "gguf/: IQ1_S to IQ2_M, IQ3_XXS, IQ3_XS and Q2_K_S need an importance matrix: -o imatrix=FILE");
    else if (known)
        return false;
    else
        checkpoint_note(checkpoint, "gguf/: nothing is quantized, since no family is known for the model");
    return error_set(error, "%s", "");
}

static void *make_repacked(void *context, struct error *error)
{
    const struct tree *tree = ((const struct gguf_files *)context)->tree;
    struct gguf_model *model = gguf_model_new_repacked(tree_checkpoint(tree), error);
    if (model != NULL)
        model->edits = &tree_options(tree)->edits;
    return model;
}

/* The model with packed weights as blocks, or NULL: why there is no other has been said. */
static const struct gguf_model *repacked_of(struct gguf_files *files)
{
    struct error unsaid;
    return lazy_get(&files->repacked, make_repacked, files, &unsaid);
}

static bool make_plan(const struct gguf_output *output, struct gguf_plan *ret_plan, struct error *error)
{
    const struct gguf_model *model = output->is_repacked ? repacked_of(output->files) : model_of(output->files);
    if (model == NULL)
        return error_set(error, "%s", "");
    if (output->mix != NULL)
        return plan_quantize(output, model, ret_plan, error);
    if (output->outtype != NULL)
        return gguf_plan_converter(model, output->outtype, ret_plan, error);
    gguf_plan_whole(model, ret_plan);
    return true;
}

static bool is_source_itself(const struct gguf_output *output)
{
    return output->outtype == NULL && output->mix == NULL && is_source_shown(output->files->tree);
}

static bool plan_output(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct gguf_output *output = context;
    struct gguf_plan plan;
    if (is_source_itself(output)) {
        const struct checkpoint *checkpoint = tree_checkpoint(output->files->tree);
        *ret_file = vfile_of_source(arena, checkpoint->sources[0], origin_of_weights(checkpoint));
        return true;
    }
    if (!make_plan(output, &plan, error))
        return false;
    bool rendered =
        gguf_file_plan(&plan, origin_of_model(tree_checkpoint(output->files->tree), arena), arena, ret_file, error);
    gguf_plan_free(&plan);
    return rendered;
}

static bool plan_part(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct gguf_part *part = context;
    struct gguf_plan plan;
    split_plan(part->whole, part->splitter, part->ends, part->n_parts, part->number, &plan);
    bool rendered =
        gguf_file_plan(&plan, origin_of_model(tree_checkpoint(part->files->tree), arena), arena, ret_file, error);
    gguf_plan_free(&plan);
    return rendered;
}

static void release(void *context)
{
    struct gguf_files *files = context;
    gguf_model_free(files->model.value);
    gguf_model_free(files->repacked.value);
    lazy_destroy(&files->model);
    lazy_destroy(&files->repacked);
}

static void release_plan(void *context)
{
    gguf_plan_free(context);
}

/* The parts of an output called `name`; how many there are must be known to name them, so it is planned now. */
static void add_parts(const struct gguf_output *output, node_id directory, const char *name)
{
    struct tree *tree = output->files->tree;
    struct arena *arena = tree_arena(tree);
    struct gguf_plan *whole = arena_alloc(arena, sizeof *whole);
    enum splitter splitter = output->keep_split ? SPLITTER_QUANTIZE : SPLITTER_GGUF_SPLIT;
    struct error error;
    size_t n_parts = 0;
    if (!make_plan(output, whole, &error))
        return;
    tree_on_free(tree, release_plan, whole);
    size_t *ends = splitter == SPLITTER_QUANTIZE ? gguf_source_ends(tree_checkpoint(tree), whole, &n_parts)
                                                 : split_ends(whole, &tree_options(tree)->split, &n_parts, &error);
    if (ends == NULL)
        checkpoint_note(tree_checkpoint(tree), "gguf/split: %s is left out: %s", name, error.message);
    const size_t *kept = arena_copy(arena, ends, n_parts * sizeof *ends);
    free(ends);
    for (size_t i = 0; i < n_parts; i++) {
        struct gguf_part *part = arena_alloc(arena, sizeof *part);
        *part = (struct gguf_part){output->files, whole, splitter, kept, n_parts, i};
        const char *part_name = arena_printf(arena, "%.*s-%05zu-of-%05zu.gguf", (int)(strlen(name) - strlen(".gguf")),
                                             name, i + 1, n_parts);
        tree_add_file(tree, directory, part_name, plan_part, part);
    }
}

static bool split_is_asked(const struct tree *tree)
{
    const struct split_rule *rule = &tree_options(tree)->split;
    return rule->max_bytes != 0 || rule->max_tensors != 0;
}

/* Whether quantized files have parts where the source has. */
static bool keeps_split(const struct tree *tree)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    return tree_options(tree)->quantize.keep_split && gguf_is_source(checkpoint) && checkpoint->n_sources > 1;
}

static void add_output(struct gguf_files *files, node_id directory, node_id split, const char *name,
                       const char *outtype, const struct mix *mix)
{
    struct gguf_output *output = arena_alloc(tree_arena(files->tree), sizeof *output);
    *output = (struct gguf_output){.files = files, .outtype = outtype, .mix = mix};
    tree_add_file(files->tree, directory, name, plan_output, output);
    if (split == 0)
        return;
    struct gguf_output whole = *output;
    whole.keep_split = mix != NULL && keeps_split(files->tree);
    if (whole.keep_split || split_is_asked(files->tree))
        add_parts(&whole, split, name);
}

static void add_repacked(struct gguf_files *files, node_id directory)
{
    struct gguf_output *output = arena_alloc(tree_arena(files->tree), sizeof *output);
    *output = (struct gguf_output){.files = files, .outtype = "auto", .is_repacked = true};
    tree_add_file(files->tree, directory, "model-repacked.gguf", plan_output, output);
}

static void add_mixes(struct gguf_files *files, node_id directory, node_id split, const struct mix *mix)
{
    struct arena *arena = tree_arena(files->tree);
    for (; mix->name != NULL; mix++) {
        const char *name = arena_printf(arena, "model-%s.gguf", mix->name);
        add_output(files, directory, split, name, NULL, mix);
        if (mix->alias != NULL)
            tree_add_alias(files->tree, directory, name, arena_printf(arena, "model-%s.gguf", mix->alias));
    }
}

static bool add(struct tree *tree, struct error *error)
{
    (void)error;
    if (adapter_is_source(tree_checkpoint(tree))) {
        tree_add_hint(tree, "model.gguf", "the source is a LoRA adapter, which becomes adapter.gguf");
        return true;
    }
    struct gguf_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    *files = (struct gguf_files){.tree = tree};
    lazy_init(&files->model);
    lazy_init(&files->repacked);
    tree_on_free(tree, release, files);
    gguf_note_family(tree_checkpoint(tree));
    node_id directories[DIRECTORIES] = {TREE_ROOT}, split = 0;
    directories[GGUF] = tree_add_directory(tree, TREE_ROOT, "gguf");
    if (tree_options(tree)->quantize.keep_split && !keeps_split(tree))
        checkpoint_note(tree_checkpoint(tree), "keep-split: the source is not a GGUF in parts");
    const struct imatrix *imatrix = tree_options(tree)->quantize.imatrix;
    if (imatrix != NULL && imatrix->n_unseen > 0)
        checkpoint_note(tree_checkpoint(tree),
                        "gguf/: %s saw nothing of %" PRIu64 " matrices or experts: all their columns count alike",
                        imatrix->file, imatrix->n_unseen);
    if (tree_options(tree)->quantize.pruned.n_layers > 0)
        checkpoint_note(tree_checkpoint(tree), "gguf/: prune-layers: each layer has, as in what llama-quantize writes, "
                                               "the values of the layer that had its new number");
    if (split_is_asked(tree) || keeps_split(tree))
        split = tree_add_directory(tree, directories[GGUF], "split");
    else
        tree_add_hint(tree, "gguf/split", "-o split=SIZE|N shows GGUF files in parts");
    if (gguf_is_source(tree_checkpoint(tree))) {
        add_output(files, TREE_ROOT, split, "model.gguf", NULL, NULL);
        add_mixes(files, directories[GGUF], split, plain_mixes);
    } else {
        directories[GGUF_CONVERTER] = tree_add_directory(tree, directories[GGUF], "converter");
        for (size_t i = 0; i < sizeof converter_outputs / sizeof *converter_outputs; i++)
            add_output(files, directories[converter_outputs[i].directory], split, converter_outputs[i].name,
                       converter_outputs[i].outtype, NULL);
        if (tree_source_shown(tree)->unpacked != NULL)
            add_repacked(files, directories[GGUF]);
    }
    add_mixes(files, directories[GGUF], split, mixes);
    return true;
}

const struct content gguf_files_content = {
    .name = "gguf",
    .summary = "model.gguf in the source's own precision; gguf/: F32, F16, BF16 and every quantization",
    .of_weights = true,
    .add = add,
};
