package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// directory is the directory in the archive.
const directory = "pav-bundle/"

// Bundle is what an archive has.
type Bundle struct {
	// Objects are objects, in one file for each kind.
	Objects []Objects

	// Results are other values, which encoding/json can encode, by name of file.
	Results map[string]any

	// Logs are the logs of containers.
	Logs []Log

	// Missing says what could not be read.
	Missing []string
}

// Objects are the objects of one file.
type Objects struct {
	// Name is the name of the file.
	Name string

	// Kind is the kind of the objects.
	Kind  schema.GroupVersionKind
	Items []client.Object

	// Agents means that they are PaV's agents, whose own containers keep their arguments.
	Agents bool
}

// Log is the log of a container.
type Log struct {
	// Name is the name of the file.
	Name string

	// Open returns the log.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Write writes the archive, without what usually holds secrets.
func (b *Bundle) Write(ctx context.Context, w io.Writer, now time.Time) error {
	c := newCleaner()
	// What is removed from one object is searched for in all of them, so none is written before all are cleaned.
	cleaned := make([][]any, len(b.Objects))
	for i := range b.Objects {
		for _, item := range b.Objects[i].Items {
			object, err := c.object(item, &b.Objects[i])
			if err != nil {
				return err
			}
			cleaned[i] = append(cleaned[i], object)
		}
	}
	compressed := gzip.NewWriter(w)
	a := &archive{tar: tar.NewWriter(compressed), now: now, secrets: c.search()}
	if err := b.write(ctx, a, cleaned); err != nil {
		return err
	}
	if err := a.tar.Close(); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if err := compressed.Close(); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return nil
}

func (b *Bundle) write(ctx context.Context, a *archive, cleaned [][]any) error {
	for i := range b.Objects {
		if err := a.documents(b.Objects[i].Name, cleaned[i]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Results)) {
		value, err := plain(b.Results[name])
		if err != nil {
			return err
		}
		if err := a.documents(name, []any{a.secrets.everywhere(value)}); err != nil {
			return err
		}
	}
	missing := slices.Clone(b.Missing)
	for _, log := range b.Logs {
		text, err := readLog(ctx, log)
		if ctx.Err() != nil {
			return fmt.Errorf("reading logs: %w", ctx.Err())
		}
		if err != nil {
			missing = append(missing, err.Error())
			continue
		}
		if err := a.file("logs/"+log.Name+".log", []byte(a.secrets.replace(string(text)))); err != nil {
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return a.file("not-read.txt", []byte(a.secrets.replace(strings.Join(missing, "\n")+"\n")))
}

// archive writes files.
type archive struct {
	tar     *tar.Writer
	now     time.Time
	secrets *search
}

// documents writes values as one file of YAML.
func (a *archive) documents(name string, values []any) error {
	var text bytes.Buffer
	for _, value := range values {
		document, err := yaml.Marshal(a.secrets.messages(value))
		if err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	return a.file(name+".yaml", text.Bytes())
}

func (a *archive) file(name string, text []byte) error {
	header := &tar.Header{Name: directory + name, Mode: 0o600, Size: int64(len(text)), ModTime: a.now}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if _, err := a.tar.Write(text); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return nil
}

// plain returns a value as encoding/json decodes it.
func plain(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", value, err)
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		return nil, fmt.Errorf("decoding %T: %w", value, err)
	}
	return decoded, nil
}
