#!/usr/bin/env bash
# A changed setting makes its targets and all that depends on them again, and nothing else. First the rules,
# with programs that only create their files; then quern-collect on a folder of kernels that changes. TAP on
# stdout.
. "$(dirname "$0")/tap.sh"
unset DEVICE DEVICES CLASSES
cd "$root" || exit 99
source_dir=$root
. "$here/rules.sh"
run=test-remake-$$
at_exit+=('rm -rf "$root/runs/$run"-*')
rm -rf "runs/$run"-* # of a test that was killed

# ---- programs that only create their files, and two empty checkpoints ----
mkdir -p "$tmp/bin" "$tmp/a" "$tmp/b" "$tmp/kernels/relu"
touch "$tmp/a/config.json" "$tmp/b/config.json"
cat >"$tmp/bin/program" <<'END2'
#!/bin/bash
while [ "$1" != --output ]; do shift; done
case ${0##*/} in
  quern-sft|quern-selfsup|quern-crl|more-sft) out=$2/manifest.qa ;;
  quern-report) out=$2/report.html ;;
  *) out=$2 ;;
esac
mkdir -p "${out%/*}"
case ${0##*/} in quern-sample|quern-sft|quern-selfsup|quern-crl)
    if [ -n "${TOGETHER:-}" ]; then
        mkdir "$TOGETHER/one" 2>/dev/null || touch "$TOGETHER/two"
        sleep 0.1; rmdir "$TOGETHER/one" 2>/dev/null
    fi ;;
esac
touch "$out"
END2
chmod +x "$tmp/bin/program"
for p in collect evaluate filter sft pool prompt sample selfsup crl results report figures search refine \
    join hacks review wide withhold; do
    ln -s program "$tmp/bin/quern-$p"
done
ln -s program "$tmp/bin/more-sft"
printf '%s\n' 'SELFSUP_ROUNDS ?= 2' 'ROUNDS ?= 2' 'CLASSES ?= sim:h100' 'include configs/smoke.mk' \
    >"$tmp/few.mk"

# rules NAME ARGUMENT...: calls make for run NAME, with arguments as rules_of has them; its output is in
# $tmp/out
rules() {
    rules_of "$tmp" DEVICES=sim:h100 PROFILE=smoke "CONFIG=$tmp/few.mk" "RUN=$run-$1" "${@:2}" >"$tmp/out"
}
# "NAME command" of every rule in the output of the last `make -n`, sorted
commands() {
    perl -0pe 's/\\\n\s*/ /g' "$tmp/out" | sed -n 's|^mk/run runs/[^ ]*/log/\(.*\)\.log |\1 |p' | sort
}
made() { commands | cut -d' ' -f1; }
would() { rules "$1" -n crl "${@:2}" && made >"$tmp/made"; }
has() { grep -qxE "$1" "$tmp/made"; } # whether a rule would run

# seen: whether every rule whose command a setting changes is made again; else adds it to $missed
tried= before_of=
seen() { # RUN NAME=VALUE [NAME=VALUE...]: the settings of the run, the last one changed
    local last=${*: -1} base="${*:1:$#-1}" lacking
    tried+=" ${last%%=*}"
    [ "$base" = "$before_of" ] ||
        {
            before_of= && rules "$1" -n -B crl "${@:2:$#-2}" && commands >"$tmp/before" && before_of=$base
        } || return 1
    rules "$1" -n -B crl "${@:2}" && commands >"$tmp/after" && would "$@" || return 1
    comm -13 "$tmp/before" "$tmp/after" | cut -d' ' -f1 >"$tmp/differ"
    lacking=$(comm -23 "$tmp/differ" "$tmp/made" | tr '\n' ' ')
    [ -s "$tmp/differ" ] && [ -z "$lacking" ] && return
    missed+=" $last($(echo $lacking))"
}

# ---- a small model ----
rules small crl; s=$?
rules small -q crl && [ $s = 0 ]; ok $? 'a run, and then nothing to do'
missed=
for setting in TASKS=relu TEACHERS=generator,openai:M 'COLLECT=--trials 9 --keep 3' SEED=7 SECRET=5 \
    DEVICE=sim:a100 'CLASSES=sim:h100 sim:l40' PROFILE=default \
    STYLE=full FILTER='--drills 0.1' SMALL_MODEL='--vocab 300' STARTER=share/starter SFT='--epochs 9' \
    ENGINE=cuda:0 GPUS=2 TRAINING=--lean SAMPLE='--max-new 9' LAB_RULE=island UPDATE=none \
    TURNS=2 JUDGE=openai:J LAB_WITHHOLD=1 LAB_UPDATE=sft LAB_HELDOUT_EVERY=1 \
    SELFSUP_ROUNDS=1 SELFSUP_PROMPTS='--groups 9 --copies 8' SELFSUP_PROMPTS='--groups 3 --copies 9' \
    SELFSUP='--epochs 9' ROUNDS=1 PROMPTS='--groups 9' PROMPTS='--exemplars 3' CRL='--epochs 9' \
    REPORT_SAMPLES=9 "POLICY=native:$tmp/a"; do
    seen small "$setting"
done
seen small UPDATE=none LAB_UPDATE=generator
seen small TASKS=relu LAB_WIDE=transpose
seen small TASKS=relu LAB_WIDE=transpose LAB_WIDE_COLLECT='--trials 2'
seen small TASKS=relu LAB_WIDE=transpose LAB_CRL_WIDE=1
seen small TASKS=relu LAB_WIDE=transpose LAB_SELFSUP_WIDE=1
seen small TASKS=relu LAB_WIDE=transpose LAB_CRL_WIDE=1 LAB_WIDE_COPIES=2
echo "$missed" >"$tmp/out"
[ -z "$missed" ]; ok $? 'each setting, changed, makes again every rule that it is used in'

would small DEVICE='NVIDIA H200' CLASSES=sim:h100
[ "$(grep -c 'verdicts$' "$tmp/made")" = 9 ] && ! has report-prompts
ok $? 'another class judges: all nine verdicts.qa, and no prompts of the report'
edit='s/HARNESS=[0-9]*/HARNESS=0/' would small
[ "$(grep -c 'verdicts$' "$tmp/made")" = 9 ] && has sft-model-manifest && ! has collect-samples
ok $? 'another harness judges: all verdicts.qa, and what follows'
rules small -n -B crl; commands | grep quern-evaluate >"$tmp/made"
[ "$(grep -cE '^best-(verdicts-sim-h100|again-verdicts) .* --again ' "$tmp/made")" = 2 ] &&
    [ "$(grep -c -- --again "$tmp/made")" = 2 ]
ok $? 'the best are judged again with a seed that chose none of them'
secret="runs/$run-small/cfg/secret"
[ "$(grep -c -- "--seed-file $secret " "$tmp/made")" = 10 ] && ! grep -q -- '--seed ' "$tmp/made" &&
    commands | grep -q "^collect-samples .* --eval-seed-file $secret "
ok $? 'all judge by the seed of one file, which no command names'
rules small -n -B crl SECRET=5; commands | grep quern-evaluate >"$tmp/made"
[ "$(grep -c -- '--seed 5 ' "$tmp/made")" = 10 ] && commands | grep -q '^collect-samples .* --eval-seed 5 '
ok $? 'SECRET is the seed by which all judge'
would small STYLE=full
has report-prompts && has selfsup-1-prompts && has crl-1-prompts && ! has 'collect-.*'
ok $? 'another style: prompts of every stage, not what was collected'
would small PRECISION=highest; tried+=' PRECISION'
[ "$(grep -c 'verdicts$' "$tmp/made")" = 9 ] && has collect-samples && has report-prompts
ok $? 'another precision: all verdicts.qa, prompts, and what follows'
would small TOLERANCE=2x; tried+=' TOLERANCE'
[ "$(grep -c 'verdicts$' "$tmp/made")" = 9 ] && has collect-samples && has report-prompts
ok $? 'another tolerance: all verdicts.qa, prompts, and what follows'
would small ROUNDS=3
! grep -vxE 'crl-3-.*|report-.*|best-.*|report' "$tmp/made" && has crl-3-model-manifest
ok $? 'one round more makes that round and the report'
would small SELFSUP_ROUNDS=3
! grep -vxE 'selfsup-3-.*|crl-.*|report-.*|best-.*|report' "$tmp/made" && has selfsup-3-model-manifest &&
    has crl-1-prompts
ok $? 'one round more of stage 2 makes that round, and stage 3 from its start'
rules small -n crl-2-prompts -B; made >"$tmp/made"
has crl-2-prompts && has crl-1-pool && ! has 'crl-2-samples|report.*'
ok $? 'a step has the name of its log, and makes what it needs'
grep -qx "runs/$run-small/crl/2/prompts.qa: runs/$run-small/crl/1/pool.qa .*" "$tmp/settings.mk" &&
    ! grep -qF '$$' "$tmp/settings.mk" && ! grep -q '(eval \|SECONDEXPANSION' pipeline.mk
ok $? 'a step is one plain rule'
would small TRAINING='--max-tokens 512 --recompute on --trainer-hours 2'; [ ! -s "$tmp/made" ]
ok $? 'flags of memory and time make nothing again'

# ---- fewer rounds of stage 2, and back ----
for rounds in 1 2; do
    would small SELFSUP_ROUNDS=$rounds; cp "$tmp/made" "$tmp/first"
    rules small SELFSUP_ROUNDS=$rounds crl; s=$?
    cp "$tmp/first" "$tmp/made"
    [ $s = 0 ] && has crl-1-prompts && has crl-1-samples && has crl-2-model-manifest && ! has 'selfsup-.*' &&
        rules small SELFSUP_ROUNDS=$rounds -q crl
    ok $? "SELFSUP_ROUNDS=$rounds after $((3 - rounds)): stage 3 starts over, stage 2 stays"
done

# ---- a GPU that is no longer there, and a new one ----
gpu=(DEVICES=auto --found=cuda:0=NVIDIA+H200 CLASSES=NVIDIA+H200)
now='what is found here is sim:h100: DEVICES=sim:h100 judges all of it again'
rules gpu "${gpu[@]}" crl; rules gpu "${gpu[@]}" -q crl; s=$?
rules gpu DEVICES=auto -n crl; [ $? = 2 ] && [ $s = 0 ] && [ "$(wc -l <"$tmp/out")" = 1 ] &&
    grep -q "^quern: runs/$run-gpu was judged on NVIDIA H200, and $now" "$tmp/out"
ok $? 'the GPU has gone: the simulator does not take its place unasked'
would gpu DEVICES=sim:h100 && [ "$(grep -c 'verdicts$' "$tmp/made")" = 9 ]
ok $? 'a simulator that is named takes the place of a GPU that has gone'
rules gpu DEVICES=auto 'DEVICE=NVIDIA H200' CLASSES=NVIDIA+H200 -q crl
ok $? 'a class that other hosts serve makes nothing again'
rules small "${gpu[@]}" -n crl
[ $? = 2 ] && grep -q 'was judged on sim:h100, .* DEVICES=cuda:0 judges all of it again' "$tmp/out"
ok $? 'a GPU that has come is not taken unasked either'

# ---- programs that need the whole memory of the GPU ----
mkdir "$tmp/together"
TOGETHER=$tmp/together rules alone "POLICY=native:$tmp/a" LAB_HELDOUT_EVERY=1 -j8 crl &&
    [ -e "runs/$run-alone/report/selfsup-1/samples.qa" ] &&
    [ -e "runs/$run-alone/report/crl-1/samples.qa" ] && [ ! -e "$tmp/together/two" ]
ok $? 'one program at a time samples or trains the model'
missed=
seen alone "POLICY=native:$tmp/a" LAB_HELDOUT_EVERY=1 CHAT=chatml
[ -z "$missed" ] && has sft-model-manifest; ok $? "another template: the checkpoint is trained again$missed"

# ---- files of a killed run, and another run below this one ----
mkdir -p "runs/$run-small/inner/cfg" "runs/$run-small/inner/crl/1"
touch "runs/$run-small/"{,inner/}crl/1/samples.qa.journal
rm "runs/$run-small/report.html"; rules small crl
[ ! -e "runs/$run-small/crl/1/samples.qa.journal" ] && [ -e "runs/$run-small/inner/crl/1/samples.qa.journal" ]
ok $? "the report's rule clears away what is the run's own"

# ---- behind an endpoint ----
rules api POLICY=openai:A crl
missed=
seen api POLICY=openai:A POLICY=openai:B
[ -z "$missed" ] && has selfsup-1-samples && has report-sft-samples && ! has 'collect-.*'
ok $? "another model answers: every sample, not what was collected$missed"
missed=
seen api POLICY=openai:A DEVICE=sim:a100
[ -z "$missed" ] && has report-sft-verdicts && has 'report-.*-samples'
ok $? "another class judges: full prompts name it, so every sample, too$missed"
missed=
seen api POLICY=openai:A "BASE=$tmp/a"
[ -z "$missed" ]; ok $? "adapters on what answers$missed"
odd="sh 'it'.sh # 1) \$x, (y \\"
rules tuned POLICY=openai:A "BASE=$tmp/a" "TRAINER=$odd" crl; s=$?
rules tuned POLICY=openai:A "BASE=$tmp/a" "TRAINER=$odd" -q crl && [ $s = 0 ]
ok $? 'a setting of odd characters is the same the next time'
missed=
for setting in "BASE=$tmp/b" LORA=8 'TRAINING=--lora-alpha 64' TRAINER=other TEACHERS=none POLICY=openai:B; do
    seen tuned POLICY=openai:A "BASE=$tmp/a" "TRAINER=$odd" "$setting"
done
[ -z "$missed" ]; ok $? "every setting of adapters, changed, makes again every rule that it is used in$missed"
! has sft-model-manifest && has selfsup-1-samples
ok $? "another name of what is served: stage 1's adapter stays"
rules tuned POLICY=openai:A "BASE=$tmp/a" "TRAINER=$odd" TASKS=relu LAB_WIDE=transpose -n -B crl
made >"$tmp/made"; has lab-wide-verdicts && has lab-own-samples
ok $? 'LAB_WIDE adds kernels to stage 1'
commands | grep '^baselines-samples ' | grep -q 'relu,transpose'
ok $? 'prompts in English of LAB_WIDE kernels say the time of their baselines'
rules tuned POLICY=openai:A "BASE=$tmp/a" "TRAINER=$odd" TASKS=relu LAB_WIDE=transpose TEACHERS=none -n -B crl
made >"$tmp/made"
has sft-dataset && ! has 'lab-.*'; ok $? 'LAB_WIDE adds no kernels where there is no stage 1'
rules tuned POLICY=openai:A -n crl; made >"$tmp/made"; has report-sft-samples && has crl-1-samples
ok $? 'adapters no more: every sample is made again'

# Settings that decide nothing of what is made: where things are, how the work fits the memory and the time,
# leave to make it again.
apart=' CONFIG RUN RUNS QUERN_TASKS DEVICES REFRESH BUDGET COMPILE_S '
"$BIN/quern-config" --table | sed '/^## Environment/,$d' | while IFS='`' read -r _ name _; do
    [ -n "$name" ] || continue
    case "$tried $apart" in *" $name "*) ;; *) echo "$name" ;; esac
