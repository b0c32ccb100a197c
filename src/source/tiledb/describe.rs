//! What arrays and groups are, at a glance.

use super::group::TileDbGroup;
use crate::error::Result;
use crate::source::description::{Description, Detail, Fact};

/// What is known of the arrays of a group.
pub(super) async fn describe(group: &TileDbGroup, detail: &Detail) -> Result<Description> {
    let _ = detail;
    let location = group.place.location().to_owned();
    Ok(Description { document: Fact::Text(location), pages: vec![] })
}
