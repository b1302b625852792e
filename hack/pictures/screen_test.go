package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLayOut(t *testing.T) {
	tests := map[string]struct {
		text string
		want [][]span
	}{
		"one style, one span":                        {text: "a bc\n", want: [][]span{{{text: "a bc", width: 4}}}},
		"an empty line stays":                        {text: "a\n\nb\n", want: [][]span{{{text: "a", width: 1}}, nil, {{text: "b", width: 1}}}},
		"two spaces divide":                          {text: "a  b\n", want: [][]span{{{text: "a", width: 1}, {column: 3, text: "b", width: 1}}}},
		"spaces at the beginning place the text":     {text: "   a\n", want: [][]span{{{column: 3, text: "a", width: 1}}}},
		"each colour is a span":                      {text: "\x1b[31ma\x1b[0m b\n", want: [][]span{{{text: "a", width: 1, style: "bad"}, {column: 2, text: "b", width: 1}}}},
		"a space between colours belongs to none":    {text: "\x1b[1ma\x1b[0m \x1b[1mb\x1b[0m\n", want: [][]span{{{text: "a", width: 1, style: "bold"}, {column: 2, text: "b", width: 1, style: "bold"}}}},
		"a line as wide as the screen is not broken": {text: "12345678\n", want: [][]span{{{text: "12345678", width: 8}}}},
		"a wider line is broken, and keeps its colour": {text: "\x1b[32m12345678 9\x1b[0m\n", want: [][]span{
			{{text: "12345678", width: 8, style: "good"}}, {{column: 1, text: "9", width: 1, style: "good"}}}},
		"a wide character takes two columns": {text: "界a\n", want: [][]span{{{text: "界a", width: 3}}}},
		"a wide character is not cut in two": {text: "1234567界\n", want: [][]span{{{text: "1234567", width: 7}}, {{text: "界", width: 2}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := layOut(test.text, 8)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(span{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLayOut_FailsWhereItWouldLoseSomething(t *testing.T) {
	for name, text := range map[string]string{
		"unknown colour": "\x1b[35ma\x1b[0m\n", "cursor": "\x1b[2Ja\n", "line that is overwritten": "a\rb\n", "tab": "a\tb\n", "delete": "a\x7f\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := layOut(text, 8); err == nil {
				t.Errorf("got %v, want an error", got)
			}
		})
	}
}
