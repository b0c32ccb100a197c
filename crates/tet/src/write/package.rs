//! [`TetPackageWriter`]: a generation of a `.tet.d` package, the first one or another one.
//!
//! ```text
//!   publishing/.gridfusion-3                                            what a killed program leaves is found by it
//!   publishing/00000003 ── HEARTBEAT                                    no other program publishes this number
//!   generations/00000003 ─ packed.tet, ZONE.json, MANIFEST.json         sealed: they never change
//!   CURRENT  2 ──▶ 3                                                    readers find them; generation 2 stays
//! ```

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use gridfusion_core::format::{ByteRange, Content, Entry, Location, Publish, Write, Writer};
use gridfusion_core::tile::Objects;
use gridfusion_core::write::{ArrayWriter, NewArray, NewChunk};
use gridfusion_core::{Error, Result};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::image::hex;
use super::writer::{TetEncoding, TetWriter};
use crate::bytes::open_package::{check_protocol, parse_current};
use crate::bytes::package_names::{
    CURRENT, GENERATIONS, MANIFEST_FILE, PACKED_FILE, PROTOCOL, PROTOCOL_VERSION, PUBLISHING,
    STAGING, ZONE_FILE, folder_of,
};

/// The object that claims a generation for one program: the time in seconds.
const HEARTBEAT: &str = "HEARTBEAT";
/// The object in the folder of claims, with the number of a generation behind, that tells of a claim by gridfusion. gridfusion locks the
/// package, too: with the lock, such a claim is that of a program that was stopped.
const MARK: &str = ".gridfusion-";
/// Keeps a folder that other programs expect, and has no bytes.
const KEEP: &str = ".keep";

/// A package that gets another generation.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{ArrayRef, Float32Array, Int32Array};
/// use arrow::datatypes::DataType;
/// use futures::stream;
/// use gridfusion_core::format::Writer;
/// use gridfusion_core::io::LocalFolder;
/// use gridfusion_core::tile::{Objects, WriteSession, write_all};
/// use gridfusion_core::write::{ArrayWriter, NewArray, NewChunk, NewDimension, NewVariable};
/// use gridfusion_tet::{TetEncoding, TetPackageTarget, TetPackageWriter, open};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion_core::Result<()> {
/// let array = || {
///     let labels = Arc::new(Int32Array::from(vec![10, 20, 30]));
///     let x = NewDimension { name: "x".into(), labels, attributes: Default::default() };
///     let v = NewVariable {
///         name: "v".into(),
///         data_type: DataType::Float32,
///         fill: None,
///         attributes: Default::default(),
///     };
///     NewArray::try_new(vec![x], vec![v], &[3])
/// };
/// let chunk = |cells: [f32; 3]| NewChunk {
///     variable: 0,
///     coordinates: vec![0],
///     cells: Arc::new(Float32Array::from(cells.to_vec())) as ArrayRef,
///     given: None,
/// };
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("x.tet.d");
/// # std::fs::create_dir(&path).unwrap();
/// let folder = Arc::new(LocalFolder::open(&path, false)?);
/// let writer = TetPackageWriter::try_new(array()?, TetEncoding::default())?;
/// write_all(writer, stream::iter([Ok(chunk([0.5, 1.0, 1.5]))]), folder.clone()).await?;
///
/// let objects = Objects::many_rewritten(folder.clone());
/// let target = TetPackageTarget::open(&objects, TetEncoding::default(), false).await?;
/// let mut writer = target.writer(array()?)?;
/// let mut session = WriteSession::new(folder);
/// session.write(writer.write(chunk([2.0, 2.5, 3.0]))?).await?;
/// let (rest, publish) = writer.finish()?;
/// session.write(rest).await?;
/// session.publish(publish).await?; // readers find generation 2
/// session.write(writer.afterwards()).await?;
///
/// assert_eq!(std::fs::read_to_string(path.join("CURRENT")).unwrap(), "2\n");
/// assert!(open(path.to_str().unwrap()).await.is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TetPackageTarget {
    encoding: TetEncoding,
    /// The number of the new generation.
    number: u64,
    /// The bytes of `CURRENT`, if a generation is current.
    current: Option<Bytes>,
    /// The folders that would be gone without an object, as local ones are.
    bare: Vec<&'static str>,
    /// The generations and claims of programs that were stopped.
    left: Vec<Arc<str>>,
    /// The marks of these claims, which are deleted last.
    marks: Vec<Arc<str>>,
}

