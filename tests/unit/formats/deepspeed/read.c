/* ZeRO checkpoints of two ranks, written by hand as DeepSpeed writes them; expected is what zero_to_fp32.py computes:
 * the parameters a = [[0, 1, 2], [3, 4, 5]] and b = [6, 7, 8]. */
#include "tests/unit/formats/torch/archive.h"

#include "base/little_endian.h"

static const struct open_options defaults;

/* Writes an archive with a pickle that may name the storages 0, 1 ... of F32, with those numbers. */
static void write_archive(const char *path, const char *pickle, const char *const *storages, size_t n)
{
    struct archive_member members[8] = {{"archive/data.pkl", pickle, strlen(pickle)}, {"archive/version", "3\n", 2}};
    struct buffer data[6] = {{0}};
    char names[6][32];
    for (size_t i = 0; i < n; i++) {
        char *end;
        for (const char *at = storages[i]; *at != '\0'; at = end) {
            float value = strtof(at, &end);
            little_endian(&value, 1, sizeof value);
            buffer_append(&data[i], &value, sizeof value);
        }
        snprintf(names[i], sizeof names[i], "archive/data/%zu", i);
        members[2 + i] = (struct archive_member){names[i], data[i].bytes, data[i].length};
    }
    files_make_parents(path);
    archive_write(path, members, 2 + n);
    for (size_t i = 0; i < n; i++)
        buffer_free(&data[i]);
}

#define VECTOR(key, n) PICKLE_TENSOR(PICKLE_STORAGE("FloatStorage", key, n), "0", "I" n "\n", "I1\n")
#define SHAPES         "(lp0\n(dp1\nVa\nctorch\nSize\n((I2\nI3\nttRsVb\nctorch\nSize\n((I3\nttRsa"
#define MODEL_FILE     "mp_rank_00_model_states.pt"
#define OPTIMIZER      "c/step/zero_pp_rank_%d_mp_rank_00_optim_states.pt"

static void write_model(const char *path, const char *more, const char *module)
{
    static const char *const storages[] = {"9 10"};
    char pickle[2048];
    snprintf(pickle, sizeof pickle,
             "}Vparam_shapes\n%ssVbuffer_names\n(lVbuf\nasVshared_params\n}Vtied\nVb\nssVmodule\n}Vbuf\n%ss%ss%s.",
             SHAPES, VECTOR("0", "2"), module, more);
    write_archive(path, pickle, storages, 1);
}

static void write_optimizer(int rank, const char *list, const char *n, const char *numbers, const char *more)
{
    const char *const storages[] = {numbers};
    char path[64], pickle[2048], tensor[512];
    snprintf(tensor, sizeof tensor,
             "ctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI%s\ntQI0\n(I%s\nt("
             "I1\ntI00\nNtR",
             n, n);
    snprintf(path, sizeof path, OPTIMIZER, rank);
    snprintf(pickle, sizeof pickle, "}Voptimizer_state_dict\n}Vpartition_count\n(lI2\nasV%s\n(l%sas%ss.", list, tensor,
             more);
    write_archive(path, pickle, storages, 1);
}

static void check(const char *path, const char *says)
{
    char *described = archive_describe(path, &defaults);
    char *extras = strstr(described, "\n{");
    if (extras != NULL)
        *extras = '\0';
    CHECK_TEXT(described, says);
    free(described);
}

#define A_AND_B "a F32 [2, 3] 0 1 2 3 4 5\nb F32 [3] 6 7 8\ntied F32 [3] 6 7 8"
#define GROUPS  "single_partition_of_fp32_groups"

