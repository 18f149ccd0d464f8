//! The facts about a packet that a link must know; everything else travels through it unread.

use fairpace_units::{Bytes, Class, Ecn, QsOption};

/// A packet as the links see it: a small value, which is copied. The bytes of a packet, if it has any, stay elsewhere.
pub trait Datagram: Copy {
    /// The size of the packet on this link, with all headers that the link carries. Must not change while the link
    /// has it.
    fn size(&self) -> Bytes;
    /// The priority that a two-priority queue gives to the packet.
    fn class(&self) -> Class;
    /// Its ECN field.
    fn ecn(&self) -> Ecn;
    /// For queues that mark instead of dropping.
    fn set_ecn(&mut self, ecn: Ecn);
    /// The number of the flow that the packet belongs to: an FQ-CoDel queue gives each such flow its turn. Must not
    /// change while the link has it.
    fn flow(&self) -> u64 {
        0
    }
    /// Its Quick-Start option, for the routers that read it; `None` if it carries none.
    fn quick_start(&mut self) -> Option<&mut QsOption> {
        None
    }
}

/// A packet that is nothing but its size and marks: for tests, examples and background traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// Its size.
    pub size: Bytes,
    /// Its priority.
    pub class: Class,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Whatever the sender wants to find again.
    pub id: u64,
    /// Its flow.
    pub flow: u64,
}

impl Plain {
    /// A normal packet of that size.
    pub const fn new(size: Bytes) -> Self {
        Plain { size, class: Class::Normal, ecn: Ecn::NotEct, id: 0, flow: 0 }
    }
}

impl Datagram for Plain {
    fn size(&self) -> Bytes {
        self.size
    }
    fn class(&self) -> Class {
        self.class
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    fn flow(&self) -> u64 {
        self.flow
    }
}
