#!/bin/bash
# quern-eval: one kernel for each outcome, every task's baseline, exit statuses, determinism, JSON. TAP on
# stdout.
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
cd "$root" || exit 1

for file in tests/fixtures/kernels/*.cu; do check_verdict "$file"; done

# Every baseline is correct and has a speedup of 1 over itself. With a library call it is no candidate: there
# the plain kernel is judged, whose products and convolutions are slower than the library's.
for dir in tasks/*/; do
    [ -f "$dir/task.json" ] || continue
    task=$(basename "$dir") file=$dir/baseline.cu expected="ok 1.0"
    if grep -q '^//@ library' "$dir/baseline_cuda.cu"; then
        expected="ok 0"; elif [ -f "$dir/baseline_cuda.cu" ]; then file=$dir/baseline_cuda.cu
    fi
    json=$("$BIN/quern-eval" --task "$task" --json "$file" 2>"$tmp/err")
    score=$(json_field score <<<"$json")
    [ "$expected" = "ok 0" ] && score=${score%%.*}
    is "the baseline of $task is ${expected/ / at }" "$(json_field outcome <<<"$json") $score" "$expected"
done

ok=tests/fixtures/kernels/ok.cu
"$BIN/quern-eval" --task relu --json --cache '' $ok >"$tmp/a"
"$BIN/quern-eval" --task relu --json --cache '' $ok >"$tmp/b"
is "two runs give equal bytes" "$(cksum <"$tmp/a")" "$(cksum <"$tmp/b")"
(cd "$tmp" && "$BIN/quern-eval" --task relu --json "$OLDPWD/$ok" >c)
is "a run in another folder gives equal bytes" "$(cksum <"$tmp/a")" "$(cksum <"$tmp/c")"
"$BIN/quern-eval" --task relu --json --seed 2 $ok >"$tmp/d"
is "another seed is another key" \
    "$([ "$(json_field key <"$tmp/a")" != "$(json_field key <"$tmp/d")" ] && echo differs)" differs
"$BIN/quern-eval" --task relu --json --cache "$tmp/cache" $ok >"$tmp/e"
"$BIN/quern-eval" --task relu --json --cache "$tmp/cache" $ok >"$tmp/f"
is "a cached compilation gives the same verdict" "$(cksum <"$tmp/a") $(cksum <"$tmp/a")" \
    "$(cksum <"$tmp/e") $(cksum <"$tmp/f")"

"$BIN/quern-eval" --task relu --profile $ok >"$tmp/text"
is "the text shows score and counters" \
    "$(grep -cE '^  (score|time|light|registers  [0-9]+ a|checks|counter) ' "$tmp/text")" 6
"$BIN/quern-eval" --task relu >/dev/null 2>&1
is "no file: usage" $? 2
COMPILE_S=0 "$BIN/quern-eval" --task relu $ok >/dev/null 2>"$tmp/err"
is "no CPU seconds: usage" "$? $(grep -c 'COMPILE_S: expected CPU seconds from 1' "$tmp/err")" "2 1"
"$BIN/quern-eval" --task nope $ok >/dev/null 2>"$tmp/err"
is "no such task: usage" "$? $(grep -c 'no task "nope" in .*; .quern task list. lists them' "$tmp/err")" "2 1"
"$BIN/quern-eval" --task sofmax $ok >/dev/null 2>"$tmp/err"
is "a task's name that is misspelt is answered by the one that is meant" \
    "$? $(grep -c 'no task "sofmax" in .*; did you mean softmax?' "$tmp/err")" "2 1"
set=$tmp/composed.cu
"$BIN/quern-kernel" --task linear_silu_rowmul >"$set" &&
    [ "$("$BIN/quern-kernel" --task composed/linear_silu_rowmul/ | cksum)" = "$(cksum <"$set")" ]
ok $? "a task of a set is found by its folder"
is "a task of a set is found by its name" \
    "$("$BIN/quern-eval" --task composed/linear_silu_rowmul --json "$set" | cksum)" \
    "$("$BIN/quern-eval" --task linear_silu_rowmul --json "$set" | cksum)"
is "a task's folder at the root is found" \
    "$("$BIN/quern-eval" --task ./relu --json $ok 2>&1 |
    grep -c 'no task') $("$BIN/quern-eval" --task relu/ --json $ok | cksum)" "1 $(cksum <"$tmp/a")"
