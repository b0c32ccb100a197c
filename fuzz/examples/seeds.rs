//! Writes first inputs for all targets to `corpus/`, made from the arrays of the tests.
//!
//! The content of a generic tile becomes an input of the parser's target. A stored tile and its
//! pipeline become an input of the targets of filters.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridfusion_core::format::Location;
use gridfusion_fuzz::cut::{Cut, Glue};
use gridfusion_fuzz::folder::Folder;
use gridfusion_fuzz::tiledb::key;
use gridfusion_fuzz::tiles;
use gridfusion_tiledb::bytes::fuzzing::{self, AttributeKind};
use gridfusion_tiledb::bytes::{Attribute, EncryptionKey, OpenArray, OpenOptions, TileDbArray};

/// The most bytes of an input: the fuzzer is too slow with larger ones.
const MOST_BYTES: usize = 48 << 10;
/// The ids of filters and the names of their targets.
const FILTERS: [(u8, &str); 17] = [
    (tiles::GZIP, "gzip"),
    (tiles::ZSTD, "zstd"),
    (tiles::LZ4, "lz4"),
    (tiles::RUN_LENGTH, "rle"),
    (tiles::BZIP2, "bzip2"),
    (tiles::DOUBLE_DELTA, "double_delta"),
    (tiles::BIT_WIDTH, "bit_width"),
    (tiles::BITSHUFFLE, "bitshuffle"),
    (tiles::BYTESHUFFLE, "byteshuffle"),
    (tiles::POSITIVE_DELTA, "positive_delta"),
    (tiles::AES, "aes"),
    (tiles::MD5, "md5"),
    (tiles::SHA256, "sha256"),
    (tiles::DICTIONARY, "dictionary"),
    (tiles::SCALE_FLOAT, "scale_float"),
    (tiles::XOR, "xor"),
    (tiles::DELTA, "delta"),
];

fn main() -> Result<()> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = Corpus(fuzz.join("corpus"));
    for folder in folders(&fuzz.join("../tests/data/tiledb"))? {
        write_folder(&corpus, &folder)?;
    }
    write_made_up(&corpus)?;
    write_sparse(&corpus)?;
    write_versions(&corpus)?;
    write_netcdf3(&corpus, &fuzz.join("../crates/cf/tests/data/netcdf3"))?;
    write_zarr(&corpus, &fuzz.join("../tests/data/foreign"))?;
    for archive in ["sea.zarr.zip", "product.zip"] {
        let path = fuzz.join("../tests/data/zipped").join(archive);
        corpus.write("zarr_archive", &fs::read(path)?)?;
    }
    for spec in ["spec1", "spec2"] {
        let mut repository = Folder::default();
        collect(
            &fuzz.join("../tests/data/icechunk").join(spec).join("small.icechunk"),
            "",
            &mut repository,
        )?;
        corpus.write("icechunk_open", &store_as_input(&repository))?;
    }
    corpus.write("tet_open", &fs::read(fuzz.join("../examples/data/stations.tet"))?)?;
    corpus.write("tet_open", &small_tet())?;
    for file in fs::read_dir(fuzz.join("../crates/cf/tests/data/hdf5"))? {
        let path = file?.path();
        if path.extension().is_some_and(|it| it == "h5" || it == "nc") {
            corpus.write("hdf5_open", &fs::read(path)?)?;
        }
    }
    corpus.write("tet_package", &small_package().0)
}

/// The folder with a folder of inputs per target.
struct Corpus(PathBuf);

impl Corpus {
    /// Writes an input of `target` to a file named after the hash of the input.
    fn write(&self, target: &str, input: &[u8]) -> Result<()> {
        let folder = self.0.join(target);
        fs::create_dir_all(&folder)?;
        let mut hasher = DefaultHasher::new();
        input.hash(&mut hasher);
        fs::write(folder.join(format!("seed-{:016x}", hasher.finish())), input)
    }

    fn write_all(&self, target: &str, inputs: impl IntoIterator<Item = Glue>) -> Result<()> {
        inputs.into_iter().try_for_each(|input| self.write(target, &input.0))
    }
}

/// Writes the NetCDF classic files of a folder.
fn write_netcdf3(corpus: &Corpus, folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "nc") {
            corpus.write("netcdf3_open", &fs::read(path)?)?;
        }
    }
    Ok(())
}

