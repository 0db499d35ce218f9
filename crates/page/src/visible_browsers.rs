//! The browsers with a visible tab of the page.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::sign_in::Browser;

/// A browser with a visible tab reports it more often than this.
const VISIBLE_FOR: Duration = Duration::from_secs(15);

/// Until when each browser counts as visible. There are no more than tokens in this time.
#[derive(Default)]
pub(crate) struct VisibleBrowsers(Mutex<HashMap<Browser, Instant>>);

impl VisibleBrowsers {
    /// Remembers the report of a browser. Returns whether any browser is visible.
    pub(crate) fn report(&self, browser: Browser, visible: bool) -> bool {
        let mut all = self.0.lock();
        all.remove(&browser);
        all.retain(|_, until| *until > Instant::now());
        if visible {
            all.insert(browser, Instant::now() + VISIBLE_FOR);
        }
        !all.is_empty()
    }

    /// Whether any browser is visible.
    pub(crate) fn any(&self) -> bool {
        self.0.lock().values().any(|until| *until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign_in::SignIn;

    #[test]
    fn a_hidden_browser_does_not_hide_another_one() {
        let sign_in = SignIn::default();
        let browser = || {
            let token = sign_in.trade(&sign_in.new_ticket().unwrap()).unwrap().unwrap();
            sign_in.browser(token.as_bytes()).unwrap()
        };
        let (one, other) = (browser(), browser());
        let browsers = VisibleBrowsers::default();
        assert!(!browsers.any());
        assert!(browsers.report(one, true));
        assert!(browsers.report(other, false) && browsers.any());
        assert!(browsers.report(other, true) && browsers.report(one, false));
        assert!(!browsers.report(other, false) && !browsers.any());
    }
}
