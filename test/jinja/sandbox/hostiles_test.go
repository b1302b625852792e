package sandbox

import (
	"fmt"
	"strings"
)

func times(n int, text string) string { return strings.Repeat(text, n) }

// hostiles are templates that try to harm the process. They ask for other templates and for objects other than plain
// data. They ask for more time, memory or stack than is available. Some are known to have hung or crashed other
// engines.
var hostiles = map[string]hostile{
	// Other templates, files and objects.
	"include of a file":           {template: "{% include '/etc/passwd' %}"},
	"include of a secret":         {template: "{% include secret %}"},
	"import of a file":            {template: "{% import '/etc/passwd' as x %}"},
	"from a file":                 {template: "{% from '/etc/passwd' import x %}"},
	"extends a file":              {template: "{% extends '/etc/passwd' %}"},
	"attributes of classes":       {template: "{{ ''.__class__.__mro__[1].__subclasses__() }}"},
	"globals of a function":       {template: "{{ joiner.__init__.__globals__['os'].popen('id').read() }}"},
	"format of an attribute":      {template: "{{ '{0.__class__.__init__}'.format(s) }}", result: true},
	"format_map of an attribute":  {template: "{{ '{a.__class__.__base__}'.format_map({'a': s}) }}"},
	"change of a list":            {template: "{{ nums.append(4) }}"},
	"change of a mapping":         {template: "{{ d.update({'a': 2}) }}"},
	"change by a macro's caller":  {template: "{% call nums.append() %}{% endcall %}"},
	"assignment to a mapping":     {template: "{% set d.a = 2 %}"},
	"sort in place":               {template: "{{ nums.sort() }}"},
	"the attribute filter":        {template: "{{ (nums|attr('append'))(4) }}"},
	"a secret from get":           {template: "{{ d.get('secret').nope.nope }}"},
	"a name that has a secret":    {template: "{{ d[secret].nope }}"},
	"code points without meaning": {template: "{{ 1.2.🚀 }}"},

	// Time.
	"a loop in a loop in a loop":       {template: "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}"},
	"a loop that prints nothing":       {template: "{% for a in range(99999) %}{% for b in range(99999) %}{{ '' }}{% endfor %}{% endfor %}"},
	"a comparison of many":             {template: "{% set l = range(50000)|list %}{% for a in range(50000) %}{% if a + 60000 in l %}{% endif %}{% endfor %}"},
	"a search of many":                 {template: "{% set s = 'a' * 900000 %}{% for a in range(50000) %}{% if s.find('b') %}{% endif %}{% endfor %}"},
	"a search for much":                {template: "{% set s = 'a' * 500000 %}{{ s.count('a' * 250000 ~ 'b') }}", result: true},
	"sorts in a loop":                  {template: "{% set l = range(50000)|reverse|list %}{% for a in range(50000) %}{% if l|sort %}{% endif %}{% endfor %}"},
	"unique of lists":                  {template: "{{ range(90000)|batch(1)|unique|list|length }}"},
	"sums of lists":                    {template: "{{ range(50000)|batch(1)|sum(start=[])|length }}"},
	"sums of strings":                  {template: "{{ (['aaaaaaaaaaaaaaaaaaaa'] * 100000)|sum(start='')|length }}"},
	"a macro that calls itself":        {template: "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
	"a macro that calls itself twice":  {template: "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}"},
	"macros that call each other":      {template: "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}"},
	"a caller that calls":              {template: "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{% call m() %}{% endcall %}"},
	"a block that calls itself":        {template: "{% block a %}{{ self.a() }}{% endblock %}"},
	"a loop that calls itself":         {template: "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}"},
	"a loop that calls itself twice":   {template: "{% for a in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}"},
	"lists in lists, doubling":         {template: "{% set ns = namespace(l=[1]) %}{% for a in range(5000) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|string|length }}"},
	"lists in lists, compared":         {template: "{% set ns = namespace(l=[1], m=[1]) %}{% for a in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}"},
	"lists in lists, as JSON":          {template: "{% set ns = namespace(l=[1]) %}{% for a in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson }}"},
	"lists in lists, printed":          {template: "{% set ns = namespace(l=[1]) %}{% for a in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|pprint }}"},
	"lists in lists, hashed":           {template: "{% set ns = namespace(l=(1,)) %}{% for a in range(100) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}{{ {ns.l: 1}|length }}"},
	"generators in generators":         {template: "{% set ns = namespace(l=[1]) %}{% for a in range(50000) %}{% set ns.l = ns.l|map('string') %}{% endfor %}{{ ns.l|list }}"},
	"a generator of itself":            {template: "{% set ns = namespace(g=[]) %}{% set ns.g = range(3)|map('string') %}{% for a in ns.g %}{{ ns.g|list|length }}{% endfor %}", result: true},
	"a namespace in itself":            {template: "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns|string }}", result: true},
	"a namespace in itself, in a list": {template: "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a|string }}{{ ns.a == ns.a }}{{ [ns.a]|tojson }}"},
	"a huge power":                     {template: "{{ 2 ** (10 ** 9) }}"},
	"a power of a power":               {template: "{{ 9 ** (9 ** (9 ** 9)) }}"},
	"a huge power, negative":           {template: "{{ (-7) ** 99999999 }}"},
	"powers in a loop":                 {template: "{% set ns = namespace(n=3) %}{% for a in range(64) %}{% set ns.n = ns.n * ns.n %}{% endfor %}{{ ns.n }}"},
	"remainders of large integers":     {template: "{% set n = 7 ** 4000 %}{% for a in range(99999) %}{% if n * n % (n + a) == 5 %}{% endif %}{% endfor %}"},
	"a remainder of none":              {template: "{{ 1 % 0 }}"},
	"a quotient of none":               {template: "{{ 1 // 0 }}{{ 1 / 0 }}"},
	"the text of a large integer":      {template: "{{ 10 ** 5000 }}"},
	"an integer of much text":          {template: "{{ ('9' * 900000)|int(base=16) }}", result: true},
	"an integer of much decimal text":  {template: "{{ ('9' * 900000).isdigit() and ('9' * 900000)|int }}", result: true},
	"a float of much text":             {template: "{{ ('9' * 900000)|float }}{{ ('0.' ~ '1' * 900000)|float }}", result: true},
	"a literal of many digits":         {template: "{{ " + times(60_000, "9") + " }}"},
	"a shift by multiplication":        {template: "{{ (10 ** 4000 * 10 ** 4000 * 10 ** 4000)|string }}"},
	"a bytes object of a large size":   {template: "{{ (1).to_bytes(10 ** 12, 'big')|length }}"},
	"rounds to many digits":            {template: "{{ 2.5|round(10 ** 9) }}{{ 5|round(-(10 ** 9)) }}", result: true},
	"urlize of hostile text":           {template: "{{ ('http://' * 100000)|urlize|length }}", result: true},
	"urlize of brackets":               {template: "{{ ('(' * 400000 ~ 'www.a.com' ~ ')' * 400000)|urlize|length }}", result: true},
	"urlize of dots":                   {template: "{{ ('a.' * 400000)|urlize|length }}{{ ('a@' * 400000)|urlize|length }}{{ ('&lt;' * 200000)|urlize|length }}", result: true},
	"striptags of hostile text":        {template: "{{ ('<' * 900000)|striptags|length }}{{ ('<!--' * 200000)|striptags|length }}{{ ('<a' * 400000)|striptags|length }}", result: true},
	"striptags of entities":            {template: "{{ ('&' * 900000)|striptags|length }}{{ ('&#' * 400000)|striptags|length }}{{ ('&notit' * 150000)|striptags|length }}", result: true},
	"wordwrap of one word":             {template: "{{ ('a' * 900000)|wordwrap(1)|length }}"},
	"wordwrap of many words":           {template: "{{ ('a ' * 450000)|wordwrap(1)|length }}{{ ('-' * 900000)|wordwrap(3, false)|length }}{{ ('a-' * 450000)|wordwrap(9)|length }}", result: true},
	"wordcount and title":              {template: "{{ (' ' * 900000)|wordcount }}{{ ('-a' * 450000)|title|length }}", result: true},
	"trim and truncate":                {template: "{{ (' ' * 900000)|trim|length }}{{ ('a ' * 450000)|truncate(449999)|length }}", result: true},
	"indent of many lines":             {template: "{{ ('\\n' * 900000)|indent(1000, true, true)|length }}"},
	"indent by much":                   {template: "{{ 'a\\nb'|indent(10 ** 9) }}"},
	"xmlattr of much":                  {template: "{{ {'a' * 900000: '<' * 900000}|xmlattr|length }}"},
	"escape of much":                   {template: "{{ ('\"' * 900000)|e|e|e|length }}"},
	"urlencode of much":                {template: "{{ ('é' * 400000)|urlencode|length }}"},
	"splits of much":                   {template: "{{ ('a,' * 450000).split(',')|length }}{{ ('\\n' * 900000).splitlines()|length }}", result: true},
	"list of much":                     {template: "{{ ('a' * 900000)|list|length }}", result: true},
	"groups of many":                   {template: "{{ range(99999)|map('string')|groupby(0)|length }}", result: true},

	// Memory.
	"a huge range":                      {template: "{{ range(10 ** 9)|list }}"},
	"a huge range, of which the length": {template: "{{ range(10 ** 18)|length }}"},
	"a huge string":                     {template: "{{ 'a' * 10 ** 9 }}"},
	"a string larger than any":          {template: "{{ 'a' * 10 ** 30 }}"},
	"a huge list":                       {template: "{{ ([0] * 10 ** 9)|length }}"},
	"a huge tuple":                      {template: "{{ ((1, 2) * 10 ** 9)|length }}"},
	"a list by multiplication":          {template: "{{ ([[0] * 1000] * 1000 * 1000)|length }}"},
	"center of a large width":           {template: "{{ 'a'.center(9223372036854775807) }}"},
	"center of an even larger width":    {template: "{{ 'a'|center(10 ** 30) }}"},
	"all that fill":                     {template: "{{ 'a'.ljust(10 ** 12) ~ 'a'.rjust(10 ** 12) ~ '1'.zfill(10 ** 12) }}"},
	"expandtabs":                        {template: "{{ ('\\t' * 1000).expandtabs(10 ** 9) }}"},
	"a percent width":                   {template: "{{ '%1000000000d' % 1 }}"},
	"a percent precision":               {template: "{{ '%.1000000000f' % 1 }}"},
	"a percent width larger than any":   {template: "{{ '%99999999999999999999d' % 1 }}"},
	"a percent width as argument":       {template: "{{ '%*d' % (10 ** 9, 1) }}"},
	"a format width":                    {template: "{{ '{:>999999999}'.format(1) }}"},
	"a format precision":                {template: "{{ '{:.999999999f}'.format(1.5) }}"},
	"a format width as argument":        {template: "{{ '{:{}}'.format(1, 10 ** 9) }}"},
	"a format width of many digits":     {template: "{{ '{:" + times(10_000, "9") + "}'.format(1) }}"},
	"fields of a format in fields":      {template: "{{ '" + times(10_000, "{:") + "'.format(1) }}"},
	"many fields of much":               {template: "{{ ('{0}' * 100000).format('a' * 100000) }}"},
	"a replace of nothing":              {template: "{{ ('a' * 900000).replace('', 'b' * 900000) }}"},
	"a replace by much":                 {template: "{{ ('a' * 100000)|replace('a', 'b' * 100000) }}"},
	"a join by much":                    {template: "{{ (['a'] * 90000)|join('b' * 100000) }}"},
	"a join method by much":             {template: "{{ ('b' * 100000).join(['a'] * 90000) }}"},
	"a translation to much":             {template: "{{ ('a' * 100000).translate({97: 'b' * 100000}) }}"},
	"doubling of a string":              {template: "{% set ns = namespace(s='a') %}{% for a in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s|length }}"},
	"doubling by format":                {template: "{% set ns = namespace(s='a') %}{% for a in range(64) %}{% set ns.s = '%s%s' % (ns.s, ns.s) %}{% endfor %}{{ ns.s|length }}"},
	"doubling by a set block":           {template: "{% set ns = namespace(s='a') %}{% for a in range(64) %}{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}{{ ns.s|length }}"},
	"doubling of a list":                {template: "{% set ns = namespace(l=[0]) %}{% for a in range(64) %}{% set ns.l = ns.l + ns.l %}{% endfor %}{{ ns.l|length }}"},
	"doubling of a mapping":             {template: "{% set ns = namespace(d={}) %}{% for a in range(99999) %}{% set ns.d = dict(ns.d, **{a|string: a}) %}{% endfor %}{{ ns.d|length }}"},
	"many small strings":                {template: "{% set ns = namespace(l=[]) %}{% for a in range(99999) %}{% set ns.l = ns.l + ['a' * 1000] %}{% endfor %}{{ ns.l|length }}"},
	"much output":                       {template: "{% for a in range(99999) %}" + times(100, "a") + "{% endfor %}"},
	"much output in a macro":            {template: "{% macro m() %}{% for a in range(99999) %}" + times(100, "a") + "{% endfor %}{% endmacro %}{{ m()|length }}"},
	"much output in a filter":           {template: "{% filter length %}{% for a in range(99999) %}" + times(100, "a") + "{% endfor %}{% endfilter %}"},
	"batches of much fill":              {template: "{{ [1]|batch(10 ** 9, 0)|list|length }}"},
	"slices of many":                    {template: "{{ [1]|slice(10 ** 9)|list|length }}"},
	"a cycler of many":                  {template: "{{ cycler(*range(10 ** 9)) }}"},
	"arguments of many":                 {template: "{% macro m() %}{{ varargs|length }}{% endmacro %}{{ m(*range(10 ** 9)) }}"},
	"lipsum of much":                    {template: "{{ lipsum(n=10 ** 9) }}"},
	"JSON with a large indent":          {template: "{{ [[1]]|tojson(indent=10 ** 9) }}"},
	"aliases of aliases":                {template: "{% set yaml = true %}a: &a [x, x, x, x, x, x, x, x, x]\n" + aliases()},
	"merges of merges":                  {template: "{% set yaml = true %}a: &a {k: v}\n" + merges()},
	"nesting in YAML":                   {template: "{% set yaml = true %}" + times(30_000, "[")},
	"nesting in YAML by lines":          {template: "{% set yaml = true %}" + times(30_000, "- ")},
	"an alias of itself":                {template: "{% set yaml = true %}&a [*a]"},
	"hours of hours in YAML":            {template: "{% set yaml = true %}1" + times(20_000, ":59")},

	// Source.
	"two megabytes":                   {template: times(1<<20, "a\n")},
	"two megabytes of statements":     {template: times(100_000, "{% if true %}x{% endif %}")},
	"65,000 opening parentheses":      {template: "{{ " + times(65_000, "(") + " }}"},
	"parentheses that close":          {template: "{{ " + times(32_000, "(") + "1" + times(32_000, ")") + " }}"},
	"brackets that open":              {template: "{{ " + times(65_000, "[")},
	"braces that open":                {template: "{{ " + times(30_000, "{1:")},
	"minus of minus":                  {template: "{{ " + times(60_000, "-") + "1 }}"},
	"not of not":                      {template: "{{ " + times(15_000, "not ") + "1 }}"},
	"powers of powers":                {template: "{{ 1" + times(15_000, "**1") + " }}", result: true},
	"calls of calls":                  {template: "{{ " + times(20_000, "a(") + times(20_000, ")") + " }}"},
	"calls after calls":               {template: "{{ s" + times(30_000, "()") + " }}"},
	"attributes of attributes":        {template: "{{ nope" + times(30_000, ".a") + " }}"},
	"filters of filters":              {template: "{{ 'a'" + times(30_000, "|e") + " }}", result: true},
	"conditions in conditions":        {template: "{{ " + times(6_000, "1 if 1 else ") + "1 }}", result: true},
	"sums of many":                    {template: "{{ 1" + times(30_000, "+1") + " }}", result: true},
	"comparisons of many":             {template: "{{ 1" + times(15_000, "==1") + " }}", result: true},
	"tests of tests":                  {template: "{{ 1 " + times(10_000, "is eq ") + "1 }}"},
	"ifs in ifs":                      {template: times(5_000, "{% if 1 %}") + times(5_000, "{% endif %}")},
	"elifs after elifs":               {template: "{% if 0 %}" + times(4_000, "{% elif 0 %}") + "{% endif %}", result: true},
	"fors in fors":                    {template: times(3_000, "{% for a in nums %}")},
	"blocks in blocks":                {template: times(4_000, "{% filter e %}") + times(4_000, "{% endfilter %}")},
	"many targets":                    {template: "{% for " + times(20_000, "(") + "a in nums %}{% endfor %}"},
	"a string without an end":         {template: "{{ '" + times(65_000, "\\")},
	"a comment without an end":        {template: times(20_000, "{#")},
	"a raw block without an end":      {template: "{% raw %}" + times(10_000, "{%")},
	"delimiters that open":            {template: times(20_000, "{{")},
	"delimiters that close":           {template: times(20_000, "}}"), result: true},
	"blanks before a tag":             {template: times(60_000, " ") + "{%- if 1 -%}" + times(1_000, "\n") + "{% endif %}", result: true},
	"blank lines before a tag":        {template: times(5_000, "\n   {% if 1 %}") + "x", result: false},
	"a number with many underscores":  {template: "{{ 1" + times(30_000, "_1") + " }}"},
	"a number with a large exponent":  {template: "{{ 1e999999999 }}{{ 1e-999999999 }}", result: true},
	"a name of many letters":          {template: "{{ " + times(60_000, "a") + " }}"},
	"NUL and invalid text":            {template: "{{ '\x00\xff\xfe' }}\x00\xff", result: true},
	"an escape that is no code point": {template: `{{ '\U00110000' }}`},

	// Work that is done before a render, or once for each of many items.
	"a mapping as arguments":            {template: "{% set d = dict.fromkeys(range(90000)|map('string')) %}{{ 1|default(**d) }}"},
	"a mapping as parameters":           {template: "{% macro m(" + times(8000, "a,") + "b) %}{{ kwargs }}{% endmacro %}{{ m(**dict.fromkeys(range(9000)|map('string'))) }}"},
	"a mapping of a mapping":            {template: "{% set d = dict.fromkeys(range(90000)|map('string')) %}{{ namespace(**d).x }}"},
	"a constant with a long path":       {template: "{{ ([1]*9999)|sum(attribute='" + times(1000, "real.") + "x') }}"},
	"constants that are never large":    {template: times(40, "{{ 'a'*1000000 }}")},
	"many names in many branches":       {template: "{% set " + times(7000, "a,") + "b = [] %}{% if n %}" + times(1400, "{% elif n %}{% set a = n %}") + "{% endif %}"},
	"many names in many ifs":            {template: "{% set " + manyNames(3000) + " = s %}" + times(1300, "{% if n %}{% set a1 = n %}{% endif %}")},
	"many arguments in a loop":          {template: "{% for i in range(99999) %}{{ cycler(" + times(20000, "i,") + ") }}{% endfor %}"},
	"many parameters in a loop":         {template: "{% macro m(" + manyNames(3000) + ") %}{% endmacro %}{% for i in range(99999) %}{{ m() }}{% endfor %}"},
	"many operands in a loop":           {template: "{% for i in range(99999) %}{% if i " + times(9000, "and i ") + "%}{% endif %}{% endfor %}"},
	"many undefined operands in a loop": {template: "{% for i in range(99999) %}{% if zz " + times(9000, "or zz ") + "%}{% endif %}{% endfor %}"},
	"large keys in a loop":              {template: "{% set x = 10 ** 4200 %}{% for i in range(99999) %}{% set y = {x: 1} %}{% endfor %}"},
	"long numbers in a loop":            {template: "{% set long = '9' * 4299 %}{% for i in range(99999) %}{% set y = long|int %}{% endfor %}"},
	"large quotients in a loop":         {template: "{% set x = 10 ** 4200 %}{% for i in range(99999) %}{% set y = x / (x + 1) %}{% endfor %}"},
	"blocks that see many names":        {template: "{% set " + manyNames(3000) + " = s %}" + manyBlocks(1200)},
}

func aliases() string {
	var text strings.Builder
	for name := 'b'; name <= 'k'; name++ {
		previous := string(name - 1)
		text.WriteString(string(name) + ": &" + string(name) + " [*" + previous + times(8, ",*"+previous) + "]\n")
	}
	return text.String()
}

func merges() string {
	var text strings.Builder
	for name := 'b'; name <= 'z'; name++ {
		previous := "*" + string(name-1)
		text.WriteString(string(name) + ": &" + string(name) + " {<<: [" + previous + times(8, ", "+previous) + "], " + string(name) + ": 1}\n")
	}
	return text.String()
}

func manyNames(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("a", i)
	}
	return strings.Join(names, ",")
}

func manyBlocks(n int) string {
	var blocks strings.Builder
	for i := range n {
		fmt.Fprintf(&blocks, "{%% block b%d scoped %%}{%% endblock %%}", i)
	}
	return blocks.String()
}
