#!/bin/bash
# Recurrent layers as kernels of clusters: several layers, both directions, states, sizes that no tile
# divides. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet QUERN_TASKS=$root/tests/fixtures/recurrence
cd "$tmp" || exit 1
for t in lstm_both_ways lstm_wide gru_no_bias; do
  "$BUILD/bin/quern-kernel" --task $t >$t.cu &&
    "$BUILD/bin/quern-eval" --task $t --device sim:h100 $t.cu >out 2>&1
  ok $? "$t: $(sed -n 's/^ *score *//p' out)"
  ! grep -q '^//@ op.*aten.\(lstm\|gru\)' $t.cu; ok $? "$t is no op line"
done
awk '/^    for .int t = 0; t < layer.steps/ { loop = 1 } !(loop && /^        recurrent_(arrive|wait)/)' \
  gru_no_bias.cu >race.cu
[ "$(diff gru_no_bias.cu race.cu | grep -c "recurrent_\(arrive\|wait\)")" = 2 ]
ok $? "a twin has no barrier between steps"
"$BUILD/bin/quern-eval" --task gru_no_bias --device sim:h100 race.cu >out 2>&1
grep -q '^gru_no_bias on sim:h100: race' out; ok $? "the twin is a race"
"$BUILD/bin/quern-kernel" --task gru_no_bias --schedule '//@ schedule y layers=library' >line.cu
grep -q '^//@ op .*aten.gru' line.cu && ! grep -q '//@ launch' line.cu
ok $? "by layers=library they stay an op line"
done_testing