/// Writes the Zarr stores of a folder, each array of them as a store of its own, and the reference files.
fn write_zarr(corpus: &Corpus, folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".kerchunk.json") {
            corpus.write("zarr_references", &fs::read(&path)?)?;
        } else if name.ends_with(".zarr") {
            let mut store = Folder::default();
            collect(&path, "", &mut store)?;
            corpus.write("zarr_open", &store_as_input(&store))?;
            for array in folders(&path)? {
                corpus.write("zarr_open", &store_as_input(&array))?;
            }
        }
    }
    Ok(())
}

/// Returns the files of a store as one input, metadata first, without files that would make it too large.
fn store_as_input(store: &Folder) -> Vec<u8> {
    let is_chunk = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        !name.starts_with(".z") && name != "zarr.json"
    };
    let mut files: Vec<_> = store.0.iter().collect();
    files.sort_by_key(|(path, _)| (is_chunk(path), path.matches('/').count()));
    let mut input = Glue::default();
    for (path, content) in files {
        if input.0.len() + content.len() < MOST_BYTES {
            input = input.byte(0).piece(path.as_bytes()).piece(content);
        }
    }
    input.0
}

/// Reads each array and group below `root`: its files, by their paths within it.
fn folders(root: &Path) -> Result<Vec<Folder>> {
    let mut found = vec![];
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.is_dir()
            && !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"__"))
        {
            let mut folder = Folder::default();
            collect(&path, "", &mut folder)?;
            found.push(folder);
            found.extend(folders(&path)?);
        }
    }
    Ok(found)
}

fn collect(dir: &Path, prefix: &str, folder: &mut Folder) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), folder)?;
        } else {
            folder.0.insert(format!("{prefix}{name}"), fs::read(&path)?.into());
        }
    }
    Ok(())
}

fn write_folder(corpus: &Corpus, folder: &Folder) -> Result<()> {
    for key in [None, Some(key())] {
        for (path, stored) in &folder.0 {
            write_envelope(corpus, path, stored, key.as_ref())?;
        }
        let options = OpenOptions::default().with_key(key.clone());
        if let Ok(array) = folder.drive(OpenArray::new(options)) {
            corpus.write("tiledb_open", &whole(folder, key.as_ref()))?;
            let array = Arc::new(array);
            write_footers(corpus, folder, &array)?;
            write_tiles(corpus, folder, &array, key.as_ref())?;
        }
    }
    write_commits(corpus, folder)
}

/// Writes the content of a generic tile as an input of its parser's target.
fn write_envelope(
    corpus: &Corpus,
    path: &str,
    stored: &[u8],
    key: Option<&EncryptionKey>,
) -> Result<()> {
    let Ok(content) = fuzzing::open_envelope(stored, key) else { return Ok(()) };
    corpus.write("tiledb_generic_tile", &stored[..stored.len().min(MOST_BYTES)])?;
    let in_folder = |folder: &str| path.contains(&format!("{folder}/"));
    if in_folder("__enumerations") {
        corpus.write("tiledb_enumeration", &content)?;
    } else if in_folder("__schema") {
        corpus.write("tiledb_schema", &content)?;
    } else if in_folder("__meta") {
        corpus.write("tiledb_metadata", &Glue::default().byte(2).piece(&content).0)?;
    } else if in_folder("__group") {
        corpus.write("tiledb_group", &Glue::default().byte(2).piece(&content).0)?;
    } else if path.ends_with(".del") {
        corpus.write("tiledb_delete_condition", &content)?;
    }
    Ok(())
}

/// Returns the files of an array as one input, without files that would make it too large. Schemas and
/// metadata are taken out of their envelopes.
fn whole(folder: &Folder, key: Option<&EncryptionKey>) -> Vec<u8> {
    let mut input = Glue::default().byte(if key.is_some() { 2 } else { 0 }).byte(0);
    for (path, stored) in &folder.0 {
        let is_small = path.starts_with("__schema") || path.starts_with("__meta");
        let content = fuzzing::open_envelope(stored, None).ok().filter(|_| is_small);
        let in_envelope = u8::from(content.is_some());
        let content = content.unwrap_or_else(|| stored.clone());
        if input.0.len() + content.len() < MOST_BYTES {
            input = input.byte(in_envelope).piece(path.as_bytes()).piece(&content);
        }
    }
    input.0
}

