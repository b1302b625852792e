package v1alpha1

import (
	"testing"
	"time"
)

func TestRetryRequested(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)
	for name, test := range map[string]struct {
		value string
		want  time.Time
	}{
		"no annotation":          {},
		"a time in the past":     {value: now.Add(-time.Second).Format(RetryFormat), want: now.Add(-time.Second)},
		"a time of another zone": {value: now.In(time.FixedZone("", 3600)).Format(RetryFormat), want: now},
		"no microseconds":        {value: "2026-01-02T03:04:00Z", want: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)},
		"a time in the future":   {value: now.Add(time.Hour).Format(RetryFormat), want: now},
		"handled by an attempt":  {value: "2026-01-02T03:04:01Z"},
		"no time":                {value: "true"},
		"a time without a date":  {value: "03:04:05"},
		"an invalid date":        {value: "2026-02-30T03:04:05Z"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &PavVolume{}
			if test.value != "" {
				volume.Annotations = map[string]string{RetryAnnotation: test.value}
			}
			if got := RetryRequested(volume, "2026-01-02T03:04:01Z", now); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
