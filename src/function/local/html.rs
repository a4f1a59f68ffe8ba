//! HTML to text that a model can read: markup gone, structure kept as Markdown does (headings, lists, links,
//! preformatted text). One pass over the text, no tree, no failure: whatever a page contains, text comes out.

/// Elements whose content is not text.
const SILENT: [&str; 7] = [
    "script", "style", "noscript", "template", "svg", "iframe", "canvas",
];

/// Longest entity name between `&` and `;`.
const ENTITY_MAX: usize = 10;

/// The readable text of `html`.
pub(super) fn to_text(html: &str) -> String {
    let mut writer = Writer::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (text, markup) = rest.split_at(at);
        writer.text(text);
        rest = if let Some(comment) = markup.strip_prefix("<!--") {
            after(comment, "-->")
        } else if begins_tag(markup) {
            let (tag, end) = split_tag(markup);
            writer.tag(tag);
            skip_silent(tag, end)
        } else {
            writer.text("<");
            markup.strip_prefix('<').unwrap_or_default()
        };
    }
    writer.text(rest);
    writer.finish()
}

/// What follows `mark`; nothing when it never comes.
fn after<'t>(text: &'t str, mark: &str) -> &'t str {
    text.split_once(mark).map_or("", |(_, rest)| rest)
}

/// `<a`, `</a`, `<!doctype`, `<?xml`; a lone `<` is text.
fn begins_tag(markup: &str) -> bool {
    let mut chars = markup.chars().skip(1);
    match chars.next() {
        Some('/' | '!' | '?') => true,
        Some(c) => c.is_ascii_alphabetic(),
        None => false,
    }
}

/// The inside of the tag and what follows it; a `>` in a quoted attribute does not end it.
fn split_tag(markup: &str) -> (&str, &str) {
    let inside = markup.strip_prefix('<').unwrap_or(markup);
    let mut quote = None;
    for (at, c) in inside.char_indices() {
        match (quote, c) {
            (None, '>') => {
                let (tag, rest) = inside.split_at(at);
                return (tag, rest.strip_prefix('>').unwrap_or_default());
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None | Some(_), _) => {}
        }
    }
    (inside, "")
}

/// The rest after the end of an element whose content is not text.
fn skip_silent<'t>(tag: &str, rest: &'t str) -> &'t str {
    let name = tag_name(tag);
    if tag.ends_with('/') || !SILENT.contains(&name.as_str()) {
        return rest;
    }
    let end = format!("</{name}");
    let mut from = rest;
    while let Some(at) = from.find("</") {
        let (_, candidate) = from.split_at(at);
        let same = candidate
            .get(..end.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(&end));
        if same {
            return split_tag(candidate).1;
        }
        from = candidate.strip_prefix("</").unwrap_or_default();
    }
    ""
}

/// The lower-case name of a tag; `/p` for an end tag.
fn tag_name(tag: &str) -> String {
    let slash = usize::from(tag.starts_with('/'));
    tag.chars()
        .enumerate()
        .take_while(|(at, c)| *at < slash || c.is_ascii_alphanumeric())
        .map(|(_, c)| c.to_ascii_lowercase())
        .take(16)
        .collect()
}

/// The value of an attribute, decoded.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let mut rest = tag;
    while let Some((before, value)) = rest.split_once('=') {
        let key = before.split_whitespace().next_back().unwrap_or_default();
        let value = value.trim_start();
        let (found, next) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inside = value.strip_prefix(quote).unwrap_or_default();
                inside.split_once(quote).unwrap_or((inside, ""))
            }
            _ => value.split_once(char::is_whitespace).unwrap_or((value, "")),
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(decode(found));
        }
        rest = next;
    }
    None
}

/// Collects text with collapsed white space and single empty lines.
#[derive(Default)]
struct Writer {
    out: String,
    /// Line ends owed before the next text.
    breaks: usize,
    /// A space is owed before the next word.
    space: bool,
    /// Depth of `pre` elements.
    pre: usize,
    /// Where the open link's text begins, and where it leads.
    link: Option<(usize, String)>,
}

