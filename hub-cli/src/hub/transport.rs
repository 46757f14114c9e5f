//! HTTP requests with the care that a hub needs: retries, time limits, size limits, redirects by hand.

use std::io::Read;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::blocking::{Client as Http, ClientBuilder, Response};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION, RANGE, USER_AGENT};
use reqwest::{Method, StatusCode, Url, redirect};

use crate::error::{Code, Error, Result};

use super::endpoint::{Endpoint, Token, is_this_machine};
use super::refusal::{excerpt, innermost, printable, refused, retry_after};

/// The most redirects in a row.
const MAX_REDIRECTS: usize = 5;
/// The largest JSON answer in bytes; the Hub's pages hold a thousand entries.
pub(crate) const MAX_JSON: u64 = 32 << 20;

/// How patient a client is.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How often a request is made before it counts as failed.
    pub attempts: u32,
    /// The pause before the second attempt; it doubles from then on.
    pub pause: Duration,
    /// How long to wait for a connection.
    pub connect: Duration,
    /// How long to wait for the next bytes of an answer.
    pub read: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 4,
            pause: Duration::from_millis(250),
            connect: Duration::from_secs(10),
            read: Duration::from_secs(60),
        }
    }
}

/// Sends requests to one hub.
#[derive(Debug)]
pub(crate) struct Transport {
    /// For http; it does not read the system's certificates, which takes longer than a request.
    plain: Http,
    /// For https, once it is needed.
    secure: OnceLock<Http>,
    pub(crate) endpoint: Endpoint,
    token: Option<Token>,
    patience: Patience,
}

/// An answer with a status of success.
pub(crate) struct Answer {
    response: Response,
    /// Whether the hub itself answered, not a store that it redirected to.
    pub(crate) from_hub: bool,
}

impl Transport {
    pub(crate) fn new(endpoint: Endpoint, token: Option<Token>, patience: Patience) -> Result<Self> {
        let plain = build(patience, |http| http.tls_certs_only([]))?;
        Ok(Self { plain, secure: OnceLock::new(), endpoint, token, patience })
    }

    /// The client that reaches `url`.
    fn http(&self, url: &Url) -> Result<&Http> {
        if url.scheme() != "https" {
            return Ok(&self.plain);
        }
        match self.secure.get() {
            Some(http) => Ok(http),
            None => {
                let http = build(self.patience, |http| http)?;
                Ok(self.secure.get_or_init(|| http))
            }
        }
    }

    /// Makes a GET request and follows it to an answer of success.
    ///
    /// `what` names the thing that is asked for in messages, such as `acme/add-one`.
    pub(crate) fn get(&self, url: Url, what: &str) -> Result<Answer> {
        self.get_from(url, what, 0)
    }

    /// The same for the bytes from `offset` on; the hub may send all of them all the same, see
    /// [`Answer::starts_at`].
    pub(crate) fn get_from(&self, url: Url, what: &str, offset: u64) -> Result<Answer> {
        let mut pause = self.patience.pause;
        let mut attempt = 1;
        loop {
            let (failure, wait) = match self.follow(url.clone(), offset) {
                Ok(answer) if answer.response.status().is_success() => return answer.plain(what),
                Ok(answer) => {
                    let (status, wait) = (answer.response.status(), retry_after(answer.response.headers()));
                    let failure = refused(answer.response, what);
                    if !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS {
                        return Err(failure);
                    }
                    (failure, wait)
                }
                Err(failure) if failure.code() == Code::Unreachable => (failure, None),
                Err(failure) => return Err(failure),
            };
            if attempt >= self.patience.attempts {
                return Err(failure);
            }
            std::thread::sleep(wait.unwrap_or_else(|| jittered(pause)));
            pause *= 2;
            attempt += 1;
        }
    }

    /// GETs a JSON value of at most [`MAX_JSON`] bytes, with the answer's headers.
    pub(crate) fn get_json<T: serde::de::DeserializeOwned>(
        &self,
        url: Url,
        what: &str,
    ) -> Result<(T, HeaderMap)> {
        let mut attempt = 1;
        loop {
            let answer = self.get(url.clone(), what)?;
            let headers = answer.response.headers().clone();
            match self.json(answer.response, what) {
                // A proxy may cut an answer short.
                Err(e) if e.code() == Code::Unreachable && attempt < self.patience.attempts => attempt += 1,
                result => return Ok((result?, headers)),
            }
            std::thread::sleep(jittered(self.patience.pause));
        }
    }

