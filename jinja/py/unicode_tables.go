package py

import "unicode"

// The text of Python 3.11 follows Unicode 14.0. These tables have the differences to package unicode. The test of every
// code point fails if a new version of Go makes them wrong.

// laterThan14 has the code points of package unicode that Python does not have.
var laterThan14 = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xcf3, 0xcf3, 1}, {0xece, 0xece, 1},
	},
	R32: []unicode.Range32{
		{0x10efd, 0x10eff, 1}, {0x1123f, 0x11241, 1}, {0x11b00, 0x11b09, 1}, {0x11f00, 0x11f10, 1},
		{0x11f12, 0x11f3a, 1}, {0x11f3e, 0x11f59, 1}, {0x1342f, 0x1342f, 1}, {0x13439, 0x13455, 1},
		{0x1b132, 0x1b132, 1}, {0x1b155, 0x1b155, 1}, {0x1d2c0, 0x1d2d3, 1}, {0x1df25, 0x1df2a, 1},
		{0x1e030, 0x1e06d, 1}, {0x1e08f, 0x1e08f, 1}, {0x1e4d0, 0x1e4f9, 1}, {0x1f6dc, 0x1f6dc, 1},
		{0x1f774, 0x1f776, 1}, {0x1f77b, 0x1f77f, 1}, {0x1f7d9, 0x1f7d9, 1}, {0x1fa75, 0x1fa77, 1},
		{0x1fa87, 0x1fa88, 1}, {0x1faad, 0x1faaf, 1}, {0x1fabb, 0x1fabd, 1}, {0x1fabf, 0x1fabf, 1},
		{0x1face, 0x1facf, 1}, {0x1fada, 0x1fadb, 1}, {0x1fae8, 0x1fae8, 1}, {0x1faf7, 0x1faf8, 1},
		{0x2b739, 0x2b739, 1}, {0x31350, 0x323af, 1},
	},
}

// lowerAfter14 has the letters that became lower case after 14.0.
var lowerAfter14 = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x10fc, 0x10fc, 1}, {0xa7f2, 0xa7f4, 1}, {0xab69, 0xab69, 1},
	},
}

// otherDigits has the digits besides the decimal ones.
var otherDigits = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xb2, 0xb3, 1}, {0xb9, 0xb9, 1}, {0x1369, 0x1371, 1}, {0x19da, 0x19da, 1}, {0x2070, 0x2070, 1},
		{0x2074, 0x2079, 1}, {0x2080, 0x2089, 1}, {0x2460, 0x2468, 1}, {0x2474, 0x247c, 1}, {0x2488, 0x2490, 1},
		{0x24ea, 0x24ea, 1}, {0x24f5, 0x24fd, 1}, {0x24ff, 0x24ff, 1}, {0x2776, 0x277e, 1}, {0x2780, 0x2788, 1},
		{0x278a, 0x2792, 1},
	},
	R32: []unicode.Range32{
		{0x10a40, 0x10a43, 1}, {0x10e60, 0x10e68, 1}, {0x11052, 0x1105a, 1}, {0x1f100, 0x1f10a, 1},
	},
	LatinOffset: 2,
}

