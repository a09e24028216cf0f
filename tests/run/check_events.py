"""The event file of a run, read by TensorBoard itself, has the numbers of metrics.jsonl.

    pip install tensorboard            # 2.21.0 was used
    tests/run/check_events.py RUN

TensorBoard keeps scalars as f32, so that is how they are compared. Exit code 1: they differ.
"""
import json
import pathlib
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

run = pathlib.Path(sys.argv[1])
events = EventAccumulator(str(run), size_guidance={"scalars": 0})
events.Reload()
expected = {}
for line in (run / "metrics.jsonl").read_text().splitlines():
    metrics = json.loads(line)
    step = metrics.pop("step")
    metrics |= {f"grad_norm/{name}": value for name, value in metrics.pop("grad_norms", {}).items()}
    for name, value in metrics.items():
        expected.setdefault(name, []).append((step, struct.unpack("f", struct.pack("f", value))[0]))
found = {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
for name in sorted(expected):
    print(f"{name}: {len(found.get(name, []))} values, {'the same' if found.get(name) == expected[name] else 'OTHERS'}")
sys.exit(found != expected)
