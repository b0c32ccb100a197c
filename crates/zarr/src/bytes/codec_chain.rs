//! How chunks are encoded: the lists of codecs, filters and compressors in metadata.
//!
//! ```text
//!   version 2   cells ─▶ order C or F ─▶ dtype's byte order ─▶ filters ─▶ compressor ─▶ object
//!   version 3   cells ─▶ transpose, delta … ─▶ bytes ─▶ gzip, zstd, blosc, crc32c … ─▶ object
//!                                            └ sharding_indexed: the same again for inner chunks
//! ```
//!
//! gridfusion undoes a transposition and a byte order when it places cells, and everything else in a [`Pipeline`].

use serde_json::Value;

use super::json::{Object, integer, named};
use super::shard::ShardIndexFormat;
use gridfusion_cf::hierarchy::CellType;
use gridfusion_core::format::codecs::{ChecksumPlace as Place, Pipeline, Step};
use gridfusion_core::format::{ByteOrder, Codec, ElementType, StorageOrder};
use gridfusion_core::{Error, Result};

/// How the chunks of an array are encoded.
#[derive(Debug, Clone)]
pub(super) struct Encoding {
    /// The order of the cells of a chunk.
    pub(super) order: StorageOrder,
    /// The order of the bytes of a word.
    pub(super) byte_order: ByteOrder,
    /// The other codecs.
    pub(super) codec: Codec,
    /// Set if objects are shards: each holds several chunks and an index of them.
    pub(super) sharding: Option<Sharding>,
}

/// How several chunks are stored in one object.
#[derive(Debug, Clone)]
pub(super) struct Sharding {
    /// Elements per axis of a chunk in the shard.
    pub(super) chunk_shape: Vec<u64>,
    /// The axes of the array in the order of the shard, the slowest first.
    pub(super) axes: Vec<usize>,
    /// How the index is stored.
    pub(super) index: ShardIndexFormat,
}

/// Returns the encoding of an array of version 2. `byte_order` is that of its data type.
///
/// # Errors
/// `Unsupported` for a filter or a compressor that gridfusion does not undo, with its name.
pub(super) fn version2(
    metadata: &Object,
    cell: &CellType,
    byte_order: ByteOrder,
) -> Result<Encoding> {
    let filters = metadata.get("filters").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let compressor = metadata.get("compressor").filter(|it| !it.is_null());
    let mut steps = Vec::new();
    for value in filters.iter().chain(compressor) {
        let name = value.get("id").and_then(Value::as_str).unwrap_or_default();
        let nothing = Object::new();
        let configuration = value.as_object().unwrap_or(&nothing);
        steps.extend(step(name, configuration, cell, byte_order)?);
    }
    let order = match metadata.get("order").and_then(Value::as_str) {
        Some("F") => StorageOrder::ColumnMajor,
        _ => StorageOrder::RowMajor,
    };
    steps.reverse();
    Ok(Encoding { order, byte_order, codec: Pipeline::codec(steps), sharding: None })
}

/// Returns the encoding of an array of version 3 from its list of codecs.
///
/// # Errors
/// `Unsupported` for a codec that gridfusion does not undo, with its name; `Corrupt` for a list that is not a chain
/// of codecs.
pub(super) fn version3(codecs: &Value, cell: &CellType, rank: usize) -> Result<Encoding> {
    let mut axes: Vec<usize> = (0..rank).collect();
    let mut byte_order = None;
    let mut steps = Vec::new();
    let codecs = codecs.as_array().ok_or_else(|| corrupt("no list of codecs"))?;
    for (place, codec) in codecs.iter().enumerate() {
        let (name, configuration) = named(codec)?;
        match name {
            "transpose" if !steps.is_empty() => {
                let message = "the codec \"transpose\" after a codec of numbers";
                return Err(Error::unsupported(message));
            }
            "transpose" => axes = transposed(&axes, configuration)?,
            "bytes" | "endian" => byte_order = Some(endian(configuration, cell)),
            "sharding_indexed" => {
                if byte_order.is_some() || !steps.is_empty() || place + 1 != codecs.len() {
                    let message = "codecs before or after the codec \"sharding_indexed\"";
                    return Err(Error::unsupported(message));
                }
                return sharded(configuration, cell, axes);
            }
            _ => {
                let order = match byte_order {
                    Some(order) => order,
                    None => later_byte_order(codecs, cell)?,
                };
                steps.extend(step(name, configuration, cell, order)?);
            }
        }
    }
    steps.reverse();
    Ok(Encoding {
        order: order_of(axes)?,
        byte_order: byte_order.unwrap_or_default(),
        codec: Pipeline::codec(steps),
        sharding: None,
    })
}

