//! `hosts`, `origins`, `tls`, `behind-proxy` and `trusted-proxies`.

use std::net::SocketAddr;

use mcp_vary_access::{Claims, Principal};
use mcp_vary_settings::listener::{ClientCa, HostName, TlsConfig};

use super::*;

const KEYS: &str = "auth: {keys: [{name: a, sha256: 0000000000000000000000000000000000000000000000000000000000000000}]}\n";

#[test]
fn the_name_of_the_public_url_comes_before_the_other_hosts() {
    let listener =
        config_of("public-url: https://mcp.example:8443/x\nhosts: [Other.example, '::1']\n")
            .listener;
    let hosts: Vec<String> = listener.hosts.iter().map(HostName::to_string).collect();
    assert_eq!(hosts, ["mcp.example", "other.example", "::1"]);
}

#[test]
fn who_may_read_the_page_is_told_by_claims() {
    let page = config_of(&format!(
        "{KEYS}admin-readers: {{groups: [ops, '*-admin']}}\n"
    ));
    let claims = Claims::from_json(r#"{"groups": ["dev", "db-admin"]}"#).unwrap();
    let principal = Principal::token("https://idp.example", "ann", claims).unwrap();
    assert!(page.admin_readers.unwrap().matches(&principal));
    refuses_lines(
        "admin-readers: {groups: ops}\n",
        "2:16: `admin-readers` needs `auth`; add `auth` with the issuer of the tokens, or leave this out",
    );
    refuses_lines(
        &format!("{KEYS}admin-readers: {{anyone: on}}\n"),
        "3:16: `admin-readers` admits anyone; name a claim that only operators have, such as `{groups: operators}`",
    );
    refuses_lines(
        &format!("{KEYS}admin-readers: {{}}\n"),
        "3:16: `admin-readers` names nobody; name a claim that only operators have, such as `{groups: operators}`",
    );
}

#[test]
fn the_listener_of_the_operator_can_be_off() {
    let admin = |lines: &str| {
        let file = read_lines(lines);
        (
            file.program.admin.clone(),
            file.admin_address().map(str::to_owned),
        )
    };
    let (off, port) = ("off".to_owned(), "8801".to_owned());
    assert_eq!(admin(""), (None, None));
    assert_eq!(admin("admin: off\n"), (Some(off), None));
    assert_eq!(admin("admin: 8801\n"), (Some(port.clone()), Some(port)));
}

#[test]
fn the_page_calls_and_writes_nothing_unless_that_is_written() {
    let calls = |lines: &str| read_lines(lines).program.admin_calls;
    assert!(!calls(""));
    assert!(calls("admin-calls: on\n"));
    let writes = |lines: &str| read_lines(lines).program.admin_writes;
    assert!(!writes("admin-calls: on\n"));
    assert!(writes("admin-writes: on\n"));
}

#[test]
fn tls_is_read_with_the_authorities_of_clients() {
    let tls = |text: &str| config_of(&format!("tls: {text}\n")).listener.tls.unwrap();
    let expected = |client_ca| TlsConfig {
        certificate: "c.pem".into(),
        key: "k.pem".into(),
        client_ca,
    };
    assert_eq!(tls("{certificate: c.pem, key: k.pem}"), expected(None));
    let ca = |is_required| {
        Some(ClientCa {
            certificates: "ca.pem".into(),
            is_required,
        })
    };
    let required = "{certificate: c.pem, key: k.pem, client-ca: ca.pem}";
    assert_eq!(tls(required), expected(ca(true)));
    let optional =
        "{certificate: c.pem, key: k.pem, client-ca: ca.pem, client-certificates: optional}";
    assert_eq!(tls(optional), expected(ca(false)));
    refuses_lines(
        "tls: {certificate: c.pem}\n",
        "2:6: `tls` has no `key`; add `key: ...`, the path of a file in PEM",
    );
    refuses_lines(
        "tls: {certificate: '', key: k, client-certificates: optional}\n",
        "2:20: `tls.certificate` is empty; write the path of a file\n\
         2:53: `tls.client-certificates` does nothing without `client-ca`; add `client-ca: ...`, or remove this",
    );
}

#[test]
fn the_proxies_are_named_where_there_is_a_proxy_and_only_there() {
    let listener = config_of("behind-proxy: on\ntrusted-proxies: [10.0.0.0/8, '::1']\n").listener;
    let proxies = listener.trusted_proxies.unwrap();
    assert!(proxies.contains("10.1.2.3".parse().unwrap()));
    assert!(!proxies.contains("127.0.0.1".parse().unwrap()));
    refuses_lines(
        "behind-proxy: on\n",
        "2:15: `behind-proxy` needs `trusted-proxies`; add `trusted-proxies: [ADDRESS]`, with the addresses from which the proxies connect",
    );
    refuses_lines(
        "behind-proxy: off\ntrusted-proxies: [10.0.0.1]\n",
        "3:18: `trusted-proxies` does nothing without `behind-proxy: on`; add that, or remove this",
    );
}

#[test]
fn every_mistake_of_a_list_is_at_its_place() {
    refuses_lines(
        "hosts: [a.example, 'https://a.example', 'a:80']\norigins: [https://a.example/, '*', 'null']\nbehind-proxy: on\ntrusted-proxies: [proxy.example, 10.0.0.1/8, 0.0.0.0/0]\n",
        "2:20: `hosts[1]` cannot be used: it is not the name of a host; write one like `mcp.example.com`, without scheme, port and path\n\
         2:41: `hosts[2]` cannot be used: it is not the name of a host; write one like `mcp.example.com`, without scheme, port and path\n\
         3:11: `origins[0]` cannot be used: it is not an origin; write one like `https://app.example.com`, in lower case and without a path\n\
         3:31: `origins[1]` cannot be used: it matches every web page; name each origin\n\
         3:36: `origins[2]` cannot be used: it matches every web page; name each origin\n\
         5:19: `trusted-proxies[0]` cannot be used: it is not an address or a network; write one like `10.0.0.0/8` or `127.0.0.1`\n\
         5:34: `trusted-proxies[1]` cannot be used: its address has bits after the prefix; write the first address of the network\n\
         5:46: `trusted-proxies[2]` cannot be used: it has every address, so that anybody could be a proxy; write the addresses of the proxies",
    );
    let hosts = ["a.example"; 257].join(", ");
    refuses_lines(
        &format!("hosts: [{hosts}]\n"),
        "2:8: `hosts` has 257 entries; 256 is the most",
    );
}

/// What is said of listening on an address of other machines, in order.
#[test]
fn other_machines_are_served_only_with_authentication_encryption_and_a_name() {
    let check = |rest: &str, address: &str| {
        let address: SocketAddr = address.parse().unwrap();
        let checked = config_of(rest).check_listen_address(address);
        checked
            .map_err(|error| error.to_string())
            .err()
            .unwrap_or_default()
    };
    let tls = "tls: {certificate: c, key: k}\n";
    let proxy = "behind-proxy: on\ntrusted-proxies: [10.0.0.1]\n";
    let reached = "0.0.0.0:8443 can be reached from other machines, and";
    for rest in ["", tls, proxy, "public-url: https://a.example\n"] {
        assert_eq!(
            check(rest, "0.0.0.0:8443"),
            format!(
                "{reached} there is no authentication: everybody there could use the servers; add `auth` to the configuration, and `tls` or `behind-proxy: on`, or listen on 127.0.0.1:8443"
            )
        );
        assert_eq!(check(rest, "127.0.0.1:8443"), "");
        assert_eq!(check(rest, "[::1]:8443"), "");
    }
    assert_eq!(
        check(KEYS, "0.0.0.0:8443"),
        format!(
            "{reached} keys and tokens would not be encrypted on their way; add `tls`, or `behind-proxy: on` with `trusted-proxies`, to the configuration, or listen on 127.0.0.1:8443"
        )
    );
    for encrypted in [tls, proxy] {
        assert_eq!(
            check(&format!("{KEYS}{encrypted}"), "0.0.0.0:8443"),
            format!(
                "{reached} there is no name for them; add `public-url` or `hosts` to the configuration, or listen on 127.0.0.1:8443"
            )
        );
        for name in ["hosts: [a.example]\n", "public-url: https://a.example\n"] {
            assert_eq!(
                check(&format!("{KEYS}{encrypted}{name}"), "0.0.0.0:8443"),
                ""
            );
        }
    }
}