fn write_footers(corpus: &Corpus, folder: &Folder, array: &TileDbArray) -> Result<()> {
    for fragment in array.fragments() {
        let schema = folder.0.get(&format!("__schema/{}", fragment.schema_name));
        let schema = schema.and_then(|stored| fuzzing::open_envelope(stored, None).ok());
        let file = format!("__fragments/{}/__fragment_metadata.tdb", fragment.name);
        if let (Some(schema), Some(file)) = (schema, folder.0.get(&file)) {
            let head = Glue::default().byte(22).piece(fragment.schema_name.as_bytes());
            corpus.write("tiledb_footer", &head.piece(&schema).rest(file).0)?;
        }
    }
    Ok(())
}

fn write_commits(corpus: &Corpus, folder: &Folder) -> Result<()> {
    let (mut names, mut texts) = (String::new(), BTreeMap::new());
    for (path, content) in &folder.0 {
        let Some(name) = path.strip_prefix("__commits/") else { continue };
        names += &format!("{name}\n");
        let ending = name.rsplit('.').next().unwrap_or_default();
        texts.insert(ending.to_owned(), (name.to_owned(), content.clone()));
    }
    let text = |ending: &str| texts.get(ending).cloned().unwrap_or_default();
    // Only sparse arrays have deletions.
    let kind = if texts.contains_key("del") { 2 } else { 0 };
    let input =
        Glue::default().byte(0).byte(0).byte(kind).piece(b"__schema/\n").piece(names.as_bytes());
    let ((deletion, condition), (vacuum, replaced)) = (text("del"), text("vac"));
    let input = input.piece(&text("con").1).piece(&text("ign").1);
    let input = input.piece(deletion.as_bytes()).piece(&condition).piece(vacuum.as_bytes());
    corpus.write("tiledb_commits", &input.rest(&replaced).0)
}

/// Writes the stored tiles of the first two chunks, each with its pipeline.
fn write_tiles(
    corpus: &Corpus,
    folder: &Folder,
    array: &Arc<TileDbArray>,
    key: Option<&EncryptionKey>,
) -> Result<()> {
    let schema = folder.0.iter().find(|(path, _)| path.starts_with("__schema/__"));
    let schema = schema.and_then(|(_, stored)| fuzzing::open_envelope(stored, key).ok());
    let (Some(schema), Ok(window)) = (schema, array.window(false)) else { return Ok(()) };
    let window = Arc::new(window);
    let [_, offsets, validity] = Pipelines(&schema[16..]).three();
    for (number, attribute) in array.schema().attributes.iter().enumerate() {
        let chunks = (0..window.grid.chunks().min(2)).map(|at| window.grid.chunk_coordinates(at));
        let locate = array.locate(&window, chunks.collect(), vec![number]);
        let Some(stored) = locate.and_then(|locate| folder.drive(locate)).ok() else { continue };
        let Some(own) = own_pipeline(&schema, attribute) else { continue };
        for layer in stored.iter().flatten().flat_map(|stored| &stored.layers) {
            let is_variable = attribute.is_variable();
            let code = code_of(&schema, attribute);
            let size = attribute.cell_size().unwrap_or(attribute.datatype.size());
            let values = match is_variable {
                true => Tile { pipeline: offsets, code: 10, cell_size: 8, var_strings: false },
                false => Tile { pipeline: own, code, cell_size: size, var_strings: false },
            };
            let content = Tile {
                pipeline: own,
                code,
                cell_size: size,
                var_strings: attribute.datatype.is_string(),
            };
            let nulls = Tile { pipeline: validity, code: 6, cell_size: 1, var_strings: false };
            values.write(corpus, folder, &layer.values.at, layer.values.raw_len, key)?;
            for (tile, payload) in [(content, &layer.content), (nulls, &layer.validity)] {
                if let Some(payload) = payload {
                    tile.write(corpus, folder, &payload.at, payload.raw_len, key)?;
                }
            }
        }
    }
    Ok(())
}

/// The pipeline of a stored tile and the type of its cells.
#[derive(Clone, Copy)]
struct Tile<'a> {
    pipeline: &'a [u8],
    code: u8,
    cell_size: u64,
    var_strings: bool,
}

