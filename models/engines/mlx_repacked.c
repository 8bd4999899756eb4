#include "models/engines/mlx_tensors.h"

#include "models/convert/left_out.h"
#include "models/engines/mlx_families.h"
#include "models/packings/packings.h"
#include "quant/pack/block_groups.h"
#include "text/json_write.h"

#include <assert.h>
#include <string.h>

bool mlx_is_repackable(const struct checkpoint *checkpoint)
{
    const struct tensor_set *set = checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (block_groups_of(set->tensors[i].dtype) != NULL)
            return true;
    const struct unpacked_weights *found = &packings_of(checkpoint)->found;
    for (size_t i = 0; i < found->n_weights; i++)
        if (found->weights[i].forms->groups != NULL)
            return true;
    return false;
}

/* Notes which quantized weights are whole, by reason. */
static void note_whole(const struct mlx_repacked *repacked, const struct mlx_tensors *codes,
                       const struct checkpoint *checkpoint)
{
    static const char rearranged[] = "the class takes its groups apart, or changes its values";
    struct left_out reasons[LEFT_OUT_MAX + 1] = {{0}};
    for (size_t i = 0; i < codes->n_tensors; i++) {
        bool is_quantized = codes->tensors[i].reason != NULL || codes->tensors[i].view->dtype->kind == DTYPE_BLOCK;
        if (repacked->groups[i].mode == NULL && is_quantized)
            left_out_add(reasons, codes->tensors[i].reason != NULL ? codes->tensors[i].reason : rearranged,
                         codes->tensors[i].module);
    }
    for (const struct left_out *reason = reasons; reason->reason != NULL; reason++)
        if (reason->n_tensors == 1)
            checkpoint_note(checkpoint, SUBJECT_REPACKED, "'%.200s' stays whole in F32: %s", reason->first,
                            reason->reason);
        else
            checkpoint_note(checkpoint, SUBJECT_REPACKED, "%zu weights stay whole in F32, '%.200s' first: %s",
                            reason->n_tensors, reason->first, reason->reason);
}

/* Reports whether a module is a stack of experts, and no other stack. */
static bool is_of_experts(const struct mlx_tensor *tensor)
{
    return tensor->view->rank == 3 && !mlx_list_ends("embed_q unembed_out", tensor->module);
}

static bool find_groups(struct arena *arena, struct mlx_tensors parts[MLX_PARTS], struct mlx_repacked *repacked,
                        struct error *error)
{
    const struct mlx_tensors *tensors = &repacked->tensors;
    struct mlx_groups *groups = arena_array(arena, tensors->n_tensors + 1, sizeof *groups);
    repacked->groups = groups;
    for (size_t i = 0; i < tensors->n_tensors; i++) {
        const struct view *of_tensor[MLX_PARTS];
        for (unsigned k = 0; k < MLX_PARTS; k++) {
            assert(parts[k].n_tensors == tensors->n_tensors);
            of_tensor[k] = parts[k].tensors[i].view;
        }
        groups[i] = (struct mlx_groups){.mode = NULL};
        bool may_keep = tensors->tensors[i].is_matrix && !tensors->tensors[i].is_changed;
        if (may_keep && !mlx_groups_of(arena, of_tensor, is_of_experts(&tensors->tensors[i]), &groups[i],
                                       &parts[MLX_CODES].tensors[i].reason, error))
            return false;
        if (groups[i].mode != NULL && repacked->usual == NULL)
            repacked->usual = &groups[i];
    }
    return true;
}

bool mlx_repack(struct arena *arena, const struct mlx_family *family, const struct hf_model *model,
                const struct json *config, struct mlx_repacked *ret_repacked, struct error *error)
{
    struct mlx_tensors parts[MLX_PARTS];
    *ret_repacked = (struct mlx_repacked){.usual = NULL};
    if (!mlx_tensors_make(arena, family, model, config, NULL, &ret_repacked->tensors, error))
        return false;
    for (enum mlx_part part = MLX_CODES; part < MLX_PARTS; part++)
        if (!mlx_tensors_make(arena, family, model, config, &part, &parts[part], error))
            return false;
    if (!find_groups(arena, parts, ret_repacked, error))
        return false;
    if (ret_repacked->usual != NULL) {
        note_whole(ret_repacked, &parts[MLX_CODES], model->checkpoint);
        return true;
    }
    const char *reason = "none is quantized";
    for (size_t i = 0; i < parts[MLX_CODES].n_tensors; i++)
        reason = parts[MLX_CODES].tensors[i].reason != NULL ? parts[MLX_CODES].tensors[i].reason : reason;
    return error_set(error, "MLX cannot hold any weight with its codes: %s", reason);
}

static void put(struct json_writer *writer, const char *key, const struct json *value)
{
    json_put_key(writer, key, strlen(key));
    json_put_edited(writer, value, NULL, NULL);
}

/* "rope_type" becomes "type", at the end. */
static void put_rope(struct json_writer *writer, const struct json *rope)
{
    const struct json *type = json_get(rope, "type") == NULL ? json_get(rope, "rope_type") : NULL;
    json_begin_object(writer, NULL);
    for (struct json_member member = {0}; json_next_member(rope, &member);)
        if (member.value != type)
            put(writer, member.key, member.value);
    if (type != NULL)
        put(writer, "type", type);
    json_end(writer);
}

struct reading {
    const struct mlx_family *family;
    const struct json *config;
};

static void put_vocabulary(struct json_writer *writer, const struct reading *reading)
{
    uint64_t n = reading->family->n_vocabulary;
    json_u64(json_get(reading->config, "vocab_size"), &n);
    json_put_number(writer, "vocab_size", n);
}

/* Members that are missing follow the others. */
static void put_text_config(struct json_writer *writer, const struct reading *reading, const struct json *text)
{
    static const char vocabulary[] = "vocab_size";
    const struct mlx_family *family = reading->family;
    json_begin_object(writer, NULL);
    for (struct json_member member = {0}; json_next_member(text, &member);) {
        if (family->n_vocabulary != 0 && strcmp(member.key, vocabulary) == 0)
            put_vocabulary(writer, reading);
        else if (family->renames_rope_type && strcmp(member.key, "rope_parameters") == 0) {
            json_put_key(writer, member.key, member.key_length);
            put_rope(writer, member.value);
        } else
            put(writer, member.key, member.value);
    }
    if (family->n_vocabulary != 0 && json_get(text, vocabulary) == NULL)
        put_vocabulary(writer, reading);
    for (const struct mlx_default *entry = family->text_defaults; entry != NULL && entry->key != NULL; entry++)
        if (json_get(text, entry->key) == NULL)
            json_put_raw(writer, entry->key, entry->value);
    json_end(writer);
}

static bool edit(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth)
{
    if (depth != 1 || strcmp(member->key, "text_config") != 0 || !json_is(member->value, JSON_OBJECT))
        return false;
    json_put_key(writer, member->key, member->key_length);
    put_text_config(writer, context, member->value);
    return true;
}

void mlx_class_config(const struct mlx_family *family, const struct json *config, struct buffer *out)
{
    struct reading reading = {family, config};
    json_put_edited(&(struct json_writer){.out = out, .letters = JSON_ASCII}, config, edit, &reading);
}
