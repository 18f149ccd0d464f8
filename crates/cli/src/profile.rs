//! `--feedback-form` and `--peer`: who measures, and the numbers agreed on with another tool.

use crate::args;
use crate::error::{Failure, Outcome};
use fairpace_control::Controller;
use fairpace_control::feedback::Form;
use fairpace_rtp::feedback::rtp_tfrc::wire::Profile;
use fairpace_rtp::sdp;
use std::collections::BTreeMap;

/// The TFRC parameter that says who measures.
const MEASURED_BY: &str = "measured_by";
const RECEIVER: &str = "receiver";

/// The profile to use, if the command line asks for one.
pub(crate) fn wanted(form: &args::Form) -> Outcome<Option<Profile>> {
    let Some(path) = &form.peer else {
        return Ok((form.feedback_form == Some(Form::RtpTfrc)).then(Profile::default));
    };
    if let Some(other) = form.feedback_form.filter(|form| *form != Form::RtpTfrc) {
        let wrong = format!("`--peer` is for RTP-TFRC, and `--feedback-form` is `{other}`");
        return Err(Failure::usage(wrong).hint("leave out one"));
    }
    let text = std::fs::read_to_string(path).map_err(|e| Failure::file("read", path, &e))?;
    match sdp::profile(&text) {
        Ok(Some(profile)) => Ok(Some(profile)),
        Ok(None) => Err(Failure::usage(format!("`{}` does not offer RTP-TFRC", path.display())).hint(format!(
            "it needs `a=rtcp-fb:… tfrc` and `a=extmap:… {}`",
            fairpace_rtp::feedback::rtp_tfrc::wire::URI
        ))),
        Err(e) => Err(Failure::usage(format!("`{}`: {e}", path.display()))),
    }
}

/// Makes a sender's controller want what the command line asks for.
pub(crate) fn apply(
    form: &args::Form,
    controller: &str,
    settings: &mut BTreeMap<String, String>,
) -> Outcome<Option<Profile>> {
    let profile = wanted(form)?;
    // A name that is none is said to be so when the controller is made.
    let scheme = fairpace_control::schemes().iter().find(|s| s.name == controller);
    let measures = scheme.is_some_and(|s| s.params.iter().any(|p| p.name == MEASURED_BY));
    if profile.is_some() && scheme.is_some() && !measures {
        return Err(Failure::usage(format!("`{controller}` must hear of every packet, and RTP-TFRC does not tell"))
            .hint("use `--control tfrc`"));
    }
    let asked = match form.feedback_form {
        _ if profile.is_some() && measures => Some(RECEIVER),
        Some(Form::Ccfb) if measures => Some("sender"),
        _ => None,
    };
    if let Some(asked) = asked {
        let set = settings.entry(MEASURED_BY.to_owned()).or_insert_with(|| asked.to_owned());
        if set != asked {
            return Err(Failure::usage(format!("`--set {MEASURED_BY}={set}` contradicts `--feedback-form`"))
                .hint("leave out one"));
        }
    }
    Ok(profile)
}

/// A controller that takes one form only is not asked for another without a word.
pub(crate) fn check_form(form: &args::Form, scheme: &str, controller: &dyn Controller) -> Outcome {
    let needed = controller.feedback_form();
    match form.feedback_form {
        Some(form) if !form.serves(needed) => {
            let told = needed.about();
            let wrong = format!("`{scheme}` is told of packets by {told}, and `--feedback-form` is `{form}`");
            Err(Failure::usage(wrong).hint("leave out `--feedback-form`"))
        }
        _ => Ok(()),
    }
}