done >"$tmp/out"
[ ! -s "$tmp/out" ]; ok $? "no setting was left out here: $(tr '\n' ' ' <"$tmp/out")"

# ---- settings that are refused before Make reads a rule ----
refused() { # SENTENCE NAME=VALUE...
    rules refused "${@:2}" -n crl; [ $? = 2 ] && [ "$(wc -l <"$tmp/out")" = 1 ] &&
        grep -qF -- "quern: $1" "$tmp/out"
    ok $? "refused: ${*:2}"
}
for name in "a'b" '*' . .. 'a/../b' /a a/ a//b 'a#b' 'a;b' a,b 'a b' 'a%b' 'a:b' 'a$b' 'a(b' 'ä' ''; do
    refused "RUN=$name: expected a folder's name below runs/" "RUN=$name"
done
rules small -n crl "RUN=$run-a/B_1.2+c"; grep -q "^mk/run runs/$run-a/B_1.2+c/log/" "$tmp/out"
ok $? "a run's name may have letters, digits, dots, dashes and underlines"
refused 'STYLE=x: expected brief or full' STYLE=x
refused 'ENGINE=x: expected cpu, cuda:N or auto' ENGINE=x
refused 'ENGINE=cuda:x: expected cpu, cuda:N or auto' ENGINE=cuda:x
refused 'TASKS= names no task' TASKS=
refused 'TASKS=, names no task' TASKS=,
refused 'TASKS=q*: no task "q*" in tasks' 'TASKS=q*'
refused 'TEACHERS= names no teacher' TEACHERS=
refused 'TEACHERS=, names no teacher' TEACHERS=,
refused 'CLASSES= names no class' CLASSES=
refused 'PROFILE=*: expected the name of a file' 'PROFILE=*'
rules small -n collect 'TASKS=rel*'; grep -q -- "--tasks 'rel\*' " "$tmp/out"; ok $? 'a pattern names tasks'
rules small -n collect TEACHERS='generator, openai:M,'; grep -q -- "--teachers generator,openai:M " "$tmp/out"
ok $? 'blanks between teachers, a comma too many'

