//! The messages of nodes, as protocol buffers. Tags are never used for something else; new fields get new tags.

use datafusion_proto::protobuf::{
    Partitioning, PhysicalExprNode, PhysicalPlanNode, PhysicalSortExprNode, Schema,
};
use datafusion_proto_common::protobuf_common::{ArrowType, ScalarValue, Statistics};
use prost::{Message, Oneof};

use super::spatial_messages::{Coverage, Points};

/// A node with what it declares.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Envelope {
    #[prost(message, required, tag = "1")]
    pub(super) declared: NodeDeclarations,
    #[prost(oneof = "Node", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14")]
    pub(super) node: Option<Node>,
}

/// How to make the node.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Node {
    #[prost(message, tag = "2")]
    Scan(Scan),
    #[prost(message, tag = "3")]
    Reduce(Reduce),
    #[prost(message, tag = "4")]
    SparseScan(SparseScan),
    #[prost(message, tag = "5")]
    SparseAnswer(SparseAnswer),
    #[prost(message, tag = "6")]
    WorkList(WorkList),
    #[prost(message, tag = "7")]
    Window(Window),
    #[prost(message, tag = "8")]
    Lookup(Lookup),
    #[prost(message, tag = "9")]
    Top(Top),
    #[prost(message, tag = "10")]
    TextFiles(TextFiles),
    #[prost(message, tag = "11")]
    Coverage(Coverage),
    #[prost(message, tag = "12")]
    Points(Points),
    #[prost(message, tag = "13")]
    JoinReduce(JoinReduce),
    #[prost(message, tag = "14")]
    JoinShare(JoinShare),
}

/// The declarations of a node to DataFusion.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NodeDeclarations {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// Its line in `EXPLAIN`.
    #[prost(string, tag = "2")]
    pub(super) line: String,
    /// Its text in a drawn tree.
    #[prost(string, tag = "3")]
    pub(super) tree: String,
    #[prost(message, optional, tag = "4")]
    pub(super) schema: Option<Schema>,
    #[prost(message, repeated, tag = "5")]
    pub(super) orderings: Vec<Ordering>,
    #[prost(message, optional, tag = "6")]
    pub(super) partitioning: Option<Partitioning>,
    /// Statistics of all rows.
    #[prost(message, optional, tag = "7")]
    pub(super) statistics: Option<Statistics>,
    /// Statistics of the rows of each partition.
    #[prost(message, repeated, tag = "8")]
    pub(super) of_partitions: Vec<Statistics>,
    /// Whether the node yields rows only at its end.
    #[prost(bool, tag = "9")]
    pub(super) is_final: bool,
    /// The rows that suffice.
    #[prost(uint64, optional, tag = "10")]
    pub(super) fetch: Option<u64>,
    /// Dynamic filters, over the output.
    #[prost(message, repeated, tag = "11")]
    pub(super) filters: Vec<PhysicalExprNode>,
}

/// An order of rows.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Ordering {
    #[prost(message, repeated, tag = "1")]
    pub(super) keys: Vec<PhysicalSortExprNode>,
}

/// The places, format and options of a table.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct Origin {
    /// Paths and URLs, as they were given.
    #[prost(string, repeated, tag = "1")]
    pub(super) locations: Vec<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) format: Option<String>,
    #[prost(message, repeated, tag = "3")]
    pub(super) options: Vec<Setting>,
    /// The session's default options.
    #[prost(message, repeated, tag = "4")]
    pub(super) defaults: Vec<Setting>,
    #[prost(message, repeated, tag = "5")]
    pub(super) places: Vec<PlaceOf>,
    #[prost(bool, tag = "6")]
    pub(super) is_many: bool,
    #[prost(message, repeated, tag = "7")]
    pub(super) versions: Vec<VersionOf>,
    /// The files of a table of many, with their versions. Without it, all of them are opened.
    #[prost(message, optional, tag = "8")]
    pub(super) files: Option<Files>,
    /// The arrays that the query has put side by side. With these, all other fields are empty.
    #[prost(message, repeated, tag = "9")]
    pub(super) side_by_side: Vec<JoinedOrigin>,
    /// Digests of the objects with chunks, if they may be written again. Files of a table of many have them among their
    /// versions.
    #[prost(message, repeated, tag = "10")]
    pub(super) contents: Vec<VersionOf>,
}

