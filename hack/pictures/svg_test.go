package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestDraw_EscapesWhatXMLWouldRead(t *testing.T) {
	const output = "<b>&amp; \"q\" 'r' ]]>\n"
	svg, err := draw("<title> & more", "echo </svg>", output)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Title string   `xml:"title"`
		Texts []string `xml:"text"`
	}
	if err := xml.Unmarshal([]byte(svg), &got); err != nil {
		t.Fatal(err)
	}
	if want := []string{"$", "echo </svg>", strings.TrimSpace(output)}; got.Title != "<title> & more" || !slices.Equal(got.Texts, want) {
		t.Errorf("got %q with the texts %q, want %q", got.Title, got.Texts, want)
	}
}

func TestDraw_WideLinesStayInThePicture(t *testing.T) {
	svg, err := draw("wide", "wide", strings.Repeat("wide", 100)+"\n")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Width  float64 `xml:"width,attr"`
		Height float64 `xml:"height,attr"`
		Texts  []struct {
			X      float64 `xml:"x,attr"`
			Y      float64 `xml:"y,attr"`
			Length float64 `xml:"textLength,attr"`
		} `xml:"text"`
	}
	if err := xml.Unmarshal([]byte(svg), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Texts) < 4 {
		t.Errorf("there are %d texts", len(got.Texts))
	}
	for _, text := range got.Texts {
		if text.X+text.Length > got.Width || text.Y > got.Height {
			t.Errorf("%v is not in %v x %v", text, got.Width, got.Height)
		}
	}
}

func TestDraw_FailsWithAnUnknownControlSequence(t *testing.T) {
	if svg, err := draw("title", "clear", "\x1b[2J\n"); err == nil {
		t.Errorf("got %s, want an error", svg)
	}
}

const docs = "../../docs"

// All pictures, also those that are drawn by hand, can be shown by any viewer, on light and dark pages.
func TestPictures_AreSelfContained(t *testing.T) {
	files, err := filepath.Glob(docs + "/pictures/*.svg")
	if err != nil || len(files) < len(pictures)+2 {
		t.Fatalf("found %q (%v)", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := read(t, file)
			if len(text) >= 60<<10 {
				t.Errorf("it has %d bytes", len(text))
			}
			if !strings.Contains(text, "@media (prefers-color-scheme: dark)") {
				t.Error("it has no colours for dark pages")
			}
			if references := regexp.MustCompile(`@import|url\([^#]|javascript:`).FindAllString(text, -1); references != nil {
				t.Errorf("it has %q", references)
			}
			check(t, text)
		})
	}
}

// check reads all elements of a picture.
func check(t *testing.T, text string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	for root := true; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := token.(xml.Directive); ok {
			t.Error("it has a document type or entities")
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if slices.Contains([]string{"script", "foreignObject", "image", "use", "a"}, element.Name.Local) {
			t.Errorf("it has the element %s", element.Name.Local)
		}
		attributes := map[string]string{}
		for _, attribute := range element.Attr {
			attributes[attribute.Name.Local] = attribute.Value
			if name := strings.ToLower(attribute.Name.Local); name == "href" || strings.HasPrefix(name, "on") {
				t.Errorf("%s has the attribute %s", element.Name.Local, name)
			}
		}
		if root {
			checkRoot(t, element.Name.Local, attributes)
			root = false
		}
	}
}

// checkRoot checks that a picture has a size, and a title for those who cannot see it.
func checkRoot(t *testing.T, name string, attributes map[string]string) {
	t.Helper()
	for _, side := range []string{"width", "height"} {
		if size, err := strconv.Atoi(attributes[side]); err != nil || size <= 0 {
			t.Errorf("its %s is %q", side, attributes[side])
		}
	}
	if want := "0 0 " + attributes["width"] + " " + attributes["height"]; name != "svg" || attributes["viewBox"] != want {
		t.Errorf("%s has the viewBox %q, want %q", name, attributes["viewBox"], want)
	}
	if attributes["role"] != "img" || !strings.HasPrefix(attributes["aria-labelledby"], "title") {
		t.Errorf("it is a %q, labelled by %q", attributes["role"], attributes["aria-labelledby"])
	}
}

var shown = regexp.MustCompile(`!\[([^]]*)\]\(([^)]*\.svg)\)`)

// Each picture is on a page, with a text that says the same.
func TestPictures_AreShownWithTheirContentInWords(t *testing.T) {
	pages, err := filepath.Glob(docs + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	files, err := filepath.Glob(docs + "/pictures/*.svg")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %q (%v)", files, err)
	}
	for _, file := range files {
		missing[file] = true
	}
	for _, page := range append(pages, "../../README.md") {
		for _, match := range shown.FindAllStringSubmatch(read(t, page), -1) {
			delete(missing, filepath.Join(filepath.Dir(page), match[2]))
			if len(strings.Fields(match[1])) < 8 {
				t.Errorf("%s shows %s as %q", page, match[2], match[1])
			}
		}
	}
	for file := range missing {
		t.Errorf("%s is on no page", file)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // The path is that of the documentation.
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
