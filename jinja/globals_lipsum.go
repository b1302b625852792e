package jinja

import (
	"strings"

	"github.com/albertofaria/pav/jinja/py"
)

// loremIpsumWords are the words of lipsum.
//
//nolint:misspell // it is Latin
var loremIpsumWords = strings.Fields(`
a ac accumsan ad adipiscing aenean aliquam aliquet amet ante aptent arcu at
auctor augue bibendum blandit class commodo condimentum congue consectetuer
consequat conubia convallis cras cubilia cum curabitur curae cursus dapibus
diam dictum dictumst dignissim dis dolor donec dui duis egestas eget eleifend
elementum elit enim erat eros est et etiam eu euismod facilisi facilisis fames
faucibus felis fermentum feugiat fringilla fusce gravida habitant habitasse hac
hendrerit hymenaeos iaculis id imperdiet in inceptos integer interdum ipsum
justo lacinia lacus laoreet lectus leo libero ligula litora lobortis lorem
luctus maecenas magna magnis malesuada massa mattis mauris metus mi molestie
mollis montes morbi mus nam nascetur natoque nec neque netus nibh nisi nisl non
nonummy nostra nulla nullam nunc odio orci ornare parturient pede pellentesque
penatibus per pharetra phasellus placerat platea porta porttitor posuere
potenti praesent pretium primis proin pulvinar purus quam quis quisque rhoncus
ridiculus risus rutrum sagittis sapien scelerisque sed sem semper senectus sit
sociis sociosqu sodales sollicitudin suscipit suspendisse taciti tellus tempor
tempus tincidunt torquent tortor tristique turpis ullamcorper ultrices
ultricies urna ut varius vehicula vel velit venenatis vestibulum vitae vivamus
viverra volutpat vulputate`)

// loremIpsum is Jinja's lipsum(n, html, min, max): n paragraphs of min to max words.
func (s *state) loremIpsum(b *py.Budget, args py.Args) (py.Value, error) {
	bound, err := py.Bind("generate_lorem_ipsum", args, optional("n", py.NewInt(5)), optional("html", yes),
		optional("min", py.NewInt(20)), optional("max", py.NewInt(100)))
	if err != nil {
		return nil, err
	}
	count, err := py.Index(bound[0])
	if err != nil {
		return nil, err
	}
	html, err := py.Truth(b, bound[1])
	if err != nil {
		return nil, err
	}
	w := textWriter{budget: b}
	for i := range clipped(count) {
		if err := s.writeParagraph(&w, i, html, bound[2], bound[3]); err != nil {
			return nil, err
		}
	}
	if html {
		return py.Markup(w.String()), nil
	}
	return py.Str(w.String()), nil
}

func (s *state) writeParagraph(w *textWriter, i int, html bool, least, most py.Value) error {
	words, err := s.randomBetween(least, most)
	if err != nil {
		return err
	}
	// The words are short: this is enough for each.
	if err := w.budget.Alloc(2 * valueSize * words); err != nil {
		return err
	}
	before, between, after := "", "\n\n", ""
	if html {
		before, between, after = "<p>", "\n", "</p>"
	}
	if i == 0 {
		between = ""
	}
	return w.write(between, before, s.sentences(words), after)
}

// randomBetween is Python's randrange.
func (s *state) randomBetween(least, most py.Value) (int, error) {
	low, err := py.Index(least)
	if err != nil {
		return 0, err
	}
	high, err := py.Index(most)
	if err != nil {
		return 0, err
	}
	from, to := clipped(low), clipped(high)
	if from >= to {
		return 0, raisef("ValueError", "empty range for randrange()")
	}
	return max(from+int(s.random.Uint64N(uint64(to)-uint64(from))), 0), nil
}

// sentences returns n words, none of which follows itself, with a comma now and then and a full stop a little less often.
func (s *state) sentences(n int) string {
	var words []string
	last := ""
	capital := true
	comma, stop := 0, 0
	for i := range n {
		word := last
		for word == last {
			word = loremIpsumWords[s.random.IntN(len(loremIpsumWords))]
		}
		last = word
		if capital {
			word = strings.ToUpper(word[:1]) + word[1:]
			capital = false
		}
		if i-s.random.IntN(5)-3 > comma {
			comma = i
			stop += 2
			word += ","
		}
		if i-s.random.IntN(10)-10 > stop {
			comma, stop = i, i
			word += "."
			capital = true
		}
		words = append(words, word)
	}
	return strings.TrimSuffix(strings.TrimSuffix(strings.Join(words, " "), "."), ",") + "."
}
