//! Who may do what how often.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::IpAddr;
use std::time::Duration;

use mcp_vary_rates::{
    Caller, Clock, Counted, FakeRelativeClock, Limit, LimitExceeded, MonotonicClock, Operation,
    Per, RateLimiter, SharedClock,
};

const PUSH: Operation<'_> = Operation::CallTool {
    server: "git",
    tool: "push",
};
const SEARCH: Operation<'_> = Operation::CallTool {
    server: "jira",
    tool: "search_issues",
};
const READ_JIRA: Operation<'_> = Operation::Read { server: "jira" };

fn limit(name: &str, per: Per, counted: Counted, rate: &str) -> Limit {
    Limit::new(name, per, counted, rate.parse().unwrap()).unwrap()
}

/// A limiter with a clock that only tests advance.
struct Limiter {
    limiter: RateLimiter<&'static str, FakeRelativeClock>,
    clock: FakeRelativeClock,
}

fn limiter_for(capacity: usize, limits: Vec<Limit>) -> Limiter {
    let clock = FakeRelativeClock::default();
    let limiter = RateLimiter::new(limits, capacity, clock.clone()).unwrap();
    Limiter { limiter, clock }
}

fn limiter(limits: Vec<Limit>) -> Limiter {
    limiter_for(1024, limits)
}

type Client = Caller<'static, &'static str>;

fn principal(name: &'static str) -> Client {
    Caller {
        principal: Some(name),
        ..at(Some(IpAddr::from([192, 0, 2, 1])))
    }
}

/// An anonymous client.
const fn at(address: Option<IpAddr>) -> Client {
    Caller {
        principal: None,
        key: None,
        address,
    }
}

fn anonymous(address: &str) -> Client {
    at(Some(address.parse().unwrap()))
}

fn key(name: &'static str) -> Client {
    Caller {
        key: Some(name),
        ..principal(name)
    }
}

impl Limiter {
    fn after(&self, seconds: u64) -> &Self {
        self.clock.advance(Duration::from_secs(seconds));
        self
    }

    #[track_caller]
    fn allows(&self, caller: &Client, operation: Operation<'_>) -> &Self {
        let outcome = self.limiter.check(caller, &operation);
        assert_eq!(outcome, Ok(()), "{caller:?} {operation:?}");
        self
    }

    #[track_caller]
    fn refuses(
        &self,
        caller: &Client,
        operation: Operation<'_>,
        limit: &str,
        retry_after: u64,
    ) -> &Self {
        let refusal = self.limiter.check(caller, &operation).unwrap_err();
        let found = (refusal.limit(), refusal.retry_after());
        assert_eq!(found, (limit, retry_after));
        self
    }
}

#[test]
fn a_principal_has_one_bucket_for_all_its_sessions_and_addresses() {
    let calls = limit("calls", Per::Principal, Counted::Calls, "2/min");
    let elsewhere = Caller {
        address: None,
        ..principal("alice")
    };
    limiter(vec![calls])
        .allows(&principal("alice"), PUSH)
        .allows(&elsewhere, SEARCH)
        .refuses(&principal("alice"), PUSH, "calls", 30)
        .allows(&principal("bob"), PUSH)
        .after(30)
        .allows(&elsewhere, PUSH)
        .refuses(&elsewhere, PUSH, "calls", 30);
}

#[test]
fn retrying_too_early_does_not_prolong_the_wait() {
    let calls = limit("calls", Per::Principal, Counted::Calls, "1/min");
    let limiter = limiter(vec![calls]);
    limiter.allows(&principal("alice"), PUSH);
    for seconds in (1..60).rev() {
        limiter
            .after(1)
            .refuses(&principal("alice"), PUSH, "calls", seconds);
    }
    limiter.after(1).allows(&principal("alice"), PUSH);
}

#[test]
fn anonymous_clients_are_limited_by_address_and_by_the_64_of_an_ipv6_address() {
    let calls = limit("calls", Per::Principal, Counted::Calls, "1/min");
    limiter(vec![calls])
        .allows(&anonymous("192.0.2.1"), PUSH)
        .refuses(&anonymous("192.0.2.1"), PUSH, "calls", 60)
        .refuses(&anonymous("::ffff:192.0.2.1"), PUSH, "calls", 60)
        .allows(&anonymous("192.0.2.2"), PUSH)
        .allows(&anonymous("2001:db8:0:1::1"), PUSH)
        .refuses(&anonymous("2001:db8:0:1:ffff::2"), PUSH, "calls", 60)
        .allows(&anonymous("2001:db8:0:2::1"), PUSH)
        .allows(&principal("alice"), PUSH);
}

