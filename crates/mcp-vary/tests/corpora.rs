//! The fuzz corpora of this crate, replayed: mutants of this crate are tried against its own tests only.

use std::fs;
use std::path::Path;

use fuzz_checks::protocol::CHECKS;

#[test]
#[expect(clippy::print_stdout, reason = "names the file of a failure")]
fn every_check_holds_for_its_corpus() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, check) in CHECKS {
        for file in fs::read_dir(corpora.join(name)).expect("a corpus") {
            let path = file.expect("a file").path();
            println!("{}", path.display());
            check(&fs::read(path).expect("the file can be read"));
        }
    }
}
