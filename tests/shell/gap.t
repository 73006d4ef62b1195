#!/bin/bash
# LAB_WITHHOLD=1: the whole range is collected for the withheld tasks, and quern-gap and the table of an
# ablation say how much of the gap is closed. TAP on stdout.
. "$(dirname "$0")/pipeline.sh"
sed -i 's/^TASKS .*/TASKS ?= relu,gelu,transpose,softmax/; /^PROMPTS /s/--plain 2/--plain 1/;
    s/^ROUNDS .*/ROUNDS ?= 1/;
    s/^REPORT_SAMPLES .*/REPORT_SAMPLES ?= 1/
    s/^SFT .*/SFT ?= --plain-epochs 2 --epochs 1 --batch 4 --lr 8e-3/' "$tmp/tiny.mk"
crl a LAB_WITHHOLD=1; ok $? 'a run with withheld designs'
export_() { "$BIN/quern-artifact" export "$(dir a)/$1"; }
tasks() { export_ "$1" | sed -n 's/.*"task":"\([a-z_]*\)".*/\1/p' | sort -u | tr '\n' ' '; }
full=$(tasks lab/full/samples.qa) all=$(tasks collect/samples.qa)
[ -n "$full" ] && [ "$full" != "$all" ]
ok $? "the whole range is asked for withheld tasks alone: $full of $all"
[ "$(export_ lab/full/pool.qa | wc -l)" -gt 0 ]; ok $? 'a run with withheld designs has a pool'
[ "$(grep -c vec=4 "$(dir a)/lab/withheld")" = 2 ]; ok $? 'two tasks have withheld designs'
"$BIN/quern-gap" "$(dir a)" >"$tmp/gap"; s=$?
for f in selfsup/1 crl/1 report/sft report/crl; do
  [ $s = 0 ] && grep -q "^| $f | all " "$tmp/gap"; ok $? "the gap closed by $f"
done
! export_ report/crl/pool.qa | grep -q '"stage":"full"'
ok $? "the whole range's kernels are not in the run's pool"
crl a LAB_WITHHOLD=1; [ $? = 0 ] && [ -z "$(ran)" ]; ok $? 'the same command again does nothing'
mkdir "$tmp/cells" && ln -s "$root/$(dir a)" "$tmp/cells/x-1"
gap=$(sed -n 's/^| report\/crl | all [1-9][0-9]* | \([-0-9.]*\)%.*/\1/p' "$tmp/gap")
"$BIN/quern-ablation" --runs "$tmp/cells" --arms x --seeds 1 >"$tmp/table"
if [ -n "$gap" ]; then
  is 'the table of an ablation has the same gap' \
    "$(sed -n 's/^| x .*| \([-0-9.]*\)% | [-0-9.]*% |$/\1/p' "$tmp/table")" \
    "$gap"
fi
crl b -n && grep -q '/collect/pool.qa' "$tmp/out" && ! grep -q '/lab/' "$tmp/out" &&
  mv "$(dir a)/lab" "$tmp/lab" && ! "$BIN/quern-gap" "$(dir a)" >"$tmp/out" 2>&1
ok $? 'a run without LAB_WITHHOLD has no gap'
crl b LAB_WITHOUT=1; [ $? = 2 ] && grep -q 'LAB_WITHOUT: the lab has no such setting' "$tmp/out"
ok $? 'a setting that the lab does not know is refused'
none_left; ok $? 'no process is left at the end'
done_testing
