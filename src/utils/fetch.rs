//! `-f URL` and `.file URL`: a page's bytes, for the person who named it.

use std::time::Duration;

use reqwest::Method;

use super::abort::unless_aborted;
use super::http::{self, Http, HttpOptions, Redirects};
use super::{AbortToken, Error, Result};

/// What a page may have; attachments have smaller limits of their own.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(30);
/// How long the whole page may take: one that comes a byte at a time would never be silent.
const TOTAL: Duration = Duration::from_mins(5);

/// The bytes behind `url`.
///
/// # Errors
/// It is no http or https URL, cannot be reached, answers with a failure, is silent for half a minute, takes more than
/// five minutes or sends more than 32 MiB; or `abort` was cancelled.
pub async fn fetch(url: &str, abort: &AbortToken) -> Result<Vec<u8>> {
    within(TOTAL, url, abort).await
}

async fn within(limit: Duration, url: &str, abort: &AbortToken) -> Result<Vec<u8>> {
    unless_aborted(abort, tokio::time::timeout(limit, download(url)))
        .await
        .map_err(|_| Error::user("cancelled"))?
        .map_err(|_| {
            Error::user(format!(
                "cannot fetch `{}`: it has not come whole within {} s",
                http::redact_url(url),
                limit.as_secs_f32()
            ))
        })?
}

async fn download(url: &str) -> Result<Vec<u8>> {
    let client = Http::new(HttpOptions {
        redirects: Redirects::Anywhere,
        ..HttpOptions::default()
    });
    let shown = http::redact_url(url);
    let request = client.request(Method::GET, url).map_err(|error| {
        let hint = error.hint();
        let error = Error::user(error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    })?;
    let failed = |error: reqwest::Error| {
        Error::user(format!("cannot fetch `{shown}`: {}", http::describe(error)))
    };
    let silent = |_| {
        Error::user(format!(
            "cannot fetch `{shown}`: no answer within {} s",
            SILENCE.as_secs()
        ))
    };
    let mut response = tokio::time::timeout(SILENCE, request.send())
        .await
        .map_err(silent)?
        .map_err(failed)?;
    let status = response.status();
    if !status.is_success() {
        return Err(Error::user(format!(
            "cannot fetch `{shown}`: it answers {status}"
        )));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = tokio::time::timeout(SILENCE, response.chunk())
        .await
        .map_err(silent)?
        .map_err(failed)?
    {
        if bytes.len() + chunk.len() > BYTES_MAX {
            return Err(Error::user(format!(
                "cannot fetch `{shown}`: it is larger than {} MiB",
                BYTES_MAX / 1024 / 1024
            )));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Answers one request with `answer`.
    fn server(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
        });
        format!("http://127.0.0.1:{port}/page?token=hush")
    }

    #[tokio::test]
    async fn a_page_comes_byte_for_byte() {
        let url =
            server(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\n\x00\xffab");
        assert_eq!(
            fetch(&url, &AbortToken::new()).await.unwrap(),
            b"\x00\xffab"
        );
    }

    #[tokio::test]
    async fn failures_name_the_page_and_no_secret() {
        let url =
            server(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let error = fetch(&url, &AbortToken::new())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("404") && error.contains("/page"), "{error}");
        assert!(!error.contains("hush"), "{error}");
        assert!(
            fetch("file:///etc/passwd", &AbortToken::new())
                .await
                .is_err()
        );
    }

    #[tokio::test]
    async fn cancelling_ends_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let abort = AbortToken::new();
        abort.cancel();
        assert_eq!(
            fetch(&url, &abort).await.unwrap_err().to_string(),
            "cancelled"
        );
    }

    #[tokio::test]
    async fn a_page_that_drips_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/page", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // An answer that comes before its request is an error of its own.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let error = within(Duration::from_millis(500), &url, &AbortToken::new())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("not come whole within 0.5 s"), "{error}");
    }
}
