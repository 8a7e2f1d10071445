# SPDX-License-Identifier: GPL-2.0-only
# Mpps over flows, one line a setup; data and out are given by draw.
set datafile separator ","
set terminal svg size 1000,520 font "sans,11"
set output out
set logscale y
set xlabel "flows"
set ylabel "million packets a second of the gateway's CPU"
set key below maxcols 2
set grid ytics
row(setup, spd) = sprintf("< awk -F, '$1 == \"%s\" && $2 == \"%s\"' %s", setup, spd, data)
set multiplot layout 1,2
set title "delivered, 10,000 policies"
plot row("kernel", "none") using 0:4:xtic(3) with linespoints title "kernel, no policy", \
     row("kernel", "healthy") using 0:4:xtic(3) with linespoints title "kernel, healthy", \
     row("kernel", "cliff") using 0:4:xtic(3) with linespoints title "kernel, pool", \
     row("bypass", "healthy") using 0:4:xtic(3) with linespoints title "bypass, healthy", \
     row("bypass", "cliff") using 0:4:xtic(3) with linespoints title "bypass, pool", \
     row("observe-tc", "healthy") using 0:4:xtic(3) with linespoints title "observe (tc)", \
     row("xdp-redirect", "none") using 0:4:xtic(3) with linespoints dashtype 2 title "XDP floor"
set title "dropped, 10,000 address pairs"
plot row("kernel", "block") using 0:4:xtic(3) with linespoints title "kernel", \
     row("enforce", "block") using 0:4:xtic(3) with linespoints title "enforce", \
     row("nft-prerouting", "block") using 0:4:xtic(3) with linespoints title "nft prerouting", \
     row("nft-ingress", "block") using 0:4:xtic(3) with linespoints title "nft ingress", \
     row("xdp-drop", "block") using 0:4:xtic(3) with linespoints dashtype 2 title "XDP floor"
