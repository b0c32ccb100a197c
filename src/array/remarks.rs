//! What there is to say about a table that opens all the same.

/// What is wrong with the metadata of a dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Remarks {
    /// What is odd; something else stands in for it, and no answer is another one.
    pub(crate) odd: Vec<String>,
    /// Declarations that cannot be understood though answers depend on them.
    pub(crate) misunderstood: Vec<String>,
}

impl Remarks {
    /// Tells whoever listens. An answer that may be wrong is an error in the log, so that a program which is
    /// told to be quiet says it too.
    pub(crate) fn log(&self, about: &str) {
        for remark in &self.odd {
            log::warn!("{about}: {remark}");
        }
        for remark in &self.misunderstood {
            log::error!("{about}: {remark}");
        }
    }

    /// Adds those about the labels of a dimension.
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