impl Tile<'_> {
    fn write(
        self,
        corpus: &Corpus,
        folder: &Folder,
        at: &Location,
        raw_len: u64,
        key: Option<&EncryptionKey>,
    ) -> Result<()> {
        let stored = folder.read(at);
        let flags = 22 << 1 | u8::from(self.var_strings);
        let kind = Glue::default().byte(self.code).byte(self.cell_size as u8).byte(flags);
        let input = kind.clone().byte(u8::from(key.is_some())).piece(self.pipeline);
        if stored.len() < MOST_BYTES {
            corpus.write("tiledb_pipeline", &input.number(raw_len, 3).rest(&stored).0)?;
        }
        // A tile of one filter and one chunk is also an input of the filter's own target.
        let (count, filter) = (self.pipeline[4], &self.pipeline[8..]);
        let (id, options) = match (count, key) {
            (1, None) => (filter[0], &filter[5..]),
            (0, Some(_)) => (tiles::AES, &[][..]),
            _ => return Ok(()),
        };
        let Some((_, target)) = FILTERS.iter().find(|(known, _)| *known == id) else {
            return Ok(());
        };
        let mut chunk = Cut(&stored);
        let [chunks, raw_len, _, metadata_len] = [8, 4, 4, 4].map(|len| chunk.number(len));
        let rest = chunk.rest();
        if chunks == 1 && rest.len() < MOST_BYTES {
            let (metadata, data) = rest.split_at(metadata_len as usize);
            let input = kind.piece(options).number(raw_len, 3).piece(metadata).rest(data);
            corpus.write(&format!("tiledb_filter_{target}"), &input.0)?;
        }
        Ok(())
    }
}

/// Bytes that begin with filter pipelines.
struct Pipelines<'a>(&'a [u8]);

impl<'a> Pipelines<'a> {
    fn three(mut self) -> [&'a [u8]; 3] {
        std::array::from_fn(|_| self.next())
    }

    fn next(&mut self) -> &'a [u8] {
        let mut rest = Cut(self.0);
        let [_, count] = [4, 4].map(|len| rest.number(len));
        for _ in 0..count {
            rest.byte();
            let len = rest.number(4) as usize;
            rest = Cut(&rest.0[len..]);
        }
        let (pipeline, rest) = self.0.split_at(self.0.len() - rest.0.len());
        self.0 = rest;
        pipeline
    }
}

/// Returns the bytes of the schema that follow the name of an attribute.
fn after_name<'a>(schema: &'a [u8], attribute: &Attribute) -> Option<&'a [u8]> {
    let name = attribute.name.as_bytes();
    let name = [&(name.len() as u32).to_le_bytes()[..], name].concat();
    let at = schema.windows(name.len()).position(|bytes| bytes == name)?;
    schema.get(at + name.len()..).filter(|_| !attribute.name.is_empty())
}

fn own_pipeline<'a>(schema: &'a [u8], attribute: &Attribute) -> Option<&'a [u8]> {
    Some(Pipelines(&after_name(schema, attribute)?[5..]).next())
}

fn code_of(schema: &[u8], attribute: &Attribute) -> u8 {
    after_name(schema, attribute).map_or(0, |after| after[0])
}

/// Writes inputs made of small arrays whose metadata has no filters.
fn write_made_up(corpus: &Corpus) -> Result<()> {
    let text = AttributeKind { datatype: 12, values: u32::MAX, nullable: true };
    let numbers = words(&[4, 0, 25, 50, 75]);
    let lens = words(&[4, 5, 5, 5, 5]);
    let offsets = words(&[4, 0, 68, 136, 204]);
    let valid = words(&[4, 0, 26, 52, 78]);
    let tiles = [tile(&words(&[0, 1, 2, 2, 3, 4])), tile(b"abcde"), tile(&[1, 1, 0, 1, 1, 1])];
    let files = tiles.map(|tile| tile.repeat(4));
    let blocks = [&offsets[..], &numbers, &lens, &valid];
    let index = Glue::default().byte(12).byte(u8::MAX).byte(1);
    let parts = blocks.into_iter().chain(files.iter().map(Vec::as_slice));
    corpus.write_all("tiledb_tile_index", [parts.fold(index, Glue::piece)])?;

    let bounds = |bounds: [i32; 4]| {
        [&words(&[16, 0])[..], bounds.map(i32::to_le_bytes).as_flattened()].concat()
    };
    let (sums, nulls) = (words(&[4, 9, 9, 9, 9]), words(&[4, 0, 1, 2, 3]));
    let statistics = [&bounds([1, 0, -1, 2])[..], &bounds([3; 4]), &sums, &nulls];
    let input = Glue::default().byte(0).byte(1).byte(1);
    corpus.write_all("tiledb_statistics", [statistics.into_iter().fold(input, Glue::piece)])?;

    let [a, b, c, d] = blocks;
    let files =
        fuzzing::array(text, [a, b, c, d, &[], &[], &[], &[]], files.each_ref().map(Vec::as_slice));
    for array in [files, fuzzing::overlapping_writes()] {
        corpus.write("tiledb_open", &whole(&Folder(array), None))?;
    }
    Ok(())
}

