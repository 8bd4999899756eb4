#include "base/report.h"
#include "base/text.h"
#include "formats/documents.h"
#include "formats/layout.h"
#include "fs/cli/command.h"
#include "fs/cli/info_models.h"
#include "fs/cli/progress.h"
#include "fs/tree/tensor_views.h"
#include "models/from_gguf.h"
#include "models/mix.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_TENSORS = 5, MAX_DTYPES = 128, SHOWN_ELEMENTS = 16, LINE_WIDTH = 100 };

struct dtype_total {
    const struct dtype *dtype;
    uint64_t n_tensors, n_elements, n_bytes;
};

struct totals {
    struct dtype_total all, by_dtype[MAX_DTYPES]; /* the latter in order of appearance */
    size_t n_dtypes;
};

static uint64_t tensor_bytes(const struct tensor *tensor)
{
    return dtype_bytes(tensor->dtype, tensor_elements(tensor));
}

static void count(struct dtype_total *total, const struct tensor *tensor)
{
    total->n_tensors++;
    total->n_elements += tensor_elements(tensor);
    total->n_bytes += tensor_bytes(tensor);
}

static struct totals sum_up(const struct checkpoint *checkpoint)
{
    struct totals totals = {0};
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        size_t at = 0;
        while (at < totals.n_dtypes && totals.by_dtype[at].dtype != tensor->dtype)
            at++;
        if (at == MAX_DTYPES)
            continue;
        if (at == totals.n_dtypes)
            totals.by_dtype[totals.n_dtypes++].dtype = tensor->dtype;
        count(&totals.by_dtype[at], tensor);
        count(&totals.all, tensor);
    }
    return totals;
}

/* "7.24 billion" and the like; the number itself below a million. Returns `out`. */
static char *number_text(uint64_t number, char out[32])
{
    static const struct {
        double unit;
        const char *name;
    } scales[] = {{1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if ((double)number >= scales[i].unit) {
            snprintf(out, 32, "%.2f %s", (double)number / scales[i].unit, scales[i].name);
            return out;
        }
    snprintf(out, 32, "%" PRIu64, number);
    return out;
}

/* What a file says, on one line of bearable length. */
static void print_value(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print_value(const char *label, const char *format, ...)
{
    char text[LINE_WIDTH + 1];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("%-14s", label);
    text_put(text, stdout);
    puts(length > LINE_WIDTH ? " ..." : "");
}

/* The architecture that config.json names, if it does. */
static void print_architecture(const struct checkpoint *checkpoint)
{
    struct document *config;
    struct error unused;
    document_open(checkpoint, "config.json", &config, &unused);
    const char *name = json_string(json_first(json_get(document_root(config), "architectures")), NULL);
    if (name != NULL)
        print_value("architecture", "%s", name);
    document_close(config);
}

/* What a GGUF says of itself. */
static void print_gguf(const struct gguf_kvs *metadata)
{
    struct arena *arena = arena_new();
    struct error error;
    size_t length;
    uint64_t number;
    const char *architecture = gguf_get_string(metadata, "general.architecture", arena, &length, &error);
    if (architecture != NULL)
        print_value("architecture", "%s", architecture);
    if (architecture != NULL && gguf_get_u64(metadata, arena_printf(arena, "%s.context_length", architecture), &number))
        print_value("context", "%" PRIu64, number);
    if (gguf_get_u64(metadata, "general.file_type", &number)) {
        const struct mix *mix = mix_of_file_type(number);
        print_value("file type", "%s", mix != NULL ? mix->name : arena_printf(arena, "%" PRIu64, number));
    }
    arena_free(arena);
}

/* Each key on a line; with `all` long arrays, too, and lines as long as they are. */
static void print_metadata(const struct gguf_kvs *metadata, bool all)
{
    for (size_t i = 0; i < metadata->n_kvs; i++) {
        const struct gguf_kv *kv = &metadata->kvs[i];
        struct buffer value = {0};
        gguf_append_text(&value, kv, all ? UINT64_MAX : SHOWN_ELEMENTS);
        buffer_append(&value, "", 1);
        const char *label = i ? "" : "metadata", *text = (const char *)value.bytes;
        if (all) {
            printf("%-14s", label);
            text_put(kv->key, stdout);
            fputs(" = ", stdout);
            text_put(text, stdout);
            putchar('\n');
        } else {
            print_value(label, "%s = %s", kv->key, text);
        }
        buffer_free(&value);
    }
}

static void print_summary(const struct checkpoint *checkpoint, const struct totals *totals, bool all)
{
    char number[32], size[SIZE_TEXT];
    print_value("model", "%s", checkpoint->model_name);
    print_value("format", "%s, %zu file%s", checkpoint->format, checkpoint->n_sources, checkpoint->n_sources == 1 ? "" : "s");
    if (gguf_is_source(checkpoint))
        print_gguf(&checkpoint->metadata);
    else
        print_architecture(checkpoint);
    printf("%-14s%s\n", "parameters", number_text(totals->all.n_elements, number));
    printf("%-14s%" PRIu64 "\n", "tensors", totals->all.n_tensors);
    printf("%-14s%s\n", "size", size_text(totals->all.n_bytes, size));
    print_metadata(&checkpoint->metadata, all);
}

static void print_dtypes(const struct totals *totals)
{
    char number[32], size[SIZE_TEXT];
    printf("\n%-14s%10s  %16s  %12s\n", "DTYPE", "TENSORS", "PARAMETERS", "SIZE");
    for (size_t i = 0; i < totals->n_dtypes; i++) {
        const struct dtype_total *total = &totals->by_dtype[i];
        printf("%-14s%10" PRIu64 "  %16s  %12s\n", total->dtype->name, total->n_tensors, number_text(total->n_elements, number),
               size_text(total->n_bytes, size));
    }
}

static void print_largest(const struct checkpoint *checkpoint)
{
    const struct tensor *largest[LARGEST_TENSORS] = {0};
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        for (size_t place = 0; place < LARGEST_TENSORS; place++)
            if (largest[place] == NULL || tensor_bytes(tensor) > tensor_bytes(largest[place])) {
                const struct tensor *beaten = largest[place];
                largest[place] = tensor;
                if ((tensor = beaten) == NULL)
                    break;
            }
    }
    printf("\n%-10s  %-8s  %-20s  %s\n", "SIZE", "DTYPE", "SHAPE", "LARGEST TENSORS");
    for (size_t place = 0; place < LARGEST_TENSORS && largest[place] != NULL; place++) {
        char shape[64], size[SIZE_TEXT], name[LINE_WIDTH + 1];
        text_printable(largest[place]->name, largest[place]->name_length, name, sizeof name);
        printf("%-10s  %-8s  %-20s  %s\n", size_text(tensor_bytes(largest[place]), size), largest[place]->dtype->name,
               layout_shape_text(largest[place]->shape, largest[place]->rank, shape, sizeof shape), name);
    }
}

/* Files of the tree: those at the top and in directories, but not those of single tensors. */

struct printing {
    struct tree *tree;
    const char *directory;
};

static bool print_file(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    (void)index;
    const struct printing *printing = context;
    char size[SIZE_TEXT], path[2 * TREE_MAX_NAME + 2];
    snprintf(path, sizeof path, "%s%s%s", printing->directory, *printing->directory ? "/" : "", name);
    if (strcmp(path, "tensors") == 0)
        return true;
    if (attributes->directory) {
        tree_list(printing->tree, attributes->id, 0, print_file, &(struct printing){printing->tree, path});
        return true;
    }
    printf("%-10s  ", size_text(attributes->size, size));
    text_put(path, stdout);
    putchar('\n');
    return true;
}

/* Each kind of file below tensors/NAME, and how many tensors have it. */
static void print_views(const struct tensor_set *set, const struct tree_options *options)
{
    for (unsigned slot = SLOT_RAW, n_slots = tensor_slots(); slot < n_slots; slot++) {
        struct tensor_file file, any = {0};
        size_t n_tensors = 0;
        for (size_t i = 0; i < set->n_tensors; i++)
            if (tensor_file_at(&set->tensors[i], options, slot, &file)) {
                any = file;
                n_tensors++;
            }
        if (n_tensors != 0)
            printf("%-10zu  tensors/NAME/%s%s\n", n_tensors, any.name, any.numpy ? ".npy" : "");
    }
}

static void print_notes(const struct checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_hidden; i++) {
        fputs(i ? "" : "\nNOT SHOWN\n", stdout);
        text_put(checkpoint->hidden[i].name, stdout);
        fputs(": ", stdout);
        text_put(checkpoint->hidden[i].reason, stdout);
        putchar('\n');
    }
    for (size_t i = 0, n_notes = checkpoint_notes(checkpoint); i < n_notes; i++) {
        fputs(i ? "" : "\nNOTES\n", stdout);
        text_put(checkpoint_note_text(checkpoint, i), stdout);
        putchar('\n');
    }
}

static void print_page(struct tree *tree, bool all)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct totals totals = sum_up(checkpoint);
    print_summary(checkpoint, &totals, all);
    print_dtypes(&totals);
    print_largest(checkpoint);
    printf("\n%-10s  %s\n", "SIZE", "FILES");
    tree_list(tree, TREE_ROOT, 0, print_file, &(struct printing){tree, ""});
    printf("\n%-10s  %s\n", "TENSORS", "HAVE");
    print_views(tree_shown(tree)->set, tree_options(tree));
    print_notes(checkpoint);
}

