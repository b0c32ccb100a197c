//! The chunks that a plan leaves out, and who reports them.

/// The numbers of chunks that a plan leaves out, by the first reason that applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrunedChunks {
    /// Chunks that predicates on dimensions exclude.
    pub by_selection: u64,
    /// Chunks that only zone maps exclude.
    pub by_zones: u64,
    /// Chunks that are not needed because earlier chunks reach the limit.
    pub by_limit: u64,
}

/// Which chunks a plan reports as left out. Reports of all shares of a plan add up to those of the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Account {
    /// The chunks that the plan leaves out.
    #[default]
    Own,
    /// The chunks that all shares together leave out.
    OfAll(PrunedChunks),
    /// None: another share reports them.
    Elsewhere,
}
