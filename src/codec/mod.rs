//! Physical plans as bytes, for engines that run parts of a plan in other processes.
//!
//! ```text
//!   coordinator                                       worker
//!   GridScanExec, GridReduceExec, …                   TravelledExec: what the node declared, and how to make it
//!       │ try_encode                                      │ execute: the first poll
//!       ▼                                                 ▼
//!   magic, version, zstd of an Envelope ──network──▶  open the table ─▶ compare versions ─▶ the node itself
//! ```
//!
//! Decoding opens nothing, because engines decode on threads that must not wait. So the bytes hold all that a node
//! declares to DataFusion. Nothing is decided again in the other process: partitions, chunks and the kind of a
//! reduction are those that were planned.
//!
//! - Versions are compared when a table is opened: the length with the tag or time of a file, the names of TileDB's
//!   fragments and deletions, a digest of Zarr's metadata.
//! - Files of a mosaic are opened when they are read. The bytes hold the labels, chunk grids and versions of all files.
//! - A reduction holds the aggregation that it replaced, and is made with the kind that was planned. Making it fails if
//!   it comes out otherwise.
//! - I/O errors of a travelled node are `DataFusionError::IoError`, because engines repeat tasks after these.
//! - A leaf of one partition is never divided, because the operators above rely on seeing all of its rows.
//!
//! | file | contents |
//! |---|---|
//! | `node_codec` | [`GridfusionCodec`], which DataFusion calls |
//! | `envelope` | the bytes around a message: magic, version, compression, checksum |
//! | `messages`, `spatial_messages` | the messages, as protocol buffers |
//! | `converters` | expressions and nested plans, by the converter of the engine |
//! | `declarations` | schema, orders, partitions, statistics, dynamic filters and text of a node |
//! | `numbers` | selections and lists of chunks, as runs |
//! | `origins`, `known_files`, `versions` | what a table was opened from: places, files of a table of many, their versions |
//! | `tables` | tables that this process has opened for plans |
//! | `recipe` | how to make a node, as a trait |
//! | `grid_nodes`, `window_node`, `lookup_node`, `join_reduce_node`, `top_node`, `sparse_nodes` | the recipes of nodes, as messages and back |
//! | `spatial_nodes` | the recipes of cells of polygons and points |
//! | `text_files` | nodes that write text files, as messages and back |
//! | `shares` | [`SharedLeaf`], a leaf that several processes run together |
//! | `shared_join`, `shared_recipe` | joins whose chunks are a leaf, so that several processes run them together |
//! | `every_node` | all nodes of a plan that came from another process |
//! | `work_list` | [`WorkListExec`], a leaf whose partitions an engine can choose |
//! | `travelled_exec` | [`TravelledExec`], a node that came from another process |

mod converters;
mod declarations;
mod envelope;
mod every_node;
mod grid_nodes;
mod join_reduce_node;
mod known_files;
mod lookup_node;
mod messages;
mod node_codec;
mod numbers;
mod origins;
mod recipe;
mod shared_join;
mod shared_recipe;
mod shares;
mod sparse_nodes;
mod spatial_messages;
mod spatial_nodes;
mod tables;
mod text_files;
mod top_node;
mod travelled_exec;
mod versions;
mod window_node;
mod work_list;

pub use every_node::visit_every_node;
pub use node_codec::GridfusionCodec;
pub use origins::refuse_secret_url;
pub use shared_join::{with_shared_joins, without_shared_joins};
pub use shares::SharedLeaf;
pub use spatial_nodes::has_large_grid;
pub use travelled_exec::TravelledExec;
pub use work_list::{WorkListExec, with_work_lists};
