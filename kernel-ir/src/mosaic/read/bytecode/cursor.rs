//! A place in a module's bytes, and MLIR's primitive encodings: integers of variable length, text, sections.

use super::fault::{Fallible, Fault};

/// What fills the gap before an aligned section.
const PADDING: u8 = 0xcb;

/// A range of a file that is read from its start.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'b> {
    file: &'b [u8],
    at: usize,
    end: usize,
}

impl<'b> Cursor<'b> {
    /// The whole file.
    pub(super) fn new(file: &'b [u8]) -> Self {
        Self { file, at: 0, end: file.len() }
    }

    /// The byte of the file that is next.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn remaining(&self) -> usize {
        self.end - self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// The bytes that are left, and none after.
    pub(super) fn rest(&mut self) -> &'b [u8] {
        let rest = &self.file[self.at..self.end];
        self.at = self.end;
        rest
    }

    /// The next `n` bytes as a range of their own.
    pub(super) fn part(&mut self, n: u64) -> Fallible<Self> {
        if n > self.remaining() as u64 {
            return Err(self.malformed(format!("{n} bytes are announced, {} are left", self.remaining())));
        }
        let part = Self { end: self.at + n as usize, ..*self };
        self.at = part.end;
        Ok(part)
    }

    pub(super) fn bytes(&mut self, n: u64) -> Fallible<&'b [u8]> {
        Ok(self.part(n)?.rest())
    }

    pub(super) fn byte(&mut self) -> Fallible<u8> {
        Ok(self.bytes(1)?[0])
    }

    /// An integer in MLIR's prefix form: the zeros below the lowest one bit of the first byte count the bytes that follow.
    pub(super) fn varint(&mut self) -> Fallible<u64> {
        let first = self.byte()?;
        let follow = first.trailing_zeros() as usize;
        let mut word = [0; 8];
        if follow == 8 {
            word.copy_from_slice(self.bytes(8)?);
            return Ok(u64::from_le_bytes(word));
        }
        word[0] = first;
        word[1..=follow].copy_from_slice(self.bytes(follow as u64)?);
        Ok(u64::from_le_bytes(word) >> (follow + 1))
    }

    /// A signed integer: the sign is the lowest bit.
    pub(super) fn signed(&mut self) -> Fallible<i64> {
        let v = self.varint()?;
        Ok((v >> 1) as i64 ^ -((v & 1) as i64))
    }

    /// An integer and a flag in its lowest bit.
    pub(super) fn flagged(&mut self) -> Fallible<(u64, bool)> {
        let v = self.varint()?;
        Ok((v >> 1, v & 1 == 1))
    }

    /// How many entries follow. Each takes a byte at least.
    pub(super) fn count(&mut self) -> Fallible<usize> {
        let n = self.varint()?;
        self.checked_count(n)
    }

    /// A number of entries that follow, read before. Each takes a byte at least.
    pub(super) fn checked_count(&self, n: u64) -> Fallible<usize> {
        if n > self.remaining() as u64 {
            let left = self.remaining();
            return Err(self.malformed(format!("{n} entries are announced in {left} bytes")));
        }
        Ok(n as usize)
    }

    /// An index into a table of `len` entries.
    pub(super) fn index(&mut self, len: usize, what: &str) -> Fallible<u32> {
        let n = self.varint()?;
        self.checked_index(n, len, what)
    }

    /// An index into a table of `len` entries, read before.
    pub(super) fn checked_index(&self, n: u64, len: usize, what: &str) -> Fallible<u32> {
        match u32::try_from(n) {
            Ok(i) if (i as usize) < len => Ok(i),
            _ => Err(self.malformed(format!("{what} {n} is named, and there are {len}"))),
        }
    }

    /// Text that ends in a zero byte.
    pub(super) fn text(&mut self) -> Fallible<&'b [u8]> {
        let rest = &self.file[self.at..self.end];
        let Some(n) = rest.iter().position(|b| *b == 0) else {
            return Err(self.malformed("text does not end"));
        };
        self.at += n + 1;
        Ok(&rest[..n])
    }

    /// A section: its number and its contents.
    pub(super) fn section(&mut self) -> Fallible<(u8, Self)> {
        let id = self.byte()?;
        let length = self.varint()?;
        if id & 0x80 != 0 {
            let alignment = self.varint()?;
            if !alignment.is_power_of_two() {
                return Err(self.malformed(format!("a section is aligned to {alignment} bytes")));
            }
            while !(self.at as u64).is_multiple_of(alignment) {
                if self.byte()? != PADDING {
                    return Err(self.malformed("a section is not padded"));
                }
            }
        }
        Ok((id & 0x7f, self.part(length)?))
    }

    /// Fails if something is left.
    pub(super) fn finish(&self, what: &str) -> Fallible<()> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.malformed(format!("{} bytes are left after {what}", self.remaining())))
    }

    /// The error that what stands here is wrong.
    pub(super) fn malformed(&self, message: impl Into<String>) -> Fault {
        Fault::malformed(self.at, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_length() {
        let one = |bytes: &[u8]| Cursor::new(bytes).varint().unwrap();
        assert_eq!(one(&[0x01]), 0);
        assert_eq!(one(&[0xff]), 127);
        assert_eq!(one(&[0x02, 0x02]), 128);
        assert_eq!(one(&[0xfe, 0xff]), (1 << 14) - 1);
        assert_eq!(one(&[0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), (1 << 56) - 1);
        assert_eq!(one(&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), u64::MAX);
        assert!(Cursor::new(&[0x02]).varint().is_err());
        assert!(Cursor::new(&[]).varint().is_err());
    }

    #[test]
    fn signs_are_in_the_lowest_bit() {
        let one = |bytes: &[u8]| Cursor::new(bytes).signed().unwrap();
        assert_eq!(one(&[0x13]), -5);
        assert_eq!(one(&[0x05]), 1);
        assert_eq!(one(&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), i64::MIN);
    }

    #[test]
    fn sections_are_aligned() {
        let file = [0x84, 0x05, 0x11, PADDING, PADDING, PADDING, PADDING, PADDING, 7, 8];
        let (id, mut data) = Cursor::new(&file).section().unwrap();
        assert_eq!((id, data.rest()), (4, &[7, 8][..]));
        assert!(Cursor::new(&[0x84, 0x05, 0x01, 7, 8]).section().is_err());
    }
}
