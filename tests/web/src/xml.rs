//! XML documents in the style of DocBook: a DTD, internal and external entities, XLink links, a style sheet.

use super::dates::put_day;
use super::html::{Document, put_anchor};
use super::links::{Outline, Target, Way};
use super::random::{Key, Subject};
use super::text::{Append, Vocabulary, vocabulary_of};

/// External DTD subset that documents refer to.
pub(super) const DTD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <!-- The part of DocBook that the test web uses. -->\n\
    <!ELEMENT article (info, para+, (section | itemizedlist)*, legalnotice?)>\n\
    <!ATTLIST article xmlns CDATA #FIXED \"http://docbook.org/ns/docbook\" version CDATA #IMPLIED>\n\
    <!ELEMENT info (title, date, publisher, legalnotice?)>\n<!ELEMENT title (#PCDATA)>\n<!ELEMENT date (#PCDATA)>\n\
    <!ELEMENT publisher (#PCDATA)>\n<!ELEMENT para (#PCDATA | link)*>\n<!ELEMENT section (title, para+)>\n\
    <!ELEMENT itemizedlist (listitem+)>\n<!ELEMENT listitem (para+)>\n<!ELEMENT link (#PCDATA)>\n\
    <!ATTLIST link xlink:type CDATA #FIXED \"simple\" xlink:href CDATA #REQUIRED>\n\
    <!ELEMENT legalnotice (para+)>\n<!ENTITY % local.entities \"\">\n%local.entities;\n<!ENTITY copy \"&#169;\">\n";

/// External entity that some documents include.
pub(super) const LEGAL_NOTICE: &str = "<?xml encoding=\"UTF-8\"?>\
    <legalnotice><para>This document may be copied by anybody.</para></legalnotice>\n";

/// Style sheet that documents refer to.
pub(super) const STYLE_SHEET: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <xsl:stylesheet version=\"1.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\">\n\
    <xsl:output method=\"html\"/>\n<xsl:template match=\"/\"><html><body><xsl:apply-templates/></body></html>\
    </xsl:template>\n</xsl:stylesheet>\n";

/// Returns the paths that an XML page needs.
pub(super) fn requisites(has_legal_notice: bool) -> Vec<String> {
    let paths = ["/static/article.xsl", "/dtd/article.dtd", "/dtd/legal.ent"];
    paths.into_iter().take(if has_legal_notice { 3 } else { 2 }).map(String::from).collect()
}

/// Whether a document whose text has the key `source` includes the external entity.
pub(super) const fn has_legal_notice(source: Key) -> bool {
    source.of(Subject::Requisites).at(5).below(5) == 0
}

impl Document<'_> {
    const fn has_legal_notice(&self) -> bool {
        self.web.config.requisites && has_legal_notice(self.source_key())
    }

    /// Appends the page as XML in UTF-8.
    pub(super) fn put_xml(&self, outline: &Outline, out: &mut Vec<u8>) {
        let words = vocabulary_of(self.host.key);
        self.put_prologue(words, out);
        self.put_info(words, out);
        out.put("<para role=\"navigation\">");
        for (index, target) in outline.frame().iter().enumerate() {
            // The first link of the frame is the home page, whose address is an entity.
            if index == 0 {
                out.put("<link xlink:href=\"&home;\">");
            } else {
                self.put_link_start(target, out);
            }
            out.put(words.language.frame[index.min(3)]);
            out.put("</link>\n");
        }
        out.put("</para>\n");
        if !outline.children().is_empty() {
            out.put("<itemizedlist>\n");
            for target in outline.children() {
                out.put("<listitem><para>");
                self.put_link(words, target, out);
                out.put("</para></listitem>\n");
            }
            out.put("</itemizedlist>\n");
        }
        self.put_sections(words, outline.free(), out);
        out.put("</article>\n");
    }

    fn put_prologue(&self, words: &Vocabulary, out: &mut Vec<u8>) {
        out.put("<?xml version=\"1.0\" encoding=\"");
        out.put(self.encoding);
        out.put("\"?>\n");
        if self.web.config.requisites {
            out.put("<?xml-stylesheet type=\"text/xsl\" href=\"/static/article.xsl\"?>\n");
            out.put("<!DOCTYPE article PUBLIC \"-//Test Web//DTD Article 1.0//EN\" \"/dtd/article.dtd\" [\n");
        } else {
            out.put("<!DOCTYPE article [\n");
        }
        out.put("<!ENTITY publisher \"");
        out.put(words.noun(self.host.key.of(Subject::Topic)));
        out.put("\">\n<!ENTITY home \"");
        Target { host: *self.host, local: 0, way: Way::Direct }.put_address(self.web, None, out);
        out.put("\">\n");
        if self.has_legal_notice() {
            out.put("<!ENTITY legal SYSTEM \"/dtd/legal.ent\">\n");
        }
        out.put("]>\n<article xmlns=\"http://docbook.org/ns/docbook\" version=\"5.0\" xml:lang=\"");
        out.put(words.language.tag);
        out.put("\" xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n");
    }

    fn put_info(&self, words: &Vocabulary, out: &mut Vec<u8>) {
        out.put("<info><title>");
        self.put_title(words, out);
        out.put("</title><date>");
        put_day(self.since_seconds(), out);
        out.put("</date><publisher>&publisher;</publisher>");
        out.put(if self.has_legal_notice() { "&legal;</info>\n" } else { "</info>\n" });
    }

    fn put_sections(&self, words: &Vocabulary, links: &[Target], out: &mut Vec<u8>) {
        let paragraphs = self.paragraphs();
        let mut written = 0;
        for paragraph in 0..paragraphs {
            out.put("<section><title>");
            out.put(words.noun(self.source_key().of(Subject::Topic).at(1 + paragraph)));
            out.put("</title><para>");
            let mut stream = self.paragraph_key(paragraph, paragraphs).stream();
            for _ in 0..4 + stream.below(5) {
                words.sentence(&mut stream, out);
            }
            let until = ((paragraph + 1) * links.len() as u64 / paragraphs) as usize;
            for target in &links[written..until] {
                self.put_link(words, target, out);
            }
            written = until;
            out.put("</para></section>\n");
        }
        if self.face.local != self.face.source || self.noise.is_some() {
            out.put("<section><title>");
            out.put_number(self.noise.unwrap_or(0));
            out.put("</title><para>");
            words.sentence(
                &mut self.host.page_key(self.face.local).of(Subject::Duplicate).at(9).stream(),
                out,
            );
            out.put("</para></section>\n");
        }
    }

    fn put_link(&self, words: &Vocabulary, target: &Target, out: &mut Vec<u8>) {
        self.put_link_start(target, out);
        put_anchor(words, target, out);
        out.put("</link> ");
    }

    fn put_link_start(&self, target: &Target, out: &mut Vec<u8>) {
        out.put("<link xlink:href=\"");
        target.put_address(self.web, Some(self.host), out);
        out.put("\">");
    }
}
