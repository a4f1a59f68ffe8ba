use proptest::prelude::*;

use super::*;

#[test]
fn structure_survives_and_markup_goes() {
    let html = "<!DOCTYPE html><html><head><title>T &amp; U</title><style>p{}</style>\
        <script>if (a < b) { alert('</p>') }</script></head><body><h2>Head</h2>\
        <p>One   two\n three <b>bold</b>, <a href=\"https://x.example/y?a=1&amp;b=2\">link</a>.</p>\
        <ul><li>first<li>second</ul><pre>  keep\n   this</pre><p>end&#8212;&#x1F98A;</p></body></html>";
    let expected = "T & U\n\n## Head\n\nOne two three bold, link (https://x.example/y?a=1&b=2).\n\n\
        - first\n- second\n\n```\n  keep\n   this\n```\n\nend—🦊\n";
    assert_eq!(to_text(html), expected);
}

#[test]
fn what_is_no_markup_is_text() {
    assert_eq!(to_text("a < b && c > d"), "a < b && c > d\n");
    assert_eq!(
        to_text("x &unknown; &#0; &#xD800; &"),
        "x &unknown; &#0; &#xD800; &\n"
    );
    assert_eq!(to_text("<3 <"), "<3 <\n");
}

#[test]
fn unclosed_things_end_with_the_text() {
    assert_eq!(to_text("a<!-- never"), "a\n");
    assert_eq!(to_text("a<script>x"), "a\n");
    assert_eq!(to_text("a<p class=\"x"), "a\n");
    assert_eq!(to_text(""), "\n");
}

#[test]
fn quotes_and_case_do_not_confuse() {
    assert_eq!(to_text("<P TITLE='a > b'>x</P>"), "x\n");
    assert_eq!(to_text("<SCRIPT>no</sCrIpT >yes"), "yes\n");
    assert_eq!(to_text("<img alt='a cat' src=x>"), "[image: a cat]\n");
    assert_eq!(to_text("<a href=#top>here</a>"), "here\n");
    assert_eq!(to_text("é<script>🦊</script>ü"), "éü\n");
}

#[test]
fn depth_and_size_cost_no_stack() {
    let deep = "<div>".repeat(100_000);
    assert_eq!(to_text(&format!("{deep}x")), "x\n");
    let odd = "<".repeat(100_000);
    assert!(to_text(&odd).len() > 50_000);
}

proptest! {
    #[test]
    fn any_text_yields_text(html in "(<[a-z/!]{0,8}[ a-z='\"]{0,8}>?|&[#a-z0-9]{0,5};?|é|🦊|--|[a-z \\n]{0,6}){0,40}") {
        let text = to_text(&html);
        prop_assert!(text.ends_with('\n'));
    }
}
