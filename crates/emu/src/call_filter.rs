//! The system calls that a process may still make, by a filter in the kernel (seccomp) that nothing in the process can take off.
//!
//! Two lists, for two kinds of code:
//!
//! - [`CallFilter::Packets`], a list of what is allowed, for our own loops: whatever bytes from the network make of them, they
//!   open no file and no socket, start no program, make no page executable and reach no other process.
//! - [`CallFilter::Plugins`], a list of what is refused, for processes in which GStreamer's plugins run: which calls a decoder, a
//!   driver or a later release makes is not ours to know. No program is started, no other process is touched, no namespace
//!   is made or entered, no raw socket is opened, nothing is mounted or loaded into the kernel, and nothing is typed into the terminal.
//!
//! A refused call fails; the process goes on. Killing the process would protect no better, for a refused call does nothing in either
//! case, and would end a user's run where another libc makes a call that this list has not. A call that is on no list fails by
//! `ENOSYS`, as on an older kernel: a libc then takes the older call that it knows, which it does not after `EPERM`. Calls on the
//! second list fail by `EPERM`, but for `clone3`, whose flags a filter cannot see.
//!
//! Calls of another architecture's numbers (i386 on x86_64) kill the process: nothing of ours makes them.

use crate::EmuError;
use nix::libc::{self, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// A list of system calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallFilter {
    /// Allowed is what a loop over open sockets and files needs.
    Packets,
    /// Refused is what no decoder needs.
    Plugins,
}

impl CallFilter {
    /// Binds every thread of this process, and those that they start, for good; programs could not be given privileges by their files
    /// any more (`no_new_privs`).
    ///
    /// # Errors
    /// [`EmuError::NoCallFilter`] if the kernel has no filters, or does not let this process have one; on a processor other than
    /// x86_64, aarch64 and riscv64.
    pub fn apply(self) -> Result<(), EmuError> {
        let programs = match self {
            CallFilter::Packets => vec![packets()],
            CallFilter::Plugins => plugins(),
        };
        programs.into_iter().try_for_each(|program| seccompiler::apply_filter_all_threads(&program?)).map_err(refused)
    }

    /// Binds this thread, and those that it starts: where others of the process have something else to do.
    ///
    /// # Errors
    /// As [`CallFilter::apply`].
    pub fn apply_to_thread(self) -> Result<(), EmuError> {
        let programs = match self {
            CallFilter::Packets => vec![packets()],
            CallFilter::Plugins => plugins(),
        };
        programs.into_iter().try_for_each(|program| seccompiler::apply_filter(&program?)).map_err(refused)
    }

    /// Whether this system has filters: one that refuses nothing is tried on a thread of its own.
    ///
    /// # Errors
    /// As [`CallFilter::apply`].
    pub fn supported() -> Result<(), EmuError> {
        let nothing = compile(BTreeMap::new(), SeccompAction::Allow, errno(libc::EPERM)).map_err(refused)?;
        let tried = std::thread::spawn(move || seccompiler::apply_filter(&nothing)).join();
        tried.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(refused)
    }
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn refused(e: seccompiler::Error) -> EmuError {
    EmuError::NoCallFilter(match e {
        seccompiler::Error::Prctl(e) | seccompiler::Error::Seccomp(e) => e,
        e => io::Error::other(e.to_string()),
    })
}

const fn errno(code: i32) -> SeccompAction {
    SeccompAction::Errno(code as u32)
}

fn compile(rules: Rules, others: SeccompAction, listed: SeccompAction) -> Result<BpfProgram, seccompiler::Error> {
    let architecture = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, others, listed, architecture)?.try_into()?)
}

/// An argument of a call: which one, and the test on it.
type Test = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);

/// The lower half of the argument is that. The kernel takes these arguments as 32 bits.
fn is(argument: u8, value: u64) -> Test {
    (argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

/// Of these bits of the argument exactly those of `value` are set.
fn has(argument: u8, mask: u64, value: u64) -> Test {
    (argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), value)
}

/// The call with any one of these arguments.
fn when(tests: impl IntoIterator<Item = Test>) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let rule = |(argument, length, operator, value)| {
        Ok(SeccompRule::new(vec![SeccompCondition::new(argument, length, operator, value)?])?)
    };
    tests.into_iter().map(rule).collect()
}

/// Allowed with any arguments.
const ANY: &[c_long] = &[
    // Open files and sockets.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_ftruncate,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    // Sleep and time.
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
    // Threads, signals, the end.
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Memory and random bits.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
];

