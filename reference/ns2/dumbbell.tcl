# One seed of a row of tfrc_dumbbell_lossy.csv, tfrc_dumbbell_variants.csv, clean_dumbbell.csv, clean_dumbbell_jitter.csv or aimd.csv:
#   ns dumbbell.tcl TABLE SEED NAME=VALUE...
# where NAME=VALUE are the row's first columns. Prints NAME=VALUE for each measured column; tables.sh makes the tables. Settings as in README.md.
set table [lindex $argv 0]
set seed [lindex $argv 1]
foreach pair [lrange $argv 2 end] {
    set cut [string first = $pair]
    set row([string range $pair 0 [expr {$cut - 1}]]) [string range $pair [expr {$cut + 1}] end]
}

# All tables: RED or drop-tail, no error, TCP Reno beside TFRC.
array set set_ {queue RED error_position after error_pct 0 tcp Reno overhead 0 minrto 0.2 tick 0.01}
array set set_ [array get row]
switch $table {
    tfrc_dumbbell_lossy - tfrc_dumbbell_variants {
        array set set_ {n_each 20 bottleneck_bps 200000 packet 256 delay 0.05 side_bps 10e6 side_delay 0.003 buffer_pkts 54 red_min 5 red_max 27 \
                            window 1000 begin 0 end 250}
        if {[info exists row(variant)]} {
            switch $row(variant) {
                send_jitter_10ms { set set_(overhead) 0.01 }
                minrto1s_tick100ms { set set_(minrto) 1; set set_(tick) 0.1 }
                packet512 { array set set_ {packet 512 buffer_pkts 27 red_max 14} }
            }
        }
    }
    clean_dumbbell - clean_dumbbell_jitter {
        array set set_ {packet 1000 delay 0.05 side_bps 100e6 side_delay 0.001 buffer_pkts 250 red_min 25 red_max 125 window 100000 begin 20 end 140}
        if {[info exists row(send_jitter_s)]} { set set_(overhead) $row(send_jitter_s) }
    }
    aimd { array set set_ {packet 1000 delay 0.04 side_bps 100e6 side_delay 0.0025 window 100000 begin 20 end 320} }
    default { puts stderr "no table `$table'"; exit 2 }
}
set n $set_(n_each)
set error_rate [expr {$set_(error_pct) / 100.0}]

Agent/TCP set window_ $set_(window)
Agent/TCP set tcpTick_ $set_(tick)
Agent/TCP set minrto_ $set_(minrto)
Agent/TCP set maxrto_ 60
Agent/TCP set rtxcur_init_ 3
Agent/TCP set windowInit_ 2
Agent/TCP set windowOption_ 1
Agent/TCP set overhead_ $set_(overhead)
Agent/TCP set maxburst_ 0
Agent/TCP set timestamps_ false
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ $set_(packet)
Agent/TFRC set packetSize_ $set_(packet)
Agent/TFRC set useHeaders_ false
Agent/TFRC set overhead_ $set_(overhead)
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set gentle_ true
Queue/RED set wait_ true
Queue/RED set q_weight_ 0.002
Queue/RED set linterm_ 10
Queue/RED set adaptive_ 0
Queue/RED set thresh_ $set_(red_min)
Queue/RED set maxthresh_ $set_(red_max)
Queue/RED set mean_pktsize_ $set_(packet)
Queue set limit_ 10000

set ns [new Simulator]
$ns use-scheduler Heap
ns-random $seed
set places [new RNG]
$places seed [expr {$seed * 7919 + 1}]
proc uniform {below} { global places; return [expr {$below * [$places uniform 0.0 1.0]}] }

# Hop 1 loses before the queue, hop 3 behind the transmitter; both are as good as instantaneous.
foreach name {in a b out} { set $name [$ns node] }
$ns duplex-link $in $a 100000Mb 0ms DropTail
$ns duplex-link $b $out 100000Mb 0ms DropTail
$ns simplex-link $a $b $set_(bottleneck_bps) $set_(delay) $set_(queue)
$ns simplex-link $b $a $set_(bottleneck_bps) $set_(delay) DropTail
$ns queue-limit $a $b $set_(buffer_pkts)
set neck [$ns monitor-queue $a $b ""]
if {$error_rate > 0} {
    set losses [new RNG]
    $losses seed [expr {$seed * 7919 + 13}]
    set draw [new RandomVariable/Uniform]
    $draw use-rng $losses
    set error [new ErrorModel]
    $error set rate_ $error_rate
    $error unit pkt
    $error ranvar $draw
    $error drop-target [new Agent/Null]
    if {$set_(error_position) eq "before"} { $ns lossmodel $error $in $a } else { $ns lossmodel $error $b $out }
}

# Flows 0 to n-1 are TCP, the others TFRC, or TCP(alpha, beta).
for {set i 0} {$i < 2 * $n} {incr i} {
    set is_tcp($i) [expr {$i < $n || $table eq "aimd"}]
    set source [$ns node]
    set target [$ns node]
    $ns duplex-link $source $in $set_(side_bps) [uniform $set_(side_delay)] DropTail
    $ns duplex-link $out $target $set_(side_bps) [uniform $set_(side_delay)] DropTail
    set got($i) [$ns monitor-queue $out $target ""]
    set sent($i) [$ns monitor-queue $source $in ""]
    if {$is_tcp($i)} {
        set agent($i) [new Agent/TCP/$set_(tcp)]
        set sink($i) [new Agent/TCPSink[expr {$set_(tcp) eq "Sack1" ? "/Sack1" : ""}]]
    } else {
        set agent($i) [new Agent/TFRC]
        set sink($i) [new Agent/TFRCSink]
    }
    if {$i >= $n && $table eq "aimd"} {
        $agent($i) set increase_num_ $set_(alpha)
        $agent($i) set decrease_num_ $set_(beta)
    }
    $ns attach-agent $source $agent($i)
    $ns attach-agent $target $sink($i)
    $ns connect $agent($i) $sink($i)
    set at [uniform 2.0]
    if {$is_tcp($i)} {
        set ftp [new Application/FTP]
        $ftp attach-agent $agent($i)
        $ns at $at "$ftp start"
    } else {
        $ns at $at "$agent($i) start"
    }
}