enum { FLAG_QUANTIZATION, FLAG_ALL, FLAG_ARCHITECTURES };

static int run(const struct invocation *invocation)
{
    struct error error;
    int status = EXIT_SUCCESS;
    if (invocation->flags[FLAG_ARCHITECTURES]) {
        print_architectures();
        return finish_output(EXIT_SUCCESS);
    }
    if (invocation->n_arguments == 0) {
        report("info: no SOURCE; try 'wfs info --help'");
        return EXIT_MISUSE;
    }
    struct tree *tree = command_open(invocation->arguments[0], invocation->options);
    if (tree == NULL)
        return EXIT_BAD_INPUT;
    if (!invocation->flags[FLAG_QUANTIZATION]) {
        print_page(tree, invocation->flags[FLAG_ALL]);
    } else if (!print_quantizations(tree_checkpoint(tree), &tree_options(tree)->quantize, invocation->flags[FLAG_ALL], &error)) {
        report("%s", error.message);
        status = EXIT_BAD_INPUT;
    }
    command_close(tree);
    return finish_output(status);
}

const struct command info_command = {
    .name = "info",
    .usage = "SOURCE",
    .summary = "Say what is in SOURCE, what a mount shows of it, and what is left out and why",
    .flags =
        (const struct flag[]){
            {0, "quantization", "bits, size and error of every quantization instead"},
            {0, "all", "all of the metadata, long arrays too; with --quantization: measure all weights, not a sample"},
            {0, "architectures", "the families of models that GGUF files are made of instead; no SOURCE"},
            {0},
        },
    .examples =
        (const struct example[]){
            {"wfs info Qwen/Qwen2.5-0.5B", "a model from the local hub cache"},
            {"wfs info model.safetensors", "one file"},
            {"wfs info --quantization Qwen/Qwen2.5-0.5B", "how small and how exact gguf/model-Q4_K_M.gguf would be"},
            {0},
        },
    .min_arguments = 0,
    .max_arguments = 1,
    .takes_options = true,
    .run = run,
};
