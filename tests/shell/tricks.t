#!/bin/bash
# No trick of tests/cheats/time has a better predicted time than its honest twin. TRICKS=open: of open.txt
# there, where a trick is known that the model does not see yet.
# limit: 300
. "$(dirname "$0")/verdicts.sh"
export QUERN_LOG=quiet
declare -A scores
awk '$1 == "//==" { close(out); out = $2 "." $3 ".cu"; print $2, $3, $4 >"list"; next }
    out { print >out }' "$root/tests/cheats/time/${TRICKS:-tricks}.txt"
for task in $(cut -d' ' -f1 list | sort -u); do
    files=("$task".*.cu)
    readarray -t jsons < <("$BIN/quern-eval" --task "$task" --device sim:h100 --json "${files[@]}" 2>err)
    for k in "${!files[@]}"; do
        name=${files[k]#"$task".}
        json_value outcome "${jsons[k]-}" outcome
        json_value score "${jsons[k]-}" score
        [ "$outcome" = ok ] || score=
        scores[$task ${name%.cu}]=$score
    done
done
while read -r task name twin; do
    score=${scores[$task $name]} of=${twin:+${scores[$task $twin]}}
    if [ -z "$score" ]; then
        ok 1 "$task, $name: a right kernel"
    elif [ -n "$twin" ]; then
        awk "BEGIN { exit !($score <= 1.05 * ${of:-0}) }"
        ok $? "$task, $name: score $score, $twin has $of"
    fi
done <list
done_testing
