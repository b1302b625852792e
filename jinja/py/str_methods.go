package py

// strMethod is a method of str over the text s.
type strMethod func(b *Budget, s string, args []Value) (Value, error)

// bytesPerStep is how much text is searched or copied in the time of one step.
const bytesPerStep = 16

func onStr(params []Param, run strMethod) method {
	return method{params: params, run: func(b *Budget, self Value, args []Value) (Value, error) {
		s, _ := TextOf(self)
		if err := b.Step(len(s)/bytesPerStep + 1); err != nil {
			return nil, err
		}
		return run(b, s, args)
	}}
}

var (
	rangeParams  = []Param{required("sub"), optional("start", None{}), optional("end", None{})}
	fillParams   = []Param{required("width"), optional("fillchar", Str(" "))}
	splitParams  = []Param{byName("sep", None{}), byName("maxsplit", Int{small: -1})}
	charsParams  = []Param{optional("chars", None{})}
	codecParams  = []Param{byName("encoding", Str("utf-8")), byName("errors", Str("strict"))}
	affixParams  = []Param{required("affix")}
	separator    = []Param{required("sep")}
	linesParams  = []Param{byName("keepends", Bool(false))}
	tabsParams   = []Param{byName("tabsize", Int{small: 8})}
	newOldParams = []Param{required("old"), required("new"), optional("count", Int{small: -1})}
)

// strMethods has the methods of str except format and format_map, which read attributes themselves.
var strMethods = map[string]method{
	"capitalize":   onStr(nil, strCapitalize),
	"casefold":     onStr(nil, strCasefold),
	"center":       onStr(fillParams, strCenter),
	"count":        onStr(rangeParams, strCount),
	"encode":       onStr(codecParams, strEncode),
	"endswith":     onStr(rangeParams, strEndsWith),
	"expandtabs":   onStr(tabsParams, strExpandTabs),
	"find":         onStr(rangeParams, strFind(firstOf, false)),
	"index":        onStr(rangeParams, strFind(firstOf, true)),
	"isalnum":      onStr(nil, strIs(isAlnum)),
	"isalpha":      onStr(nil, strIs(isAlpha)),
	"isascii":      onStr(nil, strIsASCII),
	"isdecimal":    onStr(nil, strIs(isDecimal)),
	"isdigit":      onStr(nil, strIs(isDigit)),
	"isidentifier": onStr(nil, strIsIdentifier),
	"islower":      onStr(nil, strIsLower),
	"isnumeric":    onStr(nil, strIs(isNumeric)),
	"isprintable":  onStr(nil, strIsPrintable),
	"isspace":      onStr(nil, strIs(isSpace)),
	"istitle":      onStr(nil, strIsTitle),
	"isupper":      onStr(nil, strIsUpper),
	"join":         onStr([]Param{required("iterable")}, strJoin),
	"ljust":        onStr(fillParams, strLeftJustify),
	"lower":        onStr(nil, strLower),
	"lstrip":       onStr(charsParams, strStrip(true, false)),
	"maketrans":    {params: []Param{required("x"), optional("y", absent{}), optional("z", absent{})}, run: strMakeTrans},
	"partition":    onStr(separator, strPartition),
	"removeprefix": onStr(affixParams, strRemovePrefix),
	"removesuffix": onStr(affixParams, strRemoveSuffix),
	"replace":      onStr(newOldParams, strReplace),
	"rfind":        onStr(rangeParams, strFind(lastOf, false)),
	"rindex":       onStr(rangeParams, strFind(lastOf, true)),
	"rjust":        onStr(fillParams, strRightJustify),
	"rpartition":   onStr(separator, strRightPartition),
	"rsplit":       onStr(splitParams, strRightSplit),
	"rstrip":       onStr(charsParams, strStrip(false, true)),
	"split":        onStr(splitParams, strSplit),
	"splitlines":   onStr(linesParams, strSplitLines),
	"startswith":   onStr(rangeParams, strStartsWith),
	"strip":        onStr(charsParams, strStrip(true, true)),
	"swapcase":     onStr(nil, strSwapCase),
	"title":        onStr(nil, strTitle),
	"translate":    onStr([]Param{required("table")}, strTranslate),
	"upper":        onStr(nil, strUpper),
	"zfill":        onStr([]Param{required("width")}, strZeroFill),
}