// otherNumerals has numerals that are letters.
var otherNumerals = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x3405, 0x3405, 1}, {0x3483, 0x3483, 1}, {0x382a, 0x382a, 1}, {0x3b4d, 0x3b4d, 1}, {0x4e00, 0x4e00, 1},
		{0x4e03, 0x4e03, 1}, {0x4e07, 0x4e07, 1}, {0x4e09, 0x4e09, 1}, {0x4e5d, 0x4e5d, 1}, {0x4e8c, 0x4e8c, 1},
		{0x4e94, 0x4e94, 1}, {0x4e96, 0x4e96, 1}, {0x4ebf, 0x4ec0, 1}, {0x4edf, 0x4edf, 1}, {0x4ee8, 0x4ee8, 1},
		{0x4f0d, 0x4f0d, 1}, {0x4f70, 0x4f70, 1}, {0x5104, 0x5104, 1}, {0x5146, 0x5146, 1}, {0x5169, 0x5169, 1},
		{0x516b, 0x516b, 1}, {0x516d, 0x516d, 1}, {0x5341, 0x5341, 1}, {0x5343, 0x5345, 1}, {0x534c, 0x534c, 1},
		{0x53c1, 0x53c4, 1}, {0x56db, 0x56db, 1}, {0x58f1, 0x58f1, 1}, {0x58f9, 0x58f9, 1}, {0x5e7a, 0x5e7a, 1},
		{0x5efe, 0x5eff, 1}, {0x5f0c, 0x5f0e, 1}, {0x5f10, 0x5f10, 1}, {0x62fe, 0x62fe, 1}, {0x634c, 0x634c, 1},
		{0x67d2, 0x67d2, 1}, {0x6f06, 0x6f06, 1}, {0x7396, 0x7396, 1}, {0x767e, 0x767e, 1}, {0x8086, 0x8086, 1},
		{0x842c, 0x842c, 1}, {0x8cae, 0x8cae, 1}, {0x8cb3, 0x8cb3, 1}, {0x8d30, 0x8d30, 1}, {0x9621, 0x9621, 1},
		{0x9646, 0x9646, 1}, {0x964c, 0x964c, 1}, {0x9678, 0x9678, 1}, {0x96f6, 0x96f6, 1}, {0xf96b, 0xf96b, 1},
		{0xf973, 0xf973, 1}, {0xf978, 0xf978, 1}, {0xf9b2, 0xf9b2, 1}, {0xf9d1, 0xf9d1, 1}, {0xf9d3, 0xf9d3, 1},
		{0xf9fd, 0xf9fd, 1},
	},
	R32: []unicode.Range32{
		{0x20001, 0x20001, 1}, {0x20064, 0x20064, 1}, {0x200e2, 0x200e2, 1}, {0x20121, 0x20121, 1},
		{0x2092a, 0x2092a, 1}, {0x20983, 0x20983, 1}, {0x2098c, 0x2098c, 1}, {0x2099c, 0x2099c, 1},
		{0x20aea, 0x20aea, 1}, {0x20afd, 0x20afd, 1}, {0x20b19, 0x20b19, 1}, {0x22390, 0x22390, 1},
		{0x22998, 0x22998, 1}, {0x23b1b, 0x23b1b, 1}, {0x2626d, 0x2626d, 1}, {0x2f890, 0x2f890, 1},
	},
}

// notInIdentifiers has the letters and marks that are not part of an identifier in every normal form.
var notInIdentifiers = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x37a, 0x37a, 1}, {0x2e2f, 0x2e2f, 1}, {0x309b, 0x309c, 1}, {0xfc5e, 0xfc63, 1}, {0xfdfa, 0xfdfb, 1},
		{0xfe70, 0xfe70, 1}, {0xfe72, 0xfe72, 1}, {0xfe74, 0xfe74, 1}, {0xfe76, 0xfe76, 1}, {0xfe78, 0xfe78, 1},
		{0xfe7a, 0xfe7a, 1}, {0xfe7c, 0xfe7c, 1}, {0xfe7e, 0xfe7e, 1},
	},
}

// notFirstInIdentifiers has letters that cannot begin an identifier.
var notFirstInIdentifiers = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xe33, 0xe33, 1}, {0xeb3, 0xeb3, 1}, {0xff9e, 0xff9f, 1},
	},
}

// caseIgnorable has the punctuation marks within words, which the rule for the final sigma ignores.
var caseIgnorable = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x27, 0x27, 1}, {0x2e, 0x2e, 1}, {0x3a, 0x3a, 1}, {0xb7, 0xb7, 1}, {0x387, 0x387, 1}, {0x55f, 0x55f, 1},
		{0x5f4, 0x5f4, 1}, {0x2018, 0x2019, 1}, {0x2024, 0x2024, 1}, {0x2027, 0x2027, 1}, {0xfe13, 0xfe13, 1},
		{0xfe52, 0xfe52, 1}, {0xfe55, 0xfe55, 1}, {0xff07, 0xff07, 1}, {0xff0e, 0xff0e, 1}, {0xff1a, 0xff1a, 1},
	},
	LatinOffset: 4,
}

