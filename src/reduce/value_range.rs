//! The predicates on values that the kernels support: intervals.

/// A limit that a predicate sets on the value, as written in the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The number to compare with; never NaN.
    pub number: Number,
    /// Whether the number itself passes.
    pub inclusive: bool,
}

/// A number in a predicate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A number of a floating-point type.
    Float(f64),
    /// A number of an integer type.
    Integer(i128),
}

/// The interval of values that pass a predicate, unbounded where it has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ValueRange {
    /// The lower limit.
    pub least: Option<Limit>,
    /// The upper limit.
    pub greatest: Option<Limit>,
}
