# ns-2's half of `bench/run`: the same work as crates/sim/examples/bench_tcp.rs.
# ns ns2.tcl db|sat [seed] [seconds] [count]
# With `count` it also counts the packets through the bottleneck. That costs time (a monitor on the
# queue), so timed runs go without; a run repeats exactly for a seed, so the counts hold for both.
#
# Common: NewReno, every segment acknowledged, 1,000 B on the wire (40 B acknowledgements), initial
# window 2, starts evenly over the first second, 3 hops each way, access delay 1 ms on each side.

# Only the headers in use: every packet of ns-2 carries all headers that are on.
remove-all-packet-headers
add-packet-header IP TCP Flags

set case [lindex $argv 0]
set seed [expr {[llength $argv] > 1 ? [lindex $argv 1] : 1}]
switch $case {
    db  { set n 100; set rate 100Mb;  set delay 48ms;  set queue 1000; set loss 0;     set access 1000Mb; set end 100 }
    sat { set n 10;  set rate 10.4Mb; set delay 273ms; set queue 50;   set loss 0.001; set access 100Mb;  set end 1000 }
    default { puts stderr "usage: ns ns2.tcl db|sat \[seed\] \[seconds\]"; exit 2 }
}
if {[llength $argv] > 2} { set end [lindex $argv 2] }

set ns [new Simulator]
ns-random $seed

Agent/TCP set packetSize_ 1000
Agent/TCP set useHeaders_ false
Agent/TCP set window_ 100000
Agent/TCP set windowInit_ 2
Agent/TCP set tcpTick_ 0.01
Agent/TCP set minrto_ 0.2
Agent/TCP set maxrto_ 60
Agent/TCP set rtxcur_init_ 3
Agent/TCP set timestamps_ false
Queue set limit_ 10000

set r1 [$ns node]
set r2 [$ns node]
$ns duplex-link $r1 $r2 $rate $delay DropTail
$ns queue-limit $r1 $r2 $queue
$ns queue-limit $r2 $r1 $queue
if {$loss > 0} {
    set rng [new RNG]
    $rng seed $seed
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $rng
    set error [new ErrorModel]
    $error unit pkt
    $error set rate_ $loss
    $error ranvar $uniform
    $error drop-target [new Agent/Null]
    # After the transmitter: a lost packet has used the link.
    $ns link-lossmodel $error $r1 $r2
}
for {set i 0} {$i < $n} {incr i} {
    set src($i) [$ns node]
    set dst($i) [$ns node]
    $ns duplex-link $src($i) $r1 $access 1ms DropTail
    $ns duplex-link $r2 $dst($i) $access 1ms DropTail
    set tcp($i) [new Agent/TCP/Newreno]
    set sink($i) [new Agent/TCPSink]
    $ns attach-agent $src($i) $tcp($i)
    $ns attach-agent $dst($i) $sink($i)
    $ns connect $tcp($i) $sink($i)
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $tcp($i)
    $ns at [expr {double($i) / $n}] "$ftp($i) start"
}

set count [expr {[lindex $argv 3] eq "count"}]
if {$count} {
    set forward [$ns monitor-queue $r1 $r2 ""]
    set back [$ns monitor-queue $r2 $r1 ""]
}
# Peak resident memory of this process; a parent cannot tell, it would count its own share of the fork.
proc peak_kb {} {
    set file [open /proc/self/status]
    regexp {VmHWM:\s+(\d+)} [read $file] -> kb
    close $file
    return $kb
}
$ns at $end finish
proc finish {} {
    global forward back case n tcp count
    puts -nonewline "peak_kb=[peak_kb] "
    if {!$count} { puts ""; exit 0 }
    set sent 0
    set again 0
    for {set i 0} {$i < $n} {incr i} {
        incr sent [$tcp($i) set ndatapack_]
        incr again [$tcp($i) set nrexmitpack_]
    }
    puts "case=$case forward=[$forward set pdepartures_] back=[$back set pdepartures_]\
        drops=[$forward set pdrops_] sent=$sent retransmitted=[expr {double($again) / $sent}]"
    exit 0
}
$ns run
