//! The fuzz corpora of this crate, replayed: mutants of this crate are tried against its own tests only.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::prelude::*;
use fuzz_checks::auth::CHECKS;

#[test]
#[expect(clippy::print_stdout, reason = "names the file of a failure")]
fn every_check_holds_for_its_corpus() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut outcomes = BTreeSet::new();
    for (name, check) in CHECKS {
        for file in fs::read_dir(corpora.join(name)).unwrap() {
            let path = file.unwrap().path();
            println!("{}", path.display());
            let data = fs::read(path).unwrap();
            check(&data);
            outcomes.insert(
                str::from_utf8(&data).is_ok_and(|text| UnverifiedToken::parse(text).is_ok()),
            );
        }
    }
    let found = outcomes.len();
    assert_eq!(found, 2, "the corpus has only good or only bad tokens");
}
