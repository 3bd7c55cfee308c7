//! What always holds of limits.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use governor::Quota;
use governor::state::keyed::HashMapStateStore;
use mcp_vary_rates::{
    Caller, Counted, FakeRelativeClock, Limit, Operation, Per, Rate, RateLimiter,
};
use proptest::prelude::*;

/// Whether the client with this number calls, after this many milliseconds.
type Step = (u64, u8);

fn rates() -> impl Strategy<Value = Rate> {
    let period = prop_oneof![Just("s"), Just("min"), Just("h")];
    (1..20_u32, period, 1..10_u32).prop_map(|(count, period, burst)| {
        let rate: Rate = format!("{count}/{period}").parse().unwrap();
        rate.with_burst(burst).unwrap()
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec((0..90_000_u64, 0..4_u8), 1..120)
}

fn caller(client: u8) -> Caller<'static, u8> {
    Caller {
        principal: Some(client),
        key: None,
        address: None,
    }
}

fn limit(name: &str, rate: Rate) -> Limit {
    Limit::new(name, Per::Principal, Counted::Switches, rate).unwrap()
}

proptest! {
    #[test]
    fn with_room_for_all_it_decides_as_governors_own_table(rate in rates(), steps in steps()) {
        let clock = FakeRelativeClock::default();
        let ours = RateLimiter::new(vec![limit("a", rate)], 1024, clock.clone()).unwrap();
        let quota = Quota::with_period(rate.interval()).unwrap();
        let quota = quota.allow_burst(rate.burst().try_into().unwrap());
        let store = HashMapStateStore::<u8>::default();
        let theirs = governor::RateLimiter::<_, _, _>::new(quota, store, clock.clone());
        for (millis, client) in steps {
            clock.advance(Duration::from_millis(millis));
            let blocked = ours.blocked(&caller(client), &Operation::SwitchVariant);
            let wait = ours.check(&caller(client), &Operation::SwitchVariant);
            let wait = wait.err().map(|refusal| refusal.wait());
            prop_assert_eq!(blocked.map(|refusal| refusal.wait()), wait);
            let expected: Result<(), _> = theirs.check_key(&client);
            let now = governor::clock::Clock::now(&clock);
            prop_assert_eq!(wait, expected.err().map(|not_until| not_until.wait_time_from(now)));
        }
    }

    #[test]
    fn two_limits_allow_what_each_of_them_allows(first in rates(), second in rates(), steps in steps()) {
        let clock = FakeRelativeClock::default();
        let new = |limits| RateLimiter::new(limits, 1024, clock.clone()).unwrap();
        let both = new(vec![limit("a", first), limit("b", second)]);
        // Each counts only what both allow.
        let (a, b) = (new(vec![limit("a", first)]), new(vec![limit("b", second)]));
        for (millis, client) in steps {
            clock.advance(Duration::from_millis(millis));
            let (caller, operation) = (caller(client), Operation::SwitchVariant);
            let is_allowed = a.blocked(&caller, &operation).is_none() && b.blocked(&caller, &operation).is_none();
            prop_assert_eq!(both.check(&caller, &operation).is_ok(), is_allowed);
            if is_allowed {
                prop_assert!(a.check(&caller, &operation).is_ok() && b.check(&caller, &operation).is_ok());
            }
        }
    }

    #[test]
    fn after_the_wait_the_operation_is_allowed_and_not_before(rate in rates(), steps in steps()) {
        let clock = FakeRelativeClock::default();
        let limiter = RateLimiter::new(vec![limit("a", rate)], 1024, clock.clone()).unwrap();
        for (millis, client) in steps {
            clock.advance(Duration::from_millis(millis));
            let check = || limiter.check(&caller(client), &Operation::SwitchVariant).map_err(|refusal| refusal.wait());
            if let Err(wait) = check() {
                clock.advance(wait - Duration::from_nanos(1));
                prop_assert_eq!(check(), Err(Duration::from_nanos(1)));
                clock.advance(Duration::from_nanos(1));
                prop_assert_eq!(check(), Ok(()));
            }
        }
    }

    #[test]
    fn no_table_is_larger_than_its_capacity(capacity in 1..50_usize, clients in proptest::collection::vec(any::<u8>(), 1..300)) {
        let rate = "5/min".parse().unwrap();
        let limiter = RateLimiter::new(vec![limit("a", rate)], capacity, FakeRelativeClock::default()).unwrap();
        for client in clients {
            let _ = limiter.check(&caller(client), &Operation::SwitchVariant);
            prop_assert!(limiter.buckets() <= capacity);
        }
    }
}