# Flags that only the programs can check; they do so before a fleet starts.
flags() { # SENTENCE NAME=VALUE...
    mk/pipeline crl "${BIN%/bin}" -rR make PROFILE=smoke "RUN=$run-flags" DEVICES=sim:h100 "${@:2}" \
        >"$tmp/out" 2>&1
    [ $? = 2 ] && [ "$(wc -l <"$tmp/out")" = 1 ] && grep -qF -- "quern: $1" "$tmp/out" &&
        [ ! -e "runs/$run-flags" ]
    ok $? "refused: ${*:2}"
}
flags 'CRL: --loss expects one of dapo|' CRL='--loss gpso'
flags 'SELFSUP: unknown flag' SELFSUP='--lrr 1e-4'
flags 'SFT: --lr expects a number' SFT='--lr much'
flags 'SFT: --vocab is given twice' SFT='--vocab 400'
flags 'CRL: --seed is given twice' CRL='--seed 3'
flags 'SMALL_MODEL: heads must divide hidden' SMALL_MODEL='--hidden 128 --heads 3'
flags 'PROMPTS: --rule expects one of' PROMPTS='--rule nonesuch'
flags 'PROMPTS: --copies expects a value from 1 to' PROMPTS='--copies 0'
flags 'SELFSUP_PROMPTS: --copies expects a value from 1 to' SELFSUP_PROMPTS='--copies 0'
flags 'SAMPLE: --max-new expects a value from 1 to' SAMPLE='--max-new 0'
flags 'FILTER: --contrastive expects a number' FILTER='--contrastive many'
flags 'COLLECT: --keep expects a value from 1 to' COLLECT='--keep 0'
flags 'CRL: the shell: ' CRL="'"
flags 'DEVICE=NVIDIA H200: no evaluator of DEVICES=sim:h100 has the class NVIDIA+H200' 'DEVICE=NVIDIA H200'
flags 'CLASSES=NVIDIA+H200: no evaluator of DEVICES=sim:h100 has the class' CLASSES=NVIDIA+H200
flags 'ENGINE=cuda:99: there is no cuda:99 here' ENGINE=cuda:99
flags 'LORA: --lora expects a value from' "POLICY=native:$tmp/a" LORA=9999
for p in default smoke; do
    "$BIN/quern-config" --found= --check PROFILE=$p "RUN=$run-flags" -- true >"$tmp/out" 2>&1 &&
        [ ! -s "$tmp/out" ]
    ok $? "PROFILE=$p is not refused"
