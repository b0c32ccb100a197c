//! The attributes of the datasets and of the file, for `tet_attributes` and `array_attributes`.
//!
//! | dataset | key | value |
//! |---|---|---|
//! | temperature | units | degC |
//! | NULL | tool | tet convert |
//! | NULL | history.1.op | convert |

use super::reader::TetReader;
use gridfusion_core::source::facts::KnownAttribute;

/// Returns the attributes of the datasets `only`. With `None`, returns those of all datasets and of the file, and the
/// history of the file.
pub(super) fn attributes(file: &TetReader, only: Option<&[String]>) -> Vec<KnownAttribute> {
    let tet = file.tet();
    let mut all = Vec::new();
    for (id, dataset) in tet.datasets().iter().enumerate() {
        let name = dataset.name();
        let is_wanted = only.is_none_or(|only| only.iter().any(|it| it == name));
        // Attributes are stored by name and belong to the first dataset with that name.
        if is_wanted && tet.dataset_id(name) == Some(id) {
            let attributes = &tet.metadata_of(id).attrs;
            let variable = name.rsplit_once('/').map_or(name, |(_, last)| last);
            all.extend(attributes.iter().map(|(key, value)| {
                KnownAttribute::text(Some(name), key, value).of_variable(variable)
            }));
        }
    }
    if only.is_none() {
        let own = tet.file_attributes().iter();
        all.extend(own.map(|(key, value)| KnownAttribute::text(None, key, value)));
        // Each non-empty part of an event is an attribute, with the number of the event in its key.
        for (number, event) in (1..).zip(tet.history()) {
            let parts = [("op", &event.op), ("source", &event.source), ("at", &event.at)];
            let parts = parts.into_iter().filter(|(_, value)| !value.is_empty());
            all.extend(parts.map(|(part, value)| {
                KnownAttribute::text(None, format!("history.{number}.{part}"), value)
            }));
        }
    }
    all
}
