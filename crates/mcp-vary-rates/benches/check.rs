//! What the check of a call costs: `cargo bench -p mcp-vary-rates`.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::hint::black_box;
use std::net::IpAddr;

use criterion::{Criterion, criterion_group, criterion_main};
use mcp_vary_rates::{
    Caller, Counted, DEFAULT_CAPACITY, Limit, MonotonicClock, Operation, Per, RateLimiter,
};

const CALL: Operation<'_> = Operation::CallTool {
    server: "git",
    tool: "search_commits",
};

fn limit(name: &str, per: Per) -> Limit {
    Limit::new(name, per, Counted::Calls, "1000000/s".parse().unwrap()).unwrap()
}

fn limiter(limits: Vec<Limit>) -> RateLimiter<[u8; 16], MonotonicClock> {
    RateLimiter::new(limits, DEFAULT_CAPACITY, MonotonicClock::start()).unwrap()
}

fn check(criterion: &mut Criterion) {
    let caller = Caller {
        principal: Some([7; 16]),
        key: None,
        address: None,
    };
    let one = limiter(vec![limit("calls", Per::Principal)]);
    criterion.bench_function("one limit", |bencher| {
        bencher.iter(|| one.check(black_box(&caller), &CALL).is_ok());
    });
    let search = limit("search", Per::Principal)
        .for_tools("search_*")
        .unwrap();
    let limits = vec![
        limit("calls", Per::Principal),
        search,
        limit("git", Per::Server),
    ];
    let three = limiter(limits);
    criterion.bench_function("three limits", |bencher| {
        bencher.iter(|| three.check(black_box(&caller), &CALL).is_ok());
    });
    let flooded = limiter(vec![limit("calls", Per::Principal)]);
    let mut host = 0_u32;
    criterion.bench_function("one limit, each call from another address", |bencher| {
        bencher.iter(|| {
            host = host.wrapping_add(1);
            let caller = Caller {
                principal: None,
                key: None,
                address: Some(IpAddr::from(host.to_be_bytes())),
            };
            flooded.check(black_box(&caller), &CALL).is_ok()
        });
    });
}

criterion_group!(benches, check);
criterion_main!(benches);
