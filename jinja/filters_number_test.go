package jinja

import "testing"

func TestNumberFilters(t *testing.T) {
	t.Parallel()
	checkTemplates(t, []templateCase{
		{
			name:     "abs",
			template: "{{ -1|abs }} {{ -1.5|abs }} {{ true|abs }} {{ (-(10**30))|abs }} {{ -0.0|abs }}",
			want:     "1 1.5 1 1000000000000000000000000000000 0.0",
		},
		{name: "abs of a string", template: "{{ '-1'|abs }}", fails: "type"},
		{name: "abs of undefined", template: "{{ missing|abs }}", fails: "type"},
		{
			name:     "int",
			template: "{{ '42'|int }} {{ '42.7'|int }} {{ 42.7|int }} {{ -42.7|int }} {{ ' 1_000 '|int }} {{ true|int }} {{ '1e3'|int }}",
			want:     "42 42 42 -42 1000 1 1000",
		},
		{name: "int of what is none", template: "{{ 'x'|int }} {{ none|int(5) }} {{ []|int('d') }} {{ 'nan'|int }}", want: "0 5 d 0"},
		{
			name:     "int with a base",
			template: "{{ 'ff'|int(0, 16) }} {{ '0x1f'|int(0, 0) }} {{ '0b11'|int(0, 2) }} {{ '0x1f'|int(7) }} {{ 'z'|int(base=36) }} {{ '9'|int(1, 8) }}",
			want:     "255 31 3 7 35 9",
		},
		{name: "int with a bad base falls back", template: "{{ '5'|int(0, 99) }} {{ 'x'|int(3, 'x') }}", want: "5 3"},
		{name: "int of infinity", template: "{{ 'inf'|int }}", fails: "other"},
		{name: "int of undefined", template: "{{ missing|int }}", fails: "undefined"},
		{
			name:     "float",
			template: "{{ '1.5'|float }} {{ 'x'|float }} {{ 'x'|float(1) }} {{ 3|float }} {{ '1e400'|float }} {{ none|float('n') }}",
			want:     "1.5 0.0 1 3.0 inf n",
		},
		{name: "float of undefined", template: "{{ missing|float }}", fails: "undefined"},
		{name: "float of too much", template: "{{ (10**400)|float }}", fails: "other"},
		{
			name:     "round to even halves",
			template: "{{ 0.5|round }} {{ 1.5|round }} {{ 2.5|round }} {{ -0.5|round }}",
			want:     "0.0 2.0 2.0 -0.0",
		},
		{
			name:     "round decimals exactly",
			template: "{{ 2.675|round(2) }} {{ 42.55|round(1) }} {{ 1.005|round(2) }} {{ 0.15|round(1) }} {{ 1e22|round(3) }}",
			want:     "2.67 42.5 1.0 0.1 1e+22",
		},
		{
			name:     "round integers",
			template: "{{ 15|round }} {{ 15|round(-1) }} {{ 25|round(-1) }} {{ -15|round(-1) }} {{ 149|round(-2) }} {{ 7|round(-3) }} {{ true|round(-1) }}",
			want:     "15 20 20 -20 100 0 0",
		},
		{
			name:     "round floats to tens",
			template: "{{ 1234.5|round(-2) }} {{ 150.0|round(-2) }} {{ 250.0|round(-2) }} {{ 5.0|round(-400) }} {{ 1.5|round(400) }}",
			want:     "1200.0 200.0 200.0 0.0 1.5",
		},
		{
			name:     "round to none gives an integer",
			template: "{{ 2.5|round(none) }} {{ 3.5|round(none) }} {{ 3|round(none) }}",
			want:     "2 4 3",
		},
		{
			name:     "round up and down",
			template: "{{ 42.55|round(1, 'floor') }} {{ 42.55|round(1, 'ceil') }} {{ -1.5|round(0, 'ceil') }} {{ 5|round(0, 'floor') }} {{ 1234|round(-2, 'ceil') }}",
			want:     "42.5 42.6 -1.0 5.0 1300.0",
		},
		{name: "round beyond all floats", template: "{{ 1.7976931348623157e308|round(-308) }}", fails: "other"},
		{name: "round in another way", template: "{{ 1.5|round(0, 'up') }}", fails: "other"},
		{name: "round a string", template: "{{ '1.5'|round }}", fails: "type"},
		{name: "round a string up", template: "{{ '1.5'|round(0, 'ceil') }}", fails: "type"},
		{name: "round undefined", template: "{{ missing|round }}", fails: "type"},
		{name: "round undefined up", template: "{{ missing|round(0, 'ceil') }}", fails: "undefined"},
		{name: "round to a fraction", template: "{{ 1.5|round(1.0) }}", fails: "type"},
		{name: "round infinity to none", template: "{{ 'inf'|float|round(none) }}", fails: "other"},
		{
			name:     "filesizeformat",
			template: "{{ 100|filesizeformat }} {{ 1|filesizeformat }} {{ 0|filesizeformat }} {{ 1000|filesizeformat }} {{ 1000000|filesizeformat }} {{ 1500|filesizeformat }} {{ 999999|filesizeformat }}",
			want:     "100 Bytes 1 Byte 0 Bytes 1.0 kB 1.0 MB 1.5 kB 1000.0 kB",
		},
		{
			name:     "filesizeformat of text and fractions",
			template: "{{ '300'|filesizeformat }} {{ 1.5|filesizeformat }} {{ -5000|filesizeformat }} {{ '1e3'|filesizeformat }}",
			want:     "300 Bytes 1 Bytes -5000 Bytes 1.0 kB",
		},
		{
			name:     "filesizeformat in binary units",
			template: "{{ 1023|filesizeformat(true) }} {{ 1024|filesizeformat(true) }} {{ 1048576|filesizeformat(true) }} {{ (1024**4)|filesizeformat(true) }}",
			want:     "1023 Bytes 1.0 KiB 1.0 MiB 1.0 TiB",
		},
		{
			name:     "filesizeformat of a lot",
			template: "{{ (10**27)|filesizeformat }} {{ (10**24)|filesizeformat }} {{ (10**30)|filesizeformat }} {{ 'nan'|float|filesizeformat }} {{ 'inf'|float|filesizeformat }}",
			want:     "1000.0 YB 1000.0 ZB 1000000.0 YB nan YB inf YB",
		},
		{name: "filesizeformat of infinitely little", template: "{{ '-inf'|float|filesizeformat }}", fails: "other"},
		{name: "filesizeformat of no number", template: "{{ 'x'|filesizeformat }}", fails: "other"},
		{name: "filesizeformat of none", template: "{{ none|filesizeformat }}", fails: "type"},
	})
}
