//! Reads MLIR's textual locations, which carry the user's file and line through the compiler.
//!
//! ```text
//! loc("k.rs":4:7)   loc("name"("k.rs":4:7))   loc(callsite("f"("a.rs":1:2) at "b.rs":3:4))
//! loc(fused<meta>["a.rs":1:2, "b.rs":3:4])    loc("k.rs":4:7 to :9)    loc(unknown)
//! ```

use crate::diag::SourceLoc;

/// The places that the first location in `text` names, innermost first, and what follows it. `None` if no location
/// can be read.
pub(crate) fn first(text: &str) -> Option<Vec<SourceLoc>> {
    let mut rest = text;
    while let Some(start) = rest.find("loc(") {
        rest = &rest[start + "loc(".len()..];
        let mut reader = Reader { rest, places: Vec::new() };
        if reader.location(0).is_some() && reader.eat(")") {
            return Some(reader.places);
        }
    }
    None
}

/// Deeper nesting than any compiler writes; it bounds the recursion.
const MAX_DEPTH: usize = 64;

struct Reader<'a> {
    rest: &'a str,
    places: Vec<SourceLoc>,
}

impl<'a> Reader<'a> {
    fn location(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.space();
        if self.eat("callsite(") {
            self.location(depth + 1)?;
            self.space();
            self.expect("at")?;
            self.location(depth + 1)?;
            self.expect(")")
        } else if self.eat("fused") {
            self.metadata()?;
            self.expect("[")?;
            self.location(depth + 1)?;
            while self.eat(",") {
                self.location(depth + 1)?;
            }
            self.expect("]")
        } else if self.eat("unknown") {
            Some(())
        } else {
            let text = self.string()?;
            if self.eat("(") {
                self.location(depth + 1)?;
                return self.expect(")");
            }
            self.position(text)
        }
    }

    /// `:4:7`, perhaps with the end of a range; a name alone is no place.
    fn position(&mut self, file: String) -> Option<()> {
        if !self.eat(":") {
            return Some(());
        }
        let line = self.number()?;
        self.expect(":")?;
        let column = self.number()?;
        self.places.push(SourceLoc { file: file.into(), line, column });
        if self.eat(" to ") {
            let _end_line = self.number();
            self.expect(":")?;
            self.number()?;
        }
        Some(())
    }

    /// `<...>`, skipped; strings in it may hold any bracket.
    fn metadata(&mut self) -> Option<()> {
        if !self.eat("<") {
            return Some(());
        }
        let mut open = 1;
        while open > 0 {
            match self.rest.chars().next()? {
                '"' => {
                    self.string()?;
                    continue;
                }
                '<' => open += 1,
                '>' => open -= 1,
                _ => {}
            }
            let next = self.rest.chars().next()?.len_utf8();
            self.rest = &self.rest[next..];
        }
        Some(())
    }

    /// A string literal: `\"`, `\\`, `\n`, `\t`, and any byte as two hex digits.
    fn string(&mut self) -> Option<String> {
        self.expect("\"")?;
        let bytes = self.rest.as_bytes();
        let (mut at, mut text) = (0, Vec::new());
        loop {
            match *bytes.get(at)? {
                b'"' => break,
                b'\\' => {
                    let escape = *bytes.get(at + 1)?;
                    let hex = bytes.get(at + 1..at + 3).and_then(|pair| hex::decode(pair).ok());
                    match (escape, hex) {
                        (b'"' | b'\\', _) => text.push(escape),
                        (b'n', _) => text.push(b'\n'),
                        (b't', _) => text.push(b'\t'),
                        (_, Some(byte)) => {
                            text.extend(byte);
                            at += 1;
                        }
                        _ => return None,
                    }
                    at += 2;
                }
                byte => {
                    text.push(byte);
                    at += 1;
                }
            }
        }
        self.rest = &self.rest[at + 1..];
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    fn number(&mut self) -> Option<u32> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let number = self.rest[..end].parse().ok()?;
        self.rest = &self.rest[end..];
        Some(number)
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Option<()> {
        self.eat(token).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::first;

    fn places(text: &str) -> Option<String> {
        first(text).map(|places| places.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn every_form_that_mlir_prints() {
        for (text, expected) in [
            (r#"at location: loc("k.rs":4:7)"#, "k.rs:4:7"),
            (r#"loc("cbrt"("kernels/my kernel.rs":42:17))"#, "kernels/my kernel.rs:42:17"),
            (
                r#"loc(callsite("f"("a.rs":1:2) at callsite("b.rs":3:4 at "c.rs":5:6)))"#,
                "a.rs:1:2 b.rs:3:4 c.rs:5:6",
            ),
            (r#"loc(fused["a.rs":1:2, "b.rs":3:4])"#, "a.rs:1:2 b.rs:3:4"),
            (r#"loc(fused<"x>\22">["a.rs":1:2, "b\22q\\.rs":3:4])"#, "a.rs:1:2 b\"q\\.rs:3:4"),
            (r#"loc(fused<#a<b<1>>>["a.rs":1:2])"#, "a.rs:1:2"),
            (r#"loc("a.rs":1:2 to :9)"#, "a.rs:1:2"),
            (r#"loc("a.rs":1:2 to 3:9)"#, "a.rs:1:2"),
            (r#"loc("name only")"#, ""),
            ("loc(unknown)", ""),
            (r#"alloc(3) then loc("k.rs":4:7)"#, "k.rs:4:7"),
        ] {
            assert_eq!(places(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_location_is_left_alone() {
        for text in [
            "",
            "loc(",
            "loc(\"a.rs",
            "loc(\"a.rs\":1",
            "loc(\"a.rs\":1:99999999999)",
            "loc(fused<<[\"a\":1:1])",
            "loc(\"\\x\":1:2)",
            "loc(\"\\€\":1:2)",
        ] {
            assert_eq!(places(text), None, "{text}");
        }
        assert_eq!(places(&format!("loc({}", "callsite(".repeat(1000))), None);
    }
}
