/* model.gguf, gguf/, gguf/converter/ and gguf/split/: the files that the converter, llama-quantize and llama-gguf-split
 * would write.
 *
 * All files share a model, with its keys and views. A GGUF source needs no conversion: model.gguf is the source itself,
 * or its splits joined into one file. */
#include "base/text.h"
#include "models/convert/model.h"
#include "models/diffusion/state_dict.h"
#include "models/facts.h"
#include "models/shown_tensors.h"
#include "products/gguf/target_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_gguf(const struct product_input *input)
{
    return facts_of(input->checkpoint).keys != NULL;
}

/* The models. */

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

static const void *edition_of(const struct product_input *input, struct gguf_model *model, struct arena *arena)
{
    const struct request *request = input->request;
    const struct quantize_outline *outline = model != NULL ? quantize_outline_of(model, arena) : NULL;
    if (outline != NULL)
        note_unweighed(&(struct gguf_edition){model, &request->edits, outline}, &request->quantize);
    return gguf_edition_new(arena, model, &request->edits, outline);
}

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct request *request = input->request;
    return edition_of(input,
                      (request->kept_header != NULL ? gguf_model_new_without_vocab
                                                    : gguf_model_new)(input->checkpoint, &request->references, error),
                      arena);
}

/* Makes the model that keeps packed weights as blocks. */
static const void *make_repacked(const struct product_input *input, struct arena *arena, struct error *error)
{
    struct gguf_model *model = gguf_model_new_repacked(input->checkpoint, &input->request->references, error);
    return gguf_edition_new(arena, model, &input->request->edits, NULL);
}

/* Reports whether the header of each file has just the keys of the model, as converter and llama-quantize write them.
 */
static bool has_usual_headers(const struct request *request)
{
    return request->kept_header == NULL && !request->shares_blocks && gguf_edits_are_none(&request->edits);
}

static const void *make_repacked_for_sizes(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct request *request = input->request;
    return has_usual_headers(request)
               ? gguf_edition_new(arena, gguf_model_new_for_sizes(input->checkpoint, &request->references, true),
                                  &request->edits, NULL)
               : NULL;
}

/* Listed by gguf_product, between its own files. */
static const struct product repacked_product = {
    .name = "repacked", .make = make_repacked, .make_for_sizes = make_repacked_for_sizes};

/* Splits. */

static bool split_is_asked(const struct product_input *input)
{
    const struct split_rule *rule = &input->request->split;
    return rule->max_bytes != 0 || rule->max_tensors != 0;
}

/* Reports whether quantized files are split where the source is. */
static bool keeps_split(const struct product_input *input)
{
    return input->request->quantize.keep_split && is_gguf(input) && input->checkpoint->n_sources > 1;
}

static bool has_splits(const struct product_input *input)
{
    return split_is_asked(input) || keeps_split(input);
}

/* The names of splits follow from the whole header. */
static const void *make_for_sizes(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct request *request = input->request;
    return has_usual_headers(request) && !has_splits(input)
               ? edition_of(input, gguf_model_new_for_sizes(input->checkpoint, &request->references, false), arena)
               : NULL;
}

/* One split of an output. */
struct gguf_split {
    const struct artifact *whole;
    enum splitter splitter;
    const size_t *ends;
    size_t n_splits, number;
};

static enum outcome make_split(const struct product_input *input, const void *made, const void *what,
                               struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    const struct gguf_split *split = what;
    if (input->request->kept_header != NULL) {
        error_set(error, "only %s has the header that was kept", input->request->kept_header->path);
        return FAILED;
    }
    split_artifact(split->whole, split->splitter, split->ends, split->n_splits, split->number, ret_artifact);
    return OK;
}

static void release_artifact(void *context)
{
    artifact_free(context);
}

/* Makes the artifact that is split. Returns NULL if it cannot be made: the plan of the whole file says why. */
static const struct artifact *whole_artifact(const struct product_input *input, const struct gguf_edition *edition,
                                             const struct target *target, bool keeps, struct product_list *list)
{
    struct artifact *whole = arena_alloc(list->arena, sizeof *whole);
    struct quantize_options options = input->request->quantize;
    struct error unsaid;
    options.keep_split = keeps;
    if (target->make(edition, target->type, &options, whole, &unsaid) != OK)
        return NULL;
    product_on_free(list, release_artifact, whole);
    return whole;
}

static void list_splits(const char *name, const struct gguf_split *all, struct product_list *list)
{
    for (size_t i = 0; i < all->n_splits; i++) {
        struct gguf_split *split = arena_copy(list->arena, all, sizeof *split);
        split->number = i;
        const char *path = arena_printf(list->arena, "gguf/split/%.*s-%05zu-of-%05zu.gguf",
                                        (int)(strlen(name) - strlen(".gguf")), name, i + 1, all->n_splits);
        product_add(list,
                    (struct product_file){.path = path, .make = make_split, .what = split, .needs_no_object = true});
    }
}

