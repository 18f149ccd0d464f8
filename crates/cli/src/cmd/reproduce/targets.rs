//! A folder that `fairpace reproduce` finds, under fuzzing: its claims and its manifest come from somebody else.

use super::{CLAIMS_FILE, MANIFEST_FILE, POINTS_FILE, refuse_what_would_be_lost};
use fairpace_fuzz::Target;
use std::fs;

#[test]
fn any_claims_of_an_earlier_run_are_this_command_s_or_refused() {
    let folder = std::env::temp_dir().join(format!("fairpace-claims-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(POINTS_FILE), []).expect("written");
    let chosen: Vec<_> = fairpace_papers::experiments().filter(|e| e.id == "rcs.fig12").collect();
    let claims = br#"{"experiment":"rcs.fig12","seconds":1.5,"claims":[{"id":"a","holds":true}]}
{"experiment":"rcs.fig12","not_run":"no time"}
"#;
    let manifest = br#"{"program":"1","command":["fairpace","reproduce"]}"#;
    let seeds = [[&[0][..], claims].concat(), [&[1][..], manifest].concat()];
    let (taken, refused) = (std::cell::Cell::new(0_u32), std::cell::Cell::new(0_u32));
    let target = Target::new("claims", env!("CARGO_MANIFEST_DIR")).seeds(seeds).text().memory(4 << 20).cases(4_000);
    target.words(["\n", "null", "{}", "\"experiment\":", "\"rcs\"", "\"program\":", "[[[[[[[[", "1e999"]).run(
        |bytes| {
            let [which, content @ ..] = bytes else { return };
            let [file, other] =
                if which & 1 == 0 { [CLAIMS_FILE, MANIFEST_FILE] } else { [MANIFEST_FILE, CLAIMS_FILE] };
            fs::write(folder.join(file), content).expect("written");
            let _ = fs::remove_file(folder.join(other));
            match refuse_what_would_be_lost(&folder, &chosen, "1") {
                Ok(()) => taken.set(taken.get() + 1),
                Err(failure) => {
                    refused.set(refused.get() + 1);
                    assert!(format!("{failure:?}").len() < 16_384);
                }
            }
        },
    );
    let _ = fs::remove_dir_all(&folder);
    assert!(taken.get() > 0 && refused.get() > 0, "{taken:?} taken, {refused:?} refused");
}