/// One of the arrays that a query has put side by side.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct JoinedOrigin {
    #[prost(message, required, tag = "1")]
    pub(super) origin: Origin,
    /// For each axis, that of the first array.
    #[prost(uint64, repeated, tag = "2")]
    pub(super) axes: Vec<u64>,
    /// For each axis, the first of the indices whose labels the other arrays have, too.
    #[prost(uint64, repeated, tag = "3")]
    pub(super) starts: Vec<u64>,
    /// And the end of these indices.
    #[prost(uint64, repeated, tag = "4")]
    pub(super) ends: Vec<u64>,
}

/// The files of a table of many.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct Files {
    /// The axis along which files are concatenated.
    #[prost(uint64, tag = "1")]
    pub(super) axis: u64,
    /// The labels on the axis, as a sealed [`LabelsOf`]; absent if they count on from those of the first file.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) labels: Option<Vec<u8>>,
    #[prost(string, repeated, tag = "3")]
    pub(super) variables: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    pub(super) files: Vec<FileOf>,
}

/// A file of a table of many.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct FileOf {
    #[prost(uint64, tag = "1")]
    pub(super) place: u64,
    /// Its name in the column `_file`, if it is not the location.
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(uint64, tag = "3")]
    pub(super) len: u64,
    /// The chunk grid of each variable; none if they are those of the file before, but for the length on the axis.
    #[prost(message, repeated, tag = "4")]
    pub(super) grids: Vec<GridOf>,
    #[prost(bool, tag = "5")]
    pub(super) shares_objects: bool,
    #[prost(bool, tag = "6")]
    pub(super) is_resident: bool,
    #[prost(bool, tag = "7")]
    pub(super) is_remote: bool,
    #[prost(message, repeated, tag = "8")]
    pub(super) versions: Vec<VersionOf>,
}

/// A chunk grid.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct GridOf {
    #[prost(uint64, repeated, tag = "1")]
    pub(super) shape: Vec<u64>,
    #[prost(message, repeated, tag = "2")]
    pub(super) axes: Vec<AxisOf>,
}

/// The chunks of an axis: borders every `edge` positions, or listed ones.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct AxisOf {
    #[prost(uint64, tag = "1")]
    pub(super) edge: u64,
    #[prost(uint64, tag = "2")]
    pub(super) before: u64,
    /// The lengths of the chunks, if there is no `edge`.
    #[prost(uint64, repeated, tag = "3")]
    pub(super) lens: Vec<u64>,
}

/// Labels in memory.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelsOf {
    /// A list of the labels, or of the differences of their differences, which are zero for regular labels.
    #[prost(message, required, tag = "1")]
    pub(super) list: ScalarValue,
    /// The type of labels that travel as differences.
    #[prost(message, optional, tag = "2")]
    pub(super) of_differences: Option<ArrowType>,
}

/// An option and its value.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct Setting {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(oneof = "SettingValue", tags = "2, 3, 4")]
    pub(super) value: Option<SettingValue>,
}

/// The value of an option.
#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub(super) enum SettingValue {
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(uint64, tag = "3")]
    Number(u64),
    #[prost(string, tag = "4")]
    Text(String),
}

/// A place of a table, and its format.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct PlaceOf {
    #[prost(string, tag = "1")]
    pub(super) location: String,
    #[prost(string, tag = "2")]
    pub(super) format: String,
    /// The options that name what was opened there, in place of those of the table.
    #[prost(message, optional, tag = "3")]
    pub(super) options: Option<SettingsOf>,
}

/// All options of a place.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct SettingsOf {
    #[prost(message, repeated, tag = "1")]
    pub(super) settings: Vec<Setting>,
}

/// An object and its version.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct VersionOf {
    #[prost(string, tag = "1")]
    pub(super) object: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// Ranges of numbers, ascending: the gap before each range, and its length.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Runs {
    #[prost(uint64, repeated, tag = "1")]
    pub(super) gaps_and_lengths: Vec<u64>,
}

/// The selected indices of an axis.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Axis {
    #[prost(uint64, tag = "1")]
    pub(super) len: u64,
    /// The elements of a chunk along the axis.
    #[prost(uint64, tag = "2")]
    pub(super) chunk: u64,
    #[prost(uint64, tag = "3")]
    pub(super) chunks: u64,
    #[prost(message, required, tag = "4")]
    pub(super) selected: Runs,
    /// Whether chunks are read from the last to the first.
    #[prost(bool, tag = "5")]
    pub(super) reversed: bool,
}

