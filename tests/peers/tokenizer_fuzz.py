#!/usr/bin/env python3
"""Compares Quern's tokenizer with Hugging Face's `tokenizers` on fuzzed strings, real vocabularies included.

  pip install tokenizers dashscope llama-models     (compared with tokenizers 0.23.3)
  make build/test/model/test_tokenizer

  tokenizer_fuzz.py build qwen2.5|qwen3 SITE/dashscope/resources/qwen.tiktoken OUT.json
  tokenizer_fuzz.py build llama3 SITE/llama_models/llama3/tokenizer.model OUT.json
        writes the published tokenizer.json from the published ranks
  tokenizer_fuzz.py compare TOKENIZER.json TOOL N [SEED]
        compares the ids of N strings by the library and by TOOL ("build/test/model/test_tokenizer --ids"),
          half of them
        again with bytes that are not UTF-8. Exits 1 when an id differs
  tokenizer_fuzz.py speed TOKENIZER.json TOOL TEXT...
        prints seconds to load and MB/s to encode, one thread each; TOOL: "build/test/model/test_tokenizer
          --speed"
"""
import base64
import json
import os
import random
import struct
import subprocess
import sys
import time

from tokenizers import Tokenizer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
from make_tokenizer import LLAMA3, PATTERN, QWEN, QWEN3_PLAIN, QWEN_PLAIN, TEXTS  # noqa: E402

# ---- tokenizer.json from a file of ranks ----

def alphabet():
    printable = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    rest = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(0x100 + i) for i, b in enumerate(rest)}


def last_merge(ranks, token):
    """The two parts that byte pair encoding joins last to make the token."""
    parts = [bytes([b]) for b in token]
    while len(parts) > 2:
        best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], 1 << 40))
        parts[best:best + 2] = [parts[best] + parts[best + 1]]
    return [tuple(parts)]


def all_merges(ranks, token):
    """Every way to make the token of two others, as transformers' converter lists them for Llama 3."""
    cuts = [(token[:i], token[i:]) for i in range(1, len(token))]
    return sorted(
        ((a, b) for a, b in cuts if a in ranks and b in ranks), key=lambda p: (ranks[p[0]], ranks[p[1]])
    )