#[test]
fn a_client_on_stdio_has_a_bucket_too() {
    let calls = limit("calls", Per::Principal, Counted::Calls, "1/min");
    let local = at(None);
    let limiter = limiter(vec![calls]);
    limiter
        .allows(&local, PUSH)
        .refuses(&local, PUSH, "calls", 60);
}

#[test]
fn a_key_is_limited_and_clients_without_a_key_are_not() {
    let calls = limit("calls", Per::Key, Counted::Calls, "1/min");
    limiter(vec![calls])
        .allows(&key("ci"), PUSH)
        .refuses(&key("ci"), SEARCH, "calls", 60)
        .allows(&key("cd"), PUSH)
        .allows(&principal("alice"), PUSH)
        .allows(&principal("alice"), PUSH);
}

#[test]
fn tools_of_a_pattern_share_the_bucket_of_a_principal() {
    let search = limit("search", Per::Principal, Counted::Calls, "1/min");
    let other = Operation::CallTool {
        server: "wiki",
        tool: "search_pages",
    };
    limiter(vec![search.for_tools("search_*").unwrap()])
        .allows(&principal("alice"), SEARCH)
        .refuses(&principal("alice"), other, "search", 60)
        .allows(&principal("alice"), PUSH)
        .allows(&principal("alice"), READ_JIRA);
}

#[test]
fn a_limit_per_tool_counts_each_tool_for_all_clients() {
    let tools = limit("tools", Per::Tool, Counted::Calls, "1/min");
    limiter(vec![tools])
        .allows(&principal("alice"), SEARCH)
        .refuses(&principal("bob"), SEARCH, "tools", 60)
        .allows(&principal("bob"), PUSH)
        .allows(&principal("bob"), READ_JIRA);
}

#[test]
fn a_limit_per_server_protects_the_server_from_all_clients() {
    let jira = limit("jira", Per::Server, Counted::Calls, "1/min");
    limiter(vec![jira.for_server("jira").unwrap()])
        .allows(&principal("alice"), SEARCH)
        .refuses(&principal("bob"), READ_JIRA, "jira", 60)
        .allows(&principal("bob"), PUSH);
}

#[test]
fn switches_and_refused_credentials_are_counted_by_themselves() {
    let switches = limit("switches", Per::Principal, Counted::Switches, "1/min");
    let failures = limit("failures", Per::Address, Counted::AuthFailures, "1/h");
    let stranger = anonymous("192.0.2.7");
    limiter(vec![switches, failures])
        .allows(&stranger, PUSH)
        .allows(&stranger, Operation::SwitchVariant)
        .refuses(&stranger, Operation::SwitchVariant, "switches", 60)
        .allows(&stranger, Operation::AuthFailure)
        .refuses(&stranger, Operation::AuthFailure, "failures", 3600)
        .allows(&stranger, PUSH);
}

#[test]
fn a_refused_request_is_counted_by_no_limit() {
    let all = limit("all", Per::Principal, Counted::Calls, "3/min");
    let search = limit("search", Per::Principal, Counted::Calls, "1/h");
    let limiter = limiter(vec![all, search.for_tools("search_*").unwrap()]);
    limiter.allows(&principal("alice"), SEARCH);
    for _ in 0..10 {
        limiter.refuses(&principal("alice"), SEARCH, "search", 3600);
    }
    limiter
        .allows(&principal("alice"), PUSH)
        .allows(&principal("alice"), PUSH)
        .refuses(&principal("alice"), PUSH, "all", 20);
}

#[test]
fn of_several_limits_the_one_that_blocks_longest_is_named() {
    let minute = limit("minute", Per::Principal, Counted::Calls, "1/min");
    let hour = limit("hour", Per::Principal, Counted::Calls, "1/h");
    limiter(vec![minute, hour])
        .allows(&principal("alice"), PUSH)
        .refuses(&principal("alice"), PUSH, "hour", 3600);
}

#[test]
fn asking_whether_somebody_is_blocked_counts_nothing() {
    let failures = limit("failures", Per::Address, Counted::AuthFailures, "2/min");
    let limiter = limiter(vec![failures]);
    let stranger = anonymous("192.0.2.7");
    let blocked = || limiter.limiter.blocked(&stranger, &Operation::AuthFailure);
    assert_eq!(blocked(), None);
    limiter.allows(&stranger, Operation::AuthFailure);
    for _ in 0..10 {
        assert_eq!(blocked(), None);
    }
    limiter.allows(&stranger, Operation::AuthFailure);
    let retry_after = blocked().as_ref().map(LimitExceeded::retry_after);
    assert_eq!(retry_after, Some(30));
    limiter.after(30);
    assert_eq!(blocked(), None);
}