/// A partition of a plan.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Part {
    #[prost(uint64, tag = "1")]
    pub(super) first_task: u64,
    #[prost(uint64, tag = "2")]
    pub(super) tasks: u64,
    #[prost(uint64, tag = "3")]
    pub(super) rows: u64,
}

/// Flags, one per axis.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Flags {
    #[prost(bool, repeated, tag = "1")]
    pub(super) flags: Vec<bool>,
}

/// The plan of a scan.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Plan {
    #[prost(message, repeated, tag = "1")]
    pub(super) axes: Vec<Axis>,
    /// The places that masks keep.
    #[prost(message, optional, tag = "2")]
    pub(super) kept: Option<Runs>,
    #[prost(message, optional, tag = "3")]
    pub(super) order: Option<Flags>,
    #[prost(uint64, tag = "4")]
    pub(super) pruned_by_zones: u64,
    #[prost(message, repeated, tag = "5")]
    pub(super) parts: Vec<Part>,
    #[prost(uint64, optional, tag = "6")]
    pub(super) cut_along: Option<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) max_partitions: u64,
    #[prost(uint64, optional, tag = "8")]
    pub(super) limit: Option<u64>,
    /// The chunks that all shares together leave out, if this share reports them.
    #[prost(message, optional, tag = "9")]
    pub(super) left_out: Option<LeftOut>,
    /// Whether another share reports the chunks that are left out.
    #[prost(bool, tag = "10")]
    pub(super) is_reported_elsewhere: bool,
}

/// Numbers of chunks that a plan leaves out.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct LeftOut {
    #[prost(uint64, tag = "1")]
    pub(super) by_selection: u64,
    #[prost(uint64, tag = "2")]
    pub(super) by_zones: u64,
    #[prost(uint64, tag = "3")]
    pub(super) by_limit: u64,
}

/// The key whose first rows are read first.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct First {
    #[prost(uint64, tag = "1")]
    pub(super) column: u64,
    #[prost(bool, tag = "2")]
    pub(super) descending: bool,
    #[prost(bool, tag = "3")]
    pub(super) nulls_first: bool,
}

/// A scan of a grid.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Scan {
    #[prost(message, required, tag = "1")]
    pub(super) origin: Origin,
    #[prost(message, required, tag = "2")]
    pub(super) plan: Plan,
    #[prost(uint64, repeated, tag = "3")]
    pub(super) projection: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub(super) ordering: Vec<PhysicalSortExprNode>,
    #[prost(uint64, repeated, tag = "6")]
    pub(super) non_null_columns: Vec<u64>,
    #[prost(message, optional, tag = "7")]
    pub(super) first: Option<First>,
}

/// A reduction.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Reduce {
    /// The aggregation over rows that it replaces, over a scan.
    #[prost(message, required, tag = "1")]
    pub(super) rows: PhysicalPlanNode,
    /// Whether it yields final values.
    #[prost(bool, tag = "2")]
    pub(super) is_whole: bool,
    /// Whether groups may be weighed.
    #[prost(bool, tag = "3")]
    pub(super) weighs: bool,
}

/// A window along a dimension.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Window {
    /// The window over rows that it replaces, over a scan.
    #[prost(message, required, tag = "1")]
    pub(super) rows: PhysicalPlanNode,
    /// The part of each partition.
    #[prost(message, repeated, tag = "2")]
    pub(super) parts: Vec<PartOf>,
    #[prost(uint64, repeated, tag = "3")]
    pub(super) projection: Vec<u64>,
    /// Per function, whether it has `IGNORE NULLS`, which the message of the window lacks.
    #[prost(bool, repeated, tag = "4")]
    pub(super) ignored_nulls: Vec<bool>,
}

/// The first rows of the partitions of a window.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Top {
    #[prost(message, required, tag = "1")]
    pub(super) scan: PhysicalPlanNode,
    #[prost(uint64, tag = "2")]
    pub(super) count: u64,
    #[prost(message, repeated, tag = "3")]
    pub(super) partition_by: Vec<PhysicalExprNode>,
    /// The first sort key.
    #[prost(message, repeated, tag = "4")]
    pub(super) order: Vec<PhysicalSortExprNode>,
    #[prost(message, repeated, tag = "5")]
    pub(super) predicate: Vec<PhysicalExprNode>,
    #[prost(bool, tag = "6")]
    pub(super) any_of_ties: bool,
}

