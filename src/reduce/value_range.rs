//! Predicates over the value that the kernels know: intervals.

/// A bound that a predicate puts on the value, as written in the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The number compared with; never NaN.
    pub number: Number,
    /// Whether the number itself passes.
    pub inclusive: bool,
}

/// A number in a predicate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Of a floating-point type.
    Float(f64),
    /// Of an integer type.
    Integer(i128),
}

/// The values that a predicate lets pass: an interval, open where there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ValueRange {
    /// No value below passes.
    pub least: Option<Limit>,
    /// No value above passes.
    pub greatest: Option<Limit>,
}
