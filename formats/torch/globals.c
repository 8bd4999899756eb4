#include "formats/torch/pickle.h"

#include "base/text.h"

#include <string.h>

struct row {
    const char *module, *name;
    enum global_meaning meaning;
};

/* clang-format off */
static const struct row table[] = {
    {"torch._utils", "_rebuild_tensor", GLOBAL_REBUILD_TENSOR},
    {"torch._utils", "_rebuild_tensor_v2", GLOBAL_REBUILD_TENSOR_V2},
    {"torch._utils", "_rebuild_tensor_v3", GLOBAL_REBUILD_TENSOR_V3},
    {"torch._utils", "_rebuild_parameter", GLOBAL_REBUILD_PARAMETER},
    {"torch._utils", "_rebuild_parameter_with_state", GLOBAL_REBUILD_PARAMETER},
    {"torch._utils", "_rebuild_wrapper_subclass", GLOBAL_REBUILD_WRAPPER},
    {"torch._utils", "_rebuild_qtensor", GLOBAL_REBUILD_QUANTIZED},
    {"torch._utils", "_rebuild_sparse_tensor", GLOBAL_REBUILD_SPARSE},
    {"torch._utils", "_rebuild_sparse_csr_tensor", GLOBAL_REBUILD_SPARSE},
    {"torch._utils", "_rebuild_nested_tensor", GLOBAL_REBUILD_NESTED},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", GLOBAL_REBUILD_META},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", GLOBAL_REBUILD_ON_DEVICE},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", GLOBAL_REBUILD_ON_DEVICE},
    {"torch._utils", "_rebuild_xla_tensor", GLOBAL_REBUILD_ON_DEVICE},
    {"torch._tensor", "_rebuild_from_type", GLOBAL_REBUILD_FROM_TYPE},
    {"torch._tensor", "_rebuild_from_type_v2", GLOBAL_REBUILD_FROM_TYPE},
    {"torch.tensor", "_rebuild_from_type", GLOBAL_REBUILD_FROM_TYPE},
    {"torch.tensor", "_rebuild_from_type_v2", GLOBAL_REBUILD_FROM_TYPE},
    {"torch.storage", "_load_from_bytes", GLOBAL_LOAD_FROM_BYTES},

    {"torch", "Tensor", GLOBAL_TENSOR_CLASS},
    {"torch._tensor", "Tensor", GLOBAL_TENSOR_CLASS},
    {"torch.nn.parameter", "Parameter", GLOBAL_TENSOR_CLASS},
    {"torch.nn.parameter", "Buffer", GLOBAL_TENSOR_CLASS},
    {"torch.autograd.variable", "Variable", GLOBAL_TENSOR_CLASS},
    {"torch", "DoubleTensor", GLOBAL_TENSOR_CLASS},
    {"torch", "FloatTensor", GLOBAL_TENSOR_CLASS},
    {"torch", "HalfTensor", GLOBAL_TENSOR_CLASS},
    {"torch", "BFloat16Tensor", GLOBAL_TENSOR_CLASS},
    {"torch", "LongTensor", GLOBAL_TENSOR_CLASS},
    {"torch", "IntTensor", GLOBAL_TENSOR_CLASS},
    {"torch", "ShortTensor", GLOBAL_TENSOR_CLASS},
    {"torch", "CharTensor", GLOBAL_TENSOR_CLASS},
    {"torch", "ByteTensor", GLOBAL_TENSOR_CLASS},
    {"torch", "BoolTensor", GLOBAL_TENSOR_CLASS},

    {"torch", "Size", GLOBAL_FIRST},
    {"torch", "device", GLOBAL_FIRST},
    {"torch.serialization", "_get_layout", GLOBAL_FIRST},
    {"torch.jit._pickle", "build_intlist", GLOBAL_FIRST},
    {"torch.jit._pickle", "build_tensorlist", GLOBAL_FIRST},
    {"torch.jit._pickle", "build_doublelist", GLOBAL_FIRST},
    {"torch.jit._pickle", "build_boollist", GLOBAL_FIRST},
    {"torch.jit._pickle", "restore_type_tag", GLOBAL_FIRST},

    {"collections", "OrderedDict", GLOBAL_DICT},
    {"collections", "defaultdict", GLOBAL_DICT},
    {"collections", "Counter", GLOBAL_DICT},
    {"collections", "deque", GLOBAL_LIST},
    {"argparse", "Namespace", GLOBAL_CLASS},
    {"types", "SimpleNamespace", GLOBAL_CLASS},
    {"pathlib", "Path", GLOBAL_CLASS},
    {"pathlib", "PosixPath", GLOBAL_CLASS},
    {"pathlib", "PurePosixPath", GLOBAL_CLASS},
    {"pathlib", "WindowsPath", GLOBAL_CLASS},
    {"pathlib", "PureWindowsPath", GLOBAL_CLASS},
    {"pathlib._local", "PosixPath", GLOBAL_CLASS},
    {"pathlib._local", "WindowsPath", GLOBAL_CLASS},
    {"datetime", "datetime", GLOBAL_CLASS},
    {"datetime", "date", GLOBAL_CLASS},
    {"datetime", "time", GLOBAL_CLASS},
    {"datetime", "timedelta", GLOBAL_CLASS},
    {"datetime", "timezone", GLOBAL_CLASS},
    {"decimal", "Decimal", GLOBAL_CLASS},
    {"fractions", "Fraction", GLOBAL_CLASS},
    {"uuid", "UUID", GLOBAL_CLASS},

    {"builtins", "dict", GLOBAL_DICT},
    {"builtins", "list", GLOBAL_LIST},
    {"builtins", "set", GLOBAL_SET},
    {"builtins", "frozenset", GLOBAL_SET},
    {"builtins", "tuple", GLOBAL_TUPLE},
    {"builtins", "int", GLOBAL_FIRST},
    {"builtins", "float", GLOBAL_FIRST},
    {"builtins", "str", GLOBAL_FIRST},
    {"builtins", "bool", GLOBAL_FIRST},
    {"builtins", "bytes", GLOBAL_FIRST},
    {"builtins", "bytearray", GLOBAL_FIRST},
    {"builtins", "long", GLOBAL_FIRST},
    {"builtins", "unicode", GLOBAL_FIRST},
    {"builtins", "complex", GLOBAL_CLASS},
    {"builtins", "slice", GLOBAL_CLASS},
    {"builtins", "range", GLOBAL_CLASS},
    {"builtins", "xrange", GLOBAL_CLASS},
    {"builtins", "object", GLOBAL_CLASS},
    {"builtins", "type", GLOBAL_CONSTANT},
    {"builtins", "NoneType", GLOBAL_CONSTANT},
    {"builtins", "Ellipsis", GLOBAL_CONSTANT},
    {"builtins", "NotImplemented", GLOBAL_CONSTANT},

    {"numpy._core.multiarray", "_reconstruct", GLOBAL_NUMPY_ARRAY},
    {"numpy._core.multiarray", "scalar", GLOBAL_NUMPY_SCALAR},
    {"numpy._core.numeric", "_frombuffer", GLOBAL_NUMPY_FROM_BUFFER},
    {"numpy", "ndarray", GLOBAL_CONSTANT},
    {"numpy", "dtype", GLOBAL_NUMPY_DTYPE},
    {"jax._src.array", "_reconstruct_array", GLOBAL_JAX_ARRAY},
    {"jax._src.device_array", "reconstruct_device_array", GLOBAL_JAX_ARRAY},

    {"_codecs", "encode", GLOBAL_ENCODE},
    {"copyreg", "_reconstructor", GLOBAL_RECONSTRUCT},
    {"copyreg", "__newobj__", GLOBAL_NEW_OBJECT},
};

