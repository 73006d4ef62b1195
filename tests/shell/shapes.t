#!/bin/bash
# A task with several timed shapes and weights, a candidate that dispatches among them, and error budgets.
# TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$tmp" || exit 1
cat >draft.json <<'END'
{"name": "rows", "axes": {"rows": {"size": 64}, "cols": {"size": 96}}, "shapes": "rows=1 rows=64:3 rows=4096",
 "inputs": {"x": {"dtype": "float32", "shape": ["rows", "cols"], "draw": "normal"}}, "outputs": {"y": {}},
 "graph": ["y = aten.softmax.int(x, -1)"]}
END
cat >when.cu <<'END'
//@ when rows >= 1024
//@ launch warps<<<ceil_div(rows, 8), 256>>>(x, y, rows, cols)
//@ otherwise
//@ op y = aten.softmax.int(x, -1)
extern "C" __global__ void warps(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float *from = x + (long long)row * cols;
    float most = -INFINITY, sum = 0.0f;
    for (int c = lane; c < cols; c += 32) most = fmaxf(most, from[c]);
    for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    for (int c = lane; c < cols; c += 32) sum += expf(from[c] - most);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    for (int c = lane; c < cols; c += 32) y[(long long)row * cols + c] = expf(from[c] - most) / sum;
}
END
"$BIN/quern-derive" -o tasks draft.json; ok $? "a task with three timed shapes"
[ "$(grep -c '"role": "time"' tasks/rows/task.json)" = 3 ] &&
    [ "$(grep -c '"role": "sim"' tasks/rows/task.json)" = 3 ] && grep -q '"weight": 3' tasks/rows/task.json
ok $? "it times each, with a simulator's sizes of its own"
cp -r tasks again
sed -i -E '/"role": "time"/s/("y": \[)[^]]*/\19.0, 9.0, 9.0, 9.0, 9.0/' again/rows/task.json
is "three timed tolerances are lost" "$(grep -c '9.0, 9.0' again/rows/task.json)" 3
"$BIN/quern-derive" --again --task-root again rows >out
[ "$(grep -c '9.0, 9.0' again/rows/task.json)" = 0 ] && # that of one row follows from the module's own size
    cmp -s <(grep -v '"rows": 1,' tasks/rows/task.json) <(grep -v '"rows": 1,' again/rows/task.json)
ok $? "each is measured again"
judge() { "$BIN/quern-eval" --task-root tasks --task rows --json "$@" when.cu 2>err; }
json=$(judge)
is "a candidate that dispatches" "$(json_field outcome <<<"$json")" ok
is "its score is the weighted geometric mean" "$(perl -MJSON::PP -e '
    my ($v, $sum, $weight) = (decode_json(<STDIN>), 0, 0);
    for (@{$v->{workloads}}) { $sum += $_->{weight} * log $_->{speedup}; $weight += $_->{weight} }
    printf "%d %.3f %.9f", scalar @{$v->{workloads}}, $weight, exp($sum) / $v->{speedup}' <<<"$json")" \
    '3 1.000 1.000000000'
"$BIN/quern-eval" --task-root tasks --task rows when.cu |
    grep -q '^    rows=64 cols=96 .*weight 0.60, [0-9.]*x; [0-9.]* us, baseline [0-9.]* us'
ok $? "each has a line"
[ "$(judge --tolerance 4x | json_field outcome)" = ok ] &&
    [ "$(TOLERANCE=1e-5 judge | json_field outcome)" = ok ]
ok $? "it keeps to four times eager's error, and to an absolute one"
json=$(TOLERANCE=1e-9 judge)
[ "$(json_field outcome <<<"$json")" = wrong_result ] && [[ $json == *'budget TOLERANCE allows 1e-09'* ]]
ok $? "an error beyond the budget is refused"
sed 's/sum += expf/if (c % 64) sum += expf/' when.cu >whole.cu
mv whole.cu when.cu
is "work that is left out is refused at any budget" "$(judge --tolerance 1 | json_field outcome)" wrong_result
sed 's/rows=1 rows=64:3 rows=4096/rows=9000000:2 rows=8/; s/softmax.int(x, -1)/relu(x)/' \
    draft.json >large.json
"$BIN/quern-derive" -o large large.json 2>err
grep -q '"rows": {.*"own": 9000000' large/rows/task.json &&
    grep -q '"note": "rows is [0-9]* of the module' large/rows/task.json
ok $? "the largest shape may have more than 1.75 GiB, which a GPU times"
sed -i 's/rows=8"/rows=8000000"/' large.json
"$BIN/quern-derive" -o large large.json 2>err
[ $? != 0 ] && grep -q 'shape 2: the tensors take 5.7 GiB, at most 1.75 are given but for the largest' err
ok $? "another may not"
sed -i 's/rows=1 rows/lines=1 rows/' draft.json
"$BIN/quern-derive" -o tasks draft.json 2>err
[ $? != 0 ] && grep -q "no axis is named lines; the module's are rows=64, cols=96" err
ok $? "an axis that is none is named"
done_testing
