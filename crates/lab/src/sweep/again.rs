//! The command that repeats a point.

use super::plan::{Plan, World};
use std::path::Path;

/// The end of the version of a program whose packets are of IPv6: in real time results differ.
pub const IPV6: &str = ", IPv6";

/// The command that runs a point's scenario, which is in that file, with one seed.
pub fn again(plan: &Plan, file: &Path, seed: u64) -> String {
    let world = match plan.world() {
        World::Sim => "",
        World::Emu if plan.code().ends_with(IPV6) => " --world emu --ipv6",
        World::Emu => " --world emu",
    };
    format!("fairpace run {} --seed {seed}{world}", for_a_shell(file))
}

/// A path as a word of a shell's command.
fn for_a_shell(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=+,:@%".contains(&b));
    if is_plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Spec;
    use fairpace_scenario::Scenario;

    #[test]
    fn a_command_has_the_file_as_one_word_and_the_world_in_which_it_was() {
        let text = "[path]\nrate = \"1 Mbit/s\"\n[[flows]]\nname = \"video\"\ncontroller = \"rap\"\n";
        let scenario = Scenario::parse(text, "base.toml").unwrap();
        let spec = Spec { vary: vec!["path.rtt=10 ms".to_owned()], ..Spec::default() };
        let command = |world, code: &str, file: &str| {
            again(&Plan::new(&scenario, &spec, world, code).unwrap(), Path::new(file), 3)
        };
        assert_eq!(command(World::Sim, "1", "/a/b.toml"), "fairpace run /a/b.toml --seed 3");
        assert_eq!(
            command(World::Emu, "1", "/it's/b c.toml"),
            r"fairpace run '/it'\''s/b c.toml' --seed 3 --world emu"
        );
        assert_eq!(command(World::Emu, "1, IPv6", "/b.toml"), "fairpace run /b.toml --seed 3 --world emu --ipv6");
    }
}
