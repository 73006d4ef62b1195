"""Generators of embeddings."""
from ops_draw import either, shape


def embedding(r):
    rows = r.choice([1, 3, 40])
    indices = either(r, shape(r, high=3), f"index {rows}")
    more = [r.randrange(rows)] if r.random() < 0.3 else []
    return [either(r, [rows, r.choice([1, 5, 16])]), indices] + more, {}


EXACT = {"embedding.default": embedding}
TRANSCENDENTAL = {}
