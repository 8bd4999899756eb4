#include "fs/cli/info/info_pages.h"
#include "fs/cli/terminal.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LABEL = 12,
    NOTE_LINES = 5,
    SHOWN_NAMES = 3,
    SHOWN_KINDS = 4,
    SHOWN_FILES = 4, /* kinds of files of tensors */
    SHOWN_COMPONENTS = 5,
    SHOWN_MODULES = 2,
    WIDE = 80, /* columns that leave room for the sizes of all variants */
};

struct page {
    unsigned columns; /* 0: no terminal, so no line is broken or left out */
    bool colour;
};

static void print_heading(const struct page *page, const char *text)
{
    printf(page->colour ? "\033[1m%s\033[0m\n" : "%s\n", text);
}

/* Prints a text after a label, broken at words but never cut: the remedy in a message comes last. Frees the text. */
static void print_labelled(const struct page *page, const char *label, struct buffer *text)
{
    buffer_append(text, "", 1);
    printf("%-*s", LABEL, label);
    print_wrapped((const char *)text->bytes, LABEL, LABEL, page->columns);
    buffer_free(text);
}

/* Estimates the lines that a text takes after a label, rather one too many. */
static size_t lines_of(const struct page *page, const char *text)
{
    size_t columns = page->columns > 2 * LABEL ? page->columns - LABEL : LABEL;
    return 1 + strlen(text) * 8 / (columns * 7);
}

/* Prints the notes without hints; on a terminal, only the first ones that fit, uncut and at least one. */
static void print_notes(const struct page *page, const struct checkpoint *checkpoint)
{
    size_t n_notes = checkpoint_notes(checkpoint), n_lines = 0, n_left = 0;
    struct arena *arena = arena_new();
    for (size_t i = 0; i < n_notes; i++) {
        const struct note note = checkpoint_note_at(checkpoint, i);
        const char *line = note_line(note, arena);
        if (note.is_hint)
            continue;
        bool fits = n_lines == 0 || (n_left == 0 && n_lines + lines_of(page, line) <= NOTE_LINES);
        if (page->columns != 0 && !fits) {
            n_left++;
            continue;
        }
        struct buffer text = {0};
        buffer_append_text(&text, line);
        print_labelled(page, n_lines == 0 ? "notes" : "", &text);
        n_lines += lines_of(page, line);
    }
    arena_free(arena);
    if (n_left != 0)
        printf("%*s%zu more; --all shows them\n", LABEL, "", n_left);
}

static void print_kind(const struct page *page, const struct profile *profile)
{
    struct buffer text = {0};
    if (profile->adapter != NULL) {
        buffer_append_text(&text, profile->adapter);
        print_labelled(page, "adapter", &text);
        return;
    }
    if (profile->architecture == NULL)
        buffer_append_text(&text, "not known: the source does not name it");
    else if (profile->family == NULL && profile->gguf == NULL)
        buffer_printf(&text,
                      "%s, which no family is known for: its GGUF is a plain container, which llama.cpp cannot run",
                      profile->architecture);
    else
        buffer_append_text(&text, profile->architecture);
    if (profile->gguf != NULL && strcmp(profile->gguf, profile->architecture) != 0)
        buffer_printf(&text, ", in GGUF %s", profile->gguf);
    if (profile->n_layers != 0)
        buffer_printf(&text, ", %" PRIu64 " layers", profile->n_layers);
    if (profile->context_length != 0)
        buffer_printf(&text, ", context %" PRIu64, profile->context_length);
    print_labelled(page, "family", &text);
}

/* Prints "visual.*: the vision tower of Qwen2.5-VL, 315840 parameters in 54 tensors". */
static void print_parts(const struct page *page, const struct profile *profile)
{
    char number[NUMBER_TEXT];
    const struct total *tower = &profile->tower_total;
    struct buffer text = {0};
    if (profile->parts != NULL)
        buffer_append_text(&text, profile->parts);
    if (profile->tower != NULL)
        buffer_printf(&text, "%s%s: %s, %s parameters in %" PRIu64 " tensor%s", text.length != 0 ? "; " : "",
                      profile->tower_parts, profile->tower, number_text(tower->n_elements, number), tower->n_tensors,
                      tower->n_tensors == 1 ? "" : "s");
    if (text.length != 0)
        print_labelled(page, "parts", &text);
}

static void print_tokenizer(const struct page *page, const struct profile *profile)
{
    struct buffer text = {0};
    if (profile->tokenizer == NULL)
        return;
    buffer_printf(&text, "%s, %" PRIu64 " tokens", profile->tokenizer, profile->n_tokens);
    print_labelled(page, "tokenizer", &text);
}

