//! Turns errors into messages, and recognises a closed standard output.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use gridfusion::without_secrets;

use crate::printable::printable_lines;
use crate::secrets::hide;

/// Returns the message for the user: the root cause, without the contexts added to it.
pub(crate) fn describe(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::Plan(message) | DataFusionError::Execution(message) => plain(message),
        DataFusionError::ArrowError(cause, _) => cause.to_string(),
        DataFusionError::SQL(cause, _) => cause.to_string(),
        DataFusionError::External(cause) if cause.is::<gridfusion::Error>() => cause.to_string(),
        DataFusionError::External(cause) => cause.to_string(),
        DataFusionError::Internal(message) => {
            format!("{} (an internal error of DataFusion)", without_report(&without_plan(message)))
        }
        root => plain(&root.to_string()),
    }
}

/// Removes syntax trees, plans, lists of attempts and bug-report requests from a message of the planner.
fn plain(message: &str) -> String {
    let message = without_syntax_tree(&without_report(&without_plan(message)));
    of_function(&message).unwrap_or(message)
}

/// Returns a shorter message for a function called with wrong arguments, in place of DataFusion's list of
/// attempts.
fn of_function(message: &str) -> Option<String> {
    let (why, rest) =
        message.split_once(" No function matches the given name and argument types '")?;
    let (call, rest) = rest.split_once("'.")?;
    let (_, candidates) = rest.split_once("Candidate functions:")?;
    let candidates: Vec<&str> =
        candidates.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    if candidates.iter().any(|it| it.contains("UserDefined")) {
        let why = why.rsplit("error: ").next().unwrap_or(why);
        let why = why.rsplit("during planning: ").next().unwrap_or(why).trim_end_matches('.');
        return Some(format!("there is no function {call}: {why}"));
    }
    Some(format!("there is no function {call}; use {}", candidates.join(", ")))
}

/// Cuts a message off before its syntax tree, which the planner prints where it has no better text.
fn without_syntax_tree(message: &str) -> String {
    let is_tree = ["span: Span(", "WildcardOptions {"].iter().any(|sign| message.contains(sign));
    let end = message.find(['{', '(']).filter(|_| is_tree);
    message[..end.unwrap_or(message.len())].trim_end().to_owned()
}

/// Removes plans from a message. They may have many pages, and values of the data.
///
/// ```text
///   Unsupported plan and extension codec failed with [REASON]. Plan: NODE { … }   ──▶   REASON
///   Plan: ["NODE", …] does not satisfy REASON                                     ──▶   the plan does not satisfy REASON
/// ```
fn without_plan(message: &str) -> Cow<'_, str> {
    if let Some((before, _)) = message.split_once("]. Plan: ") {
        let reason = before.rsplit("codec failed with [").next().unwrap_or(before);
        return reason.rsplit("Error during planning: ").next().unwrap_or(reason).into();
    }
    match message.strip_prefix("Plan: [").and_then(|rest| rest.split_once("] does not satisfy ")) {
        Some((_, reason)) => format!("the plan does not satisfy {reason}").into(),
        None => message.into(),
    }
}

/// Removes requests to report a bug, because mistakes in SQL cause most of these errors.
fn without_report(message: &str) -> String {
    const BEGIN: &str = "This issue was likely caused by a bug";
    const END: &str = "apache/datafusion/issues";
    let Some((before, rest)) = message.split_once(BEGIN) else { return message.to_owned() };
    let (_, after) = rest.split_once(END).unwrap_or((rest, ""));
    let before = before.trim_end_matches(['.', '\n', ' ']);
    format!("{before}{}", without_report(after)).trim_end().to_owned()
}

/// Prints the message on standard error. A failure to do so is ignored, because no other output is left.
pub(crate) fn report(error: &DataFusionError) {
    let text = describe(error);
    let text = without_secrets(&hide(&text));
    let _ = writeln!(io::stderr(), "Error: {}", printable_lines(&text));
}

/// Prints the message of wrong arguments, or the help, and returns the exit status. The message repeats the arguments.
pub(crate) fn exit(error: &clap::Error) -> u8 {
    let text = error.render().to_string();
    // A closed pipe is no failure.
    let _ = match hide(&text) {
        Cow::Owned(hidden) => write!(io::stderr(), "{hidden}"),
        Cow::Borrowed(_) => error.print(),
    };
    u8::try_from(error.exit_code()).unwrap_or(1)
}

