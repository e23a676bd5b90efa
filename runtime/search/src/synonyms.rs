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
near nearby around proximity
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
http xhr ajax api call request network
dom html markup element node
viewport window screen size resolution dimension
dropdown select combobox menu choose pick option
checkbox check tick toggle
textbox textarea input field
login signin authenticate session
javascript js script code evaluate
css style color font
refresh reload navigate
back previous
mobile phone tablet device emulate
video recording screencast record clip footage
profile trace performance
audit score inspection
leak memory heap
gps coordinate latitude longitude location position
street address road
drive walk commute travel route direction
hour minute duration
rating review star
undo revert withdraw revoke
sprint iteration milestone
assignee responsible assigned
todo task pending reminder
ci pipeline check lint
syntax valid validate lint
protect lock restrict
thumb like upvote heart smiley emoji reaction
article post page content item
section category chapter
draft unpublished version
asset media image upload
plugin extension addon module
step operation action
permission policy allow may right
health alive ping status online
token secret random
sso login oauth
schema model structure
row record entry item page
column field property
query filter where search
google search web internet
news latest recent headline
answer question research
scrape extract content
sitemap map url link
monitor watch alert observe
paper study publication article literature
cite citation reference related
credit quota usage remaining balance
say tell write send post message
read history message
dm direct message
people member user participant
meeting appointment event calendar
deadline due
remember store save note fact observation
recall remember search
forget delete remove
connect link relation relationship
contain content inside read
alien species race
planet star astronomical
war battle conflict
drink food meal
buy purchase order checkout cart
delivery shipment shipping track
product item stock inventory
discount coupon promotion
stock share ticker quote equity
currency exchange rate
crypto coin bitcoin token
audio sound music
subtitle caption transcript
flight plane airline airport
train rail
hotel accommodation lodging
restart reboot
incident outage alert
drug medicine medication
patient clinical
employee staff
inbox mail message
embedding vector
math calculate compute arithmetic
plot chart graph diagram visualize
average mean
spreadsheet excel sheet workbook
slide presentation powerpoint
docx word document
law legal court case
app application program software
package library dependency module
parameter argument input
button link element
subfolder subdirectory folder directory
png jpg jpeg gif image picture photo
pdf docx document parse
zip gzip compress archive
csv spreadsheet table
wiki page documentation
backup export snapshot
paragraph sentence block text
remark comment note annotation
heading title
headline news article
speech voice audio
admin administrator owner
maximum max limit
info information detail
pick select choose
inspect examine debug look
solve answer calculate
estimate predict forecast
pause hold wait
continue resume
upcoming next future
outgoing outbound
incoming inbound
ip address host
author creator writer committer
wrote author
opinion review rating feedback
approval review
belong member
involve participant member
assigned assignee
fix solve resolve update
tidy clean remove
turn convert
swap replace exchange
topic subject category
origin source
destination target
secure encrypt protect
guess predict
suggestion recommend
similar related like
duplicate identical same
unread new notification
chart graph
budget expense cost
salary income wage
tax invoice
sale revenue
lead prospect contact
contact phone address
school university course
student pupil
recipe meal dish cook
ingredient food
exercise workout fitness
hospital clinic doctor
gene protein dna sequence
molecule compound chemical
star constellation
rocket launch space
team club player
match game fixture
score result standing
league tournament competition
lyric song
artist band musician
tv show series episode
trailer movie film
podcast episode
vulnerability security cve
certificate ssl tls
domain dns
firewall network
backup restore
cpu memory usage
process task thread
function method symbol
compile build
debug breakpoint
test spec
notebook jupyter cell
gif animation image
watermark image
resize scale crop
font typeface
map location
parcel package shipment
job position vacancy role opening career
tick check click toggle checkbox
high height tall elevation altitude mountain
tell notify inform alert
developer programmer user
function code method symbol
put place insert add move
clash conflict collide
reword rephrase edit update
reply answer comment respond
disk file directory folder path
science scientific academic scholar research
restaurant food meal bar
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
pub(crate) fn synonyms(stem: &str) -> impl Iterator<Item = &'static str> {
    let table = table();
    let first = table.partition_point(|(other, _)| other.as_str() < stem);
    let groups: Vec<usize> = table.iter().skip(first).take_while(|(other, _)| other == stem).map(|(_, group)| *group).collect();
    let others = if groups.is_empty() { &[] } else { table };
    let stem = stem.to_owned();
    others.iter().filter(move |(other, group)| groups.contains(group) && *other != stem).map(|(other, _)| other.as_str())
}

#[cfg(test)]
mod tests {
    use crate::words::stem;

    fn synonyms(word: &str) -> Vec<&'static str> {
        super::synonyms(&stem(word)).collect()
    }

    #[test]
    fn groups_are_found_by_every_form_of_a_word() {
        assert!(synonyms("folders").contains(&"directori"), "{:?}", synonyms("folders"));
        assert_eq!(synonyms("repos"), ["repositori"]);
        assert_eq!(synonyms("databases"), ["db"]);
        assert!(synonyms("deleting").contains(&"remov"));
        assert!(synonyms("zebra").is_empty());
    }

    #[test]
    fn word_of_two_groups_has_the_synonyms_of_both() {
        let found = synonyms("tag");
        assert!(found.contains(&"version") && found.contains(&"label"), "{found:?}");
    }
}
