#!/bin/bash
# WIDE_ASK: each round of stages 2 and 3 asks some tasks of WIDE, learns from them and counts them by themselves; the report has
# TASKS alone. TAP on stdout.
. "$(dirname "$0")/pipeline.sh"
sed -i 's/^TASKS .*/TASKS ?= relu,gelu/; s/^ROUNDS .*/ROUNDS ?= 1/; s/^SFT .*/SFT ?= --plain-epochs 20 --epochs 2 --batch 4 --lr 8e-3/' "$tmp/tiny.mk"
wide=$(cd tasks/composed && grep -l '"split": "train"' */task.json | head -3 | sed 's|/task.json||; s|^|composed/|' | paste -sd,)
run=(WIDE="$wide" WIDE_KEEP=2 WIDE_ASK=2 WIDE_COPIES=3)
crl a "${run[@]}"; ok $? "a run that asks two of $wide"
export_() { "$BIN/quern-artifact" export "$(dir a)/$1"; }
others() { export_ "$1" | sed -n 's/.*"task":"\([^"]*\)".*/\1/p' | grep -vxE 'relu|gelu'; }
is 'stage 2: two wide tasks, a prompt each of three samples' "$(others selfsup/1/samples.qa | sort | uniq -c | awk '{print $1}' | xargs)" '3 3'
is 'stage 3: two prompts each' "$(others crl/1/samples.qa | sort | uniq -c | awk '{print $1}' | xargs)" '6 6'
export_ crl/1/prompts.qa | grep '"copies":3' | grep -q '"kind":"contrastive"'; ok $? 'one of them contrastive'
export_ selfsup/1/metrics.qa | grep -q '"wide.samples","step":1,"value":6'; ok $? 'they are counted by themselves'
export_ selfsup/1/metrics.qa | grep -q '"plain.samples","step":1,"value":8'; ok $? 'and not among the train tasks'
[ -n "$(others taught/pool.qa)" ] && [ -z "$(others collect/pool.qa)" ]; ok $? 'the first pool has their kernels, that of the teacher has not'
[ -z "$(others best/samples.qa; others best/results.qa; others report/prompts.qa)" ]; ok $? 'none of them is reported'
for t in ${wide//,/ }; do ! grep -q "${t#composed/}" "$(dir a)/report.tsv" || echo "$t"; done >"$tmp/said"; [ ! -s "$tmp/said" ]; ok $? 'nor in report.tsv'
crl a "${run[@]}"; [ $? = 0 ] && [ -z "$(ran)" ]; ok $? 'the same command again does nothing'
none_left; ok $? 'no process is left at the end'
done_testing