#[test]
fn a_full_table_forgets_the_client_that_used_least_and_not_the_blocked_one() {
    let calls = limit("calls", Per::Principal, Counted::Calls, "3/min");
    let limiter = limiter_for(4, vec![calls]);
    let blocked = anonymous("192.0.2.1");
    for _ in 0..3 {
        limiter.allows(&blocked, PUSH);
    }
    for host in 2..=255 {
        limiter.allows(&anonymous(&format!("198.51.100.{host}")), PUSH);
        limiter.refuses(&blocked, PUSH, "calls", 20);
    }
    assert_eq!(limiter.limiter.buckets(), 4);
}

#[test]
fn where_all_are_blocked_the_one_that_is_free_soonest_is_forgotten() {
    let calls = limit("calls", Per::Principal, Counted::Calls, "1/min");
    let limiter = limiter_for(2, vec![calls]);
    limiter.allows(&principal("a"), PUSH).after(1);
    limiter.allows(&principal("b"), PUSH).after(1);
    limiter.allows(&principal("c"), PUSH);
    limiter.refuses(&principal("b"), PUSH, "calls", 59);
    limiter.refuses(&principal("c"), PUSH, "calls", 60);
    limiter.allows(&principal("a"), PUSH);
}

#[test]
fn a_flood_of_clients_is_bounded() {
    let calls = limit("calls", Per::Principal, Counted::Calls, "10/min");
    let limiter = limiter_for(2048, vec![calls]);
    for host in 0..20_000_u32 {
        limiter.allows(&at(Some(IpAddr::from(host.to_be_bytes()))), PUSH);
    }
    assert_eq!(limiter.limiter.buckets(), 2048);
}

#[test]
fn a_name_that_clients_must_not_see_is_refused() {
    for name in ["", "a\nb", "a\u{202e}", "é", "a\"b", &"a".repeat(65)] {
        let error = Limit::new(name, Per::Key, Counted::Calls, "1/s".parse().unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the name of a limit must have 1 to 64 characters, all letters, digits or one of ` -_./:[]*`"
        );
    }
}

#[test]
fn a_limit_that_never_counts_is_refused_with_the_fix() {
    let rate = "1/s".parse().unwrap();
    let error = Limit::new("a", Per::Tool, Counted::Switches, rate).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a limit per tool cannot count switches; count calls, or set `per` to `principal`"
    );
    let switches = limit("a", Per::Principal, Counted::Switches, "1/s");
    let error = switches.for_tools("*").unwrap_err();
    let expected = "`tools` applies to limits that count calls";
    assert_eq!(error.to_string(), expected);
    for pattern in ["", "[", &"a".repeat(513)] {
        let calls = limit("a", Per::Principal, Counted::Calls, "1/s");
        let error = calls.for_tools(pattern).unwrap_err().to_string();
        assert!(error.starts_with("the pattern of tools "), "{error}");
    }
}

#[test]
fn limits_with_one_name_or_without_room_are_refused() {
    let new = |limits: Vec<Limit>, capacity| {
        RateLimiter::<(), _>::new(limits, capacity, FakeRelativeClock::default())
            .unwrap_err()
            .to_string()
    };
    let calls = || limit("calls", Per::Principal, Counted::Calls, "1/s");
    let repeated = "two limits have the name `calls`; rename one";
    assert_eq!(new(vec![calls(), calls()], 1), repeated);
    let range = "a limit must remember 1 to 1048576 clients, not 0";
    assert_eq!(new(vec![calls()], 0), range);
    let many = new(vec![calls(); 65], 1);
    assert_eq!(many, "there are 65 limits; at most 64 are allowed");
}

#[test]
fn a_refusal_says_everything_on_both_transports() {
    let calls = limit("access[1]", Per::Principal, Counted::Calls, "1/min");
    let limiter = limiter(vec![calls]);
    limiter.allows(&principal("alice"), PUSH);
    let refusal = limiter.limiter.check(&principal("alice"), &PUSH);
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal.wait(), Duration::from_secs(60));
    let message = "the limit `access[1]` is reached; retry after 60 s";
    assert_eq!(refusal.to_string(), message);
    let data = refusal.data().to_string();
    assert_eq!(data, r#"{"limit":"access[1]","retryAfter":60}"#);
}

