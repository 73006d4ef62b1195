#!/bin/bash
# LAB_WIDE: stage 1 learns from its tasks, too, each round of stage 2 or 3 asks some, and learns from them;
# the report has TASKS alone. TAP on stdout.
. "$(dirname "$0")/pipeline.sh"
sed -i 's/^TASKS .*/TASKS ?= relu,transpose/; s/^ROUNDS .*/ROUNDS ?= 1/; /^PROMPTS /s/--plain 2/--plain 1/
  s/^REPORT_SAMPLES .*/REPORT_SAMPLES ?= 1/
  s/^SFT .*/SFT ?= --plain-epochs 20 --epochs 2 --batch 4 --lr 8e-3/;
  s/^SELFSUP ?= /&--rehearse-share 0.25 /' "$tmp/tiny.mk"
wide=$(cd tasks/composed && grep -l '"split": "train"' */task.json | head -3 |
  sed 's|/task.json||; s|^|composed/|' | paste -sd,)
run=(LAB_WIDE="$wide" LAB_WIDE_COLLECT='--trials 4 --keep 2' LAB_SELFSUP_WIDE=1 LAB_CRL_WIDE=2
  LAB_WIDE_COPIES=3 LAB_WITHHOLD=1)
crl a "${run[@]}"; ok $? "a run that asks some of $wide"

export_() { "$BIN/quern-artifact" export "$(dir a)/$1"; }
tasks_of() { export_ "$1" | sed -n 's/.*"task":"\([^"]*\)".*/\1/p'; }
others() { tasks_of "$1" | grep -vxE 'relu|transpose'; }
# The numbers of samples of each wide task.
counts() { others "$1" | sort | uniq -c | awk '{print $1}' | xargs; }
is 'stage 2: one wide task, two prompts of three samples' "$(counts selfsup/1/samples.qa)" 6
is 'stage 3: two wide tasks' "$(counts crl/1/samples.qa)" '6 6'
is 'half of the prompts are contrastive' \
  "$(export_ crl/1/prompts.qa | grep '"copies":3' | grep -c '"kind":"contrastive"')" 2
value() { export_ "$1" | sed -n "s/.*\"name\":\"$2\".*\"value\":\([0-9]*\)\.0}.*/\1/p"; }
is 'wide tasks are not counted among the train tasks' "$(value selfsup/1/metrics.qa plain.samples)" 16
[ -n "$(others collect/pool.qa)" ] && [ -n "$(tasks_of lab/own/samples.qa)" ] &&
  [ -z "$(others lab/own/samples.qa)" ]
ok $? 'the first pool holds kernels of wide tasks'
[ -n "$(tasks_of best/results.qa)" ] &&
  [ -z "$(others best/samples.qa; others best/results.qa; others report/prompts.qa)" ]
ok $? 'no wide task is reported'
is "no wide task is in the report's numbers" \
  "$(awk '$2 == "all" { n[$1] = $4 } END { print n["best"] - n["collect"] }' "$(dir a)/report.tsv")" \
  $((16 + 16 + 3 * 2))
! grep -qF "$(tr , '\n' <<<"${wide//composed\//}")" "$(dir a)/report.html" &&
  grep -q transpose "$(dir a)/report.html"
ok $? "no wide task is on the report's page"
crl a "${run[@]}"; [ $? = 0 ] && [ -z "$(ran)" ]; ok $? 'the same command again does nothing'
none_left; ok $? 'no process is left at the end'

# ---- quern-wide by itself ----
prompt() { "$BIN/quern-wide" --output "$tmp/p.qa" --tasks relu --wide "$1" --wide-ask 9 >"$tmp/out" 2>&1; }
! prompt relu,transpose && grep -q -- '--wide: expected other tasks than --tasks, found relu' "$tmp/out"
ok $? 'no wide task is asked twice'
prompt transpose,softmax,gelu &&
  grep -q -- '--wide-ask 9: --wide has 2 train tasks, and all are asked' "$tmp/out"
ok $? 'all wide tasks are asked where fewer are there than asked for'
done_testing
