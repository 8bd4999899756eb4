"""Models for remote.bats: remote_inputs.py ORG. Makes ORG/sixteen of ORG/tiny: the same tensors in 16 shards."""
import json
import pathlib
import shutil
import struct
import sys

organization = pathlib.Path(sys.argv[1])
tiny, sixteen = organization / "tiny", organization / "sixteen"
shutil.copytree(tiny, sixteen, ignore=shutil.ignore_patterns("*.safetensors"))
content = (tiny / "model.safetensors").read_bytes()
length = struct.unpack("<Q", content[:8])[0]
header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
header.pop("__metadata__", None)
weight_map = {}
for number in range(16):
    name = f"model-{number + 1:05d}-of-00016.safetensors"
    part, data = {}, b""
    for tensor in list(header)[number::16]:
        first, last = header[tensor]["data_offsets"]
        part[tensor] = header[tensor] | {"data_offsets": [len(data), len(data) + last - first]}
        data += body[first:last]
        weight_map[tensor] = name
    text = json.dumps(part).encode()
    (sixteen / name).write_bytes(struct.pack("<Q", len(text)) + text + data)
index = {"metadata": {"total_size": len(body)}, "weight_map": weight_map}
(sixteen / "model.safetensors.index.json").write_text(json.dumps(index))
