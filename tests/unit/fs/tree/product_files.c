/* A product in a tree: its object is made once, by the first plan; its files, hints and notes. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"

#include "formats/gguf/write.h"
#include "formats/safetensors/safetensors.h"
#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/notes.h"
#include "tests/unit/write_safetensors.h"

/* The product: each tensor of the checkpoint in a file of its own. */

static int n_made;

static const void *make_object(const struct product_input *input, struct arena *arena, struct error *error)
{
    n_made++;
    if (input->request->fold_scale)
        error_set(error, "no object");
    return input->request->fold_scale ? NULL : input->checkpoint->tensors;
}

static enum outcome make_file(const struct product_input *input, const void *made, const void *what,
                              struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    *ret_artifact = (struct artifact){.container = &safetensors_container};
    artifact_reserve(ret_artifact, 1);
    ret_artifact->tensors[0] = (struct artifact_tensor){what, encoding_of(&f32_dtype)};
    return made == input->checkpoint->tensors ? OK : FAILED;
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    const struct tensor_set *set = input->checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *path = arena_printf(list->arena, "%s/one.safetensors", set->tensors[i].name);
        product_add(list, (struct product_file){.path = path, .make = make_file, .what = &set->tensors[i]});
    }
    product_add(list, (struct product_file){.path = "source", .source = input->checkpoint->sources[0]});
    return true;
}

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    product_hint(hints, "tensor", "it is in each/");
    return input->checkpoint->tensors->n_tensors > 0;
}

static const char *left_out(const struct product_input *input)
{
    return "each/ is left out";
}

static const struct product each_product = {
    .name = "each",
    .root = "each",
    .is_offered = is_offered,
    .make = make_object,
    .files = list_files,
    .left_out = left_out,
};

/* The same files twice, in directories that are filled by the first look into them. */

static void find_variants(const struct product_input *input, struct arena *arena, product_found *found, void *context)
{
    found(context, "common", input, true);
    found(context, "rare", input, false);
}

static bool needs_object(const struct product_input *input)
{
    return true;
}

static const struct product late_product = {
    .name = "late",
    .root = "late",
    .opened = OPENED_AT_VARIANT,
    .is_offered = is_offered,
    .variants = find_variants,
    .make = make_object,
    .needs_object = needs_object,
    .files = list_files,
};

/* A GGUF whose keys take long: at first only their size is known, which may be wrong. */

static const char long_key[] = "tokenizer.text", long_text[] = "0123456789";
static uint64_t kept_bytes;

static void free_keys(void *kvs)
{
    gguf_kvs_free(kvs);
}

static const void *make_keys(const struct product_input *input, struct arena *arena, struct error *error)
{
    struct gguf_kvs *kvs = arena_alloc(arena, sizeof *kvs);
    *kvs = (struct gguf_kvs){0};
    arena_on_free(arena, free_keys, kvs);
    gguf_set_text(kvs, long_key, long_text);
    n_made++;
    return kvs;
}

static const void *make_size(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct gguf_kvs kvs = {.absent_bytes = kept_bytes};
    return kept_bytes > 0 ? arena_copy(arena, &kvs, sizeof kvs) : NULL;
}

static enum outcome make_gguf(const struct product_input *input, const void *made, const void *what,
                              struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    *ret_artifact = (struct artifact){.container = &gguf_container, .metadata = gguf_kvs_copy(made)};
    return OK;
}

static bool list_gguf(const struct product_input *input, const void *made, const void *variant,
                      struct product_list *list, struct error *error)
{
    product_add(list, (struct product_file){.path = "file.gguf", .make = make_gguf});
    return true;
}

static const struct product sized_product = {
    .name = "sized",
    .root = "sized",
    .is_offered = is_offered,
    .make = make_keys,
    .make_for_sizes = make_size,
    .files = list_gguf,
};

/* The tests. */

static const struct checkpoint *open_two(void)
{
    struct safetensors file = {0};
    struct error error;
    safetensors_add(&file, "a", "F32", "2", NULL, 8);
    safetensors_add(&file, "b", "F16", "3", NULL, 6);
    safetensors_write(&file, "x.safetensors");
    const struct checkpoint *checkpoint = checkpoint_open("x.safetensors", formats, &(struct open_options){0}, &error);
    files_must(checkpoint != NULL, error.message);
    return checkpoint;
}

