package yaml11

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// maxDigits is how many characters an integer may have; Python, too, reads no more of them.
const maxDigits = 4300

var (
	errBool    = errors.New("this is not a boolean")
	errInteger = errors.New("this is not an integer")
	errFloat   = errors.New("this is not a number")
)

func parseBool(text string) (any, error) {
	switch strings.ToLower(text) {
	case "yes", "true", "on":
		return true, nil
	case "no", "false", "off":
		return false, nil
	default:
		return nil, errBool
	}
}

// split takes underscores and sign off the text of a number.
func split(text string) (digits string, negative bool) {
	digits = strings.ReplaceAll(strings.TrimRight(text, " \n"), "_", "")
	if strings.HasPrefix(digits, "-") {
		return digits[1:], true
	}
	return strings.TrimPrefix(digits, "+"), false
}

func parseInt(text string) (any, error) {
	if len(text) > maxDigits {
		return nil, errInteger
	}
	digits, negative := split(text)
	var n *big.Int
	var ok bool
	switch {
	case strings.HasPrefix(digits, "0b"):
		n, ok = parseDigits(digits[2:], 2)
	case strings.HasPrefix(digits, "0x"):
		n, ok = parseDigits(digits[2:], 16)
	case digits != "0" && strings.HasPrefix(digits, "0"):
		n, ok = parseDigits(strings.TrimPrefix(digits, "0o"), 8)
	default:
		n, ok = parseSexagesimal(digits)
	}
	if !ok {
		return nil, errInteger
	}
	if negative {
		n.Neg(n)
	}
	return integer(n), nil
}

// parseSexagesimal reads decimal digits, or hours, minutes and seconds with ':' between them.
func parseSexagesimal(text string) (*big.Int, bool) {
	total, sixty := new(big.Int), big.NewInt(60)
	for part := range strings.SplitSeq(text, ":") {
		n, ok := parseDigits(part, 10)
		if !ok {
			return nil, false
		}
		total.Mul(total, sixty).Add(total, n)
	}
	return total, true
}

// parseDigits reads digits and nothing else.
func parseDigits(digits string, base int) (*big.Int, bool) {
	if digits == "" || strings.ContainsAny(digits, "+-_") {
		return nil, false
	}
	return new(big.Int).SetString(digits, base)
}

func integer(n *big.Int) any {
	if n.IsInt64() {
		return n.Int64()
	}
	return json.Number(n.String())
}

func parseFloat(text string) (any, error) {
	digits, negative := split(strings.ToLower(text))
	var f float64
	var ok bool
	switch digits {
	case ".inf":
		f, ok = math.Inf(1), true
	case ".nan":
		f, ok = math.NaN(), true
	default:
		f, ok = parseSexagesimalFloat(digits)
	}
	if !ok {
		return nil, errFloat
	}
	if negative {
		f = -f
	}
	return f, nil
}

// maxParts is how many ':' parts a float may have: sixty to the power of more is no exact float64.
const maxParts = 13

func parseSexagesimalFloat(text string) (float64, bool) {
	parts := strings.Split(text, ":")
	if len(parts) > maxParts {
		return 0, false
	}
	total, base := 0.0, 1.0
	for _, part := range slices.Backward(parts) {
		f, err := strconv.ParseFloat(part, 64) // infinite where it is out of range
		hexadecimal := strings.Contains(part, "x")
		signed := strings.IndexAny(part, "+-") == 0
		if err != nil && !errors.Is(err, strconv.ErrRange) || hexadecimal || signed {
			return 0, false
		}
		total += f * base
		base *= 60
	}
	return total, true
}