/// Codecs before `bytes` work on numbers, whose bytes follow in the order that `bytes` sets.
fn later_byte_order(codecs: &[Value], cell: &CellType) -> Result<ByteOrder> {
    for codec in codecs {
        if let ("bytes" | "endian", configuration) = named(codec)? {
            return Ok(endian(configuration, cell));
        }
    }
    Ok(ByteOrder::Little)
}

/// Returns the encoding of the chunks in shards. `axes` is the order of the axes in the shard.
fn sharded(configuration: &Object, cell: &CellType, axes: Vec<usize>) -> Result<Encoding> {
    let rank = axes.len();
    let in_shard = lengths(configuration.get("chunk_shape"), rank)
        .ok_or_else(|| corrupt("shards without a chunk shape"))?;
    let codecs = configuration.get("codecs").ok_or_else(|| corrupt("shards without codecs"))?;
    let inner = version3(codecs, cell, rank)?;
    if inner.sharding.is_some() {
        return Err(Error::unsupported("shards in shards"));
    }
    // Axis `at` of the shard is axis `axes[at]` of the array.
    let mut chunk_shape = vec![0; rank];
    for (axis, len) in axes.iter().zip(in_shard) {
        chunk_shape[*axis] = len;
    }
    let of_chunk = inner.order.fastest_first(rank).unwrap_or_default();
    let composed = of_chunk.iter().rev().filter_map(|axis| axes.get(*axis).copied()).collect();
    let index = ShardIndexFormat::new(configuration)?;
    Ok(Encoding {
        order: order_of(composed)?,
        sharding: Some(Sharding { chunk_shape, axes, index }),
        ..inner
    })
}

/// Returns the order of axes after one more transposition.
fn transposed(axes: &[usize], configuration: &Object) -> Result<Vec<usize>> {
    let order: Option<Vec<usize>> = match configuration.get("order") {
        Some(Value::Array(order)) => {
            let place = |it: &Value| usize::try_from(it.as_u64()?).ok();
            order.iter().map(place).collect()
        }
        Some(Value::String(word)) if word == "C" => Some((0..axes.len()).collect()),
        Some(Value::String(word)) if word == "F" => Some((0..axes.len()).rev().collect()),
        _ => None,
    };
    let order = order.filter(|order| order.len() == axes.len());
    let order = order.ok_or_else(|| corrupt("a transposition that is no order of the axes"))?;
    let moved = order.iter().map(|place| axes.get(*place).copied()).collect::<Option<Vec<_>>>();
    moved.ok_or_else(|| corrupt("a transposition of an axis that does not exist"))
}

fn order_of(axes: Vec<usize>) -> Result<StorageOrder> {
    let order = StorageOrder::permuted(axes);
    order.ok_or_else(|| corrupt("a transposition that names an axis twice"))
}

/// Returns the byte order that the codec `bytes` sets.
pub(super) fn endian(configuration: &Object, cell: &CellType) -> ByteOrder {
    match configuration.get("endian").and_then(Value::as_str) {
        Some("big") => ByteOrder::big(cell.word() as usize),
        _ => ByteOrder::Little,
    }
}

/// Returns the step that undoes a codec; `None` if nothing is to be undone. numcodecs' codecs have the same names
/// in both versions, with the prefix `numcodecs.` in version 3.
fn step(
    name: &str,
    configuration: &Object,
    cell: &CellType,
    order: ByteOrder,
) -> Result<Option<Step>> {
    let unsupported = || Error::unsupported(format!("the codec \"{name}\""));
    Ok(Some(match name.strip_prefix("numcodecs.").unwrap_or(name) {
        "zstd" => Step::Zstd,
        "gzip" => Step::Gzip,
        "zlib" => Step::Zlib,
        "bz2" => Step::Bzip2,
        "lz4" => Step::Lz4,
        "blosc" => Step::Blosc,
        "crc32c" => Step::Crc32c(location(configuration, Place::End)?),
        "crc32" => Step::Crc32(location(configuration, Place::Start)?),
        "adler32" => Step::Adler32(location(configuration, Place::Start)?),
        "fletcher32" => Step::Fletcher32Numcodecs,
        "vlen-utf8" => Step::VlenUtf8,
        "vlen-bytes" => Step::VlenBytes,
        "shuffle" => {
            let element = configuration.get("elementsize").map_or(Some(4), Value::as_u64);
            let element = element.and_then(|size| usize::try_from(size).ok());
            Step::Shuffle { element: element.filter(|size| *size > 0).ok_or_else(unsupported)? }
        }
        "delta" => {
            let (element, big) = number(configuration.get("dtype"), cell, order)?;
            let of_dtype =
                if big { ByteOrder::big(element.size() as usize) } else { ByteOrder::Little };
            let astype = configuration.get("astype");
            let (stored, stored_big) = number(astype, &CellType::Number(element), of_dtype)?;
            Step::Delta { element, stored, big, stored_big }
        }
        "fixedscaleoffset" => {
            let (element, big) = number(configuration.get("dtype"), cell, order)?;
            let of_dtype =
                if big { ByteOrder::big(element.size() as usize) } else { ByteOrder::Little };
            let astype = configuration.get("astype");
            let (stored, stored_big) = number(astype, &CellType::Number(element), of_dtype)?;
            let float =
                |key| configuration.get(key).and_then(Value::as_f64).ok_or_else(unsupported);
            Step::FixedScaleOffset {
                offset: float("offset")?,
                scale: float("scale")?,
                element,
                stored,
                big,
                stored_big,
            }
        }
        // These round numbers when they write, which cannot be undone.
        "bitround" => return Ok(None),
        "quantize"
            if configuration
                .get("astype")
                .is_none_or(|it| Some(it) == configuration.get("dtype")) =>
        {
            return Ok(None);
        }
        _ => return Err(unsupported()),
    }))
}

