#!/bin/bash
# quern-artifact on valid, damaged and hostile files. TAP on stdout.
. "$(dirname "$0")/tap.sh"

# ---- files written by hand, without the code under test ----
byte() { printf "\\x$(printf %02x "$1")"; }
text() {
    if [ ${#1} -lt 32 ]; then byte $((0xa0 + ${#1})); else printf '\xd9'; byte ${#1}; fi; printf %s "$1"
}
record() {
    printf '\x83'; text name; text "$2"; text step; byte "$1"; text value; printf '\xcb'; printf "$3"
}
header() { # COUNT DIGEST [KIND] [FORMAT]
    printf '\x8a'; text config; printf '\x81'; text seed; text 1; text count; byte "$1"; text digest
    text "$2"
    text format; byte "${4:-1}"; text inputs; printf '\x90'; text kind; text "${3:-metrics}"; text magic
    text quern
    text producer; text "${5:-by-hand}"; text schema; byte 1; text version; text 0.1.0
}
half='\x3f\xe0\x00\x00\x00\x00\x00\x00' nan='\x7f\xf8\x00\x00\x00\x00\x00\x00'
{ record 0 loss "$half"; record 1 'a "b"' "$nan"; } >payload
digest=$(sha256sum <payload | cut -d' ' -f1)
{ header 2 "$digest"; cat payload; } >good.qa

run quern-artifact validate good.qa; s=$?
[ $s = 0 ] && [ "$(cat out)" = "good.qa: ok, metrics, 2 records, payload $digest" ]
ok $? 'validate accepts a sound file'
run quern-artifact show good.qa --records 1; s=$?
[ $s = 0 ] && grep -q '"value": 0.5' out && grep -q '2 records in all' out && ! grep -q '^record 1' out
ok $? 'show prints header and first records'
run quern-artifact export good.qa; s=$?
[ $s = 0 ] && [ "$(cat out)" = '{"name":"loss","step":0,"value":0.5}
{"name":"a \"b\"","step":1,"value":"NaN"}' ]; ok $? 'export gives JSON lines'
if command -v python3 >/dev/null; then
    run quern-artifact export good.qa && python3 -c 'import json
for line in open("out"): json.loads(line)' 2>err; ok $? 'export is valid JSON'
fi

run quern-artifact export good.qa; mv out exported
"$BIN/quern-artifact" export - <good.qa >out 2>err && cmp -s out exported &&
    cat good.qa | "$BIN/quern-artifact" export - | cmp -s - exported
ok $? 'export -: standard input'
"$BIN/quern-artifact" validate - <good.qa >out 2>err; s=$?
[ $s = 0 ] && [ "$(cat out)" = "standard input: ok, metrics, 2 records, payload $digest" ]
ok $? 'validate - reads standard input'
"$BIN/quern-artifact" show - --records 1 <good.qa >out 2>err; s=$?
[ $s = 0 ] && grep -q '^standard input$' out && grep -q '"value": 0.5' out
ok $? 'show - reads standard input'
mkfifo pipe
for path in /dev/zero pipe; do
    timeout 100 "$BIN/quern-artifact" show $path >out 2>err
    [ $? = 1 ] && sentence quern-artifact 'expected a file, found a device or a pipe'
    ok $? "$path is no artifact"
done
head -c 40 good.qa | "$BIN/quern-artifact" validate - >out 2>err
[ $? = 1 ] && sentence quern-artifact 'standard input'
ok $? 'a stream that is cut is refused'
"$BIN/quern-artifact" validate - - <good.qa >out 2>err; [ $? = 2 ] && sentence quern-artifact 'given twice'
ok $? 'standard input twice is refused'
run quern-artifact validate good.qa --records 1; [ $? = 2 ] && sentence quern-artifact '--records is for show'
ok $? 'a flag of another command is refused'

# ---- truncated files ----
size=$(stat -c %s good.qa) bad=0
for ((at = 0; at < size; at += 7)); do
    head -c $at good.qa >cut.qa
    run quern-artifact validate cut.qa
    { [ $? = 1 ] && sentence quern-artifact cut.qa; } || { bad=1; echo "# cut at $at"; break; }
done
ok $bad 'every truncation is one sentence and exit 1'
head -c $((size - 3)) good.qa >cut.qa; run quern-artifact validate cut.qa
sentence quern-artifact 'record 1, field value: a number of 8 bytes is claimed, 5 are present'
ok $? 'the sentence names record and field'

# ---- hostile counts: they are refused before memory is allocated, so 1 GB of address space is enough ----
memory=1000000
grep -q __asan_init "$BIN/quern-artifact" && memory=unlimited # a sanitizer reserves terabytes
printf '\xdf\xff\xff\xff\xff' >huge.qa
(ulimit -v $memory; "$BIN/quern-artifact" show huge.qa >out 2>err)
[ $? = 1 ] && sentence quern-artifact 'a map of 4294967295 fields is claimed'
ok $? 'a header that claims 4 G elements is refused'
{ header 2 "$digest"; printf '\x83'; text name; printf '\xdd\xff\xff\xff\xff'; } >huge.qa
(ulimit -v $memory; "$BIN/quern-artifact" show huge.qa >out 2>err)
[ $? = 1 ] && sentence quern-artifact 'record 0, field name: a list of 4294967295 elements is claimed'
ok $? 'a record that claims 4 G elements is refused'
{ printf '\x8a'; text config; printf '\x80'; text count; printf '\xcf\x7f\xff\xff\xff\xff\xff\xff\xff'
  header 2 "$digest" | tail -c +24; cat payload; } >huge.qa
run quern-artifact validate huge.qa; [ $? = 1 ] && sentence quern-artifact 'records are claimed'
ok $? 'a header that claims 2^63 records is refused'

# ---- well-formed files with wrong contents ----
head -c $((size - 1)) good.qa >flip.qa; printf '\x01' >>flip.qa
run quern-artifact validate flip.qa; [ $? = 1 ] && sentence quern-artifact damaged
ok $? 'a changed payload byte is found'
{ header 2 "$digest" samples; cat payload; } >kind.qa
run quern-artifact validate kind.qa; [ $? = 1 ] &&
    sentence quern-artifact "kind.qa, record 0, field name: the kind 'samples' has no such field"
ok $? 'records of another kind are refused'
{ header 2 "$digest" nonsense; cat payload; } >kind.qa
run quern-artifact validate kind.qa; [ $? = 1 ] && sentence quern-artifact "'nonsense' is no kind of artifact"
ok $? 'an unknown kind is refused'
{ header 2 "$digest" metrics 9; cat payload; } >format.qa
run quern-artifact validate format.qa; [ $? = 1 ] && sentence quern-artifact 'written by another version'
ok $? 'an unknown format version is refused'
echo '{"not": "msgpack"}' >json.qa
run quern-artifact show json.qa; [ $? = 1 ] && sentence quern-artifact 'json.qa, header: expected a map'
ok $? 'a file that is no artifact is refused'
run quern-artifact validate nowhere.qa; [ $? = 2 ] && sentence quern-artifact 'cannot open nowhere.qa'
ok $? 'a file that is not there is refused'
run quern-artifact validate good.qa flip.qa; [ $? = 1 ] && grep -q 'good.qa: ok' out &&
    sentence quern-artifact flip.qa
ok $? 'several files: the good ones are still said'

# ---- damage, and what only cannot be read now: /proc/self/mem gives an I/O error ----
cp -r "$root/share/starter" model && rm model/model.safetensors
run quern-artifact verify-model model; [ $? = 1 ] && sentence quern-artifact 'model.safetensors is not there'
ok $? 'a model without its weights'
ln -s /proc/self/mem model/model.safetensors
run quern-artifact verify-model model; [ $? = 3 ] && sentence quern-artifact 'Input/output error'
ok $? 'a model that cannot be read'
mkdir run && mv model run && ln -s /proc/self/mem run/unread.qa && cp flip.qa run
"$root/mk/damaged" run "$BIN/quern-sft" run/unread.qa run/flip.qa run/model 2>err
[ "$(ls run | tr '\n' ' ')" = 'flip.qa.damaged model unread.qa ' ] && [ -e run/model/manifest.qa ] &&
    [ "$(wc -l <err)" = 1 ]
ok $? 'a failed stage puts aside what is damaged alone'
"$root/mk/damaged" run "$BIN/quern-sft" run/flip.qa 2>err
[ "$(wc -l <err)" = 1 ] && grep -q '^quern: run/flip.qa is damaged; another stage keeps it' err
ok $? 'a stage that meets the same damage says so'

# ---- diff ----
cp good.qa same.qa; run quern-artifact diff good.qa same.qa; [ $? = 0 ] && grep -q 'payloads are equal' out
ok $? 'diff of equal files'
{ header 2 "$digest" metrics 1 another; cat payload; } >producer.qa
run quern-artifact diff good.qa producer.qa; [ $? = 0 ] && grep -q 'header, field "producer" differs' out
ok $? 'diff: a header alone is no difference of content'
{ record 0 loss "$half"; record 1 'a "c"' "$nan"; } >payload2
{ header 2 "$(sha256sum <payload2 | cut -d' ' -f1)"; cat payload2; } >other.qa
run quern-artifact diff good.qa other.qa; [ $? = 1 ] && grep -q 'record 1, field "name" differs' out
ok $? 'diff names record and field'
record 0 loss "$half" >payload3
{ header 1 "$(sha256sum <payload3 | cut -d' ' -f1)"; cat payload3; } >short.qa
run quern-artifact diff good.qa short.qa; [ $? = 1 ] && grep -q 'record 1 is only in good.qa' out
ok $? 'diff names the record that is missing'

# ---- the program ----
bad=1
for ((call = 1; call < 400; call++)); do # refuse one allocation after the other, until none is left to refuse
    QUERN_TEST=refuse=$call "$BIN/quern-artifact" diff good.qa other.qa >out 2>err; s=$?
    [ -s err ] || { [ $call -gt 10 ] && [ $s = 1 ] && bad=0; break; }
    [ $s = 3 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'out of memory' err || break
done
ok $bad 'out of memory at any allocation is one sentence, and the system'\''s failure'
run quern-artifact frobnicate good.qa
[ $? = 2 ] && sentence quern-artifact 'expected show, validate, export, diff or verify-model'
ok $? 'an unknown command is exit 2'
run quern-artifact diff good.qa; [ $? = 2 ]; ok $? 'diff wants two files'
run quern-artifact --version; [ $? = 0 ] && grep -q '^quern-artifact ' out; ok $? '--version'
"$BIN/quern-artifact" export good.qa >/dev/full 2>err; [ $? = 3 ] && sentence quern-artifact 'stdout'
ok $? 'a full disk under stdout'
done_testing
