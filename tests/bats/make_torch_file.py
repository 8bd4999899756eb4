"""A file as torch.save() writes it, of BF16 tensors or of another type, without torch: a zip with a pickle of the dictionary and a member for each storage."""
import pickle
import zipfile


class Storage:
    """What the pickle names a storage by."""

    def __init__(self, key, n_elements, kind):
        self.identity = ("storage", _global("torch", kind), key, "cpu", n_elements)


class _Global:
    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self):
        raise TypeError("only a name")


def _global(module, name):
    return _Global(module, name)


class Pickler(pickle._Pickler):  # the one in Python, which can be told how to write a name
    def persistent_id(self, value):
        return value.identity if isinstance(value, Storage) else None

    def save(self, value, save_persistent_id=True):
        if isinstance(value, _Global):
            self.write(pickle.GLOBAL + f"{value.module}\n{value.name}\n".encode())
        elif isinstance(value, Tensor):
            self.save(_global("torch._utils", "_rebuild_tensor_v2"))
            self.save((value.storage, 0, tuple(value.shape), value.strides, False, {}))
            self.write(pickle.REDUCE)
        else:
            super().save(value, save_persistent_id)


class Tensor:
    def __init__(self, key, shape, kind):
        self.shape, self.strides, count = shape, (), 1
        for size in reversed(shape):
            self.strides, count = (count, *self.strides), count * size
        self.storage = Storage(key, count, kind)


def write(path, tensors, kind="BFloat16Storage", around=lambda state: state):
    """`tensors` are {name: (any, shape, bytes)}; `around` makes of the dictionary what is saved."""
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("archive/data.pkl", "w") as member:
            Pickler(member, 2).dump(around({name: Tensor(str(i), shape, kind) for i, (name, (_, shape, _)) in enumerate(tensors.items())}))
        for i, (_, _, raw) in enumerate(tensors.values()):
            archive.writestr(f"archive/data/{i}", raw)
        archive.writestr("archive/version", "3\n")
