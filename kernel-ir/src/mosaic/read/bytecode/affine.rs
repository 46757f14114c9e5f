//! Affine maps and strided layouts, in MLIR's binary encodings and as MLIR 22 writes them: as text.

use super::super::module::{AffineExpr, Attribute};
use super::cursor::Cursor;
use super::fault::{Budget, Fallible, Fault};

/// How deep expressions may nest.
const DEEPEST: usize = 64;

/// The most dims or symbols of a map.
const MOST: u64 = 256;

/// The most operations and results of a map in text form.
const LONGEST: usize = 256;

type Binary = fn(Box<(AffineExpr, AffineExpr)>) -> AffineExpr;

/// Decodes maps.
pub(super) struct Maps<'a> {
    pub(super) budget: &'a mut Budget,
}

impl Maps<'_> {
    /// An affine map in binary form: identities and permutations are written shorter than other maps.
    pub(super) fn map(&mut self, at: &mut Cursor<'_>) -> Fallible<Attribute> {
        let v = at.varint()?;
        let dims = count(at, v >> 2)?;
        let mut symbols = 0;
        let results = match v & 3 {
            0 => {
                let mut all = self.budget.vec(at.at(), dims)?;
                all.extend((0..dims).map(AffineExpr::Dim));
                all
            }
            1 => self.dims(at, dims as u64, dims)?,
            2 => {
                let n = at.varint()?;
                self.dims(at, n, dims)?
            }
            _ => {
                let n = at.varint()?;
                symbols = count(at, n)?;
                let n = at.count()?;
                let mut all = self.budget.vec(at.at(), n)?;
                for _ in 0..n {
                    all.push(self.expr(at, dims, symbols, 0)?);
                }
                all
            }
        };
        Ok(Attribute::AffineMap { dims, symbols, results })
    }

    /// The results of a map that are dims.
    fn dims(&mut self, at: &mut Cursor<'_>, n: u64, dims: usize) -> Fallible<Vec<AffineExpr>> {
        let n = at.checked_count(n)?;
        let mut all = self.budget.vec(at.at(), n)?;
        for _ in 0..n {
            all.push(AffineExpr::Dim(at.index(dims, "dim")? as usize));
        }
        Ok(all)
    }

    fn expr(
        &mut self,
        at: &mut Cursor<'_>,
        dims: usize,
        symbols: usize,
        depth: usize,
    ) -> Fallible<AffineExpr> {
        if depth > DEEPEST {
            return Err(too_deep(at.at()));
        }
        let start = at.at();
        let make: Binary = match at.varint()? {
            0 => return Ok(AffineExpr::Dim(at.index(dims, "dim")? as usize)),
            1 => return Ok(AffineExpr::Symbol(at.index(symbols, "symbol")? as usize)),
            2 => return Ok(AffineExpr::Constant(at.signed()?)),
            3 => AffineExpr::Add,
            4 => AffineExpr::Mul,
            5 => AffineExpr::Mod,
            6 => AffineExpr::FloorDiv,
            7 => AffineExpr::CeilDiv,
            code => return Err(Fault::unknown(start, format!("an affine expression has code {code}"))),
        };
        self.budget.take::<(AffineExpr, AffineExpr)>(start, 1)?;
        let lhs = self.expr(at, dims, symbols, depth + 1)?;
        Ok(make(Box::new((lhs, self.expr(at, dims, symbols, depth + 1)?))))
    }

    /// Steps over an integer set: its dims, symbols, constraints and which of them are equalities.
    pub(super) fn set(&mut self, at: &mut Cursor<'_>) -> Fallible<()> {
        let n = at.varint()?;
        let dims = count(at, n)?;
        let n = at.varint()?;
        let symbols = count(at, n)?;
        for _ in 0..at.count()? {
            self.expr(at, dims, symbols, 0)?;
        }
        // Here for each constraint a byte.
        let flags = at.count()?;
        at.bytes(flags as u64)?;
        Ok(())
    }

    /// A strided layout in binary form: the offset, then the strides.
    pub(super) fn strided(&mut self, at: &mut Cursor<'_>) -> Fallible<Attribute> {
        let offset = at.signed()?;
        let n = at.count()?;
        if n > DEEPEST / 2 {
            return Err(too_deep(at.at()));
        }
        let mut strides = Vec::with_capacity(n);
        for _ in 0..n {
            strides.push(at.signed()?);
        }
        self.layout(at.at(), offset, &strides)
    }

    /// The map of a strided layout: dims times strides, and the offset. What is not known is a symbol.
    fn layout(&mut self, at: usize, offset: i64, strides: &[i64]) -> Fallible<Attribute> {
        self.budget.take::<(AffineExpr, AffineExpr)>(at, 4 * strides.len() + 2)?;
        let mut symbols = 0;
        let mut known = |n: i64| match n {
            i64::MIN => {
                symbols += 1;
                AffineExpr::Symbol(symbols - 1)
            }
            n => AffineExpr::Constant(n),
        };
        let offset = known(offset);
        let terms = strides.iter().enumerate().map(|(i, s)| match *s {
            1 => AffineExpr::Dim(i),
            s => AffineExpr::Mul(Box::new((AffineExpr::Dim(i), known(s)))),
        });
        let add = |a, b| AffineExpr::Add(Box::new((a, b)));
        let sum = terms.reduce(add);
        let result = match (sum, offset) {
            (None, offset) => offset,
            (Some(sum), AffineExpr::Constant(0)) => sum,
            (Some(sum), offset) => add(sum, offset),
        };
        Ok(Attribute::AffineMap { dims: strides.len(), symbols, results: vec![result] })
    }
}