/// Makes a tile of one chunk, without filters.
fn tile(content: &[u8]) -> Vec<u8> {
    let len = (content.len() as u32).to_le_bytes();
    [&1_u64.to_le_bytes()[..], &len, &len, &[0; 4], content].concat()
}

/// The types of the dimensions of sparse arrays: whole numbers, floats, text.
const DIMENSIONS: [u8; 3] = [0, 3, 11];

/// Writes R-trees and small sparse arrays of three cells in two tiles, with and without the times of cells.
fn write_sparse(corpus: &Corpus) -> Result<()> {
    for dimensions in [&DIMENSIONS[..], &DIMENSIONS[..1], &DIMENSIONS[1..2], &DIMENSIONS[2..]] {
        let input = Glue::default().number(2, 2).piece(dimensions).rest(&rtree(dimensions));
        corpus.write("tiledb_rtree", &input.0)?;
    }
    let condition = [&[1, 0, 1, 0, 0, 0, b'a'][..], &words(&[4]), &[9, 0, 0, 0]].concat();
    corpus.write("tiledb_delete_condition", &condition)?;
    let marker = fuzzing::condition_file();
    let applied = [&words(&[1, marker.len() as u64])[..], marker.as_bytes()].concat();

    let integers = |all: [i32; 3]| all.map(i32::to_le_bytes).concat();
    let (coordinates, values) = (integers([1, 2, 5]), integers([7, -1, 9]));
    let floats = [0.5, 1.0, 1.5].map(f64::to_le_bytes).concat();
    let times = words(&[5, 6, 9]);
    let deleted = words(&[u64::MAX, 7, u64::MAX]);
    let conditions = words(&[u64::MAX, 0, u64::MAX]);
    let fixed = |cells: &[u8], validity: [&[u8]; 2]| {
        let (full, last) = cells.split_at(cells.len() / 3 * 2);
        sparse_field([full, last], [&[], &[]], validity)
    };
    let texts = sparse_field([&words(&[0, 1]), &words(&[0])], [b"ab", b"b"], [&[], &[]]);
    let mut fields = fixed(&values, [&[1, 0], &[1]]);
    fields.extend([fixed(&coordinates, [&[], &[]]), fixed(&floats, [&[], &[]]), texts].concat());
    let without_times = fields.clone();
    for cells in [&times, &deleted, &conditions] {
        fields.extend(fixed(cells, [&[], &[]]));
    }
    let bounds =
        |all: [i32; 2]| [&words(&[8, 0])[..], &all.map(i32::to_le_bytes).concat()].concat();
    let statistics = [bounds([7, 9]), bounds([7, 9]), words(&[2, 7, 9]), words(&[2, 1, 0])];
    for (flags, applied, fields) in [(0, &[][..], &without_times), (6, &applied[..], &fields)] {
        // An attribute of nullable integers, and tiles of two cells.
        let input = Glue::default().byte(flags).byte(0).byte(0).byte(1).byte(1).number(2, 4);
        let input = input.piece(&DIMENSIONS).number(2, 2).number(1, 4);
        let input = input.piece(&rtree(&DIMENSIONS)).piece(applied).piece(&condition);
        let pieces = statistics.iter().chain(fields).map(Vec::as_slice);
        corpus.write("tiledb_sparse", &pieces.fold(input, Glue::piece).0)?;
    }
    Ok(())
}

/// Returns the blocks and the files of a field of two tiles: the contents of the tiles of each file.
fn sparse_field(values: [&[u8]; 2], content: [&[u8]; 2], validity: [&[u8]; 2]) -> Vec<Vec<u8>> {
    let offsets = |[first, _]: [&[u8]; 2]| words(&[2, 0, tile(first).len() as u64]);
    let lens = words(&[2, content[0].len() as u64, content[1].len() as u64]);
    let blocks = [offsets(values), offsets(content), lens, offsets(validity)];
    let files = [values, content, validity].map(|tiles| tiles.map(tile).concat());
    blocks.into_iter().chain(files).collect()
}

