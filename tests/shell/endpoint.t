#!/bin/bash
# Stages with an endpoint as the policy and as a teacher, killed and continued. No answered request is sent
# again, the artifact equals an uninterrupted run's, and the key is nowhere. TAP on stdout.
. "$(dirname "$0")/endpoint.sh"
requests() { wc -l <log; }

# ---- as the policy: 4 prompts, 8 answers each ----
"$BIN/quern-prompt" --tasks relu --groups 4 --style full -o prompts.qa 2>err
sample() {
    exec "$BIN/quern-sample" --policy openai:fake --prompts prompts.qa --copies 8 --concurrency 4 \
        --output "$1" 2>>err
}
: >log
(sample straight.qa); ok $? 'an endpoint answers prompts'
[ "$(requests)" = 32 ] && "$BIN/quern-artifact" export straight.qa | grep -c '"source": *"//@ launch k' |
    grep -qx 32
ok $? 'every answer holds its candidate'
: >log
kills=0
for at in 6 14 22; do
    echo $at >log.hold
    sample killed.qa &
    pid=$!
    wait_for "[ \$(requests) -gt $at ]"
    kill -9 $pid 2>/dev/null && kills=$((kills + 1))
    wait $pid 2>/dev/null
done
rm log.hold
(sample killed.qa)
[ $? = 0 ] && [ $kills = 3 ] && [ -n "$(digest straight.qa)" ] &&
    [ "$(digest straight.qa)" = "$(digest killed.qa)" ]
ok $? 'killed three times it gives the same artifact'
# At most the four requests that a kill interrupts are sent a second time.
[ "$(requests)" -gt 32 ] || [ "$(requests)" = 32 ] && [ "$(requests)" -le 44 ]
ok $? "an endpoint is asked for nothing that the journal has ($(requests) requests for 32 answers)"
[ ! -e killed.qa.journal ]; ok $? 'the journal of a finished run is gone'

mkdir long; python3 "$root/tests/shell/fake_llm.py" "$tmp/long/log" long >long.port 2>>server.err & long=$!
wait_for '[ -s long.port ]'
(OPENAI_BASE_URL=http://127.0.0.1:$(cat long.port)/v1; sample none.qa)
[ $? = 1 ] && tail -1 err | grep -q 'none of 32 requests was answered' && [ ! -e none.qa ]
ok $? 'a server for which every prompt is too long is one sentence'
kill $long

# ---- as a teacher ----
collect() {
    exec "$BIN/quern-collect" --tasks relu --teachers openai:fake --trials 12 --keep 6 --concurrency 2 \
        --output "$1" 2>>err
}
export -f collect requests wait_for
: >log
"$BIN/quern-fleet" run --workers 1 --dir q -- bash -c 'collect taught.qa' 2>>err
[ $? = 0 ] && [ "$("$BIN/quern-artifact" export taught.qa | grep -c collect/relu/openai:fake/)" -ge 6 ]
ok $? 'an endpoint teaches'
straight=$(requests)
: >log; echo 4 >log.hold
"$BIN/quern-fleet" run --workers 1 --dir q -- bash -c 'collect torn.qa & pid=$!
    wait_for "[ \$(requests) -gt 4 ]"
    kill -9 $pid; wait $pid; rm log.hold; (collect torn.qa)' 2>>err
[ $? = 0 ] && [ -n "$(digest taught.qa)" ] && [ "$(digest taught.qa)" = "$(digest torn.qa)" ]
ok $? 'a teacher killed in the middle ends the same'
[ "$(requests)" -le $((straight + 2)) ]
ok $? "a killed teacher pays twice only for what was under way ($(requests) requests, else $straight)"

check_key
done_testing
