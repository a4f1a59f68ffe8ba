//! Base64 payloads, decoded in a stream (`M-63`): slice by slice into the hash and into a file, never beyond the
//! ceiling, and never wholly into memory unless they turn out to be text.

use std::io;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use sha2::{Digest as _, Sha256};

use super::ServerName;
use super::spill::{SpillDir, SpillFile, UNKNOWN_EXTENSION, extension};
use crate::utils::AbortToken;

/// Largest decoded payload in bytes; a larger one is an error (`M-60`).
pub const BLOB_CEILING_BYTES: usize = 50 * 1024 * 1024;
/// How much base64 is decoded at a time, between two looks at the abort token. A multiple of four.
const SLICE: usize = 64 * 1024;
/// What a slice decodes to.
const DECODED_SLICE: usize = SLICE / 4 * 3;

/// What a payload turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum RenderedBlob {
    /// Valid UTF-8, whatever type was claimed.
    Text(String),
    /// Anything else, in a file.
    Spilled(Spilled),
}

/// A payload in a file; never valid UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spilled {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// What its first bytes say it is, when that is an image that models see (`M-67`).
    pub image: Option<&'static str>,
}

/// Why a payload could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// A byte that base64 does not have, or has elsewhere.
    #[error("the payload is not base64: {what} at byte {position}")]
    Invalid {
        /// What is wrong.
        what: &'static str,
        /// Where, in bytes of the base64 text.
        position: usize,
    },
    /// More than [`BLOB_CEILING_BYTES`].
    #[error(
        "the payload is larger than the ceiling of {BLOB_CEILING_BYTES} bytes (50 MiB) that a blob may have"
    )]
    TooLarge,
    /// The file could not be written.
    #[error("the payload of {size_bytes} bytes (sha256 {sha256}) could not be stored: {source}")]
    Store {
        /// Its size in bytes.
        size_bytes: u64,
        /// Its SHA-256.
        sha256: String,
        /// Why.
        source: io::Error,
    },
    /// Cancelled by the person.
    #[error("cancelled")]
    Cancelled,
}

/// Decodes a payload; text comes back as text, anything else is spilled to a file of `server` (`M-63`).
pub fn render_blob(
    b64: &str,
    claimed_mime: Option<&str>,
    server: &ServerName,
    spill: &SpillDir,
) -> Result<RenderedBlob, BlobError> {
    render_blob_until(b64, claimed_mime, server, spill, &AbortToken::new())
}

/// [`render_blob`], given up soon after `abort`.
pub(crate) fn render_blob_until(
    b64: &str,
    claimed_mime: Option<&str>,
    server: &ServerName,
    spill: &SpillDir,
    abort: &AbortToken,
) -> Result<RenderedBlob, BlobError> {
    let mut sink = Sink {
        spill,
        server,
        hash: Sha256::new(),
        size: 0,
        head: [0; 12],
        state: State::Text {
            // Reserved at once, so that growing never goes beyond the ceiling; untouched pages cost nothing.
            bytes: Vec::with_capacity(decoded_len(b64)),
            checked: 0,
        },
    };
    decode(b64, abort, &mut |bytes| {
        sink.take(bytes);
        Ok(())
    })?;
    sink.finish(extension(claimed_mime))
}

/// Decodes a payload into memory, within the ceiling.
pub(crate) fn decode_bytes(b64: &str, abort: &AbortToken) -> Result<Vec<u8>, BlobError> {
    let mut decoded = Vec::with_capacity(decoded_len(b64));
    decode(b64, abort, &mut |bytes| {
        decoded.extend_from_slice(bytes);
        Ok(())
    })?;
    Ok(decoded)
}

/// How many bytes a payload has at most, within the ceiling.
fn decoded_len(b64: &str) -> usize {
    (b64.len() / 4 * 3 + 3).min(BLOB_CEILING_BYTES)
}

/// Where a payload goes as it is decoded.
struct Sink<'a> {
    spill: &'a SpillDir,
    server: &'a ServerName,
    hash: Sha256,
    size: u64,
    /// The first bytes, to know an image by.
    head: [u8; 12],
    state: State,
}

