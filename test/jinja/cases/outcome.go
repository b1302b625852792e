package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"
)

// Outcome is the result of evaluating a template: a text, or an error of some class.
type Outcome struct {
	Text string
	// YAML says that the template has set the variable yaml to true. Value is then the value of the text as YAML.
	YAML  bool
	Value any

	// Class is the class of an error, or empty if there is a text. Stage is "compile", "render" or "yaml".
	Class, Stage string
	// Message is for people. It is not compared.
	Message string
}

// The classes of errors.
const (
	ClassSyntax    = "syntax"
	ClassUndefined = "undefined"
	ClassType      = "type"
	ClassSecurity  = "security"
	ClassOther     = "other"
	// ClassLimit means that the template has exceeded a limit. No expected outcome has this class.
	ClassLimit = "limit"
)

// The stages in which an error can occur.
const (
	StageCompile = "compile"
	StageRender  = "render"
	StageYAML    = "yaml"
)

type textJSON struct {
	OK    string          `json:"ok"`
	YAML  bool            `json:"yaml"`
	Value json.RawMessage `json:"value,omitempty"`
}

type errorJSON struct {
	Error string `json:"error"`
	Stage string `json:"stage,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (o Outcome) MarshalJSON() ([]byte, error) {
	if o.Class != "" {
		return encode(errorJSON{o.Class, o.Stage})
	}
	form := textJSON{OK: o.Text, YAML: o.YAML}
	if o.YAML {
		value, err := encode(o.Value)
		if err != nil {
			return nil, err
		}
		form.Value = value
	}
	return encode(form)
}

// encode returns the JSON of a value. It does not escape characters such as <.
func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON implements json.Unmarshaler. Numbers in Value become values of type json.Number, which distinguishes 1
// from 1.0.
func (o *Outcome) UnmarshalJSON(raw []byte) error {
	var form struct {
		OK      *string         `json:"ok"`
		YAML    bool            `json:"yaml"`
		Value   json.RawMessage `json:"value"`
		Error   string          `json:"error"`
		Stage   string          `json:"stage"`
		Message string          `json:"message"`
	}
	if err := json.Unmarshal(raw, &form); err != nil {
		return err
	}
	*o = Outcome{YAML: form.YAML, Class: form.Error, Stage: form.Stage, Message: form.Message}
	switch {
	case form.OK != nil:
		o.Text, o.Class, o.Stage = *form.OK, "", ""
	case form.Error == "":
		return fmt.Errorf("an outcome has neither ok nor error")
	}
	if !o.YAML {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(form.Value))
	decoder.UseNumber()
	return decoder.Decode(&o.Value)
}

// Verdict is the result of comparing an outcome with an expected one.
type Verdict int

// The verdicts. WrongStage means an error of the expected class, but at another stage.
const (
	Same Verdict = iota
	WrongStage
	Different
)

// Judge compares an outcome with an expected one.
func Judge(want, got Outcome) Verdict {
	switch {
	case want.Class != got.Class:
		return Different
	case want.Class != "" && want.Stage != got.Stage:
		return WrongStage
	case want.Text != got.Text || want.YAML != got.YAML:
		return Different
	case want.YAML && !reflect.DeepEqual(normalise(want.Value), normalise(got.Value)):
		return Different
	default:
		return Same
	}
}

// normalise returns the same result for values with the same meaning. It converts numbers to one form for integers and
// one form for floats.
func normalise(value any) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = normalise(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = normalise(item)
		}
		return out
	case json.Number:
		return normaliseNumber(string(v))
	case int64:
		return "int " + strconv.FormatInt(v, 10)
	case float64:
		return "float " + strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return v
	}
}

func normaliseNumber(text string) string {
	if !strings.ContainsAny(text, ".eE") {
		if n, ok := new(big.Int).SetString(text, 10); ok {
			return "int " + n.String()
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "number " + text
	}
	return "float " + strconv.FormatFloat(f, 'g', -1, 64)
}

// String returns a description of the outcome in one line.
func (o Outcome) String() string {
	switch {
	case o.Class != "" && o.Message != "":
		return fmt.Sprintf("error %s at %s (%s)", o.Class, o.Stage, o.Message)
	case o.Class != "":
		return fmt.Sprintf("error %s at %s", o.Class, o.Stage)
	case o.YAML:
		value, _ := encode(o.Value) // plain data can always be encoded
		return fmt.Sprintf("%q, as YAML %s", o.Text, value)
	default:
		return strconv.Quote(o.Text)
	}
}
