//! A writer of Icechunk repositories, for tests: of the specifications 1 and 2. It shares no code with the reader.
//!
//! ```text
//!   repo                         in specification 1: refs/branch.main/ref.json
//!     └▶ snapshots/ID            the document of each group and array, and the manifests of each array
//!          └▶ manifests/ID       the chunks of all arrays of one axis, or some rows of chunks of another array
//!               ├▶ bytes         every second small chunk
//!               └▶ chunks/ID     the other small chunks of an array, one after another, or a large chunk
//! ```
//!
//! Transaction logs are left out: only later commits read them. The numbers of fields below are their places in the
//! FlatBuffers schemas of Icechunk. Versions 1.1 and 2.3 of its library read what this writes.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};

use super::flat_tables::{Field, FlatTables, Written};

/// The id of a snapshot, a manifest or an object with chunks.
type Id = [u8; 12];

/// The id of an array.
type NodeId = [u8; 8];

/// The kinds of metadata objects.
const OF_SNAPSHOT: u8 = 1;
const OF_MANIFEST: u8 = 2;
const OF_REPOSITORY: u8 = 6;

/// The id of the only snapshot.
const SNAPSHOT: Id = *b"one snapshot";

/// When it was written, in microseconds since 1970.
const TIME: u64 = 1_750_000_000_123_456;
const MESSAGE: &str = "all arrays";

/// The most bytes of a chunk that may be in a manifest.
const MOST_INLINE: usize = 1 << 16;

/// An array of Zarr's version 3.
pub(crate) struct StoredArray {
    pub(crate) name: String,
    /// The content of its `zarr.json`.
    pub(crate) document: Value,
    /// Its chunks and shards, by their coordinates, in any order.
    pub(crate) objects: Vec<(Vec<u64>, Vec<u8>)>,
}

/// A repository with one snapshot.
#[derive(Clone, Copy)]
pub(crate) struct IcechunkRepository {
    /// 1 or 2.
    pub(crate) specification: u8,
    /// The rows of chunks in a manifest of an array of several axes.
    pub(crate) rows: u64,
}

/// The content of each object, by its path.
pub(crate) type Objects = BTreeMap<String, Vec<u8>>;

impl IcechunkRepository {
    /// Returns the objects of a repository with a group and its arrays.
    pub(crate) fn objects(self, group: &Value, arrays: &[StoredArray]) -> Objects {
        let mut arrays: Vec<&StoredArray> = arrays.iter().collect();
        arrays.sort_by_key(|array| array.name.as_str());
        let nodes: Vec<Node<'_>> = (1..)
            .zip(arrays)
            .map(|(number, it)| Node { number, array: it, repository: self })
            .collect();
        let (mut objects, mut manifests) = (Objects::new(), BTreeMap::<Id, Arrays<'_>>::new());
        for node in &nodes {
            for (at, place) in node.chunks(&mut objects) {
                let manifest = manifests.entry(node.manifest(at)).or_default();
                manifest.entry(node.id()).or_default().push((at, place));
            }
        }
        let mut write = |object: String, kind: u8, content: &[u8]| {
            let bytes = self.object_of(kind, content);
            let len = bytes.len() as u64;
            objects.insert(object, bytes);
            len
        };
        let mut listed = vec![];
        for (id, arrays) in &manifests {
            let content = manifest(id, arrays);
            let bytes = write(format!("manifests/{}", name(id)), OF_MANIFEST, &content);
            let chunks = arrays.values().map(|chunks| chunks.len() as u32).sum();
            listed.push(ListedManifest { id: *id, bytes, chunks });
        }
        let content = snapshot(self.specification, group, &nodes, &listed);
        write(snapshot_object(), OF_SNAPSHOT, &content);
        if self.specification == 1 {
            let reference = json!({"snapshot": name(&SNAPSHOT)}).to_string();
            objects.insert("refs/branch.main/ref.json".to_owned(), reference.into_bytes());
        } else {
            write("repo".to_owned(), OF_REPOSITORY, &repository());
        }
        objects
    }

    /// Returns a metadata object: a header of 39 bytes, and the content in zstd.
    fn object_of(self, kind: u8, content: &[u8]) -> Vec<u8> {
        let program = format!("ICE🧊CHUNK{:24}", "tests of gridfusion");
        let header = [program.as_bytes(), &[self.specification, kind, 1]].concat();
        [header, zstd::encode_all(content, 1).unwrap()].concat()
    }
}

/// The path of the snapshot.
pub(crate) fn snapshot_object() -> String {
    format!("snapshots/{}", name(&SNAPSHOT))
}

/// Returns an id in Crockford's base 32: 96 bits, and four zeros behind them.
fn name(id: &Id) -> String {
    let bit = |at: usize| id.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let digit = |at: usize| (0..5).fold(0, |digit, more| digit << 1 | bit(5 * at + more));
    let letter = |at| char::from(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"[usize::from(digit(at))]);
    (0..20).map(letter).collect()
}

/// Where a chunk is.
enum Place<'a> {
    Inline(&'a [u8]),
    Native { id: Id, offset: u64, len: u64 },
}

/// The chunks of arrays, in the order of their coordinates.
type Arrays<'a> = BTreeMap<NodeId, Vec<(&'a [u64], Place<'a>)>>;

/// An array of the snapshot.
struct Node<'a> {
    number: u8,
    array: &'a StoredArray,
    repository: IcechunkRepository,
}

impl<'a> Node<'a> {
    /// Ids are in another order than paths.
    fn id(&self) -> NodeId {
        [255 - self.number; 8]
    }

