# The shell tests' harness, sourced first: . "$(dirname "$0")/tap.sh"
#
# It sets root (the source tree), here (tests/shell), BUILD, BIN, kept (the folder in which the test was
# started; tests/run keeps it when the test fails) and tmp (a new folder), and changes to tmp. TAP goes to
# stdout. A test calls ok or is once for each check and done_testing at its end. At its exit all processes
# that it left are killed and tmp is removed.
set -u
root=${QUERN_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
here=$root/tests/shell
kept=$PWD
BUILD=$(cd "$root" && cd "${QUERN_BUILD:-build}" && pwd) ||
  { echo 'Bail out! there is no build folder'; exit 1; }
BIN=$BUILD/bin
case ${TMPDIR:-} in *[[:space:]]*) TMPDIR=/tmp ;; esac # make, which some tests call, takes no such path
tmp=$(mktemp -d)
cd "$tmp" || exit 1
unset QUERN_REDIS MAKEFLAGS MFLAGS MAKELEVEL
# A source is compiled once for all tests of one `make test`; a test of the compiler unsets this, or names a
# folder of its own.
export QUERN_CACHE=${QUERN_TEST_CACHE:-$tmp/compiled}
# Every process that the test starts inherits this mark; left finds them by it.
export QUERN_MARK=$tmp

n=0 failed=0 rc=
logs=("$tmp/out" "$tmp/err")               # the files whose ends a failed check prints
left_pattern='@(*quern-*|*redis-server*)'  # the command lines that left looks for
left_s=150                                 # how long none_left waits, in seconds
at_exit=()                                 # commands to run at the exit, in order, before tmp is removed

end_test() {
  local p command
  for p in $(left); do kill -9 "$p"; done 2>/dev/null
  for command in "${at_exit[@]}"; do eval "$command"; done
  cd / && rm -rf "$tmp"
}
trap end_test EXIT

# ---- checks ----
diagnose() { # prints the ends of the logs, marked for tests/failed; a test may define its own
  local f
  [ -z "$rc" ] || echo "# rc $rc"
  for f in "${logs[@]}"; do [ ! -s "$f" ] || tail -n 30 "$f" | cut -c1-600 | sed "s/^/#   ${f##*/}| /"; done
}
ok() { # STATUS NAME [WHY]: the check passes when STATUS is 0; WHY are lines that explain why it does not
  n=$((n + 1))
  if [ "$1" = 0 ]; then echo "ok $n - $2"; return; fi
  failed=1
  echo "not ok $n - $2"
  [ -z "${3-}" ] || sed 's/^/# /' <<<"$3"
  diagnose
}
is() { # NAME GOT WANT
  [ "$2" = "$3" ]; ok $? "$1" "got '$2', expected '$3'"
}
skip_all() { echo "1..0 # SKIP $1"; exit 0; } # REASON
need() { command -v "$1" >/dev/null || skip_all "${2:-no $1 in PATH}"; } # COMMAND [REASON]
need_gpu() { [[ $1 != cuda:* ]] || [ -e /dev/nvidiactl ] || skip_all 'no NVIDIA GPU here'; } # DEVICE
done_testing() { echo "1..$n"; exit $failed; }

# ---- programs ----
# PROGRAM ARGUMENT...: puts stdout into out, stderr into err, and the exit status into rc; returns it too
run() {
  "$BIN/$1" "${@:2}" >out 2>err </dev/null
  rc=$?
  return $rc
}
# Whether stderr is one line that begins with the program's name and contains the words.
sentence() { [ "$(wc -l <err)" = 1 ] && grep -q "^$1: " err && grep -qF -- "$2" err; } # PROGRAM WORDS
# ARTIFACT: prints its payload's digest
digest() { "$BIN/quern-artifact" validate "$1" 2>/dev/null | sed 's/.*payload //'; }

# ---- processes ----
cores() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; } # as Quern's programs count them
exec {never}<> <(:) # from which nothing comes: a wait without a process
export never        # for a bash that is given wait_for
# CONDITION [SECONDS]: returns whether the condition, a command, holds within that time. It is asked at
# intervals of 20 ms, which grow to 100 ms: a condition that starts processes costs more than they wait. The
# clock is that of /proc/uptime, which nobody sets.
wait_for() {
  local now end='' ms=20
  until eval "$1"; do
    read -r now _ </proc/uptime
    now=${now%.*}
    : "${end:=$((now + ${2:-150}))}"
    [ "$now" -lt "$end" ] || return 1
    read -rt "0.0$ms" -u "$never"
    ms=$((ms < 80 ? ms + 5 : 99))
  done
  return 0 # not the status of read
}
# The ids of the running processes that this test started and whose command line has left_pattern; not this
# shell and its helpers.
left() {
  local p
  for p in $(cd /proc && grep -lzxsF "QUERN_MARK=$tmp" [0-9]*/environ | cut -d/ -f1); do
    [ "$p" = $$ ] && continue
    [[ $({ tr '\0' ' ' <"/proc/$p/cmdline"; } 2>/dev/null) == $left_pattern ]] && echo "$p"
  done
}
ours() { # NAME: those of left with this name, of which the kernel keeps 15 characters
  local p
  for p in $(left); do [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "${1:0:15}" ] && echo "$p"; done
}
none_left() {
  wait_for '[ -z "$(left)" ]' "$left_s" && return
  local p
  for p in $(left); do echo "# left: $p $(tr '\0' ' ' <"/proc/$p/cmdline")"; done
  return 1
}