/* Constants of torch that pickles name. */
static const char *const torch_constants[] = {
    "float64", "float32", "float16", "bfloat16", "half", "float", "double", "int64", "int32", "int16", "int8", "long",
    "int", "short", "uint8", "uint16", "uint32", "uint64", "bool", "complex32", "complex64", "complex128", "chalf",
    "cfloat", "cdouble", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float4_e2m1fn_x2", "qint8", "quint8", "qint32", "quint4x2", "quint2x4", "bits8", "bits16", "bits1x8", "bits2x4",
    "bits4x2", "int1", "int2", "int3", "int4", "int5", "int6", "int7", "uint1", "uint2", "uint3", "uint4", "uint5",
    "uint6", "uint7", "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged",
    "_mkldnn", "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
    "per_channel_affine_float_qparams", "contiguous_format", "channels_last", "channels_last_3d", "preserve_format",
};

/* Modules that act on the world or run code, sub-modules included: no honest checkpoint names them. */
static const char *const harmful_modules[] = {
    "os", "posix", "nt", "ntpath", "posixpath", "sys", "subprocess", "_posixsubprocess", "_winapi", "msvcrt", "pty",
    "platform", "shutil", "pathlib", "tempfile", "glob", "fileinput", "linecache", "commands", "popen2", "webbrowser",
    "antigravity", "runpy", "imp", "importlib", "_imp", "pkgutil", "zipimport", "code", "codeop", "compileall",
    "py_compile", "ast", "site", "pip", "ensurepip", "venv", "setuptools", "distutils", "_distutils_hack", "pydoc",
    "doctest", "unittest", "test", "idlelib", "lib2to3", "pdb", "bdb", "cProfile", "profile", "_lsprof", "trace",
    "timeit", "cgitb", "dis", "gc", "atexit", "faulthandler", "socket", "_socket", "ssl", "_ssl", "select", "selectors",
    "socketserver", "http", "httplib", "httplib2", "urllib", "urllib2", "requests", "aiohttp", "httpx", "ftplib",
    "smtplib", "telnetlib", "poplib", "imaplib", "nntplib", "xmlrpc", "asyncio", "asyncore", "asynchat", "ctypes",
    "_ctypes", "cffi", "mmap", "signal", "_signal", "resource", "fcntl", "termios", "threading", "_thread", "thread",
    "multiprocessing", "concurrent", "sched", "pickle", "_pickle", "cPickle", "marshal", "shelve", "dill",
    "cloudpickle", "joblib", "_compat_pickle", "pickletools", "logging.config", "sqlite3", "_sqlite3", "dbm",
    "ctypes.util", "turtle", "tkinter", "readline", "rlcompleter", "curses", "crypt", "pwd", "grp", "spwd", "syslog",
    "_bootsubprocess", "_osx_support", "_aix_support", "_pyrepl", "torch.hub", "torch.jit", "torch.package",
    "torch.serialization", "torch.utils.cpp_extension", "torch.utils.model_zoo", "torch.utils.bottleneck",
    "torch.distributed.run", "numpy.testing", "numpy.f2py", "numpy.distutils", "numpy.lib",
};
/* clang-format on */

