"""OpenBLAS may not know the processor that tests run on. Tools then warn, where tests would hear nothing."""
import re
import subprocess


def taken(env, info_path):
    """`env` with the kernels that this jask-info advises to set, if it does."""
    said = subprocess.run([info_path], env=env, capture_output=True, text=True, check=False).stdout
    advice = re.search(r"OPENBLAS_CORETYPE=(\w+)", said)
    return {**env, "OPENBLAS_CORETYPE": advice[1]} if advice else env
