use super::*;

/// Checks cases as `text => its first sentence`.
#[track_caller]
fn sentences(cases: &[&str]) {
    for case in cases {
        let (text, first) = case.split_once(" => ").unwrap();
        assert_eq!(first_sentence(text), first, "of {text:?}");
    }
}

#[test]
fn a_sentence_ends_before_a_space() {
    sentences(&[
        "Echoes back the input string => Echoes back the input string",
        "Reads a file. Then stops. => Reads a file.",
        "Why? Because. => Why?",
        "Run it!! Now. => Run it!!",
        "He said \"stop.\" Then left. => He said \"stop.\"",
        "**Reads a file.** Then stops. => **Reads a file.**",
        "Wait... Then stop. => Wait...",
        "Wait... then stop. Now. => Wait... then stop.",
        "Ends.\tTabbed. => Ends.",
        "  Leading space. More. => Leading space.",
        " => ",
        " \n\t\r\n  => ",
        ". => .",
    ]);
}

#[test]
fn a_full_stop_inside_a_word_ends_nothing() {
    sentences(&[
        "Pi is 3.14 in v1.2 of Node.js here. More. => Pi is 3.14 in v1.2 of Node.js here.",
        "See https://example.com/a.b?c=d.e for more. More. => See https://example.com/a.b?c=d.e for more.",
        "Uses db.count() and query. More. => Uses db.count() and query.",
        "Finds *.ext, ../a and .env files. More. => Finds *.ext, ../a and .env files.",
        "See https://example.com. More. => See https://example.com.",
        "Runs v1. Then v2. => Runs v1.",
    ]);
}

#[test]
fn abbreviations_end_nothing() {
    sentences(&[
        "Finds, e.g. Rust files, i.e. *.rs. More. => Finds, e.g. Rust files, i.e. *.rs.",
        "Files, dirs, etc. are listed. More. => Files, dirs, etc. are listed.",
        "Lists files, dirs, etc. Sorts them. => Lists files, dirs, etc.",
        "Lists a vs. B (approx. 5). More. => Lists a vs. B (approx. 5).",
        "Asks Dr. Who and J. Smith of the U.S. Treasury. More. => Asks Dr. Who and J. Smith of the U.S. Treasury.",
        "Takes max. 10 of fig. 3. More. => Takes max. 10 of fig. 3.",
        "Takes the max. Returns it. => Takes the max.",
        "Ends with e.g. => Ends with e.g.",
    ]);
}

#[test]
fn brackets_and_code_hold_together() {
    sentences(&[
        "Reads (see docs. Really.) a file. More. => Reads (see docs. Really.) a file.",
        "Runs `a. B` now. More. => Runs `a. B` now.",
        "Smiles :( a lot. More. => Smiles :( a lot.",
        "Reads a file (slow.) More. => Reads a file (slow.) More.",
    ]);
}

#[test]
fn lines_read_on_only_where_they_were_wrapped() {
    sentences(&[
        "Notion | List users\nError Responses:\n400: Bad => Notion | List users",
        "Reads a file\nfrom disk. More. => Reads a file from disk.",
        "Reads the complete contents of a file that was stored with the\nGitHub API. More. => \
         Reads the complete contents of a file that was stored with the GitHub API.",
        "Reads a file\n\nfrom disk. => Reads a file",
        "Reads a file\r\n\r\nfrom disk. => Reads a file",
        "Does:\n- one\n- two => one",
        "Does\n  1. one\n  2. two => Does",
        "Does a thing\n```\ncode. X\n``` => Does a thing",
    ]);
}

#[test]
fn what_is_no_sentence_ends_the_one_before() {
    sentences(&[
        "Does a thing\n```\nlet a = 1;\nlet b = 2;\n``` => Does a thing",
        "Reads,\n```rust\ncode => Reads,",
        "Reads,\n~~~rust\ncode => Reads,",
        "Reads,\nthen writes,\n----\nthen stops. => Reads, then writes,",
        "Reads,\nthen writes,\n-\nthen stops. => Reads, then writes, - then stops.",
        "Reads,\n# Notes\nthen stops. => Reads,",
        "Reads,\n#notes, then stops. => Reads, #notes, then stops.",
        "Reads,\n- one => Reads,",
        "Reads,\n> one => Reads,",
        "Reads,\n| one | two | => Reads,",
        "Reads,\n2024 was the year. => Reads, 2024 was the year.",
        "Reads,\nArgs:\nfile => Reads,",
        "Reads,\nError Codes: 400 => Reads,",
        "Reads,\npath: the file. => Reads, path: the file.",
        "Reads,\nHttp://example.com too. => Reads, Http://example.com too.",
        "Reads,\nOne Or Two Files: those. => Reads, One Or Two Files: those.",
    ]);
}

