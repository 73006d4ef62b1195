#!/bin/bash
# Recurrent layers as kernels of clusters and of teams: several layers, both directions, states, sizes that no
# tile divides. TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet QUERN_TASKS=$root/tests/fixtures/recurrence
cd "$tmp" || exit 1
for t in lstm_both_ways lstm_wide gru_no_bias; do
  "$BUILD/bin/quern-kernel" --task $t >$t.cu &&
    "$BUILD/bin/quern-eval" --task $t --device sim:h100 $t.cu >out 2>&1
  ok $? "$t: $(sed -n 's/^ *score *//p' out)"
  ! grep -q '^//@ op.*aten.\(lstm\|gru\)' $t.cu; ok $? "$t is no op line"
done
sed '/void \(arrive()\|wait(\)/,/^    }/ { /^        recurrent_\(arrive\|wait\)();/d }' \
  gru_no_bias.cu >race.cu
[ "$(diff gru_no_bias.cu race.cu | grep -c "recurrent_\(arrive\|wait\)")" = 2 ]
ok $? "a twin has no barrier between steps"
"$BUILD/bin/quern-eval" --task gru_no_bias --device sim:h100 race.cu >out 2>&1
grep -q '^gru_no_bias on sim:h100: race' out; ok $? "the twin is a race"
"$BUILD/bin/quern-kernel" --task gru_no_bias --schedule '//@ schedule y layers=library' >line.cu
grep -q '^//@ op .*aten.gru' line.cu && ! grep -q '//@ launch' line.cu
ok $? "by layers=library they stay an op line"
for t in lstm_both_ways lstm_wide gru_no_bias; do
  "$BUILD/bin/quern-kernel" --task $t --schedule '//@ schedule y layers=teams' >$t.teams.cu &&
    grep -q '^//@ launch cooperative' $t.teams.cu &&
    "$BUILD/bin/quern-eval" --task $t --device sim:h100 $t.teams.cu >$t.out 2>&1
  ok $? "$t by teams: $(sed -n 's/^ *score *//p' $t.out)"
done
awk '$1 == "time" { exit !($2 < 200) }' lstm_both_ways.out
ok $? "who waits for several words takes no time: $(sed -n 's/^ *time *//p' lstm_both_ways.out)"
of_team() { # CHANGE OUTCOME: of the kernel whose only team has all rows, one after another
  sed -E "s/dim3\(85, 1\)/dim3(17, 1)/; $1" gru_no_bias.teams.cu >team.cu
  "$BUILD/bin/quern-eval" --task gru_no_bias --device sim:h100 team.cu >out 2>&1
  grep -q "^gru_no_bias on sim:h100: $2" out; ok $? "one team: ${1:-as it is}: $2"
}
of_team '' ok
of_team 's/group \+= gridDim.x/group += 9 * gridDim.x/' 'wrong_result\|out_of_bounds'
of_team 's/>> 32 == now/>> 32 >= now - 1/' wrong_result
"$BUILD/bin/quern-kernel" --task lstm_long >long.cu; grep -q '^//@ launch cooperative' long.cu
ok $? "512 units and 256 steps have teams by default"
done_testing
