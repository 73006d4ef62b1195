#!/bin/bash
# quern-eval: one kernel per outcome, every task's baseline, exit statuses, determinism, JSON.
set -u
cd "$(dirname "$0")/../.."
BIN=$(cd "${QUERN_BUILD:-build}/bin" && pwd)
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
export QUERN_LOG=quiet
. tests/shell/verdicts.sh

n=0
is() { # NAME GOT WANT
    if [ "$2" = "$3" ]; then
        echo "ok $((++n)) - $1"
    else
        echo "not ok $((++n)) - $1"
        echo "# got '$2', expected '$3'"
    fi
}

for file in tests/fixtures/kernels/*.cu; do check_verdict $((++n)) "$file"; done

# Every baseline verifies, and is as fast as itself.
for dir in tasks/*/; do
    task=$(basename "$dir")
    json=$("$BIN/quern-eval" --task "$task" --json "$dir/baseline.cu" 2>"$TMP/err")
    is "the baseline of $task is ok at 1.0" "$(json_field outcome <<<"$json") $(json_field score <<<"$json")" "ok 1.0"
done

ok=tests/fixtures/kernels/ok.cu
"$BIN/quern-eval" --task relu --json $ok >"$TMP/a"
"$BIN/quern-eval" --task relu --json $ok >"$TMP/b"
is "two runs give equal bytes" "$(cksum <"$TMP/a")" "$(cksum <"$TMP/b")"
(cd "$TMP" && "$BIN/quern-eval" --task relu --json "$OLDPWD/$ok" >c)
is "and so in another folder" "$(cksum <"$TMP/a")" "$(cksum <"$TMP/c")"
"$BIN/quern-eval" --task relu --json --seed 2 $ok >"$TMP/d"
is "another seed is another key" "$([ "$(json_field key <"$TMP/a")" != "$(json_field key <"$TMP/d")" ] && echo differs)" differs
"$BIN/quern-eval" --task relu --json --cache "$TMP/cache" $ok >"$TMP/e"
"$BIN/quern-eval" --task relu --json --cache "$TMP/cache" $ok >"$TMP/f"
is "a cached compilation gives the same verdict" "$(cksum <"$TMP/a") $(cksum <"$TMP/a")" "$(cksum <"$TMP/e") $(cksum <"$TMP/f")"

"$BIN/quern-eval" --task relu --profile $ok >"$TMP/text"
is "the text shows score and counters" "$(grep -cE '^  (score|time|light|registers  [0-9]+ a|checks|counter) ' "$TMP/text")" 6
"$BIN/quern-eval" --task relu >/dev/null 2>&1
is "no file: usage" $? 2
"$BIN/quern-eval" --task nope $ok >/dev/null 2>"$TMP/err"
is "no such task: usage" "$? $(grep -c 'no task is named "nope"' "$TMP/err")" "2 1"
"$BIN/quern-eval" --task relu --device cuda:63 $ok >/dev/null 2>"$TMP/err"
is "a GPU that is not there: one sentence" "$? $(grep -c '^quern-eval: device cuda:63: ' "$TMP/err") $(wc -l <"$TMP/err")" "3 1 1"
"$BIN/quern-eval" --task relu --device sim:nope $ok >/dev/null 2>"$TMP/err"
is "no such profile: usage" $? 2
is "a pipe is judged as what is read from it" "$("$BIN/quern-eval" --task relu --json <(cat $ok) | cksum) $("$BIN/quern-eval" --task relu --json /dev/stdin < <(cat $ok) | cksum)" \
    "$(cksum <"$TMP/a") $(cksum <"$TMP/a")"
is "- is standard input" "$("$BIN/quern-eval" --task relu --json - <$ok | cksum) $(cat $ok | "$BIN/quern-eval" --task relu --json - | cksum)" \
    "$(cksum <"$TMP/a") $(cksum <"$TMP/a")"