/// A join that looks up the rows of its input.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Lookup {
    /// The join that it replaces, with nothing on the side that is looked up.
    #[prost(message, required, tag = "1")]
    pub(super) join: PhysicalPlanNode,
    /// Whether the array is on the left side.
    #[prost(bool, tag = "2")]
    pub(super) is_left: bool,
    #[prost(uint64, repeated, tag = "3")]
    pub(super) projection: Vec<u64>,
}

/// An aggregation above a join that looks up the rows of its input.
#[derive(Clone, PartialEq, Message)]
pub(super) struct JoinReduce {
    /// The aggregation over rows that it replaces, above a lookup of nothing.
    #[prost(message, required, tag = "1")]
    pub(super) rows: PhysicalPlanNode,
    /// Whether it yields final values.
    #[prost(bool, tag = "2")]
    pub(super) is_whole: bool,
}

/// The second input of a join that has a share of the chunks. It has no rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(super) struct JoinShare {}

/// The chunks whose rows a partition of a window returns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(super) struct PartOf {
    /// The first column of chunks, and the end of the columns.
    #[prost(uint64, tag = "1")]
    pub(super) first_column: u64,
    #[prost(uint64, tag = "2")]
    pub(super) end_column: u64,
    /// The first chunk along the axis, and the end of the chunks.
    #[prost(uint64, tag = "3")]
    pub(super) first_chunk: u64,
    #[prost(uint64, tag = "4")]
    pub(super) end_chunk: u64,
}

/// A tile of a sparse array.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Tile {
    #[prost(uint64, tag = "1")]
    pub(super) fragment: u64,
    #[prost(uint64, tag = "2")]
    pub(super) tile: u64,
    #[prost(bool, tag = "3")]
    pub(super) is_inside: bool,
    #[prost(bool, tag = "4")]
    pub(super) is_cut: bool,
}

/// Tiles that are merged.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Merge {
    #[prost(message, repeated, tag = "1")]
    pub(super) tiles: Vec<Tile>,
    /// The coordinates that the merge returns.
    #[prost(message, optional, tag = "2")]
    pub(super) range: Option<PhysicalExprNode>,
}

/// The tiles of a partition.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tiles {
    #[prost(message, repeated, tag = "1")]
    pub(super) merges: Vec<Merge>,
    #[prost(message, repeated, tag = "2")]
    pub(super) tiles: Vec<Tile>,
}

/// A scan of a sparse array.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SparseScan {
    #[prost(message, required, tag = "1")]
    pub(super) origin: Origin,
    /// The schema of the table, which the planned filters are over.
    #[prost(message, required, tag = "2")]
    pub(super) table: Schema,
    #[prost(uint64, repeated, tag = "3")]
    pub(super) projection: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub(super) partitions: Vec<Tiles>,
    #[prost(message, optional, tag = "5")]
    pub(super) dimensions: Option<PhysicalExprNode>,
    #[prost(message, repeated, tag = "6")]
    pub(super) negated: Vec<PhysicalExprNode>,
    #[prost(message, optional, tag = "7")]
    pub(super) values: Option<PhysicalExprNode>,
    /// The counts of tiles, for metrics.
    #[prost(uint64, repeated, tag = "8")]
    pub(super) counts: Vec<u64>,
    #[prost(uint64, tag = "9")]
    pub(super) cells: u64,
    #[prost(bool, tag = "10")]
    pub(super) is_exact: bool,
    #[prost(uint64, optional, tag = "11")]
    pub(super) limit: Option<u64>,
}

/// Answers from statistics of tiles, above the first stage of an aggregation, which travels as an input.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct SparseAnswer {}

/// A leaf whose partitions the input lists.
#[derive(Clone, PartialEq, Message)]
pub(super) struct WorkList {
    #[prost(message, required, tag = "1")]
    pub(super) leaf: PhysicalPlanNode,
}

/// A node that writes text files: DataFusion's, over an input without rows.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TextFiles {
    #[prost(message, required, tag = "1")]
    pub(super) sink: PhysicalPlanNode,
}