/* Such functions of otherwise harmless modules. */
static const struct row harmful[] = {
    {"builtins", "eval", GLOBAL_HARMFUL},
    {"builtins", "exec", GLOBAL_HARMFUL},
    {"builtins", "compile", GLOBAL_HARMFUL},
    {"builtins", "execfile", GLOBAL_HARMFUL},
    {"builtins", "open", GLOBAL_HARMFUL},
    {"builtins", "file", GLOBAL_HARMFUL},
    {"builtins", "__import__", GLOBAL_HARMFUL},
    {"builtins", "input", GLOBAL_HARMFUL},
    {"builtins", "raw_input", GLOBAL_HARMFUL},
    {"builtins", "breakpoint", GLOBAL_HARMFUL},
    {"builtins", "exit", GLOBAL_HARMFUL},
    {"builtins", "quit", GLOBAL_HARMFUL},
    {"codecs", "open", GLOBAL_HARMFUL},
    {"io", "open", GLOBAL_HARMFUL},
    {"io", "open_code", GLOBAL_HARMFUL},
    {"io", "FileIO", GLOBAL_HARMFUL},
    {"_io", "open", GLOBAL_HARMFUL},
    {"_io", "open_code", GLOBAL_HARMFUL},
    {"_io", "FileIO", GLOBAL_HARMFUL},
    {"_pyio", "open", GLOBAL_HARMFUL},
    {"_pyio", "FileIO", GLOBAL_HARMFUL},
    {"types", "CodeType", GLOBAL_HARMFUL},
    {"types", "FunctionType", GLOBAL_HARMFUL},
    {"types", "LambdaType", GLOBAL_HARMFUL},
    {"torch", "load", GLOBAL_HARMFUL},
    {"torch", "compile", GLOBAL_HARMFUL},
    {"numpy", "load", GLOBAL_HARMFUL},
    {"numpy", "fromfile", GLOBAL_HARMFUL},
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static enum global_meaning find(const struct row *rows, size_t n_rows, const char *module, const char *name)
{
    for (size_t i = 0; i < n_rows; i++)
        if (strcmp(rows[i].name, name) == 0 && strcmp(rows[i].module, module) == 0)
            return rows[i].meaning;
    return GLOBAL_FOREIGN;
}

/* Reports whether `module` is `parent` or a sub-module of it. */
static bool is_inside(const char *module, const char *parent)
{
    size_t length = strlen(parent);
    return strncmp(module, parent, length) == 0 && (module[length] == '\0' || module[length] == '.');
}

/* Reports whether a component of a dotted name is a harmful module or function of Python's own: "os.system" of the
 * module logging. */
static bool reaches_harmful(const char *name)
{
    char component[64];
    for (const char *dot = strchr(name, '.'); dot != NULL; dot = strchr(name, '.')) {
        size_t length = (size_t)(dot - name);
        if (length < sizeof component) {
            memcpy(component, name, length);
            component[length] = '\0';
            for (size_t i = 0; i < LENGTH(harmful_modules); i++)
                if (strcmp(component, harmful_modules[i]) == 0)
                    return true;
            if (find(harmful, LENGTH(harmful), "builtins", component) == GLOBAL_HARMFUL)
                return true;
        }
        name = dot + 1;
    }
    return false;
}

static bool is_harmful(const char *module, const char *name)
{
    for (size_t i = 0; i < LENGTH(harmful_modules); i++)
        if (is_inside(module, harmful_modules[i]))
            return true;
    return find(harmful, LENGTH(harmful), module, name) == GLOBAL_HARMFUL || reaches_harmful(name);
}

static const char *modern_module(const char *module)
{
    static const char *const renamed[][2] = {
        {"__builtin__", "builtins"},
        {"copy_reg", "copyreg"},
        {"numpy.core.multiarray", "numpy._core.multiarray"},
        {"numpy.core.numeric", "numpy._core.numeric"},
    };
    for (size_t i = 0; i < LENGTH(renamed); i++)
        if (strcmp(module, renamed[i][0]) == 0)
            return renamed[i][1];
    return module;
}

static bool is_storage(const char *module, const char *name)
{
    return text_ends_with(name, "Storage") &&
           (strcmp(module, "torch") == 0 || strcmp(module, "torch.cuda") == 0 || strcmp(module, "torch.storage") == 0);
}

static bool is_constant(const char *module, const char *name)
{
    if (strcmp(module, "numpy.dtypes") == 0)
        return true;
    if (strcmp(module, "torch") != 0)
        return false;
    for (size_t i = 0; i < LENGTH(torch_constants); i++)
        if (strcmp(name, torch_constants[i]) == 0)
            return true;
    return false;
}

enum global_meaning global_meaning(const char *module, const char *name)
{
    module = modern_module(module);
    enum global_meaning meaning = find(table, LENGTH(table), module, name);
    if (meaning != GLOBAL_FOREIGN)
        return meaning;
    if (is_storage(module, name))
        return GLOBAL_STORAGE;
    if (is_constant(module, name))
        return GLOBAL_CONSTANT;
    return is_harmful(module, name) ? GLOBAL_HARMFUL : GLOBAL_FOREIGN;
}
