//! Archives of all kinds, damaged ones, and ones that lie.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::writer::ZipWriter;
use super::*;
use gridfusion_core::ErrorKind;
use gridfusion_core::format::{Machine, Replies, Step};

/// Opens an archive. Returns its directory, with the number of steps that read bytes.
fn opened(archive: &[u8]) -> Result<(Arc<ZipDirectory>, usize)> {
    let mut machine = OpenZip::new(archive.len() as u64, 1 << 20);
    let (mut replies, mut steps) = (Replies::Start, 0);
    loop {
        match machine.step(replies)? {
            Step::Done(directory) => return Ok((directory, steps)),
            Step::Read(at) => {
                let range = at[0].range.within(archive.len() as u64);
                replies = Replies::Bytes(vec![slice(archive, range)]);
                steps += 1;
            }
            other => panic!("{other:?}"),
        }
    }
}

fn slice(archive: &[u8], range: Range<u64>) -> Bytes {
    Bytes::copy_from_slice(&archive[range.start as usize..range.end as usize])
}

/// Returns a member; `None` if there is none.
fn read(archive: &[u8], name: &str) -> Result<Option<Bytes>> {
    let (directory, _) = opened(archive)?;
    let Some(member) = directory.get(name) else { return Ok(None) };
    directory.document(member, &slice(archive, member.span())).map(Some)
}

fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * at / 7 % 251) as u8).collect()
}

/// Writers of all kinds.
fn writers() -> Vec<ZipWriter> {
    let mut all = vec![];
    for kind in 0..64 {
        let is = |bit: u32| kind & (1 << bit) != 0;
        all.push(ZipWriter {
            deflates: is(0),
            is_zip64: is(1),
            has_descriptors: is(2),
            extra: if is(3) { vec![0x55, 0x54, 5, 0, 1, 2, 3, 4, 5] } else { vec![] },
            comment: if is(4) { b"a comment PK\x05\x06".to_vec() } else { vec![] },
            before: if is(5) { noise(100) } else { vec![] },
            counts_before: is(4),
            ..ZipWriter::default()
        });
    }
    all
}

#[test]
fn members_of_archives_of_all_kinds() {
    for mut writer in writers() {
        let members = [("zarr.json", &b"{}"[..]), ("a/c/0", &noise(70_000)), ("a/empty", b"")];
        writer.add("zarr.json", b"old");
        for (name, content) in members {
            writer.add(name, content);
        }
        let archive = writer.finish();
        let (directory, steps) = opened(&archive).unwrap();
        assert_eq!(steps, 1);
        for (name, content) in members {
            let found = read(&archive, name).unwrap().unwrap();
            assert_eq!(found, content, "{name} {writer:?}");
            let member = directory.get(name).unwrap();
            let header = slice(&archive, member.header_span());
            let data = directory.data(member, &header).unwrap();
            if member.is_stored() {
                assert_eq!(slice(&archive, data), content);
            }
            let (from, to) = (content.len() / 3, content.len() / 2);
            let span = slice(&archive, member.span());
            let part = directory.part(member, &span, from as u64..to as u64, vec![]).unwrap();
            assert_eq!(part, content[from..to]);
        }
        assert!(read(&archive, "a").unwrap().is_none());
    }
}

