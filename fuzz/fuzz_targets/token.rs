#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_checks::auth::token(data));
