//! The output of `gridfusion --version`: the commit, the formats, the version of DataFusion and the target.

use std::sync::LazyLock;

use datafusion::DATAFUSION_VERSION;
use gridfusion::built_in_formats;

/// The version, and below it what bug reports need. `-V` prints the version alone.
pub(crate) static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("GRIDFUSION_COMMIT").unwrap_or("unknown");
    let mut formats: Vec<_> = built_in_formats().iter().map(|it| it.name()).collect();
    formats.sort_unstable();
    let (version, target) = (env!("CARGO_PKG_VERSION"), env!("GRIDFUSION_TARGET"));
    let formats = formats.join(", ");
    format!(
        "{version}\ncommit: {commit}\nformats: {formats}\nDataFusion: {DATAFUSION_VERSION}\ntarget: {target}"
    )
});
