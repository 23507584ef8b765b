//! The container image, by the tests in `image/`. Without Python these tests say what they leave out and pass.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

#[test]
fn the_image_is_reproducible_and_holds_what_its_documentation_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../image");
    // The standard library reads TOML since 3.11.
    let probe = Command::new("python3").args(["-c", "import tomllib"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        let _ = writeln!(
            std::io::stderr(),
            "left out: the image is not tested, as there is no Python 3.11 or newer"
        );
        return;
    }
    let tests = ["-m", "unittest", "discover", "--start-directory"];
    let output = Command::new("python3").args(tests).arg(&folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