/* Prints "17.56 million parameters in 21 tensors, 33.4 MB: F16 98 %, GPTQ 4 bit 2 %". */
static void print_weights(const struct page *page, const struct profile *profile)
{
    char number[NUMBER_TEXT], size[SIZE_TEXT];
    const struct total *all = &profile->all;
    struct buffer text = {0};
    buffer_printf(&text, "%s parameters in %" PRIu64 " tensor%s, %s", number_text(all->n_elements, number),
                  all->n_tensors, all->n_tensors == 1 ? "" : "s", size_text(all->n_bytes, size));
    for (size_t i = 0; i < profile->n_kinds && i < SHOWN_KINDS; i++) {
        const struct kind_total *kind = &profile->kinds[i];
        double share = all->n_bytes != 0 ? 100.0 * (double)kind->total.n_bytes / (double)all->n_bytes : 0;
        buffer_printf(&text, "%s %s", i ? "," : ":", kind->name);
        if (profile->n_kinds > 1)
            buffer_printf(&text, share < 1 ? " <1 %%" : " %.0f %%", share);
    }
    if (profile->n_kinds > SHOWN_KINDS)
        buffer_printf(&text, ", %zu more type%s", profile->n_kinds - SHOWN_KINDS,
                      profile->n_kinds - SHOWN_KINDS == 1 ? "" : "s");
    if (profile->file_type != NULL)
        buffer_printf(&text, "; file type %s", profile->file_type);
    print_labelled(page, "weights", &text);
}

/* Prints the packed weights, and the number of stored tensors that hold them. */
static void print_packing(const struct page *page, const struct profile *profile)
{
    char number[NUMBER_TEXT], size[SIZE_TEXT];
    struct buffer text = {0};
    for (size_t i = 0; i < profile->n_kinds; i++) {
        const struct kind_total *kind = &profile->kinds[i];
        if (kind->packing != NULL)
            buffer_printf(&text, "%s%s: %" PRIu64 " weight%s of %s parameters in %s", text.length != 0 ? "; " : "",
                          kind->name, kind->total.n_tensors, kind->total.n_tensors == 1 ? "" : "s",
                          number_text(kind->total.n_elements, number), size_text(kind->total.n_bytes, size));
    }
    if (text.length == 0)
        return;
    buffer_printf(&text, "; the files hold %" PRIu64 " tensors", profile->n_stored);
    print_labelled(page, "packed", &text);
}

/* Reports whether a file is a weights file or a guide, such as an index. */
static bool was_read(const struct checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->n_sources + checkpoint->n_guides; i++)
        if (strcmp(source_name(checkpoint->sources[i]), name) == 0)
            return true;
    return false;
}

/* Prints the files of the directory that are not in the tree, except those that hold the weights. */
static void print_ignored(const struct page *page, const struct checkpoint *checkpoint)
{
    struct buffer text = {0};
    size_t n_ignored = 0;
    for (size_t i = 0; i < checkpoint->n_hidden; i++) {
        const struct hidden_file *hidden = &checkpoint->hidden[i];
        if (was_read(checkpoint, hidden->name) || n_ignored++ >= SHOWN_NAMES)
            continue;
        buffer_printf(&text, "%s%s (%s)", n_ignored > 1 ? ", " : "", hidden->name, hidden->reason);
    }
    if (n_ignored > SHOWN_NAMES)
        buffer_printf(&text, ", %zu more", n_ignored - SHOWN_NAMES);
    if (n_ignored != 0)
        print_labelled(page, "ignored", &text);
}

static void print_components(const struct page *page, struct tree *tree)
{
    bool is_pipeline = tree_checkpoint(tree)->n_sources == 0;
    size_t count = profile_components(tree), n_shown = count;
    if (page->columns != 0 && count > (is_pipeline ? SHOWN_COMPONENTS : SHOWN_MODULES))
        n_shown = is_pipeline ? SHOWN_COMPONENTS : SHOWN_MODULES;
    for (size_t i = 0; i < n_shown; i++) {
        struct buffer text = {0};
        struct component_profile component;
        struct arena *arena = arena_new();
        profile_component(&component, tree, i, arena);
        component_text(&component, &text);
        print_labelled(page, i == 0 ? "components" : "", &text);
        arena_free(arena);
    }
    if (n_shown < count)
        printf("%*s%zu more; --all shows them\n", LABEL, "", count - n_shown);
}

