#!/bin/bash
# quern-sft --validation: the tasks that it measures on are not learned, and each pass has one value. TAP on
# stdout.
. "$(dirname "$0")/tap.sh"
need redis-server
export BIN
tasks=relu,gelu,transpose,softmax,row_sum,diag_matmul
"$BIN/quern-fleet" run --workers 1 --dir q -- bash \
    -c '"$BIN/quern-collect" --tasks '$tasks' --teachers generator --trials 6 --keep 3 --output s.qa &&
    "$BIN/quern-evaluate" s.qa --output v.qa' 2>err
run quern-filter --samples s.qa --verdicts v.qa --output dataset.qa --contrastive 1
[ $? = 0 ]; ok $? 'a dataset of six tasks'
sft() {
    run quern-sft --dataset dataset.qa --vocab 700 --hidden 32 --ff 64 --layers 1 --heads 2 --kv-heads 1 \
        --plain-epochs 3 --epochs 2 --batch 4 --lr 5e-3 "$@"
}
examples() { sed -n 's/^quern-sft: \([0-9]*\) examples of [0-9].*/\1/p' err; }
sft --output all; s=$? all=$(examples); is 'without a held part all examples are learned' $s 0
sft --output part --validation 0.5; s=$? part=$(examples)
held=$(sed -n 's/^quern-sft: \([0-9]*\) examples of other tasks.*/\1/p' err)
[ $s = 0 ] && [ "${held:-0}" -gt 0 ] && [ $((part + held)) -le "$all" ]
ok $? "half of the tasks are held: $part and $held of $all"
values() { "$BIN/quern-artifact" export "$1/metrics.qa" | grep '"validation"'; }
is 'a loss of the held part follows each pass' "$(values part | wc -l)" 5
is 'there is no such loss without a held part' "$(values all | wc -l)" 0
first=$(values part | sed -n '1s/.*"value":\([0-9.]*\).*/\1/p') last=$(values part |
    sed -n '$s/.*"value":\([0-9.]*\).*/\1/p')
awk "BEGIN { exit !($last < $first) }"; ok $? "the loss of the held part falls: $first to $last"
sft --output again --validation 0.5
is 'the loss of the held part repeats bit for bit' "$(values again)" "$(values part)"
sft --output short --context 500; s=$?
left=$(sed -n 's/^quern-sft: warning: \([0-9]* of [0-9]*\) examples are longer than 500 .*SFT .*/\1/p' err)
[ $s = 0 ] && [ "${left% of *}" -gt 0 ] && [ "${left#* of }" = "$all" ] &&
    [ $((${left% of *} + $(examples))) = "$all" ]
ok $? "examples that do not fit are a warning that names the setting: $left"
sft --output none --context 64; s=$?
[ $s = 1 ] && [ ! -e none ] && grep -q "^quern-sft: all $all examples are longer than 64 tokens.* in SFT " err
ok $? 'where none fits no model is written'
run quern-sft --dataset dataset.qa --base all --trainer true --validation 0.5 --output out
[ $? = 2 ] || [ $? = 1 ]; grep -q -- '--validation has no effect' err
ok $? 'an outside trainer refuses a held part'
done_testing
