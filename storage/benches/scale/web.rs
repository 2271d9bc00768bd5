//! A made-up web whose URLs look like a crawl's: many hosts of very different sizes, four styles of paths, words that
//! repeat, and discovery in bursts of neighbours. Every URL follows from its host and its number there, so nothing has to
//! be remembered but how many each host has.

use xxhash_rust::xxh3::xxh3_64;

/// Links that a page has.
pub(crate) const LINKS_PER_PAGE: usize = 60;
/// URLs a host has on average.
const URLS_PER_HOST: u64 = 100;
/// Links in the menu that all pages of a host share.
const MENU_LINKS: u32 = 36;
const NEIGHBOURS: u32 = 16;
const LINKS_ELSEWHERE: usize = 6;
const NEW_LINKS: usize = 2;

const STARTS: [&str; 24] = [
    "al", "ber", "cor", "da", "el", "fin", "gra", "hol", "in", "jo", "kar", "lun", "mar", "nor", "ol", "par",
    "qui", "ros", "sta", "tor", "uni", "ver", "wel", "zen",
];
const ENDS: [&str; 20] = [
    "a", "and", "berg", "ca", "den", "er", "field", "ing", "ka", "land", "ment", "na", "on", "port", "ra",
    "stein", "tion", "ton", "ville", "ws",
];
const TOPS: [&str; 8] = ["com", "org", "de", "net", "co.uk", "fr", "edu", "it"];

/// Bits that look random.
pub(crate) fn mix(bits: u64) -> u64 {
    xxh3_64(&bits.to_le_bytes())
}

fn word(number: u64) -> String {
    let pick = |list: &[&'static str], number: u64| list[(number % list.len() as u64) as usize];
    // Small numbers are likely, so words repeat as they do in languages.
    let number = (number % 1000) * (number / 1000 % 1000) / 1000;
    format!("{}{}", pick(&STARTS, number), pick(&ENDS, number / 24))
}

fn slug(seed: u64) -> String {
    let words: Vec<String> = (0..3 + seed % 4).map(|position| word(mix(seed ^ (position << 32)))).collect();
    words.join("-")
}

fn url(host: u64, number: u32) -> String {
    let seed = mix(host);
    let name = format!("{}{}{}", word(mix(seed)), word(mix(seed + 1)), seed % 97);
    let top = TOPS[(seed >> 20) as usize % TOPS.len()];
    let number = u64::from(number);
    if number == 0 {
        return format!("https://www.{name}.{top}/");
    }
    let page = mix(seed ^ number);
    let section = word(mix(seed ^ (number / 40)));
    match seed % 4 {
        0 => format!(
            "https://www.{name}.{top}/{section}/{}/{:02}/{}-{number}.html",
            2005 + number / 60 % 20,
            1 + page % 12,
            slug(page)
        ),
        1 => format!("https://{name}.{top}/index.php?id={number}&cat={section}&view=article"),
        2 => format!("https://www.{name}.{top}/{section}/{}/{}/", word(seed ^ (number / 10)), slug(page)),
        _ => format!(
            "http://{name}.{top}/~{}/{section}/{}{number}.htm",
            word(seed ^ (number / 200)),
            word(page)
        ),
    }
}

/// The web as far as it has been discovered.
pub(crate) struct Web {
    random: u64,
    /// URLs known of each host.
    hosts: Vec<u32>,
    urls: u64,
}

impl Web {
    pub(crate) fn new() -> Self {
        Self { random: 1, hosts: Vec::new(), urls: 0 }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.hosts.capacity() as u64 * 4
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random += 1;
        mix(self.random) % bound
    }

    /// A known host; the first ones are far more likely, as sizes of hosts follow a power law.
    fn host(&mut self) -> usize {
        let uniform = self.below(1 << 32) as f64 / (1u64 << 32) as f64;
        (uniform * uniform * uniform * self.hosts.len() as f64) as usize
    }

    /// A host of which URLs are known: otherwise the larger web would have more that is new.
    fn known_host(&mut self) -> usize {
        loop {
            let host = self.host();
            if self.hosts[host] > 0 {
                return host;
            }
        }
    }

    fn new_url(&mut self, host: usize) -> String {
        let number = self.hosts[host];
        self.hosts[host] += 1;
        self.urls += 1;
        url(host as u64, number)
    }

    /// So many new URLs, in bursts of neighbours.
    pub(crate) fn discover(&mut self, count: usize) -> impl Iterator<Item = String> {
        let mut urls = Vec::with_capacity(count);
        while urls.len() < count {
            if self.urls >= self.hosts.len() as u64 * URLS_PER_HOST {
                self.hosts.push(0);
            }
            let host = self.host();
            for _ in 0..=self.below(30) {
                urls.push(self.new_url(host));
            }
        }
        urls.into_iter()
    }

    /// The links of this many pages.
    pub(crate) fn pages(&mut self, count: usize) -> Vec<String> {
        let mut urls = Vec::with_capacity(count * LINKS_PER_PAGE);
        for _ in 0..count {
            let host = self.known_host();
            let known = self.hosts[host];
            urls.extend((0..MENU_LINKS).map(|number| url(host as u64, number % known)));
            let page = self.below(u64::from(known)) as u32;
            urls.extend((0..NEIGHBOURS).map(|offset| url(host as u64, (page + offset) % known)));
            for _ in 0..LINKS_ELSEWHERE {
                let host = self.known_host();
                let known = u64::from(self.hosts[host]);
                let number = self.below(known) as u32;
                urls.push(url(host as u64, number));
            }
            for _ in 0..NEW_LINKS {
                urls.push(self.new_url(host));
            }
        }
        urls
    }
}