done
flags "POLICY=native:$tmp/a: cannot open $tmp/a/tokenizer.json" "POLICY=native:$tmp/a"
cp -r share/starter "$tmp/whole"
"$BIN/quern-config" --found= --check CONFIG=configs/lora.mk "POLICY=native:$tmp/whole" \
    "RUN=$run-flags" -- true >"$tmp/out" 2>&1
ok $? 'adapters on a checkpoint are not refused'
sed -i 's/"num_hidden_layers": *[0-9]*/"num_hidden_layers": 3/' "$tmp/whole/config.json"
rm "$tmp/whole/manifest.qa"
flags "POLICY=native:$tmp/whole: $tmp/whole: " "POLICY=native:$tmp/whole"

# ---- a folder of kernels ----
folder=(TEACHERS="generator,dir:$tmp/kernels")
cp tasks/relu/baseline.cu "$tmp/kernels/relu/b.cu"
again() { # WHAT: after a change of the folder make collects again, and then has nothing to do
    rules dir -n collect "${folder[@]}"; made >"$tmp/made"
    rules dir collect "${folder[@]}"; rules dir -q collect "${folder[@]}" && has collect-samples
    ok $? "$1: collected again"
}
again 'a folder of kernels'
cp tasks/relu/baseline.cu "$tmp/kernels/relu/a name.cu"; again 'one kernel more'
echo '// slower' >>"$tmp/kernels/relu/b.cu"; touch -d '2001-01-01' "$tmp/kernels/relu/b.cu"
again 'another text, of an older date'
rm "$tmp/kernels/relu/a name.cu"; again 'one kernel less'
touch "$tmp/kernels/relu/b.cu"; rules dir -q collect "${folder[@]}"
ok $? 'files of a teacher that are only touched: nothing to do'
rules dir -n collect TEACHERS=dir:none
[ $? = 2 ] && grep -q 'TEACHERS=dir:none: there is no folder none' "$tmp/out"
ok $? 'no folder is one sentence'

