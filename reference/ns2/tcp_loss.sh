#!/usr/bin/env bash
# Makes tcp_loss.csv with ns-2: tcp_loss.sh SEEDS > tcp_loss.csv. Half an hour of one processor with four seeds.
set -euo pipefail
cd "$(dirname "$0")"
seeds=${1:-8}
names="sent_pps goodput_pps p_cuts timeout_share rtt_s rto_s cwnd_pkts"
echo "variant,p_loss,seeds$(for n in $names; do printf ',%s,%s_std' "$n" "$n"; done)"
for variant in Reno Newreno Sack1; do
    for p in 0.4 0.3 0.2 0.1 0.03 0.01 0.003 0.001 0.0003 0.0001 0.00003 0.00001; do
        for seed in $(seq "$seeds"); do ns tcp_loss.tcl "$variant" "$p" "$seed"; done | awk -F, -v OFS=, '
            { for (i = 4; i <= NF; i++) { sum[i] += $i; value[NR, i] = $i } head = $1 OFS $2; n = NF }
            END {
                line = head OFS NR
                for (i = 4; i <= n; i++) {
                    mean = sum[i] / NR; squares = 0
                    for (k = 1; k <= NR; k++) squares += (value[k, i] - mean) ^ 2
                    line = line OFS sprintf("%.6g", mean) OFS sprintf("%.6g", sqrt(squares / (NR - 1)))
                }
                print line
            }'
    done
done
