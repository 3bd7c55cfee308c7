//! The name that was probably meant.

/// The name in `known` that is most similar to `written`, if one is similar.
pub(crate) fn nearest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if written.len() > LONGEST {
        return None;
    }
    let wanted = plain(written);
    let allowed = (wanted.chars().count() / 3).min(3);
    let distances = known
        .into_iter()
        .take(MOST_COMPARED)
        .filter(|known| known.len() <= LONGEST)
        .map(|known| (strsim::osa_distance(&wanted, &plain(known)), known));
    let (distance, known) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= allowed).then_some(known)
}

/// A name in lower case, without separators.
fn plain(name: &str) -> String {
    let letters = name
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | '.' | ' ' | '/'));
    letters.flat_map(char::to_lowercase).collect()
}

/// Longer names are not compared, since the cost grows with the length.
const LONGEST: usize = 128;
/// The most names that are compared.
const MOST_COMPARED: usize = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn means(written: &str, expected: Option<&str>) {
        let known = ["git_git_diff", "git_git_status", "get_weather", "fs_list"];
        assert_eq!(nearest(written, known), expected, "{written}");
    }

    #[test]
    fn a_name_with_few_other_letters_is_understood() {
        means("git_git_dif", Some("git_git_diff"));
        means("getWeather", Some("get_weather"));
        means("get-waether", Some("get_weather"));
        means("fslist", Some("fs_list"));
    }

    #[test]
    fn a_name_that_is_like_no_other_is_not_guessed() {
        means("nothing", None);
        means("", None);
        means(&"git_git_diff".repeat(20), None);
    }
}