enum State {
    /// Text so far: held in memory, valid up to `checked`; what follows is the beginning of a character.
    Text { bytes: Vec<u8>, checked: usize },
    /// Not text.
    File(SpillFile),
    /// Not text, and the file cannot be written. Hashing goes on, so that the error can say what was lost.
    Failed(io::Error),
}

impl Sink<'_> {
    fn take(&mut self, decoded: &[u8]) {
        self.hash.update(decoded);
        let position = usize::try_from(self.size).unwrap_or(usize::MAX);
        for (place, byte) in self.head.iter_mut().skip(position).zip(decoded) {
            *place = *byte;
        }
        self.size += decoded.len() as u64;
        match &mut self.state {
            State::Text { bytes, checked } => {
                bytes.extend_from_slice(decoded);
                match std::str::from_utf8(bytes.get(*checked..).unwrap_or_default()) {
                    Ok(_) => *checked = bytes.len(),
                    Err(error) => {
                        *checked += error.valid_up_to();
                        if error.error_len().is_some() {
                            let bytes = std::mem::take(bytes);
                            self.spill_from(&bytes);
                        }
                    }
                }
            }
            State::File(file) => {
                if let Err(error) = file.write(decoded) {
                    self.state = State::Failed(error);
                }
            }
            State::Failed(_) => {}
        }
    }

    fn spill_from(&mut self, bytes: &[u8]) {
        let file = self.spill.begin(self.server).and_then(|mut file| {
            file.write(bytes)?;
            Ok(file)
        });
        self.state = match file {
            Ok(file) => State::File(file),
            Err(error) => State::Failed(error),
        };
    }

    fn finish(mut self, extension: &str) -> Result<RenderedBlob, BlobError> {
        if let State::Text { bytes, .. } = &mut self.state {
            match String::from_utf8(std::mem::take(bytes)) {
                Ok(text) => return Ok(RenderedBlob::Text(text)),
                // It ends within a character.
                Err(error) => self.spill_from(error.as_bytes()),
            }
        }
        let image = image_type(&self.head);
        // An image that claims to be text must not open as one.
        let extension = match image {
            Some(_) if extension == "txt" => UNKNOWN_EXTENSION,
            _ => extension,
        };
        let sha256 = hex(&self.hash.finalize());
        let stored = match self.state {
            State::File(file) => file.finish(&sha256, extension, self.size),
            State::Failed(error) => Err(error),
            State::Text { .. } => Err(io::ErrorKind::Other.into()),
        };
        match stored {
            Ok(path) => Ok(RenderedBlob::Spilled(Spilled {
                path,
                size_bytes: self.size,
                sha256,
                image,
            })),
            Err(source) => Err(BlobError::Store {
                size_bytes: self.size,
                sha256,
                source,
            }),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The image types that providers take, by their first bytes.
fn image_type(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if head.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if head.starts_with(b"RIFF") && head.ends_with(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

/// Padding is dealt with here; trailing bits that a sloppy encoder left are ignored, as everyone does.
const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::RequireNone)
    .with_decode_allow_trailing_bits(true);

/// Decoders of the two alphabets.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn engines() -> [impl Engine; 2] {
    use base64::engine::Simd;
    [Simd::standard(CONFIG), Simd::url_safe(CONFIG)]
}

/// Decoders of the two alphabets.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn engines() -> [impl Engine; 2] {
    use base64::alphabet::{STANDARD, URL_SAFE};
    use base64::engine::GeneralPurpose;
    [STANDARD, URL_SAFE].map(|alphabet| GeneralPurpose::new(&alphabet, CONFIG))
}

type Output<'a> = dyn FnMut(&[u8]) -> Result<(), BlobError> + 'a;

/// Decodes either alphabet, with or without padding, white space ignored, handing out at most [`DECODED_SLICE`]
/// bytes at a time and at most [`BLOB_CEILING_BYTES`] in all.
fn decode(b64: &str, abort: &AbortToken, output: &mut Output<'_>) -> Result<(), BlobError> {
    let engines = engines();
    let mut cleaner = Cleaner::new(&engines[0]);
    let mut decoded = vec![0; DECODED_SLICE + 4];
    let mut total = 0;
    let mut give = |decoded: &[u8]| {
        total += decoded.len();
        if total > BLOB_CEILING_BYTES {
            return Err(BlobError::TooLarge);
        }
        output(decoded)
    };
    let mut position = 0;
    for slice in b64.as_bytes().chunks(SLICE) {
        if abort.is_cancelled() {
            return Err(BlobError::Cancelled);
        }
        // A clean slice, the usual case, is decoded where it lies; one that is not fails at its first such byte.
        let aligned = cleaner.is_aligned() && slice.len().is_multiple_of(4);
        let done = engines
            .iter()
            .filter(|_| aligned)
            .find_map(|engine| engine.decode_slice(slice, &mut decoded).ok());
        let size = if let Some(size) = done {
            size
        } else {
            cleaner.take(slice, position)?;
            cleaner.decode(&mut decoded, position)?
        };
        give(decoded.get(..size).unwrap_or_default())?;
        position += slice.len();
    }
    let size = cleaner.finish(&mut decoded, position)?;
    give(decoded.get(..size).unwrap_or_default())
}

/// Brings slices that are not plain base64 into that form, a few characters late: quartets may span slices.
struct Cleaner<'a, E> {
    engine: &'a E,
    /// Characters of the standard alphabet that are not decoded yet.
    characters: Vec<u8>,
    /// How many `=` came so far; nothing but white space and more of them may follow.
    padding: usize,
    padding_position: usize,
}

