#!/usr/bin/env python3
"""PyTorch, transformers and peft on the shapes of docs/measurements/engine.md, to set beside Quern's engine
in the same run.

    python3 tests/gpu/engine_torch.py [--only
      lora7b,lora7b-recompute,full05b,decode7b-1,decode7b-64,decode05b-64] [--steps 6]

One JSON line a measurement: what, tokens per second (median over the steps after two warm-ups), milliseconds
a step, and peak memory in GiB. Weights are random, bf16; attention is PyTorch's SDPA; training is eager with
AdamW on every trained parameter, decoding is `generate` with its dynamic cache. decode: new tokens per second
of all rows together, the prompt's pass left out (two lengths are timed, their difference counts).
"""

import argparse
import json
import statistics
import sys
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

SHAPES = {
    "0.5b": dict(
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        vocab_size=151936,
        tie_word_embeddings=True,
    ),
    "7b": dict(
        hidden_size=3584,
        intermediate_size=18944,
        num_hidden_layers=28,
        num_attention_heads=28,
        num_key_value_heads=4,
        vocab_size=152064,
        tie_word_embeddings=False,
    ),
}


def make(shape):
    torch.manual_seed(1)
    config = Qwen2Config(max_position_embeddings=32768, rms_norm_eps=1e-6, **SHAPES[shape])
    config._attn_implementation = "sdpa"
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = Qwen2ForCausalLM(config)
    torch.set_default_dtype(before)
    return model


def report(what, tokens, seconds):
    s = statistics.median(seconds)
    print(json.dumps({"what": what, "tokens_per_s": tokens / s, "ms": s * 1e3, "runs": len(seconds),
                      "peak_gib": torch.cuda.max_memory_allocated() / 2**30}), flush=True)


def train(what, shape, lora, recompute, rows, length, steps):
    model = make(shape)
    if lora:
        from peft import LoraConfig, get_peft_model
        model = get_peft_model(
            model, LoraConfig(r=lora, lora_alpha=2 * lora, target_modules="all-linear", task_type="CAUSAL_LM")
        )
    model.train()
    if recompute:
        model.config.use_cache = False
        if lora:
            model.enable_input_require_grads()
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, fused=True)
    times = []
    torch.cuda.reset_peak_memory_stats()
    for i in range(steps + 2):
        ids = torch.randint(0, 150000, (rows, length), device="cuda")
        torch.cuda.synchronize()
        t = time.perf_counter()
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        if i >= 2:
            times.append(time.perf_counter() - t)
    report(what, rows * length, times)


@torch.no_grad()
def decode(what, shape, rows, prompt, new):
    model = make(shape).eval()
    ids = torch.randint(0, 150000, (rows, prompt), device="cuda")
    model.generation_config.pad_token_id = 0
    model.generation_config.eos_token_id = None

    def run(n):
        torch.cuda.synchronize()
        t = time.perf_counter()
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            temperature=1.0,
            top_k=0,
            min_new_tokens=n,
            max_new_tokens=n,
        )
        torch.cuda.synchronize()
        return time.perf_counter() - t

    run(8)
    torch.cuda.reset_peak_memory_stats()
    pairs = [run(new + 8) - run(8) for _ in range(2)]
    report(what, rows * new, pairs)


WORK = {
    "lora7b": lambda steps: train("lora7b", "7b", 16, False, 4, 2048, steps),
    "lora7b-recompute": lambda steps: train("lora7b-recompute", "7b", 16, True, 4, 2048, steps),
    "full05b": lambda steps: train("full05b", "0.5b", 0, False, 16, 1024, steps),
    "decode7b-1": lambda steps: decode("decode7b-1", "7b", 1, 512, 64),
    "decode7b-64": lambda steps: decode("decode7b-64", "7b", 64, 512, 64),
    "decode05b-64": lambda steps: decode("decode05b-64", "0.5b", 64, 512, 64),
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(WORK))
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    failed = 0
    for name in args.only.split(","):
        try:
            WORK[name](args.steps)
        except Exception as e:  # the other lines are still wanted
            print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr)
            failed = 1
        torch.cuda.empty_cache()
    return failed


if __name__ == "__main__":
    sys.exit(main())
