//! Keeps what several machines share in PostgreSQL: the audit logs of workspaces, approval questions, limits of tenants, and which
//! machine may write a workspace.
//!
//! # How it works
//!
//! Nothing that a tool does waits for the store. The local audit log is a queue on the disk, and [`AuditSender`] sends its
//! records from a thread of its own, in batches. The store itself knows how far it has come: after every lost connection the
//! sender asks for the last record and goes on after it, so that none is lost and none is there twice, whichever side was
//! killed. The database checks the hash of each record, and refuses another record in the place of one that it has.
//!
//! [`SharedApprovals`] puts approval questions into the store, where any machine of the tenant can answer them. The first answer
//! is settled by one statement, and used by one call.
//!
//! A [`Lease`] makes one machine the writer of a workspace. [`LeaseKeeper`] renews it in time, or writing ends before the lease does.
//!
//! [`Quotas`] enforces the limits of a tenant. Each process counts for itself, and tells and asks the store every few seconds.
//!
//! A tenant is a role of the database. Row-level security compares rows with the role that has signed in, which no statement
//! can change. That role may add records and read its own; it cannot change or remove any.
//!
//! The connection is a small client for the protocol of PostgreSQL, on the parser of its Rust client: blocking, with a time limit for
//! every wait and a bound for everything that the server sends.

mod approval_rows;
mod approvals;
mod asked_approval;
mod audit_rows;
mod clock;
mod connection;
mod error;
mod lease;
mod lease_keeper;
mod outgoing_log;
mod quota_count;
mod quota_rows;
mod quotas;
mod schema;
mod sender;
mod url;
mod verify;

pub use approval_rows::{ApprovalAnswer, NewApproval, OpenApproval};
pub use approvals::{
    AskedApproval, GivenApproval, SharedApprovals, answer_approval, open_approvals,
};
pub use asked_approval::{ApprovalOutcome, ApprovalState};
pub use error::{StoreError, StoreErrorKind};
pub use lease::Lease;
pub use lease_keeper::{HeldLease, LeaseKeeper};
pub use quota_rows::{QuotaName, TenantQuota};
pub use quotas::{Quotas, quotas, set_quotas};
pub use schema::{Initialized, add_tenant, initialize, statements};
pub use sender::{AuditSender, FollowedLog};
pub use url::StoreUrl;
pub use verify::{CheckedLog, StoredLog, check_all, compare};
