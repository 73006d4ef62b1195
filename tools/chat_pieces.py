#!/usr/bin/env python3
"""Reads the chat template of a checkpoint that Quern does not know by its whole text:

  pip install transformers
  chat_pieces.py DIR [DATE]

DATE, such as '26 Jul 2024', is for templates that have the date of the day, as Llama 3.2's.
The template is rendered around sentinels and cut into what stands before and after a user's text and what
ends an answer. Five conversations must then have the ids of apply_chat_template. DIR/quern_chat.json gets the
pieces, with the digest of the template; stages/policy/chat.c reads it. A template that cannot be cut so is
refused with its reason: exit status 1.
"""

import hashlib
import json
import os
import re
import sys

USER, ANSWER = "\ue000user\ue001", "\ue000answer\ue001"
PROOFS = [
    ("hi", "yes"),
    ("# Task relu\n\nfor (int i = 0; i < n; i++) y[i] = x[i];\n", "## Code\n```cuda\nint x;\n```"),
    ("  indented\t", "a  b"),
    ("\n\nlines before and after \n\n", "ends here\n"),
    ("don't 12345 你好 e\u0301 \u00a0\u3000", "// 1.0f / sqrtf(x) \u00e9"),
]


class Refused(Exception):
    pass


def template_of(folder):
    path = os.path.join(folder, "chat_template.jinja")
    if os.path.exists(path):
        return open(path, encoding="utf-8", newline="").read()
    path = os.path.join(folder, "tokenizer_config.json")
    found = json.load(open(path, encoding="utf-8")).get("chat_template") if os.path.exists(path) else None
    if isinstance(found, list):
        found = next((t["template"] for t in found if t["name"] == "default"), None)
    if not found:
        raise Refused("there is no chat template: none needs to be read")
    return found


def trims(render, cut):
    """Whether the template strips a text, which is the question that render answers."""
    for text in ("  x\n ", "\n\ty  "):
        got = render(text)
        if got != cut.replace(USER, text) and got != cut.replace(USER, text.strip()):
            raise Refused("the template changes the text of a turn")
    return got == cut.replace(USER, text.strip())


class Pieces:
    def __init__(self, tok, template, date=None):
        self.tok, self.template, self.date = tok, template, {"date_string": date} if date else {}
        if "strftime_now" in template and not (date and "date_string" in template):
            raise Refused("the template has the date of the day, which would change prompts: give DATE")
        names = sorted((t.content for t in tok.added_tokens_decoder.values() if t.special), key=len)
        self.special = re.compile("|".join(re.escape(n) for n in reversed(names)))
        prompt = self.render([USER], True)
        both = self.render([USER, ANSWER], False)
        if prompt.count(USER) != 1 or both.count(USER) != 1 or both.count(ANSWER) != 1:
            raise Refused("a text of the conversation is not in the prompt once")
        if not both.startswith(prompt + ANSWER):
            raise Refused("the prompt of an answer is not how the finished conversation goes on")
        before, after = prompt.split(USER)
        end = self.special.match(both[len(prompt + ANSWER) :])
        last, first = None, self.special.search(after)
        for last in self.special.finditer(before):
            pass
        if not end or not first:
            raise Refused("no special token follows a turn")
        at = last.end() if last else 0
        self.before, self.before_text = self.encode(before[:at]), before[at:]
        self.after_text, self.after = after[: first.start()], self.encode(after[first.start() :])
        self.end = tok.convert_tokens_to_ids(end.group())
        self.trim = trims(lambda t: self.render([t], True), prompt)
        answered = both.replace(USER, "u").replace(ANSWER, USER)
        self.trim_answer = trims(lambda t: self.render(["u", t], False), answered)
        if max(len(self.before), len(self.after)) > 4096:
            raise Refused("what stands around a turn is more than 4096 ids")
        if max(len(t.encode()) for t in (self.before_text, self.after_text)) > 1000:
            raise Refused("a text around a turn is longer than 1000 bytes")
        self.prove()

    def render(self, turns, prompt, **more):
        roles = [{"role": ("user", "assistant")[i % 2], "content": t} for i, t in enumerate(turns)]
        more = more or {"tokenize": False}
        return self.tok.apply_chat_template(
            roles, chat_template=self.template, add_generation_prompt=prompt, **self.date, **more
        )

    def encode(self, text):
        return self.tok.encode(text, add_special_tokens=False)

    def prove(self):
        ids = {"tokenize": True, "return_dict": False}
        for user, answer in PROOFS:
            said = user.strip() if self.trim else user
            got = self.before + self.encode(self.before_text + said + self.after_text) + self.after
            if got != self.render([user], True, **ids):
                raise Refused(f"the ids of the prompt {user!r} are not those of apply_chat_template")
            got += self.encode(answer.strip() if self.trim_answer else answer) + [self.end]
            if got != self.render([user, answer], False, **ids)[: len(got)]:
                raise Refused(f"the ids of the answer {answer!r} are not those of apply_chat_template")


def main(folder, date=None):
    from transformers import AutoTokenizer

    template = template_of(folder)
    p = Pieces(AutoTokenizer.from_pretrained(folder), template, date)
    digest = hashlib.sha256(template.removesuffix("\n").encode()).hexdigest()
    fields = ("before", "before_text", "after_text", "after", "end", "trim", "trim_answer")
    out = {"template": digest, **{f: getattr(p, f) for f in fields}}
    with open(os.path.join(folder, "quern_chat.json"), "w", encoding="utf-8") as f:
        json.dump(out, f, indent=1)
    print(f"{folder}/quern_chat.json: proved on {len(PROOFS)} conversations")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except Refused as e:
        sys.exit(f"chat_pieces.py: {sys.argv[1]}: {e}")
