/* What names in pickles mean. Expected values: what the functions of torch, numpy and Python of these names do. */
#include "formats/torch/pickle.h"

#include "tests/unit/check.h"

static const struct {
    const char *module, *name;
    enum global_meaning meaning;
} rows[] = {
    {"torch._utils", "_rebuild_tensor", GLOBAL_REBUILD_TENSOR},
    {"torch._utils", "_rebuild_tensor_v2", GLOBAL_REBUILD_TENSOR_V2},
    {"torch._utils", "_rebuild_tensor_v3", GLOBAL_REBUILD_TENSOR_V3},
    {"torch._utils", "_rebuild_parameter", GLOBAL_REBUILD_PARAMETER},
    {"torch._utils", "_rebuild_sparse_tensor", GLOBAL_REBUILD_SPARSE},
    {"torch._utils", "_rebuild_qtensor", GLOBAL_REBUILD_QUANTIZED},
    {"torch._utils", "_rebuild_nested_tensor", GLOBAL_REBUILD_NESTED},
    {"torch._tensor", "_rebuild_from_type_v2", GLOBAL_REBUILD_FROM_TYPE},
    {"torch", "FloatStorage", GLOBAL_STORAGE},
    {"torch", "BFloat16Storage", GLOBAL_STORAGE},
    {"torch", "float32", GLOBAL_CONSTANT},
    {"torch", "Tensor", GLOBAL_TENSOR_CLASS},
    {"torch.nn.parameter", "Parameter", GLOBAL_TENSOR_CLASS},
    {"torch.storage", "_load_from_bytes", GLOBAL_LOAD_FROM_BYTES},
    {"collections", "OrderedDict", GLOBAL_DICT},
    {"numpy.core.multiarray", "_reconstruct", GLOBAL_NUMPY_ARRAY},
    {"numpy._core.multiarray", "_reconstruct", GLOBAL_NUMPY_ARRAY},
    {"numpy.core.multiarray", "scalar", GLOBAL_NUMPY_SCALAR},
    {"numpy", "dtype", GLOBAL_NUMPY_DTYPE},
    {"_codecs", "encode", GLOBAL_ENCODE},
    {"copyreg", "_reconstructor", GLOBAL_RECONSTRUCT},
    {"copy_reg", "_reconstructor", GLOBAL_RECONSTRUCT},
    {"copyreg", "__newobj__", GLOBAL_NEW_OBJECT},
    {"builtins", "set", GLOBAL_SET},
    {"__builtin__", "set", GLOBAL_SET},
    {"os", "system", GLOBAL_HARMFUL},
    {"posix", "system", GLOBAL_HARMFUL},
    {"nt", "system", GLOBAL_HARMFUL},
    {"builtins", "eval", GLOBAL_HARMFUL},
    {"__builtin__", "eval", GLOBAL_HARMFUL},
    {"builtins", "exec", GLOBAL_HARMFUL},
    {"subprocess", "Popen", GLOBAL_HARMFUL},
    {"os.path", "join", GLOBAL_HARMFUL},
    {"osmium", "system", GLOBAL_FOREIGN},
    {"logging", "os.system", GLOBAL_HARMFUL}, /* which protocol 4 looks up part by part */
    {"logging", "handlers.os.system", GLOBAL_HARMFUL},
    {"logging", "eval.__call__", GLOBAL_HARMFUL},
    {"logging", "oss.system", GLOBAL_FOREIGN},
    {"logging", "a_name_that_is_longer_than_any_module_of_python_has_ever_been_or_will_be.os.x", GLOBAL_HARMFUL},
    {"torch.cuda", "HalfStorage", GLOBAL_STORAGE},
    {"torch.storage", "UntypedStorage", GLOBAL_STORAGE},
    {"torch.other", "HalfStorage", GLOBAL_FOREIGN},
    {"torch", "float64", GLOBAL_CONSTANT},
    {"numpy.dtypes", "Float32DType", GLOBAL_CONSTANT},
    {"", "", GLOBAL_FOREIGN},
    {"torch", "", GLOBAL_FOREIGN},
    {"torch._utils", "_rebuild_tensor_v", GLOBAL_FOREIGN},
    {"torch._utils", "_rebuild_tensor_v22", GLOBAL_FOREIGN},
    {"torch._util", "_rebuild_tensor_v2", GLOBAL_FOREIGN},
    {"mymodel.config", "Settings", GLOBAL_FOREIGN},
};

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum global_meaning meaning = global_meaning(rows[i].module, rows[i].name);
        if (!CHECK_NAMED(meaning == rows[i].meaning, rows[i].name))
            fprintf(stderr, "  %s: %d\n", rows[i].module, (int)meaning);
    }
    return check_done();
}
