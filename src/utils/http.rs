//! The one HTTP client builder: TLS provider, user agent, proxies, redirects, connect timeout.
//!
//! No total timeout is ever set: answers stream for as long as they stream, and whoever reads a body bounds its
//! idle time and its size. Nothing is built before the first request, so that commands without network do not pay
//! for it. Errors never carry a URL: a query may hold a key.

use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::{Method, RequestBuilder, Url};

/// How long a connection may take to be made, unless configured.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 10;
/// How many clients are shared; the oldest makes way.
const MAX_SHARED: usize = 16;

/// Where redirects may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redirects {
    /// Only to the same scheme, host and port: request headers may hold a key.
    #[default]
    SameOrigin,
    /// Anywhere; for public pages, where nothing secret is sent.
    Anywhere,
}

/// Which proxy is used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Proxy {
    /// What `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    #[default]
    Environment,
    /// None, whatever the environment says.
    Direct,
    /// This one, for every URL.
    Url(String),
}

impl Proxy {
    /// From a configured value: absent is the environment, `-` is none.
    pub fn from_config(value: Option<&str>) -> Self {
        match value.map(str::trim) {
            None | Some("") => Self::Environment,
            Some("-") => Self::Direct,
            Some(url) => Self::Url(url.to_owned()),
        }
    }
}

/// What a client is built from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpOptions {
    /// [`CONNECT_TIMEOUT`] when absent.
    pub connect_timeout: Option<Duration>,
    /// Which proxy.
    pub proxy: Proxy,
    /// `coyote/<version>` when absent.
    pub user_agent: Option<String>,
    /// Which redirects are followed; at most ten.
    pub redirects: Redirects,
}

/// Why no request could be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// This machine trusts nobody, so no https server can be verified.
    #[error("this machine has no CA certificates, so https servers cannot be verified")]
    NoCertificates,
    /// The client could not be built at all: a proxy URL or user agent is unusable.
    #[error("cannot set up an HTTP client: {0}")]
    Build(String),
    /// The text is not an http or https URL.
    #[error("`{0}` is not an http or https URL")]
    Url(String),
}

impl HttpError {
    /// What to do about it, when coyote knows.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoCertificates => Some(
                "install the package `ca-certificates` (e.g. `apt-get install ca-certificates`)",
            ),
            Self::Build(_) | Self::Url(_) => None,
        }
    }
}

/// An HTTP client that is built when it is first used. Share it: it pools connections.
#[derive(Debug)]
pub struct Http {
    options: HttpOptions,
    built: OnceLock<Result<Built, HttpError>>,
}

#[derive(Debug)]
struct Built {
    client: reqwest::Client,
    trusts_anyone: bool,
}

impl Http {
    /// Costs nothing until the first request.
    pub fn new(options: HttpOptions) -> Self {
        Self {
            options,
            built: OnceLock::new(),
        }
    }

    /// The client of these options that everybody shares who asks for them: the turns of a conversation go over one
    /// connection, and the machine's certificates are read once.
    pub fn shared(options: HttpOptions) -> Arc<Self> {
        static SHARED: Mutex<Vec<Arc<Http>>> = Mutex::new(Vec::new());
        let mut shared = SHARED.lock();
        if let Some(known) = shared.iter().find(|known| known.options == options) {
            return Arc::clone(known);
        }
        if shared.len() >= MAX_SHARED {
            shared.remove(0);
        }
        let new = Arc::new(Self::new(options));
        shared.push(Arc::clone(&new));
        new
    }

    /// Starts a request. An https URL on a machine without CA certificates is refused here, with a reason a
    /// person can act on.
    pub fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, HttpError> {
        let url = parse(url)?;
        let built = self
            .built
            .get_or_init(|| build(&self.options))
            .as_ref()
            .map_err(HttpError::clone)?;
        if url.scheme() == "https" && !built.trusts_anyone {
            return Err(HttpError::NoCertificates);
        }
        Ok(built.client.request(method, url))
    }
}

fn parse(text: &str) -> Result<Url, HttpError> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        _ => Err(HttpError::Url(redact_url(text))),
    }
}

/// `url` without credentials and with the values of its query replaced by `…`: fit to be shown and logged.
pub fn redact_url(url: &str) -> String {
    let without_fragment = url.split('#').next().unwrap_or_default();
    let (base, query) = match without_fragment.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (without_fragment, None),
    };
    let mut shown = match base.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => base.to_owned(),
    };
    if let Some(query) = query {
        let names = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, _)) => format!("{name}=…"),
                None => "…".to_owned(),
            })
            .collect::<Vec<_>>();
        shown.push('?');
        shown.push_str(&names.join("&"));
    }
    shown
}

/// Why a request failed, in one line and without the URL.
pub fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut causes = vec![error.to_string()];
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        causes.push(inner.to_string());
        cause = inner.source();
    }
    // The outer layers only say that a request failed, which whoever shows this has said already.
    let wrapper = |text: &&String| {
        [
            "error sending request",
            "client error",
            "error decoding response body",
        ]
        .iter()
        .any(|prefix| text.starts_with(prefix))
    };
    let telling = causes
        .iter()
        .skip_while(wrapper)
        .cloned()
        .collect::<Vec<_>>();
    if telling.is_empty() {
        return causes.join(": ");
    }
    telling.join(": ")
}

fn build(options: &HttpOptions) -> Result<Built, HttpError> {
    install_tls_provider();
    match configured(options)?.build() {
        Ok(client) => Ok(Built {
            client,
            trusts_anyone: true,
        }),
        // The usual reason is that no CA certificate was found; plain http must still work then.
        Err(error) => match configured(options)?.tls_certs_only(Vec::new()).build() {
            Ok(client) => Ok(Built {
                client,
                trusts_anyone: false,
            }),
            Err(_) => Err(HttpError::Build(describe(error))),
        },
    }
}

fn configured(options: &HttpOptions) -> Result<reqwest::ClientBuilder, HttpError> {
    let agent = match &options.user_agent {
        Some(agent) => agent.clone(),
        None => concat!("coyote/", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    let builder = reqwest::Client::builder()
        .user_agent(agent)
        .connect_timeout(options.connect_timeout.unwrap_or(CONNECT_TIMEOUT))
        .tcp_keepalive(Duration::from_secs(30))
        .redirect(redirect_policy(options.redirects));
    Ok(match &options.proxy {
        Proxy::Environment => builder,
        Proxy::Direct => builder.no_proxy(),
        Proxy::Url(url) => builder.proxy(
            reqwest::Proxy::all(url.as_str())
                .map_err(|_| HttpError::Build(format!("`{}` is no proxy URL", redact_url(url))))?,
        ),
    })
}

fn redirect_policy(redirects: Redirects) -> reqwest::redirect::Policy {
    match redirects {
        Redirects::Anywhere => reqwest::redirect::Policy::limited(MAX_REDIRECTS),
        Redirects::SameOrigin => reqwest::redirect::Policy::custom(|attempt| {
            let same = attempt
                .previous()
                .last()
                .is_some_and(|from| from.origin() == attempt.url().origin());
            if attempt.previous().len() > MAX_REDIRECTS {
                attempt.error("too many redirects")
            } else if same {
                attempt.follow()
            } else {
                attempt.stop()
            }
        }),
    }
}

/// Makes ring the process's TLS provider, once; a provider that is installed already stays.
fn install_tls_provider() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
