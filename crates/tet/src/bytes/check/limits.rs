//! The limits that the format sets for a footer. Readers do not enforce these limits; writers and the
//! reference's `verify` do. See crates/tet/FORMAT.md, section 9.
//!
//! The JSON is checked as a tree of values, because the types that readers parse it into leave parts out.

use serde_json::{Map, Value};

/// The most bytes of the footer's JSON. Metadata that would make it longer is spilled.
pub(super) const FOOTER_BYTES: u64 = 64 << 10;
/// The most bytes of spilled metadata.
pub(super) const SPILLED_BYTES: u64 = 16 << 20;

/// Events of the history.
const EVENTS: usize = 4096;
/// Parents of an event.
const PARENTS: usize = 16;
/// Parameters of an event.
const PARAMETERS: usize = 32;
const DATASETS: usize = 256;
/// Attributes of a dataset.
const ATTRIBUTES: usize = 64;
/// Names of dimensions, and lists of labels, of a dataset.
const AXES: usize = 8;
/// Labels in a list. Longer axes have their labels in a dataset.
const LABELS: usize = 64;
/// Bytes of every text; the least is 1.
const TEXT_BYTES: usize = 1024;

/// Returns a message for each limit that the footer's JSON exceeds.
pub(super) fn of_footer(json: &Value) -> Vec<String> {
    let mut exceeded = ExceededLimits::default();
    let events = elements(&json["history"]);
    exceeded.count("history", "events", events.len(), EVENTS);
    for (number, event) in events.iter().enumerate() {
        exceeded.event(&format!("history event {number}"), event);
    }
    exceeded.metadata(&json["metadata"]);
    exceeded.0
}

/// Returns a message for each limit that spilled metadata exceeds.
pub(super) fn of_metadata(json: &Value) -> Vec<String> {
    let mut exceeded = ExceededLimits::default();
    exceeded.metadata(json);
    exceeded.0
}

/// A message for each exceeded limit.
#[derive(Default)]
struct ExceededLimits(Vec<String>);

impl ExceededLimits {
    /// Checks a number of things: "`of` has `found` `what`".
    fn count(&mut self, of: &str, what: &str, found: usize, most: usize) {
        if found > most {
            self.0.push(format!("{of} has {found} {what}, the format allows {most}"));
        }
    }

    /// Checks the length of a text, which must not be empty.
    fn text(&mut self, what: &str, text: &str) {
        if text.is_empty() {
            self.0.push(format!("{what} is empty, which the format does not allow"));
        }
        self.count(what, "bytes", text.len(), TEXT_BYTES);
    }

    /// Checks a value that is text. Values of other types have no limits.
    fn value(&mut self, what: &str, value: &Value) {
        if let Value::String(text) = value {
            self.text(what, text);
        }
    }

    fn texts(&mut self, what: &str, texts: &[Value]) {
        texts.iter().for_each(|text| self.value(what, text));
    }

    /// Checks names and values of an object, such as attributes.
    fn pairs(&mut self, what: &str, pairs: &Value) {
        for (key, value) in members(pairs) {
            self.text(&format!("the name of {what}"), key);
            self.value(&format!("{what} \"{key}\""), value);
        }
    }

    /// Checks an event of the history: an object, or in older files a triple of texts.
    fn event(&mut self, name: &str, event: &Value) {
        if let Value::Array(triple) = event {
            return self.texts(name, triple);
        }
        for part in ["op", "source", "at", "agent", "activity", "entity"] {
            self.value(&format!("\"{part}\" of {name}"), &event[part]);
        }
        let parents = elements(&event["parents"]);
        self.count(name, "parents", parents.len(), PARENTS);
        self.texts(&format!("a parent of {name}"), parents);
        self.count(name, "parameters", members(&event["params"]).count(), PARAMETERS);
        self.pairs(&format!("a parameter of {name}"), &event["params"]);
    }

    fn metadata(&mut self, metadata: &Value) {
        self.pairs("the file's attribute", &metadata["file"]);
        let datasets = &metadata["datasets"];
        self.count("the metadata", "datasets", members(datasets).count(), DATASETS);
        for (name, dataset) in members(datasets) {
            self.text("the name of a dataset", name);
            let name = format!("dataset \"{name}\"");
            self.count(&name, "attributes", members(&dataset["attrs"]).count(), ATTRIBUTES);
            self.pairs(&format!("attribute of {name}"), &dataset["attrs"]);
            let dimensions = elements(&dataset["dim_names"]);
            self.count(&name, "dimension names", dimensions.len(), AXES);
            self.texts(&format!("a dimension name of {name}"), dimensions);
            self.count(&name, "lists of labels", members(&dataset["coords"]).count(), AXES);
            for (axis, labels) in members(&dataset["coords"]) {
                let of = format!("axis \"{axis}\" of {name}");
                self.text(&format!("the name of an axis of {name}"), axis);
                let labels = elements(&labels["labels"]);
                self.count(&of, "labels", labels.len(), LABELS);
                self.texts(&format!("a label of {of}"), labels);
            }
        }
    }
}

/// Returns the elements of an array; none for other JSON.
fn elements(json: &Value) -> &[Value] {
    json.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the members of an object; none for other JSON.
fn members(json: &Value) -> impl Iterator<Item = (&String, &Value)> {
    json.as_object().into_iter().flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_allowed_exceeds_nothing() {
        let labels: Vec<String> = (0..64).map(|label| label.to_string()).collect();
        let footer = json!({
            "history": [["convert", "h5", "1"], {"op": "x", "source": "nc", "at": "2", "parents": ["p"]}],
            "metadata": {"file": {"tool": "t"}, "datasets": {"v": {
                "attrs": {"units": "x".repeat(1024)}, "dim_names": ["a"], "coords": {"a": {"labels": labels}},
            }}},
        });
        assert!(of_footer(&footer).is_empty());
        assert!(of_footer(&json!({})).is_empty() && of_footer(&json!([1])).is_empty());
    }

    #[test]
    fn every_limit_is_looked_at() {
        let many = |count: usize| vec!["x"; count];
        let named = |count: usize| -> Value {
            (0..count).map(|name| (name.to_string(), json!("x"))).collect::<Map<_, _>>().into()
        };
        let dataset = |of: Value| json!({"metadata": {"datasets": {"v": of}}});
        for (footer, part) in [
            (json!({"history": vec![["a", "b", "c"]; 4097]}), "4097 events"),
            (json!({"history": [["", "b", "c"]]}), "history event 0 is empty"),
            (json!({"history": [{"op": "x".repeat(1025)}]}), "\"op\" of history event 0 has 1025"),
            (json!({"history": [{"parents": many(17)}]}), "17 parents"),
            (json!({"history": [{"params": named(33)}]}), "33 parameters"),
            (json!({"metadata": {"datasets": named(257)}}), "257 datasets"),
            (json!({"metadata": {"file": {"tool": ""}}}), "\"tool\" is empty"),
            (dataset(json!({"attrs": named(65)})), "65 attributes"),
            (dataset(json!({"attrs": {"units": ""}})), "\"units\" is empty"),
            (dataset(json!({"dim_names": many(9)})), "9 dimension names"),
            (dataset(json!({"coords": named(9)})), "9 lists of labels"),
            (dataset(json!({"coords": {"a": {"labels": many(65)}}})), "65 labels"),
        ] {
            let exceeded = of_footer(&footer);
            assert!(exceeded.len() == 1 && exceeded[0].contains(part), "{part}: {exceeded:?}");
        }
    }
}
