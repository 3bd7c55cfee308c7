#![no_main]

#[expect(dead_code, reason = "a target runs one check of several")]
#[path = "../checks/mcp_vary_gateway.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::session_id(data));
