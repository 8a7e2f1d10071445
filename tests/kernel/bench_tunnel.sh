#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# xspd bench tunnel: its words, its rows, and that nothing is left behind. Real tunnels are for
# tests/vm; where there is no ESP, packets go the same way without.
. tests/lib/tap.sh
fails "no tunnels" 2 "bench: tunnel: --tunnels 0: give numbers from 1" "$X" bench tunnel --tunnels 0
fails "no such set-up" 2 "bench: tunnel: --setups vti: give plain, policy" "$X" bench tunnel --setups vti
fails "no words" 2 "takes no words" "$X" bench tunnel now
"$X" bench tunnel --setups plain --tunnels 2 --rounds 2 --sample-ms 20 --sas 0 --json >"$T/rows" 2>"$T/err" &
bench=$!
wait $bench
equal "it ends well" $? 0
equal "one row, with all it promises" "$(field '[(r["setup"], r["tunnels"], r["rounds"],
	all(r[k]["least"] > 0 and r[k]["least"] <= r[k]["median"] <= r[k]["most"]
	for k in ("rr_per_s", "tcp_bits_per_s", "udp_per_s"))) for r in d["rows"]], d["sas"]' <"$T/rows")" \
	"([('plain', 0, 2, True)], [])"
equal "its server is gone" "$(pgrep -P $bench)" ""
if ip xfrm state add src 127.0.0.1 dst 127.0.0.2 proto esp spi 1 enc 'ecb(cipher_null)' '' 2>/dev/null; then
	ip xfrm state delete src 127.0.0.1 dst 127.0.0.2 proto esp spi 1
	check "policies and marks" "$X" bench tunnel --setups policy,marks --tunnels 3 --rounds 1 --sample-ms 20 --no-streams --sas 20
else
	fails "without ESP it says what failed" 1 "bench: tunnel: SAs and policies: " \
		"$X" bench tunnel --setups policy --tunnels 3 --rounds 1 --sample-ms 20 --no-streams --sas 0
fi
done_testing
