//! A pack file with its index: see `gitformat-pack(5)`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::bufread::ZlibDecoder;
use toolcrib_fs::{Directory, FileParts};

use super::{MAX_OBJECT_BYTES, Object, ObjectId, ObjectKind, ObjectStore};

const INDEX_HEADER: [u8; 8] = *b"\xfftOc\0\0\0\x02";
const FANOUT_START: u64 = 8;
const NAMES_START: u64 = FANOUT_START + 256 * 4;
const NAME_BYTES: u64 = 20;

/// Longer than git's delta chains.
const MAX_DEPTH: usize = 5_000;

/// Compressed bytes read at once. Most commits and trees have fewer.
const READ_BYTES: usize = 2 << 10;

/// Size of the cache of delta bases, which are read repeatedly.
const MAX_KEPT_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct Pack {
    index: FileParts,
    content: FileParts,
    /// Number of object ids whose first byte is at most the index.
    fanout: Vec<u32>,
    bases: RefCell<Bases>,
}

#[derive(Debug, Default)]
struct Bases {
    by_offset: HashMap<u64, Object>,
    bytes: usize,
}

enum Entry {
    Whole(ObjectKind),
    DeltaOfOffset(u64),
    DeltaOfObject(ObjectId),
}

impl Pack {
    /// Opens a pack by the path of its index.
    pub(super) fn open(directory: &Directory, index: &Path) -> Option<Pack> {
        let content = directory.parts(index.with_extension("pack").as_os_str()).ok()?;
        let index = directory.parts(OsStr::new(index)).ok()?;
        let mut start = vec![0; NAMES_START as usize];
        read_exactly(&index, 0, &mut start)?;
        if start.get(..INDEX_HEADER.len())? != INDEX_HEADER {
            return None;
        }
        let fanout = start.get(INDEX_HEADER.len()..)?.chunks_exact(4).map(number).collect();
        Some(Pack { index, content, fanout, bases: RefCell::default() })
    }