def build(family, source, out):
    ranks = {
        base64.b64decode(t): int(r) for t, r in (line.split() for line in open(source, "rb") if line.strip())
    }
    llama = family == "llama3"
    spell = alphabet()
    text = {t: "".join(spell[b] for b in t) for t in ranks}
    order = sorted(ranks, key=ranks.get)
    merges = [
        [text[a], text[b]]
        for t in order
        if len(t) > 1
        for a, b in (all_merges if llama else last_merge)(ranks, t)
    ]
    names = [(n, True) for n in (LLAMA3 if llama else QWEN)]
    names += [] if llama else [(n, False) for n in QWEN_PLAIN + (QWEN3_PLAIN if family == "qwen3" else [])]
    added = [
        dict(
            id=len(ranks) + i,
            content=n,
            single_word=False,
            lstrip=False,
            rstrip=False,
            normalized=False,
            special=s,
        )
        for i, (n, s) in enumerate(names)
    ]
    regex = PATTERN % (r"\p{N}{1,3}" if llama else r"\p{N}")
    split = dict(type="Split", pattern=dict(Regex=regex), behavior="Isolated", invert=False)
    byte_level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=llama, use_regex=False)
    bos = "<|begin_of_text|>"
    single = [dict(SpecialToken=dict(id=bos, type_id=0)), dict(Sequence=dict(id="A", type_id=0))]
    pair = single + [dict(SpecialToken=dict(id=bos, type_id=1)), dict(Sequence=dict(id="B", type_id=1))]
    template = dict(type="TemplateProcessing", single=single, pair=pair,
                    special_tokens={bos: dict(id=bos, ids=[len(ranks)], tokens=[bos])})
    other = dict(type="ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True)
    processors = dict(type="Sequence", processors=[{**other, "trim_offsets": False}, template])
    doc = dict(
        version="1.0",
        truncation=None,
        padding=None,
        added_tokens=added,
        normalizer=None if llama else dict(type="NFC"),
        pre_tokenizer=dict(type="Sequence", pretokenizers=[split, byte_level]),
        post_processor=processors if llama else byte_level,
        decoder=other if llama else byte_level,
        model=dict(
            type="BPE",
            dropout=None,
            unk_token=None,
            continuing_subword_prefix=None if llama else "",
            end_of_word_suffix=None if llama else "",
            fuse_unk=False,
            byte_fallback=False,
            ignore_merges=llama,
            vocab={text[t]: ranks[t] for t in order},
            merges=merges if family == "qwen3" else [" ".join(m) for m in merges],
        ),
    )
    with open(out, "w", encoding="utf-8") as f:
        json.dump(doc, f, ensure_ascii=False, indent=2)
    print(
        "%s: %d tokens, %d merges, %d added, %.1f MB"
        % (out, len(ranks), len(merges), len(added), os.path.getsize(out) / 1e6)
    )


# ---- strings ----

WORDS = (
    "the of and kernel float int for if while return threadIdx blockIdx __global__ __syncthreads "
    "extern static const void "
    "über naïve façade Straße İstanbul ΑΘΗΝΑ Москва"
).split()
SPECIALS = (
    QWEN
    + QWEN_PLAIN
    + QWEN3_PLAIN
    + LLAMA3[:12]
    + ["<|", "|>", "<thi", "<|im_end", "<think >", "<|im_end|><|im_end|>"]
)
EMOJI = "🚀🔥❤️👩‍👩‍👧🏳️‍🌈👍🏽🇩🇪1️⃣☕︎🫠"
SPACES = " \t\n\r\x0b\x0c\x1c\x1f\x85\u00a0\u1680\u180e\u2000\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
DIGITS = "0123456789٣٤५६½Ⅷ①𝟘〇一"
MARKS = "aeiouAqnÅé한\u1100\u1161\u11a8\u0300\u0301\u0308\u0323\u0307\u0327\u0338" \
    "\u0345\u05b0\u0f71\u0f72\u09c7\u09be\u3099カか\u20d7"


def fuzzed(n, seed, corpus):
    r = random.Random(seed)
    some = lambda letters, most: "".join(r.choice(letters) for _ in range(r.randrange(1, most)))
    def cut(text):
        at = r.randrange(max(1, len(text)))
        return text[at:at + r.randrange(1, 60)]
    pools = [
        lambda: cut(r.choice(corpus)),
        lambda: cut(r.choice(TEXTS)),
        lambda: some(SPACES, 6),
        lambda: r.choice(["\r\n", "\n", "\r", "\n\n", " \r\n\t", "\n    "]) * r.randrange(1, 4),
        lambda: some("'sStTrReEvVmMlLdDſ\u212a’ ", 7),
        lambda: some(DIGITS, 8),
        lambda: some(MARKS, 9),
        lambda: some(EMOJI, 6),
        lambda: r.choice(WORDS) + r.choice(["", " ", "_", "(", ");\n", ", "]),
        lambda: "".join(chr(r.randrange(0x4E00, 0x9FFF)) for _ in range(r.randrange(1, 8))),
        lambda: "".join(
            chr(r.choice([0x3041, 0x30A1, 0xAC00]) + r.randrange(80)) for _ in range(r.randrange(1, 8))
        ),
        lambda: "".join(
            chr(c)
            for c in (r.randrange(0x110000) for _ in range(r.randrange(1, 4)))
            if not 0xD800 <= c < 0xE000
        ),
        lambda: "".join(chr(r.randrange(0x3000)) for _ in range(r.randrange(1, 6))),
        lambda: "".join(chr(r.randrange(32, 127)) for _ in range(r.randrange(1, 12))),
        lambda: r.choice(SPECIALS),
    ]
    return ["".join(r.choice(pools)() for _ in range(r.randrange(1, 8))) for _ in range(n)]


def spoiled(texts, seed):
    """Bytes that are no UTF-8: cut, changed, surrogates, overlong."""
    r = random.Random(seed)
    out = []
    for text in texts:
        b = bytearray(text.encode())
        for _ in range(r.randrange(1, 4)):
            at = r.randrange(len(b) + 1)
            b[at : at + r.randrange(2)] = r.choice(
                [
                    bytes([r.randrange(128, 256)]),
                    b"\xed\xa0\x80",
                    b"\xc0\xaf",
                    b"\xe2\x82",
                    b"\xf4\x90\x80\x80",
                    b"\xf0\x9f\x9a",
                    b"\xff",
                ]
            )
        out.append(bytes(b))
    return out


# ---- comparing ----

def ask(tool, path, raw):
    """The ids that TOOL gives: (u32 length, bytes) in, (u32 count, int32 ids) out."""
    out = subprocess.run(tool.split() + [path], input=b"".join(struct.pack("<I", len(b)) + b for b in raw),
                         stdout=subprocess.PIPE, check=True).stdout
    at = 0
    for _ in raw:
        k = struct.unpack_from("<I", out, at)[0]
        yield list(struct.unpack_from("<%di" % k, out, at + 4))
        at += 4 + 4 * k


def differing(library, tool, path, raw):
    bad = total = 0
    want = library.encode_batch([b.decode("utf-8", "replace") for b in raw], add_special_tokens=False)
    for b, w, got in zip(raw, want, ask(tool, path, raw)):
        total += len(got)
        if got != w.ids:
            bad += 1
            if bad <= 10:
                print("differs:", b, got, w.ids)
    return bad, total


def compare(path, tool, n, seed):
    library = Tokenizer.from_file(path)
    library.encode_special_tokens = True
    here = os.path.dirname(os.path.abspath(__file__))
    corpus = [open(__file__, encoding="utf-8").read()]
    for folder in ("../../model", "../../tasks", "../../docs"):
        for name in sorted(os.listdir(os.path.join(here, folder))):
            if name.endswith((".c", ".md")):
                corpus.append(open(os.path.join(here, folder, name), encoding="utf-8").read())
    bad = total = spoilt = 0
    for first in range(0, n, 50000):
        texts = fuzzed(min(50000, n - first), seed + first, corpus)
        for raw in ([t.encode() for t in texts], spoiled(texts[::2], seed + first)):
            b, k = differing(library, tool, path, raw)
            bad += b
            total += k
        spoilt += len(texts[::2])
    print(
        "%s: %d strings and %d with broken UTF-8, %d ids, %d differ"
        % (os.path.basename(path), n, spoilt, total, bad)
    )
    return bad != 0


def speed(path, tool, names):
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    start = time.perf_counter()
    library = Tokenizer.from_file(path)
    library.encode_special_tokens = True
    print("tokenizers: loaded in %.3f s" % (time.perf_counter() - start))
    for name in names:
        text = open(name, encoding="utf-8").read()
        best = 1e9
        for _ in range(3):
            start = time.perf_counter()
            ids = library.encode(text, add_special_tokens=False).ids
            best = min(best, time.perf_counter() - start)
        mb = len(text.encode()) / 1e6
        print(
            "tokenizers: %s: %.2f MB, %d ids, %.2f MB/s" % (os.path.basename(name), mb, len(ids), mb / best)
        )
    subprocess.run(tool.split() + [path] + names, check=True)
    return 0


def main(a):
    if a[:1] == ["build"] and len(a) == 4 and a[1] in ("qwen2.5", "qwen3", "llama3"):
        return build(*a[1:])
    if a[:1] == ["compare"] and len(a) in (4, 5):
        return compare(a[1], a[2], int(a[3]), int(a[4]) if len(a) == 5 else 7)
    if a[:1] == ["speed"] and len(a) > 3:
        return speed(a[1], a[2], a[3:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
