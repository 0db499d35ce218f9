//! Arguments of `backup`.

use std::path::PathBuf;

use clap::Subcommand;

use super::parse::number;

#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Copy the workspace once, and wait for it
    Now {
        /// The backup: s3://BUCKET/PREFIX
        address: String,
    },
    /// Show what a backup has; without an address, how the backups of this workspace are going
    Status {
        /// The backup: s3://BUCKET/PREFIX
        address: Option<String>,
        /// What it had after this segment [default: the last]
        #[arg(long, value_name = "NUMBER", requires = "address", value_parser = number::<u64>)]
        segment: Option<u64>,
    },
    /// Read everything in a backup that a restore needs, and check it
    Verify {
        /// The backup: s3://BUCKET/PREFIX
        address: String,
    },
    /// Make the files and the history of a backup again, in a new or empty directory
    Restore {
        /// The backup: s3://BUCKET/PREFIX
        address: String,
        /// The directory, which must be missing or empty
        directory: PathBuf,
        /// Restore what it had after this segment [default: the last]
        #[arg(long, value_name = "NUMBER", conflicts_with = "take_over", value_parser = number::<u64>)]
        segment: Option<u64>,
        /// Continue the backup from here: the machine that has written it cannot any more
        #[arg(long)]
        take_over: bool,
    },
}

pub(super) const BACKUP: &str = "\
Copy a workspace to an object store with the interface of S3, and check and restore such backups. \
`toolcrib serve --backup ADDRESS` copies continuously, without delaying any call.

An address is s3://BUCKET/PREFIX, with a prefix of its own for each workspace. The keys, the region and another server than Amazon's come from \
the usual variables and files: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, AWS_CA_BUNDLE, \
AWS_PROFILE, ~/.aws/credentials and ~/.aws/config.

Nothing in a backup is ever replaced or removed.";
