# For tests of whole runs: a tiny profile whose model trains in seconds and still writes kernels that work,
# names of runs that belong to this test, their digests, and the processes that they leave. Sourced; TAP on
# stdout.
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"
need redis-server
cd "$root" || exit 99
prefix=test-$$
logs=("$tmp/out")
left_pattern='@(*quern-*|*redis-server*|*mk/*|make*)'
at_exit+=('rm -rf "$root/runs/$prefix"-*')
rm -rf "$root/runs/$prefix"-* # of a test that was killed, whose number this process has got
trap 'exit 143' TERM INT HUP

# The tasks; three of them with smaller inputs, since drawing and simulating those takes much of a run's time.
export QUERN_TASKS=$tmp/small/tasks
mkdir -p "$QUERN_TASKS"
for t in "$root"/tasks/*/; do
  t=$(basename "$t")
  case $t in
    relu | gelu | transpose)
      cp -r "$root/tasks/$t" "$QUERN_TASKS"
      sed -i '/"sim"/{s/524288\|196608/49152/;s/512/192/g}
        /"time"/{s/16777216/1048576/;s/4096\|8192/1024/g}' "$QUERN_TASKS/$t/task.json"
      ;;
    *) ln -s "$root/tasks/$t" "$QUERN_TASKS" ;;
  esac
done

cat >"$tmp/tiny.mk" <<'END'
TASKS ?= relu,gelu,transpose
COLLECT ?= --trials 24 --keep 4 --mistakes 0.15
FILTER ?= --contrastive 1 --drills 1
SMALL_MODEL ?= --vocab 700 --hidden 64 --ff 128 --layers 2 --heads 4 --kv-heads 2
SFT ?= --plain-epochs 80 --epochs 1 --batch 4 --lr 8e-3
SAMPLE ?= --max-new 400 --batch 4
SELFSUP_ROUNDS ?= 1
SELFSUP_PROMPTS ?= --groups 2 --plain 2 --exemplars 2 --copies 4
SELFSUP ?= --epochs 1 --batch 8 --lr 4e-4
ROUNDS ?= 2
PROMPTS ?= --groups 2 --plain 2 --exemplars 2 --copies 4
CRL ?= --epochs 1 --batch 8 --lr 2e-4
REPORT_SAMPLES ?= 4
CLASSES ?= sim:h100
END
# The compiler and flags of the build folder: with others, make would build it again.
# Make takes no BUILD with a blank in it; relative to the source tree it has none.
settings=(BUILD="${BUILD#"$root/"}" PROFILE=smoke CONFIG="$tmp/tiny.mk" SECRET=1)
for v in CC OPT SAN; do q=QUERN_$v; [ -z "${!q+x}" ] || settings+=("$v=${!q}"); done

# crl RUN [NAME=VALUE...]: one `make crl`; its output is in $tmp/out
crl() {
  local run=$1; shift
  timeout -k 5 "${limit:-1200}" make -j2 crl "${settings[@]}" RUN="$prefix-$run" "$@" >"$tmp/out" 2>&1 &
  wait $!
}
dir() { echo "runs/$prefix-$1"; }
# The names of the rules that the last call ran, sorted.
ran() { sed -n 's/^\[\([^]]*\)\] [0-9.]* s$/\1/p' "$tmp/out" | sort; }

# "path digest" of every artifact and report of a run; not of the queue's data and the logs.
digests() {
  (cd "$(dir "$1")" && find . -name '*.qa' | sort | while read -r f; do
    echo "$f $("$BIN/quern-artifact" validate "$f" | sed 's/.*payload //')"
  done; sha256sum report.tsv best/*.cu)
}