// longUpper has the upper case mappings to several code points.
var longUpper = map[rune]string{
	0xdf: "\u0053\u0053", 0x149: "\u02bc\u004e", 0x1f0: "\u004a\u030c", 0x390: "\u0399\u0308\u0301",
	0x3b0: "\u03a5\u0308\u0301", 0x587: "\u0535\u0552", 0x1e96: "\u0048\u0331", 0x1e97: "\u0054\u0308",
	0x1e98: "\u0057\u030a", 0x1e99: "\u0059\u030a", 0x1e9a: "\u0041\u02be", 0x1f50: "\u03a5\u0313",
	0x1f52: "\u03a5\u0313\u0300", 0x1f54: "\u03a5\u0313\u0301", 0x1f56: "\u03a5\u0313\u0342", 0x1f80: "\u1f08\u0399",
	0x1f81: "\u1f09\u0399", 0x1f82: "\u1f0a\u0399", 0x1f83: "\u1f0b\u0399", 0x1f84: "\u1f0c\u0399",
	0x1f85: "\u1f0d\u0399", 0x1f86: "\u1f0e\u0399", 0x1f87: "\u1f0f\u0399", 0x1f88: "\u1f08\u0399",
	0x1f89: "\u1f09\u0399", 0x1f8a: "\u1f0a\u0399", 0x1f8b: "\u1f0b\u0399", 0x1f8c: "\u1f0c\u0399",
	0x1f8d: "\u1f0d\u0399", 0x1f8e: "\u1f0e\u0399", 0x1f8f: "\u1f0f\u0399", 0x1f90: "\u1f28\u0399",
	0x1f91: "\u1f29\u0399", 0x1f92: "\u1f2a\u0399", 0x1f93: "\u1f2b\u0399", 0x1f94: "\u1f2c\u0399",
	0x1f95: "\u1f2d\u0399", 0x1f96: "\u1f2e\u0399", 0x1f97: "\u1f2f\u0399", 0x1f98: "\u1f28\u0399",
	0x1f99: "\u1f29\u0399", 0x1f9a: "\u1f2a\u0399", 0x1f9b: "\u1f2b\u0399", 0x1f9c: "\u1f2c\u0399",
	0x1f9d: "\u1f2d\u0399", 0x1f9e: "\u1f2e\u0399", 0x1f9f: "\u1f2f\u0399", 0x1fa0: "\u1f68\u0399",
	0x1fa1: "\u1f69\u0399", 0x1fa2: "\u1f6a\u0399", 0x1fa3: "\u1f6b\u0399", 0x1fa4: "\u1f6c\u0399",
	0x1fa5: "\u1f6d\u0399", 0x1fa6: "\u1f6e\u0399", 0x1fa7: "\u1f6f\u0399", 0x1fa8: "\u1f68\u0399",
	0x1fa9: "\u1f69\u0399", 0x1faa: "\u1f6a\u0399", 0x1fab: "\u1f6b\u0399", 0x1fac: "\u1f6c\u0399",
	0x1fad: "\u1f6d\u0399", 0x1fae: "\u1f6e\u0399", 0x1faf: "\u1f6f\u0399", 0x1fb2: "\u1fba\u0399",
	0x1fb3: "\u0391\u0399", 0x1fb4: "\u0386\u0399", 0x1fb6: "\u0391\u0342", 0x1fb7: "\u0391\u0342\u0399",
	0x1fbc: "\u0391\u0399", 0x1fc2: "\u1fca\u0399", 0x1fc3: "\u0397\u0399", 0x1fc4: "\u0389\u0399",
	0x1fc6: "\u0397\u0342", 0x1fc7: "\u0397\u0342\u0399", 0x1fcc: "\u0397\u0399", 0x1fd2: "\u0399\u0308\u0300",
	0x1fd3: "\u0399\u0308\u0301", 0x1fd6: "\u0399\u0342", 0x1fd7: "\u0399\u0308\u0342", 0x1fe2: "\u03a5\u0308\u0300",
	0x1fe3: "\u03a5\u0308\u0301", 0x1fe4: "\u03a1\u0313", 0x1fe6: "\u03a5\u0342", 0x1fe7: "\u03a5\u0308\u0342",
	0x1ff2: "\u1ffa\u0399", 0x1ff3: "\u03a9\u0399", 0x1ff4: "\u038f\u0399", 0x1ff6: "\u03a9\u0342",
	0x1ff7: "\u03a9\u0342\u0399", 0x1ffc: "\u03a9\u0399", 0xfb00: "\u0046\u0046", 0xfb01: "\u0046\u0049",
	0xfb02: "\u0046\u004c", 0xfb03: "\u0046\u0046\u0049", 0xfb04: "\u0046\u0046\u004c", 0xfb05: "\u0053\u0054",
	0xfb06: "\u0053\u0054", 0xfb13: "\u0544\u0546", 0xfb14: "\u0544\u0535", 0xfb15: "\u0544\u053b",
	0xfb16: "\u054e\u0546", 0xfb17: "\u0544\u053d",
}

