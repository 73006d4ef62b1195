#!/bin/bash
# quern-task: its list, the tasks that it refuses, and a thirteenth folder. TAP on stdout.
. "$(dirname "$0")/tap.sh"
task() { "$BIN/quern-task" "$@" >"$tmp/out" 2>"$tmp/err"; }
# refused NAME TEXT: gate refuses that copy with exit status 1 and the text
refused() { task gate "$1" --task-root "$tmp/tasks"; [ $? = 1 ] && grep -qF -- "$2" "$tmp/out"; }
# broken NAME SED-SCRIPT: makes a copy of softmax with an edited task.json
broken() {
    cp -r "$root/tasks/softmax" "$tmp/tasks/$1"
    sed -i -e "s/\"name\": \"softmax\"/\"name\": \"$1\"/" -e "$2" "$tmp/tasks/$1/task.json"
}
compile() { # as the Makefile does
  local source=$tmp/tasks/$1/reference.c
  mkdir -p "$tmp/so"
  echo "const char reference_source[] = \"$(sha256sum <"$source" | cut -c1-64)\";" |
    gcc -std=c11 -O2 -fPIC -shared -o "$tmp/so/$1.so" "$source" -x c - -lm
}

task list; [ $? = 0 ] && [ "$(wc -l <"$tmp/out")" = 13 ]; ok $? "quern-task list names the twelve tasks"
task show matmul; [ $? = 0 ] && grep -q 'check m=34 n=49 k=31' "$tmp/out" &&
    grep -q '//@ launch matmul' "$tmp/out"
ok $? "quern-task show prints workloads and baseline"
task gate; [ $? = 0 ] && grep -q 'conv3d_norm_min_clamp: accepted as degenerate: .*zeros' "$tmp/out"
ok $? "the gate accepts the twelve, saying why for the degenerate one"
task show nosuch; [ $? = 2 ] && grep -q 'no task "nosuch"' "$tmp/err"; ok $? "an unknown task is one sentence"
task frobnicate; [ $? = 2 ]; ok $? "an unknown word is a usage error"
task list --task-root "$tmp/nowhere"; [ $? = 2 ] && grep -q nowhere "$tmp/err"
ok $? "a missing root is an error"

mkdir -p "$tmp/tasks"
broken shape 's/"shape": \["rows", "cols"\], "draw"/"shape": ["rows", "cols * colz"], "draw"/'
refused shape "unknown name 'colz'"; ok $? "a wrong shape expression names itself"
broken missing '/"tolerance"/d'
refused missing 'expected the field "tolerance"'; ok $? "a missing field is named"
broken weight 's/"role": "time"/"role": "time", "weight": -1/'
refused weight 'a weight above 0'; ok $? "a weight that is none is refused"
broken sims 's/\(.*\)"role": "time"\(.*\)/&\n&\n&/; s/.*"role": "sim".*/&,\n&/'
refused sims ', 3 and 2'
ok $? "simulated sizes are as many as the timed ones, or one"
broken budget 's/"level": 1/"level": 1, "budget": "2 times"/'
refused budget 'budget: expected default, so many'; ok $? "a budget that is none is refused"
broken split 's/"split": "train"/"split": "test"/'
refused split 'expected to be one of train, heldout; found "test"'; ok $? "a bad split is named"
broken extra 's/"level": 1/"level": 1, "tolerence": {}/'
refused extra 'unknown field "tolerence"'; ok $? "an unknown field is named"
broken small 's/"rows": 3, "cols": 1024/"rows": 0, "cols": 1024/'
refused small 'rows is expected to be at least 1'; ok $? "an axis of zero is refused"
broken twice 's/"y": {"dtype"/"x": {"dtype"/'
refused twice 'the name "x" is used twice'; ok $? "a name used twice is refused"
broken dtype 's/"float32", "shape": \["rows", "cols"\], "draw"/"float33", "shape": ["rows", "cols"], "draw"/'
refused dtype 'found "float33"'; ok $? "an unknown dtype is named"
broken high 's/"draw": "mixed"/"draw": "integer", "low": 0, "high": "rowz - 1"/'
refused high 'x.high: expression "rowz - 1"'; ok $? "a wrong expression of the largest integer names itself"
broken range 's/"draw": "mixed"/"draw": "integer", "low": 0, "high": "cols - 38"/'
refused range 'low <= high expected'; ok $? "no integers between the bounds of one workload are refused"
broken huge 's/"rows": 8192/"rows": 4611686018427387904/'
refused huge 'more than 2147483648 elements'; ok $? "a shape that overflows is refused"
broken cut '10,$d'
refused cut 'not valid JSON'; ok $? "a truncated task.json is refused"
broken nosrc 's/level/level/'; rm "$tmp/tasks/nosrc/baseline.cu"
refused nosrc 'baseline.cu'; ok $? "a missing baseline is named"
rm -rf "$tmp"/tasks/{shape,missing,split,extra,small,twice,dtype,huge,high,range,cut,nosrc,weight,sims,budget}

