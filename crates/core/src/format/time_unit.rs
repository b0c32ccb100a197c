//! Units in which formats count time.

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
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

impl TimeUnit {
    /// Returns the unit with this name in the types of numpy, such as `ns` in `datetime64[ns]`.
    pub fn from_numpy(name: &str) -> Option<Self> {
        Some(match name {
            "Y" => Self::Year,
            "M" => Self::Month,
            "W" => Self::Week,
            "D" => Self::Day,
            "h" => Self::Hour,
            "m" => Self::Minute,
            "s" => Self::Second,
            "ms" => Self::Millisecond,
            "us" | "μs" => Self::Microsecond,
            "ns" => Self::Nanosecond,
            "ps" => Self::Picosecond,
            "fs" => Self::Femtosecond,
            "as" => Self::Attosecond,
            _ => return None,
        })
    }
}
