//! Which translation each operation takes, by name.

use super::Fallible;
use super::cast::Conversion;
use super::scope::{Known, Lower};
use crate::ir::{Binary, Compare, DType, OpKind, Type, Unary, Value};
use crate::mosaic::read::module::Operation;

impl<'m> Lower<'m> {
    /// Translates an operation.
    pub(super) fn dispatch(&mut self, op: &'m Operation) -> Fallible<()> {
        if let Some((binary, floats)) = binary(&op.name) {
            return self.binary_op(op, binary, floats);
        }
        if let Some((unary, floats)) = unary(&op.name) {
            return self.unary_op(op, unary, floats);
        }
        if let Some(conversion) = conversion(&op.name) {
            return self.convert(op, conversion);
        }
        match &*op.name {
            "arith.constant" => self.constant_op(op),
            "arith.cmpi" => self.compare_ints(op),
            "arith.cmpf" => self.compare_floats(op),
            "arith.select" => self.select_op(op),
            "arith.mulsi_extended" => self.mul_extended(op, Binary::MulHigh),
            "arith.mului_extended" => self.mul_extended(op, Binary::MulHighUnsigned),
            "arith.addui_extended" => self.add_extended(op),
            "math.trunc" => self.trunc(op),
            "tpu.assume_multiple" => self.assume_multiple(op),
            "tpu.weird" => self.weird(op),
            "tpu.bitcast" | "tpu.bitcast_vreg" => self.bitcast(op),
            "tpu.pack_elementwise" => self.pack(op),
            "tpu.unpack_elementwise" => self.unpack(op),
            "tpu.stochastic_convert" => self.stochastic_convert(op),
            "tpu.reduce_precision" => self.reduce_precision(op),

            "tpu.iota" => self.iota(op),
            "vector.broadcast" | "vector.splat" => self.broadcast_op(op),
            "vector.shape_cast" | "tpu.reshape" => self.shape_cast(op),
            "vector.extract" => self.extract(op),
            "vector.extract_strided_slice" => self.extract_slice(op),
            "vector.transpose" | "tpu.transpose" => self.transpose_op(op),
            "tpu.concatenate" => self.concatenate_op(op),
            "tpu.repeat" => self.repeat(op),
            "tpu.dynamic_rotate" => self.dynamic_rotate(op),
            "tpu.rotate" => self.static_rotate(op),
            "tpu.dynamic_gather" => self.dynamic_gather(op),
            "vector.multi_reduction" => self.multi_reduction(op),
            "tpu.reduce" => self.reduce(op),
            "tpu.reduce_index" => self.reduce_index(op),
            "tpu.matmul" => self.matmul(op),

            "vector.load" | "tpu.vector_load" => self.load(op),
            "vector.store" | "tpu.vector_store" => self.store(op),
            "tpu.strided_load" => self.strided_load(op),
            "tpu.strided_store" => self.strided_store(op),
            "memref.load" => self.load_scalar(op),
            "memref.store" => self.store_scalar(op),
            "memref.alloca" | "memref.alloc" | "tpu.sem_alloc" => self.allocate(op),
            "memref.cast"
            | "memref.memory_space_cast"
            | "tpu.annotate"
            | "tpu.assume_layout"
            | "tpu.erase_memref_layout" => self.same_memory(op),
            "tpu.memref_slice" => self.memref_slice(op),
            "tpu.memref_squeeze" => self.memref_squeeze(op),
            "tpu.memref_reshape" => self.memref_reshape(op),
            "tpu.memref_bitcast" => self.memref_bitcast(op),
            "tpu.reinterpret_cast" => self.reinterpret_cast(op),
            "tpu.memref_memory_space_is" => self.memory_space_is(op),

            "tpu.enqueue_dma" => self.enqueue_dma(op),
            "tpu.wait_dma" | "tpu.wait_dma2" => self.wait_dma(op),
            "tpu.sem_signal" => self.sem_signal(op),
            "tpu.sem_wait" => self.sem_wait(op),
            "tpu.sem_read" => self.sem_read(op),
            "tpu.sem_barrier" | "tpu.get_barrier_semaphore" => self.barrier(op),
            "tpu.device_id" => self.number(op, OpKind::DeviceId),
            "tpu.prng_set_seed_32" => self.prng_seed(op),
            "tpu.prng_random_bits" => self.prng_bits(op),
            "tpu.iteration_bound" => self.iteration_bound(op),

            "scf.if" => self.scf_if(op),
            "scf.for" => self.scf_for(op),
            "scf.while" => self.scf_while(op),
            "tpu.region" | "tpu.trace" => self.region(op),
            "func.call" => self.call(op),
            "cf.assert" => self.assert(op),
            _ => Err(self.unknown()),
        }
    }