    /// The cells, the cells of a chunk, and the chunks of each axis.
    fn axes(&self) -> Vec<[u64; 3]> {
        let document = &self.array.document;
        let chunks = &document["chunk_grid"]["configuration"]["chunk_shape"];
        let numbers = |list: &Value| -> Vec<u64> {
            list.as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).collect()
        };
        let axes = numbers(&document["shape"]).into_iter().zip(numbers(chunks));
        axes.map(|(len, chunk)| [len, chunk, len.div_ceil(chunk)]).collect()
    }

    /// Returns the chunks with their places, and writes those that are not inline: small ones into one object.
    fn chunks(&self, objects: &mut Objects) -> Vec<(&'a [u64], Place<'a>)> {
        let mut chunks: Vec<(&[u64], &[u8])> =
            self.array.objects.iter().map(|(at, bytes)| (&at[..], &bytes[..])).collect();
        chunks.sort_unstable();
        let place = |(number, (at, bytes)): (usize, (&'a [u64], &'a [u8]))| {
            let is_small = bytes.len() <= MOST_INLINE;
            if is_small && (number + usize::from(self.number)).is_multiple_of(2) {
                return (at, Place::Inline(bytes));
            }
            let mut id = [self.number; 12];
            if !is_small {
                id[8..].copy_from_slice(&(number as u32).to_le_bytes());
            }
            let object = objects.entry(format!("chunks/{}", name(&id))).or_default();
            let offset = object.len() as u64;
            object.extend(bytes);
            (at, Place::Native { id, offset, len: bytes.len() as u64 })
        };
        chunks.into_iter().enumerate().map(place).collect()
    }

    /// The manifest that lists a chunk.
    fn manifest(&self, at: &[u64]) -> Id {
        let [node, rows] = match at {
            [_] => [0, 0],
            _ => [self.number, (at[0] / self.repository.rows) as u8],
        };
        let mut id = *b"a manifest..";
        id[10..].copy_from_slice(&[node, rows]);
        id
    }

    /// The chunks per axis that may be in the same manifest as this one.
    fn extents(&self, at: &[u64]) -> Vec<Range<u64>> {
        let mut extents: Vec<Range<u64>> =
            self.axes().iter().map(|[.., count]| 0..*count).collect();
        if let [first, _, ..] = &mut extents[..] {
            let rows = self.repository.rows;
            let start = at[0] / rows * rows;
            *first = start..first.end.min(start + rows);
        }
        extents
    }

    /// Writes the node of a snapshot.
    fn write(&self, flat: &mut FlatTables) -> Written {
        let StoredArray { name, document, objects } = self.array;
        let manifests: BTreeMap<Id, Vec<Range<u64>>> =
            objects.iter().map(|(at, _)| (self.manifest(at), self.extents(at))).collect();
        let manifest = |(id, extents): (&Id, &Vec<Range<u64>>)| {
            let ends = extents.iter().flat_map(|it| [it.start as u32, it.end as u32]);
            let ends = flat.records(&ends.collect::<Vec<u32>>(), extents.len());
            flat.table(&[(0, Field::Struct(id)), (1, ends)])
        };
        let manifests: Vec<Written> = manifests.iter().map(manifest).collect();
        let manifests = flat.list(&manifests);
        let name_of_axis = |it: &Value| {
            let name = flat.text(it.as_str().unwrap());
            flat.table(&[(0, name)])
        };
        let names = document["dimension_names"].as_array().unwrap();
        let names: Vec<Written> = names.iter().map(name_of_axis).collect();
        let names = flat.list(&names);
        let mut fields = vec![(1, names), (2, manifests)];
        let (axes, mut pairs) = (self.axes(), vec![]);
        if self.repository.specification == 1 {
            pairs.extend(axes.iter().flat_map(|[len, chunk, _]| [*len, *chunk]));
        } else {
            let axis = |[len, _, count]: &[u64; 3]| {
                flat.table(&[(0, Field::Long(*len)), (1, Field::Word(*count as u32))])
            };
            let axes: Vec<Written> = axes.iter().map(axis).collect();
            fields.push((3, flat.list(&axes)));
        }
        fields.push((0, flat.records(&pairs, pairs.len() / 2)));
        let data = flat.table(&fields);
        node(flat, &self.id(), &format!("/{name}"), document, (1, data))
    }
}

