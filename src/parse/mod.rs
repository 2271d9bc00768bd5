//! HTML, XML, feeds, sitemaps and style sheets to links, text and metadata.
