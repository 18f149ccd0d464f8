use super::*;

fn target(name: &str) -> Target {
    Target::new(name, "no/such/folder").seeds([b"abcdef=12;x".to_vec(), vec![0, 3, 1, 2, 3]]).cases(20_000)
}

/// The body behind a length of 16 bits, with a mistake.
fn framed(bytes: &[u8]) -> Option<&[u8]> {
    let [a, b, body @ ..] = bytes else { return None };
    let length = usize::from(u16::from_be_bytes([*a, *b]));
    (length < 4_096).then(|| &body[..length])
}

#[test]
fn a_length_that_is_believed_is_found_and_the_input_is_as_small_as_can_be() {
    let finding =
        target("length").search(|bytes| drop(std::hint::black_box(framed(bytes).map(<[u8]>::to_vec)))).unwrap_err();
    let Fault::Panic(message) = &finding.fault else { panic!("{}", finding.fault) };
    assert!(message.contains("tests.rs") && message.contains("out of range"), "{message}");
    assert_eq!((finding.input.len(), finding.seed), (2, Some(1)));
}

#[test]
fn an_overflow_is_found() {
    let read = |bytes: &[u8]| {
        let sum: u8 = bytes.iter().take(3).fold(0, |sum, byte| sum + byte / 2);
        std::hint::black_box(sum);
    };
    let finding = target("overflow").search(read).unwrap_err();
    assert!(matches!(&finding.fault, Fault::Panic(message) if message.contains("overflow")), "{}", finding.fault);
}

#[test]
fn memory_beyond_the_bound_is_found_and_up_to_the_bound_is_none() {
    let read = |bytes: &[u8]| {
        let wanted = bytes.first().copied().map_or(0, usize::from) << 10;
        std::hint::black_box(vec![1_u8; wanted]);
    };
    let most = target("memory").memory(255 << 10).search(read).expect("255 KiB are allowed").most_memory;
    assert_eq!(most, 255 << 10);
    let finding = target("memory").memory((255 << 10) - 1).search(read).unwrap_err();
    assert_eq!((finding.fault, finding.input), (Fault::Memory(255 << 10, (255 << 10) - 1), vec![255]));
}

#[test]
fn whatever_takes_a_second_is_found() {
    let read = |bytes: &[u8]| {
        if bytes.contains(&0x7f) {
            let begin = thread_cpu();
            while thread_cpu() <= begin + SLOWEST {}
        }
    };
    // Few tries: each takes three seconds.
    let finding = Target::new("slow", "no/such/folder").seeds([vec![0x7f]]).search(read).unwrap_err();
    assert!(matches!(finding.fault, Fault::Slow(took) if took > SLOWEST), "{}", finding.fault);
}

#[test]
fn the_same_seed_gives_the_same_inputs() {
    let inputs = |name| {
        let mut inputs = Vec::new();
        target(name).text().cases(500).words(["word"]).search(|bytes| inputs.push(bytes.to_vec())).unwrap();
        inputs
    };
    let first = inputs("same");
    assert!(first == inputs("same") && first != inputs("other"));
    let distinct: std::collections::BTreeSet<_> = first.iter().collect();
    assert!(distinct.len() > 200, "{}", distinct.len());
    // Text mostly stays text.
    let texts = first.iter().filter(|input| input.starts_with(b"abc") && str::from_utf8(input).is_ok()).count();
    assert!(texts > 50, "{texts}");
}

#[test]
fn a_finding_is_in_the_corpus_of_the_next_run() {
    let folder = std::env::temp_dir().join(format!("fairpace-fuzz-kept-{}", std::process::id()));
    let target = Target::new("kept", folder.to_str().unwrap()).seeds([vec![0, 1, 7]]).cases(5_000);
    let read = |bytes: &[u8]| drop(std::hint::black_box(framed(bytes).map(<[u8]>::to_vec)));
    let said = catch_unwind(|| target.clone().run(read)).unwrap_err();
    let said = said.downcast::<String>().unwrap();
    assert!(said.contains("kept, seed 1: panic: ") && said.contains("found-"), "{said}");
    // Without cases.
    let again = target.cases(0).search(read).unwrap_err();
    assert_eq!((again.seed, again.input.len()), (None, 2));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_script_is_read_to_its_end_and_zeros_behind() {
    let mut bytes = vec![7, 1, 2];
    put_piece(b"abc", &mut bytes);
    let mut script = Script::new(&bytes);
    assert_eq!((script.byte(), script.number(2), script.piece()), (7, 0x0102, &b"abc"[..]));
    assert!(script.is_over());
    assert_eq!((script.number(8), script.piece().len()), (0, 0));
    let mut cut = Script::new(&[1, 0, 9, 8]);
    assert_eq!((cut.number(1), cut.piece(), cut.rest()), (1, &[8][..], &[][..]));
    assert_eq!(Script::new(&[0xff]).number(8), 0xff << 56);
}
