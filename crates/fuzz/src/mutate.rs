//! New inputs from old ones: the mutations of the fuzzers since AFL, for bytes and for text.

use fairpace_units::RandomStream;

/// Most mutations of one input.
const MOST: u64 = 8;
/// Headers are at the beginning: half of all places are among so many bytes.
const HEADER: usize = 48;

/// Numbers at which code goes wrong.
const NUMBERS: [u64; 18] = [
    0,
    1,
    2,
    3,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x1fff,
    0x4000,
    0x4001,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    u64::MAX,
];

/// The same, as text.
const TEXTS: [&str; 22] = [
    "",
    "0",
    "-0",
    "1",
    "-1",
    "0.5",
    "1e-9",
    "1e9",
    "1e19",
    "1e308",
    "-1e308",
    "nan",
    "inf",
    "-inf",
    "255",
    "65536",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
];

/// Makes inputs of a corpus.
pub(crate) struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    words: &'a [Vec<u8>],
    text: bool,
    longest: usize,
    random: RandomStream,
}

impl<'a> Mutator<'a> {
    /// The corpus must not be empty.
    pub(crate) fn new(
        corpus: &'a [Vec<u8>],
        words: &'a [Vec<u8>],
        text: bool,
        longest: usize,
        random: RandomStream,
    ) -> Mutator<'a> {
        let longest = corpus.iter().map(Vec::len).fold(longest, usize::max);
        Mutator { corpus, words, text, longest, random }
    }

    /// The next input.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let mut input = self.pick().to_vec();
        // Few, mostly: 1 in half of all cases, 2 in a quarter, ...
        let few = 1 + u64::from(self.random.bits().trailing_ones());
        for _ in 0..few.min(MOST) {
            if self.text && self.below(3) != 0 {
                self.mutate_text(&mut input);
            } else {
                self.mutate_bytes(&mut input);
            }
        }
        input.truncate(self.longest);
        input
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    fn pick(&mut self) -> &'a [u8] {
        let n = self.below(self.corpus.len());
        &self.corpus[n]
    }

    /// A place in so many bytes: 0 if there are none.
    fn place(&mut self, len: usize) -> usize {
        let within = if self.random.bits() & 1 == 0 { len.min(HEADER) } else { len };
        self.below(within)
    }

    /// A range of some bytes, mostly few.
    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let begin = self.place(len);
        let most = if self.below(4) == 0 { len } else { 8 };
        let end = (begin + 1 + self.below(most.max(1))).min(len);
        begin..end.max(begin)
    }

    fn mutate_bytes(&mut self, input: &mut Vec<u8>) {
        let len = input.len();
        let at = self.place(len);
        match self.below(if self.words.is_empty() { 10 } else { 12 }) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            1 => {
                let value = self.random.bits() as u8;
                if let Some(byte) = input.get_mut(at) {
                    *byte = value;
                }
            }
            2 => {
                let less = self.below(2) == 0;
                let by = 1 + self.below(16) as u8;
                if let Some(byte) = input.get_mut(at) {
                    *byte = if less { byte.wrapping_sub(by) } else { byte.wrapping_add(by) };
                }
            }
            // A field of 1 to 8 bytes, in either order; a length, half of the time: what is left, and a few more or fewer.
            3 | 4 => {
                let width = [1, 2, 4, 8, 2, 4, 3, 2][self.below(8)];
                let number = if self.below(2) == 0 {
                    NUMBERS[self.below(NUMBERS.len())]
                } else {
                    let rest = (len - at.min(len)) as u64 / [1, 1, 2, 4][self.below(4)];
                    rest.wrapping_add(self.random.below(9)).wrapping_sub(4)
                };
                let big = number.to_be_bytes();
                let mut field = big[8 - width..].to_vec();
                if self.below(4) == 0 {
                    field.reverse();
                }
                input.iter_mut().skip(at).zip(field).for_each(|(byte, new)| *byte = new);
            }
            5 => drop(input.drain(self.range(len))),
            6 => input.truncate(self.below(len.max(1))),
            7 => {
                let some = [1, 2, 3, 4, 8, 16, 64, 512][self.below(8)];
                let one = self.random.bits() as u8;
                let all_one = self.below(2) == 0;
                let new: Vec<u8> = (0..some).map(|_| if all_one { one } else { self.random.bits() as u8 }).collect();
                input.splice(at..at, new);
            }
            // A piece twice, here or elsewhere.
            8 => {
                let piece = input[self.range(len)].to_vec();
                let to = if self.below(2) == 0 { at } else { len };
                let times = if self.below(8) == 0 { 1 + self.below(64) } else { 1 };
                input.splice(to..to, piece.repeat(times));
            }
            // The end, or a piece, of another input.
            9 => {
                let other = self.pick();
                let from = self.range(other.len());
                if self.below(2) == 0 {
                    input.truncate(at);
                    input.extend_from_slice(&other[from.start..]);
                } else {
                    input.splice(at..at, other[from].iter().copied());
                }
            }
            _ => self.put_word(input, at),
        }
    }

    /// In place of something, or beside.
    fn put_word(&mut self, input: &mut Vec<u8>, at: usize) {
        if self.words.is_empty() {
            return;
        }
        let words = self.words;
        let word = &words[self.below(words.len())];
        let end = if self.below(2) == 0 { at } else { (at + word.len()).min(input.len()) };
        input.splice(at..end, word.iter().copied());
    }

    fn mutate_text(&mut self, input: &mut Vec<u8>) {
        match self.below(6) {
            // A number becomes another.
            0 | 1 => {
                let is_part = |byte: &u8| byte.is_ascii_digit() || b".-+".contains(byte);
                let starts: Vec<usize> = (0..input.len())
                    .filter(|i| input[*i].is_ascii_digit() && (*i == 0 || !is_part(&input[i - 1])))
                    .collect();
                if starts.is_empty() {
                    return;
                }
                let start = starts[self.below(starts.len())];
                let end = start + input[start..].iter().take_while(|byte| is_part(byte)).count();
                let number = match self.below(4) {
                    0 => self.random.bits().to_string(),
                    1 => (self.random.bits() >> self.random.below(64)).to_string(),
                    _ => TEXTS[self.below(TEXTS.len())].to_owned(),
                };
                input.splice(start..end, number.into_bytes());
            }
            // Lines: one away, one twice, two in another order, one of another input.
            n @ 2..=4 => {
                let mut lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
                if lines.is_empty() {
                    return;
                }
                let (a, b) = (self.below(lines.len()), self.below(lines.len()));
                match (n, self.below(2)) {
                    (2, 0) => drop(lines.remove(a)),
                    (2, _) => lines.insert(b, lines[a]),
                    (3, 0) => lines.swap(a, b),
                    (3, _) => lines.truncate(a),
                    _ => {
                        let others: Vec<&[u8]> = self.pick().split_inclusive(|byte| *byte == b'\n').collect();
                        if !others.is_empty() {
                            lines.insert(a, others[self.below(others.len())]);
                        }
                    }
                }
                *input = lines.concat();
            }
            _ => {
                let at = self.below(input.len());
                self.put_word(input, at);
            }
        }
    }
}