for wrong in composed 'composed/*' composed/relu kernelbench/clamp_colsum relu,gelu /relu /; do
    "$BIN/quern-eval" --task "$wrong" $ok >/dev/null 2>"$tmp/err"
    is "no one task: $wrong" \
        "$? $(grep -cE "no task (is named )?\"|is a set of tasks; expected one" "$tmp/err")" "2 1"
done
"$BIN/quern-eval" --task relu --device cuda:63 $ok >/dev/null 2>"$tmp/err"
is "a GPU that is not there: one sentence" \
    "$? $(grep -c '^quern-eval: device cuda:63: ' "$tmp/err") $(wc -l <"$tmp/err")" "3 1 1"
"$BIN/quern-eval" --task relu --device sim:nope $ok >/dev/null 2>"$tmp/err"
is "no such profile: usage" $? 2
is "a pipe is judged as what is read from it" \
    "$("$BIN/quern-eval" --task relu --json <(cat $ok) |
    cksum) $("$BIN/quern-eval" --task relu --json /dev/stdin < <(cat $ok) | cksum)" \
    "$(cksum <"$tmp/a") $(cksum <"$tmp/a")"
is "- as a source is standard input" \
    "$("$BIN/quern-eval" --task relu --json - <$ok | cksum) $(cat $ok |
    "$BIN/quern-eval" --task relu --json - | cksum)" \
    "$(cksum <"$tmp/a") $(cksum <"$tmp/a")"
is "- beside files is standard input" \
    "$(cat $ok | "$BIN/quern-eval" --task relu $ok - | grep -cE '^(standard input|.*ok.cu):$')" 2
cat $ok | "$BIN/quern-eval" --task relu - - >/dev/null 2>"$tmp/err"
is "- twice is refused" "$? $(grep -c 'standard input (-) is given twice' "$tmp/err")" "2 1"
is "- as a source of quern-compile is standard input" \
    "$("$BIN/quern-compile" - <$ok | cksum)" "$("$BIN/quern-compile" $ok | cksum)"
for flags in '--mode warm' '--budget 1'; do
    "$BIN/quern-eval" --task relu $flags $ok >/dev/null 2>"$tmp/err"
    is "$flags has no effect on a simulator: usage" \
        "$? $(grep -c -- "^quern-eval: ${flags% *} has no effect on sim:h100" "$tmp/err")" "2 1"
done
"$BIN/quern-eval" --task relu --task-root "$tmp/none" $ok >/dev/null 2>"$tmp/err"
is "--task-root is the folder of the tasks" "$? $(grep -c "$tmp/none" "$tmp/err")" "2 1"

# A task without a graph, whose checks have too few elements to tell a precision.
mkdir "$tmp/few"
cp -r "$root/tasks/matmul" "$tmp/few"
sed -i '/"check", "axes": {"m": [^1]/d; /"n": 37/d' "$tmp/few/matmul/task.json"
PRECISION=high "$BIN/quern-eval" --task matmul --task-root "$tmp/few" --json \
    "$root/tasks/matmul/baseline.cu" >"$tmp/out" 2>/dev/null
is "a task without a graph is checked where TF32 may round" "$? $(json_field outcome <"$tmp/out")" "0 ok"
{ printf '\xef\xbb\xbf' && sed '/^\/\/ /d' $ok; } >"$tmp/mark.cu"
is "a byte-order mark is skipped" \
    "$("$BIN/quern-eval" --task relu --json "$tmp/mark.cu" $ok | json_field outcome | tr '\n' ' ')" "ok ok "
is "a byte-order mark in a baseline is skipped" \
    "$("$BIN/quern-eval" --task relu --json --baseline "$tmp/mark.cu" $ok | json_field outcome)" ok
tail -c +4 "$tmp/mark.cu" >"$tmp/unmarked.cu"
"$BIN/quern-compile" "$tmp/mark.cu" >"$tmp/ptx" 2>/dev/null
is "a byte-order mark is skipped by quern-compile" \
    "$? $(cksum <"$tmp/ptx")" "0 $("$BIN/quern-compile" "$tmp/unmarked.cu" | cksum)"
{ cat $ok && printf '\0' && cat $ok; } >"$tmp/nul.cu"
printf '%s\n' '//@ launch k<float><<<1, 32>>>(x, y, n)' \
    'template <typename T> __global__ void k(const T *x, T *y, int n) { y[0] = x[0]; }' >"$tmp/template.cu"
