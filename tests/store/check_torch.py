"""What `anneal export --to torch` writes computes what the golden files say, for every op that they have, in f64.

    pip install safetensors torch      # 0.8.0 and 2.15.0 were used
    tests/store/check_torch.py BUILD/bin/test_store_torch

The program, given a graph, writes its module. Exit code 1: something differs.
"""
import pathlib
import subprocess
import sys
import tempfile

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import golden_cases

program = pathlib.Path(sys.argv[1]).resolve()
LIMIT = 1e-11  # of the largest element

compared, left_out, failed = 0, [], 0
for case, graph, arrays in golden_cases.read():
    arrays = {key: torch.from_numpy(array) for key, array in arrays.items()}
    wanted = {name: tensor for (role, name), tensor in arrays.items() if role == "output"}
    with tempfile.NamedTemporaryFile("w", suffix=".ang") as form:
        form.write(graph)
        form.flush()
        made = subprocess.run([program, form.name], capture_output=True, text=True)
    if made.returncode == 77:
        left_out.append(case)
        continue
    assert made.returncode == 0, made.stderr
    module = {"__file__": case, "__name__": case}
    exec(compile(made.stdout, case, "exec"), module)
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
            print(f"{case}: {name} is {distance:.1e} apart")
    compared += 1
print(f"{compared} graphs compared, {failed} outputs differ; without outputs: {' '.join(left_out)}")
sys.exit(failed > 0 or compared == 0)
