//! A confinement as it is sent to a keeper.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::level::Level;
use super::{Confinement, Limits, Network, Sandbox};
use crate::wire::{Frame, Rest, os_string};

impl Confinement {
    pub(crate) fn encode(&self, frame: &mut Frame) {
        let sandbox = &self.sandbox;
        frame.number(u64::from(self.level.number()));
        frame.number(u64::from(self.witnessed));
        frame.number(u64::try_from(self.landlock).unwrap_or(0));
        frame.bytes(sandbox.tmp.as_os_str().as_bytes());
        frame.number(match sandbox.network {
            Network::None => 0,
            Network::All => 1,
        });
        frame.number(u64::from(sandbox.limits.processes));
        let lists = [
            &sandbox.writable,
            &sandbox.caches,
            &sandbox.read_only,
            &sandbox.protected,
            &sandbox.hidden,
        ];
        for list in lists {
            frame.paths(list);
        }
    }

    pub(crate) fn parse(rest: &mut Rest<'_>) -> Option<Confinement> {
        let level = Level::of_number(rest.number()?)?;
        let witnessed = rest.number()? != 0;
        let landlock = i64::try_from(rest.number()?).ok()?;
        let tmp = PathBuf::from(os_string(rest.bytes()?));
        let network = match rest.number()? {
            0 => Network::None,
            1 => Network::All,
            _ => return None,
        };
        let limits = Limits { processes: u32::try_from(rest.number()?).ok()? };
        let sandbox = Sandbox {
            writable: rest.paths()?,
            caches: rest.paths()?,
            read_only: rest.paths()?,
            protected: rest.paths()?,
            hidden: rest.paths()?,
            tmp,
            network,
            limits,
        };
        Some(Confinement { sandbox, level, landlock, witnessed })
    }
}
