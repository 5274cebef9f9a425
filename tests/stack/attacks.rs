//! A hostile class: half-open connections, lengths of bodies that no machine can hold, endless
//! headers, programs without a free descriptor, and foreign files in place of ours. None of them
//! stops a league or wins a match. The floods of whole leagues are scripts.

use super::support::*;
use league::manager::registration::with_address;
use league::program::storage::{self, Access, JsonLinesFile};
use league::protocol::AgentKind;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
use std::{fs, thread};

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux shows a process its descriptors"
)]
fn floods_golden() {
    story::run("floods");
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux shows a process its descriptors"
)]
fn large_content_lengths_take_no_memory() {
    let test = TestLeague::new("system limits.max_message_bytes=2000");
    let manager = test.manager("");
    let url = manager.url();
    let of_process = format!("/proc/{}", manager.child.id());
    let descriptors = || fs::read_dir(format!("{of_process}/fd")).unwrap().count();
    let status = |length| http("POST", &url, "", format!("{:length$}", "{}").as_bytes()).0;
    assert_eq!([2000, 2001].map(status), [200, 413]);
    let claim = |bytes: u64, count| -> Vec<TcpStream> {
        let head = format!("POST /mcp HTTP/1.1\r\nContent-Length: {bytes}\r\n\r\n{{");
        let open = |_| {
            let mut stream = connect(&url, TIME_LIMIT).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            stream
        };
        (0..count).map(open).collect()
    };
    // The second are claims that the allocator would take from its heap, and touch: 3 GB.
    for bytes in [200 << 20, 30 << 20] {
        let large = claim(bytes, 100);
        wait_until("all connections are open", || descriptors() >= 200);
        let memory = fs::read_to_string(format!("{of_process}/status")).unwrap();
        let resident = memory.split_once("VmRSS:").unwrap().1;
        let kilobytes = resident.split_whitespace().next().unwrap();
        assert!(kilobytes.parse::<u64>().unwrap() < 500_000, "{memory}");
        drop(large);
        wait_until("all connections are closed", || descriptors() < 40);
    }
    drop(claim(1 << 40, 2));
    assert_eq!(status(60), 200);
}

#[test]
fn silent_connections_are_closed() {
    let manager = TestLeague::new("").manager("");
    let url = &manager.url();
    let limit = Duration::from_secs(120);
    let half_a_body = "POST /mcp HTTP/1.1\r\nContent-Length: 50\r\n\r\n{";
    thread::scope(|scope| {
        for bytes in ["", "PO", half_a_body] {
            scope.spawn(move || {
                let started = Instant::now();
                let response = raw(url, bytes.as_bytes(), limit);
                assert!(started.elapsed() < limit, "{bytes:?}");
                assert_ne!(split_response(&response).0, 200, "{bytes:?}");
            });
        }
    });
}

#[test]
fn host_name_becomes_the_address_to_which_it_leads() {
    let at = |endpoint: &str| offline::meta(AgentKind::Player, endpoint);
    let elsewhere = "10.0.0.7".parse().unwrap();
    // The name of this machine, where it leads to an address.
    let name = fs::read_to_string("/etc/hostname").unwrap_or_default();
    let found = (name.trim(), 8101).to_socket_addrs().into_iter().flatten();
    for own in found.filter(SocketAddr::is_ipv4) {
        let by_name = at(&format!("http://{}:8101/mcp?a", name.trim()));
        let found = with_address(&by_name, own.ip()).contact_endpoint;
        assert_eq!(found, format!("http://{}:8101/mcp?a", own.ip()));
        assert_eq!(with_address(&by_name, elsewhere), by_name);
    }
    let address = at("http://10.0.0.8:8101/mcp");
    assert_eq!(with_address(&address, elsewhere), address);
}

#[test]
fn file_that_is_not_ours_is_kept_and_not_used() {
    let test = TestLeague::new("");
    let path = |name: &str| test.folder.join(name);
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let open = |name: &str| JsonLinesFile::open(&path(name), |_| Ok(())).map(drop);
    fs::write(path("letter"), "Dear diary").unwrap();
    fs::create_dir(path("folder")).unwrap();
    let refused =
        |name: &str| check_contains(&open(name).unwrap_err().to_string(), "this is not a");
    refused("folder");

    #[cfg(unix)] // on Windows not every user may make a link
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        symlink("letter", path("link")).unwrap();
        refused("link");
        symlink("letter", path("card.new")).unwrap();
        storage::replace(&path("card.json"), Access::Owner, "ours").unwrap();
        assert_eq!(read("letter"), "Dear diary");

        fs::write(path("token.new"), "").unwrap();
        fs::set_permissions(path("token.new"), PermissionsExt::from_mode(0o666)).unwrap();
        storage::replace(&path("token.json"), Access::Owner, "ours").unwrap();
        check_mode(&path("token.json"));
    }
    open("letter").unwrap();
    assert_eq!(read("letter~cut"), "Dear diary\n");
}