/// Returns where a codec puts its checksum; `otherwise` if its configuration does not set this.
fn location(configuration: &Object, otherwise: Place) -> Result<Place> {
    match configuration.get("location").filter(|it| !it.is_null()) {
        None => Ok(otherwise),
        Some(Value::String(word)) if word == "start" => Ok(Place::Start),
        Some(Value::String(word)) if word == "end" => Ok(Place::End),
        Some(other) => Err(Error::unsupported(format!(
            "a checksum at the location {other}, expected start or end"
        ))),
    }
}

/// Returns the numbers that a codec works on: its own type, or else that of the cells. The flag tells whether they
/// are big-endian.
fn number(dtype: Option<&Value>, cell: &CellType, order: ByteOrder) -> Result<(ElementType, bool)> {
    let own = match dtype {
        Some(value) => match super::data_type::version2(value, None) {
            Ok((cell, order)) => Some((cell, order)),
            // Version 3 names types without a byte order.
            Err(_) => Some((super::data_type::version3(value)?, order)),
        },
        None => None,
    };
    match own.unwrap_or_else(|| (cell.clone(), order)) {
        (CellType::Number(element), order) => Ok((element, !order.is_little())),
        (other, _) => {
            Err(Error::unsupported(format!("a codec of numbers over cells of type {other}")))
        }
    }
}

/// Returns lengths per axis, each at least 1; `None` if they are not.
pub(super) fn lengths(value: Option<&Value>, rank: usize) -> Option<Vec<u64>> {
    let all = value?.as_array()?;
    let lengths: Option<Vec<u64>> = all
        .iter()
        .map(|it| integer(it).and_then(|len| u64::try_from(len).ok()).filter(|len| *len > 0))
        .collect();
    lengths.filter(|lengths| lengths.len() == rank)
}

