//! Ctrl-C and SIGTERM end a long look with what was found until then; a second one ends the process at once.

use std::sync::Arc;
use std::thread;

use doze::storage::verify::Progress;
use tokio::signal::unix::{SignalKind, signal};

/// What a shell makes of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Has either signal cancel `progress`. Where signals cannot be waited for they end the process, as they do by default.
pub fn cancels(progress: Arc<Progress>) {
    let wait = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        runtime.block_on(async {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            for first in [true, false] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if !first {
                    std::process::exit(INTERRUPTED);
                }
                progress.cancel();
            }
        });
    };
    // Without the thread the default holds as well.
    let _ = thread::Builder::new().name("signals".into()).spawn(wait);
}
