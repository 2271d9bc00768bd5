#!/usr/bin/env python3
"""A crawl with scrapy that writes a WARC: `scrapy_warc.py FILE URL…`. Robots are obeyed, nobody waits.

Heads are put together again from what scrapy keeps of them, as its WARC extensions do.
"""

import io
import sys
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter


class Warc(scrapy.Spider):
    """Follows every link within the hosts it began with, and the parts of pages."""

    name = "warc"
    links = LinkExtractor(
        tags=("a", "area", "link", "img", "script", "iframe", "frame"),
        attrs=("href", "src"),
        deny_extensions=[],
    )

    def __init__(self, file, urls):
        super().__init__()
        self.start_urls = urls
        self.hosts = {urlsplit(url).netloc for url in urls}
        self.stream = open(file, "wb")
        self.writer = WARCWriter(self.stream, gzip=True)

    def parse(self, response):
        """Stores a response, and asks for what it links to."""
        fields = [(name.decode("latin-1"), value.decode("latin-1"))
                  for name, values in response.headers.items() for value in values]
        head = StatusAndHeaders(f"{response.status} OK", fields, protocol="HTTP/1.1")
        body = io.BytesIO(response.body)
        self.writer.write_record(self.writer.create_warc_record(response.url, "response", body, http_headers=head))
        request = StatusAndHeaders(
            f"GET {urlsplit(response.url).path or '/'} HTTP/1.1",
            [(name.decode("latin-1"), value.decode("latin-1"))
             for name, values in response.request.headers.items() for value in values],
            is_http_request=True,
        )
        self.writer.write_record(self.writer.create_warc_record(response.url, "request", http_headers=request))
        if isinstance(response, TextResponse) and "html" in response.headers.get("Content-Type", b"").decode():
            for link in self.links.extract_links(response):
                if urlsplit(link.url).netloc in self.hosts:
                    yield scrapy.Request(link.url)

    def closed(self, _reason):
        """Ends the file."""
        self.stream.close()


process = CrawlerProcess({
    "LOG_LEVEL": "ERROR",
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "DOWNLOAD_DELAY": 0,
    "HTTPERROR_ALLOW_ALL": True,
    "COOKIES_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "URLLENGTH_LIMIT": 2048,
})
process.crawl(Warc, file=sys.argv[1], urls=sys.argv[2:])
process.start()
