//! Finding calls in MLIR text: what is a string or a comment is stepped over, brackets are matched.

use super::Fallible;

/// What XLA calls a Mosaic kernel.
pub(super) const TARGET: &str = "tpu_custom_call";

/// The operation that calls it.
const OPERATION: &str = "stablehlo.custom_call";

/// The deepest nesting of brackets in an attribute or a type.
const DEEPEST: usize = 64;

/// A call's attributes and types, as text.
pub(super) struct Call<'t> {
    attributes: Vec<(&'t str, &'t str)>,
    /// What stands after the colon: `(tensor<..>, ..) -> ..`.
    pub(super) types: &'t str,
}

impl<'t> Call<'t> {
    /// The text of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&'t str> {
        self.attributes.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    /// The content of a string attribute.
    pub(super) fn string(&self, name: &str) -> Fallible<Option<String>> {
        let Some(text) = self.attribute(name) else { return Ok(None) };
        let content = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
        let content = content.ok_or_else(|| format!("its `{name}` is no string"))?;
        unescape(content).map(Some).ok_or_else(|| format!("its `{name}` is malformed"))
    }
}

/// What the escapes of MLIR's strings stand for: two hexadecimal digits are a byte.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let (byte, tail) = match (first, tail) {
            (b'\\', [b'n', tail @ ..]) => (b'\n', tail),
            (b'\\', [b't', tail @ ..]) => (b'\t', tail),
            (b'\\', [c @ (b'"' | b'\\'), tail @ ..]) => (*c, tail),
            (b'\\', [high, low, tail @ ..]) => {
                let digit = |c: u8| char::from(c).to_digit(16);
                ((digit(*high)? * 16 + digit(*low)?) as u8, tail)
            }
            (b'\\', _) => return None,
            (c, tail) => (*c, tail),
        };
        bytes.push(byte);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