# A planted task whose reference writes only zeros.
export QUERN_REFERENCES=$tmp/so
broken planted 's/level/level/'
refused planted ': run make build'; ok $? "a reference that is not built asks for make build"
cat >"$tmp/tasks/planted/reference.c" <<'C'
#include <stdint.h>
void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    for (int64_t i = 0; i < axis[0] * axis[1]; i++) out[0][i] = (in[0][i] - in[0][i]) * 3;
}
C
compile planted
refused planted 'a kernel that writes zeros into y passes'; ok $? "a task that zeros would pass is refused"
sed -i 's/in\[0\]\[i\] - in\[0\]\[i\]) \* 3/in[0][i]) * 1/' "$tmp/tasks/planted/reference.c"
refused planted 'was built from another' && refused planted ': run make build'
ok $? "a stale reference asks for make build"
compile planted
refused planted 'a kernel that writes a copy of x into y passes'
ok $? "a task that a copy would pass is refused"
sed -i 's/axis\[0\] \* axis\[1\]/axis[0] * axis[1] - 1/; s/\* 1/* 2/' "$tmp/tasks/planted/reference.c"
compile planted
refused planted 'unwritten or not finite'; ok $? "a reference that leaves an element is refused"
sed -i 's/out\[0\]\[i\] = .*/out[0][i] = 2.0 + (double)(i % axis[1] % 7);/; s/ - 1//' \
    "$tmp/tasks/planted/reference.c"
compile planted
refused planted 'mean of other outputs'; ok $? "outputs that no input moves are refused"
sed -i 's/= 2.0 + .*;/= in[0][i] * (double)(i \/ axis[1] + 2);/' "$tmp/tasks/planted/reference.c"
compile planted
refused planted '"turns" says rows, but with the inputs turned by one'
ok $? "a reference that does not turn as the task says is refused"
rm -rf "$tmp/tasks/planted"
broken inexact 's/"bytes"/"exact": "cols", "bytes"/'
sed 's/exp(x/0.1 * exp(x/' "$root/tasks/softmax/reference.c" >"$tmp/tasks/inexact/reference.c"
compile inexact
refused inexact 'no integers below 2^24 although the task says "exact"'
ok $? "a task that is wrongly called exact is refused"
broken inexact2 's/"bytes"/"special": ["huge"], "bytes"/'
refused inexact2 'found "huge"'; ok $? "an unknown special value is named"
rm -rf "$tmp"/tasks/inexact*

# A thirteenth folder, which scales by three.
broken triple 's/"op_type": "softmax"/"op_type": "elementwise"/'
cat >"$tmp/tasks/triple/reference.c" <<'C'
#include <stdint.h>
void reference(const int64_t *axis, const double *const *in, double *const *out)
{
    for (int64_t i = 0; i < axis[0] * axis[1]; i++) out[0][i] = 3 * in[0][i];
}
C
compile triple
cp -r "$root"/tasks/*/ "$tmp/tasks/"
task list --task-root "$tmp/tasks"; [ $? = 0 ] && [ "$(wc -l <"$tmp/out")" = 14 ] &&
    grep -q '^triple' "$tmp/out"
ok $? "a thirteenth folder is listed"
task gate triple --task-root "$tmp/tasks"; [ $? = 0 ] && grep -q '^triple: accepted$' "$tmp/out"
ok $? "a thirteenth folder passes the gate"
done_testing
