# SPDX-License-Identifier: GPL-2.0-only
# ns per lookup over flows, by cache size; data and out are given by draw.
set datafile separator ","
set terminal svg size 900,620 font "sans,11"
set output out
set logscale y
set xlabel "flows"
set ylabel "ns"
set key top left
set grid ytics
row(family, tuples, cache) = sprintf("< awk -F, '$1 == %d && $3 == %d && $4 == %d && $5 == 0' %s", \
	family, tuples, cache, data)
set multiplot layout 2,2
do for [family in "4 6"] {
	do for [tuples in "1 16"] {
		set title sprintf("IPv%s, %s mask classes", family, tuples)
		plot for [cache in "0 1024 4096 16384"] row(family + 0, tuples + 0, cache + 0) \
			using 0:6:xtic(2) with linespoints title (cache eq "0" ? "no cache" : cache." entries")
	}
}
