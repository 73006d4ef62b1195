#!/bin/bash
# quern-calibrate: its figures for kernels worked out by hand, and bad tables. TAP on stdout.
. "$(dirname "$0")/tap.sh"
export QUERN_LOG=quiet

digest() { printf '%064d' "$1"; }
verdict() { # NUMBER OUTCOME SPEEDUP
    printf '{"task":"relu","source_digest":"%s","outcome":"%s","speedup":%s}\n' "$(digest "$1")" "$2" "$3"
}
{
    printf 'task\tkernel\tsource_digest\tcandidate_us\tbaseline_us\tspeedup\tlow\thigh\n'
    for i in 1 2 3 4 5 6; do printf 'relu\tk.cu\t%s\t1\t1\t%d\t%d\t%d\n' "$(digest $i)" $i $i $i; done
} >measured.tsv
{
    verdict 1 ok 1; verdict 2 ok 3; verdict 3 ok 2; verdict 4 ok 4; verdict 5 ok 8; verdict 6 timeout 0
} >predicted

run quern-calibrate --measured measured.tsv predicted; ok $? 'a table and verdicts are read'
is 'one swap of five kernels; the kernel that is not ok does not count' "$(sed -n 2p out)" \
    "$(printf 'relu\t5\t0.900\t0.900\t1.00\t1.50\t1.60')"
is 'the last row has all tasks' "$(sed -n 3p out)" "$(printf 'all\t5\t\t\t\t1.50\t1.60')"
echo 'relu k.cu' >>measured.tsv
run quern-calibrate --measured measured.tsv predicted
[ $rc != 0 ] && sentence quern-calibrate 'measured.tsv:8: expected task'; ok $? 'a bad row is named'
echo '{' >>predicted; sed -i '$d' measured.tsv
run quern-calibrate --measured measured.tsv predicted
[ $rc != 0 ] && sentence quern-calibrate 'predicted:7: expected a verdict'; ok $? 'a bad verdict is named'
: >none
run quern-calibrate --measured measured.tsv none
[ $rc = 1 ] && grep -q '^quern-calibrate: no kernel of measured.tsv has an ok verdict in none$' err
ok $? 'nothing to compare is a failure'

# ---- the error of a prediction ----
sed -n '/^\/\/== relu k00.cu/,/^\/\/== relu k01.cu/{/^\/\/==/!p}' "$root/tests/calibration/kernels.txt" \
    >k00.cu
run quern-eval --task-root "$root/tasks" --task relu --device sim:h100 k00.cu
grep -q 'x predicted, within [0-9.]*x for 9 kernels in 10)$' out && ! grep -q '95%' out
ok $? 'quern-eval prints a factor and no interval'
run quern-eval --task-root "$root/tasks" --task relu --device sim:h100 --json k00.cu
grep -q '"error_factor":[1-9]' out; ok $? 'the JSON has the factor'
sed 's/.*"source_digest":"\([0-9a-f]*\)".*/\1/' out >digest
grep -q "^relu	k00.cu	$(cat digest)	" "$root/tests/calibration/h100.tsv"
ok $? 'the table names the digest of its kernel'
done_testing
