#!/bin/bash
# make ablation: arms share stages 1 and 2, a control without a model costs as many evaluations, a run that is
# missing is a hole, and the same command does nothing more. TAP on stdout.
# limit: 900
. "$(dirname "$0")/pipeline.sh"
limit=1200
echo 'include '"$tmp/tiny.mk" >"$tmp/one.mk"
sed -i 's/^SFT .*/SFT ?= --plain-epochs 2 --epochs 1 --batch 4 --lr 8e-3/; s/^ROUNDS .*/ROUNDS ?= 1/;
    s/^REPORT_SAMPLES .*/REPORT_SAMPLES ?= 1/; s/^TASKS .*/TASKS ?= relu/
    /^SELFSUP_PROMPTS /s/--copies 4/--copies 2/
    /^PROMPTS /s/--plain 2/--plain 1/' "$tmp/tiny.mk"
ablation() {
    timeout -k 5 "$limit" make -j2 ablation "${settings[@]}" RUN="$prefix-a" SEEDS=1 "$@" >"$tmp/out" 2>&1
}
where=runs/$prefix-a

# Nothing starts where a seed or an arm is wrong.
echo 'ROUNDS ?= many' >"$tmp/wrong.mk"
ablation ARMS=bucket SEEDS=1,x; [ $? = 2 ] && grep -qF 'quern: SEED=x: ' "$tmp/out" && [ ! -e "$where" ]
ok $? 'a seed that is no number is refused first'
ablation ARMS="bucket,$tmp/wrong.mk"
[ $? = 2 ] && grep -qF 'quern: ROUNDS=many: ' "$tmp/out" && [ ! -e "$where" ]
ok $? 'an arm with a wrong setting is refused first'

ablation ARMS=bucket,none,generator,more-sft
ok $? 'four arms of one seed'
is 'every arm has a row' \
    "$(grep -cE '^\| (bucket|none|generator|more-sft) \| 1 \| [0-9]+ \|' "$where/table.md")" 4
is 'the table compares arms at equal evaluations' \
    "$(sed -n 's/^| [a-z-]* | 1 | \([0-9]*\) .*/\1/p' "$where/table.md" | sort -u | wc -l)" 1
is 'stages 1 and 2 are shared' \
    "$(stat -c %i "$where"/{shared,bucket,none,generator,more-sft}-1/sft/model/model.safetensors | sort -u |
    wc -l)" 1
is 'stages 1 and 2 are made once for all arms' \
    "$(cat "$where"/*/log/sft-model-manifest.log 2>/dev/null | grep -c '^command')" 1
producer() {
    "$BIN/quern-artifact" export "$where/$1-1/crl/1/samples.qa" |
        perl -MJSON::PP \
        -ne '$p{decode_json($_)->{producer} eq "generator" ? "generator" : "model"}++;
            END { print join " ", sort keys %p }'
}
is 'the table of arms has who answers' \
    "$(for a in bucket none generator more-sft; do producer $a; echo; done | tr '\n' ' ')" \
    'model model generator generator '
[ -e "$where/bucket-1/crl/1/model" ] && [ -e "$where/more-sft-1/crl/1/model" ] &&
    [ ! -e "$where/generator-1/crl/1/model" ]
ok $? 'the table of arms has who learns'
"$BIN/quern-artifact" export "$where/none-1/crl/1/prompts.qa" | grep -q contrastive; [ $? = 1 ]
ok $? 'without exemplars no prompt is contrastive'
"$BIN/quern-artifact" export "$where/bucket-1/crl/1/metrics.qa" | grep -q '"comparison.asked"'
ok $? 'a round has its metrics'
ablation ARMS=bucket,none,generator,more-sft
[ $? = 0 ] && [ "$(grep -c 'is up to date' "$tmp/out")" = 5 ]; ok $? 'the same command again does nothing'
rm "$where/none-1/report.html"
"$BIN/quern-ablation" --runs "$where" --arms bucket,none --seeds 1 >"$tmp/table" 2>"$tmp/err"
is 'a missing run is a hole' \
    "$(grep -c '^| none | 0; MISSING: seed 1 | - | - | - | - | - | - | - |' "$tmp/table") $(grep \
    -c '1 of 2 runs are missing' "$tmp/err")" '1 1'
timeout -k 5 "$limit" make -j2 ablation "${settings[@]}" RUN="$prefix-b" SEEDS=1 ARMS=none SELFSUP_ROUNDS=0 \
    >"$tmp/out" 2>&1
[ $? = 0 ] && grep -q '^| none | 1 |' "runs/$prefix-b/table.md"; ok $? 'arms of a run without stage 2'
ablation ARMS=nothing; [ $? != 0 ] && grep -q 'ARMS=nothing: there is no .*lab/arms/nothing.mk' "$tmp/out"
ok $? 'an arm that is not there is refused'
ablation ARMS=none SEED=3; [ $? != 0 ] && grep -q 'SEED is for one run' "$tmp/out"
ok $? 'a seed of its own is refused'
none_left; ok $? "no process is left at the end"
done_testing