#[test]
fn a_key_cannot_count_refused_credentials_but_it_counts_switches() {
    let rate = "1/s".parse().unwrap();
    let error = Limit::new("a", Per::Key, Counted::AuthFailures, rate).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a limit per key cannot count refused credentials; count calls, or set `per` to `principal`"
    );
    limiter(vec![limit("a", Per::Key, Counted::Switches, "1/min")])
        .allows(&key("ci"), Operation::SwitchVariant)
        .refuses(&key("ci"), Operation::SwitchVariant, "a", 60);
}

#[test]
fn a_pattern_of_tools_may_have_512_bytes() {
    let calls = || limit("a", Per::Principal, Counted::Calls, "1/s");
    assert!(calls().for_tools(&"a".repeat(512)).is_ok());
    assert_eq!(
        calls().for_tools(&"a".repeat(513)).unwrap_err().to_string(),
        "the pattern of tools must have 1 to 512 bytes; write `*` for all tools"
    );
}

#[test]
fn a_refusal_of_all_processes_blocks_here_as_long_and_no_other_client() {
    let limiter = limiter(vec![
        limit("others", Per::Principal, Counted::Calls, "9/s"),
        limit("a", Per::Principal, Counted::Calls, "2/min"),
    ]);
    let (alice, bob) = (principal("alice"), principal("bob"));
    let has_counted = |client| limiter.limiter.has_counted(client, &PUSH);
    assert!(!has_counted(&alice));
    let shared = limiter.limiter.shared_buckets(&alice, &PUSH);
    let refusal = shared[1].exceeded(Duration::from_secs(40));
    limiter.limiter.block(&alice, &PUSH, &refusal);
    limiter
        .refuses(&alice, PUSH, "a", 40)
        .allows(&bob, PUSH)
        .allows(&bob, PUSH);
    // It cannot be made shorter.
    let shorter = shared[1].exceeded(Duration::from_secs(1));
    limiter.limiter.block(&alice, &PUSH, &shorter);
    limiter.refuses(&alice, PUSH, "a", 40);
    limiter.clock.advance(Duration::from_secs(40));
    // The burst is not available yet.
    assert!(has_counted(&alice));
    limiter.allows(&alice, PUSH).refuses(&alice, PUSH, "a", 30);
    // It is available after 60 seconds, and for as long again it is known that there were some.
    limiter.clock.advance(Duration::from_secs(119));
    assert!(has_counted(&alice));
    limiter.clock.advance(Duration::from_secs(2));
    assert!(!has_counted(&alice));
}

#[test]
fn a_limit_knows_whether_it_needs_the_names_of_tools() {
    let calls = |per| limit("a", per, Counted::Calls, "1/s");
    assert!(!calls(Per::Principal).uses_tool_names());
    assert!(calls(Per::Tool).uses_tool_names());
    let by_pattern = calls(Per::Principal).for_tools("push").unwrap();
    assert!(by_pattern.uses_tool_names());
}

#[test]
fn limits_differ_by_each_of_their_properties() {
    let calls = || limit("a", Per::Principal, Counted::Calls, "1/s");
    let of_tools = |pattern| calls().for_tools(pattern).unwrap();
    assert_eq!(calls(), calls());
    assert_eq!(of_tools("a_*"), of_tools("a_*"));
    let others = [
        limit("b", Per::Principal, Counted::Calls, "1/s"),
        limit("a", Per::Address, Counted::Calls, "1/s"),
        limit("a", Per::Principal, Counted::Switches, "1/s"),
        limit("a", Per::Principal, Counted::Calls, "2/s"),
        calls().for_server("git").unwrap(),
        of_tools("a_*"),
    ];
    for other in others {
        assert_ne!(calls(), other);
    }
    assert_ne!(of_tools("a_*"), of_tools("b_*"));
}

#[test]
fn a_limiter_lists_its_limits_in_their_order() {
    let names = ["b", "a"];
    let limits = names.map(|name| limit(name, Per::Principal, Counted::Calls, "1/s"));
    let limiter = limiter(limits.to_vec());
    let listed: Vec<_> = limiter.limiter.limits().map(Limit::name).collect();
    assert_eq!(listed, names);
}

#[test]
fn of_two_limits_that_block_equally_long_the_first_is_named() {
    let limits = ["first", "second"].map(|name| limit(name, Per::Principal, Counted::Calls, "1/h"));
    limiter(limits.to_vec())
        .allows(&principal("alice"), PUSH)
        .refuses(&principal("alice"), PUSH, "first", 3600);
}

#[test]
fn the_clock_of_a_gateway_advances() {
    let clock = MonotonicClock::start();
    let before = clock.now();
    while clock.now() == before {
        std::hint::spin_loop();
    }
    assert!(clock.now() > before);
    let shared = format!("{:?}", SharedClock::of(clock));
    assert_eq!(shared, "SharedClock");
}
