package v1alpha1

import (
	"testing"
	"time"
)

func TestRetryAsked(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)
	for name, test := range map[string]struct {
		value string
		want  time.Time
	}{
		"nobody has asked":        {},
		"somebody has":            {value: now.Add(-time.Second).Format(RetryFormat), want: now.Add(-time.Second)},
		"in another time zone":    {value: now.In(time.FixedZone("", 3600)).Format(RetryFormat), want: now},
		"without microseconds":    {value: "2026-01-02T03:04:00Z", want: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)},
		"in the future":           {value: now.Add(time.Hour).Format(RetryFormat), want: now},
		"with something else":     {value: "true"},
		"with a time of no day":   {value: "03:04:05"},
		"with a day that is none": {value: "2026-02-30T03:04:05Z"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &PavVolume{}
			if test.value != "" {
				volume.Annotations = map[string]string{RetryAnnotation: test.value}
			}
			if got := RetryAsked(volume, now); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
