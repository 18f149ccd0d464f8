# One seed of a row of mixed_fairness.csv or mixed_fairness_jitter.csv:
#   ns mixed.tcl TABLE SEED NAME=VALUE...
# where NAME=VALUE are the row's first columns. Prints NAME=VALUE for each measured column; tables.sh makes the tables. Settings as in README.md.
set table [lindex $argv 0]
set seed [lindex $argv 1]
foreach pair [lrange $argv 2 end] {
    set cut [string first = $pair]
    set row([string range $pair 0 [expr {$cut - 1}]]) [string range $pair [expr {$cut + 1}] end]
}
set begin 50.0
set end 450.0

Agent/TCP set window_ 100000
Agent/TCP set tcpTick_ 0.01
Agent/TCP set minrto_ 0.2
Agent/TCP set maxrto_ 60
Agent/TCP set rtxcur_init_ 3
Agent/TCP set windowInit_ 2
Agent/TCP set windowOption_ 1
# A service time.
Agent/TCP set overhead_ [expr {$table eq "mixed_fairness_jitter" ? 0.00077 : 0}]
Agent/TCP set maxburst_ 0
Agent/TCP set timestamps_ false
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1000
Agent/RAP set packetSize_ 1000
Agent/RAP set alpha_ 1
Agent/RAP set beta_ 0.5
Agent/RAP set delta_ 0.5
Agent/RAP set mu_ 1.2
Agent/RAP set phi_ 4
Agent/RAP set overhead_ 0
Agent/RAP set dpthresh_ 50
Agent/RAP set useFineGrain_ 0
Queue set limit_ 10000

set ns [new Simulator]
$ns use-scheduler Heap
ns-random $seed
set places [new RNG]
$places seed [expr {$seed * 7919 + 1}]

set a [$ns node]
set b [$ns node]
$ns duplex-link $a $b 10.4Mb 45ms DropTail
$ns queue-limit $a $b $row(k_pkts)
set neck [$ns monitor-queue $a $b ""]

# Flows 0 to n_x - 1 are X, behind access links that lose; the others are Y.
set n [expr {$row(n_x) + $row(n_y)}]
for {set i 0} {$i < $n} {incr i} {
    set is_x [expr {$i < $row(n_x)}]
    set protocol [expr {$is_x ? $row(x_protocol) : $row(y_protocol)}]
    set is_tcp($i) [expr {$protocol ne "RAP"}]
    set rtt [expr {$is_x ? $row(rtt_x_s) : $row(rtt_y_s)}]
    set source [$ns node]
    set target [$ns node]
    # One way: the access link, 45 ms, and nothing behind.
    set delay [expr {$rtt / 2.0 - 0.045 + 0.001 * ([$places uniform 0.0 1.0] - 0.5)}]
    $ns duplex-link $source $a 100Mb $delay DropTail
    $ns duplex-link $b $target 100Mb 0ms DropTail
    set got($i) [$ns monitor-queue $b $target ""]
    if {$is_x && $row(p_loss_x) > 0} {
        set losses [new RNG]
        $losses seed [expr {$seed * 7919 + 13 + $i}]
        set draw [new RandomVariable/Uniform]
        $draw use-rng $losses
        set error [new ErrorModel]
        $error set rate_ $row(p_loss_x)
        $error unit pkt
        $error ranvar $draw
        $error drop-target [new Agent/Null]
        $ns lossmodel $error $source $a
    }
    if {$is_tcp($i)} {
        set agent [new Agent/TCP/$protocol]
        set sink($i) [new Agent/TCPSink[expr {$protocol eq "Sack1" ? "/Sack1" : ""}]]
    } else {
        set agent [new Agent/RAP]
        set sink($i) [new Agent/RAP]
    }
    $ns attach-agent $source $agent
    $ns attach-agent $target $sink($i)
    $ns connect $agent $sink($i)
    set at [$places uniform 0.0 1.0]
    if {$is_tcp($i)} {
        set ftp [new Application/FTP]
        $ftp attach-agent $agent
        $ns at $at "$ftp start"
    } else {
        $ns at $at "$agent start"
    }
}

# Packets at the receiver: in order for TCP, once for RAP, which does not retransmit.
proc packets {i} {
    global got sink is_tcp
    return [expr {$is_tcp($i) ? [$sink($i) set bytes_] / 1000.0 : double([$got($i) set pdepartures_])}]
}
proc counts {} {
    global n neck
    set all [list [$neck set pdrops_] [$neck set parrivals_]]
    for {set i 0} {$i < $n} {incr i} { lappend all [packets $i] }
    return $all
}
proc jain {rates} {
    set sum 0.0
    set squares 0.0
    foreach x $rates {
        set sum [expr {$sum + $x}]
        set squares [expr {$squares + $x * $x}]
    }
    return [expr {$sum * $sum / ([llength $rates] * $squares)}]
}
proc mean {list} { return [expr {double([expr [join $list +]]) / [llength $list]}] }
proc show {name value} { puts "$name=[format %.9g $value]" }
proc finish {} {
    global row n before begin end
    set now {}
    foreach is [counts] was $before { lappend now [expr {$is - $was}] }
    set rates {}
    foreach packets [lrange $now 2 end] { lappend rates [expr {$packets / ($end - $begin)}] }
    set x [mean [lrange $rates 0 [expr {$row(n_x) - 1}]]]
    set y [mean [lrange $rates $row(n_x) end]]
    set means {}
    for {set i 0} {$i < $n} {incr i} { lappend means [expr {$i < $row(n_x) ? $x : $y}] }
    show x_perflow_pps $x
    show y_perflow_pps $y
    show jain_all_flows [jain $rates]
    show jain_group_means [jain $means]
    show queue_drop_frac [expr {double([lindex $now 0]) / [lindex $now 1]}]
    exit 0
}
$ns at $begin "set before \[counts\]"
$ns at $end finish
$ns run
