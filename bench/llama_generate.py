#!/usr/bin/env python3
"""Tokens a second of llama.cpp, as bench/generate measures them here: the same positions, batches and clock.

    bench/llama_generate.py MODEL.gguf [threads] [batch] [position] [rounds] [plain]

It needs llama-cpp-python, and a file of SmolLM2-135M in BF16 or F32 to be comparable. On one thread it counts the processor's time.
`prompt` is the speed of computing prompts of `position` tokens, one after the other. `plain` turns its special buffers off (AMX among them), with which Q8_0 ends in an invalid instruction on some machines.
"""
import ctypes
import statistics
import sys
import time

import llama_cpp.llama_cpp as lib

TOKENS = 16


def fill(batch, rows):
    batch.n_tokens = len(rows)
    for i, (token, position, sequence, wanted) in enumerate(rows):
        batch.token[i], batch.pos[i], batch.logits[i] = token, position, wanted
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence


def main():
    path = sys.argv[1]
    plain = sys.argv[-1] == "plain"
    numbers = sys.argv[2:-1] if plain else sys.argv[2:]
    threads, count, position, rounds = (int(a) for a in (numbers + ["2", "1", "128", "5"][len(numbers):]))
    now = time.process_time if threads == 1 else time.perf_counter
    silent = lib.llama_log_callback(lambda level, text, user: None)
    lib.llama_log_set(silent, ctypes.c_void_p(0))
    lib.llama_backend_init()
    parameters = lib.llama_model_default_params()
    parameters.use_extra_bufts = not plain
    model = lib.llama_model_load_from_file(path.encode(), parameters)
    options = lib.llama_context_default_params()
    options.n_ctx, options.n_batch, options.n_seq_max = 1024 * count, 2048, count
    options.n_threads = options.n_threads_batch = threads
    context = lib.llama_init_from_model(model, options)
    batch = lib.llama_batch_init(2048, 0, 1)

    def decode(rows):
        fill(batch, rows)
        if lib.llama_decode(context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        lib.llama_synchronize(context)

    prompts, speeds = [], []
    for sequence in range(count): # once: the cache keeps them
        begin = now()
        decode([(i, i, sequence, i == position - 1) for i in range(position)])
        prompts.append(position / (now() - begin))
    for r in range(rounds + 1):
        begin = now()
        for t in range(TOKENS):
            decode([(s, position + t, s, True) for s in range(count)])
        speeds.append(count * TOKENS / (now() - begin))
        for sequence in range(count):
            lib.llama_memory_seq_rm(lib.llama_get_memory(context), sequence, position, -1)
    print(f"llama.cpp, {threads} threads, batch {count}, position {position}: {statistics.median(speeds[1:]):.1f} tokens/s, "
          f"prompt {statistics.median(prompts):.1f} tokens/s (medians of {rounds})")


if __name__ == "__main__":
    main()
