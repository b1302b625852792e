package workflow

import (
	"strings"
	"testing"
)

func TestCheckID(t *testing.T) {
	for text, want := range map[string]string{
		"photos-1": "", "a/b.c_d": "", "A": "", strings.Repeat("x", 2048): "",
		"":                        "the identifier is empty",
		strings.Repeat("x", 2049): "the identifier is 2049 bytes long, and may have 2048 at most",
		"a b":                     `the identifier "a b" has other characters than letters, digits, '/', '.', '_' and '-'`,
		"a\n":                     `the identifier "a\n" has other characters`,
		"ä":                       `the identifier "ä" has other characters`,
		"$(id)":                   `the identifier "$(id)" has other characters`,
	} {
		if err := CheckID(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want %q", text, err, want)
		}
	}
}

func TestCheckInfo(t *testing.T) {
	for name, test := range map[string]struct{ name, value, want string }{
		"an endpoint":                {"endpoint", "https://s3.example:9000", ""},
		"an empty region":            {"region", "", ""},
		"a port":                     {"port", "9000", ""},
		"an addressing style":        {"addressingStyle", "virtual", ""},
		"a further key":              {"extra/AWS_CA.crt", "one\ntwo\n", ""},
		"a name that is none":        {"endpont", "x", `"endpont" is none of endpoint, region, subRegion, addressingStyle, storageAccount, projectId, host, port, and not below extra/`},
		"a control character":        {"region", "a\nb", "it is not valid UTF-8, or has control characters"},
		"what is not UTF-8":          {"extra/a", "\xff", "it is not valid UTF-8"},
		"a long one":                 {"endpoint", strings.Repeat("x", 4097), "it is 4097 bytes long, and may have 4096 at most"},
		"port 0":                     {"port", "0", `"0" is no port, which is a number from 1 to 65535`},
		"a port that is too high":    {"port", "65536", "is no port"},
		"a port that is a name":      {"port", "https", "is no port"},
		"a style that is none":       {"addressingStyle", "Path", `"Path" is none of path, virtual`},
		"a key that is none":         {"extra/a b", "x", `"a b" is no key of a ConfigMap`},
		"a key of dots":              {"extra/..", "x", `".." is no key of a ConfigMap`},
		"a key of nothing":           {"extra/", "x", `"" is no key of a ConfigMap`},
		"a key in another directory": {"extra/a/b", "x", `"a/b" is no key of a ConfigMap`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckInfo(test.name, test.value); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
