#!/usr/bin/env python3
"""Compares Quern's engine with transformers and peft on models of published shapes, randomly initialised, in
bf16.

  make build/test/model/test_engine_fixtures
  engine_check.py [--device cuda:0] [--model NAME]... [--layers N] [--tool PATH] [--work DIR]

Needs torch, transformers and peft (2.11, 5.17, 0.21). For each model (qwen2.5-0.5b, qwen3-0.6b,
llama-3.2-1b):

  logits     of four packed sequences: ours and transformers' bf16, each against transformers' fp32
  saved      two AdamW steps with our engine, saved, loaded by transformers: the same logits, no key missing
    or unexpected
  adapter    three steps of an adapter of rank 16, saved, loaded by peft: the same logits, other than without
    it

Exits 1 when a limit is exceeded. In bf16 the mean KL is at most 1e-4 and 1.5 times that of transformers' own
bf16, and the cosine of the logits is at least 0.999 at every position. On the CPU, which computes in fp32,
every logit is within 1e-4.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import torch
import transformers
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

HERE = os.path.dirname(os.path.abspath(__file__))
LLAMA3 = dict(rope_type="llama3", rope_theta=5e5, factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=8192)
PLAIN = dict(rope_type="default", rope_theta=1e6)
SHAPES = {
    "qwen2.5-0.5b": lambda layers: Qwen2Config(
        vocab_size=151936,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=layers or 24,
        num_attention_heads=14,
        num_key_value_heads=2,
        max_position_embeddings=32768,
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        rope_parameters=PLAIN,
        bos_token_id=151643,
        eos_token_id=151645,
    ),
    "qwen3-0.6b": lambda layers: Qwen3Config(
        vocab_size=151936,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=layers or 28,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=40960,
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        rope_parameters=PLAIN,
        bos_token_id=151643,
        eos_token_id=151645,
    ),
    "llama-3.2-1b": lambda layers: LlamaConfig(
        vocab_size=128256,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=layers or 16,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        max_position_embeddings=131072,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        rope_parameters=LLAMA3,
        bos_token_id=128000,
        eos_token_id=128009,
    ),
}
LENGTHS = [173, 2, 96, 241]


def make(config, path):
    """Norms and biases away from 1 and 0; logits of deviation 1: what bf16 does to a KL grows with their
    square."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config).float()
    for name, p in model.named_parameters():
        if p.dim() == 1:
            p.data = torch.randn_like(p) * 0.1 + (1.0 if "norm" in name else 0.0)
        elif "embed" not in name:
            p.data = torch.randn_like(p) * (0.5 * p.shape[1] ** -0.5)
    model.model.norm.weight.data *= 1.0 / (0.02 * config.hidden_size ** 0.5)
    model = model.bfloat16()
    model.config.dtype = torch.bfloat16
    model.save_pretrained(path)


def reference(path, sequences, dtype, device, adapter=None):
    model, info = AutoModelForCausalLM.from_pretrained(
        path, dtype=dtype, output_loading_info=True, attn_implementation="eager"
    )
    wrong = {
        k: v for k, v in info.items() if k in ("missing_keys", "unexpected_keys", "mismatched_keys") and v
    }
    assert not wrong, "%s: %s" % (path, wrong)
    if adapter:
        model = PeftModel.from_pretrained(model, adapter)
    model = model.eval().to(device)
    with torch.no_grad():
        rows = [
            model(input_ids=torch.tensor([s], device=device), use_cache=False).logits[0].float().cpu()
            for s in sequences
        ]
    del model
    if device != "cpu":
        torch.cuda.empty_cache()
    return torch.cat(rows)


