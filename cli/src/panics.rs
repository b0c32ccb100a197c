//! Keeps panics from printing.

use std::panic;

/// Lets panics print nothing, unless the log shows debug messages: the error has the same text in one line.
pub fn quieten() {
    panic::set_hook(Box::new(|panic| log::debug!("{panic}")));
}
