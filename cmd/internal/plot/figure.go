package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is a front with everything that is drawn around it.
type Figure struct {
	// Title says in a few words what is shown.
	Title string
	// Subtitle says what the numbers mean, a line each.
	Subtitle []string
	// X and Y are the axes.
	X, Y Axis
	// Points are all points among which the front was chosen. Those that are not finite,
	// or not positive on a logarithmic axis, are not drawn.
	Points []Point
	// FrontName names the front in the legend.
	FrontName string
	// Front holds the points of the front in any order.
	Front []FrontPoint
	// Groups names groups of the front's points, at most MaxGroups, each in another
	// colour and shape. The legend leaves out groups without points.
	Groups []string
}

// Axis is one objective.
type Axis struct {
	// Label names the objective and its unit.
	Label string
	// Log asks for a logarithmic axis.
	Log bool
	// Maximise says that larger values are better.
	Maximise bool
	// Reference is the anti-ideal value: points count where they are better.
	Reference float64
}

// Point is a measured point.
type Point struct {
	X, Y float64
	// Minor marks an intermediate measurement, which is drawn smaller.
	Minor bool
}

// FrontPoint is a point of the front.
type FrontPoint struct {
	X, Y float64
	// Lower and Upper bound the uncertainty of Y; both are Y if there is none.
	Lower, Upper float64
	// Group is the index in Figure.Groups, if there are any.
	Group int
	// Label is written beside the point, if there is one. A labelled point without a place on a
	// logarithmic X, such as ε = 0, is drawn at the better end: the front is a level from there on.
	Label string
}

// Formats lists what files can be written, by their extensions.
const Formats = ".svg, .png"

// CheckPath returns an error if the extension of a path is not a known format.
func CheckPath(path string) error {
	_, err := formatOf(path)
	return err
}

func formatOf(path string) (string, error) {
	switch extension := strings.ToLower(filepath.Ext(path)); extension {
	case ".svg", ".png":
		return extension[1:], nil
	default:
		return "", fmt.Errorf("picture: must end in one of %s, is %q", Formats, path)
	}
}

// Save writes the figure to a file, whose extension tells the format. The file is
// replaced only by a complete one.
func (f *Figure) Save(path string) error { return save(alone{f}, path) }

// Render writes the figure as "svg" or "png", the latter with 192 dots per inch.
func (f *Figure) Render(w io.Writer, format string) error { return render(alone{f}, w, format) }

// drawing is what can be drawn.
type drawing interface {
	size() (width, height vg.Length)
	draw(c draw.Canvas)
}

// save writes a drawing to a file.
func save(d drawing, path string) error {
	format, err := formatOf(path)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := render(d, &out, format); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644) //nolint:gosec // a picture is no secret
}

// render writes a drawing on white in a format.
func render(d drawing, w io.Writer, format string) error {
	width, height := d.size()
	paint := func(c draw.Canvas) {
		c.SetColor(color.White)
		c.Fill(c.Path())
		d.draw(c)
	}
	switch format {
	case "svg":
		canvas := &svgCanvas{Canvas: vgsvg.New(width, height)}
		paint(draw.New(canvas))
		picture, err := canvas.finish()
		if err != nil {
			return err
		}
		_, err = w.Write(picture)
		return err
	case "png":
		canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dotsPerInch))
		paint(draw.New(canvas))
		_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
		return err
	default:
		return fmt.Errorf("plot: format %q is unknown", format)
	}
}

// Size of a picture with a head of the usual height.
const (
	usualWidth  = 5 * vg.Inch
	usualHeight = 3.4 * vg.Inch
	dotsPerInch = 192
)
