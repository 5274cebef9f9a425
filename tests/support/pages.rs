//! The pages of a league, and the words in them.

use super::{raw, split_response, time_limit};

/// Sends a GET. Returns the status, the head and the body of the response.
pub fn get(url: &str, path: &str) -> (u16, String, String) {
    let host = url.split('/').nth(2).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = raw(url, request.as_bytes(), time_limit());
    let (status, body) = split_response(&answer);
    let head = String::from_utf8(answer).unwrap().replace(&body, "");
    (status, head, body)
}

/// Returns the part of a text between two words.
pub fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap();
    rest.split(after).next().unwrap()
}
