#!/usr/bin/env python3
"""Measures PyTorch on the CPU with transformers on the default model of `quern-sft`, to compare with
`quern-modelbench`.

    python3 tests/peers/engine_cpu.py [--threads 2] [--steps 6]

Trains on 10 sequences of 400 tokens a step (fp32, SDPA, AdamW on everything; the fastest step counts), and
samples batches of 64 rows from prompts of 400 tokens, 300 new ones each, with `generate`. Prints tokens a
second as quern-modelbench does.
"""

import argparse
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

CONFIG = dict(
    hidden_size=192,
    intermediate_size=512,
    num_hidden_layers=4,
    num_attention_heads=6,
    num_key_value_heads=2,
    vocab_size=2048,
    max_position_embeddings=2048,
    tie_word_embeddings=True,
)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = Qwen2ForCausalLM(Qwen2Config(**CONFIG))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    best = 1e9
    for _ in range(args.steps):
        ids = torch.randint(0, 2048, (10, 400))
        t = time.perf_counter()
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        best = min(best, time.perf_counter() - t)
    print(f"training: {4000 / best:.0f} tokens/s")
    model.eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    prompts = torch.randint(0, 2048, (8, 400)).repeat_interleave(8, 0)
    with torch.no_grad():
        t = time.perf_counter()
        model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            do_sample=True,
            top_k=0,
            min_new_tokens=300,
            max_new_tokens=300,
        )
        print(f"sampling: {64 * 300 / (time.perf_counter() - t):.0f} tokens/s")


if __name__ == "__main__":
    main()
