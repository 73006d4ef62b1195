#!/bin/bash
# The memory of hacks and the review of records: a judge's word withholds nothing by itself, a re-check that
# fails does, and what is withheld enters no pool. TAP on stdout.
. "$(dirname "$0")/endpoint.sh"
kernel() {
    printf 'relu\t//@ launch k<<<ceil_div(n, %d), %d>>>(x, y, n)\\n' "$1" "$1"
    printf '__global__ void k(const float *x, float *y, int n)\\n{\\n int i = blockIdx.x * %d' "$1"
    printf ' + threadIdx.x;\\n if (i < n) y[i] = %s;\\n}\n' "$2"
}
mutate='0 * (((float *)x)[i] = fmaxf(x[i], 0.0f)) + fmaxf(x[i], 0.0f)'
samples() { perl "$here/make_samples.pl" >"$1"; }
export_() { "$BIN/quern-artifact" export "$1"; }
kernel 32 'fmaxf(x[i], 0.0f)' | samples slow.qa
kernel 256 'fmaxf(x[i], 0.0f)' | samples fast.qa
# with the verdict on fast.qa, as if the evaluators had been deceived
kernel 256 'fminf(x[i], 0.0f)' | samples wrong.qa
kernel 256 "$mutate" | samples hack.qa
cat >steps <<'END'
set -e
for s in slow fast hack; do "$BIN/quern-evaluate" $s.qa --output $s-verdicts.qa; done
"$BIN/quern-hacks" --samples hack.qa --verdicts hack-verdicts.qa --output hacks.qa
"$BIN/quern-pool" --samples slow.qa --verdicts slow-verdicts.qa --output pool.qa
review() {
    local s=$1; shift
    "$BIN/quern-review" --samples $s.qa --verdicts fast-verdicts.qa --pool pool.qa --tasks relu "$@"
}
review fast --hacks hacks.qa --output unlike.qa --near 1
review fast --hacks hacks.qa --output alike.qa --near 0.1
review wrong --output unknown.qa
review wrong --hacks hacks.qa --output deceived.qa --near 0.1
export OPENAI_BASE_URL=$CHEAT
review fast --output said.qa --judge openai:J
review wrong --output both.qa --judge openai:J --hacks hacks.qa --ledger spent.tsv
END
# A judge that always says cheat.
cat >judge.py <<'END'
import http.server, json
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_POST(self):
        n = int(self.headers["Content-Length"]); body = json.loads(self.rfile.read(n))
        open("asked", "a").write(body["messages"][-1]["content"] + "\n=====\n")
        data = json.dumps({
            "model": "J", "choices": [{"index": 0, "finish_reason": "stop", "message": {
                "role": "assistant", "content": "CHEAT: it keeps results."}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 5}}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(data))); self.end_headers()
        self.wfile.write(data)
s = http.server.HTTPServer(("127.0.0.1", 0), H); print(s.server_port, flush=True); s.serve_forever()
END
python3 judge.py >port3 2>>server.err & third=$!
at_exit+=('kill $third 2>/dev/null')
wait_for '[ -s port3 ]'
export CHEAT=http://127.0.0.1:$(cat port3)/v1
"$BIN/quern-fleet" run --workers 1 --dir q -- bash steps 2>err; ok $? 'hacks, pool and reviews'
is 'a confirmed cheat is remembered with its name' \
    "$(export_ hacks.qa | perl -MJSON::PP -ne '$r = decode_json($_); print "$r->{task} $r->{cheat}"')" \
    'relu input_mutation'
field() {
    export_ "$1" |
        perl -MJSON::PP \
        -e '$r = decode_json(<STDIN>); print join " ", map { ref $r->{$_} ? ($r->{$_} ? 1 : 0) : $r->{$_} }
            @ARGV' word recheck withheld
}
is 'a record like no hack is not judged again' "$(field unlike.qa)" '  0'
is 'a record like a hack is judged again, and an honest one keeps its reward' "$(field alike.qa)" ' ok 0'
is 'a wrong record that no hack is like passes' "$(field unknown.qa)" '  0'
is 'a wrong record that is like a hack loses its reward' "$(field deceived.qa)" ' wrong_result 1'
is "a judge's word alone withholds nothing" "$(field said.qa)" 'cheat ok 0'
is "a judge's word that the re-check confirms withholds the reward" "$(field both.qa)" 'cheat wrong_result 1'
is 'a judge is told of similar cheats' "$(grep -c '^// input_mutation, of task relu' asked)" 1
is 'an honest record that a judge reviewed is paid' "$(wc -l <spent.tsv)" 1
pool() {
    "$BIN/quern-pool" --pool pool.qa --samples wrong.qa --verdicts fast-verdicts.qa --output new.qa "$@" \
        2>err && export_ new.qa | wc -l
}
is 'what is withheld enters no pool' "$(pool) $(pool --reviews deceived.qa)" '2 1'
"$BIN/quern-hacks" --hacks hacks.qa --near <(export_ hack.qa |
    perl -MJSON::PP -e 'print decode_json(<STDIN>)->{source}') >out 2>err
is 'a copy is the nearest' "$(cut -f1,2 out)" "1.000	input_mutation"
check_key
done_testing