#[test]
fn a_sentence_of_300_characters_is_kept_whole() {
    let words = |last: &str| format!("{}{last} More.", "word ".repeat(59));
    assert_eq!(first_sentence(&words("word.")).chars().count(), 300);
    assert_eq!(first_sentence(&words("words.")).chars().count(), 195);
    let unbroken = format!("{}。次。", "字".repeat(299));
    assert_eq!(first_sentence(&unbroken).chars().count(), 300);
}

#[test]
fn headings_and_markers_in_front_are_left_out() {
    sentences(&[
        "# Read\n\nReads a file. More. => Reads a file.",
        "Read\n====\nReads a file. More. => Reads a file.",
        "## Read a file => Read a file",
        "#hashtag search. More. => #hashtag search.",
        "- Reads a file. More.\n- Writes => Reads a file.",
        "1. Reads a file. More. => Reads a file.",
        "-5 is a number. More. => -5 is a number.",
    ]);
}

#[test]
fn other_scripts_have_their_own_terminators() {
    sentences(&[
        "ファイルを読む。次に書く。 => ファイルを読む。",
        "读取文件！然后写。 => 读取文件！",
        "读取文件！！然后写。 => 读取文件！！",
        "「読む。」と言う。次。 => 「読む。」と言う。",
        "फ़ाइल पढ़ता है। फिर लिखता है। => फ़ाइल पढ़ता है।",
        "هل يقرأ؟ نعم. => هل يقرأ؟",
        "Читает файл. Потом пишет. => Читает файл.",
        "Überprüft z.B. Éric. Ähnlich. => Überprüft z.B. Éric.",
        "🚀 Starts. 🛑 Stops. => 🚀 Starts.",
    ]);
}

#[test]
fn what_does_not_end_is_cut_between_words() {
    let endless = "word ".repeat(100);
    let cut = first_sentence(&endless);
    assert!(
        cut.ends_with("word…") && cut.chars().count() <= MAX_TRUNCATED,
        "{cut}"
    );

    let sentence = format!("{}end. More.", "word ".repeat(50));
    assert!(first_sentence(&sentence).ends_with("word end."));

    let unbroken = first_sentence(&"字".repeat(1000));
    assert_eq!(unbroken.chars().count(), MAX_TRUNCATED);
    let family = first_sentence(&"👩\u{200d}👩\u{200d}👧".repeat(1000));
    assert!(
        family.ends_with("👧…") || family.ends_with("👩…"),
        "{family}"
    );
}

#[test]
fn a_cut_falls_between_words_in_its_second_half_only() {
    let length = |words: &str| {
        let cut = first_sentence(&format!("{words}{}", "b".repeat(MAX_SENTENCE)));
        assert!(cut.ends_with('…') && !cut.contains(['b', ',']) || cut.ends_with("b…"));
        cut.chars().count()
    };
    assert_eq!(length("aa "), MAX_TRUNCATED);
    assert_eq!(length(&format!("{} ", "a".repeat(99))), MAX_TRUNCATED);
    assert_eq!(length(&format!("{} ", "a".repeat(100))), 101);
    assert_eq!(length(&format!("{}, ", "a".repeat(120))), 121);
}

proptest::proptest! {
    #[test]
    fn any_text_has_a_bounded_sentence_on_one_line(
        text in "(\\PC|[ \n\r.!?()`#*:,-]|e\\.g\\.|\n\n){0,400}",
    ) {
        let first = first_sentence(&text);
        assert!(first.chars().count() <= MAX_SENTENCE);
        assert!(!first.contains('\n'));
        assert_eq!(first.is_empty(), text.trim().is_empty());
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(first.trim_end_matches('…')), "{first:?} of {words:?}");
    }
}