fn count(at: &Cursor<'_>, n: u64) -> Fallible<usize> {
    if n > MOST {
        return Err(Fault::limit(at.at(), format!("an affine map has {n} dims or symbols")));
    }
    Ok(n as usize)
}

fn too_deep(at: usize) -> Fault {
    Fault::limit(at, "an affine expression nests too deep")
}

/// A map as text, `affine_map<(d0, d1)[s0] -> (d1, d0 + s0)>`, or a layout, `strided<[?, 1], offset: 8>`. `None` if the
/// text is neither.
pub(super) fn text(text: &str, at: usize, budget: &mut Budget) -> Fallible<Option<Attribute>> {
    let is_map = text.starts_with("affine_map<");
    let Some(rest) = text.strip_prefix(if is_map { "affine_map<" } else { "strided<" }) else {
        return Ok(None);
    };
    // A character makes one node at most.
    budget.take::<[AffineExpr; 2]>(at, text.len())?;
    let mut text = Text { rest, dims: vec![], symbols: vec![], nodes: 0, budget };
    match if is_map { text.map() } else { text.strided() } {
        Some(map) if text.rest == ">" => Ok(Some(map)),
        _ => Err(Fault::malformed(at, "an affine map or layout is malformed")),
    }
}

/// Text of a map that is left to read.
struct Text<'t, 'b> {
    rest: &'t str,
    dims: Vec<&'t str>,
    symbols: Vec<&'t str>,
    nodes: usize,
    budget: &'b mut Budget,
}

impl<'t> Text<'t, '_> {
    fn map(&mut self) -> Option<Attribute> {
        self.eat("(").then_some(())?;
        self.dims = self.names(")")?;
        if self.eat("[") {
            self.symbols = self.names("]")?;
        }
        (self.eat("->") && self.eat("(")).then_some(())?;
        let mut results = vec![];
        while !self.eat(")") {
            (results.is_empty() || self.eat(",")).then_some(())?;
            self.node()?;
            results.push(self.sum(0)?);
        }
        Some(Attribute::AffineMap { dims: self.dims.len(), symbols: self.symbols.len(), results })
    }

    fn strided(&mut self) -> Option<Attribute> {
        self.eat("[").then_some(())?;
        let mut strides = vec![];
        while !self.eat("]") {
            (strides.is_empty() || self.eat(",")).then_some(())?;
            strides.push(self.known()?);
        }
        let offset = if self.eat(",") && self.eat("offset") && self.eat(":") { self.known()? } else { 0 };
        if strides.len() > DEEPEST / 2 {
            return None;
        }
        Maps { budget: self.budget }.layout(0, offset, &strides).ok()
    }

    /// Counts an operation or a result.
    fn node(&mut self) -> Option<()> {
        self.nodes += 1;
        (self.nodes <= LONGEST).then_some(())
    }

    /// An integer, or `?`.
    fn known(&mut self) -> Option<i64> {
        if self.eat("?") { Some(i64::MIN) } else { self.number() }
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// The longest prefix of characters of a kind, when there is one.
    fn take(&mut self, kind: fn(char) -> bool) -> Option<&'t str> {
        self.skip();
        let end = self.rest.find(|c| !kind(c)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }

    fn word(&mut self) -> Option<&'t str> {
        self.take(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    fn number(&mut self) -> Option<i64> {
        let sign = if self.eat("-") { "-" } else { "" };
        let digits = self.take(|c| c.is_ascii_digit())?;
        format!("{sign}{digits}").parse().ok()
    }

    fn names(&mut self, end: &str) -> Option<Vec<&'t str>> {
        let mut names = vec![];
        while !self.eat(end) {
            (names.is_empty() || self.eat(",")).then_some(())?;
            (names.len() < MOST as usize).then_some(())?;
            names.push(self.word()?);
        }
        Some(names)
    }

    fn sum(&mut self, depth: usize) -> Option<AffineExpr> {
        let mut sum = self.product(depth)?;
        loop {
            let minus = if self.eat("+") {
                false
            } else if !self.rest.starts_with("->") && self.eat("-") {
                true
            } else {
                return Some(sum);
            };
            let term = self.product(depth)?;
            let term = if minus { negated(term) } else { term };
            sum = AffineExpr::Add(Box::new((sum, term)));
            self.node()?;
        }
    }

    fn product(&mut self, depth: usize) -> Option<AffineExpr> {
        let mut product = self.atom(depth)?;
        loop {
            let make: Binary = if self.eat("*") {
                AffineExpr::Mul
            } else if self.eat("mod") {
                AffineExpr::Mod
            } else if self.eat("floordiv") {
                AffineExpr::FloorDiv
            } else if self.eat("ceildiv") {
                AffineExpr::CeilDiv
            } else {
                return Some(product);
            };
            product = make(Box::new((product, self.atom(depth)?)));
            self.node()?;
        }
    }

    fn atom(&mut self, depth: usize) -> Option<AffineExpr> {
        (depth < DEEPEST).then_some(())?;
        if self.eat("(") {
            let inner = self.sum(depth + 1)?;
            return self.eat(")").then_some(inner);
        }
        self.skip();
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number().map(AffineExpr::Constant);
        }
        if self.eat("-") {
            return Some(negated(self.atom(depth + 1)?));
        }
        let word = self.word()?;
        let dim = self.dims.iter().position(|n| *n == word).map(AffineExpr::Dim);
        dim.or_else(|| self.symbols.iter().position(|n| *n == word).map(AffineExpr::Symbol))
    }
}

