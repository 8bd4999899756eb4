#!/usr/bin/env python3
"""Writes a checkpoint of a format: write_formats.py FORMAT DIRECTORY N ROWS COLUMNS, for `scripts/bench formats`.

It has N tensors of F32, layers.0.weight and so on, of ROWS times COLUMNS. Prints the path to mount. The interpreter has
numpy, h5py, torch and safetensors; formats without a library here are written as their readers in formats/ say.
"""
import json
import pathlib
import pickle
import struct
import sys
import tarfile
import zipfile

import numpy


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC32C = crc32c_table()


def crc32c_masked(data):
    sum = 0xFFFFFFFF
    for byte in data:
        sum = CRC32C[(sum ^ byte) & 255] ^ sum >> 8
    sum ^= 0xFFFFFFFF
    return ((sum >> 15 | sum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """A field of protobuf: an integer, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def to_torch(tensors):
    import torch
    return {name: torch.from_numpy(array.copy()) for name, array in tensors.items()}


def write_safetensors(folder, tensors):
    from safetensors.numpy import save_file
    save_file(tensors, folder / "model.safetensors")
    return folder / "model.safetensors"


def write_torch(folder, tensors):
    import torch
    torch.save(to_torch(tensors), folder / "pytorch_model.bin")
    return folder / "pytorch_model.bin"


def write_dcp(folder, tensors):
    from torch.distributed.checkpoint import save
    save({"model": to_torch(tensors)}, checkpoint_id=folder, no_dist=True)
    return folder


def write_deepspeed(folder, tensors):
    import torch
    step = folder / "global_step1"
    step.mkdir()
    (folder / "latest").write_text("global_step1")
    flat = torch.from_numpy(numpy.concatenate([array.reshape(-1) for array in tensors.values()]))
    shapes = {name: torch.Size(array.shape) for name, array in tensors.items()}
    torch.save({"module": {}, "param_shapes": [shapes], "buffer_names": []}, step / "mp_rank_00_model_states.pt")
    state = {"zero_stage": 2, "partition_count": 1, "single_partition_of_fp32_groups": [flat]}
    torch.save({"optimizer_state_dict": state}, step / "zero_pp_rank_0_mp_rank_00_optim_states.pt")
    return folder


def write_nemo(folder, tensors):
    weights = write_torch(folder, tensors)
    with tarfile.open(folder / "model.nemo", "w") as archive:
        archive.add(weights, "./model_weights.ckpt")
    weights.unlink()
    return folder / "model.nemo"


def write_onnx(folder, tensors):
    graph = b"".join(field(5, b"".join(field(1, size) for size in array.shape) + field(2, 1) + field(8, name.encode())
                           + field(9, array.tobytes())) for name, array in tensors.items())
    (folder / "model.onnx").write_bytes(field(1, 8) + field(7, graph) + field(8, field(2, 17)))
    return folder / "model.onnx"


def write_hdf5(folder, tensors):
    import h5py
    with h5py.File(folder / "model.h5", "w", libver="latest") as file:
        for name, array in tensors.items():
            file.create_dataset(name, data=array)
    return folder / "model.h5"


def write_flax(folder, tensors):
    def text(string):
        return struct.pack(">BB", 0xD9, len(string)) + string

    with open(folder / "model.msgpack", "wb") as out:
        out.write(struct.pack(">BI", 0xDF, len(tensors)))
        for name, array in tensors.items():
            head = b"\x93\x92" + b"".join(struct.pack(">BI", 0xCE, size) for size in array.shape) + text(b"float32")
            head += struct.pack(">BI", 0xC6, array.nbytes)
            out.write(text(name.encode()) + struct.pack(">BIB", 0xC9, len(head) + array.nbytes, 1) + head)
            out.write(array)
    return folder / "model.msgpack"


def table(entries):
    """A table as LevelDB has them, of sorted keys; none shares its beginning with another."""
    out, handles = bytearray(), []

    def block(pairs):
        data = b"".join(varint(0) + varint(len(key)) + varint(len(value)) + key + value for key, value in pairs)
        data += struct.pack("<II", 0, 1)
        handle = varint(len(out)) + varint(len(data))
        out.extend(data + b"\0" + struct.pack("<I", crc32c_masked(data + b"\0")))
        return handle

    for first in range(0, len(entries), 64):
        part = entries[first:first + 64]
        handles.append((part[-1][0], block(part)))
    footer = block([]) + block(handles)
    return bytes(out) + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def write_tensorflow(folder, tensors):
    entries, at = [(b"", field(1, 1) + field(3, field(1, 1)))], 0
    with open(folder / "model.ckpt.data-00000-of-00001", "wb") as out:
        for name in sorted(tensors):
            array = tensors[name]
            shape = b"".join(field(2, field(1, size)) for size in array.shape)
            entries.append((name.encode(), field(1, 1) + field(2, shape) + field(4, at) + field(5, array.nbytes)))
            out.write(array)
            at += array.nbytes
    (folder / "model.ckpt.index").write_bytes(table(entries))
    return folder / "model.ckpt.index"


def write_pt2(folder, tensors):
    config = {}
    with zipfile.ZipFile(folder / "model.pt2", "w") as archive:
        for i, (name, array) in enumerate(tensors.items()):
            archive.writestr(f"model/data/weights/weight_{i}", array.tobytes())
            meta = {"dtype": 7, "sizes": [{"as_int": size} for size in array.shape], "requires_grad": False,
                    "device": {"type": "cpu", "index": None}, "strides": [{"as_int": array.shape[1]}, {"as_int": 1}],
                    "storage_offset": {"as_int": 0}, "layout": 7}
            config[name] = {"path_name": f"weight_{i}", "is_param": True, "use_pickle": False, "tensor_meta": meta}
        archive.writestr("model/data/weights/model_weights_config.json", json.dumps({"config": config}))
        archive.writestr("model/archive_format", "pt2")
        archive.writestr("model/byteorder", "little")
    return folder / "model.pt2"


def write_paddle(folder, tensors):
    with open(folder / "model.pdparams", "wb") as out:
        pickle.dump({**tensors, "StructuredToParameterName@@": {name: name for name in tensors}}, out, protocol=4)
    return folder / "model.pdparams"


def write_tensorizer(folder, tensors):
    def entry(name, array, header, data):
        return struct.pack("<H", len(name)) + name + struct.pack("<BB", 0, 3) + b"<f4" + struct.pack("<B2I", 2, *array.shape) \
            + struct.pack("<3Q", header, data, array.nbytes)

    table_bytes = sum(len(entry(name.encode(), array, 0, 0)) for name, array in tensors.items())
    first = (5 + 4 + 32 + 4 * 8 + table_bytes + 4095) // 4096 * 4096
    at, entries = first, []
    for name, array in tensors.items():
        entries.append(entry(name.encode(), array, at, at))
        at += array.nbytes
    with open(folder / "model.tensors", "wb") as out:
        out.write(b"|TZR|" + struct.pack("<I", 5) + bytes(32) + struct.pack("<4Q", at, 0, len(tensors), table_bytes))
        out.write(b"".join(entries))
        out.write(bytes(first - out.tell()))
        for array in tensors.values():
            out.write(array)
    return folder / "model.tensors"


def write_ggml(folder, tensors):
    with open(folder / "ggml-model.bin", "wb") as out:
        out.write(struct.pack("<III", 0x67676A74, 1, 1)[:8])  # ggjt 1: tensors are aligned
        out.write(struct.pack("<7I", 1, 8, 8, 1, 1, 8, 0) + struct.pack("<I", 1) + b"a" + struct.pack("<f", 0))
        for name, array in tensors.items():
            out.write(struct.pack("<III", 2, len(name), 0) + struct.pack("<II", *reversed(array.shape)) + name.encode())
            out.write(bytes(-out.tell() % 32))
            out.write(array)
    return folder / "ggml-model.bin"


def main():
    writers = {name[6:]: function for name, function in globals().items() if name.startswith("write_")}
    kind, folder, n, rows, columns = sys.argv[1], pathlib.Path(sys.argv[2]), *map(int, sys.argv[3:])
    noise = numpy.random.default_rng(1).standard_normal((rows, columns), numpy.float32)
    print(writers[kind](folder, {f"layers.{i}.weight": noise for i in range(n)}))


main()
