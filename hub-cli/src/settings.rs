//! Flags and environment, resolved into plain values; what comes after sees neither.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::error::{Code, Error, Result};
use crate::hub::{Cache, Client, Endpoint, Patience, Token};
use crate::package::signing::TrustStore;

/// The environment variables of a process; tests make their own.
#[derive(Clone, Debug, Default)]
pub struct Environment(HashMap<String, String>);

impl Environment {
    /// Those of this process.
    pub fn of_process() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
                .collect(),
        )
    }

    /// A value that is set and not empty.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|v| !v.is_empty())
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        let value = self.get(name)?;
        match (value.strip_prefix("~/"), self.get("HOME")) {
            (Some(rest), Some(home)) => Some(Path::new(home).join(rest)),
            _ => Some(value.into()),
        }
    }

    /// Whether a switch is on, in the spellings that `huggingface_hub` takes.
    fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|v| matches!(v.to_ascii_uppercase().as_str(), "1" | "ON" | "YES" | "TRUE"))
    }

    /// HF_HOME or its default.
    fn hf_home(&self) -> PathBuf {
        let cache = || Some(self.path("XDG_CACHE_HOME")?.join("huggingface"));
        let home = || Some(self.path("HOME")?.join(".cache/huggingface"));
        self.path("HF_HOME").or_else(cache).or_else(home).unwrap_or_else(|| ".cache/huggingface".into())
    }

    /// The cache folder: that of `kernels`, else that of the Hub.
    fn cache(&self) -> PathBuf {
        let named = ["KERNELS_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"]
            .into_iter()
            .find_map(|name| self.path(name));
        named.unwrap_or_else(|| self.hf_home().join("hub"))
    }

    /// Where this program keeps what it can make again: TESSERA_CACHE, or its place among the user's caches.
    pub(crate) fn own_cache(&self) -> PathBuf {
        let cache = || Some(self.path("XDG_CACHE_HOME")?.join("tessera"));
        let home = || Some(self.path("HOME")?.join(".cache/tessera"));
        self.path("TESSERA_CACHE").or_else(cache).or_else(home).unwrap_or_else(|| ".cache/tessera".into())
    }

    /// Where this program keeps what the user decided: TESSERA_CONFIG, or its place among the user's settings.
    pub(crate) fn own_config(&self) -> PathBuf {
        let config = || Some(self.path("XDG_CONFIG_HOME")?.join("tessera"));
        let home = || Some(self.path("HOME")?.join(".config/tessera"));
        self.path("TESSERA_CONFIG").or_else(config).or_else(home).unwrap_or_else(|| ".config/tessera".into())
    }

    /// The keys that the user trusts.
    ///
    /// # Errors
    /// `H0113` and `H0114`, as [`TrustStore::read`].
    pub(crate) fn trust(&self) -> Result<TrustStore> {
        TrustStore::read(&self.own_config().join("trust.toml"))
    }

    /// The token, from HF_TOKEN or else from its file.
    fn token(&self) -> Result<Option<Token>> {
        if let Some(token) =
            ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"].into_iter().find_map(|name| self.get(name))
        {
            return Token::parse(token).map(Some);
        }
        let path = self.path("HF_TOKEN_PATH").unwrap_or_else(|| self.hf_home().join("token"));
        match fs::read_to_string(&path) {
            Ok(text) if text.trim().is_empty() => Ok(None),
            Ok(text) => Token::parse(&text).map(Some),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(&path, e)),
        }
    }
}

/// What the flags of the command line may say about the hub.
#[derive(Clone, Debug, Default)]
pub struct HubFlags {
    /// Instead of HF_ENDPOINT.
    pub endpoint: Option<String>,
    /// Instead of HF_HUB_CACHE.
    pub cache_dir: Option<PathBuf>,
    /// As HF_HUB_OFFLINE=1.
    pub offline: bool,
    /// Send the token over plain http to another machine.
    pub allow_http_token: bool,
}

/// Which hub, as whom, with which cache.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// The hub.
    pub endpoint: Endpoint,
    /// The token to send, if any.
    pub token: Option<Token>,
    /// There is a token, but it would travel unencrypted.
    pub token_withheld: bool,
    /// Where downloads are kept.
    pub cache: Cache,
    /// Use the cache alone.
    pub offline: bool,
    /// Retries and time limits.
    pub patience: Patience,
    /// The Python to try packages with, instead of `python3`.
    pub python: Option<PathBuf>,
}

