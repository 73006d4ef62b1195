#!/usr/bin/env bash
# more-sft FLAGS_OF_QUERN_FILTER... -- FLAGS...  in place of quern-crl, whose flags for files it takes: the
# samples become a dataset beside the model, and quern-sft goes on with the model from there.
set -euo pipefail
here=$(cd "${0%/*}" && pwd) filter=() sft=() samples= verdicts= output=
while [ $# -gt 0 ] && [ "$1" != -- ]; do filter+=("$1"); shift; done
[ $# -gt 0 ] || { echo "more-sft: expected -- in front of the flags of quern-crl" >&2; exit 2; }
shift
while [ $# -gt 0 ]; do
  case $1 in
    --samples) samples=$2 ;;
    --verdicts) verdicts=$2 ;;
    --output) output=$2 ;;
    --reviews | --history | --reference) ;;
    --base) sft+=("$1" "$2") ;;
    *) break ;;
  esac
  shift 2
done
dataset=${output%/*}/dataset.qa
"$here/quern-filter" --samples "$samples" --verdicts "$verdicts" --output "$dataset" "${filter[@]}"
exec "$here/quern-sft" --dataset "$dataset" --output "$output" "${sft[@]}" "$@"