/* Adds the splits of a target's file. Their names need their number, so the artifact is made now. */
static void add_splits(const struct product_input *input, const struct gguf_edition *edition,
                       const struct target *target, struct product_list *list)
{
    const struct checkpoint *checkpoint = input->checkpoint;
    const char *name = text_last_name(target->path);
    bool keeps = target->make == target_quantize && keeps_split(input);
    struct gguf_split all = {.splitter = keeps ? SPLITTER_QUANTIZE : SPLITTER_GGUF_SPLIT};
    struct error error;
    if (edition == NULL || (!keeps && !split_is_asked(input)))
        return;
    all.whole = whole_artifact(input, edition, target, keeps, list);
    if (all.whole == NULL)
        return;
    size_t *ends = keeps ? gguf_source_ends(checkpoint, all.whole, &all.n_splits)
                         : split_ends(all.whole, &input->request->split, &all.n_splits, &error);
    if (ends == NULL) {
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "gguf/split: %s is left out: %s", name, error.message);
        return;
    }
    all.ends = arena_copy(list->arena, ends, all.n_splits * sizeof *ends);
    free(ends);
    list_splits(name, &all, list);
}

/* All files. */

/* Reports whether model.gguf is the source itself. */
static bool is_source_shown(const struct product_input *input)
{
    const struct checkpoint *checkpoint = input->checkpoint;
    bool is_merged = checkpoint_base(checkpoint, BASE_ADAPTER) != NULL;
    return is_gguf(input) && checkpoint->n_sources == 1 && !is_merged && gguf_edits_are_none(&input->request->edits);
}

static void add_mixes(const struct product_input *input, const struct gguf_edition *edition, enum target_model of,
                      struct product_list *list)
{
    struct arena *arena = list->arena;
    for (const struct mix *mix = mixes; mix->name != NULL; mix++) {
        struct target *target = arena_alloc(arena, sizeof *target);
        *target = (struct target){arena_printf(arena, "gguf/model-%s.gguf", mix->name), of, target_quantize, mix->name};
        struct product_file *file = target_list_add(list, target);
        if (mix->alias != NULL)
            file->alias = arena_printf(arena, "model-%s.gguf", mix->alias);
        add_splits(input, edition, target, list);
    }
}

static void note_options(const struct product_input *input)
{
    const struct checkpoint *checkpoint = input->checkpoint;
    const struct quantize_options *options = &input->request->quantize;
    if (options->keep_split && !keeps_split(input))
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

/* Also writes the notes that come before that of a model which cannot be made. */
static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    if (state_dict_of(input->checkpoint) != NULL)
        return false;
    if (facts_of(input->checkpoint).is_adapter) {
        product_hint(hints, "model.gguf", "the source is a LoRA adapter, which becomes adapter.gguf");
        product_hint(hints, "gguf/model-*.gguf",
                     "the source is a LoRA adapter, and adapters are not quantized; -o lora= merges it with its base");
        return false;
    }
    if (!has_splits(input))
        product_hint(hints, "gguf/split", "-o split=SIZE|N shows GGUF files in shards");
    gguf_note_family(input->checkpoint, &input->request->references);
    note_options(input);
    return true;
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    enum target_model of = is_gguf(input) ? OF_GGUF : OF_CHECKPOINT;
    product_add(list, (struct product_file){.path = "gguf/"});
    if (has_splits(input))
        product_add(list, (struct product_file){.path = "gguf/split/"});
    if (!is_gguf(input))
        product_add(list, (struct product_file){.path = "gguf/converter/"});
    if (is_source_shown(input))
        product_add(list, (struct product_file){.path = "model.gguf", .source = input->checkpoint->sources[0]});
    target_list_add_all(list, of, NULL);
    for (const struct target *target = targets; target->path != NULL; target++)
        if (target->of == of)
            add_splits(input, made, target, list);
    if (!is_gguf(input) && shown_tensors_of(input->checkpoint)->unpacked != NULL)
        target_list_add_all(list, OF_PACKED_CHECKPOINT, &repacked_product);
    add_mixes(input, made, of, list);
    return true;
}

static const char *left_out(const struct product_input *input)
{
    return is_source_shown(input) ? "gguf/ is left out" : "model.gguf and gguf/ are left out";
}

const struct product gguf_product = {
    .name = "gguf",
    .summary = "model.gguf in the source's own precision; gguf/: F32, F16, BF16 and every quantization",
    .is_offered = is_offered,
    .make = make_model,
    .make_for_sizes = make_for_sizes,
    .needs_object = has_splits,
    .files = list_files,
    .left_out = left_out,
};
