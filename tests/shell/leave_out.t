#!/bin/bash
# First kernels that leave out work, each in a way of tests/mutants/leave_out.py: at all sizes, or at large
# ones alone. None is taken with a score above the right kernel's, but where nothing is missing. TAP on
# stdout.
. "$(dirname "$0")/verdicts.sh"
need python3
export QUERN_LOG=quiet
cd "$tmp" || exit 1

for task in composed/leaky_bias composed/gelu_softmax; do
    rm -rf ways && mkdir ways
    "$BIN/quern-kernel" --task $task >ways/right.cu
    python3 "$root/tests/mutants/leave_out.py" ways/right.cu ways
    "$BIN/quern-eval" --json --task $task --device sim:h100 ways/*.cu >verdicts 2>err
    paste -d ' ' <(ls ways/*.cu) <(json_field outcome <verdicts) <(json_field score <verdicts) >got
    all=$(wc -l <got) refused=$(grep -c -v ' ok ' got) least=$((all * 2 / 3))
    right=$(awk '/right.cu/ { print $3 }' got)
    [ "$all" -gt 10 ] && [ "$refused" -ge $least ]
    ok $? "$task: at least two thirds of the ways are refused" "$(cat got)"
    # A grid of fewer blocks, whose threads go on, may take less time.
    awk -v most="$right" '$2 == "ok" && $1 !~ /_grid_/ && $3 > most * 1.01 { exit 1 }' got
    ok $? "$task: no other one scores above the right kernel" "$(cat got)"
done
done_testing
