#!/bin/bash
# WITHHOLD=1: the whole grammar is collected for the withheld tasks, and the figures of every round, the
# report and the table of an ablation say how much of the gap is closed. TAP on stdout.
. "$(dirname "$0")/pipeline.sh"
sed -i 's/^TASKS .*/TASKS ?= relu,gelu,transpose,softmax/; s/^PLAIN .*/PLAIN ?= 1/; s/^ROUNDS .*/ROUNDS ?= 1/;
    s/^REPORT_SAMPLES .*/REPORT_SAMPLES ?= 1/
    s/^SFT .*/SFT ?= --plain-epochs 2 --epochs 1 --batch 4 --lr 8e-3/' "$tmp/tiny.mk"
crl a WITHHOLD=1; ok $? 'a run with withheld designs'
export_() { "$BIN/quern-artifact" export "$(dir a)/$1"; }
tasks() { export_ "$1" | sed -n 's/.*"task":"\([a-z_]*\)".*/\1/p' | sort -u | tr '\n' ' '; }
full=$(tasks full/samples.qa) all=$(tasks collect/samples.qa)
[ -n "$full" ] && [ "$full" != "$all" ]
ok $? "the whole grammar is asked for withheld tasks alone: $full of $all"
[ "$(export_ full/pool.qa | wc -l)" -gt 0 ]; ok $? 'a run with withheld designs has a pool'
for f in selfsup/1 crl/1 report/sft report/crl; do
  export_ "$f/metrics.qa" | grep -q '"gap.tasks"'; ok $? "$f has the gap's tasks"
done
! export_ report/crl/pool.qa | grep -q '"stage":"full"'
ok $? "the whole grammar's kernels are not in the run's pool"
crl a WITHHOLD=1; [ $? = 0 ] && [ -z "$(ran)" ]; ok $? 'the same command again does nothing'
mkdir "$tmp/cells" && ln -s "$root/$(dir a)" "$tmp/cells/x-1"
gap=$(export_ report/crl/metrics.qa | sed -n 's/.*"gap.closed".*"value":\([-0-9.e]*\).*/\1/p')
"$BIN/quern-ablation" --runs "$tmp/cells" --arms x --seeds 1 >"$tmp/table"
if [ -n "$gap" ]; then
  is 'the table of an ablation has the same gap' \
    "$(sed -n 's/^| x .*| \([-0-9.]*\)% | [-0-9.]*% |$/\1/p' "$tmp/table")" \
    "$(printf %.1f "$(perl -e "print 100 * $gap")")"
  grep -q 'Gap closed' "$(dir a)/report.html"; ok $? 'the report shows the gap'
fi
crl b; [ ! -e "$(dir b)/full" ] && ! "$BIN/quern-artifact" export "$(dir b)/crl/1/metrics.qa" | grep -q gap.
ok $? 'a run without WITHHOLD has no gap'
none_left; ok $? 'no process is left at the end'
done_testing
