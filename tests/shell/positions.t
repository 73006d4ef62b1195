#!/bin/bash
# A simulator compares the outputs of sampled blocks with the reference of their rows alone only where rows do
# not depend on one another; a task whose rows do is compared whole, where that is cheap. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$tmp" || exit 1

cat >turned.json <<'END'
{"name": "turned", "axes": {"rows": {"size": 48}, "cols": {"size": 64}},
 "inputs": {"x": {"dtype": "float32", "shape": ["rows", "cols"]}}, "outputs": {"y": {}},
 "graph": ["y = aten._softmax.default(x, 0, False)"]}
END
"$BIN/quern-derive" -o derived turned.json && grep -q '"turns": "rows"' derived/turned/task.json
ok $? "turned inputs give turned outputs in a softmax over the rows"
cp -r "$root/tests/fixtures/positions" tasks # two larger ones, which quern-derive wrote

# soft NAME USED: the softmax of each column, over USED of the rows
soft() {
    cat >"$1.cu" <<END
//@ launch soft<<<ceil_div(cols, 32), dim3(32, 16)>>>(x, y, rows, cols)
extern "C" __global__ void soft(const float *x, float *y, int rows, int cols)
{
    __shared__ float part[16][33];
    int c = blockIdx.x * 32 + threadIdx.x, used = $2;
    float m = -INFINITY, s = 0;
    if (c < cols)
        for (int r = threadIdx.y; r < used; r += 16) {
            float v = x[(long long)r * cols + c], top = fmaxf(m, v);
            s = s * expf(m - top) + expf(v - top), m = top;
        }
    part[threadIdx.y][threadIdx.x] = m;
    __syncthreads();
    float all = m;
    for (int k = 0; k < 16; k++) all = fmaxf(all, part[k][threadIdx.x]);
    __syncthreads();
    part[threadIdx.y][threadIdx.x] = s * expf(m - all);
    __syncthreads();
    s = 0;
    for (int k = 0; k < 16; k++) s += part[k][threadIdx.x];
    if (c < cols)
        for (int r = threadIdx.y; r < rows; r += 16)
            y[(long long)r * cols + c] = expf(x[(long long)r * cols + c] - all) / s;
}
END
}

judge() { # TASK KERNEL
    verdict=$("$BIN/quern-eval" --task "$1" --task-root tasks --device sim:h100 --json "$2.cu" 2>&1)
    echo "# $2 of $1: $(json_field outcome <<<"$verdict"), score $(json_field score <<<"$verdict")"
}

soft whole rows
judge soft2048 whole
[[ $verdict == *'"outcome":"ok"'*'time rows=2048 cols=3072'*' elements"'* ]]
ok $? "an honest kernel is ok, and its elements are compared"
soft part 'rows > 1000 ? rows * 7 / 8 : rows'
judge soft2048 part
[[ $verdict == *'"outcome":"wrong_result"'*'time rows=2048'*' elements: '* ]]
ok $? "a kernel that leaves out rows at the timed size is wrong"
judge soft16384 whole
[[ $verdict == *'"outcome":"ok"'* ]]
ok $? "an honest kernel is ok where the whole reference costs too much"
done_testing
