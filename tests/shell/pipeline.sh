# For tests of whole runs: a tiny profile whose model trains in seconds and still writes kernels that work, names of runs that
# belong to this test, their digests, and the processes that they leave. Sourced; TAP on stdout.
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$source_dir" || exit 99
build=$(cd "${QUERN_BUILD:-build}" && pwd)
BIN=$build/bin
if ! command -v redis-server >/dev/null; then echo '1..0 # SKIP no redis-server in PATH'; exit 0; fi
tmp=$(mktemp -d)
prefix=test-$$
unset QUERN_REDIS MAKEFLAGS MFLAGS MAKELEVEL
export QUERN_MARK=$tmp
n=0 failed=0
ok() { # ok STATUS NAME
  n=$((n + 1))
  if [ "$1" = 0 ]; then echo "ok $n - $2"; return; fi
  echo "not ok $n - $2"; failed=1
  [ ! -s "$tmp/out" ] || tail -25 "$tmp/out" | sed 's/^/# /'
}
done_testing() { echo "1..$n"; exit $failed; }

cat >"$tmp/tiny.mk" <<'END'
TASKS ?= relu,gelu,transpose
TRIALS ?= 24
KEEP ?= 5
MISTAKES ?= 0.15
CONTRASTIVE ?= 1
SMALL_MODEL ?= --vocab 700 --hidden 64 --ff 128 --layers 2 --heads 4 --kv-heads 2
SFT ?= --plain-epochs 60 --epochs 4 --batch 4 --lr 8e-3
MAX_NEW ?= 400
BATCH ?= 4
SELFSUP_ROUNDS ?= 1
SELFSUP_GROUPS ?= 2
SELFSUP_PLAIN ?= 2
SELFSUP_COPIES ?= 4
SELFSUP ?= --epochs 1 --batch 8 --lr 4e-4
ROUNDS ?= 2
GROUPS ?= 2
PLAIN ?= 2
COPIES ?= 4
CRL ?= --epochs 1 --batch 8 --lr 2e-4
REPORT_SAMPLES ?= 4
CLASSES ?= sim:h100
END
# The compiler and flags of the build folder: with others, make would build it again.
settings=(BUILD="$build" PROFILE=smoke CONFIG="$tmp/tiny.mk")
for v in CC OPT SAN; do q=QUERN_$v; [ -z "${!q+x}" ] || settings+=("$v=${!q}"); done

# crl RUN [NAME=VALUE...]: one `make crl`; its output is in $tmp/out
crl() { local run=$1; shift; timeout -k 5 "${limit:-300}" make -j2 crl "${settings[@]}" RUN="$prefix-$run" "$@" >"$tmp/out" 2>&1 & wait $!; }
dir() { echo "runs/$prefix-$1"; }
# The names of the rules that the last call ran, sorted.
ran() { sed -n 's/^\[\([^]]*\)\] [0-9.]* s$/\1/p' "$tmp/out" | sort; }

# "path digest" of every artifact and report of a run; not of the queue's data and the logs.
digests() {
  (cd "$(dir "$1")" && find . -name '*.qa' | sort | while read -r f; do
    echo "$f $("$BIN/quern-artifact" validate "$f" | sed 's/.*payload //')"
  done; sha256sum report.tsv best/*.cu)
}

# Running processes that this test started, without this shell and its helpers.
left() {
  local p
  for p in $(cd /proc && grep -lzxsF "QUERN_MARK=$tmp" [0-9]*/environ | cut -d/ -f1); do
    [ "$p" = $$ ] && continue
    case "$({ tr '\0' ' ' </proc/"$p"/cmdline; } 2>/dev/null)" in *quern-*|*redis-server*|*mk/*|make*) echo "$p" ;; esac
  done
}
ours() { local p; for p in $(left); do [ "$(cat /proc/"$p"/comm 2>/dev/null)" = "$1" ] && echo "$p"; done; }
none_left() {
  local i p
  for i in $(seq 300); do [ -z "$(left)" ] && return 0; sleep 0.1; done
  for p in $(left); do echo "# left: $p $(tr '\0' ' ' </proc/"$p"/cmdline)"; done
  return 1
}
wait_for() { local i; for i in $(seq "${2:-1200}"); do eval "$1" && return 0; sleep 0.05; done; return 1; }
clear_away() {
  for p in $(left); do kill -9 "$p"; done 2>/dev/null
  rm -rf "$tmp" "$source_dir/runs/$prefix"-*
}
trap clear_away EXIT
trap 'exit 143' TERM INT HUP
