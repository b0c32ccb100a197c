//! A writer of tables in FlatBuffers, by the numbers of their fields instead of by generated code.
//!
//! ```text
//!   text, bytes, records ──▶ Field ──▶ table ──▶ Field ──▶ list ──▶ Field ──▶ table ──▶ finish
//! ```
//!
//! A table comes behind all that it refers to, and so the outermost table is the last one.

use flatbuffers::{FlatBufferBuilder, Push, UnionWIPOffset, WIPOffset};

/// A field of a table.
#[derive(Clone, Copy)]
pub(crate) enum Field<'a> {
    /// A struct of bytes.
    Struct(&'a [u8]),
    Byte(u8),
    Int(i32),
    Word(u32),
    Long(u64),
    /// A text, a vector or a table, which is written already.
    At(WIPOffset<UnionWIPOffset>),
}

/// A field that refers to what was written before.
pub(crate) type Written = Field<'static>;

/// A buffer that is being written.
#[derive(Default)]
pub(crate) struct FlatTables(FlatBufferBuilder<'static>);

impl FlatTables {
    /// Writes a table of fields with these numbers.
    pub(crate) fn table(&mut self, fields: &[(u16, Field<'_>)]) -> Written {
        let Self(buffer) = self;
        let start = buffer.start_table();
        for (number, field) in fields {
            let slot = 4 + 2 * number;
            match *field {
                // The buffer grows at its front.
                Field::Struct(bytes) => {
                    for byte in bytes[1..].iter().rev() {
                        buffer.push(*byte);
                    }
                    buffer.push_slot_always(slot, bytes[0]);
                }
                Field::Byte(number) => buffer.push_slot_always(slot, number),
                Field::Int(number) => buffer.push_slot_always(slot, number),
                Field::Word(number) => buffer.push_slot_always(slot, number),
                Field::Long(number) => buffer.push_slot_always(slot, number),
                Field::At(place) => buffer.push_slot_always(slot, place),
            }
        }
        Field::At(buffer.end_table(start).as_union_value())
    }

    pub(crate) fn text(&mut self, text: &str) -> Written {
        Field::At(self.0.create_string(text).as_union_value())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Written {
        Field::At(self.0.create_vector(bytes).as_union_value())
    }

    /// Writes a vector of tables.
    pub(crate) fn list(&mut self, tables: &[Written]) -> Written {
        let places: Vec<_> = tables.iter().map(place).collect();
        Field::At(self.0.create_vector(&places).as_union_value())
    }

    /// Writes a vector of so many structs, which consist of these words.
    pub(crate) fn records<T: Push + Copy + 'static>(
        &mut self,
        words: &[T],
        structs: usize,
    ) -> Written {
        self.0.start_vector::<T>(words.len());
        for word in words.iter().rev() {
            self.0.push(*word);
        }
        Field::At(self.0.end_vector::<T>(structs).as_union_value())
    }

    /// Returns the buffer, whose outermost table is `root`.
    pub(crate) fn finish(mut self, root: Written) -> Vec<u8> {
        self.0.finish_minimal(place(&root));
        self.0.finished_data().to_vec()
    }
}

fn place(table: &Written) -> WIPOffset<UnionWIPOffset> {
    match table {
        Field::At(place) => *place,
        _ => panic!("a number is no table"),
    }
}
