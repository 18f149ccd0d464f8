//! SRT through the relay, from the listener to the caller: the direction in which the relay sends far more to an
//! address than has come from there. Skipped where `srt-live-transmit` is not installed (`packages/live.txt`).

use fairpace_emu::relay::{Relay, RelayConfig};
use fairpace_net::Clock;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Ended with the test, however that ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    fn srt(from: &str, to: &str) -> Option<Program> {
        let mut command = Command::new("srt-live-transmit");
        command.args(["-q", "-chunk:1316", from, to]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok().map(Program)
    }

    /// How it has ended, if it has.
    fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.0.try_wait().unwrap()
    }
}

fn free_port() -> u16 {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

#[test]
fn srt_flows_from_the_listener_behind_the_relay_to_the_caller_before_it() {
    let (source, listener) = (free_port(), free_port());
    let screen = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    screen.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let screen_port = screen.local_addr().unwrap().port();
    let config = RelayConfig::new(0, SocketAddr::from((Ipv4Addr::LOCALHOST, listener)));
    let relay = Relay::open(config, Clock::start()).unwrap();
    let entrance = relay.address().unwrap().port();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let running = scope.spawn(|| relay.run(|_| {}, &stop).unwrap());
        let from = Program::srt(&format!("udp://:{source}"), &format!("srt://:{listener}?mode=listener&latency=50"));
        let Some(mut from) = from else {
            eprintln!("skipped: srt-live-transmit is not installed");
            stop.store(true, Ordering::Relaxed);
            return;
        };
        let caller = format!("srt://127.0.0.1:{entrance}?mode=caller&latency=50");
        let mut to = Program::srt(&caller, &format!("udp://127.0.0.1:{screen_port}")).unwrap();
        let camera = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut shown = 0;
        let mut packet = [0; 2_000];
        // 1,316 B each 5 ms are 2 Mbit/s; the handshake alone would pay for one such packet.
        for _ in 0..4_000 {
            if shown >= 400 || from.ended().is_some() {
                break;
            }
            let _ = camera.send_to(&[0x47; 1_316], (Ipv4Addr::LOCALHOST, source));
            while screen.recv(&mut packet).is_ok() {
                shown += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let report = running.join().unwrap();
        let (clients, withheld) = (report.clients, report.withheld);
        let ended = (from.ended(), to.ended());
        assert!(
            shown >= 400,
            "{shown} packets shown, {clients} clients, {withheld:?} withheld; the listener and the caller have ended: {ended:?}"
        );
        assert_eq!((clients, withheld), (1, 0));
    });
}
