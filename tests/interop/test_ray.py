"""examples/ray on two nodes of Ray: a worker is killed, and the file is that of one wfs cp."""
import os
import pathlib
import subprocess
import sys
import tempfile

from interop import ROOT, WFS, check, done, leave_out, wfs

PATH = "gguf/model-Q8_0.gguf"
PARTS = 6
EXAMPLE = ROOT / "examples/ray"


def killing_wfs(scratch):
    """A wfs whose first call for part 3 kills the worker of Ray that started it, and itself."""
    program, killed = scratch / "wfs", scratch / "killed"
    program.write_text(f"""#!/bin/bash
if [ "$3" = 3/{PARTS} ] && mkdir "{killed}" 2>/dev/null; then
    kill -KILL "$PPID"
    kill -KILL $$
fi
exec "{WFS}" "$@"
""")
    program.chmod(0o755)
    return program, killed


def run_example(ray, model, dest):
    from ray.cluster_utils import Cluster
    node = dict(num_cpus=1, object_store_memory=80 << 20)
    cluster = Cluster(initialize_head=True, head_node_args=node | dict(include_dashboard=False))
    cluster.add_node(**node)
    ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
    import convert as example
    try:
        example.convert([str(model), PATH, str(dest)], PARTS, 1)
        try:
            example.convert([str(model), "gguf/model-Q4_0.gguf", str(dest)], PARTS, 1)
            check(False, "another file is refused")
        except RuntimeError as error:
            check("is not this copy" in str(error), f"another file is refused: {error}")
    finally:
        ray.shutdown()
        cluster.shutdown()


def main():
    sys.path.insert(0, str(EXAMPLE))
    os.environ.update(PYTHONPATH=str(EXAMPLE), RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_UV_RUN_RUNTIME_ENV="0", RAY_DEDUP_LOGS="0", RAY_IGNORE_UNHANDLED_ERRORS="1")
    try:
        import ray
    except ImportError:
        leave_out("needs ray")
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        model, whole, dest = scratch / "model", scratch / "whole.gguf", scratch / "copy.gguf"
        subprocess.run([sys.executable, ROOT / "tests/data/make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
        check(wfs("cp", model, PATH, whole).returncode == 0, "the copy of one wfs cp")
        program, killed = killing_wfs(scratch)
        os.environ["WFS"] = str(program)
        run_example(ray, model, dest)
        check(killed.exists(), "a worker was killed")
        check(dest.read_bytes() == whole.read_bytes(), "the file has the bytes of one wfs cp")
        check(not dest.with_name("copy.gguf.wfs-parts").exists(), "no parts are left")
    done()


if __name__ == "__main__":
    main()