impl TetPackageTarget {
    /// Opens a package. The caller holds its lock. `takes_over` tells that no other program publishes a generation, although its claim is
    /// there.
    ///
    /// # Errors
    /// `Usage` if there is no package, or another program publishes a generation. `Corrupt` or `Unsupported` if it has other rules.
    pub async fn open(objects: &Objects, encoding: TetEncoding, takes_over: bool) -> Result<Self> {
        let opened = Self::find(objects, encoding, takes_over).await;
        opened.map_err(|error| objects.named(error))
    }

    async fn find(objects: &Objects, encoding: TetEncoding, takes_over: bool) -> Result<Self> {
        let texts = [PROTOCOL, CURRENT].map(|name| Location::new(name, ByteRange::Whole));
        let mut texts = objects.read_if_present(&texts).await?.into_iter();
        let (protocol, current) = (texts.next().flatten(), texts.next().flatten());
        let Some(protocol) = protocol else {
            return Err(Error::usage(format!("this is no .tet.d package: it has no {PROTOCOL}")));
        };
        check_protocol(&protocol).map_err(|error| error.in_file(PROTOCOL))?;
        let number = current.as_deref().map(parse_current).transpose();
        let number = number.map_err(|error| error.in_file(CURRENT))?;
        let claims = entries_in(objects, PUBLISHING).await?;
        let marks = claims.iter().filter_map(|it| it.name.strip_prefix(MARK)?.parse::<u64>().ok());
        let marks: Vec<u64> = marks.collect();
        let (mut left, of_marks) = (vec![], marks.iter().map(|it| mark_of(*it)).collect());
        let (mut stopped, mut others) = (marks, vec![]);
        for claim in numbers_of(&claims) {
            if takes_over || stopped.contains(&claim) {
                left.extend(objects_in(objects, &claim_of(claim)).await?);
                stopped.push(claim);
            } else {
                others.push(claim);
            }
        }
        let of_generations = entries_in(objects, GENERATIONS).await?;
        let is_bare = |entries: &[Entry]| !entries.iter().any(|it| it.name == KEEP);
        let folders = [(PUBLISHING, &claims), (GENERATIONS, &of_generations)];
        let bare = folders.into_iter().filter(|(_, entries)| is_bare(entries));
        let bare = bare.map(|(folder, _)| folder).collect();
        let mut generations = vec![];
        for generation in numbers_of(&of_generations) {
            // A generation behind the current one may be complete: a program may have gone back to an older one.
            if Some(generation) > number && !others.contains(&generation) {
                let own = objects_in(objects, &folder_of(generation)).await?;
                let is_complete = own.iter().any(|it| it.ends_with(PACKED_FILE));
                if stopped.contains(&generation) || !is_complete {
                    left.extend(own);
                    continue;
                }
            }
            generations.push(generation);
        }
        let last = generations.into_iter().chain(number).max().unwrap_or(0);
        let next = last.checked_add(1).filter(|next| !others.contains(next));
        let Some(number) = next else {
            return Err(Error::usage(format!(
                "another program publishes generation {}, or was stopped while it did; if none does, the option 'unlock' takes its place",
                last.saturating_add(1)
            ))
            .in_file(&claim_of(last.saturating_add(1))));
        };
        Ok(Self { encoding, number, current, bare, left, marks: of_marks })
    }

    /// Returns writes that remove what a program has left that was stopped. They are applied first.
    pub fn repair(&mut self) -> Vec<Write> {
        let keep = std::mem::take(&mut self.bare).into_iter().map(kept).collect();
        let [left, marks] = [&mut self.left, &mut self.marks].map(std::mem::take);
        vec![Write::Replace(keep), Write::Delete(left), Write::Delete(marks)]
    }

    /// Returns the writer of the new generation.
    ///
    /// # Errors
    /// As [`TetWriter::try_new`].
    pub fn writer(self, array: NewArray) -> Result<TetPackageWriter> {
        let Self { encoding, number, current, .. } = self;
        let file = TetWriter::try_new(array, PACKED_FILE, encoding)?;
        Ok(TetPackageWriter { file, number, current, is_new: false })
    }
}

/// Writes an array as the first generation of a package, or as another one of a [`TetPackageTarget`].
#[derive(Debug)]
pub struct TetPackageWriter {
    file: TetWriter,
    number: u64,
    /// The bytes of `CURRENT`, if a generation is current.
    current: Option<Bytes>,
    /// Whether the package is not there yet.
    is_new: bool,
}

