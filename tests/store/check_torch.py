"""What `anneal export --to torch` writes computes what the golden files say, for every op that they have, in f64.

    pip install safetensors torch      # 0.8.0 and 2.15.0 were used
    tests/store/check_torch.py BUILD/bin/test_train_torch

The program, given a graph, writes its module. Exit code 1: something differs.
"""
import pathlib
import subprocess
import sys

import numpy
import torch

program = pathlib.Path(sys.argv[1]).resolve()
data = pathlib.Path(__file__).resolve().parent.parent / "golden" / "data"
STORED = {"f64": "<f8", "i32": "<i4", "i64": "<i8"}
LIMIT = 1e-11  # of the largest element


def read(path):
    """Arrays by role and name."""
    content = path.read_bytes()
    lines, at, arrays = [], 0, {}
    while not lines or lines[-1] != "end":
        end = content.index(b"\n", at)
        lines.append(content[at:end].decode())
        at = end + 1
    for line in lines[1:-1]:
        role, name, dtype, _, *dims = line.split(" ")
        count = int(numpy.prod([int(d) for d in dims], dtype=numpy.int64))
        array = numpy.frombuffer(content, STORED[dtype], count, at).reshape([int(d) for d in dims])
        arrays[role, name] = torch.from_numpy(array.copy())
        at += array.nbytes
    return arrays


compared, left_out, failed = 0, [], 0
for form in sorted(data.glob("*.ang")):
    arrays = read(form.with_suffix(".bin"))
    wanted = {name: tensor for (role, name), tensor in arrays.items() if role == "output"}
    made = subprocess.run([program, form], capture_output=True, text=True)
    if made.returncode == 77:
        left_out.append(form.stem)
        continue
    assert made.returncode == 0, made.stderr
    module = {"__file__": str(form), "__name__": form.stem}
    exec(compile(made.stdout, form.stem, "exec"), module)
    model = module["Model"]().eval()
    model.load_state_dict({name: tensor for (role, name), tensor in arrays.items() if role in ("param", "state")})
    given = {name: tensor for (role, name), tensor in arrays.items() if role in ("input", "scalar")}
    arguments = model.forward.__code__.co_varnames[1 : model.forward.__code__.co_argcount]
    with torch.no_grad():
        found = model(*(given[name] for name in arguments))
    found = found if isinstance(found, dict) else {next(iter(wanted)): found}
    for name, expected in wanted.items():
        distance = (found[name].double() - expected).abs().max().item()
        if found[name].shape != expected.shape or not distance <= LIMIT * max(1.0, expected.abs().max().item()):
            failed += 1
            print(f"{form.stem}: {name} is {distance:.1e} apart")
    compared += 1
print(f"{compared} graphs compared, {failed} outputs differ; without outputs: {' '.join(left_out)}")
sys.exit(failed > 0 or compared == 0)
