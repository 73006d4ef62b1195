#!/bin/bash
# The generator's attention is right: causal, with grouped heads, in float32. Without its mask's last tile, or
# without scaling older results where the largest score rises, it is refused.
# TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet QUERN_TASKS=$root/tests/fixtures/attended
cd "$tmp" || exit 1
"$BUILD/bin/quern-kernel" --task grouped_causal --schedule '//@ schedule y fuse=yes groups=1' >own.cu &&
  "$BUILD/bin/quern-eval" --task grouped_causal --device sim:h100 own.cu >out 2>&1
ok $? "grouped_causal: $(sed -n 's/^ *score *//p' out)"
while read -r name change; do
  sed "$change" own.cu >$name.cu
  ! cmp -s own.cu $name.cu &&
    ! "$BUILD/bin/quern-eval" --task grouped_causal --device sim:h100 $name.cu >out 2>&1 &&
    grep -q ': wrong_result$' out
  ok $? "$name is refused"
done <<'EOF'
a_tile_less s/seen = (tile + 1) \* 64/seen = tile * 64/
no_scaling s/keep\[r\] = power_of_2.*/keep[r] = 1;/
EOF
done_testing
