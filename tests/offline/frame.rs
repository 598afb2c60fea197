//! What the commands have in common.

use crate::make::{Data, batch};

/// The helpers make what they say: a directory that the engine opens again.
#[test]
fn made_directories_open_again() {
    let data = Data::new();
    data.topic("demo", 2, &[("segment.bytes", "1000")]);
    for n in 0..20 {
        data.append("demo", 1, batch(&[(Some("k"), Some(&format!("value {n}")))]));
    }
    let stopped = data.stop();
    assert!(stopped.dir().join("clean-shutdown").exists());
    assert!(stopped.segments("demo", 1).len() > 1);
    let again = stopped.start();
    assert_eq!(again.log("demo", 1).offsets().end, 20);
    assert!(!again.crash().dir().join("clean-shutdown").exists());
}
