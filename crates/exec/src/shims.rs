//! Starts a shim for each command, by forking a template.
//!
//! Starting a shim means starting a program of many megabytes, which took longer than a small command. So one shim is
//! started with the first command and gets no command itself: it is the template from which the others are forked. It
//! knows no command and no session, and exits when its socket closes, like any other. A template that is not used for a
//! while is ended. Landlock rules that commands share are kept as long.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::command::Command;
use crate::error::JobError;
use crate::launch::{IdleShim, Launched, Launcher};
use crate::limits::Limits;
use crate::sandbox::level::Level;
use crate::sandbox::namespaces::SessionNamespaces;
use crate::sandbox::{Confinement, ReusedRules};
use crate::shim_messages::{self, Request};
use crate::streams::Streams;

/// How long an unused template is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts shims.
#[derive(Debug)]
pub(crate) struct Shims {
    shared: Arc<Shared>,
    /// Ends an unused template. Starts with the first command.
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    launcher: Launcher,
    rules: ReusedRules,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    template: Option<Template>,
    stop: bool,
}

#[derive(Debug)]
struct Template {
    shim: IdleShim,
    last_use: Instant,
}

impl Shims {
    pub(crate) fn new(launcher: Launcher) -> Shims {
        let (rules, state, changed) = (ReusedRules::default(), Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { launcher, rules, state, changed });
        Shims { shared, thread: Mutex::default() }
    }

    /// Starts a command, with or without a sandbox. The namespaces are those of its session. `limits` hold without a sandbox.
    pub(crate) fn launch(
        &self,
        command: &Command,
        within: Option<(&Confinement, Option<&SessionNamespaces>)>,
        limits: Option<Limits>,
    ) -> Result<(Launched, Streams), JobError> {
        let failed = |error: io::Error| JobError::not_launched(&error);
        let namespaces = within.and_then(|(_, namespaces)| namespaces);
        let (confinement, rules) = match within {
            None => (None, None),
            Some((confinement, _)) if confinement.level == Level::Namespaces => {
                let (confinement, rules) = self.shared.rules.prepare(confinement)?;
                (Some(Cow::Owned(confinement)), rules)
            }
            // The shim makes its own rules.
            Some((confinement, _)) => (Some(Cow::Owned(confinement.looked_up())), None),
        };
        let request = Request::Run(Cow::Borrowed(command), confinement, limits);
        let request = shim_messages::encode(&request).map_err(failed)?;
        let (streams, inside) = Streams::make(command).map_err(failed)?;
        let mut descriptors = inside.descriptors();
        descriptors.extend(namespaces.into_iter().flat_map(SessionNamespaces::descriptors));
        descriptors.extend(rules.iter().map(OwnedFd::as_fd));
        let shim = self.start().map_err(failed)?;
        Ok((shim.send_request(&request, &descriptors).map_err(failed)?, streams))
    }

    /// Makes the namespaces of a session in a new shim, and the sockets for a gateway if `with_gateway`.
    pub(crate) fn make_namespaces(
        &self,
        with_gateway: bool,
    ) -> Result<(SessionNamespaces, Vec<OwnedFd>), JobError> {
        let mut descriptors = self.make(&Request::MakeNamespaces { with_gateway }, &[])?;
        let sockets = descriptors.split_off(descriptors.len().min(2));
        let namespaces = SessionNamespaces::take(&mut descriptors.into_iter());
        Ok((namespaces.ok_or(JobError::ShimUnresponsive)?, sockets))
    }

    /// Makes unbound sockets in the namespaces of a session.
    pub(crate) fn make_sockets(
        &self,
        namespaces: &SessionNamespaces,
    ) -> Result<Vec<OwnedFd>, JobError> {
        self.make(&Request::MakeSockets, &namespaces.descriptors())
    }

    fn make(
        &self,
        request: &Request<'_>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Vec<OwnedFd>, JobError> {
        let shim = self.start().map_err(|error| JobError::not_launched(&error))?;
        shim.make(request, descriptors)
    }

    /// Starts a shim.
    fn start(&self) -> io::Result<IdleShim> {
        let shim = self.shared.start()?;
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            let named = std::thread::Builder::new().name("toolcrib-shims".to_owned());
            // If that fails, the template stays until the runtime ends.
            *thread = named.spawn(move || shared.end_idle_template()).ok();
        }
        Ok(shim)
    }
}

impl Drop for Shims {
    fn drop(&mut self) {
        self.shared.state.lock().stop = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Forks the template, after starting it if necessary.
    fn start(&self) -> io::Result<IdleShim> {
        let mut state = self.state.lock();
        if let Some(template) = &mut state.template {
            template.last_use = Instant::now();
            // A template that was killed meanwhile is replaced.
            if let Ok(shim) = template.shim.fork() {
                return Ok(shim);
            }
        }
        state.template = None;
        let template = self.launcher.start()?;
        // On a system where it cannot fork, each command has a new shim. The template may already have the id of another.
        let Ok(shim) = template.fork() else {
            // Otherwise they would be forgotten with the template.
            self.rules.forget();
            return self.launcher.start();
        };
        state.template = Some(Template { shim: template, last_use: Instant::now() });
        self.changed.notify_all();
        Ok(shim)
    }

    /// Ends the template whenever it was unused for too long.
    fn end_idle_template(&self) {
        let mut state = self.state.lock();
        while !state.stop {
            let left = state.template.as_ref().map_or(Duration::MAX, |template| {
                IDLE_TIMEOUT.saturating_sub(template.last_use.elapsed())
            });
            if left.is_zero() {
                state.template = None;
                self.rules.forget();
            } else {
                self.changed.wait_for(&mut state, left);
            }
        }
    }
}
