"""Generators of matrix products. The third value of each is the number of terms of an element."""
import math

from ops_draw import either, number


def n(r):
    return r.choice([1, 2, 3, 5, 17, 40])


def mm(r):
    m, k, c = n(r), r.choice([0, 1, 4, 33, 150]), n(r)
    return [either(r, [m, k]), either(r, [k, c])], {}, k


def bmm(r):
    b, m, k, c = r.randint(1, 4), n(r), r.choice([1, 4, 33, 150]), n(r)
    return [either(r, [b, m, k]), either(r, [b, k, c], expand=True)], {}, k


def scales(r):
    return {k: number(r) for k in ("alpha", "beta") if r.random() < 0.5}


def add(make):
    def generate(r):
        args, _, k = make(r)
        full = args[0]["shape"][:-1] + args[1]["shape"][-1:]
        own = [1 if r.random() < 0.3 else s for s in full[r.randint(0, len(full)) :]]
        return [either(r, own)] + args, scales(r), k + 1

    return generate


def matmul(r):
    batch = [r.choice([1, 2, 3]) for _ in range(r.randint(0, 3))]
    k, a, b = r.choice([1, 4, 33, 150]), [], []
    cut = lambda: [1 if r.random() < 0.3 else s for s in batch[r.randint(0, len(batch)) :]]
    a = [k] if r.random() < 0.2 else cut() + [n(r), k]
    b = [k] if r.random() < 0.2 else cut() + [k, n(r)]
    return [either(r, a, expand=True), either(r, b)], {}, k


def linear(r):
    batch = [r.choice([1, 2, 5]) for _ in range(r.randint(0, 3))]
    k, out = r.choice([1, 4, 33, 300]), n(r)
    bias = [either(r, [out])] if r.random() < 0.6 else [None] if r.random() < 0.5 else []
    return [either(r, batch + [k]), either(r, [out, k])] + bias, {}, k + 1


EQUATIONS = ["bijl,lk->bijk", "ij,jk", "ij,jk->ki", "bij,bjk->bik", "i,j->ij", "ij,ij->", "ij,ij->ij",
             "ii,ij->j", "abc,cd->", "bhqd,bhkd->bhqk", "abcd,efc -> eafbd", "aB,Bc", "ij,kj->ik",
             "bn,anm->bam", "nct,ncp->ntp", "ab,cd->acbd", "abc,bad->dc", "i,i",
             "bcl,bcs->bls", "ija,k->kji"]


def einsum(r):
    e = r.choice(EQUATIONS)
    terms = [t.strip() for t in e.split("->")[0].split(",")]
    size = {c: r.choice([1, 2, 3, 5, 7]) for c in sorted(set(e)) if c.isalpha()}
    one = lambda t: [size[c] if r.random() < 0.9 or t.count(c) > 1 else 1 for c in t]
    shapes = [one(t) for t in terms]
    result = e.split("->")[1] if "->" in e else [c for c in size if e.count(c) == 1]
    summed = math.prod(n for c, n in size.items() if c not in result)
    return [e, [either(r, s) for s in shapes]], {}, summed


DOTS = ["...d,...k->...dk", "...ij,jk->...ik", "...td,...sd->...ts", "i...,ij...->j...", "...,...",
        "b...i,b...i->b...", "...ab,...bc"]


def ellipsis(r):
    e = r.choice(DOTS)
    size = {c: r.choice([1, 2, 3, 5]) for c in sorted(set(e)) if c.isalpha()}
    batch = [r.choice([1, 2, 3]) for _ in range(r.randint(0, 3))]
    shapes = []
    for t in e.split("->")[0].split(","):
        own = [1 if r.random() < 0.2 else b for b in batch[r.randint(0, len(batch)):]]
        a, _, b = t.partition("...") if "..." in t else (t, "", "")
        shapes.append([size[c] for c in a] + (own if "..." in t else []) + [size[c] for c in b])
    return [e, [either(r, s) for s in shapes]], {}, 5 * math.prod(batch) * 25


def either_einsum(r):
    return einsum(r) if r.random() < 0.6 else ellipsis(r)


def mv(r):
    m, k = n(r), r.choice([1, 4, 33, 150])
    return [either(r, [m, k]), either(r, [k])], {}, k


def dot(r):
    k = r.choice([1, 4, 33, 150])
    return [either(r, [k]), either(r, [k])], {}, k


EXACT = {
    "mm.default": mm,
    "bmm.default": bmm,
    "mv.default": mv,
    "dot.default": dot,
    "addmm.default": add(mm),
    "baddbmm.default": add(bmm),
    "matmul.default": matmul,
    "linear.default": linear,
    "einsum.default": either_einsum,
}
TRANSCENDENTAL = {}
