# SPDX-License-Identifier: GPL-2.0-only
# Traffic of one tunnel over how many there are, one line a setup; data and out are given by draw.
set datafile separator ","
set terminal svg size 1000,420 font "sans,11"
set output out
set logscale xy
set xlabel "tunnels" offset 0,0.5
set key below maxcols 2
set grid ytics
set bmargin 8
row(setup) = sprintf("< awk -F, '$1 == \"%s\"' %s", setup, data)
set multiplot layout 1,3
do for [at = 5:7] {
	set title at == 5 ? "UDP requests a second" : at == 6 ? "TCP, bits a second" : "UDP, packets a second"
	plot row("policy") using 2:at with linespoints title "policies", \
	     row("interfaces") using 2:at with linespoints title "an interface a tunnel", \
	     row("marks") using 2:at with linespoints title "marks on one list", \
	     row("steer") using 2:at with linespoints title "steer, one interface"
}
