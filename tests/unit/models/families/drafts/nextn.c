/* Names of the layers that predict ahead, there and back. */
#include "models/families/drafts/nextn.h"
#include "tests/unit/check.h"

static const struct {
    const char *here, *layer, *back; /* of a model of 4 layers and 2 that predict */
} names[] = {
    {"mtp.layers.0.mlp.up_proj.weight", "model.layers.4.mlp.up_proj.weight", "mtp.layers.0.mlp.up_proj.weight"},
    {"model.mtp.layers.1.mlp.up_proj.weight", "model.layers.5.mlp.up_proj.weight", "mtp.layers.1.mlp.up_proj.weight"},
    {"mtp.fc.weight", "model.layers.4.eh_proj.weight", "mtp.fc.weight"},
    {"mtp.pre_fc_norm_embedding.weight", "model.layers.4.enorm.weight", "mtp.pre_fc_norm_embedding.weight"},
    {"mtp.pre_fc_norm_hidden.weight", "model.layers.4.hnorm.weight", "mtp.pre_fc_norm_hidden.weight"},
    {"mtp.norm.weight", "model.layers.4.shared_head.norm.weight", "mtp.norm.weight"},
    {"model.layers.3.mlp.up_proj.weight", "model.layers.3.mlp.up_proj.weight", "model.layers.3.mlp.up_proj.weight"},
    {"mtp.layers.x.weight", "mtp.layers.x.weight", "mtp.layers.x.weight"},
    {"mtp.layers.00.weight", "mtp.layers.00.weight", "mtp.layers.00.weight"},
    {"model.norm.weight", "model.norm.weight", "model.norm.weight"},
};

/* The tensors of a model of one layer and two that predict, the first of which is in the checkpoint as a whole. */
static const char *repeated(bool all, struct arena *arena)
{
    static const char *const given[] = {"blk.0.attn_q", "blk.1.attn_q", "blk.1.nextn.eh_proj", "blk.1.nextn.enorm"};
    static float number[1];
    struct gguf_model model = {.arena = arena, .tensors = tensor_set_new(arena)};
    struct model_builder builder = {.model = &model, .dimensions = {.n_layers = 1}};
    const char *list = "";
    uint64_t size = 1;
    nextn_set(&builder.dimensions, 2);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        tensor_set_add_view(model.tensors, given[i], view_numbers(arena, 1, &size, number));
    nextn_repeat(&builder, all);
    for (size_t i = 0; i < model.tensors->n_tensors; i++)
        list = arena_printf(arena, "%s%s ", list, model.tensors->tensors[i].name);
    return list;
}

int main(void)
{
    struct arena *arena = arena_new();
    struct dimensions dimensions = {.n_layers = 4};
    nextn_set(&dimensions, 2);
    CHECK(dimensions.n_layers == 6);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_TEXT(nextn_rename(arena, &dimensions, FORWARD, names[i].here), names[i].layer);
        CHECK_TEXT(nextn_rename(arena, &dimensions, BACKWARD, names[i].layer), names[i].back);
    }
    CHECK(nextn_rename(arena, &dimensions, BACKWARD, "model.layers.5.eh_proj.weight") == NULL);
    CHECK_TEXT(repeated(false, arena), "blk.0.attn_q blk.1.attn_q blk.1.nextn.eh_proj blk.2.nextn.eh_proj "
                                       "blk.1.nextn.enorm blk.2.nextn.enorm ");
    CHECK_TEXT(repeated(true, arena), "blk.0.attn_q blk.1.attn_q blk.2.attn_q blk.1.nextn.eh_proj blk.2.nextn.eh_proj "
                                      "blk.1.nextn.enorm blk.2.nextn.enorm ");
    arena_free(arena);
    return check_done();
}