impl TetPackageWriter {
    /// Makes a writer of a new package.
    ///
    /// # Errors
    /// As [`TetWriter::try_new`].
    pub fn try_new(array: NewArray, encoding: TetEncoding) -> Result<Self> {
        let file = TetWriter::try_new(array, PACKED_FILE, encoding)?;
        Ok(Self { file, number: 1, current: None, is_new: true })
    }

    /// Returns the object by which a program claims the generation.
    fn heartbeat(&self) -> Arc<str> {
        format!("{}/{HEARTBEAT}", claim_of(self.number)).into()
    }
}

impl Writer for TetPackageWriter {
    type Chunk = NewChunk;

    fn write(&mut self, chunk: NewChunk) -> Result<Vec<Write>> {
        self.file.write(chunk)
    }

    fn finish(&mut self) -> Result<(Vec<Write>, Publish)> {
        let image = self.file.image(Some(self.number))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let folder = folder_of(self.number);
        let zones = image.zones.clone();
        let manifest = json!({
            "generation": self.number,
            "protocol_version": PROTOCOL_VERSION,
            "part_ids": [],
            "packed_byte_len": image.len(),
            "packed_sha256": image.sha256,
            "zone_maps": "required",
            "zone_maps_sha256": hex(&Sha256::digest(&zones)),
            "secondary_indexes": "omitted",
        });
        let mut first = vec![Content::new(mark_of(self.number), format!("{now}\n"))];
        if self.is_new {
            let protocol = json!({"protocol_version": PROTOCOL_VERSION, "created_unix": now});
            first.push(Content::new(PROTOCOL, format!("{protocol:#}\n")));
            first.extend([PUBLISHING, STAGING, GENERATIONS].map(kept));
        }
        let heartbeat = Content::new(self.heartbeat(), format!("{now}\n"));
        let packed: Arc<str> = format!("{folder}/{PACKED_FILE}").into();
        let mut writes = vec![Write::Put(first), Write::Put(vec![heartbeat])];
        writes.extend(image.writes(&packed));
        writes.push(Write::Complete(packed));
        writes.push(Write::Put(vec![
            Content::new(format!("{folder}/{ZONE_FILE}"), zones),
            Content::new(format!("{folder}/{MANIFEST_FILE}"), format!("{manifest:#}\n")),
        ]));
        let content = Content::new(CURRENT, format!("{}\n", self.number));
        let publish = match self.current.clone() {
            Some(old) => Publish::Update { content, old },
            None => Publish::Create(content),
        };
        Ok((writes, publish))
    }
}

impl ArrayWriter for TetPackageWriter {
    fn array(&self) -> &NewArray {
        self.file.array()
    }

    fn memory(&self) -> u64 {
        self.file.memory()
    }

    fn write_many(&mut self, chunks: Vec<NewChunk>, threads: usize) -> Result<Vec<Write>> {
        self.file.write_many(chunks, threads)
    }

    /// Gives up the claim.
    fn afterwards(&mut self) -> Vec<Write> {
        let (heartbeat, mark) = (self.heartbeat(), mark_of(self.number));
        vec![Write::Delete(vec![heartbeat]), Write::Delete(vec![mark])]
    }
}

/// Returns the folder of the claim of a generation.
fn claim_of(generation: u64) -> String {
    format!("{PUBLISHING}/{generation:08}")
}

/// Returns the object that keeps a folder.
fn kept(folder: &str) -> Content {
    Content::new(format!("{folder}/{KEEP}"), Bytes::new())
}

/// Returns the object that tells of a claim by gridfusion.
fn mark_of(generation: u64) -> Arc<str> {
    format!("{PUBLISHING}/{MARK}{generation}").into()
}

async fn entries_in(objects: &Objects, folder: &str) -> Result<Vec<Entry>> {
    Ok(objects.list(vec![folder.to_owned()]).await?.into_iter().flatten().collect())
}

/// Returns the numbers of generations that name folders.
fn numbers_of(entries: &[Entry]) -> impl Iterator<Item = u64> {
    entries.iter().filter(|it| it.size.is_none()).filter_map(|it| it.name.parse().ok())
}

/// Returns the objects in a folder.
async fn objects_in(objects: &Objects, folder: &str) -> Result<Vec<Arc<str>>> {
    let files = entries_in(objects, folder).await?.into_iter().filter(|it| it.size.is_some());
    Ok(files.map(|it| format!("{folder}/{}", it.name).into()).collect())
}
