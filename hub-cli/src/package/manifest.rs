//! `build.toml`: kernel-builder's configuration, edition 5, with one table of ours, `[tessera]`.

use std::path::Path;

use fs_err as fs;
use kernel_ir::diag::SourceLoc;
use serde::Deserialize;
use toml::Spanned;

use crate::error::{Code, Error, Result};
use crate::hub::{RepoId, RepoPath, Version};

use super::check_name;

/// What a package is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The kernel's name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// The licence's identifier.
    pub license: String,
    /// The backends, `tpu` and `cpu`; each gives a variant `torch-BACKEND`.
    pub backends: Vec<String>,
    /// Where the kernel was first published.
    pub upstream: Option<String>,
    /// Where its source is.
    pub source: Option<String>,
    /// Where it is published.
    pub repo: Option<RepoId>,
    /// The ops of the `kernels` crate that it contains.
    pub ops: Vec<String>,
    /// The folder with its own Python files, below that of build.toml.
    pub python: Option<RepoPath>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    general: General,
    torch_noarch: NoArch,
    tessera: Tessera,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct General {
    name: Spanned<String>,
    version: u32,
    edition: Spanned<u32>,
    license: Spanned<String>,
    backends: Spanned<Vec<Spanned<String>>>,
    upstream: Option<Spanned<String>>,
    source: Option<Spanned<String>>,
    hub: Option<Hub>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Hub {
    repo_id: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArch {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tessera {
    ops: Spanned<Vec<Spanned<String>>>,
    python: Option<Spanned<String>>,
}

impl Manifest {
    /// Reads `build.toml` in the folder `package`.
    ///
    /// # Errors
    /// `H0109` if it cannot be read, `H0401` with the line if it is not valid.
    pub fn read(package: &Path) -> Result<Self> {
        let path = package.join("build.toml");
        let text = fs::read_to_string(&path).map_err(|e| {
            Error::io(&path, e)
                .help("a package is a folder with a build.toml, such as kernels/packages/ragged-dot-tpu")
        })?;
        Self::parse(&text, &path)
    }

    /// Reads the text of a build.toml that lies at `path`.
    ///
    /// # Errors
    /// `H0401`, with the line.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let at = Locator { text, path };
        let file: File =
            toml::from_str(text).map_err(|e| at.error(e.span(), e.message().to_owned(), "here"))?;
        let File { general, torch_noarch: NoArch {}, tessera } = file;

        if *general.edition.get_ref() != 5 {
            return Err(at.wrong(&general.edition, "this is not edition 5", "must be 5"));
        }
        check_name(general.name.get_ref()).map_err(|e| at.wrap(&general.name, e))?;
        if general.license.get_ref().trim().is_empty() {
            return Err(at.wrong(
                &general.license,
                "the license is empty",
                "an SPDX identifier in lower case",
            ));
        }
        let backends = distinct(&at, &general.backends, "backends")?;
        for backend in general.backends.get_ref() {
            if !matches!(backend.get_ref().as_str(), "tpu" | "cpu") {
                let message = format!("there is no backend {:?} here", backend.get_ref());
                return Err(at.wrong(backend, message, "must be \"tpu\" or \"cpu\""));
            }
        }
        let ops = distinct(&at, &tessera.ops, "ops")?;
        for link in [&general.upstream, &general.source].into_iter().flatten() {
            if !is_git_url(link.get_ref()) {
                return Err(at.wrong(
                    link,
                    "this is not the URL of a git repository",
                    "https://, git://, ssh:// or user@host:path",
                ));
            }
        }
        let repo = general.hub.map(|hub| hub.repo_id.get_ref().parse().map_err(|e| at.wrap(&hub.repo_id, e)));
        let python =
            tessera.python.map(|path| RepoPath::parse(path.get_ref()).map_err(|e| at.wrap(&path, e)));
        Ok(Self {
            name: general.name.into_inner(),
            version: Version(general.version),
            license: general.license.into_inner(),
            backends,
            upstream: general.upstream.map(Spanned::into_inner),
            source: general.source.map(Spanned::into_inner),
            repo: repo.transpose()?,
            ops,
            python: python.transpose()?,
        })
    }

    /// The variants that a build makes. `torch-universal` is what JAX users without torch load.
    pub fn variants(&self) -> Vec<String> {
        let named = self.backends.iter().map(|backend| format!("torch-{backend}"));
        let mut variants: Vec<_> = named.chain(["torch-universal".to_owned()]).collect();
        variants.sort();
        variants
    }
}

fn distinct(at: &Locator<'_>, list: &Spanned<Vec<Spanned<String>>>, what: &str) -> Result<Vec<String>> {
    if list.get_ref().is_empty() {
        return Err(at.wrong(list, format!("there are no {what}"), "at least one"));
    }
    let mut seen: Vec<String> = Vec::new();
    for item in list.get_ref() {
        if seen.contains(item.get_ref()) {
            return Err(at.wrong(
                item,
                format!("{:?} stands twice in {what}", item.get_ref()),
                "the second time",
            ));
        }
        seen.push(item.get_ref().clone());
    }
    Ok(seen)
}

/// Whether `kernels` accepts `url` as that of a git repository.
fn is_git_url(url: &str) -> bool {
    let schemes = ["https://", "http://", "git://", "ssh://", "git+ssh://", "git+https://", "git+http://"];
    let scp = url
        .split_once(':')
        .is_some_and(|(host, path)| host.contains('@') && !path.is_empty() && !path.starts_with("//"));
    !url.contains(char::is_whitespace)
        && (scp || schemes.iter().any(|s| url.strip_prefix(s).is_some_and(|rest| !rest.is_empty())))
}

/// Turns byte ranges of a text into places that errors can show.
struct Locator<'a> {
    text: &'a str,
    path: &'a Path,
}

impl Locator<'_> {
    fn wrong<T>(&self, value: &Spanned<T>, message: impl Into<String>, remark: &str) -> Error {
        self.error(Some(value.span()), message.into(), remark)
    }

    /// An error of another rule, at the place where the value stands.
    fn wrap<T>(&self, value: &Spanned<T>, error: Error) -> Error {
        let text = error.to_string();
        let message = text.split_once("] ").map_or(text.as_str(), |(_, message)| message).to_owned();
        let located = self.error(Some(value.span()), message, "here");
        match error.help_text() {
            Some(help) => located.help(help),
            None => located,
        }
    }

    fn error(&self, span: Option<std::ops::Range<usize>>, message: String, remark: &str) -> Error {
        let before = &self.text[..span.map_or(0, |s| s.start).min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let file = self.path.to_string_lossy().into();
        Error::new(Code::BuildToml, message)
            .at(SourceLoc { file, line: line as u32, column: column as u32 }, remark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[general]\nname = \"add-one\"\nversion = 2\nedition = 5\nlicense = \"mit\"\nbackends = [\"tpu\", \"cpu\"]\n\
        [general.hub]\nrepo-id = \"acme/add-one\"\n[torch-noarch]\n[tessera]\nops = [\"ragged_dot\"]\npython = \"python\"\n";

    #[test]
    fn a_manifest_names_its_variants() {
        let manifest = Manifest::parse(GOOD, Path::new("build.toml")).unwrap();
        assert_eq!(manifest.version, Version(2));
        assert_eq!(manifest.repo.as_ref().unwrap().to_string(), "acme/add-one");
        assert_eq!(manifest.variants(), ["torch-cpu", "torch-tpu", "torch-universal"]);
    }

    #[test]
    fn errors_name_the_line() {
        for (from, to, place, words) in [
            ("license", "licence", ":5:1", "licence"),
            ("edition = 5", "edition = 4", ":4:11", "edition 5"),
            ("add-one\"\nversion", "Add\"\nversion", ":2:8", "cannot name a kernel"),
            ("\"cpu\"]", "\"cuda\"]", ":6:20", "cuda"),
            ("\"cpu\"]", "\"tpu\"]", ":6:20", "twice"),
            ("acme/add-one", "acme", ":8:11", "OWNER/NAME"),
            ("\"python\"", "\"../x\"", ":12:10", "`..`"),
            ("[\"ragged_dot\"]", "[]", ":11:7", "no ops"),
            ("version = 2", "version = ", ":3:", ""),
            ("[torch-noarch]\n", "", ":1:1", "torch-noarch"),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD);
            let error = Manifest::parse(&text, Path::new("build.toml")).unwrap_err();
            assert_eq!(error.code(), Code::BuildToml, "{to}");
            let shown = error.to_json().to_string();
            assert!(shown.contains(&format!("build.toml{place}")), "{to}: {shown}");
            assert!(shown.contains(words), "{to}: {shown}");
        }
    }
}
