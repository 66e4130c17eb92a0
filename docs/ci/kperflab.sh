#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Submits a series to a lab, waits, and leaves kperflab.md and kperflab.junit.xml. Copy it into your tree; needs curl, git, jq.
#   kperflab.sh BASE..TIP | SERIES.mbox  [DESCRIPTION.json]
# KPERFLAB_SERVER, KPERFLAB_TOKEN   the lab's address; a token with the scopes read and submit, from your account there
# KPERFLAB_MINUTES                  how long to wait, 600 if not given
# Exit code: 0 no regression, 1 a regression, 2 inconclusive, 3 the lab failed or took too long, 64 the input was wrong.
set -eu
series=${1:?BASE..TIP or a mbox} description=${2:-kperflab.json}
umask 077
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
say() { echo "kperflab: $*" >&2; }

# The token is in a file: the arguments of a process can be read by others.
echo "header = \"Authorization: Token ${KPERFLAB_TOKEN:?}\"" >"$scratch/token"
api() { # api PATH OUTPUT [curl's options]: prints the status
    path=$1 output=$2; shift 2
    curl -sS -K "$scratch/token" -m 120 --retry 6 -o "$output" -w '%{http_code}' "$@" "${KPERFLAB_SERVER:?}/api/v1/$path" || exit 3
}

case $series in
*..*) git format-patch -q --stdout "$series" >"$scratch/series.mbox" || exit 64 ;;
*) cp "$series" "$scratch/series.mbox" || exit 64 ;;
esac
jq --rawfile text "$scratch/series.mbox" '. + {patches: [{name: "series", text: $text}]}' "$description" >"$scratch/body.json" || exit 64
key=$(git hash-object --stdin <"$scratch/body.json")-${GITHUB_RUN_ID:-${CI_PIPELINE_ID:-$$}}-${GITHUB_RUN_ATTEMPT:-1}
end=$(($(date +%s) + ${KPERFLAB_MINUTES:-600} * 60))
while :; do
    status=$(api experiments/ "$scratch/answer" -H 'Content-Type: application/json' -H "Idempotency-Key: $key" --data-binary "@$scratch/body.json")
    # 409: the lab still works on the first request, whose answer was lost.
    [ "$status" = 409 ] && [ "$(date +%s)" -lt "$end" ] || break
    sleep "${KPERFLAB_POLL:-5}"
done
case $status in
2??) ;;
409 | 429 | 5??) say "HTTP $status"; cat "$scratch/answer" >&2; exit 3 ;;
*) say "$(jq -r '[.detail, (.errors[]? | .detail)] | unique | join("; ")' "$scratch/answer" || cat "$scratch/answer")"; exit 64 ;;
esac
# 202: a worker gets the tree first, and says here how that goes.
while [ "$status" = 202 ]; do
    fetch=$(jq -r .id "$scratch/answer")
    sleep "${KPERFLAB_POLL:-5}"
    [ "$(api "fetches/$fetch/" "$scratch/answer")" = 200 ] || { cat "$scratch/answer" >&2; exit 3; }
    case $(jq -r .state "$scratch/answer") in
    waiting | running) continue ;;
    done) ;;
    *) say "$(jq -r '.problem.detail // "the tree was not fetched"' "$scratch/answer")"
       [ "$(jq -r '.problem.status // 500' "$scratch/answer")" -ge 500 ] && exit 3; exit 64 ;;
    esac
    status=$(api "experiments/$(jq -r .experiment "$scratch/answer")/" "$scratch/answer")
done
id=$(jq -r .id "$scratch/answer")
say "experiment $id: $(jq -r .page "$scratch/answer")"

said=
while :; do
    now=$(jq -r '"\(.state), \(.progress.percent) %"' "$scratch/answer")
    [ "$now" = "$said" ] || say "$now"
    said=$now
    code=$(jq -r '.exit_code // "open"' "$scratch/answer")
    [ "$code" = open ] || break
    [ "$(date +%s)" -lt "$end" ] || { say "it takes too long; it goes on without us"; exit 3; }
    sleep "${KPERFLAB_POLL:-15}"
    [ "$(api "experiments/$id/" "$scratch/answer")" = 200 ] || { cat "$scratch/answer" >&2; exit 3; }
done
umask 022
api "experiments/$id/export/markdown/" kperflab.md >/dev/null
api "experiments/$id/export/junit/" kperflab.junit.xml >/dev/null
cat kperflab.md
exit "$code"
