//! The targets that decode tiles through filters.

use crate::check::check;
use crate::cut::Cut;
use crate::tiledb::key;
use gridfusion_core::format::DecodedPayload;
use gridfusion_tiledb::bytes::fuzzing::{TileKind, tile_codec};
use gridfusion_tiledb::bytes::{Datatype, FilterBuffers, TileCodec};

/// Decoded tiles have fewer bytes than this. The largest ones exceed the limit above which a decoder
/// distrusts a declared length.
const MOST_RAW: u64 = 4 << 20;

/// The id of the gzip filter.
pub const GZIP: u8 = 1;
/// The id of the zstd filter.
pub const ZSTD: u8 = 2;
/// The id of the LZ4 filter.
pub const LZ4: u8 = 3;
/// The id of the run-length filter.
pub const RUN_LENGTH: u8 = 4;
/// The id of the bzip2 filter.
pub const BZIP2: u8 = 5;
/// The id of the double delta filter.
pub const DOUBLE_DELTA: u8 = 6;
/// The id of the bit width reduction filter.
pub const BIT_WIDTH: u8 = 7;
/// The id of the bitshuffle filter.
pub const BITSHUFFLE: u8 = 8;
/// The id of the byteshuffle filter.
pub const BYTESHUFFLE: u8 = 9;
/// The id of the positive delta filter.
pub const POSITIVE_DELTA: u8 = 10;
/// The id of the AES-256-GCM filter.
pub const AES: u8 = 11;
/// The id of the MD5 filter.
pub const MD5: u8 = 12;
/// The id of the SHA-256 filter.
pub const SHA256: u8 = 13;
/// The id of the dictionary filter.
pub const DICTIONARY: u8 = 14;
/// The id of the float scaling filter.
pub const SCALE_FLOAT: u8 = 15;
/// The id of the xor filter.
pub const XOR: u8 = 16;
/// The id of the delta filter.
pub const DELTA: u8 = 19;

/// Decodes a tile of one chunk through one filter. The input is the kind of tile, the options of the
/// filter, the decoded length, metadata and data.
pub fn filter(id: u8, input: &[u8]) {
    let mut input = Cut(input);
    let kind = kind(&mut input);
    let pipeline = [&[0, 0, 1, 0, 1, 0, 0, 0, id][..], &with_len(input.piece())].concat();
    let raw_len = raw_len(&mut input);
    let (metadata, data) = (input.piece(), input.rest());
    let lens =
        [raw_len, data.len() as u64, metadata.len() as u64].map(|len| (len as u32).to_le_bytes());
    let stored = [&1_u64.to_le_bytes(), lens.as_flattened(), metadata, data].concat();
    let key = (id == AES).then(key);
    let Some(codec) = check(tile_codec(&pipeline, kind, key.as_ref())) else { return };
    decode(&codec, &stored, raw_len);
}

/// Decodes a tile through any chain of filters. The input is the kind of tile, whether there is a
/// key, the pipeline, the decoded length and the tile.
pub fn pipeline(input: &[u8]) {
    let mut input = Cut(input);
    let (kind, has_key) = (kind(&mut input), input.byte() & 1 == 1);
    let (pipeline, raw_len, stored) = (input.piece(), raw_len(&mut input), input.rest());
    let key = has_key.then(key);
    let Some(codec) = check(tile_codec(pipeline, kind, key.as_ref())) else { return };
    decode(&codec, stored, raw_len);
}

/// Decodes a tile in fresh memory and in used memory. Both results must be equal.
fn decode(codec: &TileCodec, stored: &[u8], raw_len: u64) {
    let mut buffers = FilterBuffers::default();
    let fresh = check(codec.decode_with(stored, raw_len, 0, vec![], &mut buffers));
    let Some(fresh) = fresh else { return };
    check_decoded(&fresh, raw_len);
    buffers.spoil();
    let spare = vec![0xAA; raw_len as usize + 8];
    let used = check(codec.decode_with(stored, raw_len, 0, spare, &mut buffers));
    let used = used.expect("what decodes once decodes twice");
    assert_eq!(fresh.bytes, used.bytes);
    assert_eq!(fresh.offsets, used.offsets);
}

fn check_decoded(decoded: &DecodedPayload, raw_len: u64) {
    assert_eq!(decoded.bytes.len() as u64, raw_len);
    if let Some(offsets) = &decoded.offsets {
        assert!(offsets.is_sorted());
        assert!(offsets.first().is_none_or(|first| *first == 0));
        assert!(offsets.last().is_none_or(|last| *last <= raw_len));
    }
}

/// Cuts the kind of a tile: type, cell size and flags. The lowest flag marks strings of variable
/// length, and the others are the format version.
fn kind(input: &mut Cut<'_>) -> TileKind {
    let (code, cell_size, flags) = (input.byte(), u64::from(input.byte()), input.byte());
    TileKind {
        datatype: Datatype::from_code(code).unwrap_or(Datatype::Any),
        cell_size,
        var_strings: flags & 1 == 1,
        version: u32::from(flags >> 1) % 24,
    }
}

fn raw_len(input: &mut Cut<'_>) -> u64 {
    input.number(3) % MOST_RAW
}

fn with_len(options: &[u8]) -> Vec<u8> {
    [&(options.len() as u32).to_le_bytes()[..], options].concat()
}