    /// Sends `body` to the hub, once: what a second attempt would do is not known here.
    pub(crate) fn post<T: serde::de::DeserializeOwned>(
        &self,
        url: Url,
        what: &str,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<T> {
        let response = self.post_for_status(url, what, content_type, body)?;
        self.json(response, what)
    }

    /// The same where the protocol promises nothing but a status: the answer of success.
    pub(crate) fn post_for_status(
        &self,
        url: Url,
        what: &str,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<Response> {
        let mut request = self.http(&url)?.post(url.clone()).header(CONTENT_TYPE, content_type).body(body);
        if let Some(token) = self.token.as_ref().filter(|_| self.endpoint.is_origin_of(&url)) {
            request = request.bearer_auth(token.reveal());
        }
        let response = self.send(request, &url)?;
        if response.status().is_success() { Ok(response) } else { Err(refused(response, what)) }
    }

    /// Puts `body` where the hub said; the address itself is the permission, so no token goes along.
    pub(crate) fn put(&self, url: Url, what: &str, body: Vec<u8>) -> Result<()> {
        let response = self.send(self.http(&url)?.put(url.clone()).body(body), &url)?;
        if response.status().is_success() { Ok(()) } else { Err(refused(response, what)) }
    }

    /// An address that the hub named, if what is sent there travels as safely as to the hub.
    pub(crate) fn link(&self, address: &str) -> Result<Url> {
        let url = Url::parse(address).ok().filter(|url| {
            url.scheme() == "https"
                || (url.scheme() == "http" && (!self.endpoint.is_private_channel() || is_this_machine(url)))
        });
        url.ok_or_else(|| {
            let address = printable(address);
            Error::new(
                Code::Redirect,
                format!("the hub wants the file sent to {address:?}, which is not safe"),
            )
        })
    }

    /// The body of an answer as JSON of at most [`MAX_JSON`] bytes.
    fn json<T: serde::de::DeserializeOwned>(&self, response: Response, what: &str) -> Result<T> {
        let mut body = Vec::new();
        response.take(MAX_JSON + 1).read_to_end(&mut body).map_err(|e| {
            Error::new(Code::Unreachable, format!("the answer about {what} broke off: {e}")).because(e)
        })?;
        if body.len() as u64 > MAX_JSON {
            return Err(Error::new(
                Code::TooLarge,
                format!("the answer about {what} is larger than {MAX_JSON} bytes"),
            ));
        }
        serde_json::from_slice(&body).map_err(|e| {
            Error::new(Code::Protocol, format!("the answer about {what} is not what the protocol says: {e}"))
                .help(format!("is {} a hub? It answered {}", self.endpoint, excerpt(&body)))
        })
    }

    /// Follows redirects; the token goes to the hub only, and nothing falls back from https to http.
    fn follow(&self, mut url: Url, offset: u64) -> Result<Answer> {
        for _ in 0..=MAX_REDIRECTS {
            let from_hub = self.endpoint.is_origin_of(&url);
            let mut request = self.http(&url)?.request(Method::GET, url.clone());
            if offset > 0 {
                request = request.header(RANGE, format!("bytes={offset}-"));
            }
            if let Some(token) = self.token.as_ref().filter(|_| from_hub) {
                request = request.bearer_auth(token.reveal());
            }
            let response = self.send(request, &url)?;
            if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
                return Ok(Answer { response, from_hub });
            }
            let refused = |why: &str| Error::new(Code::Redirect, format!("{url} redirects {why}"));
            let location = response
                .headers()
                .get(LOCATION)
                .and_then(|l| l.to_str().ok())
                .ok_or_else(|| refused("to nowhere"))?;
            let next = url.join(location).map_err(|_| refused("to what is not an address"))?;
            let weaker = next.scheme() != "https"
                && !(next.scheme() == "http" && (url.scheme() == "http" || is_this_machine(&next)));
            if weaker {
                return Err(refused(&format!("to {next}, which is not encrypted")));
            }
            url = next;
        }
        Err(Error::new(Code::Redirect, format!("{url} redirects more than {MAX_REDIRECTS} times")))
    }

    fn send(&self, request: reqwest::blocking::RequestBuilder, url: &Url) -> Result<Response> {
        request.send().map_err(|e| {
            let why = if e.is_timeout() { "no answer in time".to_owned() } else { innermost(&e) };
            Error::new(
                Code::Unreachable,
                format!("{} cannot be reached: {why}", url.host_str().unwrap_or("the hub")),
            )
            .help(format!("is HF_ENDPOINT right? It is {}", self.endpoint))
            .because(e)
        })
    }
}

impl Answer {
    /// The answer's headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// A header's text, if it is there and is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// The size that the answer announces.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    /// The place of its first byte in the whole, and the size of the whole, of a part that was asked for.
    pub(crate) fn starts_at(&self) -> Option<(u64, u64)> {
        if self.response.status() != StatusCode::PARTIAL_CONTENT {
            return None;
        }
        let (range, size) = self.header("content-range")?.strip_prefix("bytes ")?.split_once('/')?;
        Some((range.split_once('-')?.0.parse().ok()?, size.parse().ok()?))
    }

    /// Refuses an answer in an encoding that was not asked for.
    fn plain(self, what: &str) -> Result<Self> {
        match self.headers().get(CONTENT_ENCODING) {
            Some(encoding) if encoding != "identity" => {
                let encoding = printable(&String::from_utf8_lossy(encoding.as_bytes()));
                let message = format!("the answer about {what} is encoded as {encoding:?}, unasked");
                Err(Error::new(Code::Protocol, message))
            }
            _ => Ok(self),
        }
    }
}

impl Read for Answer {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.response.read(buffer)
    }
}

/// A client that follows nothing by itself.
fn build(patience: Patience, choose: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<Http> {
    let agent = concat!("kernels-cli/", env!("CARGO_PKG_VERSION"));
    let http = Http::builder()
        .redirect(redirect::Policy::none())
        // What is compressed may unfold without end; sizes and ids are of the plain bytes.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .connect_timeout(patience.connect)
        // In the blocking client this limits each wait for bytes, not the whole answer.
        .timeout(patience.read)
        .default_headers(HeaderMap::from_iter([(
            USER_AGENT,
            agent.parse().expect("a version is visible ASCII"),
        )]));
    choose(http).build().map_err(|e| Error::new(Code::Unreachable, "no HTTP client can be made").because(e))
}

/// A pause between half of `pause` and one and a half of it, so that clients do not come back together.
fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    pause.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX))
}
