#!/usr/bin/env bash
# Makes a table anew with ns-2: tables.sh SCRIPT TABLE SEEDS [PROCESSES], e.g. tables.sh dumbbell.tcl aimd 16 2. Its rows and columns stay;
# each number becomes the mean over the seeds 1 to SEEDS, and `X_std` their sample standard deviation. A number without `X_std` is left out of
# the means: `tfrc_over_tcp` is the ratio of the two means, `send_jitter_s` the row's own.
set -euo pipefail
cd "$(dirname "$0")"
script=$1 table=$2 seeds=$3 processes=${4:-1}
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
old=$work/old.csv
tr -d '\r' < "$table.csv" > "$old"
IFS=, read -ra names < "$old"
row=0
tail -n +2 "$old" | while IFS=, read -ra values; do
    row=$((row + 1))
    places=()
    for i in "${!names[@]}"; do
        [ "${names[i]}" = seeds ] && break
        places+=("${names[i]}=${values[i]}")
    done
    for i in "${!names[@]}"; do
        if [ "${names[i]}" = send_jitter_s ]; then places+=("send_jitter_s=${values[i]}"); fi
    done
    for seed in $(seq "$seeds"); do printf '%s\n' "$work/$row.$seed $table $seed ${places[*]}"; done
done | xargs -P "$processes" -d '\n' -I{} bash -c 'set -- $1; out=$1; shift; ns '"$script"' "$@" > "$out"' - {}
row=0
head -n 1 "$old" > "$work/new"
tail -n +2 "$old" | while IFS= read -r line; do
    row=$((row + 1))
    cat "$work/$row".* | awk -F= -v OFS=, -v head="$(head -n 1 "$old")" -v line="$line" -v seeds="$seeds" '
        { n[$1]++; value[$1, n[$1]] = $2; sum[$1] += $2 }
        END {
            columns = split(head, name, ","); split(line, cell, ",")
            for (i = 1; i <= columns; i++) {
                x = name[i]
                if (x == "seeds") { measured = 1; cell[i] = seeds; continue }
                if (!measured) continue
                if (sub(/_std$/, "", x)) {
                    if (n[x] != seeds) { print "no " x > "/dev/stderr"; exit 1 }
                    mean[x] = sum[x] / seeds; squares = 0
                    for (k = 1; k <= seeds; k++) squares += (value[x, k] - mean[x]) ^ 2
                    cell[i - 1] = sprintf("%.6g", mean[x]); cell[i] = sprintf("%.6g", sqrt(squares / (seeds - 1)))
                } else if (x == "tfrc_over_tcp") cell[i] = sprintf("%.6g", mean["tfrc_norm"] / mean["tcp_norm"])
            }
            for (i = 1; i <= columns; i++) printf "%s%s", cell[i], i < columns ? "," : "\n"
        }' >> "$work/new"
done
cp "$work/new" "$table.csv"
