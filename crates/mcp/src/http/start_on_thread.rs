//! Takes the first step of a future on another thread.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

/// Runs a future whose first step takes long, such as the parsing of a large message: that step runs on another thread,
/// so that the requests of others do not wait for it. The rest runs here. `turns` limits the threads.
pub(super) async fn start_on_thread<F>(turns: &Semaphore, future: F) -> Result<F::Output, JoinError>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let mut future: Pin<Box<F>> = Box::pin(future);
    // The semaphore is never closed.
    let turn = turns.acquire().await;
    let started = spawn_blocking(move || {
        // The task polls it again at once, so it needs no waker of its own.
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Ok(output),
            Poll::Pending => Err(future),
        }
    });
    let started = started.await?;
    drop(turn);
    match started {
        Ok(output) => Ok(output),
        Err(rest) => Ok(rest.await),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn only_the_first_step_runs_on_another_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let here = thread::current().id();
        let steps = async {
            let first = thread::current().id();
            tokio::task::yield_now().await;
            (first, thread::current().id())
        };
        let turns = Semaphore::new(1);
        let (first, last) = runtime.block_on(start_on_thread(&turns, steps)).unwrap();
        assert_eq!(last, here);
        assert_ne!(first, here);
        let only = async { thread::current().id() };
        assert_ne!(runtime.block_on(start_on_thread(&turns, only)).unwrap(), here);
    }
}