    /// Offset of an object in the pack.
    pub(super) fn offset(&self, id: ObjectId) -> Option<u64> {
        let first = usize::from(id.0[0]);
        let mut low = if first == 0 { 0 } else { u64::from(*self.fanout.get(first - 1)?) };
        let mut high = u64::from(*self.fanout.get(first)?);
        let count = u64::from(*self.fanout.last()?);
        let mut name = [0; NAME_BYTES as usize];
        while low < high {
            let middle = low.midpoint(high);
            read_exactly(&self.index, NAMES_START + middle * NAME_BYTES, &mut name)?;
            match name.cmp(&id.0) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset_at(middle, count),
            }
        }
        None
    }

    fn offset_at(&self, position: u64, count: u64) -> Option<u64> {
        // A checksum per object follows the ids.
        let offsets = NAMES_START + count * (NAME_BYTES + 4);
        let mut bytes = [0; 4];
        read_exactly(&self.index, offsets + position * 4, &mut bytes)?;
        let offset = u32::from_be_bytes(bytes);
        if offset >> 31 == 0 {
            return Some(offset.into());
        }
        let large = offsets + count * 4 + u64::from(offset & 0x7fff_ffff) * 8;
        let mut bytes = [0; 8];
        read_exactly(&self.index, large, &mut bytes)?;
        Some(u64::from_be_bytes(bytes))
    }

    /// Reads the object at an offset. `depth` is the length of the delta chain so far.
    pub(super) fn read(&self, offset: u64, store: &ObjectStore, depth: usize) -> Option<Object> {
        // Follows the deltas to their base, then applies them in reverse order.
        let (mut deltas, mut at) = (Vec::new(), offset);
        let mut object = loop {
            if let Some(known) = self.bases.borrow().by_offset.get(&at) {
                break known.clone();
            }
            if depth + deltas.len() > MAX_DEPTH {
                return None;
            }
            let (entry, size, start) = self.entry(at)?;
            let content = self.inflate(start, size)?;
            match entry {
                Entry::Whole(kind) => {
                    let object = Object { kind, content };
                    self.keep(at, &object);
                    break object;
                }
                Entry::DeltaOfOffset(base) => {
                    deltas.push((at, content));
                    at = base;
                }
                Entry::DeltaOfObject(base) => {
                    deltas.push((at, content));
                    break store.read_base(base, depth + deltas.len())?;
                }
            }
        };
        while let Some((at, delta)) = deltas.pop() {
            object.content = applied(&delta, &object.content)?;
            self.keep(at, &object);
        }
        Some(object)
    }

    fn keep(&self, offset: u64, object: &Object) {
        let mut bases = self.bases.borrow_mut();
        if bases.bytes + object.content.len() > MAX_KEPT_BYTES {
            *bases = Bases::default();
        }
        bases.bytes += object.content.len();
        bases.by_offset.insert(offset, object.clone());
    }

    /// Header of an entry: type, size of the content, and offset of the content.
    fn entry(&self, offset: u64) -> Option<(Entry, u64, u64)> {
        let mut header = [0; 64];
        let mut filled = 0;
        while filled < header.len() {
            match self.content.read_at(offset + filled as u64, &mut header[filled..]).ok()? {
                0 => break,
                read => filled += read,
            }
        }
        let mut bytes = header.get(..filled)?.iter().copied();
        let mut byte = bytes.next()?;
        let kind = (byte >> 4) & 7;
        let (mut size, mut shift) = (u64::from(byte & 15), 4);
        while byte & 0x80 != 0 {
            byte = bytes.next()?;
            size |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
        }
        let entry = match kind {
            1 => Entry::Whole(ObjectKind::Commit),
            2 => Entry::Whole(ObjectKind::Tree),
            3 => Entry::Whole(ObjectKind::Blob),
            4 => Entry::Whole(ObjectKind::Tag),
            6 => {
                let mut byte = bytes.next()?;
                let mut back = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = bytes.next()?;
                    back = (back + 1).checked_mul(128)? | u64::from(byte & 0x7f);
                }
                Entry::DeltaOfOffset(offset.checked_sub(back).filter(|base| *base < offset)?)
            }
            7 => {
                let name: Vec<u8> = bytes.by_ref().take(NAME_BYTES as usize).collect();
                Entry::DeltaOfObject(ObjectId::from_bytes(&name)?)
            }
            _ => return None,
        };
        let start = offset + (filled - bytes.len()) as u64;
        Some((entry, size, start))
    }

    fn inflate(&self, start: u64, size: u64) -> Option<Vec<u8>> {
        if size > MAX_OBJECT_BYTES {
            return None;
        }
        let from = ReadFrom { file: &self.content, position: start };
        let mut content = Vec::with_capacity(usize::try_from(size.min(1 << 20)).ok()?);
        let inflated = ZlibDecoder::new(BufReader::with_capacity(READ_BYTES, from));
        inflated.take(size + 1).read_to_end(&mut content).ok()?;
        (content.len() as u64 == size).then_some(content)
    }
}

/// Reads a file from a position on.
struct ReadFrom<'a> {
    file: &'a FileParts,
    position: u64,
}

impl Read for ReadFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.position, buffer);
        let read = read.map_err(|_| io::Error::from(io::ErrorKind::Other))?;
        self.position += read as u64;
        Ok(read)
    }
}

/// Applies a delta to its base.
fn applied(delta: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = delta.iter().copied();
    let base_size = varint(&mut bytes)?;
    let size = varint(&mut bytes)?;
    if base_size != base.len() as u64 || size > MAX_OBJECT_BYTES {
        return None;
    }
    let mut result = Vec::with_capacity(usize::try_from(size.min(1 << 20)).ok()?);
    while let Some(code) = bytes.next() {
        if code & 0x80 == 0 {
            let count = usize::from(code);
            let start = delta.len() - bytes.len();
            result.extend_from_slice(delta.get(start..start + count)?);
            bytes = delta.get(start + count..)?.iter().copied();
            if count == 0 {
                return None;
            }
        } else {
            let mut numbers = [0_usize; 7];
            for (bit, number) in numbers.iter_mut().enumerate() {
                if code & (1 << bit) != 0 {
                    *number = usize::from(bytes.next()?);
                }
            }
            let [a, b, c, d, e, f, g] = numbers;
            let start = a | b << 8 | c << 16 | d << 24;
            let count = match e | f << 8 | g << 16 {
                0 => 0x10000,
                count => count,
            };
            result.extend_from_slice(base.get(start..start.checked_add(count)?)?);
        }
        if result.len() as u64 > size {
            return None;
        }
    }
    (result.len() as u64 == size).then_some(result)
}

fn varint(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes.next()?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn read_exactly(file: &FileParts, position: u64, buffer: &mut [u8]) -> Option<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(position + filled as u64, &mut buffer[filled..]).ok()? {
            0 => return None,
            read => filled += read,
        }
    }
    Some(())
}