// longTitle has the title case mappings to several code points.
var longTitle = map[rune]string{
	0xdf: "\u0053\u0073", 0x149: "\u02bc\u004e", 0x1f0: "\u004a\u030c", 0x390: "\u0399\u0308\u0301",
	0x3b0: "\u03a5\u0308\u0301", 0x587: "\u0535\u0582", 0x1e96: "\u0048\u0331", 0x1e97: "\u0054\u0308",
	0x1e98: "\u0057\u030a", 0x1e99: "\u0059\u030a", 0x1e9a: "\u0041\u02be", 0x1f50: "\u03a5\u0313",
	0x1f52: "\u03a5\u0313\u0300", 0x1f54: "\u03a5\u0313\u0301", 0x1f56: "\u03a5\u0313\u0342", 0x1fb2: "\u1fba\u0345",
	0x1fb4: "\u0386\u0345", 0x1fb6: "\u0391\u0342", 0x1fb7: "\u0391\u0342\u0345", 0x1fc2: "\u1fca\u0345",
	0x1fc4: "\u0389\u0345", 0x1fc6: "\u0397\u0342", 0x1fc7: "\u0397\u0342\u0345", 0x1fd2: "\u0399\u0308\u0300",
	0x1fd3: "\u0399\u0308\u0301", 0x1fd6: "\u0399\u0342", 0x1fd7: "\u0399\u0308\u0342", 0x1fe2: "\u03a5\u0308\u0300",
	0x1fe3: "\u03a5\u0308\u0301", 0x1fe4: "\u03a1\u0313", 0x1fe6: "\u03a5\u0342", 0x1fe7: "\u03a5\u0308\u0342",
	0x1ff2: "\u1ffa\u0345", 0x1ff4: "\u038f\u0345", 0x1ff6: "\u03a9\u0342", 0x1ff7: "\u03a9\u0342\u0345",
	0xfb00: "\u0046\u0066", 0xfb01: "\u0046\u0069", 0xfb02: "\u0046\u006c", 0xfb03: "\u0046\u0066\u0069",
	0xfb04: "\u0046\u0066\u006c", 0xfb05: "\u0053\u0074", 0xfb06: "\u0053\u0074", 0xfb13: "\u0544\u0576",
	0xfb14: "\u0544\u0565", 0xfb15: "\u0544\u056b", 0xfb16: "\u054e\u0576", 0xfb17: "\u0544\u056d",
}

