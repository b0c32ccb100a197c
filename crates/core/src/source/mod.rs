//! Stored arrays: the traits of formats, the formats, and tables of several arrays.
//!
//! ```text
//!   location ──▶ Place ──▶ Formats: which format? ──▶ ArrayFormat::open ──▶ ArrayGroup ──▶ GridArray
//!                                     │                                       many places ──▶ mosaic
//!                                     └ formats of other crates, and those that a session adds
//! ```
//!
//! | files | contents |
//! |---|---|
//! | `place`, `locations` | a path or URL that can be read; several of them, and patterns |
//! | `origin` | what a table was opened from |
//! | `array_format`, `formats`, `place_format` | the traits of a format; which format a place has |
//! | `format_options` | the options of all formats |
//! | `opened_array`, `chosen_columns` | an array of either kind, the arrays of one table, and which these are |
//! | `mosaic` | several arrays as one table |
//! | `provided` | defaults of the traits |
//! | `digest` | tells versions of arrays apart |
//! | `opening_counter` | how many files a session opens |
//! | `description`, `facts`, `known_dataset`, `conventions`, `show`, `fact_table` | facts for `gridfusion info` and SQL |
//! | `collection` | the files of a folder or pattern: what they have in common, and in what they differ |
//! | `array_facts` | the tables of facts that every format has |
//! | `elsewhere`, `axes` | messages about places without arrays, and about arrays that do not fit |

mod array_facts;
mod array_format;
pub mod axes;
mod chosen_columns;
mod collection;
mod conventions;
mod description;
mod digest;
mod elsewhere;
mod fact_table;
pub mod facts;
mod format_options;
mod formats;
mod known_dataset;
mod locations;
pub(crate) mod mosaic;
mod opened_array;
mod opening_counter;
mod origin;
mod place;
mod place_format;
mod provided;
pub mod show;

pub use array_facts::{
    ARRAY_ATTRIBUTES, ARRAY_CHUNKS, ARRAY_INFO, ArrayFacts, Column, FactRows, KnownChunk, Needs,
    StoredFacts, array_facts,
};
pub use array_format::{
    ArrayFormat, ArrayGroup, Ending, InfoFunction, ListedValue, MatchedGroup, MatchedGroups,
    PinnedOption, RecognisedFormat, verify_group,
};
pub use collection::Collection;
pub use conventions::Conventions;
pub use description::{Description, Detail, Fact, Page, PageTable, Side};
pub use digest::digest;
pub use elsewhere::{described, holds, refuse_foreign};
pub use fact_table::{FactTable, Facts};
pub use format_options::mosaic_options;
pub use formats::{Formats, RecognisedPlace};
pub use known_dataset::{KnownDataset, Role};
pub use locations::Locations;
pub use locations::{Places, is_pattern};
pub use mosaic::{AlignedArray, Arrangement, KnownFiles};
pub use mosaic::{FileArrays, FileLabel, GroupPattern, MosaicOptions, Stack, StackLabels};
pub use mosaic::{KnownFile, OpensFiles};
pub use opened_array::{BesideArray, OpenedArray, TableArrays};
pub use opening_counter::OpeningCounter;
pub use origin::TableOrigin;
pub use origin::{JoinedOrigin, OriginPlace};
pub use place::{Place, Stores};
pub use place::{parse_url, path_of};
pub use provided::{NamedArray, data_variables};
pub use show::size_text;
