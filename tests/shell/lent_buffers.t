#!/bin/bash
# A winner with op lines is run with outliers beside its baseline, which borrows its buffers and gives them
# the sizes of its own results: they have their own sizes again when the winner runs. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$tmp" || exit 1

cat >draft.json <<'END'
{"name": "contrast", "axes": {"rows": {"size": 512}, "cols": {"size": 512}},
 "inputs": {"a": {"dtype": "float32", "shape": ["rows", "cols"]},
            "b": {"dtype": "float32", "shape": ["rows", "cols"]}},
 "outputs": {"loss": {}},
 "graph": ["la = aten.linalg_vector_norm(a, 2, [-1], keepdim=True)", "ea = aten.expand_as(la, a)",
           "na = aten.div.Tensor(a, ea)", "lb = aten.linalg_vector_norm(b, 2, [-1], keepdim=True)",
           "eb = aten.expand_as(lb, b)", "nb = aten.div.Tensor(b, eb)", "tb = aten.t(nb)",
           "matmul = aten.matmul(na, tb)", "arange = aten.arange(rows, pin_memory=False)",
           "loss = aten.cross_entropy_loss(matmul, arange)"]}
END
"$BIN/quern-derive" -o tasks draft.json; ok $? "a contrastive loss"
cat >unit.cu <<'END'
//@ buffer float na[rows * cols]
//@ buffer float nb[rows * cols]
//@ launch unit<<<rows, 64>>>(a, na, cols)
//@ launch unit<<<rows, 64>>>(b, nb, cols)
//@ op va = aten.view.default(na, [rows, cols])
//@ op vb = aten.view.default(nb, [rows, cols])
//@ op tb = aten.t.default(vb)
//@ op matmul = aten.matmul.default(va, tb)
//@ op arange = aten.arange.default(rows, pin_memory=False)
//@ op loss = aten.cross_entropy_loss.default(matmul, arange)
__global__ void unit(const float *x, float *y, int cols)
{
    __shared__ float part[2];
    x += blockIdx.x * cols, y += blockIdx.x * cols;
    float s = 0;
    for (int i = threadIdx.x; i < cols; i += 64) s += x[i] * x[i];
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = sqrtf(part[0] + part[1]);
    for (int i = threadIdx.x; i < cols; i += 64) y[i] = x[i] / s;
}
END
verdict=$("$BIN/quern-eval" --task contrast --task-root tasks --device sim:h100 --json unit.cu 2>&1)
[[ $verdict == *'"outcome":"ok"'*'with one outlier, twice'* ]]
ok $? "an honest winner is ok with one outlier"
done_testing
