//! Problems in metadata that are logged while the table still opens.
//!
//! A harmless fault is a warning, such as a list of labels of the wrong length, or a duplicate name. The table opens with
//! the next best labels or names. A fill value, packing or categories of one dataset that do not parse are logged as an
//! error, which `-q` shows, and `verify` fails. The table opens, because the rest is right. A fault that would silently
//! change answers, such as a footer that is not JSON, is an error.

/// Problems in the metadata of a dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Oddities that have a fallback and change no answer.
    pub odd: Vec<String>,
    /// Declarations that answers depend on, but that cannot be parsed.
    pub misunderstood: Vec<String>,
}

impl Remarks {
    /// Logs oddities as warnings, and declarations that answers depend on as errors, which quiet programs
    /// show too.
    pub fn log(&self, about: &str) {
        for remark in &self.odd {
            log::warn!("{about}: {remark}");
        }
        for remark in &self.misunderstood {
            log::error!("{about}: {remark}");
        }
    }

    /// Adds the problems `own` of the labels of dimension `name`.
    pub fn of_labels(&mut self, name: &str, own: Self) {
        let named = |remark: String| format!("labels of \"{name}\": {remark}");
        self.odd.extend(own.odd.into_iter().map(named));
        self.misunderstood.extend(own.misunderstood.into_iter().map(named));
    }

    /// Returns all problems, the severe ones first.
    pub fn into_texts(self) -> Vec<String> {
        [self.misunderstood, self.odd].concat()
    }
}
