//! What this process has used, and the limits as far as they are known. Without I/O: times are given, as those of the database
//! since 1970.

use std::collections::HashMap;
use std::time::Duration;

use toolcrib::OverQuota;

use crate::quota_rows::{QuotaName, ReadLimit, ReportedUse};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What others use of a limit without a window counts for this time after it was read.
const OTHERS_LAST: Duration = Duration::from_secs(30);

/// After this time a place for a command may be free.
const PLACE_RETRY: Duration = Duration::from_secs(5);

/// The name of all workspaces together.
const ALL: &str = "";

/// Counts and limits.
#[derive(Debug, Default)]
pub(crate) struct QuotaCount {
    limits: HashMap<String, Limits>,
    /// By workspace, and for all of them together.
    used: HashMap<String, Used>,
}

/// The limits of a workspace, or of all.
#[derive(Debug, Clone, Copy, Default)]
struct Limits {
    calls: Option<Limit>,
    commands: Option<Limit>,
    seconds: Option<Limit>,
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    value: u64,
    /// What others have used.
    others: u64,
    /// Others have used it before this time; after it, nothing is known.
    until: Duration,
}

/// What this process has used in a workspace, or in all.
#[derive(Debug, Default)]
struct Used {
    minute: u64,
    calls: u64,
    day: u64,
    command_time: Duration,
    /// Commands that run or are about to start.
    commands: u64,
    /// Whether the store was not told of a change.
    is_new: bool,
}

impl Used {
    /// Begins the present minute and day.
    fn at(&mut self, now: Duration) -> &mut Used {
        let (minute, day) = (number_of(now, MINUTE), number_of(now, DAY));
        if is_over(self.minute, minute) {
            (self.minute, self.calls) = (minute, 0);
        }
        if is_over(self.day, day) {
            (self.day, self.command_time) = (day, Duration::ZERO);
        }
        self
    }
}

/// Whether a window has passed. The clock may be set back by a moment, when the database was asked for its time.
fn is_over(window: u64, present: u64) -> bool {
    present > window || window - present > 1
}

/// The number of a window since 1970.
fn number_of(now: Duration, window: Duration) -> u64 {
    now.as_secs() / window.as_secs()
}

/// The time until the next window.
fn rest_of(now: Duration, window: Duration) -> Duration {
    let next = Duration::from_secs((number_of(now, window) + 1) * window.as_secs());
    next.saturating_sub(now)
}

impl QuotaCount {
    /// Whether there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        !self.limits.is_empty()
    }

    /// Takes the limits from the store.
    pub(crate) fn set_limits(&mut self, read: &[ReadLimit], now: Duration) {
        self.limits.clear();
        for one in read {
            let limits = self.limits.entry(one.workspace.clone()).or_default();
            let end_of = |number: u64, window: Duration| {
                Duration::from_secs(number.saturating_add(1).saturating_mul(window.as_secs()))
            };
            let (value, others) = (one.value, one.used);
            let limit = |until| Some(Limit { value, others, until });
            match one.name {
                QuotaName::CallsPerMinute => limits.calls = limit(end_of(one.minute, MINUTE)),
                QuotaName::Commands => limits.commands = limit(now + OTHERS_LAST),
                QuotaName::CommandSecondsPerDay => limits.seconds = limit(end_of(one.day, DAY)),
            }
        }
    }

    /// Fails if a limit of the workspace or of all is reached.
    fn check(&self, workspace: &str, name: QuotaName, now: Duration) -> Result<(), OverQuota> {
        for scope in [workspace, ALL] {
            let Some(limits) = self.limits.get(scope) else { continue };
            let (limit, unit, window) = match name {
                QuotaName::CallsPerMinute => (limits.calls, 1, Some(MINUTE)),
                QuotaName::Commands => (limits.commands, 1, None),
                QuotaName::CommandSecondsPerDay => (limits.seconds, 1_000, Some(DAY)),
            };
            let Some(limit) = limit else { continue };
            let others = if now < limit.until { limit.others } else { 0 };
            let own = self.used.get(scope).map_or(0, |used| used.of(name, now));
            if own.saturating_add(others) >= limit.value.saturating_mul(unit) {
                let whose = if scope == ALL { "the tenant" } else { "the workspace" };
                let retry_after = window.map_or(PLACE_RETRY, |window| rest_of(now, window));
                return Err(over(name, limit.value, whose, retry_after));
            }
        }
        Ok(())
    }

    /// Fails if a call may not begin.
    pub(crate) fn check_call(&self, workspace: &str, now: Duration) -> Result<(), OverQuota> {
        self.check(workspace, QuotaName::CallsPerMinute, now)
    }

    /// Counts a call, or fails.
    pub(crate) fn begin_call(&mut self, workspace: &str, now: Duration) -> Result<(), OverQuota> {
        self.check_call(workspace, now)?;
        self.change(workspace, now, |used| used.calls += 1);
        Ok(())
    }

    /// Fails if a command may not start.
    pub(crate) fn check_command(&self, workspace: &str, now: Duration) -> Result<(), OverQuota> {
        self.check(workspace, QuotaName::CommandSecondsPerDay, now)?;
        self.check(workspace, QuotaName::Commands, now)
    }

    /// Counts a command that is about to start, or fails.
    pub(crate) fn begin_command(
        &mut self,
        workspace: &str,
        now: Duration,
    ) -> Result<(), OverQuota> {
        self.check_command(workspace, now)?;
        self.change(workspace, now, |used| used.commands += 1);
        Ok(())
    }

    /// A command has run for some more time.
    pub(crate) fn add_command_time(&mut self, workspace: &str, more: Duration, now: Duration) {
        if !more.is_zero() {
            self.change(workspace, now, |used| used.command_time += more);
        }
    }

    /// A command has ended, or did not start.
    pub(crate) fn end_command(&mut self, workspace: &str, now: Duration) {
        self.change(workspace, now, |used| used.commands = used.commands.saturating_sub(1));
    }

    fn change(&mut self, workspace: &str, now: Duration, change: impl Fn(&mut Used)) {
        for scope in [workspace, ALL] {
            if !self.used.contains_key(scope) {
                self.used.insert(scope.to_owned(), Used::default());
            }
            if let Some(used) = self.used.get_mut(scope) {
                change(used.at(now));
                used.is_new = true;
            }
        }
    }

    /// What the store must be told: changes, and running commands again. Forgets what no longer counts.
    pub(crate) fn take_report(&mut self, now: Duration) -> Vec<ReportedUse> {
        let mut report = Vec::new();
        for (workspace, used) in self.used.iter_mut().filter(|(workspace, _)| *workspace != ALL) {
            used.at(now);
            // The store forgets the counts of an earlier minute by itself.
            if std::mem::take(&mut used.is_new) || used.commands > 0 {
                report.push(ReportedUse {
                    workspace: workspace.clone(),
                    minute: used.minute,
                    calls: used.calls,
                    day: used.day,
                    command_ms: u64::try_from(used.command_time.as_millis()).unwrap_or(u64::MAX),
                    commands: used.commands,
                });
            }
        }
        if let Some(all) = self.used.get_mut(ALL) {
            all.at(now).is_new = false;
        }
        self.used.retain(|_, used| {
            used.is_new || used.calls + used.commands > 0 || !used.command_time.is_zero()
        });
        report
    }

    /// The store may not have got the last reports.
    pub(crate) fn report_again(&mut self) {
        self.used.values_mut().for_each(|used| used.is_new = true);
    }
}

