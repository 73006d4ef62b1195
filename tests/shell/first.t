#!/bin/bash
# The generator's first candidates are right: pointwise, over rows and over columns, split sums, views, casts.
# TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet QUERN_CACHE=$tmp/cache
cd "$tmp" || exit 1
for t in gate_norm_silu_bf16 clamp_colsum leaky_l1 scale_bias_flip hswish_gate_f16; do
  "$BUILD/bin/quern-kernel" --task $t >$t.cu &&
    "$BUILD/bin/quern-eval" --task $t --device sim:h100 $t.cu >out 2>&1
  ok $? "$t: $(sed -n 's/^ *score *//p' out)"
done
"$BUILD/bin/quern-kernel" --task relu >out 2>err; [ $? = 1 ] && grep -q 'task relu has no graph' err
ok $? "a task without a graph is refused in one sentence"
"$BUILD/bin/quern-kernel" --task nothing >out 2>err; [ $? = 2 ] && [ "$(wc -l <err)" = 1 ]
ok $? "a wrong name is refused in one sentence"
done_testing
