//! Tests with names, one after another in one process: it has entered namespaces, which only a process with one thread may.

use fairpace_emu::{EmuError, Sandbox, Testbed};

/// A test.
pub(crate) type Test = fn(&Sandbox);

/// Runs those whose names have the command line's word; says why none runs where the first test bed shows that there is no TUN device.
pub(crate) fn run(sandbox: &Sandbox, first: Result<Testbed, EmuError>, tests: &[(&str, Test)]) {
    match first {
        Ok(_) => {}
        Err(EmuError::NoTun(e)) => return println!("skipped: no TUN device: {e}"),
        Err(e) => panic!("{e}"),
    }
    let wanted = std::env::args().nth(1);
    for (name, test) in tests {
        if wanted.as_deref().is_none_or(|wanted| name.contains(wanted)) {
            test(sandbox);
            println!("{name}: ok");
        }
    }
}
