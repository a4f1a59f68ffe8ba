//! The items of an answer, one by one: a page of text, a payload in a file, a link, what could not be read.

use serde_json::{Map, Value, json};

use super::blob::{BlobError, RenderedBlob, Spilled, render_blob_until};
use super::decode::{Block, Body, Content, Link, ResourceContent};
use super::fit::{Piece, TextPiece};
use super::render::{MIME_BYTES, Policy, SLICE_CEILING_BYTES, View};
use crate::chat::{Image, ImageSource};
use crate::utils::abort::Aborted;
use crate::utils::text;

/// How a resource content is read: on its own, or embedded in a block of `kind`.
pub(super) struct Reading<'a> {
    /// What was asked for; stands in for a content's own URI.
    pub uri: &'a str,
    /// Of the resource, when the content has none of its own.
    pub audience: Option<&'a [String]>,
    /// Which part of the text is wanted.
    pub view: View<'a>,
    /// The type of the block that it is embedded in.
    pub kind: Option<&'static str>,
}

/// A payload and what is known about it.
struct Payload<'a> {
    b64: &'a str,
    mime_type: Option<&'a str>,
    /// Its keys before the content: type, URI.
    head: Map<String, Value>,
    audience: Option<&'a [String]>,
    view: View<'a>,
    paged: bool,
}

