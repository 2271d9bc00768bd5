//! Languages as Common Crawl names them, by the three-letter codes of ISO 639-3.

/// The languages with a two-letter code (ISO 639-1), each followed by its three-letter code.
const CODES: &str = "\
    aaaar ababk aeave afafr akaka amamh anarg arara asasm avava ayaym azaze babak bebel bgbul bibis bmbam \
    bnben bobod brbre bsbos cacat ceche chcha cocos crcre csces cuchu cvchv cycym dadan dedeu dvdiv dzdzo \
    eeewe elell eneng eoepo esspa etest eueus fafas ffful fifin fjfij fofao frfra fyfry gagle gdgla glglg \
    gngrn guguj gvglv hahau heheb hihin hohmo hrhrv hthat huhun hyhye hzher iaina idind ieile igibo iiiii \
    ikipk ioido isisl itita iuiku jajpn jvjav kakat kgkon kikik kjkua kkkaz klkal kmkhm knkan kokor krkau \
    kskas kukur kvkom kwcor kykir lalat lbltz lglug lilim lnlin lolao ltlit lulub lvlav mgmlg mhmah mimri \
    mkmkd mlmal mnmon mrmar msmsa mtmlt mymya nanau nbnob ndnde nenep ngndo nlnld nnnno nonor nrnbl nvnav \
    nynya ococi ojoji omorm orori ososs papan pipli plpol pspus ptpor quque rmroh rnrun roron rurus rwkin \
    sasan scsrd sdsnd sesme sgsag shhbs sisin skslk slslv smsmo snsna sosom sqsqi srsrp ssssw stsot susun \
    svswe swswa tatam tetel tgtgk ththa titir tktuk tltgl tntsn toton trtur tstso tttat twtwi tytah uguig \
    ukukr ururd uzuzb veven vivie vovol wawln wowol xhxho yiyid yoyor zazha zhzho zuzul";

/// Returns the ISO 639-3 code of a language tag (BCP 47), if it has one.
pub(super) fn code(tag: &str) -> Option<String> {
    let subtag = tag.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    if !subtag.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    match subtag.len() {
        2 => CODES.split(' ').find_map(|codes| codes.strip_prefix(&subtag)).map(str::to_owned),
        3 => Some(subtag),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn tags_have_three_letters() {
        for (tag, expected) in [
            ("en", Some("eng")),
            ("de-AT", Some("deu")),
            ("zh_Hant", Some("zho")),
            ("AA", Some("aar")),
            ("zu", Some("zul")),
            ("gsw", Some("gsw")),
            ("qq", None),
            ("", None),
            ("x-klingon", None),
            ("ë1", None),
        ] {
            assert_eq!(code(tag).as_deref(), expected, "{tag}");
        }
    }
}
