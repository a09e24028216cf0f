#!/usr/bin/env bash
# `anneal export --to torch` and `--to onnx`: model.py of every kind of model says in PyTorch what `anneal predict`
# says, and the weights are the same bits. So does ONNX Runtime with the ONNX file.
#   tools_torch.sh SOURCE-TREE      (ANNEAL_TORCH_PYTHON is a python with torch, safetensors, onnx and onnxruntime)
source "$(dirname "$0")/preamble.sh"
[ -z "${ANNEAL_RUN:-}" ] || exit 77 # the checks in Python start programs themselves
tree=$1
python=${ANNEAL_TORCH_PYTHON:-python3}
export OMP_NUM_THREADS=2
"$python" -c 'import torch, safetensors, numpy, onnx, onnxruntime' 2>/dev/null || { echo "there is no python with torch, safetensors, onnx and onnxruntime"; exit 77; }

seq 1 60 | awk '{ printf "%g,%g,%g,%g\n", $1 / 60, $1 % 7 / 7, sin($1), $1 % 3 }' | sed '1i a,b,c,k' >rows.csv
cut -d , -f 1-3 rows.csv >inputs.csv
head -c 6000 "$tree/examples/shakespeare/tinyshakespeare.txt" >text.txt
images=$tree/examples/mnist/mnist-10k-images-idx3-ubyte.gz
labels=$tree/examples/mnist/mnist-10k-labels-idx1-ubyte.gz

table='{train: {type: csv, path: rows.csv}}'
classes='{train: {type: csv, path: rows.csv, classes: on}}'
text='{train: {type: text, path: text.txt}}'
pictures="{train: {type: idx, path: $images, labels: $labels, part: 0%..2%}}"

# compare NAME MODEL DATA INPUT [PRECISION]: trained for some steps, exported, and both asked the same
compare() {
    local name=$1 model=$2 data=$3 input=$4 precision=${5:-f32}
    cat >"$name.yaml" <<Y
run: {dir: $name, steps: 12, seed: 5}
model: $model
data: $data
batch: {global: 16}
optimizer: {lr: 1e-2}
train: {precision: $precision}
Y
    "${anneal[@]}" train "$name.yaml" >out 2>err || { cat out err; exit 1; }
    "${anneal[@]}" predict "$name" --input "$input" --output "$name.npy" >out 2>err || { cat out err; exit 1; }
    "${anneal[@]}" export "$name" --to torch "$name-torch" >out 2>err || { cat out err; exit 1; }
    "${anneal[@]}" export "$name" --to onnx "$name.onnx" >out 2>err || { cat out err; exit 1; }
    "${anneal[@]}" diff "$name" "$name-torch/model.safetensors" >out || { echo "FAILED: $name has other weights"; cat out; exit 1; }
    "$python" - "$name" "$input" <<'P'
import gzip
import importlib.util
import sys

import numpy
import onnx
import onnxruntime
import torch

name, source = sys.argv[1:]
spec = importlib.util.spec_from_file_location("model", f"{name}-torch/model.py")
model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(model)
net = model.load()
expected = torch.from_numpy(numpy.load(f"{name}.npy"))
dtype = next(net.parameters()).dtype
if source.endswith(".csv"):
    inputs = torch.from_numpy(numpy.loadtxt(source, delimiter=",", skiprows=1)[:, :3]).to(dtype)  # without targets
elif source.endswith(".gz"):
    raw = gzip.open(source).read()
    inputs = torch.from_numpy(numpy.frombuffer(raw, numpy.uint8, offset=16).reshape(-1, 1, 28, 28).copy()).to(dtype) / 255
else:
    raw = numpy.frombuffer(open(source, "rb").read(), numpy.uint8).astype(numpy.int32)
    context = expected.shape[1]
    inputs = torch.from_numpy(numpy.pad(raw, (0, -len(raw) % context)).reshape(-1, context))
with torch.no_grad():
    found = net(inputs)
assert found.dtype == expected.dtype and found.numel() == expected.numel(), (found.shape, expected.shape)
distance = (found.reshape(expected.shape) - expected).abs().max().item()
limit = (1e-5 if dtype == torch.float32 else 1e-13) * max(1, expected.abs().max().item())
assert distance <= limit, f"FAILED: {name}: {distance} apart, at most {limit}"
assert expected.std() > 0, "every output is the same"
onnx.checker.check_model(f"{name}.onnx", full_check=True)
session = onnxruntime.InferenceSession(f"{name}.onnx", providers=["CPUExecutionProvider"])
(output,) = session.run(None, {session.get_inputs()[0].name: inputs.numpy()})
onnx_distance = (torch.from_numpy(output).reshape(expected.shape) - expected).abs().max().item()
onnx_limit = 1e-5 * max(1, expected.abs().max().item())  # exponents and the like in f32
assert onnx_distance <= onnx_limit, f"FAILED: {name}: ONNX is {onnx_distance} apart, at most {onnx_limit}"
print(f"{name}: {len(inputs)} samples, PyTorch {distance:.1e} and ONNX Runtime {onnx_distance:.1e} apart")
P
}

