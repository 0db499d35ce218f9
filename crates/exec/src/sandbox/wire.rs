//! Encodes a confinement for a shim.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::level::Level;
use super::{Confinement, Limits, Network, PinnedPath, Sandbox};
use crate::frames::{FrameReader, FrameWriter, os_string};

impl Confinement {
    pub(crate) fn encode(&self, frame: &mut FrameWriter) {
        let sandbox = &self.sandbox;
        frame.number(u64::from(self.level.number()));
        frame.number(u64::from(sandbox.supervise_reads));
        frame.number(u64::try_from(self.max_landlock).unwrap_or(0));
        frame.bytes(sandbox.tmp.as_os_str().as_bytes());
        frame.number(match sandbox.network {
            Network::None => 0,
            Network::All => 1,
            Network::List => 2,
        });
        frame.number(u64::from(sandbox.limits.processes));
        PinnedPath::encode_all(&sandbox.writable, frame);
        PinnedPath::encode_all(&sandbox.read_only, frame);
        frame.paths(&sandbox.hidden);
    }

    pub(crate) fn parse(rest: &mut FrameReader<'_>) -> Option<Confinement> {
        let level = Level::from_number(rest.number()?)?;
        let supervise_reads = rest.number()? != 0;
        let max_landlock = i64::try_from(rest.number()?).ok()?;
        let tmp = PathBuf::from(os_string(rest.bytes()?));
        let network = match rest.number()? {
            0 => Network::None,
            1 => Network::All,
            2 => Network::List,
            _ => return None,
        };
        let limits = Limits { processes: u32::try_from(rest.number()?).ok()? };
        let (writable, read_only) = (PinnedPath::parse_all(rest)?, PinnedPath::parse_all(rest)?);
        let hidden = rest.paths()?;
        let sandbox =
            Sandbox { writable, read_only, hidden, tmp, supervise_reads, network, limits };
        Some(Confinement { sandbox, level, max_landlock })
    }
}

impl PinnedPath {
    pub(super) fn encode_all(all: &[PinnedPath], frame: &mut FrameWriter) {
        frame.number(all.len() as u64);
        for pinned in all {
            frame.bytes(pinned.path.as_os_str().as_bytes());
            frame.number(pinned.identity.0);
            frame.number(pinned.identity.1);
        }
    }

    pub(super) fn parse_all(rest: &mut FrameReader<'_>) -> Option<Vec<PinnedPath>> {
        let count = rest.number()?;
        let pinned = |rest: &mut FrameReader<'_>| {
            let path = PathBuf::from(os_string(rest.bytes()?));
            Some(PinnedPath { path, identity: (rest.number()?, rest.number()?) })
        };
        (0..count).map(|_| pinned(rest)).collect()
    }
}
