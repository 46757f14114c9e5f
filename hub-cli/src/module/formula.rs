//! Block maps as formulas: `(i, j) -> (i, prefetch0[j])`.

use std::collections::HashMap;

use kernel_ir::ir::{Binary, Block, Compare, Kernel, Literal, Offset, OpKind, Value};

/// Formulas longer than this are cut: they are there to be read.
const LONGEST: usize = 160;

/// The map that a block is, from its arguments to its results.
pub(super) fn of_block(kernel: &Kernel, block: &Block) -> String {
    let mut known: HashMap<Value, String> = HashMap::new();
    for (i, v) in block.args.iter().enumerate() {
        known.insert(*v, argument(i));
    }
    for op in &block.ops {
        let text = formula(kernel, &known, &op.kind);
        for v in &op.results {
            known.insert(*v, cut(text.clone()));
        }
    }
    let get = |v: &Value| known.get(v).cloned().unwrap_or_else(|| format!("%{}", v.0));
    let arguments: Vec<String> = (0..block.args.len()).map(argument).collect();
    let results: Vec<String> = block.results.iter().map(|v| bare(get(v))).collect();
    format!("({}) -> ({})", arguments.join(", "), results.join(", "))
}

/// Grid indices by the letters that people give them.
fn argument(i: usize) -> String {
    match ["i", "j", "k", "l"].get(i) {
        Some(letter) => (*letter).to_owned(),
        None => format!("i{i}"),
    }
}

fn formula(kernel: &Kernel, known: &HashMap<Value, String>, kind: &OpKind) -> String {
    let get = |v: &Value| known.get(v).cloned().unwrap_or_else(|| format!("%{}", v.0));
    match kind {
        OpKind::Constant(Literal::Int(n)) => n.to_string(),
        OpKind::Constant(Literal::Float(x)) => x.to_string(),
        OpKind::Constant(Literal::Bool(b)) => b.to_string(),
        OpKind::NumPrograms { axis } => format!("num_programs({axis})"),
        OpKind::Dim { name } => name.to_string(),
        OpKind::Cast { x } | OpKind::CastUnsigned { x } | OpKind::AssumeMultiple { x, .. } => get(x),
        OpKind::Binary { op, x, y } => match symbol(*op) {
            Some(symbol) => format!("({} {symbol} {})", get(x), get(y)),
            None => format!("{}({}, {})", word(op), bare(get(x)), bare(get(y))),
        },
        OpKind::Compare { op, x, y } => {
            let symbol = match op {
                Compare::Eq => "==",
                Compare::Ne => "!=",
                Compare::Lt | Compare::LtUnsigned => "<",
                Compare::Le | Compare::LeUnsigned => "<=",
                Compare::Gt | Compare::GtUnsigned => ">",
                Compare::Ge | Compare::GeUnsigned => ">=",
            };
            format!("({} {symbol} {})", get(x), get(y))
        }
        OpKind::Select { mask, x, y } => format!("({} ? {} : {})", bare(get(mask)), get(x), get(y)),
        OpKind::LoadScalar { base, offsets } => {
            let name = kernel.param(*base).map_or_else(|| get(base), |p| p.name.to_string());
            let at = offsets.iter().map(|o| match o {
                Offset::Const(n) => n.to_string(),
                Offset::Value(v) => bare(get(v)),
            });
            format!("{name}[{}]", at.collect::<Vec<_>>().join(", "))
        }
        other => {
            let operands: Vec<String> = other.operands().iter().map(|v| bare(get(v))).collect();
            format!("{}({})", other.name(), operands.join(", "))
        }
    }
}

const fn symbol(op: Binary) -> Option<&'static str> {
    Some(match op {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div | Binary::DivUnsigned => "/",
        Binary::Rem | Binary::RemUnsigned => "%",
        Binary::And => "&",
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::Shl => "<<",
        Binary::Shr | Binary::ShrUnsigned => ">>",
        _ => return None,
    })
}

fn word(op: &Binary) -> &'static str {
    match op {
        Binary::Min | Binary::MinUnsigned => "min",
        Binary::Max | Binary::MaxUnsigned => "max",
        _ => "f",
    }
}

/// Without the brackets around the whole.
fn bare(text: String) -> String {
    let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else { return text };
    let mut depth = 0_i32;
    let closes_early = inner.chars().any(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0
    });
    if closes_early { text } else { inner.to_owned() }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}..", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_go_only_where_they_enclose_all() {
        assert_eq!(bare("(i + 1)".into()), "i + 1");
        assert_eq!(bare("(i + 1) * (j)".into()), "(i + 1) * (j)");
        assert_eq!(bare("i".into()), "i");
    }
}