compare mlp '{type: mlp, hidden: [16, 8], activation: gelu}' "$table" inputs.csv
compare mlp-classes '{type: mlp, hidden: [16], activation: silu, batch_norm: on, dropout: 0.2}' "$classes" rows.csv
compare mlp-f64 '{type: mlp, hidden: [16], activation: tanh}' '{train: {type: csv, path: rows.csv, dtype: f64}}' inputs.csv f64
compare mlp-units '{type: mlp, hidden: [16], activation: tanh}' \
    '{train: {type: csv, path: rows.csv}, normalize: {inputs: standard, targets: range}}' inputs.csv
compare cnn-units '{type: cnn, filters: [4], hidden: 8}' "${pictures%\}}, normalize: {inputs: range}}" "$images"
compare cnn '{type: cnn, filters: [4, 6], hidden: 16, batch_norm: on, dropout: 0.1}' "$pictures" "$images"
compare sequential '{type: sequential, layers: [{type: convolution, filters: 4, stride: 2}, batch_norm, relu, average_pool, flatten,
    {type: linear, size: 12}, layer_norm, {type: dropout, rate: 0.1}, sigmoid, {type: linear, size: 8}, rms_norm, linear]}' "$pictures" "$images"
compare gpt2 '{type: gpt2, layers: 2, heads: 2, width: 32, context: 16, dropout: 0.1}' "$text" text.txt
compare llama '{type: llama, layers: 2, heads: 4, kv_heads: 2, width: 32, hidden: 48, context: 16}' "$text" text.txt
"${anneal[@]}" graph gpt2.yaml >own.ang
compare own-graph "{graph: own.ang}" '{train: {type: text, path: text.txt, context: 16}}' text.txt

# --- a model that was trained on goes on in PyTorch ---
# Dropout and batch norm are there, and gradients reach every parameter.
"$python" - <<'P'
import importlib.util

import torch

spec = importlib.util.spec_from_file_location("model", "mlp-classes-torch/model.py")
model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(model)
net = model.load().train()
x = torch.randn(32, 3)
assert not torch.equal(net(x), net(x)), "nothing is dropped in training"
net(x).square().sum().backward()
assert all(p.grad is not None for p in net.parameters())
P

# --- every op against its golden file; shards by the package safetensors ---
"$python" "$tree/tests/store/check_torch.py" "$ANNEAL_BIN/test_store_torch"
"$python" "$tree/tests/store/check_onnx.py" "$ANNEAL_BIN/test_store_onnx"
"$python" "$tree/tests/store/check_checkpoint.py" "$ANNEAL_BIN/anneal"
echo "exports for PyTorch and ONNX: all as expected"
