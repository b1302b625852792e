package main

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// The size of a unit of the dashboard's grid, and of the head line.
const (
	unitWidth  = vg.Length(56)
	unitHeight = vg.Length(23)
	head       = vg.Length(24)
	gap        = vg.Length(4)
)

// palette has the colours of lines, one after the other.
var palette = []color.RGBA{
	{0x1f, 0x77, 0xb4, 255}, {0xff, 0x7f, 0x0e, 255}, {0x2c, 0xa0, 0x2c, 255}, {0xd6, 0x27, 0x28, 255}, {0x94, 0x67, 0xbd, 255},
	{0x8c, 0x56, 0x4b, 255}, {0xe3, 0x77, 0xc2, 255}, {0x7f, 0x7f, 0x7f, 255}, {0xbc, 0xbd, 0x22, 255}, {0x17, 0xbe, 0xcf, 255},
}

var (
	ink   = color.RGBA{0x22, 0x22, 0x22, 255}
	frame = color.RGBA{0xcc, 0xcc, 0xcc, 255}
	grid  = color.RGBA{0xe8, 0xe8, 0xe8, 255}
)

// draw draws a dashboard whose panels are loaded.
func draw(b *board, from source, out string) error {
	rows := 0
	for i := range b.Panels {
		rows = max(rows, b.Panels[i].GridPos.Y+b.Panels[i].GridPos.H)
	}
	width, height := 24*unitWidth, vg.Length(rows)*unitHeight+head
	picture := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(96), vgimg.UseBackgroundColor(color.White))}
	canvas := vgdraw.New(picture)
	write(canvas, b.Title+", "+from.end.UTC().Format("2006-01-02 15:04 UTC")+", "+from.length.String(), 13, gap, height-head/2, vgdraw.XLeft)
	for i := range b.Panels {
		p := &b.Panels[i]
		left, top := vg.Length(p.GridPos.X)*unitWidth, height-head-vg.Length(p.GridPos.Y)*unitHeight
		area := vgdraw.Crop(canvas, left+gap, left+vg.Length(p.GridPos.W)*unitWidth-width-gap, top-vg.Length(p.GridPos.H)*unitHeight+gap, top-height)
		p.draw(area, from)
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(file, reduced(picture.Image())); err != nil {
		return fmt.Errorf("writing %s: %w", out, err)
	}
	return file.Close()
}

// reduced returns a picture with its 256 most frequent colours, which is a third of the bytes.
func reduced(full image.Image) image.Image {
	count, area := map[color.RGBA]int{}, full.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	often := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return count[b] - count[a] })
	var colours color.Palette
	for _, c := range often[:min(len(often), 256)] {
		colours = append(colours, c)
	}
	nearest := map[color.RGBA]uint8{}
	for c := range count {
		nearest[c] = uint8(colours.Index(c))
	}
	few := image.NewPaletted(area, colours)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			few.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	return few
}

func (p *panel) draw(area vgdraw.Canvas, from source) {
	if p.Type == "row" {
		write(area, p.Title, 11, area.Min.X, area.Center().Y, vgdraw.XLeft)
		return
	}
	area.SetColor(frame)
	area.SetLineWidth(0.7)
	area.Stroke(area.Rectangle.Path())
	write(area, p.Title, 9, area.Min.X+gap, area.Max.Y-8, vgdraw.XLeft)
	if p.Type == "stat" {
		value := "no data"
		if len(p.lines) > 0 {
			points := p.lines[0].points
			value = number(points[len(points)-1].value, p.Field.Defaults.Unit)
		}
		write(area, value, 24, area.Center().X, area.Center().Y-4, vgdraw.XCenter)
		return
	}
	inner := vgdraw.Crop(area, gap, -gap, gap, -16)
	legend := p.drawLegend(inner)
	p.plot(from).Draw(vgdraw.Crop(inner, 0, 0, legend, 0))
}

// drawLegend draws the names of the lines below the plot, and returns how much room they take. Where there
// are too many of them, the last are not named.
func (p *panel) drawLegend(area vgdraw.Canvas) vg.Length {
	const most, height = 4, vg.Length(9)
	style := styleOf(7)
	type place struct {
		x   vg.Length
		row int
	}
	places, x, row := []place{}, area.Min.X, 0
	for _, l := range p.lines {
		width := style.Width(l.name) + 16
		if x+width > area.Max.X && x > area.Min.X {
			x, row = area.Min.X, row+1
		}
		if row == most {
			break
		}
		places = append(places, place{x, row})
		x += width
	}
	rows := vg.Length(0)
	if len(places) > 0 {
		rows = vg.Length(places[len(places)-1].row + 1)
	}
	for i, at := range places {
		y := area.Min.Y + (rows-vg.Length(at.row))*height - height/2
		area.StrokeLine2(p.styleOf(i), at.x, y, at.x+8, y)
		write(area, p.lines[i].name, 7, at.x+10, y, vgdraw.XLeft)
	}
	return rows * height
}

