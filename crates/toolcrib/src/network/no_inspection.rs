//! Stands for inspected hosts in a build without the feature `inspect`: there are none.

use std::ffi::OsString;
use std::path::Path;

use toolcrib_exec::Replacement;
use toolcrib_net::{Host, NamespaceGateway};

use crate::inspection_settings::InspectionSettings;

/// Inspected hosts, which this build does not have.
#[derive(Debug)]
pub(crate) enum Inspection {}

impl Inspection {
    pub(crate) fn new(_: InspectionSettings) -> Result<Inspection, String> {
        Err("rules with `methods` or `paths` for hosts, and `inject`, need the feature inspect, which this build does not have".to_owned())
    }

    pub(crate) fn secrets(&self) -> &[(String, String)] {
        match *self {}
    }

    pub(crate) fn withholds(&self, _: &str, _: &str) -> bool {
        match *self {}
    }

    pub(crate) fn has_credential_for(&self, _: &Host, _: u16) -> bool {
        match *self {}
    }

    pub(crate) fn prepare(&self, _: &Path, _: &[(OsString, OsString)]) {
        match *self {}
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        match *self {}
    }

    pub(crate) fn attach(&self, _: &NamespaceGateway) {
        match *self {}
    }

    pub(crate) fn replacements(&self) -> &[Replacement] {
        match *self {}
    }

    pub(crate) fn add_variables(&self, _: &mut Vec<(OsString, OsString)>) {
        match *self {}
    }
}