# Bytes at each receiver, duplicates included; for cov_1s each second's.
proc bytes {i} { global got; return [$got($i) set bdepartures_] }
proc acked {i} { global sink; return [expr {double([$sink($i) set bytes_])}] }
proc neck_counts {} {
    global neck sent n
    # Lost before the queue: left the sources and did not arrive.
    set lost [expr {-[$neck set parrivals_]}]
    for {set i 0} {$i < 2 * $n} {incr i} { incr lost [$sent($i) set pdepartures_] }
    return [list [$neck set pdrops_] [$neck set parrivals_] [$neck set bdepartures_] $lost]
}
proc tcp_cuts {} {
    global agent n
    set all 0
    set timeouts 0
    for {set i 0} {$i < $n} {incr i} {
        incr all [$agent($i) set ncwndcuts_]
        incr timeouts [$agent($i) set nrexmit_]
    }
    return [list $timeouts $all]
}
proc start_count {} {
    global n first first_acked first_neck first_cuts is_tcp
    for {set i 0} {$i < 2 * $n} {incr i} {
        set first($i) [bytes $i]
        if {$is_tcp($i)} { set first_acked($i) [acked $i] }
    }
    set first_neck [neck_counts]
    set first_cuts [tcp_cuts]
}
proc each_second {} {
    global ns n last bins
    for {set i 0} {$i < 2 * $n} {incr i} {
        set now [bytes $i]
        if {[info exists last($i)]} { lappend bins($i) [expr {$now - $last($i)}] }
        set last($i) $now
    }
    $ns at [expr {[$ns now] + 1.0}] each_second
}
proc mean {list} { return [expr {double([expr [join $list +]]) / [llength $list]}] }
proc spread {list how} {
    set m [mean $list]
    set sum 0.0
    foreach x $list { set sum [expr {$sum + ($x - $m) * ($x - $m)}] }
    set by [expr {$how eq "sample" ? [llength $list] - 1 : [llength $list]}]
    return [expr {$by > 0 ? sqrt($sum / $by) : 0.0}]
}
proc show {name value} { puts "$name=[format %.9g $value]" }
proc finish {} {
    global table n set_ first first_acked first_neck first_cuts bins is_tcp
    set seconds [expr {$set_(end) - $set_(begin)}]
    set fair [expr {$set_(bottleneck_bps) / (2.0 * $n)}]
    set all {}
    for {set i 0} {$i < 2 * $n} {incr i} {
        set norm [expr {([bytes $i] - $first($i)) * 8.0 / $seconds / $fair}]
        set kind [expr {$i < $n ? "tcp" : "other"}]
        lappend norms($kind) $norm
        lappend all $norm
        if {$is_tcp($i)} { lappend goodput($kind) [expr {([acked $i] - $first_acked($i)) * 8.0 / $seconds / $fair}] }
        lappend cov($kind) [expr {[spread $bins($i) all] / ([mean $bins($i)] + 1e-12)}]
    }
    foreach name {drops arrivals out lost} now [neck_counts] was $first_neck { set $name [expr {$now - $was}] }
    foreach name {timeouts cuts} now [tcp_cuts] { set $name [expr {double($now)}] }
    foreach name {late_timeouts late_cuts} now [tcp_cuts] was $first_cuts { set $name [expr {double($now - $was)}] }
    show tcp_norm [mean $norms(tcp)]
    set other [expr {$table eq "aimd" ? "aimd" : "tfrc"}]
    show ${other}_norm [mean $norms(other)]
    show ratio_aimd_over_tcp [expr {[mean $norms(other)] / [mean $norms(tcp)]}]
    show tcp_goodput_norm [mean $goodput(tcp)]
    show tcp_spread_over_flows [spread $norms(tcp) sample]
    show tfrc_spread_over_flows [spread $norms(other) sample]
    show tcp_cov_1s [mean $cov(tcp)]
    show tfrc_cov_1s [mean $cov(other)]
    show queue_drop_frac [expr {double($drops + $lost) / ($arrivals + $lost)}]
    show tcp_timeout_share_of_cuts [expr {$timeouts / max(1.0, $cuts)}]
    show tcp_timeout_share [expr {$timeouts / max(1.0, $cuts)}]
    show late_timeouts $late_timeouts
    show late_cuts $late_cuts
    show timeouts $timeouts
    show cuts $cuts
    show utilisation [expr {$out * 8.0 / $seconds / $set_(bottleneck_bps)}]
    set squares 0.0
    foreach x $all { set squares [expr {$squares + $x * $x}] }
    set sum [expr [join $all +]]
    show jain [expr {$sum * $sum / ([llength $all] * $squares)}]
    exit 0
}
$ns at $set_(begin) start_count
$ns at $set_(begin) each_second
$ns at [expr {$set_(end) + 1e-6}] finish
$ns run
