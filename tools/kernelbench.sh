#!/usr/bin/env bash
# Makes tasks/kernelbench of KernelBench's problems: tools/kernelbench.sh FOLDER [WORD]
#   FOLDER   the folder that holds level1, level2 and level3 (KernelBench/KernelBench in its repository)
#   WORD     only problems whose path holds it, such as level1/19_
# Exports with $PYTHON (python3), which needs torch and einops, imports, and gates. Archives stay in $ARCHIVES
# (build/kernelbench) and are used again. tasks/kernelbench/README.md lists what is refused, and why.
set -u
cd "$(dirname "$0")/.." || exit 1
[ $# -ge 1 ] || { echo "usage: tools/kernelbench.sh FOLDER [WORD]" >&2; exit 2; }
problems=$1 word=${2:-} archives=${ARCHIVES:-build/kernelbench} out=tasks/kernelbench \
  bin=${QUERN_BUILD:-build}/bin
log=$archives/refused err=$archives/err.$$
mkdir -p "$log" "$out"
export OMP_NUM_THREADS=1 # the arrays are small, and threads mostly wait

# The name of a task: k, the level, the problem's number and its name.
name_of() { # LEVEL STEM
  local n=k$1_$2
  n=${n,,} n=${n//[^a-z0-9]/_}
  while [ "$n" != "${n//__/_}" ]; do n=${n//__/_}; done
  n=${n:0:63}
  echo "${n%_}"
}

# Keeps the sentence, "TEXT" if there is none, and removes the task.
refuse() { # LEVEL STEM NAME SED TEXT
  sed "$4" "$err" >"$log/$1-$2"
  [ -s "$log/$1-$2" ] || echo "$5" >"$log/$1-$2"
  rm -rf "$out/level$1/$3"
}

# One problem: its task, or a file in $log with the sentence.
make_one() { # LEVEL FILE
  local level=$1 stem archive name
  stem=$(basename "$2" .py) archive=$archives/level$level/$stem.pt2
  name=$(name_of "$level" "$stem")
  rm -f "$log/$level-$stem"
  mkdir -p "$archives/level$level"
  if [ ! -e "$archive" ] &&
    ! "${PYTHON:-python3}" tools/export.py "$2" -o "$archive" >/dev/null 2>"$err"; then
    sed -i -n '/^export: /p' "$err"
    refuse "$level" "$stem" "$name" 's/^export: //' "tools/export.py failed"
  elif ! timeout 600 "$bin/quern-import" "$archive" -o "$out/level$level" --name "$name" --level "$level" \
    --tag kernelbench >/dev/null 2>"$err"; then
    refuse "$level" "$stem" "$name" "s/^quern-import: //; s,^$archive: ,," "quern-import failed"
  elif ! timeout 600 "$bin/quern-task" gate "$name" >"$err" 2>&1; then
    refuse "$level" "$stem" "$name" "s/^$name: refused: /the gate refuses it: /" "quern-task gate failed"
  fi
}

for level in 1 2 3; do
  for file in $(ls "$problems/level$level"/*.py | sort -V); do
    case $file in *"$word"*) ;; *) continue ;; esac
    make_one "$level" "$file"
    stem=$(basename "$file" .py)
    if [ -s "$log/$level-$stem" ]; then
      echo "level$level/$stem: refused: $(cat "$log/$level-$stem")"
    else
      echo "level$level/$stem: imported"
    fi
  done
done
rm -f "$err"

{
  cat <<'END'
# KernelBench

The problems of [KernelBench](https://github.com/ScalingIntelligence/KernelBench) (MIT licence, copyright 2023
Anne Ouyang, Simon Guo, Azalia Mirhoseini) as graphs. `tools/kernelbench.sh` makes this folder.
`TASKS=kernelbench/level1` selects a level, `TASKS='kernelbench/level2/*'` a pattern. A time workload that is
smaller than the problem has a note. `rivals.tsv` has PyTorch's own times, eager and compiled, at the sizes of
the problems (docs/gpu-verdict.md). Files of an earlier derivation stay while their baselines pass and wrong
kernels do not; another derivation gives other tolerances.

| level | problems | imported and gated |
|---|---|---|
END
  for level in 1 2 3; do
    echo "| $level | $(ls "$problems/level$level"/*.py | wc -l) | $(ls "$out/level$level" 2>/dev/null |
      wc -l) |"
  done
  printf '\n| refused | because |\n|---|---|\n'
  for f in $(ls "$log" | sort -V); do
    [ -s "$log/$f" ] && echo "| level${f%%-*}/${f#*-} | $(head -c 600 "$log/$f" | tr '\n|' ' /') |"
  done
} >"$out/README.md"
