//! The ways in which a file comes to harm: a power cut, a full disk, an editor, a hand.

/// Returns what is left of the bytes of a file; none if there is no file any more.
pub fn damaged(way: &str, whole: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(whole);
    Some(match way {
        "nothing" => whole.into(),
        "missing" => return None,
        "byte order mark" => format!("\u{feff}{text}").into(),
        "CRLF" => text.replace('\n', "\r\n").into(),
        "no last line end" => text.trim_end().into(),
        "empty" => Vec::new(),
        "zeros" => vec![0; whole.len()],
        "zeros at the end" => [whole, &[0; 512]].concat(),
        "cut" => whole[..whole.len() / 3].into(),
        "not UTF-8" => vec![0xff; whole.len()],
        "other text" => b"Dear diary".into(),
        "other line" => b"\"Dear diary\"\n".into(),
        _ => panic!("{way}"),
    })
}
