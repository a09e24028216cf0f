"""What `anneal export --to onnx` writes computes what the golden files say, for every op that they have, in f32.

    pip install numpy onnx onnxruntime      # 1.23.2 and 1.31.1 were used
    tests/store/check_onnx.py BUILD/bin/test_store_onnx

The program, given a graph, writes its model, with the weights as inputs. The golden graphs are in f64, which ONNX Runtime does not have for all
ops; here they are read as f32. Exit code 1: something differs.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import golden_cases

program = pathlib.Path(sys.argv[1]).resolve()
LIMIT = 2e-5  # of the largest element

compared, left_out, failed = 0, [], 0
for case, graph, arrays in golden_cases.read():
    arrays = {key: a.astype(numpy.float32) if a.dtype == numpy.float64 else a for key, a in arrays.items()}
    wanted = {name: array for (role, name), array in arrays.items() if role == "output"}
    with tempfile.NamedTemporaryFile("w", suffix=".ang") as form:
        form.write(graph.replace("f64", "f32"))
        form.flush()
        made = subprocess.run([program, form.name], capture_output=True)
    if made.returncode == 77:
        left_out.append(case)
        continue
    assert made.returncode == 0, made.stderr.decode()
    model = onnx.load_model_from_string(made.stdout)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(made.stdout, providers=["CPUExecutionProvider"])
    given = {name: array for (role, name), array in arrays.items() if role in ("param", "state", "input", "scalar")}
    found = session.run(list(wanted), {i.name: given[i.name] for i in session.get_inputs()})
    for name, result in zip(wanted, found):
        expected = wanted[name]
        distance = numpy.abs(result.astype(numpy.float64) - expected).max(initial=0)
        if result.shape != expected.shape or not distance <= LIMIT * max(1.0, numpy.abs(expected).max(initial=0)):
            failed += 1
            print(f"{case}: {name} is {distance:.1e} apart")
    compared += 1
print(f"{compared} graphs compared, {failed} outputs differ; without outputs: {' '.join(left_out)}")
sys.exit(failed > 0 or compared == 0)
