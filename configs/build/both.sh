#!/usr/bin/env bash
# Both directions at the same time on one GPU, from the cleaned corpora to the students.
#   configs/build/both.sh RESULTS [RECIPE_FOLDER]     (the environment variable ATTENDO names the command)
# The same command goes on after a kill. RESULTS gets a pack as soon as it exists: of the texts that the models have
# translated, of the student in int8, of the translated test set; and the logs. Nothing here needs CTranslate2.
set -uo pipefail
results=${1:?usage: both.sh RESULTS [RECIPE_FOLDER]}
recipes=${2:-$(dirname "$0")}
attendo=${ATTENDO:-attendo}
directions="ko-en en-ko"
mkdir -p "$results"
if command -v nvidia-cuda-mps-control > /dev/null; then nvidia-cuda-mps-control -d 2> /dev/null || true; fi

note() { echo "$(date +%T) $*" | tee -a "$results/times.log"; }

build() { # DIRECTION OPTION...
    local direction=$1; shift
    note "$direction: $*"
    $attendo build "$recipes/$direction.toml" "$@" >> "$results/$direction.log" 2>&1
    local code=$?
    [ $code = 0 ] || note "$direction: $* failed with exit code $code, see $results/$direction.log"
    return $code
}

pack() { # DIRECTION NAME OPTION...
    local direction=$1 name=$2; shift 2
    [ -e "$results/$direction.$name" ] || build "$direction" "$@" --pack "$results/$direction.$name"
}

go_on() { # DIRECTION
    build "$1" --until forward-translate || return
    pack "$1" texts --from back-translate --until forward-translate &
    build "$1" --until int8 || return
    pack "$1" student --only int8
    build "$1" --until translate-test || return
    pack "$1" test --only translate-test
    wait
}

# Each direction translates back with the forward model of the other one.
for direction in $directions; do build "$direction" --until forward & done
wait
for direction in $directions; do go_on "$direction" & done
wait
note "end: $(ls "$results" | tr '\n' ' ')"
for direction in $directions; do [ -d "$results/$direction.test" ] || exit 1; done