    /// An operation without operands that makes an `i32`.
    fn number(&mut self, op: &Operation, kind: OpKind) -> Fallible<()> {
        let [] = self.operands(op)?;
        let x = self.push(kind, Type::Scalar(DType::I32))?;
        self.done(op, x)
    }

    fn iteration_bound(&mut self, op: &Operation) -> Fallible<()> {
        let axis = self.axis(op, "dim")?;
        if axis >= self.grid.len() {
            return Err(self.malformed(format!("asks for axis {axis} of a grid of {} axes", self.grid.len())));
        }
        self.number(op, OpKind::NumPrograms { axis })
    }

    fn assume_multiple(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let multiple = self.axis(op, "multiple")?;
        let out = self.result_type(op)?;
        if matches!(self.known(v)?, Known::Constant(..)) || out != Type::Scalar(DType::I32) {
            let x = self.get(v)?;
            return self.done(op, x);
        }
        if multiple == 0 || i32::try_from(multiple).is_err() {
            return Err(self.malformed(format!("assumes a multiple of {multiple}")));
        }
        let x = self.get(v)?;
        let x = self.push(OpKind::AssumeMultiple { x, multiple }, out)?;
        self.done(op, x)
    }

    fn unary_op(&mut self, op: &Operation, unary: Unary, floats: bool) -> Fallible<()> {
        let [x] = self.operands(op)?;
        let x = self.get(x)?;
        self.takes(x, floats)?;
        let y = self.unary(unary, x)?;
        self.done(op, y)
    }

    fn binary_op(&mut self, op: &Operation, binary: Binary, floats: bool) -> Fallible<()> {
        let [x, y] = self.operands(op)?;
        let (x, y) = (self.get(x)?, self.get(y)?);
        let z = match self.dtype(x)? {
            DType::Bool => {
                let logic = logic(binary);
                self.binary(logic.ok_or_else(|| self.unsupported("computes with elements of type i1"))?, x, y)
            }
            _ => {
                self.takes(x, floats)?;
                self.binary(binary, x, y)
            }
        }?;
        self.done(op, z)
    }

    /// Checks that an operand has floats, or that it has integers.
    pub(super) fn takes(&self, x: Value, floats: bool) -> Fallible<()> {
        let dtype = self.dtype(x)?;
        let fits = if floats { dtype.is_float() } else { dtype.is_int() };
        if fits { Ok(()) } else { Err(self.malformed(format!("computes with elements of type {dtype}"))) }
    }
}

/// Functions of two operands, and whether they take floats.
fn binary(name: &str) -> Option<(Binary, bool)> {
    Some(match name {
        "arith.addf" => (Binary::Add, true),
        "arith.subf" => (Binary::Sub, true),
        "arith.mulf" => (Binary::Mul, true),
        "arith.divf" => (Binary::Div, true),
        "arith.remf" => (Binary::Rem, true),
        "arith.maximumf" => (Binary::Max, true),
        "arith.minimumf" => (Binary::Min, true),
        "math.powf" => (Binary::Pow, true),
        "math.atan2" => (Binary::Atan2, true),
        "arith.addi" => (Binary::Add, false),
        "arith.subi" => (Binary::Sub, false),
        "arith.muli" => (Binary::Mul, false),
        "arith.divsi" => (Binary::Div, false),
        "arith.divui" => (Binary::DivUnsigned, false),
        "arith.remsi" => (Binary::Rem, false),
        "arith.remui" => (Binary::RemUnsigned, false),
        "arith.maxsi" => (Binary::Max, false),
        "arith.minsi" => (Binary::Min, false),
        "arith.maxui" => (Binary::MaxUnsigned, false),
        "arith.minui" => (Binary::MinUnsigned, false),
        "arith.andi" => (Binary::And, false),
        "arith.ori" => (Binary::Or, false),
        "arith.xori" => (Binary::Xor, false),
        "arith.shli" => (Binary::Shl, false),
        "arith.shrsi" => (Binary::Shr, false),
        "arith.shrui" => (Binary::ShrUnsigned, false),
        _ => return None,
    })
}

