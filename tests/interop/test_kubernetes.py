"""The Job of examples/kubernetes, by the schemas of several versions of Kubernetes.

These know fields and types, not the rules between fields: tests/interop/by_hand/kubernetes runs the API server's own validation.
"""
import shutil
import subprocess
import sysconfig

from interop import ROOT, check, done, leave_out

JOB = ROOT / "examples/kubernetes/job.yaml"


def main():
    tool = shutil.which("kubernetes-validate", path=sysconfig.get_path("scripts"))
    if tool is None:
        leave_out("needs kubernetes-validate")
    for version in "1.33", "1.35", "1.37":
        result = subprocess.run([tool, "--strict", "-k", version, JOB], check=False, capture_output=True, text=True)
        check(result.returncode == 0, f"Kubernetes {version} takes the job: {result.stdout[-300:]}{result.stderr[-300:]}")
    wrong = subprocess.run([tool, "--strict", "-k", "1.33", "/dev/stdin"], input=JOB.read_text().replace("parallelism", "paralelism"),
                           check=False, capture_output=True, text=True)
    check(wrong.returncode != 0, "and not a wrong one")
    done()


if __name__ == "__main__":
    main()
