#!/bin/bash
# LAB_HELDOUT_EVERY=1: between the rounds the heldout tasks are sampled too; the report's curves have them.
# The page of the run says what the prompts of its best kernels showed. With --corrections stage 1 has
# examples of a second turn. TAP on stdout.
. "$(dirname "$0")/pipeline.sh"
sed -i 's/^TASKS .*/TASKS ?= relu,gelu/; /^PROMPTS /s/--plain 2/--plain 1/;
    s/^SFT .*/SFT ?= --plain-epochs 20 --epochs 2 --batch 4 --lr 8e-3/' "$tmp/tiny.mk"
filter='FILTER=--contrastive 1 --drills 1 --corrections 1'
crl a LAB_HELDOUT_EVERY=1 "$filter"; ok $? 'a run with heldout samples between its rounds'
export_() { "$BIN/quern-artifact" export "$(dir a)/$1"; }
export_ sft/dataset.qa | grep -q '"kind":"correction"'; ok $? 'stage 1 has corrections'
is 'the heldout task alone is sampled' \
    "$(export_ report/crl-1/samples.qa | sed -n 's/.*"task":"\([a-z_]*\)".*/\1/p' | sort | uniq -c | xargs)" \
    '4 gelu'
export_ report/crl-1/metrics.qa | grep -q '"heldout.samples","step":1,"value":4'
ok $? 'the heldout task has its figures'
[ ! -e "$(dir a)/report/selfsup-1" ] && [ ! -e "$(dir a)/report/crl-2" ]
ok $? "no heldout samples follow a stage's last round: the report samples its model"
# The prompts of a round, answered by the generator: the model here writes little that is new.
mkdir "$tmp/s"
"$BIN/quern-search" --prompts "$(dir a)/crl/1/prompts.qa" --tasks relu --copies 8 --seed 5 \
    --output "$tmp/s/samples.qa" >"$tmp/out" 2>&1 &&
  "$BIN/quern-fleet" run --devices sim:h100 --workers 1 -- "$BIN/quern-evaluate" "$tmp/s/samples.qa" \
  --output "$tmp/s/verdicts.qa" --device sim:h100 --seed 1 >>"$tmp/out" 2>&1 &&
  "$BIN/quern-pool" --pool "$(dir a)/selfsup/1/pool.qa" --samples "$tmp/s/samples.qa" \
  --verdicts "$tmp/s/verdicts.qa" --prompts "$(dir a)/crl/1/prompts.qa" --output "$tmp/s/pool.qa" \
  --stage crl --round 1 >>"$tmp/out" 2>&1
ok $? 'heldout samples are other answers to the same prompts'
export_ crl/1/prompts.qa >"$tmp/prompts"; "$BIN/quern-artifact" export "$tmp/s/pool.qa" >"$tmp/pool"
perl -MJSON::PP -e '
    sub lines { open my $f, "<", $_[0] or die; map { decode_json($_) } <$f> }
    my (%shown, %digest);
    $shown{$_->{id}} = $_->{exemplars} || [] for lines($ARGV[0]);
    my @pool = lines($ARGV[1]);
    $digest{$_->{id}} = $_->{source_digest} for @pool;
    for (@pool) {
        next unless $_->{stage} eq "crl";
        (my $prompt = $_->{id}) =~ s{/\d+$}{};
        my $want = join " ", map { $_->{id} eq "baseline" ? "baseline" : $digest{$_->{id}} }
            @{ $shown{$prompt} };
        $n++; $shown++ if $want; $bad++ unless $_->{parents} && $want eq join " ", @{ $_->{parents} };
    }
    print "$n new kernels, $shown from others\n"; exit($bad || !$shown)' "$tmp/prompts" "$tmp/pool" \
        >"$tmp/said" 2>&1
    ok $? "the pool has what each prompt showed: $(cat "$tmp/said")"
grep -q 'Lineage, by what prompts showed\|Its prompt showed no kernel' "$(dir a)/report.html" ||
    ! grep -q 'Found in \(crl\|selfsup\|the report\)' "$(dir a)/report.html"
ok $? 'the page says it of each best kernel'
crl a LAB_HELDOUT_EVERY=1 "$filter"; [ $? = 0 ] && [ -z "$(ran)" ]
ok $? 'the same command again does nothing'
crl a "$filter"; [ $? = 0 ] && [ -z "$(ran)" ]
ok $? 'the same command without the heldout samples does nothing'
none_left; ok $? 'no process is left at the end'
done_testing