/// A text and a place in it. Every step goes forward.
pub(super) struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// The line of the byte `counted`.
    line: u32,
    counted: usize,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1, counted: 0 }
    }

    /// The next call of any target, with its line: `None` within if it is of another target.
    pub(super) fn next_call(&mut self) -> Option<(u32, Fallible<Option<Call<'t>>>)> {
        loop {
            self.skip();
            let start = self.at;
            match self.peek()? {
                b'"' => {
                    let generic = self.string().is_some_and(|s| s.trim_matches('"') == OPERATION);
                    if generic && self.eat(b'(') {
                        return Some((self.line_of(start), self.generic()));
                    }
                }
                c if is_word(c) => {
                    if self.word() == OPERATION && self.eat(b'@') {
                        return Some((self.line_of(start), self.pretty()));
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// A call after its `@`: `target(operands) {attributes} : types`.
    fn pretty(&mut self) -> Fallible<Option<Call<'t>>> {
        let target = if self.peek() == Some(b'"') { self.string().unwrap_or_default() } else { self.word() };
        if target.trim_matches('"') != TARGET {
            return Ok(None);
        }
        if !self.eat(b'(') {
            return Err("its operands are missing".into());
        }
        self.rest_of_call().map(Some)
    }

    /// A call in generic form after its first parenthesis. The target is an attribute.
    fn generic(&mut self) -> Fallible<Option<Call<'t>>> {
        let start = self.at;
        match self.rest_of_call() {
            Ok(call) => {
                let target = call.string("call_target_name")?;
                Ok((target.as_deref() == Some(TARGET)).then_some(call))
            }
            Err(message) if self.text[start..self.at].contains(TARGET) => Err(message),
            Err(_) => Ok(None),
        }
    }

    /// What follows the parenthesis that opens the operands.
    fn rest_of_call(&mut self) -> Fallible<Call<'t>> {
        self.balanced(b")")?;
        self.at += 1;
        let mut attributes = vec![];
        loop {
            self.skip();
            match self.peek() {
                Some(b'<') => self.at += 1,
                Some(b'{') => {
                    self.at += 1;
                    self.dictionary(&mut attributes)?;
                    self.eat(b'>');
                }
                Some(b':') => break,
                _ => return Err("its types are missing".into()),
            }
        }
        self.at += 1;
        Ok(Call { attributes, types: self.types()? })
    }

    /// Attributes up to the closing brace, which is eaten.
    fn dictionary(&mut self, all: &mut Vec<(&'t str, &'t str)>) -> Fallible<()> {
        loop {
            self.skip();
            if self.eat(b'}') {
                return Ok(());
            }
            let name =
                if self.peek() == Some(b'"') { self.string().unwrap_or_default() } else { self.word() };
            if name.is_empty() {
                return Err("its attributes are malformed".into());
            }
            let value = if self.eat(b'=') {
                self.skip();
                self.balanced(b",}")?.trim_end()
            } else {
                "unit"
            };
            all.push((name.trim_matches('"'), value));
            self.eat(b',');
        }
    }

    /// A function type: `(types) -> type` or `(types) -> (types)`.
    fn types(&mut self) -> Fallible<&'t str> {
        let missing = || "its types are malformed".to_owned();
        self.skip();
        let start = self.at;
        if !self.eat(b'(') {
            return Err(missing());
        }
        self.balanced(b")")?;
        self.at += 1;
        if !(self.eat(b'-') && self.eat(b'>')) {
            return Err(missing());
        }
        if self.eat(b'(') {
            self.balanced(b")")?;
            self.at += 1;
        } else {
            self.skip();
            self.word();
            if self.eat(b'<') {
                self.balanced(b">")?;
                self.at += 1;
            }
        }
        Ok(&self.text[start..self.at])
    }

    /// The text up to the first of `ends` that stands in no bracket opened after here.
    fn balanced(&mut self, ends: &[u8]) -> Fallible<&'t str> {
        let start = self.at;
        let mut open = vec![];
        while let Some(c) = self.peek() {
            if open.is_empty() && ends.contains(&c) {
                return Ok(&self.text[start..self.at]);
            }
            match c {
                b'"' => {
                    self.string().ok_or("a string does not end")?;
                    continue;
                }
                b'(' => open.push(b')'),
                b'[' => open.push(b']'),
                b'{' => open.push(b'}'),
                b'<' => open.push(b'>'),
                b'-' if self.text[self.at..].starts_with("->") => self.at += 1,
                b')' | b']' | b'}' | b'>' if open.pop() != Some(c) => {
                    return Err("its brackets do not match".into());
                }
                _ => {}
            }
            if open.len() > DEEPEST {
                return Err("its brackets nest too deep".into());
            }
            self.at += 1;
        }
        Err("the text ends within it".into())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Steps over white space and comments.
    fn skip(&mut self) {
        while let Some(c) = self.peek() {
            if c.is_ascii_whitespace() {
                self.at += 1;
            } else if self.text.as_bytes()[self.at..].starts_with(b"//") {
                let rest = &self.text.as_bytes()[self.at..];
                self.at += rest.iter().position(|c| *c == b'\n').unwrap_or(rest.len());
            } else {
                return;
            }
        }
    }

    fn eat(&mut self, c: u8) -> bool {
        self.skip();
        let there = self.peek() == Some(c);
        self.at += usize::from(there);
        there
    }

    fn word(&mut self) -> &'t str {
        let start = self.at;
        while self.peek().is_some_and(is_word) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// A string with its quotes. If it does not end, one quote is stepped over.
    fn string(&mut self) -> Option<&'t str> {
        let start = self.at;
        self.at += 1;
        while let Some(c) = self.peek() {
            match c {
                b'"' => {
                    self.at += 1;
                    return Some(&self.text[start..self.at]);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at = self.text.len();
        None
    }

    /// The line of a byte that is not before the last one asked for.
    fn line_of(&mut self, at: usize) -> u32 {
        let lines = self.text.as_bytes()[self.counted..at].iter().filter(|c| **c == b'\n').count();
        self.counted = at;
        self.line += lines as u32;
        self.line
    }
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        assert_eq!(unescape(r#"{\22a\22: \0A\\\n\"}"#).as_deref(), Some("{\"a\": \n\\\n\"}"));
        assert_eq!(unescape("é").as_deref(), Some("é"));
        for bad in [r"\", r"\2", r"\zz", r"\FF"] {
            assert_eq!(unescape(bad), None, "{bad}");
        }
    }
}
