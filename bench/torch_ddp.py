"""Whole training steps of GPT-2 124M on several ranks in PyTorch: the other side of bench/ranks.

    torch_ddp.py --ranks 2 --threads 1 --precision f32|bf16 --batch 4 --seq 1024 [--compile | --fsdp]

It says "ready", then answers every line "WARM PASSES" with the seconds of one step, as bench/ranks.c does. Model, loss, optimizer and
clipping are those of torch_gpt2.py. DistributedDataParallel with gloo is used as its documentation advises: gradients are views of
its buckets, so that they are not copied, and the graph is static. With --fsdp it is FSDP2 instead: fully_shard on each block and on the rest, eager, with bf16 as its mixed
precision (gradients are added in f32). The batch is that of all ranks together. Threads are those of a rank.
"""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import torch_gpt2
import torch_serve


def replicate(model, a):
    ranks = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph=True)
    return torch.compile(ranks) if a.compile else ranks


def shard(model, a):
    for parameter in model.parameters():  # the weights of rank 0, as DistributedDataParallel does by itself
        dist.broadcast(parameter.data, 0)
    mesh = init_device_mesh("cpu", (a.ranks,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if a.precision == "bf16" else MixedPrecisionPolicy()
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def make_step(a):
    model = torch_gpt2.GPT2()
    if a.fsdp:
        forward = shard(model, a)
    optimizer = torch_gpt2.optimizer_of(model)  # of the pieces that a rank has
    if not a.fsdp:
        forward = replicate(model, a)
    ids, targets = (torch.randint(0, 50257, (a.batch // a.ranks, a.seq)) for _ in range(2))
    casts = a.precision == "bf16" and not a.fsdp

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=casts):
            loss = forward(ids, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def run(rank, a, store):
    torch.set_num_threads(a.threads)
    torch.manual_seed(rank)  # other samples on every rank; DistributedDataParallel gives all of them the weights of rank 0
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=a.ranks)
    step = make_step(a)

    def together(flag):
        """Rank 0 says whether there is another step; the others wait for that without spinning."""
        word = torch.tensor([flag])
        dist.broadcast(word, 0)
        return word.item()

    if rank == 0:
        torch_serve.serve(lambda: (together(1), step()))
        together(0)
    else:
        while together(0):
            step()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--fsdp", action="store_true")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=1024)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anneal-bench-") as folder:
        store = os.path.join(folder, "store")
        for rank in range(1, a.ranks):  # before any thread exists
            if os.fork() == 0:
                run(rank, a, store)
                os._exit(0)
        run(0, a, store)
        for _ in range(1, a.ranks):
            os.wait()


if __name__ == "__main__":
    main()
