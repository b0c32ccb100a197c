//! Callbacks of the line editor: colours, detection of finished statements, a hint, and completion.

use std::borrow::Cow;
use std::cell::Cell;

use datafusion::prelude::SessionContext;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Result};

use super::complete::Completions;
use super::input::Input;
use super::keywords::is_keyword;
use crate::lexer::{SqlTokenKind, pieces};

const HINT: &str = "SQL;  or \\? for help, \\q to quit";

/// The helper of the line editor.
pub(super) struct PromptHelper {
    completions: Completions,
    has_color: bool,
    /// Whether the user has typed nothing yet on this line. An emptied line does not show the hint again.
    is_fresh: Cell<bool>,
}

impl PromptHelper {
    pub(super) fn new(ctx: &SessionContext, has_color: bool) -> Self {
        Self { completions: Completions::new(ctx), has_color, is_fresh: Cell::new(true) }
    }

    /// Prepares for the next line: shows the hint again and forgets cached columns.
    pub(super) fn refresh(&self) {
        self.is_fresh.set(true);
        self.completions.forget();
    }
}

impl Helper for PromptHelper {}

impl Validator for PromptHelper {
    /// Lets Enter begin another line while the statement is unfinished.
    fn validate(&self, ctx: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        Ok(match Input::new(ctx.input()) {
            Input::Unfinished => ValidationResult::Incomplete,
            _ => ValidationResult::Valid(None),
        })
    }
}

impl Hinter for PromptHelper {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        if !line.is_empty() {
            self.is_fresh.set(false);
        }
        self.is_fresh.get().then(|| format!(" {HINT}"))
    }
}

impl Highlighter for PromptHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if self.has_color { highlighted(line).into() } else { line.into() }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        painted(GREY, hint).into()
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        self.has_color && !line.is_empty()
    }
}

impl Completer for PromptHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, place: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        self.completions.at(line, place)
    }
}

// Codes of terminals for bright foreground colours.
const RED: &str = "91";
const GREEN: &str = "92";
const GREY: &str = "90";

fn painted(color: &str, text: &str) -> String {
    format!("\x1b[{color}m{text}\x1b[0m")
}

/// Colours the keywords, texts and comments of SQL.
fn highlighted(line: &str) -> String {
    let paint = |piece: crate::lexer::SqlToken<'_>| match piece.kind {
        SqlTokenKind::Word if is_keyword(piece.text) => painted(RED, piece.text),
        SqlTokenKind::Text => painted(GREEN, piece.text),
        SqlTokenKind::Comment => painted(GREY, piece.text),
        _ => piece.text.to_owned(),
    };
    pieces(line).map(paint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors() {
        let line = "select time from 'a' -- b";
        let expected = "\x1b[91mselect\x1b[0m time \x1b[91mfrom\x1b[0m \x1b[92m'a'\x1b[0m \
                        \x1b[90m-- b\x1b[0m";
        assert_eq!(highlighted(line), expected);
        assert_eq!(highlighted("'open"), "\x1b[92m'open\x1b[0m");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn hints_and_colors_are_for_those_who_want_them() {
        let helper = PromptHelper::new(&SessionContext::new(), false);
        assert_eq!(helper.highlight("SELECT 1", 0), "SELECT 1");
        let history = rustyline::history::DefaultHistory::new();
        let context = Context::new(&history);
        assert!(helper.hint("", 0, &context).is_some());
        assert!(helper.hint("S", 1, &context).is_none());
        assert!(helper.hint("", 0, &context).is_none());
        helper.refresh();
        assert!(helper.hint("", 0, &context).is_some());
    }
}