/// What integer arithmetic is on one bit: 1 is -1 to signed operations.
const fn logic(op: Binary) -> Option<Binary> {
    Some(match op {
        Binary::And | Binary::Mul | Binary::MinUnsigned | Binary::Max => Binary::And,
        Binary::Or | Binary::MaxUnsigned | Binary::Min => Binary::Or,
        Binary::Xor | Binary::Add | Binary::Sub => Binary::Xor,
        _ => return None,
    })
}

/// Functions of one operand, and whether they take floats.
fn unary(name: &str) -> Option<(Unary, bool)> {
    Some(match name {
        "arith.negf" => (Unary::Neg, true),
        "math.absf" => (Unary::Abs, true),
        "math.absi" => (Unary::Abs, false),
        "math.exp" => (Unary::Exp, true),
        "math.exp2" => (Unary::Exp2, true),
        "math.log" => (Unary::Log, true),
        "math.log2" => (Unary::Log2, true),
        "math.log1p" => (Unary::Log1p, true),
        "math.sqrt" => (Unary::Sqrt, true),
        "math.rsqrt" => (Unary::Rsqrt, true),
        "math.sin" => (Unary::Sin, true),
        "math.cos" => (Unary::Cos, true),
        "math.tan" => (Unary::Tan, true),
        "math.tanh" => (Unary::Tanh, true),
        "math.erf" => (Unary::Erf, true),
        "math.floor" => (Unary::Floor, true),
        "math.ceil" => (Unary::Ceil, true),
        "math.round" => (Unary::Round, true),
        "math.roundeven" => (Unary::RoundEven, true),
        "math.ctlz" => (Unary::LeadingZeros, false),
        "math.ctpop" => (Unary::PopCount, false),
        "tpu.reciprocal" => (Unary::Reciprocal, true),
        "tpu.logistic" => (Unary::Logistic, true),
        _ => return None,
    })
}

fn conversion(name: &str) -> Option<Conversion> {
    Some(match name {
        "arith.extf" | "tpu.extf" => Conversion::WidenFloat,
        "arith.truncf" | "tpu.truncf" => Conversion::NarrowFloat,
        "arith.extsi" => Conversion::WidenSigned,
        "arith.extui" => Conversion::WidenUnsigned,
        "arith.trunci" => Conversion::NarrowInt,
        "arith.sitofp" | "tpu.sitofp" => Conversion::SignedToFloat,
        "arith.uitofp" | "tpu.uitofp" => Conversion::UnsignedToFloat,
        "arith.fptosi" | "tpu.fptosi" => Conversion::FloatToSigned,
        "arith.fptoui" | "tpu.fptoui" => Conversion::FloatToUnsigned,
        "arith.index_cast" | "arith.index_castui" => Conversion::Index,
        "arith.bitcast" => Conversion::Bits,
        _ => return None,
    })
}

/// The comparison of integers that a predicate's number means.
pub(super) const fn integer_predicate(number: i64) -> Option<Compare> {
    Some(match number {
        0 => Compare::Eq,
        1 => Compare::Ne,
        2 => Compare::Lt,
        3 => Compare::Le,
        4 => Compare::Gt,
        5 => Compare::Ge,
        6 => Compare::LtUnsigned,
        7 => Compare::LeUnsigned,
        8 => Compare::GtUnsigned,
        9 => Compare::GeUnsigned,
        _ => return None,
    })
}