/// The negative of an expression.
fn negated(e: AffineExpr) -> AffineExpr {
    match e {
        AffineExpr::Constant(n) => AffineExpr::Constant(n.wrapping_neg()),
        e => AffineExpr::Mul(Box::new((e, AffineExpr::Constant(-1)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(s: &str) -> Fallible<Option<Attribute>> {
        text(s, 0, &mut Budget::of(1000))
    }

    fn binary(bytes: &[u8]) -> Attribute {
        Maps { budget: &mut Budget::of(1000) }.map(&mut Cursor::new(bytes)).unwrap()
    }

    #[test]
    fn both_forms_say_the_same() {
        // What jaxlib 0.12 writes for the text beside it, without the code.
        for (s, bytes) in [
            ("affine_map<(d0) -> (d0 floordiv 2)>", &[0x0f, 1, 3, 0x0d, 1, 1, 5, 9][..]),
            ("affine_map<(d0) -> (d0 mod 2)>", &[0x0f, 1, 3, 0x0b, 1, 1, 5, 9]),
            ("affine_map<(d0) -> (d0 ceildiv 2)>", &[0x0f, 1, 3, 0x0f, 1, 1, 5, 9]),
            ("affine_map<(d0) -> (d0 * -3 + 7)>", &[0x0f, 1, 3, 7, 9, 1, 1, 5, 0x0b, 5, 0x1d]),
            ("affine_map<()[s0] -> (s0)>", &[7, 3, 3, 3, 1]),
            ("affine_map<(d0, d1, d2) -> (d2, d0)>", &[0x1d, 5, 5, 1]),
            ("affine_map<(d0, d1) -> (d1, d0)>", &[0x13, 3, 1]),
            ("affine_map<() -> ()>", &[1]),
        ] {
            assert_eq!(parse(s).unwrap(), Some(binary(bytes)), "{s}");
        }
    }

    #[test]
    fn text_with_signs_and_parentheses() {
        let Some(Attribute::AffineMap { results, .. }) =
            parse("affine_map<(a)[b] -> (-(a - b) * 2)>").unwrap()
        else {
            panic!("a map");
        };
        assert_eq!(format!("{:?}", results[0]).matches("Constant(-1)").count(), 2);
        for bad in
            ["affine_map<(d0) -> (d1)>", "affine_map<(d0) -> (d0)", "affine_map<(d0) (d0)>", "strided<[1>"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse(&format!("affine_map<() -> ({}1{})>", "(".repeat(100), ")".repeat(100))).is_err());
        assert!(parse("#tpu.tiled<(8,128),[1,1]>").unwrap().is_none());
    }

    #[test]
    fn layouts_in_both_forms() {
        let mut budget = Budget::of(1000);
        let mut binary =
            |bytes: &[u8]| Maps { budget: &mut budget }.strided(&mut Cursor::new(bytes)).unwrap();
        let min = [0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let unknown = [&min[..], &[5], &min, &[5]].concat();
        assert_eq!(parse("strided<[?, 1], offset: ?>").unwrap(), Some(binary(&unknown)));
        let known = binary(&[0x02, 0x20, 5, 0x02, 0x04, 5]);
        assert_eq!(parse("strided<[128, 1], offset: 1024>").unwrap(), Some(known));
        assert_eq!(parse("strided<[]>").unwrap(), Some(binary(&[1, 1])));
    }
}