/// Whether a result could not be printed because the reader of standard output closed the pipe.
///
/// Rust programs ignore SIGPIPE, and restoring its default needs unsafe code. So a closed pipe appears as a
/// write error, which `writeln!` and Arrow's writers return. Only the outer error counts. A broken pipe
/// deeper in the chain may be a network connection, which must be reported.
pub(crate) fn stdout_is_closed(error: &DataFusionError) -> bool {
    let is_broken_pipe = |error: &io::Error| error.kind() == ErrorKind::BrokenPipe;
    match error {
        DataFusionError::IoError(error) => is_broken_pipe(error),
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::IoError(_, error) => is_broken_pipe(error),
            // The CSV writer keeps only the text of the error.
            ArrowError::CsvError(message) => message.starts_with("Broken pipe"),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;

    fn broken_pipe() -> Error {
        Error::from(ErrorKind::BrokenPipe)
    }

    #[test]
    fn messages_are_short() {
        let usage = DataFusionError::from(gridfusion::Error::usage("no dataset \"x\""));
        assert_eq!(describe(&usage), "no dataset \"x\"");
        let corrupt =
            DataFusionError::from(gridfusion::Error::corrupt("footer", 7, "odd").in_file("a.tet"));
        assert_eq!(
            describe(&corrupt.context("while reading")),
            "a.tet: corrupt footer at byte 7: odd"
        );
    }

    #[test]
    fn plans_are_no_messages() {
        let codec = "Unsupported plan and extension codec failed with [";
        let plan = format!(
            "{codec}Internal error: {codec}Error during planning: a.nc: a key]. Plan: A {{ }}]. Plan: B"
        );
        let internal = DataFusionError::Internal(plan);
        assert_eq!(describe(&internal), "a.nc: a key (an internal error of DataFusion)");
        let plan =
            "Plan: [\"A\", \"  B\"] does not satisfy order requirements: [a@0]. Child-0 order: []";
        let expected = "the plan does not satisfy order requirements: [a@0]. Child-0 order: []";
        assert_eq!(describe(&DataFusionError::Plan(plan.to_owned())), expected);
    }

    #[test]
    fn mistakes_do_not_ask_for_a_report() {
        let error: datafusion::error::Result<()> = datafusion::common::internal_err!("odd");
        let message = describe(&error.unwrap_err().context("rule"));
        assert_eq!(message, "odd (an internal error of DataFusion)");
        let cast = ArrowError::CastError("Cannot cast".to_owned());
        let error = DataFusionError::from(cast).context("Optimizer rule 'odd' failed");
        assert_eq!(describe(&error), "Cast error: Cannot cast");
    }

    #[tokio::test]
    async fn messages_of_the_planner_are_plain() {
        let ctx = datafusion::prelude::SessionContext::new();
        for (sql, expected) in [
            ("SELECT sum('a')", "there is no function sum(Utf8); use sum(Decimal), sum(UInt64), "),
            ("SELECT md5(5)", "there is no function md5(Int64); use md5(String), md5(Binary)"),
            (
                "SELECT gcd(1.5, 2)",
                "there is no function gcd(Float64, Int64): Unsupported argument types",
            ),
            (
                "SELECT * FROM (VALUES (1)) t PIVOT (sum(column1) FOR column1 IN (1))",
                "This feature is not implemented: Unsupported ast node Pivot",
            ),
            (
                "SELECT CAST('x' AS INT)",
                "Cast error: Cannot cast string 'x' to value of Int32 type",
            ),
        ] {
            let error = async { ctx.sql(sql).await?.collect().await }.await.unwrap_err();
            let message = describe(&error);
            assert!(message.starts_with(expected), "{sql}: {message}");
            assert!(!message.contains("bug") && !message.contains("Span"), "{sql}: {message}");
        }
    }

    #[test]
    fn a_closed_stdout_is_known_in_each_disguise() {
        assert!(stdout_is_closed(&DataFusionError::from(broken_pipe())));
        assert!(stdout_is_closed(&ArrowError::from(broken_pipe()).into()));
        let csv = ArrowError::CsvError("Broken pipe (os error 32)".to_owned());
        assert!(stdout_is_closed(&csv.into()));
    }

    #[test]
    fn other_broken_pipes_are_errors() {
        let network = DataFusionError::from(gridfusion::Error::io("cannot read", broken_pipe()));
        assert!(!stdout_is_closed(&network));
        assert!(!stdout_is_closed(&DataFusionError::from(Error::from(ErrorKind::NotFound))));
    }
}
