#include "models/family/config_form.h"

#include "models/family/layer_marks.h"

bool config_number_of_layer(const struct config_material *material, const char *key, uint64_t layer, double *ret_number)
{
    struct gguf_array array;
    struct error unused;
    uint64_t whole;
    bool truth;
    const char *name = arena_printf(material->arena, "%s.%s", material->architecture, key);
    if (gguf_get_u64(material->kvs, name, &whole)) {
        *ret_number = (double)whole;
        return true;
    }
    if (!gguf_get_array(material->kvs, name, material->arena, &array, &unused) || layer >= array.count)
        return false;
    if (gguf_array_u64(&array, layer, &whole))
        *ret_number = (double)whole;
    else if (gguf_array_bool(&array, layer, &truth))
        *ret_number = truth;
    else
        return gguf_array_f64(&array, layer, ret_number);
    return true;
}

const char *config_number_of_first(const struct config_material *material, const char *mark, bool is_marked,
                                   const char *key)
{
    struct layer_marks marks;
    double number;
    const char *name = arena_printf(material->arena, "%s.%s", material->architecture, mark);
    if (!layer_marks_of_key(material->kvs, name, material->n_layers, material->arena, &marks))
        return NULL;
    uint64_t layer = 0;
    while (layer < marks.n && marks.marked[layer] != is_marked)
        layer++;
    if (layer == marks.n || !config_number_of_layer(material, key, layer, &number))
        return NULL;
    return arena_printf(material->arena, "%.0f", number);
}
