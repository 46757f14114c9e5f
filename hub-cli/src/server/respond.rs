//! How the embedded hub answers when it refuses: status, the protocol's error headers, JSON.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::error::{Code, Error};

/// The result of a request handler.
pub(super) type Answer<T = Response> = Result<T, Refusal>;

/// A request that is answered with an error.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    error: Error,
}

impl Refusal {
    /// A refusal for want of a valid token: 401.
    pub(super) fn no_token(message: &str) -> Self {
        Self { status: StatusCode::UNAUTHORIZED, error: Error::new(Code::NotAllowed, message) }
    }

    /// A request that breaks the protocol: 400.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Error::new(Code::BadRequest, message).into()
    }

    /// A bug of this hub.
    pub(super) fn panicked() -> Self {
        Error::new(Code::Stored, "the hub failed while it handled this request").into()
    }

    /// The status that it is answered with.
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// What is wrong, in a sentence.
    pub(super) fn message(&self) -> String {
        self.error.to_string()
    }

    /// The refusal as git-lfs shows it for one object of many.
    pub(super) fn to_lfs(&self) -> serde_json::Value {
        serde_json::json!({"code": self.status.as_u16(), "message": self.error.to_string()})
    }

    /// A part of the Hub's API that this hub does not have: 404, so that clients fall back where they can.
    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Error::new(Code::Unsupported, message).into()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match error.code() {
            Code::RepoId
            | Code::Revision
            | Code::Path
            | Code::BadRequest
            | Code::File
            | Code::ObjectId
            | Code::Size
            | Code::Content => StatusCode::BAD_REQUEST,
            Code::RepoNotFound | Code::RevisionNotFound | Code::FileNotFound | Code::Unsupported => {
                StatusCode::NOT_FOUND
            }
            Code::NotAllowed | Code::Quota => StatusCode::FORBIDDEN,
            Code::Exists | Code::Conflict => StatusCode::CONFLICT,
            Code::Moved => StatusCode::PRECONDITION_FAILED,
            Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, error }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let doc = self.error.code().doc();
        if self.status.is_server_error() {
            tracing::error!(error = %self.error, "a request failed");
        }
        // The three names that clients of the Hub tell apart; without one they take a 404 for a broken hub.
        let name = match self.error.code() {
            Code::RepoNotFound => "RepoNotFound",
            Code::RevisionNotFound => "RevisionNotFound",
            Code::FileNotFound => "EntryNotFound",
            _ => doc.code,
        };
        let body = Json(serde_json::json!({"error": self.error.to_string(), "code": doc.code}));
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(HeaderName::from_static("x-error-code"), HeaderValue::from_static(name));
        let visible: String =
            self.error.to_string().chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect();
        if let Ok(message) = HeaderValue::from_str(&visible) {
            headers.insert(HeaderName::from_static("x-error-message"), message);
        }
        response
    }
}
