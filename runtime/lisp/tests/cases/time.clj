;; Dates and times, as java.time has them.

(LocalDate/parse "2024-02-30")
;=! type_error 1:1 "2024-02-30" is no day: its month has 29 days

(LocalDate/parse nil)
;=! type_error 1:1 expected the text of a date or time

(str (LocalDate/parse "2023-10-27"))
;=> "2023-10-27"

(.isBefore (LocalDate/parse "2023-01-01") (java.util.Date. "2023-01-01T00:00:00Z"))
;=! type_error 1:1 a date cannot be compared with an instant

(.getTime (LocalDate/parse "2023-01-01"))
;=! type_error 1:1 expected an instant

(.plusDays (parse "2024-01-01T00:00:00Z") 1)
;=! type_error 1:1 (Duration/ofDays n)

[(.toDays (Duration/between (parse "2024-01-02T00:00:00Z") (parse "2024-01-01T01:00:00Z")))
 (.toMillis (Duration/between (parse "2024-01-01T00:00:00Z") (parse "2024-01-01T00:00:01.5Z")))]
;=> [0 1500]

(Duration/between (LocalDate/parse "2024-01-01") (LocalDate/parse "2024-01-02"))
;=! type_error 1:1 .toEpochDay

(map #(.getTime (java.util.Date. %)) ["2026-01-08T14:30:00Z" "2026-01-08T14:30:00" "2026-01-08" "Wed, 8 Jan 2026 14:30:00 +0000" 1767882600 1767882600000])
;=> [1767882600000 1767882600000 1767830400000 1767882600000 1767882600000 1767882600000]

(sort [(LocalDate/of 2024 3 1) (LocalDate/of 2023 12 31)])
;=> ["2023-12-31" "2024-03-01"]

(get {(LocalDate/of 2024 3 1) :x} (LocalDate/parse "2024-03-01"))
;=> :x

(= (parse "2024-01-01T02:00:00+02:00") (Instant/parse "2024-01-01T00:00:00Z"))
;=> true

(compare (LocalDate/of 2024 1 1) (LocalDate/of 2024 1 2))
;=> -1

(json/generate-string {"d" (LocalDate/of 2024 1 1)})
;=> "{\"d\":\"2024-01-01\"}"

; two keys of one text are one in JSON
(json/generate-string {1 2 "1" 3})
;=! type_error 2:1 the keys 1 and "1" are one in JSON

(group-by #(.getMonthValue %) (map #(LocalDate/parse %) ["2024-01-05" "2024-02-01" "2024-01-09"]))
;=> {1 ["2024-01-05" "2024-01-09"] 2 ["2024-02-01"]}

(map str [(Period/between (LocalDate/of 2023 1 31) (LocalDate/of 2024 3 1)) (Period/between (LocalDate/of 2024 3 31) (LocalDate/of 2024 2 29))])
;=> ["P1Y1M1D" "P-1M-2D"]

(map #(str (Duration/ofMillis %)) [0 1 -1 -1500 3661001 -90000])
;=> ["PT0S" "PT0.001S" "PT-0.001S" "PT-1.5S" "PT1H1M1.001S" "PT-1M-30S"]

(map #(.toMillis (Duration/parse %)) ["P1DT2H" "PT-1.5S" "-PT1M" "pt1h1m1.001s"])
;=> [93600000 -1500 -60000 3661001]

(Duration/parse "P1Y")
;=! type_error 1:1 ISO duration

(.between ChronoUnit/MONTHS (LocalDate/of 2024 1 31) (LocalDate/of 2024 3 30))
;=> 1

(.format (parse "2024-01-05T15:04:09Z") "EEE dd/MM/yy hh:mm:ss a")
;=> "Fri 05/01/24 03:04:09 PM"

(.format (LocalDate/of 2024 1 5) "HH:mm")
;=! type_error 1:1 a date has nothing for the pattern letter H

(.withDayOfMonth (LocalDate/of 2024 2 1) 30)
;=! type_error 1:1 no such date

(LocalDate/currentTimeMillis)
;=! unbound_var 1:2 currentTimeMillis is not available in LocalDate

(.format (LocalDate/of 2024 1 1) (clojure.string/join (repeat 1000 "y")))
;=! type_error 1:1 19 times at most

(.format (LocalDate/of 2024 1 1) (clojure.string/join (repeat 100000 "y")))
;=! type_error 1:1 at most 1024 bytes

(.plusDays (LocalDate/of 2024 1 1) 9223372036854775807)
;=! arithmetic_error 1:1 outside of the years

(apropos "uppercase" {:limit 1})
;=> ["local: clojure.string/upper-case - In upper case."]

;; A zone whose offset changes would need a database.
(ZonedDateTime/ofInstant (Instant/now) (ZoneId/of "Europe/Berlin"))
;=! type_error 1:40 the zone "Europe/Berlin" has no fixed offset

(ZonedDateTime/parse "2024-01-15T10:30:00+01:00[Europe/Paris]")
;=! type_error 1:1 use UTC or a fixed offset

(OffsetDateTime/parse "2024-01-15T10:30:00")
;=! type_error 1:1 an ISO date-time with an offset

(Duration/between "2024-01-01T00:00:00Z" "2024-01-02T00:00:00Z")
;=! type_error 1:1 (Instant/parse s)

;; Models mix instants and date-times with an offset.
(.isBefore (Instant/parse "2024-01-01T00:00:00Z") (OffsetDateTime/parse "2024-01-01T00:00:00Z"))
;=! type_error 1:1 an instant cannot be compared with a date-time with an offset

(json/generate-string {"at" (OffsetDateTime/parse "2024-01-15T10:30:00+02:00")})
;=> "{\"at\":\"2024-01-15T10:30+02:00\"}"
