//! The page of a league, its document and its files: in scripts of what a person sees
//! (`tests/scripts/page`), in a browser too.

use super::support::pages::{between, get};
use super::support::*;
use league::program::terminal::width;

/// Returns a header of a response.
fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let mut lines = head.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value.unwrap_or_else(|| panic!("no {name}: {head}"))
}

#[test]
fn page_runs_only_its_own_script_and_has_its_data() {
    let (_world, manager) = with_manager("serve --name `10b, </script>`");
    let url = manager.url();
    // A browser at /mcp is redirected to the page.
    for (accepted, status) in [("text/html,*/*", 303), ("application/json", 405)] {
        let response = http("GET", &url, &format!("Accept: {accepted}\r\n"), b"");
        assert_eq!(response.0, status, "{accepted}");
    }
    let nonces = [(), ()].map(|()| {
        let (status, head, page) = get(&url, "/");
        let frame_policy = header(&head, "Content-Security-Policy");
        assert_eq!(frame_policy, "frame-ancestors 'none'");
        let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
        let nonce = between(policy, "'nonce-", "'").to_string();
        assert!(status == 200 && nonce.len() >= 32 && !policy.contains("unsafe"));
        assert!(policy.starts_with("default-src 'none'"));
        let own_nonce = format!("nonce=\"{nonce}\"");
        for (text, count) in [(&*own_nonce, 2), ("<script nonce", 1)] {
            assert_eq!(page.matches(text).count(), count, "script and style");
        }
        for forbidden in ["{{", "innerHTML", "https://"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert_eq!(data(&page)["league"]["name"], "10b, </script>");
        nonce
    });
    assert_ne!(nonces[0], nonces[1], "a new one each time");
    let posted = http("POST", &url.replace("/mcp", "/league.json"), "", b"");
    assert_eq!(posted.0, 405);
}

/// Returns the data in a page.
fn data(page: &str) -> Value {
    let script = between(page, "<script type=\"application/json\"", "</script>");
    let (_, data) = script.split_once('>').unwrap();
    assert!(!data.contains('<'), "no name ends the script: {data}");
    json_of(data)
}

#[test]
fn columns_of_wide_signs_are_counted() {
    for (text, columns) in [("abc", 3), ("日本", 4), ("🎲", 2), ("אבג", 3)] {
        assert_eq!(width(text), columns, "{text}");
    }
}

#[test]
fn golden() {
    story::run("page");
}