impl Used {
    /// What counts for a limit now; of commands the time in milliseconds.
    fn of(&self, name: QuotaName, now: Duration) -> u64 {
        match name {
            QuotaName::CallsPerMinute if is_over(self.minute, number_of(now, MINUTE)) => 0,
            QuotaName::CallsPerMinute => self.calls,
            QuotaName::Commands => self.commands,
            QuotaName::CommandSecondsPerDay if is_over(self.day, number_of(now, DAY)) => 0,
            QuotaName::CommandSecondsPerDay => {
                u64::try_from(self.command_time.as_millis()).unwrap_or(u64::MAX)
            }
        }
    }
}

fn over(name: QuotaName, value: u64, whose: &str, retry_after: Duration) -> OverQuota {
    let limit = name.name();
    let mut over = OverQuota { limit, message: String::new(), retry_after };
    let seconds = over.retry_seconds();
    let when = match name {
        QuotaName::CallsPerMinute | QuotaName::CommandSecondsPerDay => {
            format!("try again in {seconds} s")
        }
        QuotaName::Commands => "try again when a command has ended".to_owned(),
    };
    over.message = format!("{whose} has reached its limit {limit}={value}: {when}");
    over
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A moment in the middle of a day, at the beginning of a minute.
    const NOON: Duration = Duration::from_secs(20_000 * 86_400 + 43_200);

    fn at(seconds: f64) -> Duration {
        NOON + Duration::from_secs_f64(seconds)
    }

    fn limit(workspace: &str, name: QuotaName, value: u64, used: u64) -> ReadLimit {
        let (minute, day) = (number_of(NOON, MINUTE), number_of(NOON, DAY));
        let (tenant, workspace) = ("acme".to_owned(), workspace.to_owned());
        ReadLimit { tenant, workspace, name, value, used, minute, day }
    }

    fn count(limits: &[ReadLimit]) -> QuotaCount {
        let mut count = QuotaCount::default();
        count.set_limits(limits, NOON);
        count
    }

    #[test]
    fn calls_of_a_minute_are_limited() {
        let mut count = count(&[limit("", QuotaName::CallsPerMinute, 3, 0)]);
        for workspace in ["a", "b", "a"] {
            count.begin_call(workspace, at(10.0)).unwrap();
        }
        let over = count.begin_call("b", at(19.5)).unwrap_err();
        assert_eq!((over.limit, over.retry_seconds()), ("calls-per-minute", 41));
        let said = "the tenant has reached its limit calls-per-minute=3: try again in 41 s";
        assert_eq!(over.message, said);
        assert_eq!(count.check_call("b", at(59.9)).unwrap_err().retry_seconds(), 1);
        assert_eq!(count.check_call("b", at(60.0)), Ok(()));
        count.begin_call("b", at(60.0)).unwrap();
        // The clock was corrected by a moment. The count of the minute does not begin again.
        count.begin_call("b", at(59.9)).unwrap();
        count.begin_call("b", at(60.1)).unwrap();
        assert!(count.begin_call("b", at(60.2)).is_err());
        assert_eq!(
            count.check_call("b", NOON - 10 * MINUTE),
            Ok(()),
            "the clock was wrong by minutes"
        );
    }

    #[test]
    fn a_workspace_has_its_own_limit() {
        let calls = QuotaName::CallsPerMinute;
        let mut count = count(&[limit("", calls, 3, 0), limit("a", calls, 1, 0)]);
        count.begin_call("a", at(1.0)).unwrap();
        let over = count.begin_call("a", at(1.0)).unwrap_err();
        assert!(over.message.starts_with("the workspace has"), "{}", over.message);
        count.begin_call("b", at(1.0)).unwrap();
        count.begin_call("b", at(1.0)).unwrap();
        let over = count.begin_call("b", at(1.0)).unwrap_err();
        assert!(over.message.starts_with("the tenant has"), "{}", over.message);
        count.set_limits(&[], at(2.0));
        assert!(!count.is_limited());
        count.begin_call("a", at(2.0)).unwrap();
        // Use from before the limit counts.
        count.set_limits(&[limit("", calls, 4, 0)], at(3.0));
        assert!(count.begin_call("c", at(3.0)).is_err());
    }

    #[test]
    fn what_others_use_counts_as_long_as_it_is_known() {
        let mut count = count(&[
            limit("", QuotaName::CallsPerMinute, 5, 4),
            limit("", QuotaName::Commands, 2, 1),
            limit("", QuotaName::CommandSecondsPerDay, 10, 9_500),
        ]);
        count.begin_call("a", at(1.0)).unwrap();
        assert!(count.begin_call("a", at(1.0)).is_err());
        // In the next minute, nothing is known of others if the store is away. The limit holds.
        for _ in 0..5 {
            count.begin_call("a", at(60.0)).unwrap();
        }
        assert!(count.begin_call("a", at(61.0)).is_err());
        count.begin_command("a", at(1.0)).unwrap();
        let over = count.begin_command("a", at(1.0)).unwrap_err();
        let said =
            "the tenant has reached its limit commands=2: try again when a command has ended";
        assert_eq!((over.message.as_str(), over.retry_seconds()), (said, 5));
        count.begin_command("a", at(31.0)).unwrap();
        assert!(count.begin_command("a", at(31.0)).is_err());
        count.end_command("a", at(32.0));
        assert_eq!(count.check_command("a", at(32.0)), Ok(()));
        count.add_command_time("a", Duration::from_millis(500), at(32.0));
        let over = count.check_command("b", at(32.0)).unwrap_err();
        assert_eq!((over.limit, over.retry_seconds()), ("command-seconds-per-day", 43_200 - 32));
        assert_eq!(count.check_command("b", at(43_200.0)), Ok(()), "the next day");
    }

    #[test]
    fn reports_have_changes_and_running_commands() {
        let mut count = count(&[]);
        assert!(count.take_report(at(0.0)).is_empty());
        count.begin_call("a", at(1.0)).unwrap();
        count.begin_command("b", at(1.0)).unwrap();
        count.add_command_time("b", Duration::from_millis(1_234), at(2.0));
        let mut report = count.take_report(at(2.0));
        report.sort_by(|one, other| one.workspace.cmp(&other.workspace));
        let (minute, day) = (number_of(NOON, MINUTE), number_of(NOON, DAY));
        let a = ReportedUse {
            workspace: "a".into(),
            minute,
            calls: 1,
            day,
            command_ms: 0,
            commands: 0,
        };
        let b = ReportedUse {
            workspace: "b".into(),
            minute,
            calls: 0,
            day,
            command_ms: 1_234,
            commands: 1,
        };
        assert_eq!(report, [a, b.clone()]);
        // Only what still runs; after a lost connection everything.
        assert_eq!(count.take_report(at(3.0)), std::slice::from_ref(&b));
        count.report_again();
        assert_eq!(count.take_report(at(3.0)).len(), 2);
        count.end_command("b", at(4.0));
        assert_eq!(count.take_report(at(4.0)), [ReportedUse { commands: 0, ..b }]);
        assert!(count.take_report(at(5.0)).is_empty());
        // The time of commands is kept for the day, calls for the minute.
        assert!(count.take_report(at(60.0)).is_empty());
        assert!(!count.used.contains_key("a") && count.used.contains_key("b"));
        assert!(count.take_report(at(43_200.0)).is_empty());
        assert!(!count.used.contains_key("b"));
    }
}
