# One TCP over 200 Mbit/s, 50 ms one way, that loses each data packet with the same probability behind the transmitter:
#   ns tcp_loss.tcl VARIANT(Reno|Newreno|Sack1) P SEED
# Prints a line of tcp_loss.csv for the seed; tcp_loss.sh makes the table. Settings as in README.md; counted from 100 s on, with slow start up to 64 packets.
set variant [lindex $argv 0]
set p [lindex $argv 1]
set seed [lindex $argv 2]
set begin 100.0
# A hundred losses at least; longer where timeouts make the rate vary.
set seconds [expr {$p >= 0.05 ? 5000.0 : max(500.0, 100.0 / (13.1 * sqrt($p)))}]
set end [expr {$begin + $seconds}]
$defaultRNG seed $seed

Agent/TCP set window_ 100000
Agent/TCP set tcpTick_ 0.01
Agent/TCP set minrto_ 0.2
Agent/TCP set maxrto_ 60
Agent/TCP set rtxcur_init_ 3
Agent/TCP set windowInit_ 2
Agent/TCP set windowOption_ 1
Agent/TCP set overhead_ 0
Agent/TCP set maxburst_ 0
Agent/TCP set timestamps_ false
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1000

set ns [new Simulator]
$ns use-scheduler Heap
set a [$ns node]
set m [$ns node]
set b [$ns node]
$ns simplex-link $a $m 200Mb 50ms DropTail
$ns simplex-link $m $a 200Mb 50ms DropTail
$ns simplex-link $m $b 10000Mb 0ms DropTail
$ns simplex-link $b $m 10000Mb 0ms DropTail
foreach {from to} [list $a $m $m $a $m $b $b $m] { $ns queue-limit $from $to 100000 }

set losses [new RNG]
$losses seed [expr {$seed * 7919 + 13}]
set uniform [new RandomVariable/Uniform]
$uniform use-rng $losses
set error [new ErrorModel]
$error set rate_ $p
$error unit pkt
$error ranvar $uniform
$error drop-target [new Agent/Null]
$ns lossmodel $error $m $b

set tcp [new Agent/TCP/$variant]
set sink [new Agent/TCPSink[expr {$variant eq "Sack1" ? "/Sack1" : ""}]]
$ns attach-agent $a $tcp
$ns attach-agent $b $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0.0 "$ftp start"
$ns at 0.001 "$tcp set ssthresh_ 64"

# Means over samples, while there is an RTT estimate.
set samples 0
foreach name {rtt rto cwnd} { set sum($name) 0.0 }
proc sample {} {
    global ns tcp samples sum
    set srtt [expr {[$tcp set srtt_] / 8.0 * 0.01}]
    if {$srtt > 0} {
        incr samples
        set rto [expr {$srtt + 4 * [$tcp set rttvar_] / 4.0 * 0.01}]
        set sum(rtt) [expr {$sum(rtt) + $srtt}]
        set sum(rto) [expr {$sum(rto) + max(0.2, $rto)}]
        set sum(cwnd) [expr {$sum(cwnd) + [$tcp set cwnd_]}]
    }
    $ns at [expr {[$ns now] + 0.5}] sample
}
proc counts {} {
    global tcp
    return [list [$tcp set ndatapack_] [$tcp set ack_] [$tcp set ncwndcuts_] [$tcp set nrexmit_]]
}
$ns at $begin "set before \[counts\]; sample"
$ns at $end {
    foreach name {sent acked cuts timeouts} now [counts] was $before { set $name [expr {double($now - $was)}] }
    set mean {}
    foreach name {rtt rto cwnd} { lappend mean [format %.6g [expr {$sum($name) / $samples}]] }
    set shown [list $variant $p $seed]
    foreach x [list [expr {$sent / $seconds}] [expr {$acked / $seconds}] [expr {$cuts / $sent}] \
                   [expr {$cuts > 0 ? $timeouts / $cuts : 0}]] {
        lappend shown [format %.6g $x]
    }
    puts [join [concat $shown $mean] ,]
    exit 0
}
$ns run
