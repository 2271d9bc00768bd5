//! The words of generated pages: common words of five languages, nouns for titles and topics, and ASCII nouns for
//! paths.

/// A language of pages.
#[derive(Debug)]
pub(super) struct Language {
    /// Language tag (BCP 47).
    pub(super) tag: &'static str,
    /// Common words, most common first.
    pub(super) common: &'static str,
    /// Nouns, for titles and topics.
    pub(super) nouns: &'static str,
    /// Legacy single-byte encoding of the language.
    pub(super) legacy_encoding: &'static str,
    /// Words of the page frame: home, up, previous, next, contents, updated.
    pub(super) frame: [&'static str; 6],
}

/// The languages. Each host has one; the first is the most frequent.
pub(super) static LANGUAGES: [Language; 5] = [
    Language {
        tag: "en",
        common: "the of and to in is that it was for on are as with they be at one have this from or had by but what \
            some we can out other were all there when up use your how said an each she which their time if will way \
            about many then them would write like so these her long make thing see him two has look more day could go \
            come did number sound no most people my over know water than call first who may down side been now find \
            any new work part take get place made live where after back little only round man year came show every \
            good me give our under name very through just form sentence great think say help low line differ turn \
            cause much mean before move right boy old too same tell does set three want air well also play small end",
        nouns: "library archive manuscript harbour river mountain council parliament school teacher museum collection \
            painting letter newspaper journal edition catalogue index chapter theatre music orchestra railway station \
            bridge market harvest weather climate forest garden village capital border treaty history language grammar \
            dictionary poem novel author printer binding paper record census survey map atlas expedition voyage island \
            lighthouse engine factory workshop patent invention telescope planet comet experiment laboratory medicine",
        legacy_encoding: "windows-1252",
        frame: ["Home", "Up", "Previous", "Next", "Contents", "Last updated"],
    },
    Language {
        tag: "de",
        common: "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus \
            er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor \
            zur bis mehr durch man sein wurde wenn können alle gegen vom wieder schon soll unter sehr heute später \
            zwischen immer seit während ohne müssen gibt jedoch beim damit andere viele große jahre zwei erste ganze",
        nouns: "Bücherei Archiv Handschrift Hafen Fluss Gebirge Gemeinderat Landtag Schule Lehrer Museum Sammlung Gemälde \
            Brief Zeitung Ausgabe Verzeichnis Kapitel Bühne Orchester Eisenbahn Bahnhof Brücke Markt Ernte Wetter Wald \
            Garten Dorf Hauptstadt Grenze Vertrag Geschichte Sprache Wörterbuch Gedicht Roman Drucker Einband Volkszählung \
            Landkarte Reise Insel Leuchtturm Fabrik Werkstatt Erfindung Fernrohr Planet Versuch Arzneimittel Züge",
        legacy_encoding: "windows-1252",
        frame: ["Startseite", "Nach oben", "Zurück", "Weiter", "Übersicht", "Zuletzt geändert"],
    },
    Language {
        tag: "fr",
        common: "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec ou \
            ont son aux cette mais comme même être sa été deux ces nous elle tout fait peut aussi leur bien entre sans \
            après encore très depuis où avant leurs année dont toutes grand selon autres trois première moins sous tous \
            déjà jour fois alors ainsi toujours contre dernier peu temps vers chaque monde côté",
        nouns: "bibliothèque archives manuscrit port rivière montagne conseil parlement école professeur musée collection \
            tableau lettre journal édition catalogue chapitre théâtre orchestre gare pont marché récolte climat forêt jardin \
            village capitale frontière traité histoire langue grammaire dictionnaire poème roman auteur imprimeur reliure \
            recensement carte atlas expédition île phare usine atelier brevet invention planète comète expérience médecine",
        legacy_encoding: "windows-1252",
        frame: ["Accueil", "Haut", "Précédent", "Suivant", "Sommaire", "Mis à jour"],
    },
    Language {
        tag: "es",
        common: "de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha me si \
            sin sobre este ya entre cuando todo esta ser son dos también fue había era muy años hasta desde está mi \
            porque qué sólo han yo hay vez puede todos así nos ni parte tiene él uno donde bien tiempo mismo ese ahora \
            cada vida otro después te otros aunque esa eso hace otra gobierno tan durante siempre día tanto ella tres",
        nouns: "biblioteca archivo manuscrito puerto río montaña consejo parlamento escuela maestro museo colección pintura \
            carta periódico edición catálogo índice capítulo teatro orquesta ferrocarril estación puente mercado cosecha \
            clima bosque jardín pueblo capital frontera tratado historia lengua gramática diccionario poema novela autor \
            imprenta encuadernación censo mapa expedición viaje isla faro fábrica taller patente invención telescopio",
        legacy_encoding: "windows-1252",
        frame: ["Inicio", "Subir", "Anterior", "Siguiente", "Índice", "Última actualización"],
    },
    Language {
        tag: "ru",
        common: "и в не на что он с как это по но из у за то все так его же от о для вы мы бы только они было мне еще \
            если когда уже или сказал время ни быть был до себя был нет может года люди очень где там будет самый один \
            чтобы после более также первый между через под новый город жизнь дело рука слово место друг можно есть этот",
        nouns: "библиотека архив рукопись гавань река гора совет школа учитель музей собрание картина письмо газета журнал \
            издание каталог указатель глава театр оркестр вокзал мост рынок урожай погода лес сад деревня столица граница \
            договор история язык грамматика словарь поэма роман автор типография переплёт перепись карта остров маяк завод",
        legacy_encoding: "windows-1251",
        frame: ["Главная", "Наверх", "Назад", "Вперёд", "Содержание", "Обновлено"],
    },
];

/// Nouns for paths.
pub(super) static PATH_NOUNS: [&str; 64] = [
    "archive",
    "atlas",
    "author",
    "binding",
    "border",
    "bridge",
    "capital",
    "catalogue",
    "census",
    "chapter",
    "climate",
    "collection",
    "comet",
    "council",
    "dictionary",
    "edition",
    "engine",
    "events",
    "expedition",
    "factory",
    "forest",
    "garden",
    "grammar",
    "guide",
    "harbour",
    "harvest",
    "history",
    "index",
    "invention",
    "island",
    "journal",
    "language",
    "letter",
    "library",
    "lighthouse",
    "manual",
    "map",
    "market",
    "medicine",
    "mountain",
    "museum",
    "music",
    "news",
    "novel",
    "orchestra",
    "painting",
    "paper",
    "people",
    "planet",
    "poem",
    "press",
    "printer",
    "projects",
    "railway",
    "record",
    "reports",
    "river",
    "school",
    "station",
    "survey",
    "theatre",
    "treaty",
    "village",
    "weather",
];