/// Writes a group or an array. `data` are the kind and the fields of one of them.
fn node(
    flat: &mut FlatTables,
    id: &NodeId,
    path: &str,
    document: &Value,
    (kind, data): (u8, Written),
) -> Written {
    let path = flat.text(path);
    let document = flat.bytes(document.to_string().as_bytes());
    let fields = [(0, Field::Struct(id)), (1, path), (2, document)];
    flat.table(&[&fields[..], &[(3, Field::Byte(kind)), (4, data)]].concat())
}

/// Returns the content of a manifest.
fn manifest(id: &Id, arrays: &Arrays<'_>) -> Vec<u8> {
    let mut flat = FlatTables::default();
    let mut written = vec![];
    for (node, chunks) in arrays {
        let chunks: Vec<Written> =
            chunks.iter().map(|(at, place)| reference(&mut flat, at, place)).collect();
        let chunks = flat.list(&chunks);
        written.push(flat.table(&[(0, Field::Struct(node)), (1, chunks)]));
    }
    let written = flat.list(&written);
    let root = flat.table(&[(0, Field::Struct(id)), (1, written)]);
    flat.finish(root)
}

/// Writes where a chunk is.
fn reference(flat: &mut FlatTables, at: &[u64], place: &Place<'_>) -> Written {
    let at: Vec<u32> = at.iter().map(|it| *it as u32).collect();
    let at = flat.records(&at, at.len());
    match place {
        Place::Inline(bytes) => {
            let bytes = flat.bytes(bytes);
            flat.table(&[(0, at), (1, bytes)])
        }
        Place::Native { id, offset, len } => flat.table(&[
            (0, at),
            (2, Field::Long(*offset)),
            (3, Field::Long(*len)),
            (4, Field::Struct(id)),
        ]),
    }
}

/// A manifest, as the snapshot lists it.
struct ListedManifest {
    id: Id,
    bytes: u64,
    chunks: u32,
}

/// Returns the content of the snapshot.
fn snapshot(
    specification: u8,
    group: &Value,
    nodes: &[Node<'_>],
    manifests: &[ListedManifest],
) -> Vec<u8> {
    let mut flat = FlatTables::default();
    let nothing = flat.table(&[]);
    let mut written = vec![node(&mut flat, &[0; 8], "/", group, (2, nothing))];
    written.extend(nodes.iter().map(|node| node.write(&mut flat)));
    let mut fields = vec![
        (0, Field::Struct(&SNAPSHOT)),
        (2, flat.list(&written)),
        (3, Field::Long(TIME)),
        (4, flat.text(MESSAGE)),
        (5, flat.list(&[])),
    ];
    let mut words = vec![];
    if specification == 1 {
        // An id and a gap of four bytes, the bytes, the chunks and a gap of four bytes.
        for ListedManifest { id, bytes, chunks } in manifests {
            let id = [&id[..], &[0; 4]].concat();
            words.extend(id.chunks(8).map(|it| u64::from_le_bytes(it.try_into().unwrap())));
            words.extend([*bytes, u64::from(*chunks)]);
        }
    } else {
        let listed = manifests.iter().map(|ListedManifest { id, bytes, chunks }| {
            let fields = [(1, Field::Long(*bytes)), (2, Field::Word(*chunks))];
            flat.table(&[&[(0, Field::Struct(id))], &fields[..]].concat())
        });
        let listed: Vec<Written> = listed.collect();
        fields.push((7, flat.list(&listed)));
    }
    fields.push((6, flat.records(&words, words.len() / 4)));
    let root = flat.table(&fields);
    flat.finish(root)
}

/// Returns the content of `repo`: the branch `main` is the only snapshot.
fn repository() -> Vec<u8> {
    let mut flat = FlatTables::default();
    let main = flat.text("main");
    let main = flat.table(&[(0, main), (1, Field::Word(0))]);
    let message = flat.text(MESSAGE);
    let facts = [(1, Field::Int(-1)), (2, Field::Long(TIME)), (3, message)];
    let snapshot = flat.table(&[&[(0, Field::Struct(&SNAPSHOT))], &facts[..]].concat());
    // The repository is online.
    let status = flat.table(&[(0, Field::Byte(0)), (1, Field::Long(TIME))]);
    // The log: the repository was made.
    let made = flat.table(&[]);
    let update = flat.table(&[(0, Field::Byte(1)), (1, made), (2, Field::Long(TIME))]);
    let fields = [
        (0, Field::Byte(2)),
        (1, flat.list(&[])),
        (2, flat.list(&[main])),
        (3, flat.list(&[])),
        (4, flat.list(&[snapshot])),
        (5, status),
        (7, flat.list(&[update])),
    ];
    let root = flat.table(&fields);
    flat.finish(root)
}