is "also beside files" "$(cat $ok | "$BIN/quern-eval" --task relu $ok - | grep -cE '^(standard input|.*ok.cu):$')" 2
cat $ok | "$BIN/quern-eval" --task relu - - >/dev/null 2>"$TMP/err"
is "but once" "$? $(grep -c 'standard input (-) is given twice' "$TMP/err")" "2 1"
is "and of quern-compile" "$("$BIN/quern-compile" - <$ok | cksum)" "$("$BIN/quern-compile" $ok | cksum)"
for flags in '--mode warm' '--budget 1'; do
    "$BIN/quern-eval" --task relu $flags $ok >/dev/null 2>"$TMP/err"
    is "$flags has no effect on a simulator: usage" "$? $(grep -c -- "^quern-eval: ${flags% *} has no effect on sim:h100" "$TMP/err")" "2 1"
done
"$BIN/quern-eval" --task relu --task-root "$TMP/none" $ok >/dev/null 2>"$TMP/err"
is "--task-root is the folder of the tasks" "$? $(grep -c "$TMP/none" "$TMP/err")" "2 1"
{ printf '\xef\xbb\xbf' && sed '/^\/\/ /d' $ok; } >"$TMP/mark.cu"
is "a byte-order mark is skipped" "$("$BIN/quern-eval" --task relu --json "$TMP/mark.cu" $ok | json_field outcome | tr '\n' ' ')" "ok ok "
is "and in a baseline, too" "$("$BIN/quern-eval" --task relu --json --baseline "$TMP/mark.cu" $ok | json_field outcome)" ok
tail -c +4 "$TMP/mark.cu" >"$TMP/unmarked.cu"
"$BIN/quern-compile" "$TMP/mark.cu" >"$TMP/ptx" 2>/dev/null
is "and by quern-compile" "$? $(cksum <"$TMP/ptx")" "0 $("$BIN/quern-compile" "$TMP/unmarked.cu" | cksum)"
{ cat $ok && printf '\0' && cat $ok; } >"$TMP/nul.cu"
"$BIN/quern-compile" "$TMP/nul.cu" >"$TMP/ptx" 2>"$TMP/err"
is "which compiles no part of a source that holds a NUL byte" "$? $(wc -c <"$TMP/ptx") $(grep -c 'NUL byte' "$TMP/err")" "1 0 1"
head -c 100000000 /dev/zero | tr '\0' 'x' >"$TMP/large.cu"
"$BIN/quern-eval" --task relu --json "$TMP/large.cu" >"$TMP/large" 2>/dev/null
is "100 MB of source is a compile error" "$? $(json_field outcome <"$TMP/large")" "1 compile_error"
head -c 5000 /dev/urandom >"$TMP/noise.cu"
"$BIN/quern-eval" --task relu --json "$TMP/noise.cu" >"$TMP/noise" 2>/dev/null
is "noise is a verdict" "$?" 1

# Killed in the middle of a compilation that takes long: the compiler and its child go too.
cat >"$TMP/long.cu" <<'EOF'
template <int A, int B> struct Q { typename Q<A - 1, B>::T a; typename Q<A - 1, B + (1 << A)>::T b; typedef Q T; };
template <int B> struct Q<0, B> { typedef int T; };
//@ launch k<<<1, 1>>>(y)
extern "C" __global__ void k(float *y) { *y = sizeof(Q<24, 0>); }
EOF
"$BIN/quern-eval" --task relu "$TMP/long.cu" >/dev/null 2>&1 &
pid=$!
for i in $(seq 600); do
    server=$(pgrep -P $pid quern-compile) && child=$(pgrep -P "$server") && break
    sleep 0.05
done
kill -9 $pid
wait $pid 2>/dev/null
for i in $(seq 600); do
    [ -e "/proc/$server" ] || [ -e "/proc/$child" ] || break
    sleep 0.05
done
is "a killed evaluator leaves no process" "${server:+server}${child:+child} $(ls -d "/proc/$server" "/proc/$child" 2>/dev/null | wc -l)" "serverchild 0"
"$BIN/quern-eval" --schema | cmp -s - docs/verdict.md
is "docs/verdict.md is what quern-eval --schema prints" $? 0
echo "1..$n"
