use std::io::Write as _;

use super::*;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn a_site_is_one_row_with_all_its_subjects() {
    let listed = file(
        "primary\tsecondary\ttitle\turl\n\
         Arts\tMusic\tThe \"Band\"\thttp://www.band.example/\n\
         Law\tCourts\tA court\thttp://court.example/a\n\
         Business\tTrade\tThe Band\thttp://band.example\n\
         Arts\tTheatre\tThe Band\thttp://band.example\n",
    );
    let mut collection = Collection::default();
    assert_eq!(collection.add(listed.path()).unwrap(), 0..2);
    assert_eq!(collection.subjects, ["Arts", "Law", "Business"]);
    assert_eq!(collection.sites[0].title, "The \"Band\"");
    assert_eq!(collection.sites[0].subjects, [0, 2]);
    let more =
        file("url\ttitle\tprimary\nhttp://court.example/a\tA court\tArts\nhttp://new.example/\tNew\tLaw\n");
    assert_eq!(collection.add(more.path()).unwrap(), 2..3);
    assert_eq!((&collection.sites[1].subjects[..], &collection.sites[2].subjects[..]), (&[1][..], &[1][..]));
    let wrong = file("url\ttitle\nhttp://new.example/\tNew\n");
    assert!(matches!(collection.add(wrong.path()), Err(SubjectsError::Column("primary"))));
    let many: String = (0..=SUBJECTS_MAX).map(|i| format!("{i}\tt\thttp://{i}.example/\n")).collect();
    let many = file(&format!("primary\ttitle\turl\n{many}"));
    assert!(matches!(Collection::default().add(many.path()), Err(SubjectsError::TooManySubjects)));
}

/// A band is recognised by its word, a court only by a common prefix of words that each occur once.
#[test]
fn words_and_pieces_of_words_predict_subjects() {
    let mut collection = Collection::default();
    let lines = (0..60).map(|i| match i % 3 {
        0 => format!("Arts\tBand {i}\thttp://{i}.example/\n"),
        1 => format!(
            "Law\tJustice{} and {i}\thttp://{i}.example/\n",
            "abcdefghijklmnopqrstu".get(i / 3..).unwrap()
        ),
        _ => format!("Trade\tFactory {i}\thttp://{i}.example/\n"),
    });
    let listed = file(&format!("primary\ttitle\turl\n{}", lines.collect::<String>()));
    collection.add(listed.path()).unwrap();
    let (learned, judged) = collection.halves(3);
    assert_eq!((learned.len(), judged.len()), (30, 30));
    let runs = run(&collection, &learned, &judged).unwrap();
    for run in &runs {
        assert!(run.right > 0.9 && run.ece < 0.2 && run.macro_f1 > 0.85, "{run:?}");
        let wrong: usize = run.confusions.values().sum();
        assert_eq!(wrong, ((1.0 - run.right) * 30.0).round() as usize);
    }
    assert_eq!(runs.last().unwrap().right, 1.0);
    assert!(matches!(run_error(&collection, &learned[..9], &judged), SubjectsError::TooFew(9)));
    assert!(matches!(run_error(&collection, &learned, &[]), SubjectsError::NothingToJudge));
}

fn run_error(collection: &Collection, learned: &[usize], judged: &[usize]) -> SubjectsError {
    run(collection, learned, judged).unwrap_err()
}

/// 400 of the sites that librarians of the UK Web Archive selected, and 400 others.
#[test]
fn pieces_of_words_predict_more_on_real_sites() {
    let Some(folder) = crate::test_data("librarians") else { return };
    let mut collection = Collection::default();
    collection.add(&folder.join("ukwa-selected.tsv.gz")).unwrap();
    assert_eq!(collection.subjects.len(), 24);
    let (learned, judged) = collection.halves(1);
    let texts: Vec<Texts> = collection.sites.iter().map(Texts::of).collect();
    let task = Task { collection: &collection, texts: &texts };
    let run = |model| task.run(model, &learned[..400], &judged[..400]);
    let (bayes, average) = (run(Model::NaiveBayes), run(Model::Average));
    assert!(bayes.right > 0.4 && average.right > bayes.right, "{} {}", bayes.right, average.right);
    assert!(average.ece < 0.15, "{}", average.ece);
}
