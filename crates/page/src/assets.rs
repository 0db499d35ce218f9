//! The files of the page, built from `packaging/page` and embedded.

/// A file of the page.
pub(crate) struct Asset {
    pub(crate) content_type: &'static str,
    pub(crate) bytes: &'static [u8],
}

/// Each file, with the path that it has on the server.
const ASSETS: [(&str, Asset); 5] = [
    (
        "/",
        Asset {
            content_type: "text/html; charset=utf-8",
            bytes: include_bytes!("../assets/index.html"),
        },
    ),
    (
        "/app.js",
        Asset {
            content_type: "text/javascript; charset=utf-8",
            bytes: include_bytes!("../assets/app.js"),
        },
    ),
    (
        "/worker.js",
        Asset {
            content_type: "text/javascript; charset=utf-8",
            bytes: include_bytes!("../assets/worker.js"),
        },
    ),
    (
        "/app.css",
        Asset {
            content_type: "text/css; charset=utf-8",
            bytes: include_bytes!("../assets/app.css"),
        },
    ),
    (
        "/favicon.svg",
        Asset { content_type: "image/svg+xml", bytes: include_bytes!("../assets/favicon.svg") },
    ),
];

/// The file at a path.
pub(crate) fn at(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|(known, _)| *known == path).map(|(_, asset)| asset)
}
