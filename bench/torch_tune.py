"""Steps of fine-tuning in PyTorch with transformers and peft, timed when it is asked for: the other side of bench/tune.

    torch_tune.py GGUF lora|full --precision f32|bf16 --threads N [--compile]

It says "ready", then answers every line "WARM PASSES" with the seconds of one step. The model is read from a GGUF file, dequantised to f32, and computes under autocast, as the
documentation of peft does it: LoRA of rank 8, alpha 16, in all linear layers, 4 samples of 256 tokens, AdamW (fused), clipping.
"""
import argparse
import pathlib

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

import torch_serve

BATCH, TOKENS = 4, 256
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gguf", type=pathlib.Path)
    parser.add_argument("mode", choices=["lora", "full"])
    parser.add_argument("--precision", choices=["f32", "bf16"], required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    model = AutoModelForCausalLM.from_pretrained(arguments.gguf.parent, gguf_file=arguments.gguf.name, dtype=torch.float32)
    if arguments.mode == "lora":
        model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=LINEAR))
    model.train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=5e-4 if arguments.mode == "lora" else 5e-5, weight_decay=0.0, fused=True)
    tokens = torch.randint(0, model.config.vocab_size, (64, BATCH, TOKENS + 1))

    def loss_of(x):
        with torch.autocast("cpu", torch.bfloat16, enabled=arguments.precision == "bf16"):
            logits = model(input_ids=x[:, :-1], use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), x[:, 1:].flatten())

    forward = torch.compile(loss_of) if arguments.compile else loss_of
    number = 0

    def step():
        nonlocal number
        loss = forward(tokens[number % len(tokens)])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        number += 1

    torch_serve.serve(step)


if __name__ == "__main__":
    main()