def run(tool, *args):
    r = subprocess.run([tool, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if r.returncode:
        sys.exit("%s: %s" % (" ".join([tool, *map(str, args)]), r.stderr.strip()))
    return r.stdout


def ours(tool, device, path, ids, work):
    out = os.path.join(work, "logits.safetensors")
    run(tool, "--logits", device, path, ids, out)
    return load_file(out)["logits"]


def distance(got, want):
    kl, cosine = [], []
    for x, y in zip(got.split(32), want.split(32)):
        a, b = torch.log_softmax(y.double(), -1), torch.log_softmax(x.double(), -1)
        kl.append((a.exp() * (a - b)).sum(-1))
        cosine.append(torch.nn.functional.cosine_similarity(x.double(), y.double(), dim=-1))
    kl, cosine = torch.cat(kl), torch.cat(cosine)
    return dict(
        kl=kl.mean().item(),
        kl_max=kl.max().item(),
        cosine=cosine.min().item(),
        worst=(got - want).abs().max().item(),
    )


def report(name, what, d, exact, limit=1e-4):
    bad = d["worst"] > 1e-4 if exact else d["kl"] > limit or d["cosine"] < 0.999
    print("%-14s %-34s mean KL %.2e  largest KL %.2e  smallest cosine %.6f  largest difference %.2e%s" % (
        name, what, d["kl"], d["kl_max"], d["cosine"], d["worst"], "  TOO FAR" if bad else ""), flush=True)
    return bad


def check(name, a, work):
    base, trained, adapter = (os.path.join(work, d) for d in ("base", "trained", "adapter"))
    ids = os.path.join(work, "ids.json")
    exact = a.device == "cpu"
    on = "cuda:0" if torch.cuda.is_available() else "cpu"
    config = SHAPES[name](a.layers)
    make(config, base)
    g = torch.Generator().manual_seed(2)
    sequences = [torch.randint(0, config.vocab_size, (n,), generator=g).tolist() for n in LENGTHS]
    with open(ids, "w") as f:
        json.dump(dict(sequences=sequences), f)

    want = reference(base, sequences, torch.float32, on)
    theirs = distance(reference(base, sequences, torch.bfloat16, on), want)
    bad = report(name, "transformers' bf16", theirs, False)
    bad |= report(name, "ours on " + a.device, distance(ours(a.tool, a.device, base, ids, work), want), exact,
                  min(1e-4, 1.5 * theirs["kl"]))

    losses = run(a.tool, "--train", a.device, base, ids, trained, 0, 2).split()
    bad |= report(
        name,
        "saved by us, losses " + " ".join(x[:6] for x in losses),
        distance(
            ours(a.tool, a.device, trained, ids, work), reference(trained, sequences, torch.float32, on)
        ),
        exact,
    )
    same = (
        open(os.path.join(base, "config.json"), "rb").read()
        == open(os.path.join(trained, "config.json"), "rb").read()
    )
    bad |= not same
    if not same:
        print("%-14s config.json was changed by saving" % name)

    losses = run(a.tool, "--train", a.device, base, ids, adapter, 16, 3).split()
    with_adapter = reference(base, sequences, torch.float32, on, adapter)
    bad |= report(name, "our adapter, losses " + " ".join(x[:6] for x in losses),
                  distance(ours(a.tool, a.device, adapter, ids, work), with_adapter), exact)
    moved = distance(with_adapter, want)["worst"]
    if moved < 0.01:
        print("%-14s the adapter changes next to nothing: %.2e" % (name, moved))
        bad = True
    return bad


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--model", action="append", choices=list(SHAPES))
    p.add_argument("--layers", type=int, default=0, help="fewer than the model has")
    p.add_argument("--tool", default=os.path.join(HERE, "../../build/test/model/test_engine_fixtures"))
    p.add_argument("--work", help="a directory to use and keep")
    a = p.parse_args()
    transformers.logging.disable_progress_bar()
    torch.backends.cuda.matmul.allow_tf32 = False
    bad = False
    for name in a.model or list(SHAPES):
        with tempfile.TemporaryDirectory() as temporary:
            work = os.path.join(a.work, name) if a.work else temporary
            os.makedirs(work, exist_ok=True)
            bad |= bool(check(name, a, work))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
