/* model.gguf, gguf/ and gguf/converter/: what the converter and llama-quantize would have written.
 *
 * The model behind all of them is made when the first is asked for, and kept: its keys and views are shared. */
#include "fs/tree/content.h"

#include "models/model.h"
#include "models/quantize.h"

#include <pthread.h>
#include <stdio.h>

struct gguf_files {
    struct tree *tree;
    pthread_mutex_t making; /* of the model, for which all files wait */
    struct gguf_model *model;
    bool failed; /* no GGUF can be made: said once */
};

/* One output: of the converter, where `outtype` is set, or of llama-quantize. */
struct gguf_output {
    struct gguf_files *files;
    const char *outtype;
    const struct mix *mix;
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

/* The model, or NULL; why there is none is noted once, for all the files that are missing because of it. */
static const struct gguf_model *model_of(struct gguf_files *files)
{
    struct error error;
    pthread_mutex_lock(&files->making);
    if (files->model == NULL && !files->failed) {
        files->model = gguf_model_new(tree_checkpoint(files->tree), &error);
        files->failed = files->model == NULL;
        if (files->failed)
            checkpoint_note(tree_checkpoint(files->tree), "model.gguf and gguf/ are left out: %s", error.message);
    }
    pthread_mutex_unlock(&files->making);
    return files->model;
}

/* A plain container knows nothing that llama-quantize could go by; its note says so already. */
static bool make_plan(const struct gguf_output *output, const struct gguf_model *model, struct gguf_plan *ret_plan,
                      struct error *error)
{
    if (output->mix == NULL)
        return gguf_plan_converter(model, output->outtype, ret_plan, error);
    if (model->family == NULL)
        return error_set(error, "%s", "");
    return gguf_plan_quantize(model, output->mix, &tree_options(output->files->tree)->quantize, ret_plan, error);
}

static void add_spans(struct vfile_builder *builder, const struct gguf_plan *plan, const struct gguf_layout *layout)
{
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct gguf_piece *piece = &layout->pieces[i];
        if (piece->bytes != NULL)
            vfile_add_literal(builder, piece->bytes, piece->length);
        else
            vfile_add_view(builder, piece->view, encoding_of(&u8_dtype));
    }
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct gguf_place *place = &plan->places[i];
        vfile_add_zeros(builder, layout->data + place->offset - builder->size);
        vfile_add_view(builder, tensor_view(place->tensor, builder->arena), encoding_of(place->type));
    }
    vfile_add_zeros(builder, layout->size - builder->size);
}

static bool plan(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct gguf_output *output = context;
    const struct gguf_model *model = model_of(output->files);
    struct gguf_plan plan;
    struct gguf_layout layout;
    if (model == NULL)
        return error_set(error, "%s", "");
    if (!make_plan(output, model, &plan, error))
        return false;
    bool laid_out = gguf_lay_out(&plan, arena, &layout, error);
    if (laid_out) {
        struct vfile_builder builder = {.arena = arena, .capacity = layout.n_pieces + 2 * plan.n_tensors + 1};
        builder.origin = origin_of_model(tree_checkpoint(output->files->tree), arena);
        builder.spans = arena_array(arena, builder.capacity, sizeof *builder.spans);
        add_spans(&builder, &plan, &layout);
        *ret_file = vfile_finish(&builder);
    }
    gguf_plan_free(&plan);
    return laid_out;
}

static void release(void *context)
{
    struct gguf_files *files = context;
    gguf_model_free(files->model);
    pthread_mutex_destroy(&files->making);
}

static void add_output(struct gguf_files *files, node_id directory, const char *name, const char *outtype, const struct mix *mix)
{
    struct gguf_output *output = arena_alloc(tree_arena(files->tree), sizeof *output);
    *output = (struct gguf_output){files, outtype, mix};
    tree_add_file(files->tree, directory, name, plan, output);
}

static bool add(struct tree *tree, struct error *error)
{
    (void)error;
    struct gguf_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    *files = (struct gguf_files){.tree = tree};
    pthread_mutex_init(&files->making, NULL);
    tree_on_free(tree, release, files);
    gguf_note_family(tree_checkpoint(tree));
    node_id directories[DIRECTORIES] = {TREE_ROOT};
    directories[GGUF] = tree_add_directory(tree, TREE_ROOT, "gguf");
    directories[GGUF_CONVERTER] = tree_add_directory(tree, directories[GGUF], "converter");
    for (size_t i = 0; i < sizeof converter_outputs / sizeof *converter_outputs; i++)
        add_output(files, directories[converter_outputs[i].directory], converter_outputs[i].name, converter_outputs[i].outtype,
                   NULL);
    for (const struct mix *mix = mixes; mix->name != NULL; mix++) {
        char name[64];
        snprintf(name, sizeof name, "model-%s.gguf", mix->name);
        add_output(files, directories[GGUF], name, NULL, mix);
    }
    return true;
}

const struct content gguf_files_content = {
    .name = "gguf",
    .summary = "model.gguf in the source's own precision; gguf/: F32, F16, BF16 and every quantization",
    .add = add,
};
