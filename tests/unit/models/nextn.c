/* Names of the layers that predict ahead, there and back. */
#include "models/families/nextn.h"
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

int main(void)
{
    struct arena *arena = arena_new();
    struct facts facts = {.n_layers = 4};
    nextn_set(&facts, 2);
    CHECK(facts.n_layers == 6);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_TEXT(nextn_rename(arena, &facts, FORWARD, names[i].here), names[i].layer);
        CHECK_TEXT(nextn_rename(arena, &facts, BACKWARD, names[i].layer), names[i].back);
    }
    arena_free(arena);
    return check_done();
}
