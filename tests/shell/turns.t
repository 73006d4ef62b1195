#!/bin/bash
# A run with TURNS=2: the verdict on an answer goes back, the second answers are judged and learned from, and
# the figures of a round are by turn. TAP on stdout.
. "$(dirname "$0")/pipeline.sh"
sed -i 's/^TASKS .*/TASKS ?= relu/; /^PROMPTS /s/--plain 2/--plain 1/; s/^ROUNDS .*/ROUNDS ?= 1/;
    s/^SELFSUP_ROUNDS .*/SELFSUP_ROUNDS ?= 0/;
    s/^SFT .*/SFT ?= --plain-epochs 20 --epochs 2 --batch 4 --lr 8e-3/' "$tmp/tiny.mk"
crl a TURNS=2; ok $? 'a run with two turns'
round=$(dir a)/crl/1
export_() { "$BIN/quern-artifact" export "$1"; }
is 'a turn has an answer to each verdict' "$(export_ "$round/turn-2/samples.qa" | wc -l)" \
    "$(export_ "$round/turn-1/verdicts.qa" | grep -vc '"outcome":"evaluator_error"')"
is 'the round has the answers of all turns' \
    "$(export_ "$round/samples.qa" | wc -l) $(export_ "$round/verdicts.qa" | wc -l)" \
    "$(($(export_ "$round/turn-1/samples.qa" | wc -l) + $(export_ "$round/turn-2/samples.qa" |
    wc -l))) $(($(export_ "$round/turn-1/samples.qa" | wc -l) + $(export_ "$round/turn-2/samples.qa" |
    wc -l)))"
export_ "$round/turn-2/samples.qa" |
    perl -MJSON::PP \
    -ne '$r = decode_json($_); $bad++ unless $r->{turn}
        == 2 && index($r->{id}, "$r->{parent}/turn-2/") == 0 && $r->{prompt}
        =~ /^# Verdict\n./m && $r->{group} =~ m{/turn-2$}; END { exit($bad || !$.) }'
ok $? 'each turn says whose verdict it answers'
export_ "$round/metrics.qa" | grep -q '"turn.2.success"' &&
    export_ "$round/metrics.qa" | grep -q '"turn.2.mended"'
ok $? 'the figures are by turn'
grep -q "$(($(export_ "$round/samples.qa" | wc -l))) samples of" "$(dir a)"/log/crl-1-model-manifest.log
ok $? 'stage 3 learns from both turns'
crl a TURNS=2; [ $? = 0 ] && [ -z "$(ran)" ]; ok $? 'the same command again does nothing'
crl a TURNS=9; [ $? != 0 ] && grep -q 'TURNS=9: expected 1 to 8' "$tmp/out"
ok $? 'too many turns are refused'
none_left; ok $? 'no process is left at the end'
done_testing