impl Policy<'_> {
    /// Renders one content block. For whoever shows blocks one by one; answers go through `render::render_tool_answer`.
    pub fn block<'a>(&self, block: &'a Block<'_>) -> Result<Piece<'a>, Aborted> {
        let audience = block.audience.as_deref();
        let whole = View {
            max_bytes: Some(SLICE_CEILING_BYTES as u64),
            ..View::default()
        };
        match &block.content {
            Content::Text(text) => {
                let page = whole.page(text, None, &self.bounds, self.abort)?;
                Ok(Piece::Text(TextPiece::new(
                    typed("text"),
                    page,
                    audience,
                    false,
                )))
            }
            Content::Media {
                kind,
                data,
                mime_type,
            } => self.payload(Payload {
                b64: data,
                mime_type: *mime_type,
                head: typed(kind),
                audience,
                view: whole,
                paged: false,
            }),
            Content::Resource(content) => self.resource(
                content,
                &Reading {
                    uri: "",
                    audience,
                    view: whole,
                    kind: Some("resource"),
                },
            ),
            Content::Link(link) => Ok(Piece::fact(self.link(link, audience))),
            Content::Unknown { kind, fields } => {
                let mut value = typed(kind);
                value.insert(
                    "note".into(),
                    "coyote does not know this type of content; its fields are described, not shown".into(),
                );
                value.insert("fields".into(), Value::Object(fields.clone()));
                Ok(Piece::fact(value))
            }
            Content::Unreadable { kind, reason } => {
                let mut value = typed(kind);
                value.insert(
                    "error".into(),
                    format!("unreadable {kind}: {reason}").into(),
                );
                Ok(Piece::failure(value))
            }
        }
    }

    pub(super) fn resource<'a>(
        &self,
        content: &ResourceContent<'a>,
        reading: &Reading<'a>,
    ) -> Result<Piece<'a>, Aborted> {
        let mut head = reading.kind.map(typed).unwrap_or_default();
        let uri = content.uri.unwrap_or(reading.uri);
        head.insert("uri".into(), self.field(uri));
        let audience = content.audience.as_deref().or(reading.audience);
        // Cloned: the content may not live as long as the piece.
        let audience = audience.map(<[String]>::to_vec);
        match &content.body {
            Body::Text(text) => {
                let page = reading
                    .view
                    .page(text, content.mime_type, &self.bounds, self.abort)?;
                self.insert_mime(&mut head, content.mime_type);
                let paged = reading.kind.is_none();
                Ok(Piece::Text(TextPiece::new(
                    head,
                    page,
                    audience.as_deref(),
                    paged,
                )))
            }
            Body::Blob(b64) => self.payload(Payload {
                b64,
                mime_type: content.mime_type,
                head,
                audience: audience.as_deref(),
                view: reading.view,
                paged: reading.kind.is_none(),
            }),
            Body::Unreadable(reason) => {
                self.insert_mime(&mut head, content.mime_type);
                head.insert(
                    "error".into(),
                    format!("unreadable resource content: {reason}").into(),
                );
                Ok(Piece::failure(head))
            }
        }
    }

    fn payload(&self, payload: Payload<'_>) -> Result<Piece<'static>, Aborted> {
        let Payload {
            b64,
            mime_type,
            mut head,
            audience,
            view,
            paged,
        } = payload;
        match render_blob_until(b64, mime_type, self.server, self.spill, self.abort) {
            Ok(RenderedBlob::Text(text)) => {
                let page = view.page(&text, mime_type, &self.bounds, self.abort)?;
                self.insert_mime(&mut head, mime_type);
                let page = page.into_owned();
                Ok(Piece::Text(TextPiece::new(head, page, audience, paged)))
            }
            Ok(RenderedBlob::Spilled(spilled)) => {
                Ok(self.spilled(&spilled, mime_type, &head, audience, view))
            }
            Err(BlobError::Cancelled) => Err(Aborted),
            Err(error) => {
                self.insert_mime(&mut head, mime_type);
                head.insert("error".into(), error.to_string().into());
                if let BlobError::Store {
                    size_bytes, sha256, ..
                } = error
                {
                    head.insert("size_bytes".into(), size_bytes.into());
                    head.insert("sha256".into(), sha256.into());
                }
                Ok(Piece::failure(head))
            }
        }
    }

    /// The object that stands for a spilled payload (`M-64`): the same whatever tools the reader has.
    fn spilled(
        &self,
        spilled: &Spilled,
        mime_type: Option<&str>,
        head: &Map<String, Value>,
        audience: Option<&[String]>,
        view: View<'_>,
    ) -> Piece<'static> {
        let mut value = Map::new();
        if let Some(kind) = head.get("type") {
            value.insert("type".into(), kind.clone());
        }
        value.insert("spilled".into(), true.into());
        let path = spilled.path.to_string_lossy().into_owned();
        value.insert("path".into(), path.into());
        value.insert(
            "uri".into(),
            head.get("uri").cloned().unwrap_or(Value::Null),
        );
        self.insert_mime(&mut value, mime_type);
        value.insert("sniffed".into(), false.into());
        value.insert("size_bytes".into(), spilled.size_bytes.into());
        value.insert("sha256".into(), spilled.sha256.clone().into());
        if let Some(audience) = audience {
            value.insert("audience".into(), audience.to_vec().into());
        }
        if view.filter.is_some() {
            value.insert(
                "note".into(),
                "the pattern was not applied: the content is not text".into(),
            );
        }
        let image = spilled.image.map(|mime_type| {
            let source = ImageSource::File(spilled.path.clone());
            Image {
                mime_type: mime_type.to_owned(),
                source,
            }
        });
        Piece::Fact {
            value,
            image,
            failed: false,
        }
    }

    fn link(&self, link: &Link<'_>, audience: Option<&[String]>) -> Map<String, Value> {
        let mut value = typed("resource_link");
        value.insert("uri".into(), self.field(link.uri));
        let texts = [
            ("name", link.name),
            ("title", link.title),
            ("description", link.description),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                value.insert(key.into(), self.field(text));
            }
        }
        if link.mime_type.is_some() {
            self.insert_mime(&mut value, link.mime_type);
        }
        if let Some(size) = link.size {
            value.insert("size".into(), size.into());
        }
        if let Some(audience) = audience {
            value.insert("audience".into(), audience.to_vec().into());
        }
        match self.read_function {
            // A URI that had to be cut cannot be read.
            Some(function) if link.uri.len() <= self.bounds.field => {
                let call = json!({ "function": function, "arguments": { "uri": link.uri } });
                value.insert("read_with".into(), call);
            }
            Some(_) => {
                value.insert("note".into(), "the uri is too long to be read".into());
            }
            None => {
                value.insert(
                    "note".into(),
                    "the server does not offer to read resources".into(),
                );
            }
        }
        value
    }

    fn field(&self, text: &str) -> Value {
        text::bounded(text, self.bounds.field).into()
    }

    fn insert_mime(&self, value: &mut Map<String, Value>, mime_type: Option<&str>) {
        let bound = MIME_BYTES.min(self.bounds.field);
        let mime_type = mime_type.map_or(Value::Null, |mime| text::bounded(mime, bound).into());
        value.insert("mime_type".into(), mime_type);
    }
}

/// The beginning of a content item that keeps its type.
fn typed(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), Value::from(kind))])
}