/* The ranks' vectors follow each other; the last may have up to three elements of padding. */
static void check_stage_2(void)
{
    files_write_text("c/latest", "step\n");
    write_model("c/step/" MODEL_FILE, "", "");
    write_optimizer(0, GROUPS, "5", "0 1 2 3 4", "");
    write_optimizer(1, GROUPS, "4", "5 6 7 8", "");
    check("c", "buf F32 [2] 9 10\n" A_AND_B);
    check("c/step", "buf F32 [2] 9 10\n" A_AND_B);
    write_optimizer(1, GROUPS, "7", "5 6 7 8 0 0 0", "");
    check("c", "buf F32 [2] 9 10\n" A_AND_B);
    write_optimizer(1, GROUPS, "8", "5 6 7 8 0 0 0 0", "");
    check("c", "c: the ranks have more elements than the parameters");
    write_optimizer(1, GROUPS, "3", "5 6 7", "");
    check("c", "c: parameter 'b': the ranks have too few elements");
    write_optimizer(1, "other", "4", "5 6 7 8", "");
    check("c", "c: a rank lacks a part of the flat weights");
    write_optimizer(1, GROUPS, "4", "5 6 7 8", "");
    write_optimizer(0, GROUPS, "5", "0 1 2 3 4", "Vparam_alignment_paddings\n(l(lI0\naI1\naas");
    check("c", "c: parameters with paddings between them are not supported; use zero_to_fp32.py");
    write_optimizer(0, GROUPS, "5", "0 1 2 3 4", "");
    files_must(remove("c/step/zero_pp_rank_1_mp_rank_00_optim_states.pt") == 0, "remove");
    check("c", "c: found the files of 1 of 2 ranks");
    write_optimizer(1, GROUPS, "4", "5 6 7 8", "");
    files_write_text("c/step/zero_pp_rank_0_mp_rank_01_optim_states.pt", "x");
    check("c", "c: ZeRO with tensor, pipeline or expert parallelism is not supported; use zero_to_fp32.py");
    files_must(remove("c/step/zero_pp_rank_0_mp_rank_01_optim_states.pt") == 0, "remove");
}

/* Parameters of the model that no optimizer has, and frozen ones. */
static void check_frozen(void)
{
    write_model("c/step/" MODEL_FILE, "", "Vleft\n" VECTOR("0", "2") "s");
    check("c", "buf F32 [2] 9 10\n" A_AND_B "\nleft F32 [2] 9 10");
    write_model(
        "c/step/" MODEL_FILE,
        "Vfrozen_param_shapes\n}Vf\nctorch\nSize\n((I1\nI2\nttRssVfrozen_param_fragments\n}Vf\n" VECTOR("0", "2") "ss",
        "");
    check("c", "buf F32 [2] 9 10\nf F32 [1, 2] 9 10\n" A_AND_B);
    write_model("c/step/" MODEL_FILE, "Vfrozen_param_shapes\n}Vf\nctorch\nSize\n((I1\nttRss", "");
    check("c", "c: parameter 'f': a fragment of this frozen parameter is missing");
}

/* Each rank has half of each parameter, rounded up. */
static void check_stage_3(void)
{
    static const char frozen[] =
        "Vfrozen_param_shapes\n}Vf\nctorch\nSize\n((I3\nttRssVfrozen_param_fragments\n}Vf\n" VECTOR("0", "2") "ss";
    files_must(remove("c/step/" MODEL_FILE) == 0, "remove");
    write_model("c/step/zero_pp_rank_0_" MODEL_FILE, frozen, "");
    write_optimizer(0, "fp32_flat_groups", "5", "0 1 2 6 7", "");
    write_optimizer(1, "fp32_flat_groups", "5", "3 4 5 8 0", "");
    check("c", "c: the model's file of a rank is missing");
    write_model("c/step/zero_pp_rank_1_" MODEL_FILE, frozen, "");
    check("c", "buf F32 [2] 9 10\nf F32 [3] 9 10 9\n" A_AND_B);
    write_optimizer(1, "fp32_flat_groups", "4", "3 4 5 8", "");
    check("c", "c: parameter 'b': a rank has too few elements");
    write_optimizer(0, "fp32_flat_groups", "6", "0 1 2 6 7 0", "");
    write_optimizer(1, "fp32_flat_groups", "6", "3 4 5 8 0 0", "");
    check("c", "c: the ranks have more elements than the parameters");
}

int main(void)
{
    files_begin();
    check_stage_2();
    check_frozen();
    check_stage_3();
    files_remove();
    return check_done();
}
