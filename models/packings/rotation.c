/* Source: auto_round/algorithms/transforms/hadamard of AutoRound, whose `transform` backend is the one that it exports.
 */
#include "models/packings/packed.h"

#include "quant/views/hadamard.h"
#include "quant/views/product.h"

#include <inttypes.h>
#include <string.h>

enum { SIZE_OF_MX = 32, SIZE_OF_NV = 16 };

static bool unsupported(struct packed *packed, const char *key)
{
    return error_set(packed->error, "'%.40s' of rotation_config has a value that is not supported", key);
}

static bool check_text(struct packed *packed, const struct json *config, const char *key, const char *const *words)
{
    const struct json *value = json_get(config, key);
    bool good = value == NULL || json_is(value, JSON_NULL);
    for (size_t i = 0; words[i] != NULL; i++)
        good |= json_string_is(value, words[i]);
    return good || unsupported(packed, key);
}

/* Checks that the rotation is one of inputs alone, and nothing else is said. */
static bool check(struct packed *packed, const struct json *config)
{
    static const char *const known[] = {"algorithm",
                                        "backend",
                                        "block_size",
                                        "hadamard_type",
                                        "layerwise",
                                        "fuse_online_to_weight",
                                        "allow_online_rotation",
                                        NULL};
    static const char *const algorithms[] = {"hadamard", NULL}, *const backends[] = {"auto", "transform", NULL},
                             *const types[] = {"hadamard", "random_hadamard", "default", NULL};
    for (struct json_member member = {0}; json_next_member(config, &member);) {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], member.key) != 0)
            i++;
        if (known[i] == NULL)
            return error_set(packed->error, "the key '%.40s' of rotation_config is not supported", member.key);
    }
    if (json_bool(json_get(config, "fuse_online_to_weight"), false))
        return unsupported(packed, "fuse_online_to_weight");
    if (!json_bool(json_get(config, "allow_online_rotation"), true))
        return unsupported(packed, "allow_online_rotation");
    return check_text(packed, config, "algorithm", algorithms) && check_text(packed, config, "backend", backends) &&
           check_text(packed, config, "hadamard_type", types);
}

/* Finds the columns of a group. */
static bool find_size(struct packed *packed, const struct json *config, uint64_t *ret_size)
{
    const struct json *size = json_get(config, "block_size");
    *ret_size = strcmp(packed->unpacked->packing->name, "nvfp4") == 0 ? SIZE_OF_NV : SIZE_OF_MX;
    return size == NULL || json_is(size, JSON_NULL) || json_u64(size, ret_size) || unsupported(packed, "block_size");
}

/* Multiplies groups of columns by the module's own matrix, which its inputs are multiplied by, transposed. */
static bool multiply_own(struct packed *packed, uint64_t size, const struct view **values)
{
    struct arena *arena = packed->input->arena;
    const struct view *matrix = packed_matrix(packed, ".hadamard_matrix", F16_F32, size, size);
    if (matrix == NULL)
        return false;
    const uint64_t groups[2] = {(*values)->n_elements / size, size};
    const struct view *product = view_product(arena, view_reshape(arena, *values, 2, groups), matrix);
    *values = view_reshape(arena, product, (*values)->rank, (*values)->shape);
    return true;
}

static bool is_microscaled(const struct packed *packed)
{
    static const char *const names[] = {"nvfp4", "mxfp4-pack-quantized"};
    const char *name = packed->unpacked->packing->name;
    bool is_mxfp8 = strcmp(name, "scaled") == 0 && packed->unpacked->beyond != NULL &&
                    strcmp(packed->unpacked->beyond, "MXFP8") == 0;
    return is_mxfp8 || strcmp(name, names[0]) == 0 || strcmp(name, names[1]) == 0;
}

static bool turn_back(struct packed *packed, const struct json *config)
{
    struct unpacked *unpacked = packed->unpacked;
    uint64_t size;
    const struct json *type = json_is(config, JSON_STRING) ? config : json_get(config, "hadamard_type");
    if (!check(packed, config) || !find_size(packed, config, &size))
        return false;
    if (!is_microscaled(packed))
        return error_set(packed->error,
                         "rotation_config of quantization_config is supported for MXFP4, MXFP8 and NVFP4");
    if (strstr(unpacked->name, "lm_head") != NULL)
        return true;
    bool is_own = json_string_is(type, "random_hadamard"), has_size = hadamard_has_size(HADAMARD_SYLVESTER, size);
    if (size == 0 || (!is_own && !has_size) || view_row_elements(unpacked->view) % size != 0)
        return error_set(packed->error,
                         "rotation_config rotates groups of %" PRIu64 " columns, and the weight has %" PRIu64, size,
                         view_row_elements(unpacked->view));
    if (is_own && !multiply_own(packed, size, &unpacked->view))
        return false;
    if (!is_own)
        unpacked->view = view_hadamard(packed->input->arena, unpacked->view, HADAMARD_SYLVESTER, size);
    *unpacked->forms = (struct unpacked_forms){.dtype = unpacked->forms->dtype};
    unpacked->is_of_some = false;
    unpacked->beyond = "rotated weights";
    return true;
}

bool rotation_undo(struct packed *packed)
{
    static const char *const types[] = {"hadamard", "random_hadamard", "default"};
    const struct json *config = json_get(packed->input->config, "rotation_config"),
                      *several = json_get(packed->input->config, "rotation_configs");
    if (json_count(several) > 1 || (json_count(several) == 1 && json_count_members(config) > 0))
        return error_set(packed->error, "several rotations of quantization_config are not supported");
    if (json_count(several) == 1)
        config = json_first(several);
    bool is_known = json_is(config, JSON_OBJECT);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        is_known |= json_string_is(config, types[i]);
    if (config == NULL || json_is(config, JSON_NULL) || json_string_is(config, "") ||
        (json_is(config, JSON_OBJECT) && json_count_members(config) == 0))
        return true;
    return is_known ? turn_back(packed, config)
                    : error_set(packed->error, "rotation_config of quantization_config is not supported");
}