impl Writer {
    fn text(&mut self, raw: &str) {
        let text = decode(raw);
        if self.pre > 0 {
            self.owed();
            self.out.push_str(&text);
            return;
        }
        for (at, word) in text.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            self.space |= at > 0;
            if !word.is_empty() {
                self.word(word);
            }
        }
    }

    fn word(&mut self, word: &str) {
        self.owed();
        self.out.push_str(word);
    }

    /// Writes what is owed before text.
    fn owed(&mut self) {
        let begin = self.out.is_empty();
        if self.breaks > 0 && !begin {
            let kept = self.out.trim_end_matches(' ').len();
            self.out.truncate(kept);
            for _ in 0..self.breaks {
                self.out.push('\n');
            }
        } else if self.space && !begin && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
        self.breaks = 0;
        self.space = false;
    }

    fn line_break(&mut self, lines: usize) {
        self.breaks = self.breaks.max(lines);
    }

    fn tag(&mut self, tag: &str) {
        let name = tag_name(tag);
        match name.as_str() {
            "br" | "tr" | "/tr" | "div" | "/div" | "dt" | "dd" | "option" => self.line_break(1),
            "td" | "th" => self.space = true,
            "li" => {
                self.line_break(1);
                self.word("- ");
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name
                    .chars()
                    .nth(1)
                    .and_then(|c| c.to_digit(10))
                    .unwrap_or(1);
                self.line_break(2);
                self.word(&"#".repeat(level as usize));
                self.space = true;
            }
            "pre" => {
                self.line_break(2);
                self.word("```\n");
                self.pre = self.pre.saturating_add(1);
            }
            "/pre" => {
                self.pre = self.pre.saturating_sub(1);
                self.line_break(1);
                self.word("```");
                self.line_break(2);
            }
            "a" => self.link = attribute(tag, "href").map(|href| (self.out.len(), href)),
            "/a" => self.end_link(),
            "img" => {
                if let Some(alt) = attribute(tag, "alt").filter(|alt| !alt.trim().is_empty()) {
                    self.text(&format!(" [image: {}] ", alt.trim()));
                }
            }
            "p" | "/p" | "title" | "/title" | "ul" | "/ul" | "ol" | "/ol" | "table" | "/table"
            | "blockquote" | "/blockquote" | "section" | "/section" | "article" | "/article"
            | "header" | "/header" | "footer" | "/footer" | "nav" | "/nav" | "main" | "/main"
            | "hr" | "/h1" | "/h2" | "/h3" | "/h4" | "/h5" | "/h6" | "form" | "/form" | "dl"
            | "/dl" => self.line_break(2),
            _ => {}
        }
    }

    /// Adds where a link leads, when it leads somewhere and has a text that is not the address itself.
    fn end_link(&mut self) {
        let Some((start, href)) = self.link.take() else {
            return;
        };
        let shown = self.out.get(start..).unwrap_or_default().trim();
        let leads =
            href.starts_with("http://") || href.starts_with("https://") || href.starts_with('/');
        if leads && !shown.is_empty() && shown != href {
            self.out.push_str(" (");
            self.out.push_str(&href);
            self.out.push(')');
        }
    }

    fn finish(self) -> String {
        let mut text = self.out;
        let kept = text.trim_end().len();
        text.truncate(kept);
        text.push('\n');
        text
    }
}

/// Replaces entities; what is none stays as it is.
fn decode(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, entity) = rest.split_at(at);
        decoded.push_str(before);
        let after = entity.strip_prefix('&').unwrap_or_default();
        let name_end = after
            .char_indices()
            .take(ENTITY_MAX)
            .find(|(_, c)| *c == ';')
            .map(|(at, _)| at);
        let found = name_end.and_then(|end| {
            let (name, tail) = after.split_at(end);
            Some((character(name)?, tail.strip_prefix(';')?))
        });
        if let Some((c, tail)) = found {
            decoded.push(c);
            rest = tail;
        } else {
            decoded.push('&');
            rest = after;
        }
    }
    decoded.push_str(rest);
    decoded
}

fn character(entity: &str) -> Option<char> {
    if let Some(number) = entity.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|c| !c.is_control() || *c == '\n');
    }
    Some(match entity {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" | "ldquo" | "rdquo" => '"',
        "apos" | "lsquo" | "rsquo" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "bull" => '•',
        "middot" => '·',
        "times" => '×',
        "rarr" => '→',
        "larr" => '←',
        "euro" => '€',
        "pound" => '£',
        "deg" => '°',
        "laquo" => '«',
        "raquo" => '»',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        _ => return None,
    })
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
