//! Warnings about metadata of tables that open nevertheless.

/// Problems in the metadata of a dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Remarks {
    /// Oddities that have a fallback and change no answer.
    pub(crate) odd: Vec<String>,
    /// Declarations that cannot be parsed although answers depend on them.
    pub(crate) misunderstood: Vec<String>,
}

impl Remarks {
    /// Logs them. What may make answers wrong is logged as an error, so that quiet programs show it too.
    pub(crate) fn log(&self, about: &str) {
        for remark in &self.odd {
            log::warn!("{about}: {remark}");
        }
        for remark in &self.misunderstood {
            log::error!("{about}: {remark}");
        }
    }

    /// Adds problems with the labels of a dimension.
    pub(crate) fn of_labels(&mut self, name: &str, own: Self) {
        let named = |remark: String| format!("labels of \"{name}\": {remark}");
        self.odd.extend(own.odd.into_iter().map(named));
        self.misunderstood.extend(own.misunderstood.into_iter().map(named));
    }

    /// All of them.
    pub(crate) fn into_texts(self) -> Vec<String> {
        [self.misunderstood, self.odd].concat()
    }
}