fn corrupt(message: &str) -> Error {
    Error::corrupt_region("metadata", message)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use gridfusion_core::format::Scratch;

    const CRC32: u32 = 0xaf05_d4ef;
    const ADLER32: u32 = 0x0060_000b;
    const CRC32C: u32 = 0x72f9_89ee;

    const F4: CellType = CellType::Number(ElementType::F32);

    fn object(value: Value) -> Object {
        let Value::Object(object) = value else { panic!("an object") };
        object
    }

    #[test]
    fn chains_of_version_3() {
        let plain = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
        let encoding = version3(&plain, &F4, 2).unwrap();
        assert!(encoding.codec.is_raw() && encoding.byte_order.is_little());
        let codecs = json!([
            {"name": "transpose", "configuration": {"order": [2, 0, 1]}},
            {"name": "bytes", "configuration": {"endian": "big"}},
            {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}},
            {"name": "zstd", "configuration": {"level": 3, "checksum": false}},
            "crc32c",
        ]);
        let encoding = version3(&codecs, &F4, 3).unwrap();
        assert_eq!(encoding.order, StorageOrder::Permuted(vec![2, 0, 1]));
        assert_eq!(encoding.byte_order, ByteOrder::Big { width: 4 });
        assert_eq!(encoding.codec.to_string(), "shuffle 4, zstd, crc32c");
    }

    #[test]
    fn transpositions_follow_one_another() {
        let order = |order: Value| json!({"name": "transpose", "configuration": {"order": order}});
        let codecs = json!([order(json!([1, 2, 0])), order(json!([2, 1, 0])), "bytes"]);
        // numpy: a.transpose(1, 2, 0).transpose(2, 1, 0) has the axes 0, 2, 1 of a.
        assert_eq!(version3(&codecs, &F4, 3).unwrap().order, StorageOrder::Permuted(vec![0, 2, 1]));
        for wrong in
            [json!([0, 1]), json!([0, 1, 3]), json!([0, 1, 1]), json!("X"), json!([0, 1, -1])]
        {
            assert!(version3(&json!([order(wrong)]), &F4, 3).is_err());
        }
    }

    #[test]
    fn a_transposition_of_differences_is_refused() {
        let codecs = json!([
            {"name": "numcodecs.delta", "configuration": {"dtype": "<f4"}},
            {"name": "transpose", "configuration": {"order": [1, 0]}},
            "bytes",
        ]);
        let error = version3(&codecs, &F4, 2).unwrap_err().to_string();
        assert!(error.contains("transpose"), "{error}");
    }

    #[test]
    fn chunks_in_transposed_shards() {
        let codecs = json!([
            {"name": "transpose", "configuration": {"order": [1, 2, 0]}},
            {"name": "sharding_indexed", "configuration": {
                "chunk_shape": [4, 5, 3],
                "codecs": [{"name": "transpose", "configuration": {"order": [2, 1, 0]}}, "bytes", "zstd"],
                "index_codecs": ["bytes", "crc32c"],
            }},
        ]);
        let encoding = version3(&codecs, &F4, 3).unwrap();
        let sharding = encoding.sharding.unwrap();
        assert_eq!(sharding.chunk_shape, [3, 4, 5]);
        assert_eq!(sharding.axes, [1, 2, 0]);
        assert_eq!(encoding.order, StorageOrder::Permuted(vec![0, 2, 1]));
    }

    #[test]
    fn chains_of_version_2() {
        let metadata = object(json!({
            "order": "F",
            "filters": [{"id": "delta", "dtype": "<i4"}, {"id": "shuffle", "elementsize": 4}],
            "compressor": {"id": "zlib", "level": 1},
        }));
        let cell = CellType::Number(ElementType::I32);
        let encoding = version2(&metadata, &cell, ByteOrder::Little).unwrap();
        assert_eq!(encoding.order, StorageOrder::ColumnMajor);
        assert_eq!(encoding.codec.to_string(), "delta i32 as i32, shuffle 4, zlib");
        let none = object(json!({"filters": null, "compressor": null}));
        assert!(version2(&none, &cell, ByteOrder::Little).unwrap().codec.is_raw());
    }

    /// The bytes are those that numcodecs 0.16 writes for `[1, 2, 3, 4]` of type `<i4`.
    #[test]
    fn checksums_are_where_their_location_says() {
        let numbers = [1_i32, 2, 3, 4].map(i32::to_le_bytes).concat();
        let cell = CellType::Number(ElementType::I32);
        for (id, sum, default) in
            [("crc32", CRC32, "start"), ("adler32", ADLER32, "start"), ("crc32c", CRC32C, "end")]
        {
            for given in [None, Some("start"), Some("end")] {
                let at_start = given.unwrap_or(default) == "start";
                let stored = match at_start {
                    true => [&sum.to_le_bytes()[..], &numbers].concat(),
                    false => [&numbers[..], &sum.to_le_bytes()].concat(),
                };
                let of_version_2 = json!({"filters": [{"id": id, "location": given}]});
                let of_version_3 = json!([
                    "bytes",
                    {"name": format!("numcodecs.{id}"), "configuration": {"location": given}},
                ]);
                for encoding in [
                    version2(&object(of_version_2), &cell, ByteOrder::Little).unwrap(),
                    version3(&of_version_3, &cell, 1).unwrap(),
                ] {
                    let decode = |stored: &[u8]| {
                        let stored = Bytes::copy_from_slice(stored);
                        encoding.codec.decode(stored, 16, 0, vec![], &mut Scratch::default())
                    };
                    assert_eq!(decode(&stored).unwrap().bytes, numbers, "{id} {given:?}");
                    for at in 0..stored.len() {
                        let mut changed = stored.clone();
                        changed[at] ^= 1;
                        assert!(decode(&changed).is_err(), "{id} {given:?} {at}");
                    }
                }
            }
            let wrong = object(json!({"filters": [{"id": id, "location": "middle"}]}));
            let error = version2(&wrong, &cell, ByteOrder::Little).unwrap_err().to_string();
            assert!(error.contains("middle"), "{error}");
        }
    }

    #[test]
    fn other_codecs_are_refused_by_name() {
        for name in ["lzma", "pickle", "categorize", "zfpy"] {
            let metadata = object(json!({"compressor": {"id": name}}));
            let error = version2(&metadata, &F4, ByteOrder::Little).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
            let error =
                version3(&json!(["bytes", {"name": name}]), &F4, 1).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
