//! The Python files that every package carries, built into this program.

macro_rules! embed {
    ($($name:literal)*) => {
        /// Name and text of each file.
        pub(super) const FILES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../python/", $name))),)*
        ];
    };
}

embed! {
    "_errors.py"
    "_expr.py"
    "_index.py"
    "_jax.py"
    "_load.py"
    "_package.py"
    "_stablehlo.py"
    "_torch.py"
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/python");
        let names = fs_err::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<_> = names.filter(|n| n.ends_with(".py")).collect();
        files.sort();
        assert_eq!(files, super::FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