// styleOf returns the style of a line. Those that are drawn in dashes have the colours of the first others.
func (p *panel) styleOf(i int) vgdraw.LineStyle {
	style := vgdraw.LineStyle{Color: palette[i%len(palette)], Width: 1.2}
	for _, override := range p.Field.Overrides {
		if override.Matcher.ID == "byRegexp" && regexp.MustCompile(strings.Trim(override.Matcher.Options, "/")).MatchString(p.lines[i].name) {
			style.Dashes = []vg.Length{3, 2}
		}
	}
	return style
}

func (p *panel) plot(from source) *plot.Plot {
	plotted := plot.New()
	plotted.BackgroundColor = color.Transparent
	unit := p.Field.Defaults.Unit
	start := float64(from.end.Add(-from.length).Unix())
	plotted.X.Min, plotted.X.Max = start, float64(from.end.Unix())
	plotted.X.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		var ticks []plot.Tick
		step := from.length.Seconds() / 5
		for at := low; at <= high+1; at += step {
			ticks = append(ticks, plot.Tick{Value: at, Label: time.Unix(int64(at), 0).UTC().Format("15:04")})
		}
		return ticks
	})
	plotted.Y.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		// Minutes are divided by 60, and bytes by powers of 1024.
		scale := 1.0
		switch {
		case unit == "bytes":
			scale = 1 << 20
		case unit == "s" && high >= 180:
			scale = 60
		}
		ticks := plot.DefaultTicks{}.Ticks(low/scale, high/scale)
		for i := range ticks {
			ticks[i].Value *= scale
		}
		ticks = slices.DeleteFunc(ticks, func(t plot.Tick) bool { return t.Label == "" })
		for i := range ticks {
			ticks[i].Label = number(ticks[i].Value, unit)
		}
		return ticks
	})
	for _, axis := range []*plot.Axis{&plotted.X, &plotted.Y} {
		axis.Tick.Label.Font.Size, axis.LineStyle.Color, axis.Tick.LineStyle.Color = 7, frame, frame
	}
	lines := plotter.NewGrid()
	lines.Vertical.Color, lines.Horizontal.Color = grid, grid
	plotted.Add(lines)
	p.addLines(plotted)
	plotted.Y.Min = 0
	if plotted.Y.Max <= 0 {
		plotted.Y.Max = 1
	}
	return plotted
}

// addLines adds the lines, those that are stacked as areas, the last first so that all can be seen.
func (p *panel) addLines(to *plot.Plot) {
	if p.Field.Defaults.Custom.Stacking.Mode != "normal" {
		for i, l := range p.lines {
			for _, part := range parts(l.points) {
				drawn := &plotter.Line{XYs: part, LineStyle: p.styleOf(i)}
				to.Add(drawn)
			}
		}
		return
	}
	below := map[float64]float64{}
	var areas []*plotter.Line
	for i, l := range p.lines {
		var xys plotter.XYs
		for _, at := range p.times() {
			below[at] += l.at(at)
			xys = append(xys, plotter.XY{X: at, Y: below[at]})
		}
		fill := palette[i%len(palette)]
		fill.R, fill.G, fill.B = 255-(255-fill.R)/3, 255-(255-fill.G)/3, 255-(255-fill.B)/3
		areas = append(areas, &plotter.Line{XYs: xys, LineStyle: p.styleOf(i), FillColor: fill})
	}
	slices.Reverse(areas)
	for _, drawn := range areas {
		to.Add(drawn)
	}
}

// times returns all moments at which a line of the panel has a value.
func (p *panel) times() []float64 {
	var all []float64
	for _, l := range p.lines {
		for _, at := range l.points {
			all = append(all, at.seconds)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// at returns the value of a line at a moment; 0 where it has none.
func (l line) at(seconds float64) float64 {
	i, found := slices.BinarySearchFunc(l.points, seconds, func(p point, s float64) int { return cmp.Compare(p.seconds, s) })
	if !found {
		return 0
	}
	return l.points[i].value
}

// parts returns the pieces of a line between the gaps in its data.
func parts(points []point) []plotter.XYs {
	var all []plotter.XYs
	for i, at := range points {
		if i == 0 || i > 1 && at.seconds-points[i-1].seconds > 2*(points[1].seconds-points[0].seconds) {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], plotter.XY{X: at.seconds, Y: at.value})
	}
	return all
}

// number writes a value in a unit of Grafana's.
func number(value float64, unit string) string {
	switch {
	case unit == "bytes":
		return fmt.Sprintf("%.0f MiB", value/(1<<20))
	case unit == "s" && value >= 60:
		return fmt.Sprintf("%.3g min", value/60)
	case unit == "s" && value > 0 && value < 1:
		return fmt.Sprintf("%.3g ms", value*1000)
	case unit == "s":
		return fmt.Sprintf("%.3g s", value)
	default:
		return fmt.Sprintf("%.3g", value)
	}
}

func styleOf(size vg.Length) text.Style {
	return text.Style{Color: ink, Font: font.From(plot.DefaultFont, size), Handler: plot.DefaultTextHandler, YAlign: vgdraw.YCenter}
}

func write(area vgdraw.Canvas, words string, size, x, y vg.Length, align text.XAlignment) {
	style := styleOf(size)
	style.XAlign = align
	area.FillText(style, vg.Point{X: x, Y: y}, words)
}
