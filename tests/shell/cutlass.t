#!/bin/bash
# Sources that use CUTLASS and CUB, as they come, are right: three of tests/cutlass, and all where CUTLASS=all
# (make test-cutlass: some minutes, since a source takes 1 to 18 s of CPU time to compile). Their tasks are
# drafts of tests/cutlass/tasks. TAP on stdout.
# limit: 3600
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
headers=$BUILD/cutlass/include/cutlass/version.h
[ -e "$headers" ] || { echo '1..0 # SKIP make deps could not fetch CUTLASS'; exit 0; }

sources=("$root"/tests/cutlass/{array_convert,cub_agent_reduce,gemm_wmma}.cu)
[ "${CUTLASS:-}" != all ] || sources=("$root"/tests/cutlass/*.cu)
of_task="s|^// task: \(.*\)|$root/tests/cutlass/tasks/\1.json|p"
mapfile -t drafts < <(sed -n "$of_task" "${sources[@]}" | sort -u)
"$BIN/quern-derive" -o "$tmp/tasks" "${drafts[@]}" 2>"$tmp/err"
ok $? 'tasks from drafts'
export QUERN_TASKS=$tmp/tasks
check_verdicts 2 "${sources[@]}"

kernel=$root/tests/cutlass/array_convert.cu
version=$(sed -n 's/^#define CUTLASS_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\).*/\2/p' "$headers" | paste -sd.)
"$BIN/quern-eval" --task relu_f16 --json "$kernel" >"$tmp/verdict"
named() { sed -E 's/.*"compiler": ?"[^,"]*, ([^"]*)".*/\1/' "$1"; }
is 'a verdict names the version of CUTLASS' "$(named "$tmp/verdict")" "CUTLASS $version"
"$BIN/quern-export" --task relu_f16 --to c -o "$tmp/package" "$kernel" >"$tmp/out" 2>&1
is 'and so does a package' "$(tr -d '\n' <"$tmp/package/verdict.json" | named /dev/stdin)" "CUTLASS $version"
is 'a package needs no headers' "$(grep -rlE 'include.*(cutlass|cub)/' "$tmp/package" --include='*.[ch]')" ''
done_testing