impl<'a, E: Engine> Cleaner<'a, E> {
    fn new(engine: &'a E) -> Self {
        Self {
            engine,
            characters: Vec::new(),
            padding: 0,
            padding_position: 0,
        }
    }

    fn is_aligned(&self) -> bool {
        self.characters.is_empty() && self.padding == 0
    }

    fn take(&mut self, slice: &[u8], start: usize) -> Result<(), BlobError> {
        for (index, &byte) in slice.iter().enumerate() {
            let character = match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => byte,
                b'-' => b'+',
                b'_' => b'/',
                b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c' => continue,
                b'=' => {
                    if self.padding == 0 {
                        self.padding_position = start + index;
                    }
                    self.padding += 1;
                    continue;
                }
                _ => {
                    return Err(BlobError::Invalid {
                        what: "a character outside its alphabet",
                        position: start + index,
                    });
                }
            };
            if self.padding > 0 {
                return Err(BlobError::Invalid {
                    what: "a character after the padding",
                    position: start + index,
                });
            }
            self.characters.push(character);
        }
        Ok(())
    }

    /// Decodes all whole quartets.
    fn decode(&mut self, decoded: &mut [u8], position: usize) -> Result<usize, BlobError> {
        let whole = self.characters.len() / 4 * 4;
        let size = self.decode_prefix(whole, decoded, position)?;
        self.characters.drain(..whole);
        Ok(size)
    }

    /// Decodes what is left once everything has been taken.
    fn finish(&mut self, decoded: &mut [u8], end: usize) -> Result<usize, BlobError> {
        let left = self.characters.len();
        let missing = (4 - left % 4) % 4;
        if left == 1 {
            return Err(BlobError::Invalid {
                what: "it ends after a quarter of a group",
                position: end,
            });
        }
        if self.padding != 0 && self.padding != missing {
            return Err(BlobError::Invalid {
                what: "padding that does not fit",
                position: self.padding_position,
            });
        }
        self.decode_prefix(left, decoded, end)
    }

    fn decode_prefix(
        &self,
        length: usize,
        decoded: &mut [u8],
        position: usize,
    ) -> Result<usize, BlobError> {
        let characters = self.characters.get(..length).unwrap_or_default();
        self.engine
            .decode_slice(characters, decoded)
            .map_err(|_| BlobError::Invalid {
                what: "a group that cannot be decoded",
                position,
            })
    }
}

#[cfg(test)]
#[path = "blob_tests.rs"]
mod tests;