// foldings has the case foldings that are not the lower case, without Cherokee, which has a rule.
var foldings = map[rune]string{
	0xb5: "\u03bc", 0xdf: "\u0073\u0073", 0x149: "\u02bc\u006e", 0x17f: "\u0073", 0x1f0: "\u006a\u030c",
	0x345: "\u03b9", 0x390: "\u03b9\u0308\u0301", 0x3b0: "\u03c5\u0308\u0301", 0x3c2: "\u03c3", 0x3d0: "\u03b2",
	0x3d1: "\u03b8", 0x3d5: "\u03c6", 0x3d6: "\u03c0", 0x3f0: "\u03ba", 0x3f1: "\u03c1", 0x3f5: "\u03b5",
	0x587: "\u0565\u0582", 0x1c80: "\u0432", 0x1c81: "\u0434", 0x1c82: "\u043e", 0x1c83: "\u0441", 0x1c84: "\u0442",
	0x1c85: "\u0442", 0x1c86: "\u044a", 0x1c87: "\u0463", 0x1c88: "\ua64b", 0x1e96: "\u0068\u0331",
	0x1e97: "\u0074\u0308", 0x1e98: "\u0077\u030a", 0x1e99: "\u0079\u030a", 0x1e9a: "\u0061\u02be", 0x1e9b: "\u1e61",
	0x1e9e: "\u0073\u0073", 0x1f50: "\u03c5\u0313", 0x1f52: "\u03c5\u0313\u0300", 0x1f54: "\u03c5\u0313\u0301",
	0x1f56: "\u03c5\u0313\u0342", 0x1f80: "\u1f00\u03b9", 0x1f81: "\u1f01\u03b9", 0x1f82: "\u1f02\u03b9",
	0x1f83: "\u1f03\u03b9", 0x1f84: "\u1f04\u03b9", 0x1f85: "\u1f05\u03b9", 0x1f86: "\u1f06\u03b9",
	0x1f87: "\u1f07\u03b9", 0x1f88: "\u1f00\u03b9", 0x1f89: "\u1f01\u03b9", 0x1f8a: "\u1f02\u03b9",
	0x1f8b: "\u1f03\u03b9", 0x1f8c: "\u1f04\u03b9", 0x1f8d: "\u1f05\u03b9", 0x1f8e: "\u1f06\u03b9",
	0x1f8f: "\u1f07\u03b9", 0x1f90: "\u1f20\u03b9", 0x1f91: "\u1f21\u03b9", 0x1f92: "\u1f22\u03b9",
	0x1f93: "\u1f23\u03b9", 0x1f94: "\u1f24\u03b9", 0x1f95: "\u1f25\u03b9", 0x1f96: "\u1f26\u03b9",
	0x1f97: "\u1f27\u03b9", 0x1f98: "\u1f20\u03b9", 0x1f99: "\u1f21\u03b9", 0x1f9a: "\u1f22\u03b9",
	0x1f9b: "\u1f23\u03b9", 0x1f9c: "\u1f24\u03b9", 0x1f9d: "\u1f25\u03b9", 0x1f9e: "\u1f26\u03b9",
	0x1f9f: "\u1f27\u03b9", 0x1fa0: "\u1f60\u03b9", 0x1fa1: "\u1f61\u03b9", 0x1fa2: "\u1f62\u03b9",
	0x1fa3: "\u1f63\u03b9", 0x1fa4: "\u1f64\u03b9", 0x1fa5: "\u1f65\u03b9", 0x1fa6: "\u1f66\u03b9",
	0x1fa7: "\u1f67\u03b9", 0x1fa8: "\u1f60\u03b9", 0x1fa9: "\u1f61\u03b9", 0x1faa: "\u1f62\u03b9",
	0x1fab: "\u1f63\u03b9", 0x1fac: "\u1f64\u03b9", 0x1fad: "\u1f65\u03b9", 0x1fae: "\u1f66\u03b9",
	0x1faf: "\u1f67\u03b9", 0x1fb2: "\u1f70\u03b9", 0x1fb3: "\u03b1\u03b9", 0x1fb4: "\u03ac\u03b9",
	0x1fb6: "\u03b1\u0342", 0x1fb7: "\u03b1\u0342\u03b9", 0x1fbc: "\u03b1\u03b9", 0x1fbe: "\u03b9",
	0x1fc2: "\u1f74\u03b9", 0x1fc3: "\u03b7\u03b9", 0x1fc4: "\u03ae\u03b9", 0x1fc6: "\u03b7\u0342",
	0x1fc7: "\u03b7\u0342\u03b9", 0x1fcc: "\u03b7\u03b9", 0x1fd2: "\u03b9\u0308\u0300", 0x1fd3: "\u03b9\u0308\u0301",
	0x1fd6: "\u03b9\u0342", 0x1fd7: "\u03b9\u0308\u0342", 0x1fe2: "\u03c5\u0308\u0300", 0x1fe3: "\u03c5\u0308\u0301",
	0x1fe4: "\u03c1\u0313", 0x1fe6: "\u03c5\u0342", 0x1fe7: "\u03c5\u0308\u0342", 0x1ff2: "\u1f7c\u03b9",
	0x1ff3: "\u03c9\u03b9", 0x1ff4: "\u03ce\u03b9", 0x1ff6: "\u03c9\u0342", 0x1ff7: "\u03c9\u0342\u03b9",
	0x1ffc: "\u03c9\u03b9", 0xfb00: "\u0066\u0066", 0xfb01: "\u0066\u0069", 0xfb02: "\u0066\u006c",
	0xfb03: "\u0066\u0066\u0069", 0xfb04: "\u0066\u0066\u006c", 0xfb05: "\u0073\u0074", 0xfb06: "\u0073\u0074",
	0xfb13: "\u0574\u0576", 0xfb14: "\u0574\u0565", 0xfb15: "\u0574\u056b", 0xfb16: "\u057e\u0576",
	0xfb17: "\u0574\u056d",
}
