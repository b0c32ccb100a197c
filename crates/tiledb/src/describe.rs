//! The description of TileDB arrays and groups for `gridfusion info`.
//!
//! A place that is one array gets the page and the document of that array ([`DescribedArray`]). A group or
//! folder gets a page with a line per array, and a document with the documents of all arrays. Arrays that
//! cannot be opened are warnings there.

use super::described_array::DescribedArray;
use super::members::Members;
use super::open_settings::OpenSettings;
use gridfusion_core::Result;
use gridfusion_core::source::Place;
use gridfusion_core::source::show::{shape_text, size_text};
use gridfusion_core::source::{Description, Detail, Fact, Page, PageTable, Side};
use gridfusion_core::verify::counted;

/// Describes the array at `place`, or all arrays in the group or folder there.
pub(super) async fn describe(
    place: &Place,
    members: &Members,
    reading: &OpenSettings,
    detail: &Detail,
) -> Result<Description> {
    let located: Vec<(&String, &String)> = members.arrays.iter().collect();
    if let [(name, location)] = located[..]
        && location == place.location()
    {
        let array = array(name, &place.referenced(location)?, reading, detail).await?;
        return Ok(Description::new(array.document(), vec![array.page()]));
    }
    let (mut arrays, mut warnings) = (Vec::new(), Vec::new());
    for (name, location) in located {
        let described = match place.referenced(location) {
            Ok(place) => array(name, &place, reading, detail).await,
            Err(error) => Err(error),
        };
        match described {
            Ok(array) => arrays.push(array),
            Err(error) => warnings.push(format!("array \"{name}\": {error}")),
        }
    }
    warnings.extend(members.left_out.iter().map(|error| format!("left out: {error}")));
    let document = Fact::Record(vec![
        ("path", place.shown().into()),
        ("format", "tiledb_folder".into()),
        ("arrays", Fact::List(arrays.iter().map(DescribedArray::document).collect())),
        ("warnings", warnings.clone().into()),
    ]);
    let mut pages = vec![
        Page::new(
            place.shown(),
            vec![format!("TileDB, {}", counted(arrays.len() as u64, "array"))],
        )
        .with_tables(vec![table(&arrays)])
        .with_warnings(warnings),
    ];
    // Metadata and lists of fragments are shown on a page per array.
    if detail.metadata || detail.listed.is_some() {
        pages.extend(arrays.iter().map(DescribedArray::page));
    }
    Ok(Description::new(document, pages))
}

/// Opens and describes one array.
async fn array(
    name: &str,
    place: &Place,
    reading: &OpenSettings,
    detail: &Detail,
) -> Result<DescribedArray> {
    let opened = reading.open(place).await?;
    DescribedArray::try_new(name, place.location(), opened, &reading.view, detail).await
}

/// Makes the table of a group, with a row per array.
fn table(arrays: &[DescribedArray]) -> PageTable {
    let columns = [
        ("ARRAY", Side::Left),
        ("KIND", Side::Left),
        ("SHAPE", Side::Left),
        ("TILE", Side::Left),
        ("FRAGMENTS", Side::Right),
        ("STORED", Side::Right),
        ("DIMENSIONS", Side::Left),
        ("ATTRIBUTES", Side::Left),
    ];
    let rows = arrays.iter().map(|it| {
        let schema = it.schema();
        let dimensions: Vec<&str> = schema.dimensions.iter().map(|it| it.name.as_str()).collect();
        let attributes: Vec<&str> = schema.attributes.iter().map(|it| it.name.as_str()).collect();
        [
            Some(it.name().to_owned()),
            Some(schema.kind.to_string()),
            it.shape().as_deref().map(shape_text),
            it.tile_shape().as_deref().map(shape_text),
            Some(it.fragments().len().to_string()),
            Some(size_text(it.stored_bytes())),
            Some(dimensions.join(", ")),
            Some(attributes.join(", ")),
        ]
    });
    PageTable::new(columns, rows)
}
