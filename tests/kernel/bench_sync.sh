#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd bench sync: its rows, what they promise, and that nothing is left behind. No times: they are the machine's.
. tests/lib/tap.sh
mkdir "$T/tmp"
TMPDIR=$T/tmp "$X" bench sync --policies 300 --json >"$T/rows" 2>"$T/err" &
bench=$!
wait $bench
equal "it ends well" "$? $(cat "$T/err")" "0 "
equal "one row, with the keys of the contract first" "$(field 'len(d), " ".join(list(d[0])[:9])' <"$T/rows")" \
	"(1, 'policies insert_s_off insert_s_on load_s mirrored lag_p50_us lag_p99_us lost redumps')"
equal "every policy is in the maps, no event was lost" \
	"$(field 'd[0]["policies"], d[0]["mirrored"], d[0]["lost"], d[0]["redumps"]' <"$T/rows")" "(300, 300, 0, 0)"
equal "all was measured" "$(field 'all(d[0][k] > 0 for k in ("insert_s_off", "insert_s_on", "load_s", "lag_p50_us", "churn_lag_p50_us", "churn_rate")) and d[0]["lag_p50_us"] <= d[0]["lag_p99_us"]' <"$T/rows")" True
cp "$T/rows" "$T/sync"
equal "nothing is left behind" "$(ls "$T/tmp")$(ls "$PINS" | grep -- "-$bench-")" ""
"$X" bench dump --policies 2000 --json >"$T/rows" 2>"$T/err"
equal "bench dump ends well" "$? $(cat "$T/err")" "0 "
equal "... with all of its keys" "$(field 'len(d), " ".join(list(d[0])[:5])' <"$T/rows")" \
	"(1, 'policies bare_dump_s dump_build_s ratio user_bytes_per_policy')"
equal "... and all was measured" \
	"$(field 'all(d[0][k] > 0 for k in d[0]) and d[0]["dump_build_s"] > d[0]["bare_dump_s"]' <"$T/rows")" True
equal "listeners were measured too" "$(field '"slowdown_deaf" in d[0] and "slowdown_reader" in d[0]' <"$T/sync")" True
fails "no such option" 2 "unknown option" "$X" bench sync --shape x
fails "no words" 2 "takes no words" "$X" bench sync now
fails "too many" 2 "give a number" "$X" bench sync --policies 2000000
done_testing
