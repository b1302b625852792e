package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxFile is the maximum size of a file in bytes: etcd accepts no object that is larger than a tenth of it.
const maxFile = 16 << 20

// Document is an object of a file.
type Document struct {
	// File is the name of the file.
	File string

	// Object is the object as plain data, as the API server gets it from kubectl: nil, bool, int64,
	// float64, string, []any and map[string]any.
	Object map[string]any

	// lines are the lines of the file, and root is the object's node; nil if it could not be parsed into nodes.
	lines []string
	root  *yaml.Node

	// line is the first line of the object, from 1.
	line int
}

// Kind returns the object's kind, or "".
func (d Document) Kind() string { return d.text("kind") }

// Name returns the object's name, or "".
func (d Document) Name() string {
	metadata, _ := d.Object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

// Group returns the group of the object's apiVersion, "" if it has none.
func (d Document) Group() string {
	group, _, found := strings.Cut(d.text("apiVersion"), "/")
	if !found {
		return ""
	}
	return group
}

func (d Document) text(key string) string {
	text, _ := d.Object[key].(string)
	return text
}

// Line returns a line of the document's file, counted from 1; "" if it does not exist.
func (d Document) Line(number int) string { return lineOf(d.lines, number) }

func lineOf(lines []string, number int) string {
	if number < 1 || number > len(lines) {
		return ""
	}
	return lines[number-1]
}

// Error is about a part of a file that is not valid YAML, or not an object.
type Error struct {
	// File is the name of the file. Line and Column count from 1; columns are in characters.
	File         string
	Line, Column int

	// Message says what is wrong.
	Message string

	// Text is the line.
	Text string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Errors splits an error of Read into those about files and the rest.
func Errors(err error) (found []*Error, rest error) {
	var others []error
	for _, each := range split(err) {
		if wrong, ok := errors.AsType[*Error](each); ok {
			found = append(found, wrong)
		} else {
			others = append(others, each)
		}
	}
	return found, errors.Join(others...)
}

// split returns the errors in a joined error.
func split(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}[:min(1, countOf(err))]
	}
	var all []error
	for _, each := range joined.Unwrap() {
		all = append(all, split(each)...)
	}
	return all
}

func countOf(err error) int {
	if err == nil {
		return 0
	}
	return 1
}

// Open reads a file, or standard input if name is "-".
func Open(name string, stdin io.Reader) ([]Document, error) {
	if name == "-" {
		return Read("<stdin>", stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return Read(name, file)
}

// Read returns the objects in a file; those in a List one by one. If parts of the file are wrong, it returns the
// other objects together with the joined errors. Each is an *Error, except those of reading the file.
func Read(name string, r io.Reader) ([]Document, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(raw) > maxFile {
		return nil, fmt.Errorf("reading %s: it is larger than %d bytes", name, maxFile)
	}
	text := strings.TrimPrefix(string(raw), "\ufeff")
	f := &file{name: name, lines: linesOf(text)}
	if !utf8.ValidString(text) {
		f.invalid()
		return nil, errors.Join(f.errors...)
	}
	for _, c := range f.chunks(text) {
		f.parse(c)
	}
	return f.documents, errors.Join(f.errors...)
}

// linesOf returns the lines of a text without line breaks.
func linesOf(text string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), "\n")
}

// file is a file that is being read.
type file struct {
	name      string
	lines     []string
	documents []Document
	errors    []error
}

func (f *file) wrongf(line, column int, format string, args ...any) {
	line = max(1, min(line, len(f.lines)))
	text := lineOf(f.lines, line)
	column = max(1, min(column, utf8.RuneCountInString(text)+1))
	f.errors = append(f.errors, &Error{File: f.name, Line: line, Column: column, Message: fmt.Sprintf(format, args...), Text: text})
}

func (f *file) invalid() {
	for i, line := range f.lines {
		if valid := strings.ToValidUTF8(line, "\ufffd"); valid != line {
			same := 0
			for same < len(valid) && same < len(line) && valid[same] == line[same] {
				same++
			}
			f.wrongf(i+1, utf8.RuneCountInString(line[:same])+1, "the text is not UTF-8")
			return
		}
	}
}

// chunk is the text of a document. Text before it on its first line is replaced with spaces.
type chunk struct {
	text string

	// line is the number of the first line, from 1.
	line int
	json bool
}

// chunks splits a file into its documents, as kubectl does.
func (f *file) chunks(text string) []chunk {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		if chunks := jsonChunks(text); len(chunks) > 0 {
			return chunks
		}
	}
	var chunks []chunk
	begin := 0
	for i, line := range f.lines {
		if !strings.HasPrefix(line, "---") {
			continue
		}
		if rest := strings.TrimSpace(line[3:]); rest != "" && rest[0] != '#' {
			f.wrongf(i+1, 4, "only a comment can follow '---', which separates documents")
			continue
		}
		chunks = append(chunks, f.chunk(begin, i))
		begin = i + 1
	}
	return append(chunks, f.chunk(begin, len(f.lines)))
}

func (f *file) chunk(begin, end int) chunk {
	return chunk{text: strings.Join(f.lines[begin:end], "\n") + "\n", line: begin + 1}
}

// jsonChunks splits a file that consists of consecutive JSON objects; nil if it does not.
func jsonChunks(text string) []chunk {
	var chunks []chunk
	decoder := json.NewDecoder(strings.NewReader(text))
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return chunks
		}
		if err != nil {
			return nil
		}
		end := int(decoder.InputOffset())
		before := linesOf(text[:end-len(bytes.TrimSpace(raw))])
		padding := strings.Repeat(" ", utf8.RuneCountInString(before[len(before)-1]))
		chunks = append(chunks, chunk{text: padding + string(raw), line: len(before), json: true})
	}
}

// Installed returns an object in the cluster as a document without a file, so its parts have no positions.
func Installed(plain map[string]any) Document {
	return Document{File: "<cluster>", Object: plain, lines: []string{""}, line: 1}
}