/// Our own loops.
fn packets() -> Result<BpfProgram, seccompiler::Error> {
    let exec = libc::PROT_EXEC as u64;
    let mut rules: Rules = ANY.iter().map(|call| (*call, Vec::new())).collect();
    let own_process = u64::from(std::process::id());
    for (call, tests) in [
        // No page becomes a program.
        (libc::SYS_mmap, vec![has(2, exec, 0)]),
        (libc::SYS_mprotect, vec![has(2, exec, 0)]),
        // Threads, and no processes: the libcs ask for a thread by clone3 and then, as that is not there, by clone.
        (libc::SYS_clone, vec![has(0, libc::CLONE_THREAD as u64, libc::CLONE_THREAD as u64)]),
        // abort(3).
        (libc::SYS_tgkill, vec![is(0, own_process)]),
        (
            libc::SYS_prctl,
            vec![is(0, libc::PR_SET_TIMERSLACK as u64), is(0, libc::PR_SET_NAME as u64), is(0, PR_SET_VMA)],
        ),
        (
            libc::SYS_fcntl,
            [libc::F_GETFL, libc::F_SETFL, libc::F_GETFD, libc::F_SETFD, libc::F_DUPFD_CLOEXEC]
                .map(|command| is(1, command as u64))
                .into(),
        ),
        // Whether output is a terminal, how wide; what waits in a socket.
        (
            libc::SYS_ioctl,
            vec![
                is(1, libc::TCGETS),
                is(1, libc::TIOCGWINSZ),
                is(1, libc::TIOCOUTQ),
                is(1, libc::FIONREAD),
                is(1, libc::FIONBIO),
            ],
        ),
        // fstat(2), as newer libcs make it. A path could be put beside the flag: its file would be there, or not, and closed.
        (libc::SYS_newfstatat, vec![has(3, libc::AT_EMPTY_PATH as u64, libc::AT_EMPTY_PATH as u64)]),
    ] {
        rules.insert(call, when(tests)?);
    }
    compile(rules, errno(libc::ENOSYS), SeccompAction::Allow)
}

/// Names of anonymous memory: newer libcs give them.
const PR_SET_VMA: u64 = 0x5356_4d41;

/// Refused with any arguments.
const DANGEROUS: &[c_long] = &[
    // Programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // The kernel, and the parts of it in which holes are found most often.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    #[cfg(not(target_arch = "riscv64"))]
    libc::SYS_kexec_file_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_personality,
    libc::SYS_syslog,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_open_by_handle_at,
];

/// Any of these flags of clone(2) makes a namespace.
const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    CLONE_NEWTIME,
];
const CLONE_NEWTIME: i32 = 0x80;

/// Of the x32 ABI's numbers, which x86_64 filters see with this bit: the numbers are those of x86_64 below 512, and of their own from
/// there on. Nothing of ours makes any.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
#[cfg(target_arch = "x86_64")]
const X32_OWN: std::ops::RangeInclusive<i64> = 512..=547;
/// Refused by their arguments under their own numbers, and altogether under these.
#[cfg(target_arch = "x86_64")]
const X32_BY_ARGUMENTS: [i64; 4] = [libc::SYS_clone, libc::SYS_clone3, libc::SYS_socket, libc::SYS_ioctl];

/// Processes with plugins.
fn plugins() -> Vec<Result<BpfProgram, seccompiler::Error>> {
    let dangerous = || {
        let mut rules: Rules = DANGEROUS.iter().map(|call| (*call, Vec::new())).collect();
        #[cfg(target_arch = "x86_64")]
        {
            rules.extend(DANGEROUS.iter().chain(&X32_BY_ARGUMENTS).map(|call| (*call | X32, Vec::new())));
            rules.extend(X32_OWN.map(|call| (call | X32, Vec::new())));
        }
        rules.insert(libc::SYS_clone, when(NAMESPACES.map(|flag| has(0, flag as u64, flag as u64)))?);
        rules.insert(libc::SYS_socket, raw_sockets()?);
        // Bytes put into a terminal's input are a command of the shell that reads there next.
        rules.insert(libc::SYS_ioctl, when([is(1, libc::TIOCSTI), is(1, TIOCLINUX)])?);
        compile(rules, SeccompAction::Allow, errno(libc::EPERM))
    };
    let unseen = compile([(libc::SYS_clone3, Vec::new())].into(), SeccompAction::Allow, errno(libc::ENOSYS));
    vec![dangerous(), unseen]
}

/// Sockets that read or forge any packet of the machine: a process that may put options into its own IP headers has the capability for
/// these, too. Netlink's sockets, which are raw by name, list the machine's addresses and stay.
fn raw_sockets() -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let both = |family: i32| {
        let tests = [is(0, family as u64), has(1, 0xf, libc::SOCK_RAW as u64)];
        let conditions = tests.map(|(n, length, operator, value)| SeccompCondition::new(n, length, operator, value));
        SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
    };
    let mut rules = when([is(0, libc::AF_PACKET as u64)])?;
    rules.extend([both(libc::AF_INET)?, both(libc::AF_INET6)?]);
    Ok(rules)
}

const TIOCLINUX: u64 = 0x541c;
