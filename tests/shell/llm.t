#!/bin/bash
# The client of chat endpoints against a server that fails as each prompt asks (fake_llm.py). TAP on stdout.
. "$(dirname "$0")/tap.sh"
DRIVE=$BUILD/test/llm/drive_llm
need python3 'the fake server needs python3'
python3 "$here/fake_llm.py" "$tmp/log" >port 2>server.err &
server=$!
silent=
at_exit+=('kill $server $silent 2>/dev/null')
logs=(out err server.err)
wait_for '[ -s port ]'
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 QUERN_LOG=debug
export OPENAI_BASE_URL=http://127.0.0.1:$(cat port)/v1 ANTHROPIC_BASE_URL=http://127.0.0.1:$(cat port)
export OPENAI_API_KEY=sk-secret-0123456789abcdef ANTHROPIC_API_KEY=sk-ant-secret-0123456789
# drive FLAGS -- PROMPT...: runs the client; each prompt is "name script: steps". All outputs are collected in
# said.
drive() {
    local flags=()
    while [ "$1" != -- ]; do flags+=("$1"); shift; done
    shift
    : >log
    printf '%s\n' "$@" | timeout 120 "$DRIVE" "${flags[@]}" --give-up "${GIVE_UP:-60}" >out 2>err
    rc=$?
    sort -n -o out out
    cat out err >>said
}
# logged EXPRESSION: whether a Python expression over the list r of logged requests is true
logged() { python3 -c "import json,sys
r = [json.loads(l) for l in open('log')]
sys.exit(0 if ($1) else 1)"; }

drive -- 'a script: ok' 'b script: ok' 'skip' 'c script: ok'
[ $rc = 0 ] && [ "$(cat out)" = '0 200 1 stop 5 echo a
1 200 1 stop 5 echo b
3 200 1 stop 5 echo c' ]; ok $? 'answers are taken, and one prompt is skipped'
logged "len(r) == 3 and r[0]['path'] == '/v1/chat/completions' and
    r[0]['key'] == 'Bearer sk-secret-0123456789abcdef'"
ok $? 'a request has path and key'
logged "sorted(q['body']['seed'] for q in r) == [100, 101, 103] and all(q['body']['model'] == 'm' and
    q['body']['max_tokens'] == 50
    and q['body']['temperature'] == 0.5 and q['body']['messages'][0] ==
    {'role': 'system', 'content': 'be brief'} for q in r)"
    ok $? 'a request has its body'

drive -- 'd script: 429:1 ok'
[ $rc = 0 ] && grep -q '^0 200 2 stop 5 echo d$' out && logged "r[1]['time'] - r[0]['time'] >= 1"
ok $? '429 with Retry-After: waited at least so long'
drive -- 'e script: 429ms:700 ok'
[ $rc = 0 ] && grep -q '^0 200 2 ' out && logged "r[1]['time'] - r[0]['time'] >= 0.7"
ok $? '429 with retry-after-ms: waited at least so long'
drive -- 'f script: 429date:2 ok'
[ $rc = 0 ] && grep -q '^0 200 2 ' out && logged "r[1]['time'] - r[0]['time'] >= 0.9"
ok $? '429 with a date: waited until then'
drive -- 'g1 script: 500 529 ok' 'g2 script: 503 408 ok'
[ $rc = 0 ] && grep -q '^0 200 3 stop 5 echo g1$' out && grep -q '^1 200 3 stop' out
ok $? '500, 529, 503 and 408 are tried again'
drive -- 'ga script: garbage ok'
[ $rc = 0 ] && grep -q '^0 200 2 stop' out; ok $? 'bytes that are no HTTP are tried again'
drive -- 'h script: truncated ok' 'i script: half ok' 'j script: nothing ok' 'k script: none ok' \
    'l script: error200 ok'
[ $rc = 0 ] && [ "$(cut -d' ' -f1-4 out | sort -u)" = '0 200 2 stop
1 200 2 stop
2 200 2 stop
3 200 2 stop
4 200 2 stop' ]; ok $? 'truncated JSON, half a body, no reply, no choice, an error under 200: tried again'
drive --timeout 1 -- 'm script: drip ok'
[ $rc = 0 ] && grep -q '^0 200 [2-9] stop' out; ok $? 'a slow drip ends at the time limit'
drive -- 'n script: huge' 'o script: bomb' 'p script: ok'
[ $rc = 0 ] && [ "$(grep -c 'error 0 http.*a reply of more than 16777216 bytes' out)" = 2 ] &&
    grep -q '^2 200 1 stop' out && logged 'len(r) == 3'
ok $? 'a huge body and a gzip bomb are cut off, and not asked for again'
drive -- 'q script: two' 'r script: gzip' 's script: length' 't script: reasoning' 'u script: think' \
    'ua script: closed' 'ub script: halfpair'
[ $rc = 0 ] && [ "$(cat out)" = '0 200 1 stop 5 first
1 200 1 stop 5 unzipped
2 200 1 length 5 cut
3 200 1 stop 5 fine | deep
4 200 1 stop 5 fine | deep
5 200 1 stop 5 fine | deep
6 200 1 stop 5 fine �' ]
ok $? 'two choices, gzip, length, reasoning in each form and half a character are read'
drive -- 'v script: 400' 'w script: 422' 'x script: never' 'y script: filter' 'z script: redirect' \
    'aa script: ok'
[ $rc = 0 ] && [ "$(cut -d' ' -f1-4 out)" = '0 400 1 error
1 422 1 error
2 500 1 error
3 200 1 error
4 307 1 error
5 200 1 stop' ] && grep -q 'answered 400 (said the fake server)' out
ok $? 'what no retry mends is not retried, the rest goes on'
# A machine that pauses for as long as the patience lets it try once: then it is done again.
impatient() { # FLAGS -- PROMPT...
    local try
    for try in 1 2 3 4 5; do GIVE_UP=4 drive "$@"; grep -qE '^0 [0-9]+ 1 error' out || break; done
}
impatient -- 'ab script: 500' 'ac script: ok'
[ $rc = 0 ] && grep -q '^0 500 [2-9]* error .*given up after' out && grep -q '^1 200 1 stop' out
ok $? 'patience with a server that fails ends'
GIVE_UP=1 drive -- 'ad script: 429:3600'
[ $rc = 0 ] && grep -q 'asks to wait 3600 s, more than the 1 s' out
ok $? 'a Retry-After of an hour is not waited for'

# ---- replies under status 200 that are no answer: three in a row are a failure with their text ----
read -ra kinds <log.kinds
useless=() wrong=
for k in "${kinds[@]}"; do useless+=("us$k script: useless:$k"); done
for ((i = 0; i < ${#useless[@]}; i += 9)); do
    drive --concurrency 9 -- "${useless[@]:i:9}"
    [ $rc = 0 ] && ! grep -vqE '^[0-9]+ 200 3 error 0 http' out || wrong+=" $(head -c 300 out err)"
    logged "all(sum(q['body']['messages'][-1] == p['body']['messages'][-1] for q in r) == 3 for p in r)" ||
        wrong+=" $i"
done
[ "${#kinds[@]}" -ge 30 ] && [ -z "$wrong" ]
ok $? "${#kinds[@]} kinds of replies that are no answer end after three requests$wrong"
drive -- 'ug script: garbage'; grep -q '^0 200 3 error' out; ok $? 'so does what is no HTTP'
drive -- 'ush script: useless:html'; grep -q 'the reply begins: <!DOCTYPE html><html><body>Sign in' out
ok $? 'the error shows what came'
drive -- 'usa script: useless:html useless:null ok'; grep -q '^0 200 3 stop 5 echo usa$' out
ok $? 'an answer after two of them is one'
drive -- 'bom script: bom' 'sse script: sse' 'ssu script: sse:usage'
[ $rc = 0 ] && [ "$(cat out)" = '0 200 1 stop 5 after a mark
1 200 1 stop 0 a stream
2 200 1 stop 5 a stream' ]
ok $? 'a byte-order mark is skipped, a stream is read'
drive --concurrency 1 -- 'oss1 script: onlysse' 'oss2 script: onlysse'
[ $rc = 0 ] && [ "$(cat out)" = '0 200 3 length 0 a stream | deep
1 200 1 length 0 a stream | deep' ] && logged "len(r) == 4 and r[1]['body']['stream_options'] and
    r[3]['body']['stream'] and 'stream_options' not in r[3]['body']"
ok $? 'a server that offers nothing but streams is asked for one'
drive --api anthropic -- 'cs script: claudesse'
is "Anthropic's stream is read" "$(cat out)" '0 200 1 length 4 ab | hm'

# ---- errors of other dialects ----
for step in loc nested google; do
    drive --concurrency 1 -- "di${step}1 script: $step" "di${step}2 script: $step"
    [ $rc = 0 ] && [ "$(cut -d' ' -f2-4,6- out | tr '\n' ';')" = '200 2 stop no seed;200 1 stop no seed;' ] &&
        grep -q 'answered 4.*seed.*goes again without that field' err
    ok $? "an error as $step has it is shown, its parameter is dropped"
done
for step in googlekey key200 key500; do
    drive --concurrency 1 -- "dk${step}1 script: $step" "dk${step}2 script: ok"
    [ $rc = 1 ] && [ ! -s out ] && logged 'len(r) == 1' &&
        grep -qiE '(API key|credentials).*0 of 2 requests' err
    ok $? "a wrong key that is said by $step stops at once"
done

# ---- errors that end the whole run ----
for step in 401 403 404 402 quota; do
    drive --concurrency 1 -- "ba$step script: $step" "bb$step script: ok"
    [ $rc = 1 ] && [ ! -s out ] && grep -q 'answered 4.*; 0 of 2 requests had ended' err &&
        logged 'len(r) == 1'
    ok $? "$step stops the run at the first answer"
done
prompts=(); for i in $(seq 30); do prompts+=("bc$i script: 400"); done
drive --concurrency 2 -- "${prompts[@]}"
[ $rc = 1 ] && grep -q '10 requests in a row failed for good' err && logged 'len(r) <= 12'
ok $? 'the breaker stops a run at a server that fails'
prompts=(); for i in $(seq 30); do prompts+=("bcl$i script: long"); done
drive --concurrency 2 -- "${prompts[@]}" 'bcm script: ok'
[ $rc = 0 ] && [ "$(grep -c ' 400 1 error .*context length' out)" = 30 ] && grep -q '^30 200 1 stop' out &&
    logged 'len(r) == 31'
ok $? 'prompts that are too long are no reason to stop'
drive --concurrency 2 --stop-after 2 -- 'bd script: ok' 'be script: ok' 'bf script: ok' 'bg script: ok:0.2' \
    'bh script: ok'
[ $rc = 1 ] && [ "$(wc -l <out)" = 2 ] && grep -q "the caller's disk is full" err
ok $? 'the caller can end the run'
OPENAI_BASE_URL=http://127.0.0.1:1/v1 GIVE_UP=1 drive -- 'bi script: ok'
[ $rc = 0 ] && grep -q '^0 0 .* error 0 http://127.0.0.1:1/v1/chat/completions: .*given up after' out
ok $? 'an endpoint at which nobody listens is said'
OPENAI_BASE_URL=http://127.0.0.1:1/v1 drive --absent 1 -- 'bia script: ok'
[ $rc = 1 ] && grep -q 'nothing was reached there for 1 s; 0 of 1' err
ok $? 'nobody listens since the start: the run stops'
# A full backlog: the kernel drops further connections silently, as a firewall does.
python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 0), backlog=0)
c = [socket.socket() for _ in range(4)]
for x in c: x.setblocking(False); x.connect_ex(s.getsockname())
print(s.getsockname()[1], flush=True); time.sleep(300)' >silent.port &
silent=$!
wait_for '[ -s silent.port ]'
OPENAI_BASE_URL=http://127.0.0.1:$(cat silent.port)/v1 GIVE_UP=20 drive --connect-timeout 0.3 --absent 1 \
    -- 'bib script: ok'
[ $rc = 1 ] && grep -q 'nothing was reached there for 1 s; 0 of 1' err
ok $? 'a silent host since the start: the run stops'
kill $silent; silent=
http_proxy=http://nohost.invalid:1 NO_PROXY= no_proxy= GIVE_UP=20 drive --absent 1 -- 'bid script: ok'
[ $rc = 1 ] && grep -q 'nothing was reached there for 1 s; 0 of 1' err
ok $? 'a proxy that has no address: the run stops'
impatient --timeout 0.5 --absent 1 -- 'bic script: drip'
[ $rc = 0 ] && grep -q '^0 200 [2-9]* error .*given up after' out
ok $? 'a server that answers too late is there'
OPENAI_BASE_URL='ftp://me:pw@host/x' drive -- 'bj script: ok'
[ $rc = 1 ] && grep -q 'OPENAI_BASE_URL: expected an http or https URL' err && ! grep -q pw err
ok $? 'a wrong URL is refused, and its password is not repeated'
OPENAI_API_KEY=$'bad\nkey' drive -- 'bk script: ok'
[ $rc = 1 ] && grep -q 'OPENAI_API_KEY: character 4 of 7' err
ok $? 'a key with a line feed cannot smuggle a header'
OPENAI_API_KEY= OPENAI_BASE_URL= drive -- 'bl script: ok'
[ $rc = 1 ] && grep -q 'OPENAI_API_KEY is not set' err; ok $? "the vendor's endpoint without a key is refused"

# ---- concurrency ----
prompts=(); for i in $(seq 40); do prompts+=("c$i script: crowded:3"); done
GIVE_UP=30 drive --concurrency 16 -- "${prompts[@]}"
[ $rc = 0 ] && [ "$(grep -c ' stop 5 not crowded$' out)" = 40 ] && logged "len(r) < 40 + 60"
ok $? '429s lower the concurrency until all are served'
prompts=(); for i in $(seq 12); do prompts+=("d$i script: together:12"); done
drive --concurrency 12 --timeout 90 -- "${prompts[@]}"
[ $rc = 0 ] && logged "max(q['working'] for q in r) >= 12 and len(r) == 12"
ok $? 'as many requests run at once as asked for'
prompts=('e0 script: remaining:2'); for i in $(seq 12); do prompts+=("e$i script: ok:0.1"); done
drive --concurrency 1 -- 'e script: ok'; drive --concurrency 8 -- "${prompts[@]}"
[ $rc = 0 ] && [ "$(wc -l <out)" = 13 ]; ok $? 'x-ratelimit-remaining-requests is understood'
drive --concurrency 2 -- 'f1 script: newname' 'f2 script: newname' 'f3 script: newname'
[ $rc = 0 ] && [ "$(grep -c 'new name' out)" = 3 ] &&
    logged "r[-1]['body'].get('max_completion_tokens') == 50"
ok $? 'a refused field is left out from then on'

# ---- signals ----
: >log
echo 0 >log.hold
printf '%s\n' 'g1 script: ok' 'g2 script: ok' 'g3 script: ok' | "$DRIVE" --concurrency 2 >out 2>err &
drive=$!
wait_for '[ "$(wc -l <log)" = 2 ]'
kill -TERM $drive; wait_for 'grep -q "stopped by signal 15; waiting" err'
rm log.hold; wait $drive; rc=$?
cat out err >>said
[ $rc = 1 ] && [ "$(wc -l <out)" = 2 ] && grep -q 'stopped by signal 15; 2 of 3 requests had ended' err &&
    logged 'len(r) == 2'
ok $? 'a signal: what runs is finished and handed over, nothing new is begun'

# ---- Anthropic ----
drive --api anthropic -- 'h1 script: claude' 'h2 script: claude:max_tokens' 'h3 script: claude:refusal' \
    'h4 script: 529 claude'
[ $rc = 0 ] && [ "$(cut -d' ' -f1-5 out)" = '0 200 1 stop 2
1 200 1 length 2
2 200 1 error 0
3 200 2 stop 2' ] && grep -q '^0 .* ab | hm$' out
ok $? "Anthropic's blocks, stop reasons and overload are read"
logged "r[0]['path'] == '/v1/messages' and r[0]['key'] == 'sk-ant-secret-0123456789' and
    r[0]['version'] == '2023-06-01'
    and r[0]['body']['system'] == 'be brief' and 'seed' not in r[0]['body'] and
    len(r[0]['body']['messages']) == 1"
    ok $? "Anthropic's requests have their headers and body"
drive --api anthropic --temperature 1.5 -- 'h5 script: claude'
[ $rc = 1 ] && grep -q 'expects a temperature of 0 to 1, found 1.5' err
ok $? "Anthropic's temperature above 1 is refused"

# ---- certificates that the environment names ----
if command -v openssl >/dev/null; then
    unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR
    mkdir tls certs
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout tls/key -out tls/cert \
        -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null
    cat tls/key tls/cert >tls/log.pem
    cp tls/cert "certs/$(openssl x509 -hash -noout -in tls/cert).0"
    python3 "$here/fake_llm.py" tls/log >tls/port 2>tls/err &
    silent=$!
    wait_for '[ -s tls/port ]'
    secure() { OPENAI_BASE_URL=https://127.0.0.1:$(cat tls/port)/v1 drive -- 'tls script: ok'; }
    secure; [ $rc = 1 ] && grep -qi 'certificate.*0 of 1' err; ok $? 'an unknown certificate stops the run'
    for name in SSL_CERT_FILE CURL_CA_BUNDLE; do
        export "$name=$tmp/tls/cert"; secure; unset $name
        [ $rc = 0 ] && grep -q '^0 200 1 stop 5 echo tls$' out; ok $? "$name names the certificate"
    done
    SSL_CERT_DIR=$tmp/certs secure; grep -q '^0 200 1 stop 5 echo tls$' out; ok $? 'SSL_CERT_DIR has it'
    SSL_CERT_FILE=/none secure; [ $rc = 1 ] && grep -q '0 of 1' err
    ok $? 'a file that is not there is an error'
    kill $silent; silent=
fi

# ---- the key ----
drive -- 'i1 script: echokey' 'i2 script: keyanswer'
[ $rc = 0 ] && grep -q 'bad header Bearer \*\*\*\*' out; ok $? 'a key that a server repeats is not shown'
! grep -q 'secret' said; ok $? 'the key is in no output of any run above'
done_testing
