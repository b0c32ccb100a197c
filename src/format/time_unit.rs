//! Units in which formats count time.

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimeUnit {
    /// Calendar years.
    Year,
    /// Calendar months.
    Month,
    /// Seven days.
    Week,
    /// 24 hours.
    Day,
    /// 60 minutes.
    Hour,
    /// 60 seconds.
    Minute,
    /// The SI second.
    Second,
    /// 10⁻³ s.
    Millisecond,
    /// 10⁻⁶ s.
    Microsecond,
    /// 10⁻⁹ s.
    Nanosecond,
    /// 10⁻¹² s.
    Picosecond,
    /// 10⁻¹⁵ s.
    Femtosecond,
    /// 10⁻¹⁸ s.
    Attosecond,
}
