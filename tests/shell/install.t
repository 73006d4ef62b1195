#!/bin/bash
# quern COMMAND; mk/install below a prefix with a blank in its name, and a run from an empty folder; a built
# tree that is moved. TAP on stdout.
. "$(dirname "$0")/tap.sh"
export QUERN_LOG=quiet
unset QUERN_TASKS PROFILE RUN RUNS CONFIG TASKS DEVICES
verdict='^relu on sim:h100: ok$'

# ---- the commands ----
run quern; [ $rc = 2 ] && grep -q '^usage: quern COMMAND' out; ok $? 'quern alone says what there is'
run quern help; shown=$(grep -c '^  [a-z]' out); [ $rc = 0 ] && [ "$shown" -ge 10 ] && [ "$shown" -le 20 ]
ok $? "quern help has a line of each of $shown commands, at most 20"
run quern help -a; cp out help; [ $rc = 0 ] && ! grep -q '^Also: .*\bjoin\b' help
ok $? 'quern help -a has a line of every command of the product'
for p in "$BIN"/quern-*; do
    p=${p##*/quern-}
    case $p in *.tmp | *bench | cudarunner) continue ;; esac
    [ -e "$root/lab/quern-$p.c" ] || grep -q "^  $p  *[a-z]" help || echo "# no line of $p"
done >lacking
[ ! -s lacking ]; ok $? 'quern help -a leaves no program out'
cat lacking
run quern evla
[ $rc = 2 ] && sentence quern "there is no command 'evla' (did you mean 'eval'?); quern help -a lists them"
ok $? 'a misspelt command is answered by the one that is meant'
run quern help eval; cp out a; run quern-eval --help; cmp -s a out
ok $? 'quern help COMMAND is quern-COMMAND --help'
run quern status nonesuch; [ $rc = 2 ] && sentence quern-status 'no run nonesuch'
ok $? 'quern has the status of its command'
run quern run smoke; [ $rc = 2 ] && sentence quern "found 'smoke'"
ok $? 'quern run takes targets and settings'
run quern run sft crl; [ $rc = 2 ] && sentence quern 'crl is given beside sft'
ok $? 'quern run takes one target alone'
run quern run -n -n; [ $rc = 2 ] && sentence quern '-n is given beside -n'; ok $? 'quern run takes one flag'

# ---- installed ----
prefix="$tmp/a prefix/usr" installed="$tmp/a prefix/usr/bin/quern"
programs=(quern quern-eval quern-compile quern-config quern-status quern-fleet)
(cd "$root" && mk/install "$BUILD" "$prefix" "${programs[@]}") >out 2>err
[ $? = 0 ] && grep -q "^quern: installed ${#programs[@]} programs below " out
ok $? 'make install puts the programs into a prefix'
[ -s "$prefix/share/bash-completion/completions/quern" ] && [ -s "$prefix/share/quern/tools/export.py" ]
ok $? 'completion, and what make optimize needs, are installed'
# WORDS: what completion offers for the last one
offers() {
    PATH="$prefix/bin:$PATH" bash -c '. "$0"; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _quern
        echo "${COMPREPLY[*]}"' "$prefix/share/bash-completion/completions/quern" "$@"
}
[ "$(offers quern ev)" = eval ] && [ "$(offers quern help ev)" = eval ] &&
    [ "$(offers quern eval --t)" = '--task --task-root --tolerance' ] &&
    [ "$(offers quern compile --h)" = --help ]
ok $? 'completion offers commands and flags'
if command -v help2man >/dev/null; then
    grep -q '^quern-eval .- compile, check and time one candidate' "$prefix/share/man/man1/quern-eval.1"
    ok $? 'a man page has a line that says what the program does'
    grep -A2 '^\.SH SYNOPSIS' "$prefix/share/man/man1/quern-eval.1" | grep -q -- '--task NAME' &&
        ! grep -q 'internal to' "$prefix/share/man/man1/quern.1"
    ok $? 'a man page has a line that says how its program is called'
fi
find "$prefix" | sort >before
mkdir empty && cd empty || exit 1
logs=("$tmp/empty/out" "$tmp/empty/err")
"$installed" eval --task relu "$root/tasks/relu/baseline.cu" >out 2>err; grep -q "$verdict" out
ok $? 'an installed quern judges from an empty folder'
"$installed" run -n collect PROFILE=smoke >out 2>err
[ $? = 0 ] && grep -q "quern-collect --output runs/smoke/collect/samples.qa" out
ok $? 'a run is made below the current folder'
"$installed" run -n crl PROFILE=smoke >out 2>err
[ $? = 0 ] && grep -q 'quern-report.* --output runs/smoke' out
ok $? 'an installed run comes to its end'
"$installed" run -n crl-1-prompts PROFILE=smoke >out 2>err
[ $? = 0 ] && [ "$(grep -o 'log/[a-z0-9-]*\.log' out | tail -1)" = log/crl-1-prompts.log ]
ok $? 'a step of a run is a target of an installed quern run'
cd .. && mv 'a prefix' 'another place' && cd empty || exit 1
"$tmp/another place/usr/bin/quern" eval --task relu "$root/tasks/relu/baseline.cu" >out 2>err
grep -q "$verdict" out
ok $? 'a prefix that is moved works'
find "$tmp/another place/usr" | sed "s/another place/a prefix/" | sort | cmp -s - ../before
ok $? 'nothing is written below a prefix'
(cd "$root" && mk/install --remove "$tmp/another place/usr")
[ -z "$(find "$tmp/another place/usr" -type f)" ]; ok $? 'uninstalling leaves no file'

# ---- a built tree that is moved ----
cd "$tmp" && mkdir -p 'my tree/build/bin' && cp -r "$root"/{tasks,configs,mk,pipeline.mk} 'my tree' &&
    cp "$BIN"/quern{,-eval,-compile,-config} 'my tree/build/bin' && cp -r "$BUILD/tasks" 'my tree/build' &&
    echo .. >'my tree/build/root'
[ ! -d "$BUILD/cuda" ] || ln -s "$BUILD/cuda" 'my tree/build/cuda'
moved='moved (1) tree; $b"'"'" && mv 'my tree' "$moved" && cd empty || exit 1
sed -i 's/"name": "relu"/"name": "relu", "moved": 1/' "$tmp/$moved/tasks/relu/task.json"
"$tmp/$moved/build/bin/quern" eval --task relu "$root/tasks/relu/baseline.cu" >out 2>err
grep -qF "$tmp/$moved/tasks/relu/task.json" err; ok $? 'programs of a moved build read its own tasks'
sed -i 's/, "moved": 1//' "$tmp/$moved/tasks/relu/task.json"
"$tmp/$moved/build/bin/quern" eval --task gelu "$root/tasks/gelu/baseline.cu" >out 2>err
grep -q '^gelu on sim:h100: ok$' out; ok $? 'programs of a moved build judge'
"$tmp/$moved/build/bin/quern" run -n collect PROFILE=smoke >out 2>err
[ $? = 0 ] && eval "set -- $(grep -m 1 'mk/run.* runs/smoke' out | sed 's|\\$||')" && [ -x "$1" ] &&
    [ "$1" -ef "$tmp/$moved/mk/run" ] && [ "${3##*/}" = quern-collect ]
ok $? 'programs of a moved build make runs, whatever marks its folder has'
done_testing
