"""Generators of embeddings."""
from ops_draw import either, shape, spec


def embedding(r):
    rows = r.choice([1, 3, 40])
    indices = either(r, shape(r, high=3), f"index {rows}")
    more = [r.randrange(rows)] if r.random() < 0.3 else []
    return [either(r, [rows, r.choice([1, 5, 16])]), indices] + more, {}


def bags(padded):
    def make(r):
        rows, n, each, mode = r.choice([3, 40]), r.choice([1, 4, 9]), r.choice([1, 2, 5]), r.randint(0, 2)
        weights = either(r, [n * each]) if mode == 0 and r.random() < 0.5 else None
        args = [either(r, [rows, r.choice([1, 5, 16])]), either(r, [n * each], f"index {rows}"),
                spec(r, [n], f"steps {each}"), False, mode, False, weights, False]
        return args + ([r.choice([None, 1])] if padded else []), {}

    return make


EXACT = {"embedding.default": embedding, "embedding_bag.default": bags(False),
         "embedding_bag.padding_idx": bags(True)}
TRANSCENDENTAL = {}
