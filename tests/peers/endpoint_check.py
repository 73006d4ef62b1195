#!/usr/bin/env python3
"""Compares the log-probabilities that an endpoint reports for its samples with transformers and peft.

  quern-sample --policy openai:MODEL --adapter ADAPTER --prompts FILE --output SAMPLES
  endpoint_check.py BASE ADAPTER SAMPLES [--tool build/bin/quern-artifact] [--limit 1e-4]

Needs torch, transformers and peft. BASE is the checkpoint that the server has loaded, ADAPTER the PEFT
directory that it was given, or "-" for none. For each answer the reported log-probabilities are compared with
a full pass in fp32 over the reported ids. If the server did not apply the adapter, they differ far more.
Exits 1 when the mean difference exceeds the limit, which is for a server in fp32 (5e-3 for one in bf16), or
when an answer lacks ids or log-probabilities.
"""

import argparse
import json
import subprocess
import sys

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM


def main():
    p = argparse.ArgumentParser()
    p.add_argument("base")
    p.add_argument("adapter")
    p.add_argument("samples")
    p.add_argument("--tool", default="build/bin/quern-artifact")
    p.add_argument("--limit", type=float, default=1e-4)
    a = p.parse_args()
    model = AutoModelForCausalLM.from_pretrained(a.base, dtype=torch.float32)
    if a.adapter != "-":
        model = PeftModel.from_pretrained(model, a.adapter)
    model.eval()
    lines = subprocess.run(
        [a.tool, "export", a.samples], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    worst = total = tokens = 0
    for row in map(json.loads, lines):
        prompt, ids, told = row["prompt_ids"], row["ids"], row["logprobs"]
        assert len(ids) == len(told), row["id"]
        with torch.no_grad():
            logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
        own = torch.log_softmax(logits, -1)[torch.arange(len(ids)), torch.tensor(ids)]
        differ = (own - torch.tensor(told)).abs()
        worst, total, tokens = max(worst, differ.max().item()), total + differ.sum().item(), tokens + len(ids)
    print(f"{len(lines)} answers, {tokens} tokens: mean {total / tokens:.2g}, largest {worst:.2g}")
    sys.exit(total / tokens > a.limit)


if __name__ == "__main__":
    main()