# ---- a folder of tasks, one with a blank in its name ----
mkdir "$tmp/my tasks"; cp -r tasks/relu tasks/gelu "$tmp/my tasks"
mine=("QUERN_TASKS=$tmp/my tasks")
rules tasks crl "${mine[@]}"; s=$?
rules tasks -q crl "${mine[@]}" && [ $s = 0 ]; ok $? 'tasks elsewhere: nothing to do the next time'
touch "$tmp/my tasks/relu/baseline.cu"; rules tasks -q crl "${mine[@]}"
ok $? 'a file that was only touched is no change'
echo '// slower' >>"$tmp/my tasks/relu/baseline.cu"
rules tasks -n crl "${mine[@]}"; made >"$tmp/made"; has collect-samples && has selfsup-1-prompts &&
    has best-samples
ok $? 'a changed file of a task: collected again'

# ---- quern-collect on it ----
cd "$tmp" || exit 99
: >out
export BIN
collect() {
    exec "$BIN/quern-collect" --tasks relu --teachers dir:kernels --trials 4 --keep 4 \
        --output "${1:-kept.qa}" 2>out
}
sources() {
    "$BIN/quern-artifact" export "${1:-kept.qa}" | sed -n 's/.*"source": *"\(\/\/ [a-z0-9]*\).*/\1/p' |
        tr '\n' ' '
}
kernel() { { echo "// $1"; cat "$source_dir/tasks/relu/baseline.cu"; } >"kernels/relu/$1.cu"; }
"$BIN/quern-collect" --tasks relu --teachers dir:none --output none.qa >out 2>&1
[ $? = 2 ] && grep -q "^quern-collect: teacher 'dir:none': expected a folder at none: No such file" out &&
    [ ! -e none.qa ]