"$BIN/quern-compile" "$tmp/template.cu" >"$tmp/ptx" 2>/dev/null && grep -q '^\.weak \.entry .*1k' "$tmp/ptx"
ok $? 'quern-compile prints the templates that the plan launches'
for header in limits type_traits algorithm utility cuda.h; do echo "#include <$header>"; done >"$tmp/std.cu"
cat >>"$tmp/std.cu" <<'END'
//@ launch relu<float><<<ceil_div(n, 256), 256>>>(x, y, n)
template <typename T> __global__ void relu(const T *x, T *y, uint n)
{
    static_assert(std::is_same<T, float>::value, "");
    uint i = blockIdx.x * 256 + threadIdx.x;
    T a = 0, b = i < n && (intptr_t)(uintptr_t)x ? x[i] : 0;
    if (b < a) std::swap(a, b);
    if (i < n) y[i] = std::max(b, -std::numeric_limits<T>::max());
}
END
"$BIN/quern-eval" --task relu --device sim:h100 "$tmp/std.cu" >"$tmp/out" 2>&1
ok $? "headers of the C++ library are CCCL's"
{ echo '#include <nvfunctional>'; cat tasks/relu/baseline.cu; } >"$tmp/std.cu"
"$BIN/quern-eval" --task relu --device sim:h100 "$tmp/std.cu" 2>&1 | grep -qF '<cuda/std/...>'
ok $? 'the message names where headers of the C++ library are'
"$BIN/quern-compile" "$tmp/nul.cu" >"$tmp/ptx" 2>"$tmp/err"
is "no part of a source that holds a NUL byte is compiled" \
    "$? $(wc -c <"$tmp/ptx") $(grep -c 'NUL byte' "$tmp/err")" "1 0 1"
head -c 100000000 /dev/zero | tr '\0' 'x' >"$tmp/large.cu"
"$BIN/quern-eval" --task relu --json "$tmp/large.cu" >"$tmp/large" 2>/dev/null
is "100 MB of source is a compile error" "$? $(json_field outcome <"$tmp/large")" "1 compile_error"
head -c 5000 /dev/urandom >"$tmp/noise.cu"
"$BIN/quern-eval" --task relu --json "$tmp/noise.cu" >"$tmp/noise" 2>/dev/null
is "noise is a verdict" "$?" 1

# An evaluator that is killed during a long compilation: the compiler and its child end too.
cat >"$tmp/long.cu" <<'EOF'
template <int A, int B> struct Q {
  typename Q<A - 1, B>::T a; typename Q<A - 1, B + (1 << A)>::T b;
  typedef Q T; };
template <int B> struct Q<0, B> { typedef int T; };
//@ launch k<<<1, 1>>>(y)
extern "C" __global__ void k(float *y) { *y = sizeof(Q<24, 0>); }
EOF
"$BIN/quern-eval" --task relu "$tmp/long.cu" >/dev/null 2>&1 &
pid=$!
wait_for 'server=$(pgrep -P $pid quern-compile) && child=$(pgrep -P "$server")'
kill -9 $pid
wait $pid 2>/dev/null
wait_for '[ ! -e "/proc/$server" ] && [ ! -e "/proc/$child" ]'
is "a killed evaluator leaves no process" \
    "${server:+server}${child:+child} $(ls -d "/proc/$server" "/proc/$child" 2>/dev/null | wc -l)" \
    "serverchild 0"
"$BIN/quern-eval" --schema | cmp -s - docs/verdict.md
is "docs/verdict.md is what quern-eval --schema prints" $? 0
# Until 2026-12-01 a process took unwritten memory for zeros after a candidate whose cone it could not follow.
run quern-eval --task row_sum --device sim:h100 "$root"/tests/cheats/honest_last_block.cu \
  "$root/tests/cheats/last_of_four_too_early.cu"
grep -q '^row_sum on sim:h100: ok' out && grep -q '^row_sum on sim:h100: out_of_bounds' out
ok $? "a candidate's unwritten memory is found behind any other candidate"
done_testing
