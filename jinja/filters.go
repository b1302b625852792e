package jinja

import "github.com/albertofaria/pav/jinja/py"

// builtinFilters has Jinja's filters by name, with the parameters that they have in Python.
var builtinFilters = map[string]filter{
	"abs":  bound("abs", doAbs, positional("x")),
	"attr": bound("attr", doAttr, required("obj"), required("name")),
	"batch": bound("batch", doBatch,
		required("value"), required("linecount"), optional("fill_with", none)),
	"capitalize": bound("capitalize", textMethod("capitalize"), required("s")),
	"center":     bound("center", textMethod("center"), required("value"), optional("width", py.NewInt(80))),
	"count":      lengthFilter,
	"d":          defaultFilter,
	"default":    defaultFilter,
	"dictsort": bound("dictsort", doDictSort, required("value"),
		optional("case_sensitive", no), optional("by", py.Str("key")), optional("reverse", no)),
	"e":              escapeFilter,
	"escape":         escapeFilter,
	"filesizeformat": bound("filesizeformat", doFileSizeFormat, required("value"), optional("binary", no)),
	"first":          bound("first", doFirst, required("seq")),
	"float":          bound("float", doFloat, required("value"), optional("default", py.Float(0))),
	"forceescape":    bound("forceescape", doForceEscape, required("value")),
	"format":         doFormat,
	"groupby": bound("groupby", doGroupBy, required("value"), required("attribute"),
		optional("default", none), optional("case_sensitive", no)),
	"indent": bound("indent", doIndent, required("s"),
		optional("width", py.NewInt(4)), optional("first", no), optional("blank", no)),
	"int":        bound("int", doInt, required("value"), optional("default", py.NewInt(0)), optional("base", py.NewInt(10))),
	"items":      bound("items", doItems, required("value")),
	"join":       bound("join", doJoin, required("value"), optional("d", py.Str("")), optional("attribute", none)),
	"last":       bound("last", doLast, required("seq")),
	"length":     lengthFilter,
	"list":       bound("list", doList, required("value")),
	"lower":      bound("lower", textMethod("lower"), required("s")),
	"map":        doMap,
	"max":        bound("max", extreme(py.OpGt), ordering...),
	"min":        bound("min", extreme(py.OpLt), ordering...),
	"pprint":     bound("pprint", doPrettyPrint, required("value")),
	"random":     bound("random", doRandom, required("seq")),
	"reject":     selecting("do_reject", false, false),
	"rejectattr": selecting("do_rejectattr", false, true),
	"replace": bound("replace", doReplace,
		required("s"), required("old"), required("new"), optional("count", none)),
	"reverse": bound("reverse", doReverse, required("value")),
	"round": bound("round", doRound, required("value"),
		optional("precision", py.NewInt(0)), optional("method", py.Str("common"))),
	"safe":       bound("mark_safe", doSafe, required("value")),
	"select":     selecting("do_select", true, false),
	"selectattr": selecting("do_selectattr", true, true),
	"slice":      bound("slice", doSlice, required("value"), required("slices"), optional("fill_with", none)),
	"sort": bound("sort", doSort, required("value"),
		optional("reverse", no), optional("case_sensitive", no), optional("attribute", none)),
	"string":    bound("soft_str", doString, required("s")),
	"striptags": bound("striptags", doStripTags, required("value")),
	"sum": bound("sum", doSum, required("iterable"),
		optional("attribute", none), optional("start", py.NewInt(0))),
	"title":  bound("title", doTitle, required("s")),
	"tojson": bound("tojson", doToJSON, required("value"), optional("indent", none)),
	"trim":   bound("trim", textMethod("strip"), required("value"), optional("chars", none)),
	"truncate": bound("truncate", doTruncate, required("s"), optional("length", py.NewInt(255)),
		optional("killwords", no), optional("end", py.Str("...")), optional("leeway", none)),
	"unique":    bound("unique", doUnique, ordering...),
	"upper":     bound("upper", textMethod("upper"), required("s")),
	"urlencode": bound("urlencode", doURLEncode, required("value")),
	"urlize": bound("urlize", doURLize, required("value"), optional("trim_url_limit", none), optional("nofollow", no),
		optional("target", none), optional("rel", none), optional("extra_schemes", none)),
	"wordcount": bound("wordcount", doWordcount, required("s")),
	"wordwrap": bound("wordwrap", doWordWrap, required("s"), optional("width", py.NewInt(79)),
		optional("break_long_words", yes), optional("wrapstring", none), optional("break_on_hyphens", yes)),
	"xmlattr": bound("xmlattr", doXMLAttributes, required("d"), optional("autospace", yes)),
}

// Defaults of parameters.
const (
	no  = py.Bool(false)
	yes = py.Bool(true)
)

var none = py.None{}

// ordering has the parameters of filters that compare items.
var ordering = []py.Param{required("value"), optional("case_sensitive", no), optional("attribute", none)}

// The filters with two names.
var (
	defaultFilter = bound("default", doDefault,
		required("value"), optional("default_value", py.Str("")), optional("boolean", no))
	escapeFilter = bound("escape", doEscape, positional("s"))
	lengthFilter = bound("len", doLength, positional("obj"))
)
