//! The platforms that programs are built for, and their names in each packaging system.

/// A platform.
pub(super) struct Target {
    /// In names of files.
    pub(super) name: &'static str,
    /// As rustc has it.
    pub(super) triple: &'static str,
    /// As the linker is told: with the oldest C library that the program is to run with.
    pub(super) linked_for: &'static str,
    /// As in `std::env::consts::ARCH`.
    pub(super) architecture: &'static str,
    /// Architecture in Debian, for the target that is packaged for it.
    pub(super) debian: Option<&'static str>,
    /// Architecture in Node.
    pub(super) node: Option<&'static str>,
    /// Architecture in container images.
    pub(super) container: Option<&'static str>,
    /// Platform tags of the wheel. A static program needs no C library, so both kinds of systems can have it.
    pub(super) wheel: Option<&'static str>,
}

/// All of them. The first one is also run to generate man pages and completions.
pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "x86_64-linux-musl",
        triple: "x86_64-unknown-linux-musl",
        linked_for: "x86_64-unknown-linux-musl",
        architecture: "x86_64",
        debian: Some("amd64"),
        node: Some("x64"),
        container: Some("amd64"),
        wheel: Some("manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"),
    },
    Target {
        name: "aarch64-linux-musl",
        triple: "aarch64-unknown-linux-musl",
        linked_for: "aarch64-unknown-linux-musl",
        architecture: "aarch64",
        debian: Some("arm64"),
        node: Some("arm64"),
        container: Some("arm64"),
        wheel: Some("manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"),
    },
    Target {
        name: "x86_64-linux-gnu",
        triple: "x86_64-unknown-linux-gnu",
        linked_for: "x86_64-unknown-linux-gnu.2.28",
        architecture: "x86_64",
        debian: None,
        node: None,
        container: None,
        wheel: None,
    },
];

impl Target {
    /// Whether this machine can run its programs.
    pub(super) fn runs_here(&self) -> bool {
        self.architecture == std::env::consts::ARCH
    }
}