ok $? 'no folder is one sentence here too'
mkdir empty kernels/sofmax kernels/softmax
touch kernels/loose.cu kernels/.hidden.cu kernels/notes.txt
for dir in kernels/relu empty; do
    "$BIN/quern-collect" --tasks relu,gelu --teachers "generator,dir:$dir" --output none.qa >out 2>&1
    [ $? = 1 ] && [ "$(wc -l <out)" = 1 ] &&
        grep -qF "'dir:$dir': expected $dir/<task>/NAME.cu for a train task of the run, found none" out
    ok $? "no source for any task in $dir: one sentence"
done
"$BIN/quern-collect" --tasks relu --teachers dir:kernels --output none.qa >out 2>&1
grep -q 'folders of kernels: sofmax$' out && grep -q 'not read: loose.cu$' out &&
    [ "$(grep -c warning out)" = 2 ]
ok $? 'what no task has is warned of'
rm -r kernels/sofmax kernels/softmax kernels/loose.cu
command -v redis-server >/dev/null || done_testing
export -f collect wait_for
rm kernels/relu/*; kernel b; kernel c
"$BIN/quern-fleet" run --workers 0 --dir q -- bash -c 'collect & pid=$!
    wait_for "grep -aqs \"// c\" kept.qa.journal"
    kill -KILL $pid; wait $pid' 2>fleet.err
grep -aq '// b' kept.qa.journal && grep -aq '// c' kept.qa.journal && [ ! -e kept.qa ]
ok $? 'a collection is killed, with both kernels in its journal'
kernel a
cat >all.sh <<'END2'
(collect) && cp out first && cp kept.qa first.qa
(collect) && cp out second
kernel b2; mv kernels/relu/b2.cu kernels/relu/b.cu; (collect) && cp out third && cp kept.qa third.qa
rm kernels/relu/a.cu; (collect) && cp kept.qa fourth.qa
mv kernels/relu/c.cu kernels/relu/d.cu; (collect) && cp out fifth
kernel e; printf '\xef\xbb\xbf' | cat - kernels/relu/e.cu >e.cu; mv e.cu kernels/relu/e.cu
(collect) && cp out sixth
END2
export source_dir
export -f kernel
"$BIN/quern-fleet" run --workers 1 --dir q -- bash all.sh 2>fleet.err
[ "$(sources first.qa)" = '// a // b // c ' ] && grep -q 'kept.qa.journal' first
ok $? "a kernel more: the journal starts over, no number has another's text: $(sources first.qa)"
grep -q 'kept.qa: same' second; ok $? "a teacher's folder as it was gives the same"
[ "$(sources third.qa)" = '// a // b2 // c ' ] && ! grep -q 'kept.qa: same' third
ok $? "another text in a teacher's folder: made again"
[ "$(sources fourth.qa)" = '// b2 // c ' ]; ok $? "a kernel less in a teacher's folder: made again"
grep -q 'kept.qa: same' fifth; ok $? "another name at the same place in a teacher's folder: the same"
grep -q ': 3 answers, 3 distinct correct ones' first; ok $? 'three kernels are three answers, of four trials'
grep -q ': 3 answers, 3 distinct correct ones' sixth; ok $? 'a byte-order mark is skipped'

# ---- quern-pool --best: the best of the pool and of each set, heldout tasks too ----
measured() { printf '%s\t// selftest: measured 0 A=%s\n' "$@" | "$here/make_samples.pl"; }
measured relu 1.5 relu 1.9 relu 1.7 >one.samples
measured gelu 1.2 gelu 1.4 relu 0.9 >two.samples
cat >judge.sh <<'END2'
"$BIN/quern-evald" --runner noop --device test:gpu --uuid A & pid=$!
for set in one two; do "$BIN/quern-evaluate" $set.samples --output $set.qa --device test:gpu; done
kill $pid; wait $pid
END2
"$BIN/quern-fleet" run --workers 0 --dir q -- bash judge.sh >out 2>&1
"$BIN/quern-pool" --samples one.samples --verdicts one.qa --output pool.qa 2>>out
"$BIN/quern-pool" --best --pool pool.qa --sets one.samples:one.qa,two.samples:two.qa --tasks relu,gelu \
    --output best.qa 2>>out
"$BIN/quern-artifact" export best.qa | sed -n 's/.*"id": *"\(best[^"]*\)".*A=\([0-9.]*\).*/\1 \2/p' |
    tr '\n' ';' >ids
[ "$(cat ids)" = 'best/relu 1.9;best/relu/1 1.9;best/gelu/2 1.4;best/relu/2 0.9;' ]
ok $? "--best takes the best kernel of each task: $(cat ids)"
"$BIN/quern-pool" --output no.qa --sets one.samples:one.qa 2>out
[ $? = 2 ] && grep -q -- '--sets goes with --best' out
ok $? '--sets without --best is a usage error'
done_testing
