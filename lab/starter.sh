#!/usr/bin/env bash
# Train starters from the generator's kernels, and measure each on the held-out ones of tasks/composed:
#   lab/starter.sh OUTPUT [SECONDS]
# It runs in the root of a built tree. OUTPUT/SIZE/model is a model directory, OUTPUT/report.tsv says how many
# samples are right and of what kind the others are. SECONDS (470) is what the whole takes, on 16 cores that
# do nothing else: a quarter is for the tasks, no part of the kernels begins after 60 in 100, and the epochs
# follow from the speed of a first training. OUTPUT/data keeps what the models learn from: where it is there,
# they learn at once.
# SETS, SET_TASKS: how many sets of how many tasks (fewer than eight have no product); PARTS: the tasks are
# collected in so many parts, as far as the time goes; SIZES: models to train; EPOCHS: passes at most; COPIES:
# samples of a composition; ENGINE: cuda:N or cpu; JOBS: processes.
# shellcheck disable=SC2317 # bash -c calls the functions
set -euo pipefail
out=${1:?lab/starter.sh OUTPUT [SECONDS]} seconds=${2:-470} began=$(date +%s)
: "${SETS:=64}" "${SET_TASKS:=40}" "${PARTS:=8}" "${SIZES:=small wide}" "${EPOCHS:=16}" "${COPIES:=16}"
: "${ENGINE:=cuda:0}" "${JOBS:=$(nproc)}" "${BUILD:=build}"
mkdir -p "$out/data"
out=$(cd "$out" && pwd) bin=$(cd "$BUILD/bin" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
spent() { echo $(($(date +%s) - began)); }
say() { echo "starter: $(spent) s: $*"; }
# 1.0 M and 2.2 M parameters at 1,024 tokens: fewer tokens leave more for the layers.
flags_small='--vocab 1024 --hidden 128 --ff 416 --layers 4 --heads 4 --kv-heads 2'
flags_wide='--vocab 1024 --hidden 192 --ff 704 --layers 4 --heads 6 --kv-heads 2'
# Models that train side by side share the GPU's memory, so its tokens are bounded.
common='--context 2048 --batch 32 --max-tokens 32768 --lr 4e-3 --validation 0.02 --checkpoint-s 0'

export QUERN_TASKS=$work/tasks
mkdir -p "$QUERN_TASKS"
cp -r tasks/composed "$QUERN_TASKS/composed"
held=$(cd "$QUERN_TASKS" && grep -l '"composition"' composed/*/task.json | sed 's|/task.json||' | paste -sd,)

# ---- tasks: sets of several seeds, products and all, none of which is in composed ----
tasks() {
  local task dir n=0 part
  mkdir -p "$work/sets" "$work/seen"
  seq 1 "$SETS" | timeout $((seconds / 4)) xargs -P "$JOBS" -I{} "$bin/quern-generate" --train "$SET_TASKS" \
    --composition 0 --family 0 --seed 7{} --beside tasks/composed -o "$work/sets/{}" || true
  for task in "$work"/sets/*/*/task.json; do
    dir=${task%/task.json}
    mkdir "$work/seen/${dir##*/}" 2>/dev/null || continue
    part=part$((n % PARTS)) n=$((n + 1))
    mkdir -p "$QUERN_TASKS/$part"
    mv "$dir" "$QUERN_TASKS/$part/"
  done
  say "$n tasks, $(cat "$QUERN_TASKS"/part*/*/task.json | grep -c '"op_type": "product"') of them products"
}

# ---- kernels: correct on the simulator, half of the tasks without the fast genes ----
judge() { "$bin/quern-evaluate" "$1/samples.qa" --output "$1/verdicts.qa" --device sim:h100 --seed "$2"; }
collect() {
  local part k dirs=()
  "$bin/quern-withhold" --tasks 'part*/*' --output "$work/withheld"
  for ((k = 0; k < PARTS; k++)); do
    part=$work/kernels/$k
    if [ ! -d "$QUERN_TASKS/part$k" ] || [ "$(spent)" -ge $((seconds * 6 / 10)) ]; then break; fi
    mkdir -p "$part"
    "$bin/quern-collect" --output "$part/samples.qa" --tasks "part$k/*" --teachers generator --trials 6 \
      --keep 4 --mistakes 0 --without "$work/withheld" --device sim:h100 --eval-seed 1 --seed 1
    judge "$part" 1
    dirs+=("$part")
  done
  say "the kernels of ${#dirs[@]} parts of $PARTS are judged"
  "$bin/quern-join" --output "$work/samples.qa" "${dirs[@]/%//samples.qa}"
  "$bin/quern-join" --output "$work/verdicts.qa" "${dirs[@]/%//verdicts.qa}"
  "$bin/quern-filter" --samples "$work/samples.qa" --verdicts "$work/verdicts.qa" \
    --output "$work/dataset.qa" --tasks 'part*/*' --contrastive 0.4 --drills 1 --seed 1
  gzip -c "$work/dataset.qa" >"$out/data/dataset.qa.gz"
}
all() {
  local models=() model size failed=0
  if [ -e "$out/data/dataset.qa.gz" ]; then
    gzip -dc "$out/data/dataset.qa.gz" >"$work/dataset.qa"
  else
    tasks
    collect
  fi
  "$bin/quern-prompt" --output "$work/prompts.qa" --tasks "$held" --heldout-only --groups 1 --seed 1
  for size in $SIZES; do one "$size" & models+=($!); done
  for model in "${models[@]}"; do wait "$model" || failed=3; done
  return "$failed"
}

# ---- a model: two passes tell how long the others may be; then training, samples and their verdicts ----
train() { # SIZE FOLDER PLAIN_EPOCHS EPOCHS
  local flags=flags_$1
  # shellcheck disable=SC2086
  "$bin/quern-sft" --dataset "$work/dataset.qa" --output "$2" ${!flags} $common --plain-epochs "$3" \
    --epochs "$4" --engine "$ENGINE" --seed 1 2>&1 | sed "s/^/$1: /" | tee "$2.log"
}
one() {
  local dir=$out/$1 start left passes took
  start=$(spent)
  mkdir -p "$dir"
  train "$1" "$work/first-$1" 1 1
  # Four plain epochs and one whole one have at most 2.2 times the steps of these two. What is no step (the
  # start, the tokenizer) is there once more, and samples and their verdicts need 8% of the whole.
  took=$(sed -n 's/.*: train: .* in \([0-9]*\)[.0-9]* s .*/\1/p' "$work/first-$1.log")
  took=$((${took:-0} + 1)) left=$((seconds * 92 / 100 - $(spent) - ($(spent) - start - took)))
  passes=$((left * 10 / (22 * took)))
  passes=$((passes < 1 ? 1 : passes > EPOCHS ? EPOCHS : passes))
  say "$1: $passes epochs after $((4 * passes)) plain ones"
  train "$1" "$work/model-$1" $((4 * passes)) "$passes"
  rm -rf "$dir/model"
  mv "$work/model-$1" "$dir/model"
  "$bin/quern-sample" --policy "$dir/model" --prompts "$work/prompts.qa" --output "$dir/samples.qa" \
    --copies "$COPIES" --max-new 1200 --batch 256 --engine "$ENGINE" --seed 1
  judge "$dir" 2
  say "$1: the compositions are judged"
}
# ---- the share right of a model, and how many samples have each outcome ----
outcomes() {
  "$bin/quern-artifact" export "$out/$1/verdicts.qa" >"$work/verdicts"
  grep -o '"outcome":"[^"]*"' "$work/verdicts" | cut -d'"' -f4 | sort | uniq -c |
    awk -v size="$1" '{ n[$2] = $1; all += $1 }
      END { printf "%s\tright\t%.1f%% of %d\n", size, 100 * n["ok"] / all, all
        for (o in n) printf "%s\t%s\t%d\n", size, o, n[o] }'
  grep -o '"outcome":"[^"]*"\|"task":"[^"]*"' "$work/verdicts" | cut -d'"' -f4 | paste - - |
    awk -v size="$1" '{ n[$2]++; ok[$2] += $1 == "ok" }
      END { for (t in n) printf "%s\t%s\t%d of %d\n", size, t, ok[t], n[t] }' | sort
}

export -f judge tasks collect all one train say spent
export bin work out seconds held began SETS SET_TASKS PARTS SIZES EPOCHS COPIES ENGINE JOBS
export flags_small flags_wide common
"$bin/quern-fleet" run --dir "$work/queue" --devices sim:h100 --workers "$JOBS" -- \
  bash -c 'set -euo pipefail; all' || status=$?
for size in $SIZES; do [ ! -e "$out/$size/verdicts.qa" ] || outcomes "$size"; done | tee "$out/report.tsv"
exit "${status:-0}"
