# Sourced by eval.t, baselines.t, ranking.t, device.t and both cheats.t. It sources tap.sh and adds checks of
# kernels whose first lines say which verdict they expect:
#   // task: NAME                 // expect: OUTCOME [CHEAT]  (several alternatives are separated by " | ")
#   // most: the largest SCORE that an `ok` may have    // least: the smallest one
#   // precision: of the run (default)
#   // says: TEXT that the message contains    // never: TEXT that it does not contain    // line: N
# A field may depend on the device: "// expect sim: ..." and "// expect cuda: ..." come before "// expect:
# ...".
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"
DEVICE=${DEVICE:-sim:h100} # of check_verdict and check_verdicts

# Reads the fields of one kernel into variables of the caller: task expect most least says never
# line precision
read_fields() { # FILE
    local text name own=" ${DEVICE%%:*}:"
    task= expect= most= least= says= never= line= precision=
    while IFS= read -r text && [[ $text == //* ]]; do
        for name in task expect most least says never line precision; do
            case $text in
                "// $name$own "*) printf -v "$name" %s "${text#*: }" ;;
                "// $name: "*) [ -n "${!name}" ] || printf -v "$name" %s "${text#*: }" ;;
            esac
        done
    done <"$1"
}

json_field() { # NAME: prints a text or a number of the JSON line on stdin
    sed -E "s/.*\"$1\":(\"(([^\"\\\\]|\\\\.)*)\"|([-0-9.e+]+)).*/\2\4/"
}

json_value() { # NAME JSON VARIABLE: sets the variable to that field of JSON, or to nothing; starts no process
    local pattern="\"$1\":(\"(([^\"\\\\]|\\\\.)*)\"|[-0-9.e+]+)"
    printf -v "$3" %s ""
    [[ $2 =~ $pattern ]] && printf -v "$3" %s "${BASH_REMATCH[2]:-${BASH_REMATCH[1]#\"\"}}"
}

# One check: the verdict of a kernel is what the kernel expects. PROBLEM is one that the caller has found.
# ERRORS is the file with the evaluator's messages.
say_verdict() { # FILE JSON ERRORS [PROBLEM]
    local file=$1 json=$2 errors=$3 problem=${4-} name task expect most least says never line
    local precision got cheat message score at
    name=${file##*/} name=${name%.cu}
    read_fields "$file"
    json_value outcome "$json" got
    json_value cheat "$json" cheat
    json_value message "$json" message
    json_value line "$json" at
    message=${message//'\"'/'"'}
    got=$got${cheat:+ $cheat}
    [ "$got" != ok ] || { json_value score "$json" score && printf -v score %.3f "$score"; }
    case " | $expect | " in *" | $got | "*) ;; *) \
        problem="verdict $got, expected $expect${problem:+; $problem}" ;; esac
    [ -z "${score-}" ] || [ -z "$most" ] || awk "BEGIN { exit !($score <= $most) }" ||
        problem="${problem:+$problem; }score $score, expected at most $most"
    [ -z "${score-}" ] || [ -z "$least" ] || awk "BEGIN { exit !($score >= $least) }" ||
        problem="${problem:+$problem; }score $score, expected at least $least"
    [ -z "$says" ] || [[ $message == *"$says"* ]] ||
        problem="${problem:+$problem; }the message does not say '$says'"
    [ -z "$never" ] || [[ $message != *"$never"* ]] ||
        problem="${problem:+$problem; }the message says '$never'"
    [ -z "$line" ] || [ "$at" = "$line" ] || problem="${problem:+$problem; }line $at, expected $line"
    local logs=()
    if [ -z "$problem" ]; then
        ok 0 "$name: $got${score:+, score $score}"
    else
        ok 1 "$name: $expect" "$problem"$'\n'"message: $message"
        sed "s/^/#   ${errors##*/}| /" "$errors"
    fi
}

# Evaluates one kernel in one process; the exit status counts too.
check_verdict() { # FILE
    local status=0 json expected=1 problem= task expect most says never line precision
    read_fields "$1"
    json=$(PRECISION=$precision "$BIN/quern-eval" --task "$task" --device "$DEVICE" --json "$1" \
        2>"$tmp/err") || status=$?
    [ "$(json_field outcome <<<"$json")" != ok ] || expected=0
    [ "$status" = "$expected" ] || problem="exit status $status, expected $expected"
    say_verdict "$1" "$json" "$tmp/err" "$problem"
}

# Evaluates a list of kernels, AT_A_TIME processes in parallel, each with all kernels of one task and
# precision in a shuffled order, so that hostile kernels come before honest ones. The checks come in the
# order of the list.
check_verdicts() { # AT_A_TIME FILE...
    local workers=$1 w least i k one task expect most says never line precision
    shift
    local files=("$@") order mine paths jsons counts=() tasks=()
    local -A kernels=()
    readarray -t order < <(printf '%s\n' "${!files[@]}" | shuf --random-source=<(yes mixed))
    for i in "${order[@]}"; do read_fields "${files[i]}"; kernels[$task@$precision]+="$i "; done
    # A worker has whole tasks: those with the most kernels first, each to the worker with the fewest.
    for ((w = 0; w < workers; w++)); do counts[w]=0 tasks[w]=; done
    for one in $(for task in "${!kernels[@]}"; do echo "$(wc -w <<<"${kernels[$task]}") $task"; done |
        sort -k1,1rn -k2 | cut -d' ' -f2); do
        least=0
        for ((w = 1; w < workers; w++)); do [ "${counts[w]}" -ge "${counts[least]}" ] || least=$w; done
        tasks[least]+="$one "
        counts[least]=$((counts[least] + $(wc -w <<<"${kernels[$one]}")))
    done
    for ((w = 0; w < workers; w++)); do
        for one in ${tasks[w]}; do
            read -ra mine <<<"${kernels[$one]}"
            paths=()
            for i in "${mine[@]}"; do paths+=("${files[i]}"); done
            readarray -t jsons \
                < <(PRECISION=${one#*@} "$BIN/quern-eval" --task "${one%@*}" --device "$DEVICE" \
                --json "${paths[@]}" 2>"$tmp/err.${one//\//_}")
            for k in "${!mine[@]}"; do
                printf '%s\n' "${jsons[k]-}" >"$tmp/json.${mine[k]}"
                ln "$tmp/err.${one//\//_}" "$tmp/err.${mine[k]}"
            done
        done &
    done
    wait
    for i in "${!files[@]}"; do say_verdict "${files[i]}" "$(<"$tmp/json.$i")" "$tmp/err.$i"; done
}
