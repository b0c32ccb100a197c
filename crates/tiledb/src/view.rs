//! Settings that decide which cells and types a table of a TileDB array shows.

use gridfusion_core::array::{Encoding, ReadOptions};
use gridfusion_core::options::ResolvedOptions;

/// The settings that decide which cells and types a table of a TileDB array shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TileDbView {
    /// Shows the whole domain instead of the smallest box around all fragments. An array with a
    /// current domain always shows the current domain. Default: false.
    pub full_domain: bool,
    /// Shows text as bytes, valid or not. Default: false.
    pub text_as_binary: bool,
    /// The character set of attributes of text, in place of ASCII and UTF-8. Default: none.
    pub text_encoding: Option<Encoding>,
    /// Shows dates and times as the stored integers. Default: false.
    pub time_as_integer: bool,
    /// How stored data becomes SQL values. The fill value of TileDB does not mark missing data, so
    /// [`ReadOptions::fill_as_null`] is false by default.
    pub read: ReadOptions,
}

impl Default for TileDbView {
    fn default() -> Self {
        let read = ReadOptions::default().with_fill_as_null(false);
        Self {
            full_domain: false,
            text_as_binary: false,
            text_encoding: None,
            time_as_integer: false,
            read,
        }
    }
}

impl TileDbView {
    /// Takes the view from the options.
    pub fn new(options: &ResolvedOptions) -> Self {
        let built_in = Self::default();
        let flag = |name: &str, built_in: bool| options.flag(name).unwrap_or(built_in);
        Self {
            full_domain: flag("full_domain", built_in.full_domain),
            text_as_binary: flag("text_as_binary", built_in.text_as_binary),
            text_encoding: options.text("text_encoding").and_then(Encoding::from_name),
            time_as_integer: flag("time_as_integer", built_in.time_as_integer),
            read: options.read(&built_in.read),
        }
    }
}