static void print_read(const struct page *page, const struct profile *profile, const struct checkpoint *checkpoint)
{
    struct buffer text = {0};
    if (checkpoint->n_sources == 0)
        buffer_append_text(&text, profile->list != NULL ? profile->list : "nothing");
    for (size_t i = 0; i < checkpoint->n_sources && i < SHOWN_NAMES; i++)
        buffer_printf(&text, "%s%s", i ? ", " : "", source_name(checkpoint->sources[i]));
    if (checkpoint->n_sources > SHOWN_NAMES)
        buffer_printf(&text, ", %zu more", checkpoint->n_sources - SHOWN_NAMES);
    buffer_printf(&text, " (%s)", checkpoint->format);
    print_labelled(page, "read", &text);
}

/* Returns the digits of a folder's name that says the step of training: "iter_0000010" of Megatron, "global_step10" of
 * DeepSpeed, "step-10" of torchtitan, "checkpoint-10" of transformers. NULL: the name is another. */
static const char *step_digits(const char *name, size_t length)
{
    static const char *const beginnings[] = {"iter_", "global_step", "step-", "step_", "checkpoint-"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        size_t n = strlen(beginnings[i]);
        if (length > n && strncmp(name, beginnings[i], n) == 0 && strspn(name + n, "0123456789") >= length - n)
            return name + n;
    }
    return NULL;
}

/* Prints the step of a run that is still training, if the directory's name, or that of its folder with weights, says
 * it. */
static void print_step(const struct page *page, const struct checkpoint *checkpoint)
{
    const char *file = checkpoint->n_sources > 0 ? source_name(checkpoint->sources[0]) : "";
    const char *digits = step_digits(file, strcspn(file, "/")), *name = checkpoint->model_name;
    if (digits == NULL)
        digits = step_digits(name, strlen(name));
    if (digits == NULL)
        return;
    digits += strspn(digits, "0");
    size_t length = strspn(digits, "0123456789");
    struct buffer text = {0};
    buffer_printf(&text, "%.*s of the training", length > 0 ? (int)length : 1, length > 0 ? digits : "0");
    print_labelled(page, "step", &text);
}

/* Prints how much of the weights of a server is on this machine. */
static void print_cached(const struct page *page, const struct checkpoint *checkpoint)
{
    struct buffer line = {0};
    char cached[SIZE_TEXT], all[SIZE_TEXT];
    uint64_t n_cached, n_bytes;
    if (!checkpoint_cached(checkpoint, &n_cached, &n_bytes))
        return;
    buffer_printf(&line, "%s of %s", size_text(n_cached, cached), size_text(n_bytes, all));
    print_labelled(page, "cached", &line);
}

/* Totals of the files below a directory. */
struct extent_of_files {
    struct tree *tree;
    uint64_t n_files, smallest, largest, usual; /* sizes; the last is that of USUAL_GGUF, or 0 */
    struct buffer large;                        /* at the top: the files of megabytes */
    uint64_t n_small;
    struct buffer directories;
    bool is_narrow;
    struct buffer engines, refusals; /* texts, each with a NUL */
};

static bool measure_file(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct extent_of_files *below = context;
    if (attributes->directory) {
        tree_list(below->tree, attributes->id, 0, measure_file, below);
        return true;
    }
    if (below->n_files++ == 0 || attributes->size < below->smallest)
        below->smallest = attributes->size;
    if (attributes->size > below->largest)
        below->largest = attributes->size;
    if (strcmp(name, USUAL_GGUF) == 0)
        below->usual = attributes->size;
    return true;
}

static void add_directory(struct extent_of_files *top, const char *name, const struct node_attributes *attributes)
{
    struct extent_of_files below = {.tree = top->tree};
    char smallest[SIZE_TEXT], largest[SIZE_TEXT];
    tree_list(top->tree, attributes->id, 0, measure_file, &below);
    if (below.n_files == 0)
        return;
    buffer_printf(&top->directories, "%s%s/ with %" PRIu64 " file%s of %s", top->directories.length != 0 ? ", " : "",
                  name, below.n_files, below.n_files == 1 ? "" : "s", size_text(below.smallest, smallest));
    if (below.largest != below.smallest)
        buffer_printf(&top->directories, " to %s", size_text(below.largest, largest));
    if (below.usual != 0)
        buffer_printf(&top->directories, " (Q4_K_M %s)", size_text(below.usual, smallest));
}