impl HubSettings {
    /// Settings from the environment alone.
    ///
    /// # Errors
    /// `H0104` and `H0105` for values that cannot be used.
    pub fn from_environment(environment: &Environment) -> Result<Self> {
        Self::resolve(&HubFlags::default(), environment)
    }

    /// Settings from flags, and from the environment where they are silent.
    ///
    /// # Errors
    /// `H0104` and `H0105` for values that cannot be used.
    pub fn resolve(flags: &HubFlags, environment: &Environment) -> Result<Self> {
        let endpoint =
            flags.endpoint.as_deref().or_else(|| environment.get("HF_ENDPOINT")).unwrap_or(Endpoint::DEFAULT);
        let endpoint = Endpoint::parse(endpoint)?;
        let token = environment.token()?;
        let may_send = endpoint.is_private_channel() || flags.allow_http_token;
        Ok(Self {
            token_withheld: token.is_some() && !may_send,
            token: token.filter(|_| may_send),
            endpoint,
            cache: Cache::new(flags.cache_dir.clone().unwrap_or_else(|| environment.cache()))
                .trusting(environment.trust()?),
            offline: flags.offline || environment.is_on("HF_HUB_OFFLINE"),
            patience: Patience::default(),
            python: environment.path("TESSERA_PYTHON"),
        })
    }

    /// A client for these settings.
    ///
    /// # Errors
    /// `H0201`, as [`Client::new`].
    pub fn client(&self) -> Result<Client> {
        Client::new(self.endpoint.clone(), self.token.clone(), self.patience)
    }

    /// The token for a write.
    ///
    /// # Errors
    /// `H0106` if it would travel unencrypted, `H0211` in offline mode.
    pub fn token_for_writing(&self) -> Result<Option<&Token>> {
        if self.offline {
            return Err(Error::new(Code::Offline, "nothing can be published in offline mode")
                .help("unset HF_HUB_OFFLINE"));
        }
        if self.token_withheld {
            let message = format!(
                "{} is plain http on another machine: the token would travel unencrypted",
                self.endpoint
            );
            return Err(
                Error::new(Code::TokenOverHttp, message).help("use https, or pass --allow-http-token")
            );
        }
        Ok(self.token.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        Environment(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    fn resolve(pairs: &[(&str, &str)]) -> HubSettings {
        HubSettings::from_environment(&environment(pairs)).unwrap()
    }

    #[test]
    fn the_cache_is_found_as_python_finds_it() {
        for (pairs, folder) in [
            (&[("HOME", "/h")][..], "/h/.cache/huggingface/hub"),
            (&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")], "/x/huggingface/hub"),
            (&[("HF_HOME", "~/hf"), ("HOME", "/h")], "/h/hf/hub"),
            (&[("HF_HOME", "/f"), ("HF_HUB_CACHE", "/c")], "/c"),
            (&[("HF_HUB_CACHE", "/c"), ("KERNELS_CACHE", "/k")], "/k"),
            (&[("HF_HUB_CACHE", ""), ("HOME", "/h")], "/h/.cache/huggingface/hub"),
        ] {
            assert_eq!(resolve(pairs).cache.root(), Path::new(folder), "{pairs:?}");
        }
    }

    #[test]
    fn the_token_comes_from_its_variable_or_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        assert_eq!(resolve(&[("HF_HOME", home)]).token, None);
        fs::write(folder.path().join("token"), "from_file\n").unwrap();
        assert_eq!(resolve(&[("HF_HOME", home)]).token, Some(Token::parse("from_file").unwrap()));
        assert_eq!(resolve(&[("HF_HOME", home), ("HF_TOKEN", "t")]).token, Some(Token::parse("t").unwrap()));
    }

    #[test]
    fn the_token_is_not_sent_in_the_clear_to_another_machine() {
        let open = [("HF_TOKEN", "t"), ("HF_ENDPOINT", "http://hub.lan:8000")];
        let settings = resolve(&open);
        assert_eq!((settings.token.clone(), settings.token_withheld), (None, true));
        assert_eq!(settings.token_for_writing().unwrap_err().code(), Code::TokenOverHttp);
        let forced = HubFlags { allow_http_token: true, ..HubFlags::default() };
        assert!(HubSettings::resolve(&forced, &environment(&open)).unwrap().token.is_some());
        assert!(resolve(&[("HF_TOKEN", "t"), ("HF_ENDPOINT", "http://127.0.0.1:1")]).token.is_some());
    }

    #[test]
    fn offline_is_a_switch() {
        assert!(resolve(&[("HF_HUB_OFFLINE", "1")]).offline);
        assert!(!resolve(&[("HF_HUB_OFFLINE", "0")]).offline);
    }
}
