package yaml11

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var timestampPattern = regexp.MustCompile(`\A([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})` +
	`(?:(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?` +
	`(?:[ \t]*(Z|([-+])([0-9]{1,2})(?::([0-9]{2}))?))?)?\n?\z`)

// The groups of timestampPattern.
const (
	groupYear = iota + 1
	groupMonth
	groupDay
	groupHour
	groupMinute
	groupSecond
	groupFraction
	groupZone
	groupSign
	groupZoneHour
	groupZoneMinute
)

var errTimestamp = errors.New("this is not a date or time")

func parseTimestamp(text string) (any, error) {
	groups := timestampPattern.FindStringSubmatch(text)
	if groups == nil {
		return nil, errTimestamp
	}
	number := func(group int) int {
		n, _ := strconv.Atoi(groups[group]) // digits, or nothing for 0
		return n
	}
	date := Date{Year: number(groupYear), Month: number(groupMonth), Day: number(groupDay)}
	if !date.exists() {
		return nil, errTimestamp
	}
	if groups[groupHour] == "" {
		return date, nil
	}

	t := Timestamp{Date: date, Hour: number(groupHour), Minute: number(groupMinute), Second: number(groupSecond)}
	t.Microsecond, _ = strconv.Atoi((groups[groupFraction] + strings.Repeat("0", 6))[:6])
	t.Zoned = groups[groupZone] != ""
	t.Offset = number(groupZoneHour)*60 + number(groupZoneMinute)
	const day = 24 * 60
	if t.Hour > 23 || t.Minute > 59 || t.Second > 59 || t.Offset >= day {
		return nil, errTimestamp
	}
	if groups[groupSign] == "-" {
		t.Offset = -t.Offset
	}
	return t, nil
}

func (d Date) exists() bool {
	t := time.Date(d.Year, time.Month(d.Month), d.Day, 0, 0, 0, 0, time.UTC)
	return d.Year > 0 && t.Year() == d.Year && int(t.Month()) == d.Month && t.Day() == d.Day
}
