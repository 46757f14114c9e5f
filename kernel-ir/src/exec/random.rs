//! The random generator of a core: Philox 4x32-10 (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3",
//! SC 2011), keyed by the seeds, counting blocks of four words.
//!
//! The bits are good and the same on every machine; they are not those of the TPU's generator, which no document defines.

/// The multipliers of the two halves of a round.
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// What the key grows by each round: the golden ratio, and the square root of 3 less 1.
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// The state of a generator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Philox {
    key: [u32; 2],
    counter: u64,
    /// The upper half of each counter: what seeds beyond the second say.
    stream: u64,
}

impl Philox {
    /// A generator with these seeds: the first two are the key, the others choose the stream.
    pub(super) fn seeded(seeds: &[i32]) -> Self {
        let word = |i: usize| seeds.get(i).map_or(0, |s| *s as u32);
        let more = seeds.iter().skip(2);
        let stream = more.fold(0, |h: u64, s| {
            (h ^ u64::from(*s as u32)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        Self { key: [word(0), word(1)], counter: 0, stream }
    }

    /// Fills a tile. A tile that does not end with a block leaves the rest of it unused.
    pub(super) fn fill(&mut self, out: &mut [i32]) {
        for four in out.chunks_mut(4) {
            let halves = [self.counter, self.stream];
            let words = halves.map(|h| [h as u32, (h >> 32) as u32]).concat();
            let block = philox([words[0], words[1], words[2], words[3]], self.key);
            four.iter_mut().zip(block).for_each(|(o, x)| *o = x as i32);
            self.counter = self.counter.wrapping_add(1);
        }
    }
}

/// Ten rounds over one counter.
fn philox(mut x: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [a, b] = [0, 1].map(|i| u64::from(MULTIPLIERS[i]) * u64::from(x[2 * i]));
        let (high, low) = ([(a >> 32) as u32, (b >> 32) as u32], [a as u32, b as u32]);
        x = [high[1] ^ x[1] ^ key[0], low[1], high[0] ^ x[3] ^ key[1], low[0]];
        key = [0, 1].map(|i| u32::wrapping_add(key[i], WEYL[i]));
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_numbers() {
        // Random123's known answers (`kat_vectors`, philox4x32 10).
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn seeds_and_their_number_matter() {
        let first = |seeds: &[i32]| {
            let mut out = [0; 8];
            Philox::seeded(seeds).fill(&mut out);
            out
        };
        let all = [first(&[1]), first(&[2]), first(&[1, 1]), first(&[1, 0, 1]), first(&[1, 0, 2])];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b), "{i}");
        }
    }
}
