package jinja

import "github.com/albertofaria/pav/internal/template/jinja/py"

// builtinFilters are Jinja's filters by name. They have the parameters of Python's, by which their arguments are bound.
var builtinFilters = map[string]filter{
	"abs":  bound("abs", doAbs, positional("x")),
	"attr": bound("do_attr", doAttr, required("obj"), required("name")),
	"batch": bound("do_batch", doBatch,
		required("value"), required("linecount"), optional("fill_with", none)),
	"capitalize": bound("do_capitalize", textMethod("capitalize"), required("s")),
	"center":     bound("do_center", textMethod("center"), required("value"), optional("width", py.NewInt(80))),
	"count":      lengthFilter,
	"d":          defaultFilter,
	"default":    defaultFilter,
	"dictsort": bound("do_dictsort", doDictSort, required("value"),
		optional("case_sensitive", no), optional("by", py.Str("key")), optional("reverse", no)),
	"e":              escapeFilter,
	"escape":         escapeFilter,
	"filesizeformat": bound("do_filesizeformat", doFileSizeFormat, required("value"), optional("binary", no)),
	"first":          bound("do_first", doFirst, required("seq")),
	"float":          bound("do_float", doFloat, required("value"), optional("default", py.Float(0))),
	"forceescape":    bound("do_forceescape", doForceEscape, required("value")),
	"format":         doFormat,
	"groupby": bound("do_groupby", doGroupBy, required("value"), required("attribute"),
		optional("default", none), optional("case_sensitive", no)),
	"indent": bound("do_indent", doIndent, required("s"),
		optional("width", py.NewInt(4)), optional("first", no), optional("blank", no)),
	"int":        bound("do_int", doInt, required("value"), optional("default", py.NewInt(0)), optional("base", py.NewInt(10))),
	"items":      bound("do_items", doItems, required("value")),
	"join":       bound("do_join", doJoin, required("value"), optional("d", py.Str("")), optional("attribute", none)),
	"last":       bound("do_last", doLast, required("seq")),
	"length":     lengthFilter,
	"list":       bound("do_list", doList, required("value")),
	"lower":      bound("do_lower", textMethod("lower"), required("s")),
	"map":        doMap,
	"max":        bound("do_max", extreme(py.OpGt), ordering...),
	"min":        bound("do_min", extreme(py.OpLt), ordering...),
	"pprint":     bound("do_pprint", doPrettyPrint, required("value")),
	"random":     bound("do_random", doRandom, required("seq")),
	"reject":     selecting("do_reject", false, false),
	"rejectattr": selecting("do_rejectattr", false, true),
	"replace": bound("do_replace", doReplace,
		required("s"), required("old"), required("new"), optional("count", none)),
	"reverse": bound("do_reverse", doReverse, required("value")),
	"round": bound("do_round", doRound, required("value"),
		optional("precision", py.NewInt(0)), optional("method", py.Str("common"))),
	"safe":       bound("do_mark_safe", doSafe, required("value")),
	"select":     selecting("do_select", true, false),
	"selectattr": selecting("do_selectattr", true, true),
	"slice":      bound("do_slice", doSlice, required("value"), required("slices"), optional("fill_with", none)),
	"sort": bound("do_sort", doSort, required("value"),
		optional("reverse", no), optional("case_sensitive", no), optional("attribute", none)),
	"string":    bound("soft_str", doString, required("s")),
	"striptags": bound("do_striptags", doStripTags, required("value")),
	"sum": bound("do_sum", doSum, required("iterable"),
		optional("attribute", none), optional("start", py.NewInt(0))),
	"title":  bound("do_title", doTitle, required("s")),
	"tojson": bound("do_tojson", doToJSON, required("value"), optional("indent", none)),
	"trim":   bound("do_trim", textMethod("strip"), required("value"), optional("chars", none)),
	"truncate": bound("do_truncate", doTruncate, required("s"), optional("length", py.NewInt(255)),
		optional("killwords", no), optional("end", py.Str("...")), optional("leeway", none)),
	"unique":    bound("do_unique", doUnique, ordering...),
	"upper":     bound("do_upper", textMethod("upper"), required("s")),
	"urlencode": bound("do_urlencode", doURLEncode, required("value")),
	"urlize": bound("do_urlize", doURLize, required("value"), optional("trim_url_limit", none), optional("nofollow", no),
		optional("target", none), optional("rel", none), optional("extra_schemes", none)),
	"wordcount": bound("do_wordcount", doWordcount, required("s")),
	"wordwrap": bound("do_wordwrap", doWordWrap, required("s"), optional("width", py.NewInt(79)),
		optional("break_long_words", yes), optional("wrapstring", none), optional("break_on_hyphens", yes)),
	"xmlattr": bound("do_xmlattr", doXMLAttributes, required("d"), optional("autospace", yes)),
}

// Defaults of parameters.
const (
	no  = py.Bool(false)
	yes = py.Bool(true)
)

var none = py.None{}

// ordering are the parameters of filters that compare items.
var ordering = []py.Param{required("value"), optional("case_sensitive", no), optional("attribute", none)}

// The filters with two names.
var (
	defaultFilter = bound("do_default", doDefault,
		required("value"), optional("default_value", py.Str("")), optional("boolean", no))
	escapeFilter = bound("escape", doEscape, positional("s"))
	lengthFilter = bound("len", doLength, positional("obj"))
)
