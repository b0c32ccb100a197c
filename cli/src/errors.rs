//! What an error means for the program: a message, or a reader that has gone.

use std::io::{self, ErrorKind, Write};

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// The message for the user: the cause, without the layers it came through.
pub(crate) fn describe(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::Plan(message) => message.clone(),
        DataFusionError::SQL(cause, _) => cause.to_string(),
        DataFusionError::External(cause) if cause.is::<gridfusion::Error>() => cause.to_string(),
        _ => error.to_string(),
    }
}

/// Tells the user. If even that cannot be written, there is nobody left to tell.
pub(crate) fn report(error: &DataFusionError) {
    let _ = writeln!(io::stderr(), "Error: {}", describe(error));
}

/// Whether a result could not be printed because nobody reads standard output any more.
///
/// Rust programs ignore SIGPIPE, and giving it back its default needs unsafe code, so a closed pipe
/// shows as an error of a write. Results are printed with `writeln!` and the writers of Arrow, which pass
/// such errors on, so looking at the error is enough. Only errors of writing count: a broken pipe deeper in the
/// chain may be a network connection, and that must be reported.
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

    use gridfusion::exec::to_datafusion;

    use super::*;

    fn broken_pipe() -> Error {
        Error::from(ErrorKind::BrokenPipe)
    }

    #[test]
    fn messages_are_short() {
        let usage = to_datafusion(gridfusion::Error::usage("no dataset \"x\""));
        assert_eq!(describe(&usage), "no dataset \"x\"");
        let corrupt =
            to_datafusion(gridfusion::Error::corrupt("footer", 7, "odd").in_file("a.tet"));
        assert_eq!(
            describe(&corrupt.context("while reading")),
            "a.tet: corrupt footer at byte 7: odd"
        );
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
        let network = to_datafusion(gridfusion::Error::io("cannot read", broken_pipe()));
        assert!(!stdout_is_closed(&network));
        assert!(!stdout_is_closed(&DataFusionError::from(Error::from(ErrorKind::NotFound))));
    }
}