#[test]
fn a_directory_that_is_long_takes_a_second_read() {
    let mut writer = ZipWriter::default();
    for number in 0..7000 {
        writer.add(&format!("a/c/{number}"), &[number as u8]);
    }
    let archive = writer.finish();
    assert_eq!(opened(&archive).unwrap().1, 2);
    assert_eq!(read(&archive, "a/c/6999").unwrap().unwrap(), [6999_u32 as u8][..]);
    let mut small = OpenZip::new(archive.len() as u64, 1000);
    small.step(Replies::Start).unwrap();
    let tail = slice(&archive, archive.len() as u64 - (1 << 18)..archive.len() as u64);
    let error = small.step(Replies::Bytes(vec![tail])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn folders_are_those_of_the_names() {
    let mut writer = ZipWriter::default();
    for name in ["a/b/2", "a/b/1", "a.b", "a/", "a/b0", "c", "a/b.c", "d/e/f/g"] {
        writer.add(name, b"12");
    }
    let (directory, _) = opened(&writer.finish()).unwrap();
    let listed = |folder: &str| {
        let entries = directory.list(folder).into_iter();
        entries
            .map(|it| format!("{}{}", it.name, if it.size.is_some() { "" } else { "/" }))
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(""), ["a.b", "a/", "c", "d/"]);
    assert_eq!(listed("a"), ["b.c", "b/", "b0"]);
    assert_eq!(listed("d/e"), ["f/"]);
    assert!(listed("x").is_empty() && listed("c").is_empty());
    let below: Vec<&str> = directory.below("a").map(|(name, _)| name).collect();
    assert_eq!(below, ["b.c", "b/1", "b/2", "b0"]);
}

#[test]
fn damaged_archives_give_the_right_bytes_or_an_error() {
    for mut writer in writers() {
        let content = noise(60);
        writer.add("a/0", &content);
        writer.add("b", b"other");
        let archive = writer.finish();
        let check = |damaged: &[u8], at: usize| {
            for (name, content) in [("a/0", &content[..]), ("b", b"other")] {
                if let Ok(Some(found)) = read(damaged, name) {
                    assert_eq!(found, content, "{at} {writer:?}");
                }
            }
            is_zipped_zarr(damaged);
        };
        for at in 0..archive.len() {
            check(&archive[..at], at);
            if !writer.before.is_empty() {
                continue;
            }
            for flip in [1, 0x80, 0xff] {
                let mut damaged = archive.clone();
                damaged[at] ^= flip;
                check(&damaged, at);
            }
        }
        assert!((0..archive.len()).all(|at| opened(&archive[..at]).is_err()));
    }
}

/// Returns an archive of two members, in which the first place that has `from` has `to`, counted from the last.
fn changed(archive: &[u8], from: &[u8], to: &[u8], nth_last: usize) -> Vec<u8> {
    let found = archive.windows(from.len()).enumerate().filter(|(_, it)| *it == from);
    let at = found.map(|(at, _)| at).rev().nth(nth_last).unwrap();
    let mut changed = archive.to_vec();
    changed[at..at + to.len()].copy_from_slice(to);
    changed
}

fn two(deflates: bool) -> Vec<u8> {
    let mut writer = ZipWriter { deflates, ..ZipWriter::default() };
    writer.add("first", &[7; 2000]);
    writer.add("other", b"1234567890");
    writer.finish()
}

#[test]
fn archives_that_lie_are_refused() {
    let kind = |archive: &[u8]| opened(archive).map(|_| ()).unwrap_err().kind();
    let archive = two(false);
    // The second entry has the place of the first member, or one in its data, or in the directory.
    let place = archive.len() - 22 - 5 - 4;
    for wrong in [0_u32, 100, archive.len() as u32 - 100, u32::MAX - 1] {
        let mut overlap = archive.clone();
        overlap[place..place + 4].copy_from_slice(&wrong.to_le_bytes());
        assert_eq!(kind(&overlap), ErrorKind::Corrupt, "{wrong}");
    }
    // The end record.
    let end = archive.len() - 22;
    for (at, wrong, expected) in [
        (10, 1, ErrorKind::Unsupported),
        (8, 1, ErrorKind::Unsupported),
        (4, 1, ErrorKind::Unsupported),
        (12, 1, ErrorKind::Corrupt),
        (16, 255, ErrorKind::Corrupt),
        (20, 1, ErrorKind::Corrupt),
    ] {
        let mut lying = archive.clone();
        lying[end + at] = wrong;
        assert_eq!(kind(&lying), expected, "{at}");
    }
    for count in [1_u8, 3] {
        let mut lying = archive.clone();
        (lying[end + 8], lying[end + 10]) = (count, count);
        assert_eq!(kind(&lying), ErrorKind::Corrupt);
    }
    assert_eq!(kind(&[&archive[..], b"x"].concat()), ErrorKind::Corrupt);
    assert_eq!(kind(&[&archive[..], &archive[end..]].concat()), ErrorKind::Corrupt);
    // A comment that is an end record of its own.
    let mut nested = archive.clone();
    nested[end + 20] = 22;
    nested.extend(&archive[end..]);
    assert_eq!(kind(&nested), ErrorKind::Corrupt);
}

/// Members with names that no object has are not there, and an error where they may belong.
#[test]
fn odd_names_are_errors_in_their_folders() {
    for (name, folders, others) in [
        (&b"a/../s/x"[..], &["", "a", "s", "a/s"][..], &["x", "b"][..]),
        (b"../s/x", &["", "s"], &["x"]),
        (b"/s/x", &["", "s"], &["x"]),
        (b"s\\t\\0", &["", "s", "s/t"], &["t"]),
        (b"s\0t/0", &[""], &["t"]),
        (b"./s/x", &["", "s"], &["x"]),
        (b"s//t", &["", "s"], &["t"]),
        (b"s/\xfft", &["", "s"], &["t"]),
        (b"..", &[""], &["s"]),
    ] {
        let mut writer = ZipWriter::default();
        writer.add_bytes(name, b"1");
        writer.add("s/zarr.json", b"{}");
        let (directory, _) = opened(&writer.finish()).unwrap();
        let names: Vec<&str> = directory.below("").map(|(name, _)| name).collect();
        assert_eq!(names, ["s/zarr.json"], "{name:?}");
        assert_eq!(directory.list("").len(), 1);
        let text = std::str::from_utf8(name).unwrap_or("..");
        assert!(directory.get(text).is_none(), "{name:?}");
        for folder in folders {
            let error = directory.check_names(folder).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{name:?} {folder}");
        }
        others.iter().for_each(|folder| directory.check_names(folder).unwrap());
    }
}

#[test]
fn headers_must_agree_with_the_directory() {
    for deflates in [false, true] {
        let archive = two(deflates);
        assert_eq!(read(&archive, "first").unwrap().unwrap(), vec![7; 2000]);
        for at in (0..5).chain([8, 9]).chain(14..35) {
            let mut lying = archive.clone();
            lying[at] ^= 0x21;
            // The version that a reader needs has no meaning here.
            let error = read(&lying, "first").map(|_| ());
            assert!(at == 4 || error.is_err_and(|it| it.kind() == ErrorKind::Corrupt), "{at}");
            assert_eq!(read(&lying, "other").unwrap().unwrap(), b"1234567890"[..]);
        }
        let encrypted = changed(
            &archive,
            b"PK\x01\x02\x14\0\x14\0\0\x08",
            b"PK\x01\x02\x14\0\x14\0\x01\x08",
            1,
        );
        let error = read(&encrypted, "first").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("\"first\": an encrypted member"), "{error}");
        let method = archive[8];
        let from = [b"PK\x01\x02\x14\0\x14\0\0\x08", &[method][..]].concat();
        let to = [b"PK\x01\x02\x14\0\x14\0\0\x08", &[12][..]].concat();
        let error = read(&changed(&archive, &from, &to, 1), "first").unwrap_err();
        assert!(error.to_string().contains("method 12"), "{error}");
    }
}

#[test]
fn bombs_are_cut_off() {
    let mut writer = ZipWriter { deflates: true, ..ZipWriter::default() };
    writer.add("bomb", &vec![0; 50_000_000]);
    let archive = writer.finish();
    assert!(archive.len() < 60_000);
    assert_eq!(read(&archive, "bomb").unwrap().unwrap().len(), 50_000_000);
    let length = 50_000_000_u32.to_le_bytes();
    let shorter = changed(&archive, &length, &1000_u32.to_le_bytes(), 0);
    let shorter = changed(&shorter, &length, &1000_u32.to_le_bytes(), 0);
    assert_eq!(read(&shorter, "bomb").unwrap_err().kind(), ErrorKind::Corrupt);
    let longer = changed(&archive, &length, &3_000_000_000_u32.to_le_bytes(), 0);
    assert_eq!(opened(&longer).map(|_| ()).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn archives_of_stores_are_recognised_by_their_beginnings() {
    let mut kinds = writers();
    kinds.retain(|it| it.before.is_empty());
    for (names, expected) in [
        (&["zarr.json"][..], true),
        (&["x.zarr/", "x.zarr/.zgroup"], true),
        (&["a/c/0", "a/c/1", "a/zarr.json"], true),
        (&["x/a/.zarray"], true),
        (&["x/y/a/.zarray"], false),
        (&["[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"], false),
        (&["META-INF/MANIFEST.MF", "A.class"], false),
        (&["arr_0.npy"], false),
        (&[".zattrs"], false),
    ] {
        for kind in &kinds {
            let mut writer = ZipWriter {
                deflates: kind.deflates,
                is_zip64: kind.is_zip64,
                has_descriptors: kind.has_descriptors,
                ..ZipWriter::default()
            };
            names.iter().for_each(|name| writer.add(name, b"some bytes"));
            let head = writer.finish();
            assert_eq!(is_zipped_zarr(&head), expected, "{names:?}");
        }
    }
    // An archive in an archive is no store.
    let mut inner = ZipWriter::default();
    inner.add("zarr.json", b"{}");
    let mut outer = ZipWriter::default();
    outer.add("x.zarr.zip", &inner.finish());
    assert!(!is_zipped_zarr(&outer.finish()));
    assert!(!is_zipped_zarr(b"") && !is_zipped_zarr(b"PK\x03\x04") && !is_zipped_zarr(b"{}"));
}