static bool add_top(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct extent_of_files *top = context;
    char size[SIZE_TEXT];
    bool is_model =
        text_ends_with(name, ".gguf") || text_ends_with(name, ".safetensors") || text_starts_with(name, "ggml-model");
    if (strcmp(name, "tensors") == 0 || attributes->branch)
        return true;
    bool may_be_engine = attributes->directory && strcmp(name, "gguf") != 0; /* which has converter/ if nothing else */
    bool is_engine =
        may_be_engine && engine_text(top->tree, name, attributes->id, top->is_narrow, &top->engines, &top->refusals);
    if (attributes->directory && !is_engine)
        add_directory(top, name, attributes);
    else if (is_model && !attributes->directory)
        buffer_printf(&top->large, "%s%s %s", top->large.length != 0 ? ", " : "", name,
                      size_text(attributes->size, size));
    else if (!attributes->directory)
        top->n_small++;
    return true;
}

/* Appends the kinds of file that tensors have, the first few by name. */
static void append_tensor_files(struct buffer *text, const struct tree *tree)
{
    struct arena *arena = arena_new();
    const struct file_kinds kinds = profile_tensor_files(tree, false, arena);
    for (size_t i = 0; i < kinds.count && i < SHOWN_FILES; i++)
        buffer_printf(text, "%s %s", i == 0 ? ":" : ",", kinds.items[i].name);
    if (kinds.count > SHOWN_FILES)
        buffer_printf(text, " and %zu more kinds of file", kinds.count - SHOWN_FILES);
    arena_free(arena);
}

/* Prints a line for each text. */
static void print_texts(const struct page *page, const char *label, struct buffer *texts)
{
    for (size_t at = 0; at < texts->length; at += strlen((const char *)texts->bytes + at) + 1) {
        struct buffer text = {0};
        buffer_append_text(&text, (const char *)texts->bytes + at);
        print_labelled(page, at == 0 ? label : "", &text);
    }
    buffer_free(texts);
}

/* Prints the directories that hold variants of the model, and why others do not. */
static void print_engines(const struct page *page, struct extent_of_files *top)
{
    print_texts(page, "engines", &top->engines);
    print_texts(page, "left out", &top->refusals);
}

/* Prints the lines about the files of a mount. */
static void print_tree(const struct page *page, struct tree *tree)
{
    const size_t n_tensors = shown_tensors_count(tree_shown(tree));
    struct extent_of_files top = {.tree = tree, .is_narrow = page->columns != 0 && page->columns < WIDE};
    struct buffer tensors = {0};
    tree_list_names(tree, TREE_ROOT, 0, add_top, &top);
    buffer_printf(&top.large, "%s%" PRIu64 " small file%s", top.large.length != 0 ? ", " : "", top.n_small,
                  top.n_small == 1 ? "" : "s");
    print_labelled(page, "files", &top.large);
    if (top.directories.length != 0)
        print_labelled(page, "", &top.directories);
    if (tree_checkpoint(tree)->n_sources == 0) {
        print_engines(page, &top);
        return;
    }
    buffer_printf(&tensors, "tensors/ with %zu tensor%s", n_tensors, n_tensors == 1 ? "" : "s");
    if (!top.is_narrow)
        append_tensor_files(&tensors, tree);
    print_labelled(page, "", &tensors);
    print_engines(page, &top);
}

/* Prints the tool whose files gguf/ agrees with. The other tools' versions are those of --version. */
static void print_reference(const struct page *page, struct tree *tree)
{
    struct arena *arena = arena_new();
    struct buffer text = {0};
    const char *reference = profile_reference(tree, arena);
    if (reference != NULL) {
        buffer_append_text(&text, reference);
        print_labelled(page, "gguf/ as of", &text);
    }
    arena_free(arena);
}

void print_summary(struct tree *tree, const struct profile *profile, bool colour)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    const struct page page = {isatty(STDOUT_FILENO) ? terminal_columns(STDOUT_FILENO) : 0, colour};
    struct extent_of_files planned = {.tree = tree}; /* planning notes the files that are left out */
    char name[256];
    tree_list_names(tree, TREE_ROOT, 0, add_top, &planned);
    buffer_free(&planned.large);
    buffer_free(&planned.directories);
    buffer_free(&planned.engines);
    buffer_free(&planned.refusals);
    text_printable(checkpoint->model_name, strlen(checkpoint->model_name), name, sizeof name);
    print_heading(&page, name);
    if (checkpoint->n_sources != 0) {
        print_kind(&page, profile);
        print_parts(&page, profile);
        print_tokenizer(&page, profile);
        print_weights(&page, profile);
        print_packing(&page, profile);
    }
    struct buffer merge = {0};
    if (append_merge(&merge, checkpoint))
        print_labelled(&page, "merge", &merge);
    print_components(&page, tree);
    print_read(&page, profile, checkpoint);
    print_step(&page, checkpoint);
    print_cached(&page, checkpoint);
    print_ignored(&page, checkpoint);
    print_tree(&page, tree);
    print_reference(&page, tree);
    print_notes(&page, checkpoint);
}
