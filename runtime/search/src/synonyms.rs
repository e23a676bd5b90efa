//! Words with nearly the same meaning in descriptions of tools.

use std::sync::OnceLock;

use crate::words;

/// Groups of synonyms, one per line. A word with several meanings is listed only with the one that is common in names of tools.
const GROUPS: &str = "
get fetch retrieve read show view obtain return display find
list enumerate
search find query lookup look locate discover
create add new make insert
delete remove drop destroy erase clear
update edit modify change set patch rename alter
send post submit publish
run execute invoke launch start trigger
stop cancel abort kill terminate halt
copy duplicate clone fork
move transfer relocate
directory folder dir
file document doc
repository repo
pull merge pr mr
issue ticket bug
comment reply note feedback discussion
user person people member account profile
team group
organization org company
permission access role right privilege
password secret credential token key
picture image photo screenshot
message chat
channel room conversation
branch ref
commit revision change
diff compare difference
log history record
release version tag
label tag category
date time clock now
schedule calendar
page website url site web
browser tab window
click press tap
type enter input fill text
wait sleep pause
screen display
job task workflow pipeline
build run action
deploy release publish
event activity
alert notification warning
setting config configuration preference option
statistic stat metric count number total amount
size large big length
sum add plus
location place address coordinate
direction route navigation
distance far
weather forecast temperature
price cost fee charge
pay payment invoice bill
order purchase
custom client
product item
database db
table collection
row record document entry
column field attribute
schema structure
server host machine
node worker
pod container
cluster kubernetes
volume disk storage
network connection request
error exception failure failed
star favorite like
follow subscribe watch
owner author assignee creator
assign allocate
close resolve finish complete done
approve accept confirm review
reject deny decline
upload attachment import
download export save
zone timezone
convert translate transform
memory remember knowledge
relation link connection edge
entity node
summary overview description detail information
latest recent newest last current
first top best
private hidden
email mail
see look inspect check view show
open load navigate visit go
give tell
generate create produce
register create sign
write save store persist put
discard purge wipe remove delete reset
adjust replace overwrite rewrite revise update edit
deliver share send
perform call execute evaluate eval run
undo revert restore rollback reset
combine join merge
verify check validate test confirm
answer respond reply
attach link associate connect
sort order rank
extract scrape crawl parse harvest
snapshot capture grab take screenshot
enable activate on
disable deactivate off
toggle switch enable disable
invite add
restaurant cafe hotel shop business poi place
near nearby around close proximity
travel trip journey route direction
height elevation altitude
geocode address coordinate latitude longitude
language locale translation
error bug crash
performance speed trace
throttle slow limit
emulate simulate mimic
phone mobile device
keyboard key shortcut
mouse cursor pointer hover
popup dialog modal
form field input
console log
traffic network request
tree hierarchy nested recursive
child children sub
emoji reaction react
fact observation knowledge
monitor watch track notify
domain site website
example sample demo
echo repeat
environment env variable
participant collaborator member
current active present
thread topic discussion conversation
changelog announcement news
guide tutorial documentation doc manual
dashboard panel insight
flow automation workflow
preset bookmark
credit usage quota balance
batch bulk multiple several many
text content string body
line row
whole entire full complete
kind type category class
name title
author writer creator
film movie
disease illness condition medical
animal species creature
book novel literature
song music track
company business firm organization
actor performer cast
spacecraft spaceship ship vessel
metadata info property detail
hash digest checksum sha
stage index
uncommitted unstaged working
nest reply
outline structure overview
gather collect research
web internet online
map discover
";

/// Returns each stem with the number of its group, sorted by stem.
fn table() -> &'static [(String, usize)] {
    static TABLE: OnceLock<Vec<(String, usize)>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let groups = GROUPS.lines().enumerate();
        let words = groups.flat_map(|(group, words)| words.split_ascii_whitespace().map(move |word| (word, group)));
        let mut table: Vec<(String, usize)> = words.map(|(word, group)| (words::stem(word).into_owned(), group)).collect();
        table.sort_unstable();
        table.dedup();
        table
    })
}

/// Returns the other stems with nearly the same meaning as `stem`.
pub(crate) fn of(stem: &str) -> impl Iterator<Item = &'static str> {
    let table = table();
    let first = table.partition_point(|(other, _)| other.as_str() < stem);
    let groups: Vec<usize> = table.iter().skip(first).take_while(|(other, _)| other == stem).map(|(_, group)| *group).collect();
    let others = if groups.is_empty() { &[] } else { table };
    let stem = stem.to_owned();
    others.iter().filter(move |(other, group)| groups.contains(group) && *other != stem).map(|(other, _)| other.as_str())
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::words::stem;

    fn synonyms(word: &str) -> Vec<&'static str> {
        of(&stem(word)).collect()
    }

    #[test]
    fn groups_are_found_by_every_form_of_a_word() {
        assert_eq!(synonyms("folders"), ["dir", "directori"]);
        assert_eq!(synonyms("repos"), ["repositori"]);
        assert_eq!(synonyms("databases"), ["db"]);
        assert!(synonyms("deleting").contains(&"remov"));
        assert!(synonyms("zebra").is_empty());
    }

    #[test]
    fn a_word_of_two_groups_has_the_synonyms_of_both() {
        let found = synonyms("tag");
        assert!(found.contains(&"version") && found.contains(&"label"), "{found:?}");
    }
}
