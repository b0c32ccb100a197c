//! Boxes between two meridians and two parallels.

/// A box in degrees. Longitudes may be those of any turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    pub(super) west: f64,
    pub(super) east: f64,
    pub(super) south: f64,
    pub(super) north: f64,
}

impl Bounds {
    /// A box without a place.
    pub(super) const NONE: Self = Self {
        west: f64::INFINITY,
        east: f64::NEG_INFINITY,
        south: f64::INFINITY,
        north: f64::NEG_INFINITY,
    };

    /// Returns the smallest box around points.
    pub(super) fn around(points: &[[f64; 2]]) -> Self {
        points.iter().fold(Self::NONE, |bounds, &[x, y]| {
            bounds.joined(&Self { west: x, east: x, south: y, north: y })
        })
    }

    pub(super) fn is_none(&self) -> bool {
        self.west > self.east
    }

    /// Returns the smallest box around both.
    pub(super) fn joined(&self, other: &Self) -> Self {
        Self {
            west: self.west.min(other.west),
            east: self.east.max(other.east),
            south: self.south.min(other.south),
            north: self.north.max(other.north),
        }
    }

    /// Returns the box that lies `degrees` farther east.
    pub(super) fn turned(&self, degrees: f64) -> Self {
        Self { west: self.west + degrees, east: self.east + degrees, ..*self }
    }

    /// The longitude in the middle.
    pub(super) fn middle(&self) -> f64 {
        self.west + (self.east - self.west) / 2.0
    }
}

/// Returns the whole turns, in degrees, that bring a longitude nearest to another one.
pub(super) fn turns_to(target: f64, longitude: f64) -> f64 {
    360.0 * ((target - longitude) / 360.0).round()
}
