#!/bin/bash
# quern-derive: tasks from drafts of graphs. The gate accepts them, the two references of a task agree, equal
# drafts give equal bytes, and mistakes have a sentence. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$root" || exit 1
graphs=tests/fixtures/graphs

"$BIN/quern-derive" -o "$tmp/one" $graphs/*.json; ok $? "a task is derived from each draft"
OMP_NUM_THREADS=1 "$BIN/quern-derive" -o "$tmp/two" $graphs/*.json
cmp -s <(cat "$tmp"/one/*/task.json) <(cat "$tmp"/two/*/task.json)
ok $? "equal drafts give equal bytes, with one thread too"
"$BIN/quern-task" gate --task-root "$tmp/one" >"$tmp/gate"; ok $? "the gate accepts them"
is "one of them is degenerate" "$(grep -c 'accepted as degenerate' "$tmp/gate")" 1
grep -q '"degenerate": "a kernel that writes zeros into y passes' "$tmp/one/conv3d_norm_min_clamp/task.json"
ok $? "which has the reason in its file"

# Indices that a graph makes itself.
cat >"$tmp/places.json" <<'END'
{"name": "places",
 "axes": {"rows": {"size": 64}, "n": {"size": 40}, "m": {"size": 48}, "table": {"size": 96}},
 "inputs": {"x": {"dtype": "float32", "shape": ["rows", "n"]},
            "v": {"dtype": "float32", "shape": ["rows", "m"]},
            "w": {"dtype": "float32", "shape": ["table", "n"]}},
 "outputs": {"y": {}},
 "graph": ["s, i = aten.sort(x, 1, True)", "g = aten.gather(v, 1, i)", "r = aten.arange(rows)",
           "e = aten.embedding(w, r)", "a = aten.add.Tensor(g, e)",
           "y = aten.scatter_add(s, 1, i, a)"]}
END
cat >"$tmp/relative.json" <<'END'
{"name": "relative",
 "axes": {"n": {"size": 64}, "table": {"size": 32}, "heads": {"size": 4}},
 "inputs": {"x": {"dtype": "float32", "shape": ["n", "n", "heads"]},
            "w": {"dtype": "float32", "shape": ["table", "heads"]}},
 "outputs": {"y": {}},
 "graph": ["p = aten.arange(n)", "q = aten.unsqueeze(p, 1)", "d = aten.sub.Tensor(p, q)",
           "c = aten.clamp(d, -15, 16)", "i = aten.add.Tensor(c, 15)", "e = aten.embedding(w, i)",
           "y = aten.add.Tensor(x, e)"]}
END
"$BIN/quern-derive" -o "$tmp/relative" "$tmp/relative.json" 2>"$tmp/err" &&
    "$BIN/quern-task" gate --task-root "$tmp/relative" >/dev/null &&
    ! grep '"role"' "$tmp/relative/relative/task.json" | grep -qv '"table": 32'
ok $? "a table has a row for each distance that a clamp leaves"
"$BIN/quern-derive" -o "$tmp/made" "$tmp/places.json" &&
    "$BIN/quern-task" gate --task-root "$tmp/made" >"$tmp/gate"
ok $? "indices that a graph makes decide which sizes fit"

refused() { # name, what a draft says instead, sentence, another draft
    sed "$2" $graphs/"${4:-softmax}".json >"$tmp/draft.json"
    "$BIN/quern-derive" -o "$tmp/refused" "$tmp/draft.json" 2>"$tmp/err"
    grep -q -- "$3" "$tmp/err" || { cat "$tmp/err"; false; }
    ok $? "$1"
}
export QUERN_LOG=
refused "an axis of no elements is refused" 's/8192/0/' 'axis rows: the size 0 is not within 1 to'
refused "an unknown operator is refused" 's/softmax.int/softmaz.int/' 'aten.softmaz.int is not in the library'
refused "a graph that refuses the shapes is refused" 's/(x, -1)/(x, 2)/' 'graph\[0\]'
refused "an unknown name in a shape is refused" 's/"cols" \]/"columns" ]/' 'x.shape\[1\].*columns'
refused "a name that is none is refused" 's/"name": "softmax"/"name": "soft max"/' 'is no name of a task'
refused "a graph that is too costly at every size is refused" 's/2048}/4096, "low": 4096, "high": 4096}/' \
    'one execution takes 13[78].* Gflop at the smallest sizes' matmul
[ ! -e "$tmp/refused" ]; ok $? "nothing is written for a refused draft"
done_testing
