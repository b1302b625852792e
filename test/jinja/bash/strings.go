package main

import (
	"math/rand/v2"
	"strings"
)

// fragments are texts with a special meaning in a shell, and commands that leave a trace in the working directory
// without any program: the file canary.
var fragments = []string{
	"$(>canary)", "`>canary`", ";>canary;", "\n>canary\n", "&& >canary", "|| >canary &", "$(:>canary)", "<(>canary)", "${x:=$(>canary)}", "$((a[$(>canary)]))",
	"'$(>canary)'", "'; >canary; '", "\"; >canary; \"", "\\'; >canary #", "$'\\'; >canary #'", "')>canary;('", "\\\n>canary", "{>canary;}", "eval '>canary'", "exec >canary", "trap '>canary' EXIT",
	"exit", "return", "kill $$", "set -x", "exec", "break", "alias p=:", "unset p", "p() { :; }", "PATH=/bin", "IFS=a", "shopt -s extglob",
	"'", "''", "'\"'\"'", "'\\''", "\"", "\"\"", "\\", "\\\\", "\\n", "$", "$$", "$'", "$'\\n'", "$\"", "`", "!", "!!", "!x", "#", " #", "~", "~root", "~+", "=", "a=b", "a[0]=b", "x+=1",
	"*", "?", "[a-z]", "@(a|b)", "{a,b}", "{1..9}", "${HOME}", "$HOME", "$1", "$@", "$*", "$#", "$?", "$(", ")", "(", "((", "[[", "]]", "{", "}", "|", "||", "&", "&&", ";", ";;", "<", "<<", "<<EOF\nEOF\n", ">", ">>", "2>&1", "<<<",
	"\n", "\n\n", "\r", "\r\n", "\t", " ", "  ", "\a", "\b", "\v", "\f", "\x1b[31m", "\x1b]0;x\a", "\x01", "\x02", "\x7f", "\x7f\x01", "\u0085", "\u00a0", "\u2028", "\u202e", "\u200b", "\ufeff", "\ufffd", "\uffff", "\U0010ffff",
	"é", "ß", "日本", "🚀", "e\u0301", "\\x41", "\\u0041", "\\0", "\\c", "%s", "%", "-", "--", "-n", "-e", "+", "^", "if", "then", "fi", "do", "done", "case", "esac", "time", "coproc", "function", "end", "a", "b c", "1", ".", "/", "canary",
}

// stringsOf returns to-from strings. They depend only on the seed and on from.
func stringsOf(seed, from, to uint64) []string {
	random := rand.New(rand.NewPCG(seed, from))
	texts := make([]string, 0, to-from)
	for range to - from {
		texts = append(texts, randomString(random))
	}
	return texts
}

func randomString(random *rand.Rand) string {
	length := random.IntN(12)
	if random.IntN(500) == 0 {
		length = random.IntN(2000)
	}
	var text strings.Builder
	for range length {
		switch random.IntN(6) {
		case 0:
			text.WriteByte(byte(1 + random.IntN(127)))
		case 1:
			text.WriteRune(rune(1 + random.IntN(255)))
		case 2:
			// WriteRune replaces a surrogate by the replacement character.
			text.WriteRune(rune(1 + random.IntN(0x10ffff)))
		default:
			text.WriteString(fragments[random.IntN(len(fragments))])
		}
	}
	return text.String()
}
