/* Any bytes as the list of a directory's components: modules.json where they begin as an array does, else
 * model_index.json. The folders are always the same.
 *
 * Holds: a component is a folder that is there, whatever the list says; each is opened or has a reason, and none has
 * components itself; what is shown is found again by its name. */
#include "formats/components.h"
#include "fs/tree/content_options.h"
#include "fs/tree/tree.h"
#include "models/formats.h"

#include "tests/fuzz/write_model.h"

enum { N_FOLDERS = 4 };

static const char *const folders[N_FOLDERS] = {"2_Dense", "broken", "empty", "unet"};
static const char *const lists[] = {"model_index.json", "modules.json"};

static void file_in(const char *folder, char name[64])
{
    snprintf(name, 64, "%s/model.safetensors", folder);
}

static void remove_directory(void)
{
    char name[64], path[128];
    for (size_t i = 0; i < N_FOLDERS; i++) {
        file_in(folders[i], name);
        remove_file(name);
        path_of(folders[i], path);
        rmdir(path);
    }
    remove_file(lists[0]);
    remove_file(lists[1]);
    rmdir(directory);
}

static void write_folders(void)
{
    char name[64], path[128];
    for (size_t i = 0; i < N_FOLDERS; i++) {
        path_of(folders[i], path);
        if (mkdir(path, 0700) != 0)
            continue;
        file_in(folders[i], name);
        path_of(name, path);
        if (strcmp(folders[i], "broken") == 0)
            files_write_text(path, "no header");
        else if (strcmp(folders[i], "empty") != 0)
            safetensors_write_one(path, "a", "U8", "4", NULL, 4);
    }
}

static bool is_folder(const char *name)
{
    for (size_t i = 0; i < N_FOLDERS; i++)
        if (strcmp(folders[i], name) == 0)
            return strcmp(name, "empty") != 0;
    return false;
}

static bool see(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    (void)index;
    struct tree *tree = context;
    struct node_attributes found;
    require(tree_lookup(tree, TREE_ROOT, name, &found) && found.id == attributes->id);
    return true;
}

static void look_into(struct tree *tree, const struct component *component)
{
    struct tree *own = tree_of_component(tree, component);
    require(is_folder(component->name) && own != NULL);
    const struct checkpoint *checkpoint = tree_checkpoint(own);
    bool is_broken = strcmp(component->name, "broken") == 0;
    require(checkpoint->components == NULL && is_broken == (checkpoint->failure != NULL));
    require(is_broken || checkpoint->tensors->n_tensors == 1);
    tree_list(own, TREE_ROOT, 0, see, own);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct content_options content_options = {0};
    struct error error;
    if (size > MOST_BYTES)
        return 0;
    make_directory(remove_directory);
    write_folders();
    bool is_array = size > 0 && data[0] == '[';
    remove_file(lists[!is_array]);
    write_file(lists[is_array], (const char *)data, size);
    const struct checkpoint *checkpoint =
        checkpoint_open(directory, formats, &(struct open_options){.components = true}, &error);
    struct tree *tree = checkpoint != NULL ? tree_new(checkpoint, &content_options, &error) : NULL;
    if (tree == NULL) {
        require_one_line(&error);
    } else {
        tree_list(tree, TREE_ROOT, 0, see, tree);
        for (size_t i = 0; i < checkpoint->components->count; i++)
            look_into(tree, &checkpoint->components->items[i]);
    }
    tree_free(tree);
    checkpoint_close(checkpoint);
    return 0;
}