static void test_files(const struct checkpoint *checkpoint)
{
    struct content_options options = {0};
    struct node_attributes a, b, source;
    struct error error;
    struct tree *tree = tree_empty(checkpoint, &options);
    CHECK(product_files_add(tree, &each_product, &error));
    CHECK(n_made == 0);
    CHECK(tree_walk(tree, "each/a/one.safetensors", &a, &error) &&
          tree_walk(tree, "each/b/one.safetensors", &b, &error));
    CHECK(n_made == 1 && b.size == a.size + 4);
    CHECK(tree_walk(tree, "each/source", &source, &error) && source.size == source_size(checkpoint->sources[0]));
    CHECK(tree_largest_whole(tree) == checkpoint->sources[0]);
    CHECK(!tree_walk(tree, "tensor", &a, &error) && strstr(error.message, "it is in each/") != NULL);
    tree_free(tree);
}

static void test_failure(const struct checkpoint *checkpoint)
{
    struct content_options options = {.request.fold_scale = true};
    struct node_attributes node;
    struct error error;
    struct tree *tree = tree_empty(checkpoint, &options);
    n_made = 0;
    CHECK(product_files_add(tree, &each_product, &error));
    CHECK(!tree_walk(tree, "each/a/one.safetensors", &node, &error) && strstr(error.message, "no object") != NULL);
    CHECK(!tree_walk(tree, "each/b/one.safetensors", &node, &error) && n_made == 1);
    CHECK(has_note(checkpoint, "each/ is left out: no object"));
    CHECK(tree_walk(tree, "each/source", &node, &error));
    tree_free(tree);
}

static bool count(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    CHECK_TEXT(name, "common");
    ++*(int *)context;
    return true;
}

static void test_variants(const struct checkpoint *checkpoint)
{
    struct content_options options = {0};
    struct node_attributes node;
    struct error error;
    int n_listed = 0;
    struct tree *tree = tree_empty(checkpoint, &options);
    n_made = 0;
    CHECK(product_files_add(tree, &late_product, &error));
    if (CHECK(tree_lookup(tree, TREE_ROOT, "late", &node)))
        tree_list(tree, node.id, 0, count, &n_listed);
    CHECK(n_listed == 1 && n_made == 0);
    CHECK(tree_walk(tree, "late/rare/b/one.safetensors", &node, &error) && n_made == 1);
    CHECK(tree_walk(tree, "late/common/a/one.safetensors", &node, &error) && n_made == 1);
    tree_free(tree);
}

/* Plans the file where the size of its keys is known to be that; 0: not known. Returns whether it can be read. */
static bool read_sized(const struct checkpoint *checkpoint, uint64_t n_bytes, struct node_attributes *ret_node,
                       struct error *error)
{
    struct content_options options = {0};
    struct vfile file;
    unsigned char bytes[256];
    struct tree *tree = tree_empty(checkpoint, &options);
    struct arena *arena = arena_new();
    kept_bytes = n_bytes;
    n_made = 0;
    CHECK(product_files_add(tree, &sized_product, error) && tree_walk(tree, "sized/file.gguf", ret_node, error));
    CHECK((n_made == 0) == (n_bytes > 0));
    bool same = ret_node->size <= sizeof bytes && tree_file(tree, ret_node->id, arena, &file, error) &&
                file.size == ret_node->size && vfile_read(&file, 0, (size_t)file.size, bytes, error) &&
                memmem(bytes, file.size, long_text, strlen(long_text)) != NULL;
    CHECK(n_made == 1);
    arena_free(arena);
    tree_free(tree);
    return same;
}

static void test_sizes(const struct checkpoint *checkpoint)
{
    const uint64_t n_bytes = 8 + strlen(long_key) + 4 + 8 + strlen(long_text);
    struct node_attributes made, sized;
    struct error error;
    CHECK(read_sized(checkpoint, 0, &made, &error));
    CHECK_NAMED(read_sized(checkpoint, n_bytes, &sized, &error) && sized.size == made.size,
                "a file whose size is kept has that size and the same bytes");
    CHECK_NAMED(!read_sized(checkpoint, n_bytes + 32, &sized, &error) && sized.size == made.size + 32 &&
                    strstr(error.message, "the size that an earlier wfs kept was wrong") != NULL,
                "a wrong size is noticed by the first read");
}

int main(void)
{
    files_begin();
    const struct checkpoint *checkpoint = open_two();
    test_files(checkpoint);
    test_failure(checkpoint);
    test_variants(checkpoint);
    test_sizes(checkpoint);
    checkpoint_close(checkpoint);
    files_remove();
    return check_done();
}
