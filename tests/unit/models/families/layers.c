/* Lists with one value a layer, as keys. */
#include "models/families/layers.h"
#include "models/convert/model.h"
#include "models/families/families.h"
#include "tests/unit/check.h"

static bool set(double value, struct error *error)
{
    struct gguf_model model = {.arena = arena_new()};
    struct model_builder builder = {.model = &model, .family = families[0]};
    double values[] = {0, value};
    bool is_set = layers_set_i32(&builder, "feed_forward_length", &(struct layers){2, values}, error);
    CHECK(is_set == (model.kvs.n_kvs == 1));
    gguf_kvs_free(&model.kvs);
    arena_free(model.arena);
    return is_set;
}

int main(void)
{
    struct error error = {""};
    CHECK(set(2147483647, &error) && set(-2147483648.0, &error));
    CHECK(!set(2147483648.0, &error) && !set(-2147483649.0, &error) && !set(1 / 0.0, &error) && !set(0 / 0.0, &error));
    CHECK(!set(18446744073709551616.0, &error));
    CHECK_TEXT(error.message,
               "config.json: layer 1: feed_forward_length would be 1.84467e+19, which is not a 32-bit number");
    return check_done();
}
