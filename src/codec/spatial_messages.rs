//! The messages of nodes that find cells of polygons and points.

use datafusion_proto::protobuf::Schema;
use prost::Message;

use super::messages::Origin;

/// The grid of an array, with its labels.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelledGridOf {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, required, tag = "2")]
    pub(super) y: LabelledAxisOf,
    #[prost(message, required, tag = "3")]
    pub(super) x: LabelledAxisOf,
    /// The metres of a unit, if it is a length.
    #[prost(double, optional, tag = "4")]
    pub(super) metres: Option<f64>,
    #[prost(bool, tag = "5")]
    pub(super) is_geographic: bool,
    /// Two edges per row, as a sealed [`LabelsOf`](super::messages::LabelsOf); absent if they lie in the middle between labels.
    #[prost(bytes = "vec", optional, tag = "6")]
    pub(super) y_edges: Option<Vec<u8>>,
    /// And per column.
    #[prost(bytes = "vec", optional, tag = "7")]
    pub(super) x_edges: Option<Vec<u8>>,
    /// A latitude and a longitude per cell of a curvilinear grid, as a sealed [`LabelsOf`](super::messages::LabelsOf).
    #[prost(bytes = "vec", optional, tag = "8")]
    pub(super) places: Option<Vec<u8>>,
    /// The array with the coordinates, in place of all others.
    #[prost(message, optional, tag = "9")]
    pub(super) coordinates: Option<CoordinatesOf>,
}

/// The array with the coordinates of cells.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CoordinatesOf {
    #[prost(message, required, tag = "1")]
    pub(super) origin: Origin,
    /// The name of the latitude.
    #[prost(string, optional, tag = "2")]
    pub(super) y: Option<String>,
    /// The name of the longitude.
    #[prost(string, optional, tag = "3")]
    pub(super) x: Option<String>,
    #[prost(bool, tag = "4")]
    pub(super) has_midpoints: bool,
}

/// A column of a dimension, and its labels.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelledAxisOf {
    /// The only field.
    #[prost(message, optional, tag = "1")]
    pub(super) field: Option<Schema>,
    /// A sealed [`LabelsOf`](super::messages::LabelsOf).
    #[prost(bytes = "vec", tag = "2")]
    pub(super) labels: Vec<u8>,
}

/// The cells that polygons cover.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Coverage {
    #[prost(message, required, tag = "1")]
    pub(super) grid: LabelledGridOf,
    #[prost(uint32, tag = "2")]
    pub(super) rule: u32,
    #[prost(uint64, tag = "3")]
    pub(super) geometry: u64,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) columns: Vec<u64>,
    #[prost(bool, tag = "5")]
    pub(super) is_numbered: bool,
}

/// The cells of points.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Points {
    #[prost(message, required, tag = "1")]
    pub(super) grid: LabelledGridOf,
    #[prost(message, optional, tag = "2")]
    pub(super) times: Option<TimesOf>,
    /// The metres to the nearest cell; absent for interpolation.
    #[prost(double, optional, tag = "3")]
    pub(super) within: Option<f64>,
    #[prost(uint64, tag = "4")]
    pub(super) y: u64,
    #[prost(uint64, tag = "5")]
    pub(super) x: u64,
    #[prost(uint64, optional, tag = "6")]
    pub(super) time: Option<u64>,
    #[prost(uint64, repeated, tag = "7")]
    pub(super) columns: Vec<u64>,
}

/// The labels that times get.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TimesOf {
    #[prost(message, required, tag = "1")]
    pub(super) axis: LabelledAxisOf,
    #[prost(bool, tag = "2")]
    pub(super) is_last: bool,
    /// The most nanoseconds to a label.
    #[prost(uint64, optional, tag = "3")]
    pub(super) within: Option<u64>,
}