/// Returns the R-tree of two tiles, each with coordinates from 1 to 5, from 0.5 to 1.5, and from "a" to "b".
fn rtree(dimensions: &[u8]) -> Vec<u8> {
    let range = |code: &u8| match code {
        0 => [1_i32, 5].map(i32::to_le_bytes).concat(),
        3 => [0.5, 1.5].map(f64::to_le_bytes).concat(),
        _ => [&words(&[2, 1])[..], b"ab"].concat(),
    };
    let rectangle: Vec<u8> = dimensions.iter().flat_map(range).collect();
    let levels = [10_u32, 2].map(u32::to_le_bytes).concat();
    [levels, words(&[1]), rectangle.clone(), words(&[2]), rectangle.repeat(2)].concat()
}

/// Writes schemas and footers of all format versions. Each footer is combined with a schema of its own
/// version and with one of version 22.
fn write_versions(corpus: &Corpus) -> Result<()> {
    for version in 5..=23 {
        let own_schema = fuzzing::schema_of_version(version);
        corpus.write("tiledb_schema", &own_schema)?;
        let (name, file) = fuzzing::footer_of_version(version);
        let head = Glue::default().number(u64::from(version), 1).piece(name.as_bytes());
        for schema in [own_schema, fuzzing::schema_of_version(22)] {
            corpus.write("tiledb_footer", &head.clone().piece(&schema).rest(&file).0)?;
        }
    }
    Ok(())
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Makes a `.tet` file with five cells of one byte in chunks of four, with labels and zone maps.
fn small_tet() -> Vec<u8> {
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|at| at.to_le_bytes()).collect();
    let row = |chunk: u64, offset: u64, len: u64| {
        words(&[0, chunk, 0, 0, 0, 0, 0, 0, 0, offset, len, len, 0])
    };
    let parts: [Vec<u8>; 9] = [
        b"TETR".to_vec(),
        numbers(&[1, 1, 1]),
        words(&[80, 32 + 2 * 104, 40]),
        numbers(&[1, 5, 1, 0]),
        b"v\0\0\0\0\0\0\0".to_vec(),
        words(&[5, 4]),
        [b"TIDX\x01\0\0\0".to_vec(), words(&[2, 0, 0])].concat(),
        [row(0, 320, 4), row(1, 324, 1)].concat(),
        vec![1, 2, 3, 4, 5],
    ];
    let zones = r#"{"version":1,"chunks":[{"dataset_id":0,"chunk_index":[0],"element_count":4,
        "null_count":0,"min_le":"01","max_le":"04"}]}"#;
    let attributes = r#"{"units":"m","coordinates":"v"}"#;
    let labels = r#"{"x":{"labels":["a","b","c","d","e"]}}"#;
    let dataset = format!(r#"{{"attrs":{attributes},"dim_names":["x"],"coords":{labels}}}"#);
    let spill = format!(r#"{{"offset":325,"len":{}}}"#, zones.len());
    let (history, metadata) =
        (r#"[["a","b","c"]]"#, format!(r#"{{"datasets":{{"v":{dataset}}}}}"#));
    let json = format!(r#"{{"history":{history},"metadata":{metadata},"zone_maps_ref":{spill}}}"#);
    let tail = [&words(&[json.len() as u64])[..], b"\x02\0\0\0THST"].concat();
    [&parts.concat()[..], zones.as_bytes(), json.as_bytes(), &tail].concat()
}

/// Makes a package whose current generation, number 2, is a small file with a zone file.
fn small_package() -> Glue {
    let zones = r#"{"version":1,"generation":2,"chunks":[{"dataset_id":0,"chunk_index":[0],
        "element_count":4,"null_count":0,"min_le":"00","max_le":"ff"}]}"#;
    let files: [(&str, &[u8]); 4] = [
        ("PROTOCOL", br#"{"protocol_version":2}"#),
        ("CURRENT", br#"{"generation":2}"#),
        ("generations/00000002/packed.tet", &small_tet()),
        ("generations/00000002/ZONE.json", zones.as_bytes()),
    ];
    let add = |glue: Glue, (path, content): (&str, &[u8])| {
        glue.byte(0).piece(path.as_bytes()).piece(content)
    };
    files.into_iter().fold(Glue::default().byte(0), add)
}
