/* Packed weights of any shapes: what says how they are packed, and tensors that a packing might take for its own.
 *
 * An input is as write_model() has it, its first line config.json, and hf_quant_config.json if it names a producer; or
 * that line and a zip archive, pytorch_model.bin.
 * Holds: a weight that is not refused can be read, all of it or any part, and is the same; blocks that are not right
 * for the zero points and groups cannot be read whole; what a packer makes of it can be read.
 */
#include "models/formats.h"
#include "models/packings/packed.h"
#include "models/packings/packings.h"
#include "models/shown_tensors.h"

#include "tests/fuzz/read_tensors.h"
#include "tests/fuzz/write_model.h"

enum { MOST_VALUES = 1 << 16 };

static void remove_directory(void)
{
    remove_file("config.json");
    remove_file("hf_quant_config.json");
    remove_file("model.safetensors");
    remove_file("pytorch_model.bin");
    rmdir(directory);
}

static void read_view(const struct view *view)
{
    static float whole[MOST_VALUES], part[MOST_VALUES];
    struct error error;
    read_ends(view);
    if (view->n_elements == 0 || view->n_elements > MOST_VALUES || view->dtype != &f32_dtype)
        return;
    uint64_t first = view->n_elements / 3, count = view->n_elements - first - view->n_elements / 5;
    if (!view_read(view, 0, view_units(view), whole, &error))
        require_one_line(&error);
    else
        require(view_read(view, first, count, part, &error) && memcmp(part, whole + first, count * sizeof *part) == 0);
}

static void pack(const struct packer *packer, const struct view *weight, struct arena *arena)
{
    struct error error;
    struct packed_part parts[PACKING_MAX_PARTS];
    struct buffer text = {0};
    struct json_writer writer = {.out = &text};
    const struct output_weight weights[] = {{"model.a.weight", packer}, {"model.b.weight", NULL}};
    unsigned n_parts = packer->pack(packer, arena, weight, parts, &error);
    if (n_parts == 0)
        require_one_line(&error);
    for (unsigned i = 0; i < n_parts; i++)
        read_ends(parts[i].view);
    json_begin_object(&writer, NULL);
    require(packer->write_config(packer, weights, 2, &writer, &error));
    require(!packer->write_config(packer, weights + 1, 1, &writer, &error));
    json_end(&writer);
    buffer_free(&text);
}

static void pack_again(const struct view *weight, struct arena *arena)
{
    for (const struct packing *const *packing = packings; *packing != NULL; packing++)
        for (const struct packer *packer = (*packing)->packers; packer != NULL && packer->name != NULL; packer++) {
            require(packer_find(packer->name) == packer);
            pack(packer, weight, arena);
        }
}

static void check_repacked(const struct view *view)
{
    static unsigned char whole[MOST_VALUES];
    struct error error;
    if (view_units(view) <= sizeof whole / view->dtype->block_bytes && !view_repacked_holds(view))
        require(!view_read(view, 0, view_units(view), whole, &error));
}

static void unpack_all(const struct packed_weights *packed, const struct plain_wish *wish)
{
    struct error error;
    struct plain_set plain;
    if (!packings_unpack(packed, wish, wish->arena, &plain, &error))
        require_one_line(&error);
    else
        for (size_t i = 0; i < plain.set->n_tensors; i++)
            if (plain.unpacked != NULL && plain.unpacked[i] != NULL) {
                const struct view *view = tensor_view(&plain.set->tensors[i], wish->arena);
                read_ends(view);
                check_repacked(view);
            }
}

static void unpack(const struct checkpoint *checkpoint)
{
    struct arena *arena = arena_new();
    struct shown_tensors shown = *shown_tensors_of(checkpoint);
    for (size_t i = 0; i < shown_tensors_count(&shown); i++) {
        struct tensor room;
        const struct tensor *tensor = shown_tensors_at(&shown, i, &room);
        bool is_unpacked = shown_tensors_unpacked(&shown, i) != NULL;
        require((tensor->refusal == NULL) == (tensor->view != NULL) || !is_unpacked);
        if (is_unpacked && tensor->view != NULL)
            read_view(tensor->view);
        if (tensor->view != NULL)
            pack_again(tensor->view, arena);
    }
    const struct packed_weights *packed = packings_of(checkpoint);
    for (size_t i = 0; i < packed->found.n_weights; i++)
        require(*packing_label(&packed->found.weights[i], arena) != '\0');
    if (packed->unread != NULL)
        require(*packed->unread != '\0' && strchr(packed->unread, '\n') == NULL);
    unpack_all(packed, &(struct plain_wish){.arena = arena});
    unpack_all(packed, &(struct plain_wish){.arena = arena, .keeps_blocks = true, .keeps_mxfp4 = true});
    arena_free(arena);
}

static void write_one(const uint8_t *data, size_t size)
{
    static const char producer[] = "\"producer\"", archive[] = "PK\003\004";
    const uint8_t *end = memchr(data, '\n', size);
    size_t line = end != NULL ? (size_t)(end - data) : size, rest = end != NULL ? size - line - 1 : 0;
    remove_file("model.safetensors");
    remove_file("pytorch_model.bin");
    remove_file("hf_quant_config.json");
    if (memmem(data, line, producer, strlen(producer)) != NULL)
        write_file("hf_quant_config.json", data, line);
    if (rest > strlen(archive) && memcmp(end + 1, archive, strlen(archive)) == 0) {
        write_file("config.json", data, line);
        write_file("pytorch_model.bin", end + 1, rest);
    } else {
        write_model("config.json", "model.safetensors", data, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    const struct open_options options = {0};
    if (size > MOST_BYTES)
        return 0;
    make_directory(remove_directory);
    write_one(data, size);
    const struct checkpoint *checkpoint = checkpoint_open(directory, formats, &options, &error);
    if (checkpoint != NULL)
        unpack(checkpoint);
    else
        require_one_line(&error);
    checkpoint_close(checkpoint);
    return 0;
}
