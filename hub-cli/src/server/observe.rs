//! What the operator can see: a log line and a count for every request, and whether the hub is well.
//!
//! Nothing of a request's headers or query is logged: tokens travel in the one, signed links in the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::App;
use super::access::Caller;
use super::respond::{Answer, Refusal};
use super::routes::blocking;

/// The media type of OpenMetrics text.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The counts since the hub was started.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
    /// Numbers the requests.
    next: AtomicU64,
}

/// The route is the pattern, such as `/api/kernels/{owner}/{name}/refs`, so there are few of them and no
/// name of a repository is among them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("kernels_hub");
        let requests = Family::<Labels, Counter>::default();
        // From one millisecond to about a minute.
        let buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 4.0, 9));
        let seconds = Family::<Route, Histogram, _>::new_with_constructor(buckets);
        registry.register("requests", "Requests that were answered", requests.clone());
        registry.register_with_unit(
            "request_duration",
            "Time until the head of the answer",
            Unit::Seconds,
            seconds.clone(),
        );
        Self { registry, requests, seconds, next: AtomicU64::new(1) }
    }
}

/// Counts and logs a request.
pub(super) async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = format!("{:x}", app.metrics.next.fetch_add(1, Ordering::Relaxed));
    let method = request.method().as_str().to_owned();
    let path = request.uri().path().to_owned();
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();

    let mut response = next.run(request).await;

    let (elapsed, status) = (begun.elapsed(), response.status().as_u16());
    app.metrics.seconds.get_or_create(&Route { route: route.clone() }).observe(elapsed.as_secs_f64());
    // Methods that HTTP does not know would make a label each.
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE"].contains(&method.as_str());
    let labels = Labels { method: if known { method.clone() } else { "other".into() }, route, status };
    app.metrics.requests.get_or_create(&labels).inc();
    let user = response.extensions().get::<Caller>().map_or("", Caller::name).to_owned();
    let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(id, method, path, status, milliseconds, user, "request");
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
    }
    response
}

/// `GET /metrics`, in the text format of OpenMetrics, which Prometheus reads.
pub(super) async fn metrics(State(app): State<App>) -> Answer {
    let mut text = String::new();
    encode(&mut text, &app.metrics.registry).map_err(|_| Refusal::panicked())?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}

/// `GET /healthz`: 200 if the storage can be read.
pub(super) async fn healthz(State(app): State<App>) -> Answer {
    blocking(move || {
        app.store.repos_of("health")?;
        Ok((StatusCode::OK, "ok\n").into_response())
    })
    .await
}
