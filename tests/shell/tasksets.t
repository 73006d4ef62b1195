#!/bin/bash
# The shipped sets of tasks: one in fifteen passes the gate. `make test-tasks` gates all.
# TAP on stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
unset QUERN_TASKS

"$BIN/quern-task" list '*' | awk 'NR > 1 { print $1 }' | sort >"$tmp/all"
"$BIN/quern-task" list | awk 'NR > 1 { print $1 }' | sort >"$tmp/plain"
comm -23 "$tmp/all" "$tmp/plain" >"$tmp/sets"
is "quern-task without names takes the tasks of no set" "$(wc -l <"$tmp/plain")" 12
awk 'NR % 15 == 1' "$tmp/sets" >"$tmp/sample"
mapfile -t sample <"$tmp/sample"
[ ${#sample[@]} = 0 ] || "$BIN/quern-task" gate "${sample[@]}" >"$tmp/gate"
ok $? "the gate accepts a sample of ${#sample[@]}"
touch "$tmp/gate"; is "the gate prints a line for each task" "$(wc -l <"$tmp/gate")" "${#sample[@]}"
grep refused "$tmp/gate" | sed 's/^/# /'
done_testing
